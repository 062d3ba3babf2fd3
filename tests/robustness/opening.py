"""Connections that are open already: a client against a stream whose other end is the test, and frames that open."""

from __future__ import annotations

from typing import Any

from modelwire import Client
from tests.robustness.fed_stream import FedStream
from tests.robustness.malformed import PER_REQUEST
from tests.robustness.turning import TurnedLoop

ASKED = ("sampling/createMessage", "elicitation/create", "roots/list")
"""What a server may ask, and the client answers."""

SERVER_CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "logging": {},
}


def initialize(version: Any, id_: Any = "opening") -> dict[str, Any]:
    """Return the request that opens a session."""
    info = {"name": "tester", "version": "1"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
    return {"jsonrpc": "2.0", "id": id_, "method": "initialize", "params": params}


def opening_result(method: str, revision: str) -> dict[str, Any]:
    """Return what a server of a revision answers to ``initialize`` or ``server/discover``."""
    if method == "initialize":
        info = {"name": "s", "version": "1"}
        return {"protocolVersion": revision, "capabilities": SERVER_CAPABILITIES, "serverInfo": info}
    return {
        "resultType": "complete",
        "supportedVersions": [revision],
        "capabilities": SERVER_CAPABILITIES,
        "ttlMs": 0,
        "cacheScope": "private",
    }


def new_client(stream: FedStream, revision: str | None, **options: Any) -> Client:
    """Return a client that answers whatever a server may ask."""
    return Client(
        stream,
        revision=revision,
        on_elicit=lambda question: False,
        on_elicit_url=lambda question: True,
        on_sample=lambda question: "words",
        roots=["/home"],
        on_log=lambda message: None,
        on_notification=lambda method, params: None,
        **options,
    )


def connect(loop: TurnedLoop, revision: str, max_message: int = 1 << 20) -> tuple[Client, FedStream]:
    """Connect a client to a stream, the test being the server."""
    stream = FedStream(max_message)
    client = new_client(stream, revision)
    connecting = loop.start(client.connect())
    [asked] = stream.sent()
    assert asked["method"] == ("server/discover" if revision == PER_REQUEST else "initialize")
    stream.say({"jsonrpc": "2.0", "id": asked["id"], "result": opening_result(asked["method"], revision)})
    loop.finish(connecting)
    stream.sent()
    return client, stream
