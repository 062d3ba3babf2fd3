"""Names: the nearest one to a misspelt one, and the log's word on names of tools that some clients refuse."""

from __future__ import annotations

import logging

import pytest

from modelwire import Client, Server
from modelwire import types as t
from modelwire.server.names import did_you_mean, nearest


def test_the_nearest_name() -> None:
    assert nearest("forcast", ["forecast", "broadcast"]) == "forecast"
    assert nearest("x", ["forecast"]) is None
    assert nearest("a" * 100_000, ["a" * 100_000]) is None  # comparing costs too much
    assert did_you_mean("forcast", ["forecast"]) == "; did you mean 'forecast'?"
    assert did_you_mean("x", []) == ""


@pytest.mark.parametrize("name", ["getUser", "DATA_EXPORT_v2", "admin.tools.list", "a", "0", "a-b", "_", "n" * 128])
def test_names_that_the_specification_recommends_are_no_matter(name: str, caplog: pytest.LogCaptureFixture) -> None:
    Server("s").add_tool(lambda: "", name=name)
    assert caplog.records == []


@pytest.mark.parametrize("name", ["get user", "a,b", "tool/x", "größe", "天气", "a:b", "a\nb", "n" * 129, "", "a@b"])
async def test_other_names_are_told_to_the_log_once_and_work(name: str, caplog: pytest.LogCaptureFixture) -> None:
    server = Server("s")
    server.add_tool(t.Tool(name, {"type": "object"}), lambda: "ok", inline=True)
    if name:
        server.remove_tool(name)
        server.add_tool(lambda: "ok", name=name)
    (first, *rest) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "some clients refuse names" in first.getMessage()
    assert len(rest) == bool(name)
    caplog.clear()
    async with Client(server) as client:
        assert [tool.name for tool in await client.list_tools()] == [name]
        assert await client.call(name) == "ok"
    assert caplog.records == []


def test_a_function_of_such_a_name_is_told_when_it_is_registered(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("s")

    @server.tool
    def größe(x: int) -> int:
        return x

    assert "tool 'größe': some clients refuse" in caplog.text
    server.add_prompt(größe, name="a prompt may be called anything")
    assert len(caplog.records) == 1
