"""What callbacks hear, and that none of them can do harm."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from modelwire import Client, types
from modelwire.client import contact
from modelwire.rpc import bounds
from tests.clock import Clock
from tests.fake_server import INFO, REVISIONS, alive, fake_server, talking


@pytest.mark.parametrize("revision", REVISIONS)
async def test_log_messages_arrive_typed_and_in_order(revision: str) -> None:
    heard: list[types.LoggingMessageNotificationParams] = []
    async with talking(revision, on_log=heard.append) as (_, fake):
        await fake.notify("notifications/message", {"level": "info", "data": {"a": [1]}, "logger": "db"})
        await fake.notify("notifications/message", {"level": "error", "data": None})
        await Clock().turn()
        assert [(note.level, note.data, note.logger) for note in heard] == [
            ("info", {"a": [1]}, "db"),
            ("error", None, None),
        ]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_notification_is_heard_with_its_params(revision: str) -> None:
    heard: list[tuple[str, dict[str, Any]]] = []
    async with talking(revision, on_notification=lambda *told: heard.append(told)) as (_, fake):
        await fake.notify("notifications/tools/list_changed")
        await fake.notify("acme/happened", {"a": 1})
        await fake.notify("notifications/cancelled", {"requestId": 99})
        await Clock().turn()
        assert heard == [
            ("notifications/tools/list_changed", {}),
            ("acme/happened", {"a": 1}),
            ("notifications/cancelled", {"requestId": 99}),
        ]


MALFORMED_LOGS: list[Any] = [
    None, {}, [], {"level": "loud", "data": 1}, {"level": "info"}, {"level": 5, "data": 1},
    {"level": "info", "data": 1, "logger": 5},
]  # fmt: skip


@pytest.mark.parametrize("params", MALFORMED_LOGS, ids=str)
async def test_a_malformed_log_message_is_dropped_with_a_warning(params: Any, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Any] = []
    async with talking(on_log=heard.append) as (_, fake):
        await fake.notify("notifications/message", params)
        await fake.notify("notifications/message", {"level": "info", "data": "fine"})
        await Clock().turn()
        assert [note.data for note in heard] == ["fine"]
    assert "a malformed notifications/message was dropped" in caplog.text
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_params_that_are_no_object_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Any] = []
    async with talking(on_notification=lambda *told: heard.append(told)) as (_, fake):
        await fake.notify("acme/happened", [1, 2])
        await fake.send(b'{"jsonrpc":"2.0","method":"acme/happened","params":{"a":1e999}}')
        await fake.notify("acme/happened", {"a": 2})
        await Clock().turn()
        assert heard == [("acme/happened", {"a": 2})]
    assert "a malformed acme/happened was dropped" in caplog.text


async def test_callbacks_may_be_async() -> None:
    heard: list[Any] = []
    both = asyncio.Event()

    async def hear(*told: Any) -> None:
        await asyncio.sleep(0)
        heard.append(told)
        if len(heard) == 2:
            both.set()

    async with talking(on_log=hear, on_notification=hear) as (_, fake):
        await fake.notify("notifications/message", {"level": "info", "data": 1})
        await both.wait()


async def test_a_callback_that_fails_costs_neither_the_others_nor_the_conversation(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(note: Any) -> None:
        raise ZeroDivisionError

    async def fail_later(method: str, params: Any) -> None:
        raise LookupError

    async with talking(on_log=fail, on_notification=fail_later) as (client, fake):
        await fake.notify("notifications/message", {"level": "info", "data": 1})
        await fake.notify("notifications/message", {"level": "info", "data": 2})
        call = asyncio.create_task(client.call("t"))
        await fake.result(await fake.expect("tools/call"), {"content": []})
        await call
    kinds = [record.exc_info[0] for record in caplog.records if record.exc_info is not None]
    assert kinds == [ZeroDivisionError, ZeroDivisionError, LookupError, LookupError]


async def test_a_callback_may_list_again_when_it_hears_of_a_change() -> None:
    """It waits for a request of its own while others wait for theirs."""
    async with talking(on_notification=lambda method, params: relist(method)) as (client, fake):
        listed: list[str] = []

        async def relist(method: str) -> None:
            listed.extend(tool.name for tool in await client.list_tools())

        call = asyncio.create_task(client.call("t"))
        calling = await fake.expect("tools/call")
        await fake.notify("notifications/tools/list_changed")
        await fake.notify("tools/list")
        listings = [await fake.expect("tools/list") for _ in range(2)]
        await fake.result(calling, {"content": []})
        await call
        for listing in listings:
            await fake.result(listing, {"tools": [{"name": "x", "inputSchema": {"type": "object"}}]})
        await Clock().turn()
        assert listed == ["x", "x"]


async def test_async_callbacks_hear_what_comes_right_after_the_opening() -> None:
    heard: list[Any] = []

    async def hear(note: types.LoggingMessageNotificationParams) -> None:
        heard.append(note.data)

    async with talking(on_log=hear, revision="2025-11-25") as (_, fake):
        await fake.notify("notifications/message", {"level": "info", "data": "late"})
        await Clock().turn()
    assert heard == ["late"]


async def test_async_callbacks_hear_what_comes_before_and_with_the_opening() -> None:
    heard: list[Any] = []

    async def hear(note: types.LoggingMessageNotificationParams) -> None:
        heard.append(note.data)

    async with fake_server() as fake:
        client = Client(fake.stream, revision="2025-11-25", on_log=hear)
        opening = asyncio.create_task(client.connect())
        request = await fake.expect("initialize")
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": INFO}
        await fake.notify("notifications/message", {"level": "info", "data": "before"})
        await fake.result(request, hello)
        await fake.notify("notifications/message", {"level": "info", "data": "with it"})
        await opening
        await client.close()
    assert heard == ["before", "with it"]


async def test_callbacks_that_still_run_at_the_end_get_a_moment_and_are_then_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contact, "CALLBACK_SECONDS", 0.05)
    outcomes: list[str] = []

    async def hear(note: types.LoggingMessageNotificationParams) -> None:
        try:
            await asyncio.sleep(note.data)
            outcomes.append("finished")
        except asyncio.CancelledError:
            outcomes.append("cancelled")
            raise

    async with talking(on_log=hear) as (client, fake):
        for seconds in (0, 1000):
            await fake.notify("notifications/message", {"level": "info", "data": seconds})
        await Clock().turn()
        await client.close()
        assert outcomes == ["finished", "cancelled"]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_server_that_tells_without_end_fills_no_memory(
    revision: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(bounds, "MAX_CALLBACKS", 10)
    gate = asyncio.Event()
    heard: list[str] = []

    async def slowly(method: str, params: dict[str, Any]) -> None:
        heard.append(method)
        await gate.wait()

    async with talking(revision, on_notification=slowly) as (client, fake):
        for _ in range(50):
            await fake.notify("acme/happened", {"a": 1})
        await Clock().turn()
        assert heard == ["acme/happened"] * 10
        await alive(client, fake)
        gate.set()
        await Clock().turn()
        await fake.notify("acme/again")
        await Clock().turn()
        assert heard[10:] == ["acme/again"]
    assert "was not handed on: too many callbacks" in caplog.text
