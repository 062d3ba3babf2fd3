"""What is there for whom: switched off, tagged, or decided for each request; and that nothing gives away the rest."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from modelwire import ConfigError, Context, Server
from modelwire import types as t
from modelwire.server import registry as registry_module
from modelwire.server import subscriptions as subscriptions_module
from tests.wire import MODERN, SessionTalk, Talk, every_handshake, every_revision, session_talk

EVERYTHING = ("tool", "x://fixed", "x://family/{id}", "prompt")
"""One of each kind, as `add_all` registers them."""
LISTS = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}
both_eras = pytest.mark.parametrize("revision", ["2025-11-25", MODERN])


def add_all(server: Server, **options: Any) -> None:
    def choose(id: Literal["one", "two"]) -> str:
        return id

    server.add_tool(lambda: "called", name="tool", **options)
    server.add_resource("x://fixed", lambda: "read", name="fixed", **options)
    server.add_resource("x://family/{id}", choose, name="family", **options)
    server.add_prompt(choose, name="prompt", **options)


def admins_only(ctx: Context) -> bool:
    return ctx.peer.principal == "admin"


@contextlib.asynccontextmanager
async def talk_as(principal: str | None, server: Server, revision: str) -> AsyncIterator[SessionTalk]:
    """Hold a conversation as somebody whom a transport has authenticated."""
    async with session_talk(server, revision, opened=False) as talk:
        (await talk.session._open()).session.principal = principal
        await talk.open()
        yield talk


async def listed(talk: Talk, method: str) -> list[str]:
    """Follow a list to its end."""
    field, key = LISTS[method]
    found, cursor = [], None
    while True:
        result = await talk.result(method, {} if cursor is None else {"cursor": cursor})
        found += [item[key] for item in result[field]]
        cursor = result.get("nextCursor")
        if cursor is None:
            return found


async def everything_listed(talk: Talk) -> set[str]:
    return {key for method in LISTS for key in await listed(talk, method)}


def uses(names: dict[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """Every way to use one of each kind, under these names."""
    complete = {"argument": {"name": "id", "value": ""}}
    return [
        ("tools/call", {"name": names["tool"], "arguments": {}}),
        ("prompts/get", {"name": names["prompt"], "arguments": {"id": "one"}}),
        ("resources/read", {"uri": names["fixed"]}),
        ("resources/read", {"uri": names["member"]}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": names["prompt"]}, **complete}),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": names["family"]}, **complete}),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": names["fixed"]}, **complete}),
    ]


REAL = {"tool": "tool", "prompt": "prompt", "fixed": "x://fixed", "member": "x://family/one", "family": EVERYTHING[2]}
NEVER = {
    "tool": "tuul",
    "prompt": "prumpt",
    "fixed": "x://fuxed",
    "member": "x://fumily/one",
    "family": "x://fumily/{id}",
}


def bare_server(**options: Any) -> Server:
    """A server that declares everything and has one item of each kind that nothing resembles."""
    server = Server("s", **options)
    server.add_tool(lambda: "", name="other")
    server.add_prompt(lambda: "", name="unlike")
    server.add_resource("y://else", lambda: "", name="else")
    server.add_resource("z://{n}", lambda n: n, name="n")
    return server


# --------------------------------------------------------------------------------------------------- nothing shows


@pytest.mark.parametrize("how", ["registered off", "disabled", "function", "function of nothing", "function fails"])
@every_revision
async def test_what_is_not_there_answers_like_what_never_was(revision: str, how: str) -> None:
    """Each use of a hidden item is answered as the same use of a name that nothing was ever registered under."""
    server = bare_server()
    options: dict[str, dict[str, Any]] = {
        "registered off": {"enabled": False},
        "disabled": {},
        "function": {"enabled": admins_only},
        "function of nothing": {"enabled": lambda: False},
        "function fails": {"enabled": lambda ctx: 1 / 0},
    }
    add_all(server, **options[how])
    if how == "disabled":
        server.disable(*EVERYTHING)
    async with session_talk(server, revision) as talk:
        assert await everything_listed(talk) == {"other", "unlike", "y://else", "z://{n}"}
        for (method, real), (_, never) in zip(uses(REAL), uses(NEVER), strict=True):
            hidden, unknown = await talk.error(method, real), await talk.error(method, never)
            told = str(unknown)
            for kind, name in NEVER.items():
                told = told.replace(name, REAL[kind])
            assert str(hidden) == told
            assert hidden["code"] in (-32602, -32002)


@every_revision
async def test_misspelt_names_are_not_put_right_by_what_is_hidden(revision: str) -> None:
    server = bare_server()
    add_all(server, enabled=admins_only)
    async with session_talk(server, revision) as talk, talk_as("admin", server, revision) as admin:
        for method, params in uses(NEVER)[:4]:
            assert "Did you mean" not in str(await talk.error(method, params))
        assert "Did you mean tool?" in str(await admin.error("tools/call", {"name": "tol"}))
        assert "Did you mean x://fixed?" in str(await admin.error("resources/read", {"uri": "x://fixd"}))
        assert "Did you mean prompt?" in str(await admin.error("prompts/get", {"name": "promt"}))


@every_revision
async def test_a_hidden_resource_gives_way_to_a_family_that_matches(revision: str) -> None:
    server = Server("s")
    server.add_resource("x://a", lambda: "fixed", name="a")
    server.add_resource("x://{id}", lambda id: f"first {id}", name="one")
    server.add_resource("x://{+id}", lambda id: f"second {id}", name="two")
    async with session_talk(server, revision) as talk:
        for expected in ("fixed", "first a", "second a"):
            result = await talk.result("resources/read", {"uri": "x://a"})
            assert result["contents"][0]["text"] == expected
            server.disable({"fixed": "x://a", "first a": "x://{id}", "second a": "x://{+id}"}[expected])
        assert (await talk.error("resources/read", {"uri": "x://a"}))["code"] in (-32602, -32002)


# --------------------------------------------------------------------------------------------------- on and off


@every_revision
async def test_items_are_switched_off_and_on_again_in_their_places(revision: str) -> None:
    server = Server("s")
    for name in "abcd":
        server.add_tool(lambda name=name: name, name=name, inline=True)
    async with session_talk(server, revision) as talk:
        server.disable("b", "d")
        assert await listed(talk, "tools/list") == ["a", "c"]
        server.enable("b")
        assert await listed(talk, "tools/list") == ["a", "b", "c"]
        assert await talk.text("b") == "b"
        server.enable("d")
        assert await listed(talk, "tools/list") == ["a", "b", "c", "d"]


@every_revision
async def test_tags_switch_every_kind_at_once(revision: str) -> None:
    server = bare_server()
    add_all(server, tags={"admin", "beta"})
    async with session_talk(server, revision) as talk:
        server.disable(tags={"admin"})
        assert not await everything_listed(talk) & set(EVERYTHING)
        server.enable(tags=["beta"], kind="resource")
        assert await everything_listed(talk) & set(EVERYTHING) == {"x://fixed", "x://family/{id}"}
        server.enable("tool", tags=("beta",))
        assert await everything_listed(talk) >= set(EVERYTHING)


async def test_tags_are_not_sent() -> None:
    server = Server("s")
    add_all(server, tags={"secretive"})
    async with session_talk(server, MODERN) as talk:
        await everything_listed(talk)
        assert all(b"secretive" not in frame for _, frame in talk.ledger.frames)


@every_revision
async def test_a_tool_given_whole_has_them_too(revision: str) -> None:
    server = bare_server()
    server.add_tool(t.Tool("low", {"type": "object"}), lambda arguments: "ok", tags={"x"}, enabled=admins_only)
    async with session_talk(server, revision) as talk, talk_as("admin", server, revision) as admin:
        assert (await listed(talk, "tools/list"), await listed(admin, "tools/list")) == (["other"], ["other", "low"])
        server.disable(tags={"x"})
        assert await listed(admin, "tools/list") == ["other"]


@both_eras
async def test_capabilities_are_declared_although_all_is_switched_off(revision: str) -> None:
    server = Server("s")
    add_all(server, enabled=False)
    server.complete("prompt", "id")(lambda typed: [])
    async with session_talk(server, revision, opened=False) as talk:
        assert set((await talk.open())["capabilities"]) >= {"tools", "prompts", "resources", "completions"}
        assert await everything_listed(talk) == set()


async def test_a_call_that_runs_goes_on_when_its_tool_is_switched_off() -> None:
    server, go = Server("s"), asyncio.Event()

    @server.tool
    async def slow() -> str:
        await go.wait()
        return "done"

    async with session_talk(server, MODERN) as talk:
        running = await talk.begin_call("slow")
        await talk.settle()
        server.disable("slow")
        assert (await talk.error("tools/call", {"name": "slow"}))["code"] == -32602
        go.set()
        assert (await running.result())["content"][0]["text"] == "done"


@every_handshake
async def test_clients_are_told_once_for_each_change_that_changed_something(revision: str) -> None:
    server = bare_server()
    add_all(server, tags={"all"})
    told = [f"notifications/{what}/list_changed" for what in ("tools", "prompts", "resources")]
    async with session_talk(server, revision) as talk:
        await talk.settle()

        async def heard(change: Callable[[], None]) -> list[str]:
            talk.inbox.clear()
            change()
            await talk.settle()
            return sorted(message["method"] for message in talk.inbox)

        assert await heard(lambda: server.disable("tool")) == told[:1]
        assert await heard(lambda: server.disable("tool")) == []
        assert await heard(lambda: server.enable("other", "prompt")) == []
        assert await heard(lambda: server.disable(tags={"all"})) == sorted(told[1:])
        assert await heard(lambda: server.disable(*EVERYTHING, tags={"all"})) == []
        assert await heard(lambda: server.enable("x://fixed", "x://family/{id}")) == told[2:]
        assert await heard(lambda: server.enable(tags={"all"})) == sorted(told[:2])


async def test_listeners_are_told_of_what_another_thread_switches() -> None:
    server = bare_server()
    async with session_talk(server, MODERN) as talk:
        listening = await talk.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        await talk.hear("notifications/subscriptions/acknowledged")
        thread = threading.Thread(target=server.disable, args=("other",))
        thread.start()
        thread.join()
        await talk.hear("notifications/tools/list_changed")
        assert await listed(talk, "tools/list") == []
        await talk.cancel(listening)


async def test_threads_lose_nothing_of_one_another() -> None:
    server = Server("s")

    def work(letter: str) -> None:
        for index in range(50):
            name = f"{letter}{index}"
            server.add_tool(lambda: "", name=name, inline=True, tags={letter})
            server.disable(name)
            if index % 2:
                server.enable(name)

    threads = [threading.Thread(target=work, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    async with session_talk(server, MODERN) as talk:
        while any(thread.is_alive() for thread in threads):
            await listed(talk, "tools/list")
        found = await listed(talk, "tools/list")
        assert sorted(found) == sorted(f"{letter}{index}" for letter in "abcd" for index in range(50) if index % 2)


# --------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (["tol"], {}, r"disable: there is no tool, prompt or resource 'tol'; did you mean 'tool'\?"),
        (["x://fixd"], {}, r"did you mean 'x://fixed'\?"),
        (["nothing like it"], {}, "disable: there is no tool, prompt or resource 'nothing like it'$"),
        (["prompt"], {"kind": "tool"}, "disable: there is no tool 'prompt'"),
        (["tool", "tol"], {}, "did you mean 'tool'"),
        (["both"], {}, "disable: 'both' is a tool and a prompt; say which: kind='tool'"),
        (["tool"], {"kind": "tools"}, "kind is one of tool, prompt, resource, not 'tools'"),
        ([], {"tags": {"admim"}}, r"disable: nothing has the tag 'admim'; did you mean 'admin'\?"),
        ([], {"tags": {"admin"}, "kind": "prompt"}, "disable: nothing has the tag 'admin'"),
        ([], {"tags": "admin"}, r"tags= is a set of strings, such as \{'admin'\}, not 'admin'"),
        ([], {"tags": {1}}, "tags are strings"),
        ([], {}, r"disable\(\) needs a name, a URI or tags="),
        ([], {"tags": ()}, "needs a name"),
    ],
)
async def test_a_name_that_does_not_exist_switches_nothing(arguments: Any, options: Any, said: str) -> None:
    server = Server("s")
    server.add_tool(lambda: "", name="tool", tags={"admin"})
    server.add_tool(lambda: "", name="both")
    server.add_prompt(lambda: "", name="both")
    server.add_prompt(lambda: "", name="prompt")
    server.add_resource("x://fixed", lambda: "", name="fixed")
    with pytest.raises(ConfigError, match=said):
        server.disable(*arguments, **options)
    with pytest.raises(ConfigError, match=said.replace("disable", "enable")):
        server.enable(*arguments, **options)
    async with session_talk(server, MODERN) as talk:
        assert await everything_listed(talk) == {"tool", "both", "prompt", "x://fixed"}
        server.disable("both", kind="prompt")
        assert await listed(talk, "prompts/list") == ["prompt"]
        assert await listed(talk, "tools/list") == ["tool", "both"]


async def asynchronous(ctx: Context) -> bool:
    return True


async def asynchronous_items() -> AsyncIterator[bool]:
    yield True


def items() -> Any:
    yield True


class Asynchronous:
    async def __call__(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"enabled": asynchronous}, "enabled= is asked while a list is made, and cannot wait; use a plain `def`"),
        ({"enabled": Asynchronous()}, "cannot wait"),
        ({"enabled": asynchronous_items}, "cannot wait"),
        ({"enabled": items}, "cannot wait"),
        ({"enabled": lambda ctx, more: True}, "enabled= is called with the context alone"),
        ({"enabled": lambda *, needed: True}, "enabled= is called with the context alone"),
        ({"enabled": "yes"}, "enabled= is True, False or a function of the context, not 'yes'"),
        ({"enabled": None}, "enabled= is True, False or a function"),
        ({"tags": "admin"}, "tags= is a set of strings"),
        ({"tags": 5}, "tags= is a set of strings"),
        ({"tags": [None]}, "tags are strings"),
    ],
)
def test_what_could_not_decide_is_refused_at_registration(options: Any, said: str) -> None:
    server = Server("s")
    registrations: list[Callable[[], object]] = [
        lambda: server.add_tool(lambda: "", name="n", **options),
        lambda: server.add_tool(t.Tool("n", {"type": "object"}), lambda: "", **options),
        lambda: server.add_resource("x://n", lambda: "", name="n", **options),
        lambda: server.add_resource("x://{n}", lambda n: "", name="n", **options),
        lambda: server.add_prompt(lambda: "", name="n", **options),
    ]
    for register in registrations:
        with pytest.raises(ConfigError, match=said.replace("|", r"\|")):
            register()
    assert not server.features.tools.registry.keys()


@pytest.mark.parametrize(
    "fails",
    [
        lambda ctx: 1 / 0,
        lambda ctx: ctx.nothing_of_the_kind,
        lambda: asynchronous(None),  # type: ignore[arg-type]
        lambda: exit(1),
        lambda: asyncio.get_running_loop().create_future(),
    ],
)
@both_eras
async def test_a_function_that_fails_hides_and_tells_the_log(
    revision: str, fails: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server = bare_server()
    server.add_tool(lambda: "", name="guarded", enabled=fails)
    async with session_talk(server, revision) as talk:
        with caplog.at_level(logging.ERROR):
            assert await listed(talk, "tools/list") == ["other"]
        assert "enabled= of tool 'guarded', which is hidden therefore, failed" in caplog.text
        assert (await talk.error("tools/call", {"name": "guarded"}))["code"] == -32602


# --------------------------------------------------------------------------------------------------- for some


@every_revision
async def test_two_sessions_see_what_is_theirs_at_the_same_time(revision: str) -> None:
    server = Server("s", page_size=2)
    for index in range(7):
        server.add_tool(lambda: "", name=f"open{index}", inline=True)
        server.add_tool(lambda: "secret", name=f"admin{index}", inline=True, enabled=admins_only)
    async with talk_as("admin", server, revision) as admin, talk_as("guest", server, revision) as guest:
        for _ in range(3):
            both = await asyncio.gather(listed(admin, "tools/list"), listed(guest, "tools/list"))
            assert both[0] == [name for index in range(7) for name in (f"open{index}", f"admin{index}")]
            assert both[1] == [f"open{index}" for index in range(7)]
        assert await admin.text("admin3") == "secret"
        assert (await guest.error("tools/call", {"name": "admin3"}))["code"] == -32602
        server.disable("admin3")
        assert "admin3" not in await listed(admin, "tools/list")


@both_eras
async def test_pages_are_full_whatever_is_hidden_between(revision: str) -> None:
    server = Server("s", page_size=3)
    for index in range(12):
        server.add_tool(lambda: "", name=f"t{index}", inline=True, enabled=admins_only if index % 3 else True)
    async with talk_as("guest", server, revision) as guest, talk_as("admin", server, revision) as admin:
        first = await guest.result("tools/list")
        assert [tool["name"] for tool in first["tools"]] == ["t0", "t3", "t6"]
        second = await guest.result("tools/list", {"cursor": first["nextCursor"]})
        assert [tool["name"] for tool in second["tools"]] == ["t9"]
        assert "nextCursor" not in second
        others = await admin.result("tools/list", {"cursor": first["nextCursor"]})
        assert [tool["name"] for tool in others["tools"]] == ["t7", "t8", "t9"]


@both_eras
async def test_a_cursor_holds_while_items_are_hidden_and_shown(revision: str) -> None:
    server = Server("s", page_size=2)
    for name in "abcdef":
        server.add_tool(lambda: "", name=name, inline=True)
    async with session_talk(server, revision) as talk:
        first = await talk.result("tools/list")
        server.disable("b", "c")  # what the cursor points behind, and what comes next
        second = await talk.result("tools/list", {"cursor": first["nextCursor"]})
        assert [tool["name"] for tool in second["tools"]] == ["d", "e"]
        server.enable("c")
        again = await talk.result("tools/list", {"cursor": first["nextCursor"]})
        assert [tool["name"] for tool in again["tools"]] == ["c", "d"]


async def test_lists_that_differ_are_private() -> None:
    # "private is appropriate for ... filtered list results that vary per user" (2026-07-28, server/utilities/caching)
    server = Server("s", page_size=1)
    add_all(server, enabled=admins_only)
    async with talk_as("admin", server, MODERN) as admin, talk_as("guest", server, MODERN) as guest:
        for talk in (admin, guest):
            for method in LISTS:
                assert (await talk.result(method))["cacheScope"] == "private"


async def test_a_function_decides_anew_for_each_request() -> None:
    server, open_now = bare_server(), [False]
    add_all(server, enabled=lambda: open_now[0])
    async with session_talk(server, MODERN) as talk:
        for _ in range(3):
            open_now[0] = not open_now[0]
            there = set(EVERYTHING) if open_now[0] else set[str]()
            assert await everything_listed(talk) & set(EVERYTHING) == there
            assert ("result" in await talk.request("tools/call", {"name": "tool"})) is open_now[0]


async def test_a_switch_and_a_function_must_agree() -> None:
    server, allowed = bare_server(), [True]
    server.add_tool(lambda: "", name="tool", enabled=lambda: allowed[0])
    async with session_talk(server, MODERN) as talk:
        for on, allows in ((True, True), (True, False), (False, True), (False, False), (True, True)):
            (server.enable if on else server.disable)("tool")
            allowed[0] = allows
            assert ("tool" in await listed(talk, "tools/list")) is (on and allows)


@every_revision
async def test_a_function_knows_who_asks(revision: str) -> None:
    server, seen = bare_server(), []

    def decide(ctx: Context) -> bool:
        seen.append((ctx.method, ctx.peer.revision.name, ctx.peer.info.name if ctx.peer.info else None))
        return True

    server.add_tool(lambda: "", name="tool", enabled=decide)
    async with session_talk(server, revision) as talk:
        await listed(talk, "tools/list")
        await talk.call("tool")
    assert seen == [("tools/list", revision, "test"), ("tools/call", revision, "test")]


async def test_one_function_is_asked_once_for_a_list_and_not_at_all_where_nothing_is_guarded() -> None:
    server, asked = bare_server(), []

    def decide(ctx: Context) -> bool:
        asked.append(ctx.method)
        return True

    for index in range(20):
        server.add_tool(lambda: "", name=f"t{index}", inline=True, enabled=decide)
    async with session_talk(server, MODERN) as talk:
        await listed(talk, "tools/list")
        assert asked == ["tools/list"]
        await listed(talk, "prompts/list")
        await talk.call("other")
        assert asked == ["tools/list"]
        await talk.call("t3")
        assert asked == ["tools/list", "tools/call"]


async def test_pages_of_many_different_views_are_bounded_and_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "_MAX_PAGES", 8)
    server = bare_server()
    for index in range(6):
        server.add_tool(lambda: "", name=f"t{index}", inline=True, enabled=lambda ctx, i=index: _bit(ctx, i))
    async with session_talk(server, MODERN) as talk:
        for _ in range(2):
            for number in range(64):
                result = await talk.result("tools/list", number=number)
                expected = {f"t{index}" for index in range(6) if number >> index & 1}
                assert {tool["name"] for tool in result["tools"]} == {"other", *expected}
        assert len(server.features.tools.registry._pages) <= 8


def _bit(ctx: Context, index: int) -> bool:
    return bool(ctx.meta.get("number", 0) >> index & 1)


# --------------------------------------------------------------------------------------------------- resources told of


@every_handshake
async def test_who_cannot_see_a_resource_is_not_told_of_it(revision: str) -> None:
    server = bare_server()
    add_all(server, enabled=admins_only)
    uris = ["x://fixed", "x://family/one", "x://unknown", "y://else"]
    async with talk_as("guest", server, revision) as guest, talk_as("admin", server, revision) as admin:
        for talk in (guest, admin):
            for uri in uris:
                assert await talk.result("resources/subscribe", {"uri": uri}) == {}
        for uri in uris:
            server.changed(uri)
        for talk, expected in ((guest, uris[2:]), (admin, uris)):
            await talk.settle()
            assert [params["uri"] for params in talk.heard("notifications/resources/updated")] == expected
            talk.inbox.clear()
        server.disable("x://fixed", "x://family/{id}")
        await admin.settle()
        admin.inbox.clear()
        for uri in uris:
            server.changed(uri)
        await admin.settle()
        assert [params["uri"] for params in admin.heard("notifications/resources/updated")] == uris[2:]


async def test_what_is_hidden_counts_as_followed_like_what_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions_module, "MAX_SUBSCRIPTIONS", 2)
    server = bare_server()
    add_all(server, enabled=admins_only)
    async with session_talk(server, "2025-11-25") as talk:
        for first, second, third in (("x://fixed", "x://family/one", "y://else"), ("a:1", "a:2", "x://fixed")):
            for uri in (first, second):
                assert await talk.result("resources/subscribe", {"uri": uri}) == {}
            assert (await talk.error("resources/subscribe", {"uri": third}))["code"] == -32602
            for uri in (first, second):
                assert await talk.result("resources/unsubscribe", {"uri": uri}) == {}


async def test_a_listener_that_cannot_see_a_resource_is_not_told_of_it() -> None:
    server = bare_server()
    add_all(server, enabled=admins_only)
    uris = ["x://fixed", "x://family/one", "x://unknown", "y://else"]
    async with talk_as("guest", server, MODERN) as guest, talk_as("admin", server, MODERN) as admin:
        for talk in (guest, admin):
            await talk.begin("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}})
            acknowledged = await talk.hear("notifications/subscriptions/acknowledged")
            assert acknowledged["notifications"] == {"resourceSubscriptions": uris}
        for uri in uris:
            server.changed(uri)
        for talk, expected in ((guest, uris[2:]), (admin, uris)):
            await talk.settle()
            assert [params["uri"] for params in talk.heard("notifications/resources/updated")] == expected


async def test_announced_lists_hold_what_is_there_for_everybody() -> None:
    server = Server("s", announce_lists=True)
    server.add_tool(lambda: "", name="open")
    server.add_tool(lambda: "", name="guarded", enabled=lambda: True)
    server.add_tool(lambda: "", name="off", enabled=False)
    async with session_talk(server, "2025-11-25") as talk:
        announced = await talk.hear("tools/list")
        assert [tool["name"] for tool in announced["tools"]] == ["open"]
        server.enable("off")
        announced = await talk.hear("tools/list")
        assert [tool["name"] for tool in announced["tools"]] == ["open", "off"]
        assert await listed(talk, "tools/list") == ["open", "guarded", "off"]
        talk.inbox.clear()


async def test_both_eras_on_one_connection_see_their_own() -> None:
    server = bare_server()
    server.add_tool(lambda: "", name="new", enabled=lambda ctx: ctx.peer.revision.name == MODERN)
    async with session_talk(server, "2025-06-18") as talk:
        assert await listed(talk, "tools/list") == ["other"]
        modern = await talk.result("tools/list", revision=MODERN)
        assert [tool["name"] for tool in modern["tools"]] == ["other", "new"]


# --------------------------------------------------------------------------------------------------- files


FILE, DIRECTORY, MEMBER, UNLISTED = "docs://one", "tree://", "tree://a.txt", "tree://late.txt"


def with_files(folder: Path, **options: Any) -> Server:
    (folder / "tree").mkdir()
    for name in ("one.txt", "tree/a.txt", "tree/b.txt"):
        (folder / name).write_text(name)
    server = Server("files")
    server.add_file(FILE, folder / "one.txt", **options)
    server.add_directory(DIRECTORY, folder / "tree", **options)
    return server


async def readable(talk: Talk, *uris: str) -> set[str]:
    answers = {uri: await talk.request("resources/read", {"uri": uri}) for uri in uris}
    assert all("result" in answer or answer["error"]["code"] in (-32602, -32002) for answer in answers.values())
    return {uri for uri, answer in answers.items() if "result" in answer}


@both_eras
async def test_files_and_directories_are_switched_with_all_that_is_in_them(revision: str, tmp_path: Path) -> None:
    server = with_files(tmp_path, tags={"disk"})
    everything = {FILE, MEMBER, "tree://b.txt"}
    async with session_talk(server, revision) as talk:
        assert set(await listed(talk, "resources/list")) == await readable(talk, *everything) == everything
        server.disable(DIRECTORY)
        (tmp_path / "tree" / "late.txt").write_text("came later")
        for _ in range(2):
            assert await listed(talk, "resources/list") == [FILE]
            assert await readable(talk, *everything, UNLISTED) == {FILE}
        server.enable(DIRECTORY)
        server.disable(FILE, MEMBER)
        rest = {"tree://b.txt", UNLISTED}
        assert set(await listed(talk, "resources/list")) == await readable(talk, *everything, UNLISTED) == rest
        server.disable(tags={"disk"})
        assert await listed(talk, "resources/list") == []
        assert await readable(talk, *everything, UNLISTED) == set()
        server.enable(tags={"disk"})
        assert await readable(talk, *everything, UNLISTED) == {*everything, UNLISTED}


@both_eras
async def test_files_are_there_for_whom_they_should(revision: str, tmp_path: Path) -> None:
    server = with_files(tmp_path, enabled=admins_only)
    uris = {FILE, MEMBER, "tree://b.txt", UNLISTED}
    async with talk_as("admin", server, revision) as admin, talk_as("guest", server, revision) as guest:
        (tmp_path / "tree" / "late.txt").write_text("came later")
        assert await readable(guest, *uris) == set()
        assert await readable(admin, *uris) == uris  # before any list has it
        assert await listed(guest, "resources/list") == []
        assert set(await listed(admin, "resources/list")) == uris
        error = await guest.error("resources/read", {"uri": "tree://a.tx"})
        assert "Did you mean" not in str(error)


async def test_who_cannot_see_a_directory_is_not_told_of_its_files(tmp_path: Path) -> None:
    server = with_files(tmp_path, enabled=admins_only)
    uris = [FILE, MEMBER, UNLISTED]
    async with talk_as("admin", server, MODERN) as admin, talk_as("guest", server, MODERN) as guest:
        for talk in (admin, guest):
            await talk.begin("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}})
            await talk.hear("notifications/subscriptions/acknowledged")
        for uri in uris:
            server.changed(uri)
        for talk, expected in ((admin, uris), (guest, [])):
            await talk.settle()
            assert [params["uri"] for params in talk.heard("notifications/resources/updated")] == expected
            talk.inbox.clear()
        server.disable(DIRECTORY)
        for uri in uris:
            server.changed(uri)
        await admin.settle()
        assert [params["uri"] for params in admin.heard("notifications/resources/updated")] == [FILE]


async def test_a_switched_off_file_gives_way_to_a_family(tmp_path: Path) -> None:
    server = with_files(tmp_path)
    server.add_resource("tree://{name}", lambda name: f"made {name}", name="made")
    async with session_talk(server, MODERN) as talk:
        server.disable(MEMBER)
        result = await talk.result("resources/read", {"uri": MEMBER})
        assert result["contents"][0]["text"] == "made a.txt"


@every_handshake
async def test_a_session_may_earn_what_it_sees(revision: str) -> None:
    """``ctx.state`` of handshake sessions decides, too; who changes it tells the client."""
    server = bare_server()
    server.add_tool(lambda: "secret", name="guarded", enabled=lambda ctx: ctx.state.get("in", False))

    @server.tool
    def login(ctx: Context) -> str:
        ctx.state["in"] = True
        server.changed("tools")
        return "welcome"

    async with session_talk(server, revision) as talk, session_talk(server, revision) as other:
        assert await listed(talk, "tools/list") == ["other", "login"]
        await talk.text("login")
        await talk.hear("notifications/tools/list_changed")
        assert await listed(talk, "tools/list") == ["other", "guarded", "login"]
        assert await talk.text("guarded") == "secret"
        assert await listed(other, "tools/list") == ["other", "login"]
