"""Events of what changes, in a plain for loop."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from modelwire import ConfigError, ConnectionLost, GroupEvent, ResourceUpdated, Server, ToolsChanged
from modelwire.sync import Client, Group
from tests.fake_server import child


def news() -> Server:
    server = Server("news", declare=["tools", "resources"])
    server.add_resource("a:1", lambda: "x", name="x")
    return server


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_events_come_one_by_one(revision: str) -> None:
    server = news()
    with Client(server, revision=revision) as client, client.listen(tools=True, uris=["a:1"]) as events:
        assert events.honoured.tools_list_changed
        server.add_tool(lambda: "x", name="x")
        server.changed("a:1")
        assert {next(events), next(events)} == {ToolsChanged(), ResourceUpdated("a:1")}


@pytest.mark.parametrize("how", ["block", "client"])
def test_another_thread_ends_the_iteration(how: str) -> None:
    with Client(news()) as client, client.listen(tools=True) as events, ThreadPoolExecutor(1) as pool:
        heard = pool.submit(list, events)
        (events if how == "block" else client).close()
        assert heard.result(10) == []


def test_a_connection_that_breaks_ends_it_with_the_error() -> None:
    server = child("opened(); sys.stdin.readline(); sys.exit(3)")
    with Client(server, reconnect=False) as client, client.listen(tools=True) as events:
        client.notify("com.example/go")
        with pytest.raises(ConnectionLost, match="code 3"):
            list(events)


def test_a_listening_is_a_block() -> None:
    with Client(news()) as client:
        with pytest.raises(ConfigError, match="a listening is a `with` block"):
            list(client.listen(tools=True))
        with pytest.raises(ConfigError, match="asked for nothing"):
            client.listen()


def test_a_group_tells_whose_event_it_is() -> None:
    one, other = news(), news()
    with Group({"a": one, "b": other}) as group, group.listen(tools=True) as changes:
        other.add_tool(lambda: "x", name="x")
        assert next(changes) == GroupEvent("b", ToolsChanged())
