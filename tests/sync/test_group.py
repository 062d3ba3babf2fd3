"""Several servers as one client that waits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from modelwire import ConfigError, ConnectionFailed, ModelwireError
from modelwire.sync import Client, Group
from tests.client.test_group import files, weather
from tests.fake_server import child


def test_a_group_is_used_without_await() -> None:
    with Group({"weather": weather(), "files": files()}) as group:
        assert group.connected
        assert [tool.name for tool in group.list_tools()][1] == "weather__forecast"
        assert group.call("weather__forecast", {"city": "Oslo"}, returns=list[str]) == ["sun over Oslo"]
        assert group.call_tool("files__read", {"path": "x"}).is_error is None
        assert group.origin("files__read") == ("files", "read")
        assert len(group.list_prompts()) == 2
        assert len(group.list_resources()) == 1
        assert len(group.list_resource_templates()) == 2
        assert group.read_resource("file:///x").contents[0].uri == "file:///x"
        assert group.get_prompt("files__review").messages
        assert group.complete("weather__pack", "city", "O").values == ["Oslo"]
        assert group.clients["weather"].call("a__b") == "weather's a__b"
        assert group.clients["weather"] is group.clients["weather"]
        group.add("more", files())
        assert group.call("more__read", {"path": "x"}) == "content of x"
        group.remove("more")
        with pytest.raises(ConfigError, match="no server of the group has a tool 'more__read'"):
            group.call("more__read")
    assert not group.connected


def test_clients_that_wait_may_be_servers_of_a_group() -> None:
    mine, added = Client(weather()), Client(files())
    with mine:
        with Group({"mine": mine}) as group:
            group.add("added", added)
            assert group.clients == {"mine": mine, "added": added}
            assert group.call("added__read", {"path": "x"}) == "content of x"
            assert added.connected
        assert (mine.connected, added.connected) == (True, False)


def test_settings_are_those_of_the_function_that_makes_clients() -> None:
    def make(name: str, target: Any) -> Client:
        return Client(target, timeout=7)

    with Group({"weather": weather()}, client=make) as group:
        assert group.clients["weather"].timeout == 7


def test_failures_are_reported(tmp_path: Path) -> None:
    command, *args = child("opened(); serve()")
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"good": {"command": command, "args": args}, "bad": {}}}))
    told: list[tuple[str, ModelwireError]] = []
    with Group(config, on_failure=lambda server, error: told.append((server, error))) as group:
        assert group.call("good__x") == "done"
        assert dict(told) == group.failures
        assert list(group.failures) == ["bad"]
    with pytest.raises(ConnectionFailed, match="the group could not be opened: 'bad'"):
        Group(config, strict=True).connect()
