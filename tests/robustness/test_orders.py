"""Orders of messages that the state machines found to go wrong, each by itself."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from modelwire import ProtocolViolation, Server
from tests.robustness.fed_stream import FedStream
from tests.robustness.opening import connect, initialize
from tests.robustness.turning import TurnedLoop

PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
BLOCKED = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "block"}}
CANCEL = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
TOOLS_CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


def blocking_server() -> Server:
    server = Server("blocking")

    @server.tool
    async def block() -> None:
        await asyncio.get_running_loop().create_future()

    return server


def serve(loop: TurnedLoop, server: Server, revision: str) -> FedStream:
    stream = FedStream()
    loop.start(server.serve(stream))
    stream.say(initialize(revision))
    loop.idle()
    stream.sent()
    return stream


def test_a_batch_that_cancels_its_own_request_is_answered_without_it() -> None:
    with TurnedLoop() as loop:
        stream = serve(loop, blocking_server(), "2025-03-26")
        stream.say([BLOCKED, PING, CANCEL])
        loop.idle()
        assert stream.sent() == [[{"jsonrpc": "2.0", "id": 2, "result": {}}]]
        stream.say([BLOCKED, CANCEL])
        loop.idle()
        assert stream.sent() == []
        stream.hang_up()
        loop.idle()


def test_a_batch_and_a_cancellation_in_one_read_leave_nothing_running() -> None:
    with TurnedLoop() as loop:
        stream = serve(loop, blocking_server(), "2025-03-26")
        stream.say([BLOCKED, PING], CANCEL)
        loop.idle()
        assert stream.sent() == [[{"jsonrpc": "2.0", "id": 2, "result": {}}]]
        stream.hang_up()
        loop.idle()


def test_a_session_handles_a_batch_that_cancels_its_own_request() -> None:
    with TurnedLoop() as loop:
        session = blocking_server().session()

        def handled(message: Any) -> bytes | None:
            return loop.finish(session.handle(json.dumps(message).encode()), within=0)

        handled(initialize("2025-03-26"))
        assert json.loads(handled([BLOCKED, PING, CANCEL]) or b"") == [{"jsonrpc": "2.0", "id": 2, "result": {}}]
        assert handled([BLOCKED, CANCEL]) is None
        loop.finish(session.aclose())


def test_a_client_that_never_says_initialized_is_told_what_changed_once_it_asks_for_anything() -> None:
    with TurnedLoop() as loop:
        server = blocking_server()
        stream = serve(loop, server, "2025-11-25")
        server.changed("tools")
        loop.idle()
        assert stream.sent() == []
        stream.say({"jsonrpc": "2.0", "id": 3, "method": "prompts/list"})
        loop.idle()
        assert stream.sent()[1:] == [TOOLS_CHANGED]
        stream.hang_up()
        loop.idle()


def test_nothing_is_told_between_a_new_initialize_and_its_initialized() -> None:
    with TurnedLoop() as loop:
        server = blocking_server()
        stream = serve(loop, server, "2025-11-25")
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        stream.say(initialized, initialize("2025-06-18", "again"))
        loop.idle()
        server.changed("tools")
        loop.idle()
        assert [message["id"] for message in stream.sent()] == ["again"]
        stream.say(initialized)
        loop.idle()
        assert stream.sent() == [TOOLS_CHANGED]
        stream.hang_up()
        loop.idle()


def test_a_malformed_request_of_a_server_is_refused_and_costs_no_call_of_the_same_id() -> None:
    with TurnedLoop() as loop:
        client, stream = connect(loop, "2025-11-25")
        call = loop.start(client.request("acme/x"))
        id_ = stream.sent()[0]["id"]
        stream.say({"jsonrpc": "2.0", "id": id_, "method": "roots/list", "params": 7})
        loop.idle()
        assert [(answer["id"], answer["error"]["code"]) for answer in stream.sent()] == [(id_, -32600)]
        assert not call.done()
        stream.say({"jsonrpc": "2.0", "id": id_, "result": {"still": "here"}})
        assert loop.finish(call) == {"still": "here"}
        loop.finish(client.close())


def test_an_answer_that_is_also_a_request_fails_its_call() -> None:
    with TurnedLoop() as loop:
        client, stream = connect(loop, "2025-11-25")
        call = loop.start(client.request("acme/x"))
        stream.say({"jsonrpc": "2.0", "id": stream.sent()[0]["id"], "method": "roots/list", "result": {}})
        loop.idle()
        assert isinstance(call.exception(), ProtocolViolation)
        loop.finish(client.close())
