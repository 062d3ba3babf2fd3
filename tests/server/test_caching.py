"""For how long clients may keep what they are told, and for whom: 2026-07-28, server/utilities/caching."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from modelwire import ConfigError, Context, Server, types
from modelwire.server.caching import KINDS
from modelwire.testing import connected
from tests.wire import HANDSHAKE, MODERN, session_talk

METHODS = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "templates": "resources/templates/list",
    "discover": "server/discover",
}


def full(**options: Any) -> Server:
    server = Server("full", **options)
    server.add_tool(lambda: "", name="tool")
    server.add_prompt(lambda: "", name="prompt")
    server.add_resource("a:fixed", lambda: "fixed", name="fixed")
    server.add_resource("a:{x}", lambda x: x, name="family")
    return server


async def told(server: Server, method: str, revision: str = MODERN, **params: Any) -> tuple[Any, Any]:
    """What the server says of keeping a result."""
    async with session_talk(server, revision) as talk:
        await talk.open()
        result = await talk.result(method, params or None)
    return result.get("ttlMs", "absent"), result.get("cacheScope", "absent")


async def read(server: Server, uri: str, **params: Any) -> tuple[Any, Any]:
    return await told(server, "resources/read", uri=uri, **params)


# ------------------------------------------------------------------ lists


@pytest.mark.parametrize("method", METHODS.values())
async def test_by_default_nothing_is_to_be_kept_and_the_hints_say_so(method: str) -> None:
    assert await told(full(), method) == (0, "private")


@pytest.mark.parametrize("method", METHODS.values())
async def test_one_time_is_that_of_every_list(method: str) -> None:
    assert await told(full(list_ttl=2.5, list_shared=True), method) == (2500, "public")


async def test_each_list_may_have_its_own() -> None:
    server = full(list_ttl={"tools": 300, "templates": 0.0001}, list_shared={"tools", "discover"})
    expected = {
        "tools": (300_000, "public"),
        "prompts": (0, "private"),
        "resources": (0, "private"),
        "templates": (1, "private"),
        "discover": (0, "public"),
    }
    assert {kind: await told(server, METHODS[kind]) for kind in KINDS} == expected


@pytest.mark.parametrize("method", ["tools/list", "resources/read"])
async def test_what_the_revision_lacks_is_not_sent(method: str) -> None:
    server = full(list_ttl=60, list_shared=True)
    server.add_resource("a:kept", lambda: "kept", name="kept", ttl=60, shared=True)
    params = {"uri": "a:kept"} if method == "resources/read" else {}
    assert await told(server, method, HANDSHAKE[-1], **params) == ("absent", "absent")


async def test_every_page_says_the_same() -> None:
    server = Server("s", page_size=1, list_ttl=60, list_shared=True)
    server.add_tool(lambda: "", name="a")
    server.add_tool(lambda: "", name="b", enabled=lambda: True)
    async with session_talk(server, MODERN) as talk:
        await talk.open()
        first = await talk.result("tools/list")
        second = await talk.result("tools/list", {"cursor": first["nextCursor"]})
    assert [(page["ttlMs"], page["cacheScope"]) for page in (first, second)] == [(60_000, "private")] * 2


async def test_a_list_is_shared_by_nobody_as_long_as_a_function_decides_about_anything_in_it() -> None:
    server = full(list_ttl=60, list_shared=True)
    server.add_tool(lambda: "", name="secret", enabled=lambda ctx: False)
    assert await told(server, "tools/list") == (60_000, "private")
    assert await told(server, "prompts/list") == (60_000, "public")
    server.remove_tool("secret")
    assert await told(server, "tools/list") == (60_000, "public")


# ------------------------------------------------------------------ resources


async def test_a_resource_and_a_family_say_how_they_may_be_kept() -> None:
    server = Server("s")

    @server.resource("a:fixed", ttl=60, shared=True)
    def fixed() -> str:
        return "fixed"

    @server.resource("b:{x}", ttl=0.25)
    def family(x: str) -> str:
        return x

    @server.resource("c:shared", shared=True)
    def only_shared() -> str:
        return ""

    assert await read(server, "a:fixed") == (60_000, "public")
    assert await read(server, "b:x") == (250, "private")
    assert await read(server, "c:shared") == (0, "public")


async def test_what_a_function_says_itself_of_its_result_stays() -> None:
    server = Server("s")
    kept = types.ReadResourceResult([types.TextResourceContents("a:b", "x")], ttl_ms=7)
    server.add_resource("a:b", lambda: kept, name="b", ttl=60, shared=True)
    assert await read(server, "a:b") == (7, "public")
    assert kept.cache_scope is None


async def test_files_say_it_too(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    server = Server("s")
    server.add_file("f:one", tmp_path / "a.txt", ttl=5, shared=True)
    server.add_directory("d:", tmp_path, ttl=6)
    assert await read(server, "f:one") == (5000, "public")
    assert await read(server, "d:a.txt") == (6000, "private")


async def test_what_depends_on_answers_is_not_to_be_kept() -> None:
    server = Server("s")

    @server.resource("a:b", ttl=60, shared=True)
    async def asks(ctx: Context) -> str:
        return str(await ctx.elicit("Who?", schema={"type": "object", "properties": {"name": {"type": "string"}}}))

    async with connected(server, on_elicit=lambda question: {"name": "Ann"}) as client:
        result = await client.read_resource("a:b")
        assert (result.ttl_ms, result.cache_scope) == (0, "private")
        await client.read_resource("a:b")
        assert len(client.frames.sent("resources/read")) == 4


async def test_answers_that_come_unasked_are_not_part_of_the_key_either() -> None:
    server = Server("s")
    server.add_resource("a:b", lambda: "", name="b", ttl=60, shared=True)
    assert await read(server, "a:b", inputResponses={}) == (0, "private")


async def test_a_client_and_a_server_together_ask_once() -> None:
    read_times = 0
    server = Server("s")

    @server.resource("a:b", ttl=60)
    def counted() -> str:
        nonlocal read_times
        read_times += 1
        return str(read_times)

    async with connected(server) as client:
        for _ in range(3):
            await client.read_resource("a:b")
        assert read_times == 1
        async with client.listen(uris=["a:b"]) as events:
            server.changed("a:b")
            await anext(events)
            await client.read_resource("a:b")
        assert read_times == 2


# ------------------------------------------------------------------ refused at registration

BAD_TIMES = [-1, True, float("nan"), float("inf"), "60", 1e30]


@pytest.mark.parametrize("ttl", BAD_TIMES, ids=str)
def test_a_time_that_is_none_is_refused(ttl: Any, tmp_path: Path) -> None:
    server = Server("s")
    with pytest.raises(ConfigError, match="resource 'a:b': ttl is a number of seconds from 0 on"):
        server.add_resource("a:b", lambda: "", name="b", ttl=ttl)
    with pytest.raises(ConfigError, match="list_ttl: ttl is"):
        Server("s", list_ttl=ttl)
    with pytest.raises(ConfigError, match="list_ttl: ttl is"):
        Server("s", list_ttl={"tools": ttl})
    (tmp_path / "a").touch()
    with pytest.raises(ConfigError, match="file 'a:b': ttl is"):
        server.add_file("a:b", tmp_path / "a", ttl=ttl)
    with pytest.raises(ConfigError, match="directory 'a:': ttl is"):
        server.add_directory("a:", tmp_path, ttl=ttl)


def test_what_is_there_for_some_only_cannot_be_shared() -> None:
    server = Server("s")
    with pytest.raises(ConfigError, match="leave one of them out"):
        server.add_resource("a:b", lambda: "", name="b", shared=True, enabled=lambda ctx: True)
    server.add_resource("a:b", lambda: "", name="b", shared=True, enabled=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"list_ttl": {"tool": 1}}, "'tool' is none; did you mean 'tools'"),
        ({"list_shared": {"tool"}}, "'tool' is none; did you mean 'tools'"),
        ({"list_shared": "tools"}, "list_shared= is True, False or a set"),
        ({"list_shared": 1}, "list_shared= is True, False or a set"),
    ],
)
def test_lists_that_do_not_exist_are_refused(options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Server("s", **options)


def test_shared_is_true_or_false() -> None:
    with pytest.raises(ConfigError, match="shared= is True or False"):
        Server("s").add_resource("a:b", lambda: "", name="b", shared="public")  # type: ignore[arg-type]
