"""Handlers that ask inside a task group: what a task fails with is told as if the handler itself had failed with it."""

from __future__ import annotations

import asyncio
import logging

import pytest

from modelwire import Context, Declined, PeerError, RpcError, Server, ToolError
from modelwire.server.spoken import spoken
from tests.server.persons import MODERN, accepting, person


def test_the_first_error_of_a_group_speaks_where_all_are_meant_for_the_client() -> None:
    first, second = Declined("no"), RpcError(-32602, "bad")
    assert spoken(ExceptionGroup("g", [ExceptionGroup("g", [first]), second])) is first
    assert spoken(first) is first


@pytest.mark.parametrize("other", [ValueError("x"), PeerError(-32603, "another server's"), SystemExit(1)])
def test_a_crash_in_a_group_is_one(other: BaseException) -> None:
    group = BaseExceptionGroup("g", [ToolError("no"), other])
    assert spoken(group) is group


async def test_questions_in_a_task_group_fail_as_elsewhere(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("s")

    async def both(ctx: Context) -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.elicit("Go on?", key="on"))
            group.create_task(ctx.elicit("Really?", key="really"))
        return "never"

    server.add_tool(both)
    server.add_prompt(both)
    with caplog.at_level(logging.WARNING):
        async with person(server, MODERN, lambda method, params: {"action": "decline"}) as user:
            assert await user.problem("both") == "The user declined to answer: Go on?"
            prompt = await user.ask("prompts/get", {"name": "both"})
            assert prompt["error"]["message"] == "The user declined to answer: Go on?"
        async with person(server, MODERN, accepting(), {}) as user:
            for method in ("tools/call", "prompts/get"):
                assert (await user.ask(method, {"name": "both"}))["error"]["code"] == -32021
    assert not caplog.records
