"""What the log says of a handler that failed."""

from __future__ import annotations

import logging

import pytest

from modelwire import Client, ResourceNotFound, Server


def _traceback(caplog: pytest.LogCaptureFixture) -> str:
    [record] = [record for record in caplog.records if record.exc_info]
    assert record.exc_info is not None
    return logging.Formatter().formatException(record.exc_info)


@pytest.mark.parametrize("inline", [False, True])
async def test_the_traceback_begins_with_the_users_own_function(caplog: pytest.LogCaptureFixture, inline: bool) -> None:
    server = Server("s")

    @server.tool(inline=inline)
    def broken() -> str:
        raise ZeroDivisionError("by zero")

    async with Client(server) as client:
        result = await client.call_tool("broken")
    assert result.is_error
    text = _traceback(caplog)
    assert text.splitlines()[1].strip().endswith("in broken")
    assert "modelwire/server" not in text


async def test_frames_of_ours_that_the_users_function_entered_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("s")

    @server.tool
    async def nested() -> str:
        server.remove_tool("no such tool")
        return "never"

    async with Client(server) as client:
        await client.call_tool("nested")
    lines = _traceback(caplog).splitlines()
    assert lines[1].strip().endswith("in nested")
    assert "remove_tool" in "".join(lines)


async def test_a_handler_that_raises_what_clients_receive_is_told_what_to_raise(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server("s")

    @server.resource("x://r")
    def missing() -> str:
        raise ResourceNotFound(-32002, "no such thing")

    async with Client(server) as client:
        with pytest.raises(Exception, match="failed unexpectedly"):
            await client.read_resource("x://r")
    assert "a handler raises ToolError, NotFound or RpcError" in caplog.text
