"""Whole lists: pages, odd cursors, bad items, and servers that have no such list."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from modelwire import Client, ProtocolViolation, ResourceNotFound
from modelwire.client import lists
from modelwire.errors import MethodNotFound
from tests.fake_server import MODERN, REVISIONS, FakeServer, talking

LISTS: list[tuple[str, str, Any, dict[str, Any]]] = [
    ("tools/list", "tools", Client.list_tools, {"name": "x", "inputSchema": {"type": "object"}}),
    ("resources/list", "resources", Client.list_resources, {"name": "x", "uri": "a:b"}),
    (
        "resources/templates/list", "resourceTemplates", Client.list_resource_templates,
        {"name": "x", "uriTemplate": "a:{b}"},
    ),
    ("prompts/list", "prompts", Client.list_prompts, {"name": "x"}),
]  # fmt: skip
EACH_LIST = pytest.mark.parametrize(("method", "field", "list_them", "item"), LISTS, ids=[row[0] for row in LISTS])


def page(field: str, *items: Any, **more: Any) -> dict[str, Any]:
    return {field: list(items), "ttlMs": 0, "cacheScope": "private", **more}


async def pages(fake: FakeServer, method: str, field: str, *cursors: Any) -> list[Any]:
    """Serve one page per cursor that is to come next, and a last one; return the cursors that were asked for."""
    asked: list[Any] = []
    for number, cursor in enumerate((*cursors, None)):
        request = await fake.expect(method)
        asked.append(request.get("params", {}).get("cursor", "absent"))
        item = {"name": f"n{number}", "inputSchema": {"type": "object"}, "uri": "a:b", "uriTemplate": "a:b"}
        await fake.result(request, page(field, item, **({} if cursor is None else {"nextCursor": cursor})))
    return asked


@EACH_LIST
@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_page_is_followed(
    revision: str, method: str, field: str, list_them: Any, item: dict[str, Any]
) -> None:
    async with talking(revision) as (client, fake):
        listing = asyncio.create_task(list_them(client))
        assert await pages(fake, method, field, "c1", "c2") == ["absent", "c1", "c2"]
        assert [found.name for found in await listing] == ["n0", "n1", "n2"]


@EACH_LIST
async def test_an_empty_cursor_is_a_cursor(method: str, field: str, list_them: Any, item: dict[str, Any]) -> None:
    async with talking() as (client, fake):
        listing = asyncio.create_task(list_them(client))
        assert await pages(fake, method, field, "", "c") == ["absent", "", "c"]
        assert len(await listing) == 3


async def test_a_cursor_of_null_is_the_end() -> None:
    async with talking() as (client, fake):
        listing = asyncio.create_task(client.list_prompts())
        await fake.result(await fake.expect("prompts/list"), page("prompts", {"name": "x"}, nextCursor=None))
        assert len(await listing) == 1


async def test_an_empty_page_in_the_middle_is_not_the_end() -> None:
    async with talking() as (client, fake):
        listing = asyncio.create_task(client.list_prompts())
        await fake.result(await fake.expect("prompts/list"), page("prompts", nextCursor="c"))
        await fake.result(await fake.expect("prompts/list"), page("prompts", {"name": "x"}))
        assert len(await listing) == 1


@EACH_LIST
@pytest.mark.parametrize("cursors", [("a", "b", "a"), ("c", "c", "c"), ("", "")], ids=str)
async def test_a_cursor_that_comes_again_is_a_cursor(
    cursors: tuple[str, ...], method: str, field: str, list_them: Any, item: dict[str, Any]
) -> None:
    async with talking() as (client, fake):
        listing = asyncio.create_task(list_them(client))
        assert await pages(fake, method, field, *cursors) == ["absent", *cursors]
        assert len(await listing) == len(cursors) + 1


@pytest.mark.parametrize("same", [False, True])
async def test_a_list_without_an_end_is_an_error_that_says_what_to_do(
    same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "MAX_PAGES", 20)
    async with talking() as (client, fake):
        listing = asyncio.create_task(client.list_tools())
        for number in range(20):
            await fake.result(await fake.expect("tools/list"), page("tools", nextCursor="c" if same else str(number)))
        with pytest.raises(ProtocolViolation, match=r"more than 20 pages; ask page by page with client\.request"):
            await listing
        assert fake.inbox == []


async def test_the_library_gives_up_after_a_thousand_pages() -> None:
    asked = 0

    class Page:
        prompts: list[Any] = []  # noqa: RUF012

        def __init__(self, number: int) -> None:
            self.next_cursor = str(number)

    async def fetch(cursor: str | None) -> Page:
        nonlocal asked
        asked += 1
        return Page(asked)

    with pytest.raises(ProtocolViolation):
        await lists.all_pages("prompts/list", "prompts", fetch)
    assert asked == 1000


async def test_a_method_that_is_unknown_later_on_keeps_what_came_before() -> None:
    class Page:
        prompts: list[Any] = ["x"]  # noqa: RUF012
        next_cursor = "c"

    async def fetch(cursor: str | None) -> Page:
        if cursor is not None:
            raise MethodNotFound(-32601, "no")
        return Page()

    assert await lists.all_pages("prompts/list", "prompts", fetch) == ["x"]


# --------------------------------------------------------------------------------------------------- no such list


@EACH_LIST
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_list_that_the_server_does_not_declare_is_empty_and_not_asked_for(
    revision: str, method: str, field: str, list_them: Any, item: dict[str, Any]
) -> None:
    async with talking(revision, {"logging": {}}) as (client, fake):
        assert await list_them(client) == []
        assert fake.inbox == []


@EACH_LIST
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_list_that_the_server_declares_and_does_not_know_is_empty(
    revision: str, method: str, field: str, list_them: Any, item: dict[str, Any]
) -> None:
    async with talking(revision) as (client, fake):
        listing = asyncio.create_task(list_them(client))
        await fake.error(await fake.expect(method), -32601)
        assert await listing == []


async def test_any_other_error_to_a_list_is_the_servers_error() -> None:
    async with talking() as (client, fake):
        listing = asyncio.create_task(client.list_resources())
        await fake.error(await fake.expect("resources/list"), -32002, "gone")
        with pytest.raises(ResourceNotFound):
            await listing


# --------------------------------------------------------------------------------------------------- bad items

BAD_TOOLS: dict[str, Any] = {
    "input schema null": {"name": "bad", "inputSchema": None},
    "no input schema": {"name": "bad"},
    "input schema of anything": {"name": "bad", "inputSchema": {"anyOf": [{"type": "object"}, {"type": "null"}]}},
    "input schema true": {"name": "bad", "inputSchema": True},
    "no name": {"inputSchema": {"type": "object"}},
    "name that is a number": {"name": 5, "inputSchema": {"type": "object"}},
    "no object": "bad",
    "null": None,
}


@pytest.mark.parametrize("bad", BAD_TOOLS.values(), ids=BAD_TOOLS)
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", MODERN])
async def test_a_bad_tool_is_skipped_with_a_warning_and_the_good_ones_stay(
    revision: str, bad: Any, caplog: pytest.LogCaptureFixture
) -> None:
    good = {"name": "good", "inputSchema": {"type": "object", "properties": {"x": True, "y": False}}, "later": [1]}
    async with talking(revision) as (client, fake):
        listing = asyncio.create_task(client.list_tools())
        await fake.result(await fake.expect("tools/list"), page("tools", good, bad, good))
        tools = await listing
        assert [tool.name for tool in tools] == ["good", "good"]
        assert tools[0].input_schema["properties"] == {"x": True, "y": False}
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "tools[1]" in warnings[0]


@EACH_LIST
async def test_a_bad_item_costs_only_itself(method: str, field: str, list_them: Any, item: dict[str, Any]) -> None:
    async with talking() as (client, fake):
        listing = asyncio.create_task(list_them(client))
        await fake.result(await fake.expect(method), page(field, item, {"bad": 1}, 7, item))
        assert [found.name for found in await listing] == ["x", "x"]


@pytest.mark.parametrize("result", [{}, {"tools": None}, {"tools": {}}, {"tools": [], "nextCursor": 5}], ids=str)
async def test_a_page_that_is_no_page_is_a_violation(result: Any) -> None:
    async with talking() as (client, fake):
        listing = asyncio.create_task(client.list_tools())
        await fake.result(await fake.expect("tools/list"), result)
        with pytest.raises(ProtocolViolation, match="the answer to tools/list is invalid"):
            await listing
