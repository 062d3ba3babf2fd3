"""Lists over the wire: their order, their pages, and what a cursor is worth while items come and go."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from modelwire import ConfigError, Server
from tests.wire import Talk, every_revision, session_talk

KINDS = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}
each_list = pytest.mark.parametrize("method", KINDS)


def add(server: Server, method: str, name: str) -> str:
    """Add one item to a list; return its key there."""
    if method == "tools/list":
        server.add_tool(lambda: name, name=name)
    elif method == "prompts/list":
        server.add_prompt(lambda: name, name=name)
    elif method == "resources/list":
        server.add_resource(f"file:///{name}", lambda: name, name=name)
        return f"file:///{name}"
    else:
        server.add_resource(f"{name}://{{x}}", lambda x: x, name=name)
        return f"{name}://{{x}}"
    return name


def remove(server: Server, method: str, key: str) -> None:
    if method == "tools/list":
        server.remove_tool(key)
    elif method == "prompts/list":
        server.remove_prompt(key)
    else:
        server.remove_resource(key)


def filled(method: str, names: list[str], **options: Any) -> tuple[Server, list[str]]:
    server = Server("lists", **options)
    return server, [add(server, method, name) for name in names]


async def page(talk: Talk, method: str, cursor: str | None = None) -> tuple[list[str], str | None]:
    result = await talk.result(method, {} if cursor is None else {"cursor": cursor})
    field, key = KINDS[method]
    return [item[key] for item in result[field]], result.get("nextCursor")


async def pages(talk: Talk, method: str) -> list[list[str]]:
    found, cursor = [], None
    while True:
        items, cursor = await page(talk, method, cursor)
        found.append(items)
        if cursor is None:
            return found


@each_list
@every_revision
async def test_lists_are_in_the_order_of_registration_every_time(revision: str, method: str) -> None:
    names = ["zeta", "alpha", "Mid", "beta", "a-1", "a-0"]
    server, keys = filled(method, names)
    async with session_talk(server, revision) as talk, session_talk(server, revision) as other:
        for _ in range(3):
            assert await pages(talk, method) == [keys]
        assert await pages(other, method) == [keys]


@pytest.mark.parametrize(
    ("count", "size", "expected"),
    [(0, 2, [0]), (1, 2, [1]), (2, 2, [2]), (3, 2, [2, 1]), (4, 2, [2, 2]), (5, 1, [1] * 5), (3, 1000, [3])],
)
@each_list
async def test_pages_have_the_size_asked_for_and_the_last_has_no_cursor(
    method: str, count: int, size: int, expected: list[int]
) -> None:
    server, keys = filled(
        method, [f"n{index}" for index in range(count)], page_size=size, declare=["tools", "prompts", "resources"]
    )
    async with session_talk(server, "2025-11-25") as talk:
        found = await pages(talk, method)
    assert [len(items) for items in found] == expected
    assert [item for items in found for item in items] == keys


@each_list
@every_revision
async def test_without_a_page_size_a_list_is_whole(revision: str, method: str) -> None:
    server, keys = filled(method, [f"n{index}" for index in range(300)])
    async with session_talk(server, revision) as talk:
        assert await page(talk, method) == (keys, None)


@pytest.mark.parametrize("size", [0, -1])
def test_a_page_size_below_one_is_refused(size: int) -> None:
    with pytest.raises(ConfigError, match="page_size"):
        Server("s", page_size=size)


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "0",
        "1",
        "2",
        "-1",
        "null",
        "not ours",
        "eyJwYWdlIjogMn0=",
        "\u0000",
        "日本",
        "1e3",
        " ",
        "x" * 100_000,
        "999999999999999999999",
    ],
    ids=lambda cursor: repr(cursor)[:20],
)
@each_list
@every_revision
async def test_a_cursor_that_is_not_ours_is_invalid_params(revision: str, method: str, cursor: str) -> None:
    server, _ = filled(method, ["a", "b", "c", "d"], page_size=2)
    async with session_talk(server, revision) as talk:
        assert (await talk.error(method, {"cursor": cursor}))["code"] == -32602
        assert len(await pages(talk, method)) == 2


@each_list
async def test_a_cursor_of_another_list_or_tampered_with_is_invalid_params(method: str) -> None:
    server, _ = filled(method, ["a", "b", "c", "d"], page_size=2)
    other = next(one for one in KINDS if one != method)
    for name in ("a", "b", "c", "d"):
        add(server, other, name)
    async with session_talk(server, "2025-11-25") as talk:
        _, cursor = await page(talk, method)
        assert cursor is not None
        assert (await talk.error(other, {"cursor": cursor}))["code"] == -32602
        for tampered in (cursor + "A", cursor[:-1], cursor.swapcase(), base64.b64encode(cursor.encode()).decode()):
            assert (await talk.error(method, {"cursor": tampered}))["code"] == -32602
        assert (await page(talk, method, cursor))[1] is None


async def test_a_cursor_holds_on_another_connection_of_the_same_server() -> None:
    server, keys = filled("tools/list", ["a", "b", "c"], page_size=2)
    async with session_talk(server, "2025-11-25") as one, session_talk(server, "2026-07-28") as other:
        _, cursor = await page(one, "tools/list")
        assert await page(other, "tools/list", cursor) == (keys[2:], None)


@each_list
async def test_what_stays_is_listed_once_while_others_come_and_go(method: str) -> None:
    server, keys = filled(method, ["a", "b", "c", "d", "e", "f"], page_size=2)
    async with session_talk(server, "2025-11-25") as talk:
        first, cursor = await page(talk, method)
        remove(server, method, keys[0])  # of a page already seen
        remove(server, method, keys[1])  # the last of the page: what the cursor points behind
        remove(server, method, keys[3])  # of a page to come
        late = add(server, method, "late")
        found = [first]
        while cursor is not None:
            items, cursor = await page(talk, method, cursor)
            found.append(items)
        assert [item for items in found for item in items] == [keys[0], keys[1], keys[2], keys[4], keys[5], late]


@each_list
async def test_an_item_that_returns_goes_to_the_end(method: str) -> None:
    server, keys = filled(method, ["a", "b", "c"])
    async with session_talk(server, "2025-11-25") as talk:
        remove(server, method, keys[0])
        add(server, method, "a")
        assert await pages(talk, method) == [[keys[1], keys[2], keys[0]]]


@each_list
async def test_an_empty_registry_answers_an_empty_list(method: str) -> None:
    server = Server("empty", declare=["tools", "prompts", "resources"])
    async with session_talk(server, "2025-11-25") as talk:
        assert await page(talk, method) == ([], None)


@each_list
@every_revision
async def test_a_list_that_nothing_was_ever_registered_for_does_not_exist(revision: str, method: str) -> None:
    async with session_talk(Server("nothing"), revision) as talk:
        answer = await talk.request(method)
        assert "result" in answer or answer["error"]["code"] == -32601


@each_list
async def test_one_item_that_a_revision_cannot_have_does_not_cost_the_others(method: str) -> None:
    server, keys = filled(method, ["a"])

    async def structured() -> list[int]:
        return [1]

    server.add_tool(structured, meta={"com.example/x": 1})
    async with session_talk(server, "2024-11-05") as talk:
        assert keys[0] in (await page(talk, method))[0]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"title": "\ud800"}, "title holds half of a surrogate pair"),
        ({"description": "\udcff"}, "description holds half of a surrogate pair"),
        ({"meta": {"com.example/k": float("nan")}}, "is nan, which JSON cannot say"),
        ({"meta": {"com.example/k": object()}}, "cannot be written as JSON"),
    ],
)
async def test_an_item_that_no_list_could_say_is_refused_and_harms_no_other(more: dict[str, Any], words: str) -> None:
    def echo(x: str) -> str:
        return x

    server = Server("s")
    server.add_tool(lambda: 1, name="good")
    with pytest.raises(ConfigError, match=f"^tool 'bad': .*{words}"):
        server.add_tool(lambda: 1, name="bad", **more)
    with pytest.raises(ConfigError, match=f"^prompt 'bad': .*{words}"):
        server.add_prompt(lambda: "", name="bad", **more)
    with pytest.raises(ConfigError, match=f"^resource 'a:b': .*{words}"):
        server.add_resource("a:b", lambda: "", name="bad", **more)
    with pytest.raises(ConfigError, match=f"^resource template 'a:{{x}}': .*{words}"):
        server.add_resource("a:{x}", echo, name="bad", **more)
    async with session_talk(server, "2025-11-25") as talk:
        assert [tool["name"] for tool in (await talk.result("tools/list"))["tools"]] == ["good"]
