"""Every method and notification of every revision, with parameters near the border of what is right.

A request is answered exactly once, with a result or an error that the specification has for it; a notification never.
Nothing that a peer writes into parameters is an internal error.
"""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwire import Server
from modelwire.protocol.methods import METHODS
from tests.robustness.fed_stream import FedStream
from tests.robustness.malformed import PER_REQUEST, VERSION_KEY, depth_of, params_of
from tests.robustness.opening import connect, initialize
from tests.robustness.rich_server import OWN_METHOD, expected_failure, rich_server
from tests.robustness.turning import TurnedLoop
from tests.spec import REVISION_NAMES, needs_spec, validate_message

pytestmark = [needs_spec, pytest.mark.slow]

REQUESTS = sorted([*(name for name, row in METHODS.items() if not row.notification), "shutdown", OWN_METHOD, "acme/no"])
NOTIFICATIONS = sorted([*(name for name, row in METHODS.items() if row.notification), "initialized", "acme/no"])
MAX_DEPTH = 255  # of 256, since the frame around the params counts


@functools.cache
def server() -> Server:
    return rich_server()


def serve(loop: TurnedLoop, revision: str) -> FedStream:
    """Serve a new stream, and open it where the revision wants it opened."""
    stream = FedStream()
    loop.start(server().serve(stream))
    if revision != PER_REQUEST:
        stream.say(initialize(revision), {"jsonrpc": "2.0", "method": "notifications/initialized"})
        loop.idle()
        assert stream.sent()[0]["result"]["protocolVersion"] == revision
    return stream


def answered_under(session: str, params: Any) -> str:
    """Return the revision that the answer to a request must be written in.

    Without a handshake, and without saying otherwise, a client counts as one of the last handshake revision.
    """
    meta = params.get("_meta") if isinstance(params, dict) else None
    if isinstance(meta, dict) and isinstance(meta.get(VERSION_KEY), str):
        return PER_REQUEST
    return "2025-11-25" if session == PER_REQUEST else session


def allowed_codes(method: str, revision: str, params: Any) -> set[int]:
    codes = {-32600, -32601, -32602}
    if revision == PER_REQUEST:
        codes |= {-32021, -32022}
    elif method == "resources/read":
        codes.add(-32002)
    if method == "tools/call":
        codes.add(1234)  # the tool "refuse"
    return codes | {-32700} if depth_of(params) > MAX_DEPTH else codes


def check_answer(answer: dict[str, Any], method: str, session: str, params: Any) -> None:
    revision = answered_under(session, params)
    if method == "initialize" and "result" in answer:
        revision = answer["result"]["protocolVersion"]
    assert validate_message(revision, "server", answer, method) == []
    if "error" in answer:
        assert answer["error"]["code"] in allowed_codes(method, revision, params), answer


def request(id_: Any, method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


PING = {"jsonrpc": "2.0", "id": "alive", "method": "ping"}
PONG = {"jsonrpc": "2.0", "id": "alive", "result": {}}


def draw_params(data: st.DataObject, method: str, session: str) -> list[Any]:
    per_request = st.just(True) if session == PER_REQUEST else st.sampled_from([False, False, False, True])
    count = data.draw(st.integers(1, 3))
    return [
        data.draw(params_of(method, session, meta=data.draw(per_request)), label=f"params {n}") for n in range(count)
    ]


@pytest.mark.parametrize("method", REQUESTS)
@given(data=st.data())
def test_a_server_answers_each_request_once_however_malformed_its_params(method: str, data: st.DataObject) -> None:
    session = data.draw(st.sampled_from(REVISION_NAMES), label="revision")
    sent = [request(n, method, params) for n, params in enumerate(draw_params(data, method, session), 1)]
    with TurnedLoop() as loop:
        loop.forgiven = expected_failure
        stream = serve(loop, session)
        stream.say(*sent)
        loop.idle()
        said = stream.sent()
        stream.say(PING)
        loop.idle()
        assert stream.sent() == [PONG]
        stream.hang_up()  # which ends what was listened to
        loop.idle()
        answers = [message for message in said + stream.sent() if "method" not in message]
    assert sorted(answer["id"] for answer in answers) == [message["id"] for message in sent]
    for answer in answers:
        check_answer(answer, method, session, sent[answer["id"] - 1]["params"])


def check_silence(said: list[dict[str, Any]], drawn: list[Any]) -> None:
    """Nothing was said but the answer to the ping, and that some frames were no messages at all.

    JSON-RPC 2.0, section 4.3: a notification is a Request object without an id. What is no valid Request object, since
    its params are no structured value, is answered like everything else that cannot be read (section 7, examples).
    """
    codes = [message["error"]["code"] for message in said if "error" in message and message.get("id") is None]
    deep = [params for params in drawn if depth_of(params) > MAX_DEPTH]
    scalars = [params for params in drawn if not isinstance(params, dict | list | None)]
    assert sorted(codes) == [-32700] * len(deep) + [-32600] * len(scalars)
    assert [message for message in said if "error" not in message] == [PONG]


@pytest.mark.parametrize("method", NOTIFICATIONS)
@given(data=st.data())
def test_a_server_never_answers_a_notification_however_malformed_its_params(method: str, data: st.DataObject) -> None:
    session = data.draw(st.sampled_from(REVISION_NAMES), label="revision")
    with TurnedLoop() as loop:
        stream = serve(loop, session)
        drawn = draw_params(data, method, session)
        for params in drawn:
            stream.say({"jsonrpc": "2.0", "method": method, "params": params})
        stream.say(PING)
        loop.idle()
        check_silence(stream.sent(), drawn)
        stream.hang_up()
        loop.idle()


@given(data=st.data(), method=st.sampled_from(REQUESTS))
def test_a_request_without_an_id_is_no_request(data: st.DataObject, method: str) -> None:
    session = data.draw(st.sampled_from(REVISION_NAMES), label="revision")
    params = data.draw(params_of(method, session, meta=session == PER_REQUEST), label="params")
    with TurnedLoop() as loop:
        stream = serve(loop, session)
        stream.say({"jsonrpc": "2.0", "method": method, "params": params}, PING)
        loop.idle()
        check_silence(stream.sent(), [params])
        stream.hang_up()
        loop.idle()


# ------------------------------------------------------------------------------------------------- towards a client

HANDSHAKES = [name for name in REVISION_NAMES if name != PER_REQUEST]


@pytest.mark.parametrize("method", REQUESTS)
@given(data=st.data())
def test_a_client_answers_each_request_once_however_malformed_its_params(method: str, data: st.DataObject) -> None:
    revision = data.draw(st.sampled_from(HANDSHAKES), label="revision")
    sent = [request(n, method, params) for n, params in enumerate(draw_params(data, method, revision), 1)]
    with TurnedLoop() as loop:
        client, stream = connect(loop, revision)
        stream.say(*sent)
        loop.idle()
        answers = stream.sent()
        assert sorted(answer["id"] for answer in answers) == [message["id"] for message in sent]
        for answer in answers:
            params = sent[answer["id"] - 1]["params"]
            assert validate_message(answered_under(revision, params), "client", answer, method) == []
            if "error" in answer:
                assert answer["error"]["code"] in allowed_codes(method, answered_under(revision, params), params)
        loop.finish(client.close())


@pytest.mark.parametrize("method", NOTIFICATIONS)
@given(data=st.data())
def test_a_client_survives_every_notification_however_malformed_its_params(method: str, data: st.DataObject) -> None:
    revision = data.draw(st.sampled_from(REVISION_NAMES), label="revision")
    with TurnedLoop() as loop:
        client, stream = connect(loop, revision)
        call = loop.start(client.request("acme/x", on_progress=lambda *told: None))
        asked = stream.sent()[0]["id"]
        for params in draw_params(data, method, revision):
            stream.say({"jsonrpc": "2.0", "method": method, "params": params})
        loop.idle()
        assert stream.sent() == []
        stream.say({"jsonrpc": "2.0", "id": asked, "result": {"fine": True}})
        assert loop.finish(call) == {"fine": True}
        loop.finish(client.close())
