"""What a server can be told to serve at, and what is said of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from modelwire import ConfigError, ConnectionFailed, Server
from modelwire.server.endpoints import OPENERS, opener_of
from modelwire.transports.memory import memory_pair


def test_every_opener_is_found_by_its_scheme() -> None:
    for scheme in OPENERS:
        assert opener_of(f"{scheme}:whatever") is OPENERS[scheme]


@pytest.mark.parametrize("endpoint", ["ftp://127.0.0.1:1", "nonsense", "", "TCP://h:1", 8000])
async def test_what_cannot_be_served_says_what_can(endpoint: Any) -> None:
    with pytest.raises(ConfigError, match="give http://HOST:PORT/PATH, ws://HOST:PORT/PATH, tcp://HOST:PORT or unix:/"):
        await Server("s").serve(endpoint)


@pytest.mark.parametrize(
    ("endpoint", "options", "why"),
    [
        ("tcp://127.0.0.1", {}, "the port is missing"),
        ("unix://x", {}, "three slashes"),
        ("tcp://127.0.0.1:0", {"max_connections": 0}, "max_connections is a number of connections, at least 1, not 0"),
        ("tcp://127.0.0.1:0", {"max_connections": True}, "max_connections is a number"),
        ("tcp://127.0.0.1:0", {"max_connections": 1.5}, "max_connections is a number"),
        ("tcp://127.0.0.1:0", {"heartbeat": 0}, "heartbeat is a number of seconds above 0"),
        ("tcp://127.0.0.1:0", {"heartbeat": -1}, "heartbeat is a number"),
        ("tcp://127.0.0.1:0", {"heartbeat": "5"}, "heartbeat is a number"),
        ("tcp://127.0.0.1:0", {"heartbeat": float("nan")}, "heartbeat is a number"),
        ("tcp://127.0.0.1:0", {"heartbeat": float("inf")}, "heartbeat is a number"),
        ("tcp://127.0.0.1:0", {"heart_beat": 5}, "serving knows no option 'heart_beat'; there are max_connections, "),
        (
            "tcp://127.0.0.1:0",
            {"health": "/up"},
            "health= does nothing for tcp:// and unix://; it has heartbeat, max_con",
        ),
        ("http://127.0.0.1:0", {"port": 80}, "no option 'port': scheme, host, port and path stand in the endpoint"),
        ("http://127.0.0.1:0", {"heartbeat": 5}, "heartbeat= does nothing for HTTP; it has allowed_hosts, "),
        ("http://127.0.0.1:0", {"max_connections": 0}, "max_connections is a number of connections, at least 1, not 0"),
        ("http://127.0.0.1:0", {"health": "up"}, "a path begins with a slash"),
        (None, {"heartbeat": 5}, "heartbeat= is for endpoints that have an address"),
        (memory_pair, {"max_connections": 5}, "max_connections= is for endpoints that have an address"),
    ],
)
async def test_an_option_that_makes_no_sense_is_refused(endpoint: Any, options: Any, why: str) -> None:
    server = Server("s")
    given = endpoint()[0] if callable(endpoint) else endpoint
    with pytest.raises(ConfigError, match=why):
        await server.serve(given, **options)
    with pytest.raises(ConfigError, match=why):
        async with server.serving(given, **options):
            pass


def test_run_refuses_the_same() -> None:
    with pytest.raises(ConfigError, match="the port is missing"):
        Server("s").run("tcp://127.0.0.1")
    with pytest.raises(ConnectionFailed, match="its folder does not exist"):
        Server("s").run("unix:///nowhere/at/all/mcp.sock")


async def test_a_stream_is_closed_though_its_serving_never_began() -> None:
    mine, theirs = memory_pair()
    async with Server("s").serving(theirs) as serving:
        assert serving.url is None
    assert await mine.receive() is None
