"""Bytes of any kind, in any pieces: a bad line costs only itself, and what was asked on a good one is answered."""

from __future__ import annotations

import functools
import json
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from modelwire import ModelwireError, ProtocolViolation, Server
from modelwire.rules.lines import LineFramer
from tests.robustness.fed_stream import FedStream
from tests.robustness.frames import cut_up, frames, messages, spelled, torn
from tests.robustness.malformed import PER_REQUEST
from tests.robustness.opening import connect, initialize
from tests.robustness.reference import Spelled, spelling, verdict
from tests.robustness.rich_server import expected_failure, rich_server
from tests.robustness.turning import TurnedLoop
from tests.spec import REVISION_NAMES, needs_spec, validate_message

pytestmark = needs_spec

MAX_MESSAGE = 2000
LINE_ENDS = st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n", b" \r\n", b"\n\xef\xbb\xbf", b"\r", b"", b"\0\n"])
HANDSHAKES = [name for name in REVISION_NAMES if name != PER_REQUEST]
PONG = {"jsonrpc": "2.0", "id": "alive", "result": {}}


@functools.cache
def server() -> Server:
    return rich_server()


@st.composite
def noise(draw: Any) -> bytes:
    """Draw some lines, good and bad, and what stands between them."""
    parts: list[bytes] = []
    for _ in range(draw(st.integers(1, 5))):
        parts += (draw(frames()), draw(LINE_ENDS))
    return draw(torn(b"".join(parts))) if draw(st.integers(0, 3)) == 0 else b"".join(parts)


def answer_faults(answer: dict[str, Any], revisions: set[str], methods: list[str | None]) -> list[str]:
    """Return what is wrong with an answer under every revision and for every request that it may belong to."""
    faults: list[str] = []
    for revision in revisions:
        for method in methods:
            found = validate_message(revision, "server", answer, method)
            if not found:
                return []
            faults += found
    return faults


def asked(lines: list[bytes]) -> dict[str | None, list[str | None]]:
    """Return the methods that were asked for under each id, as the reference reads the lines."""
    found: dict[str | None, list[str | None]] = {}
    for line in lines:
        if verdict(line).kind in ("request", "batch"):
            value = json.loads(line, parse_int=Spelled, parse_float=Spelled)
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, dict) and isinstance(item.get("method"), str):
                    found.setdefault(spelling(item.get("id")), []).append(item["method"])
    return found


def flat(said: list[Any]) -> list[dict[str, Any]]:
    return [item for message in said for item in (message if isinstance(message, list) else [message])]


@given(noise=noise(), revision=st.sampled_from([None, *HANDSHAKES]), data=st.data())
def test_a_server_answers_a_ping_after_any_bytes(noise: bytes, revision: str | None, data: st.DataObject) -> None:
    with TurnedLoop() as loop:
        loop.forgiven = expected_failure
        stream = FedStream(MAX_MESSAGE)
        loop.start(server().serve(stream))
        if revision is not None:
            stream.say(initialize(revision))
        loop.idle()
        stream.sent()
        for chunk in data.draw(cut_up(noise), label="chunks"):
            stream.feed(chunk)
            loop.idle()
        stream.feed(b"\n")
        loop.idle()
        said = flat(stream.sent())
        stream.feed(b'{"jsonrpc":"2.0","id":"alive","method":"ping"}\n')
        loop.idle()
        assert stream.sent() == [PONG]
        stream.hang_up()
        loop.idle()
    lines = [frame for frame in LineFramer(MAX_MESSAGE).feed(noise + b"\n") if isinstance(frame, bytes)]
    methods = asked(lines)
    for answer in said:
        if "method" in answer:
            assert validate_message(revision or PER_REQUEST, "server", answer) == []
            continue
        known = methods.get(spelled_id(answer), [None])
        assert answer_faults(answer, {PER_REQUEST, revision or "2025-11-25"}, known) == []


@given(lines=st.lists(frames(), max_size=5), revision=st.sampled_from(HANDSHAKES))
def test_every_request_on_its_own_line_is_answered_as_often_as_it_was_sent(lines: list[bytes], revision: str) -> None:
    # Batches have answers of their own, too deep or long lines have no readable id: both are told elsewhere.
    lines = [line for line in lines if b"\n" not in line and len(line) < MAX_MESSAGE and verdict(line).kind != "batch"]
    lines = [line.removesuffix(b"\r") for line in lines if line.count(b"[") + line.count(b"{") < 100]
    with TurnedLoop() as loop:
        loop.forgiven = expected_failure
        stream = FedStream(MAX_MESSAGE)
        loop.start(server().serve(stream))
        stream.say(initialize(revision))
        loop.idle()
        stream.sent()
        for line in lines:
            stream.feed(line + b"\n")
            loop.idle()
        answers = [spelled_id(message) for message in stream.sent() if "method" not in message]
        stream.hang_up()
        loop.idle()
    verdicts = [verdict(line) for line in lines if line.strip(b" \t\r")]
    expected = Counter(found.id for found in verdicts if found.kind == "request")
    refused = Counter(found.id for found in verdicts if found.kind in ("invalid", "unparsable"))
    for id_, count in expected.items():
        assert count <= Counter(answers)[id_] <= count + refused[id_] + refused[None]
    assert sum(expected.values()) <= len(answers) <= sum(expected.values()) + sum(refused.values())


def spelled_id(answer: dict[str, Any]) -> str | None:
    return spelling(json.loads(json.dumps(answer.get("id")), parse_int=Spelled, parse_float=Spelled))


@given(message=messages(), data=st.data())
def test_a_good_line_is_understood_however_it_is_cut(message: dict[str, Any], data: st.DataObject) -> None:
    line = data.draw(spelled(message)) + b"\n"
    framer = LineFramer()
    found = [frame for chunk in data.draw(cut_up(line)) for frame in framer.feed(chunk)]
    assert found == [line.removesuffix(b"\n").removeprefix(b"\xef\xbb\xbf").removesuffix(b"\r")]


# ------------------------------------------------------------------------------------------------- towards a client


@given(noise=noise(), revision=st.sampled_from(REVISION_NAMES), data=st.data())
def test_a_client_survives_any_bytes_from_its_server(noise: bytes, revision: str, data: st.DataObject) -> None:
    with TurnedLoop() as loop:
        client, stream = connect(loop, revision, max_message=MAX_MESSAGE)
        call = loop.start(client.request("acme/x", {"a": 1}, on_progress=lambda *told: None))
        first = stream.sent()[0]["id"]
        for chunk in data.draw(cut_up(noise), label="chunks"):
            stream.feed(chunk)
            loop.idle()
        stream.feed(b"\n")
        loop.idle()
        check_said_by_client(stream.sent(), revision)
        if not call.done():
            stream.say({"jsonrpc": "2.0", "id": first, "result": {"first": True}})
        check_ended(loop, call)
        later = loop.start(client.request("acme/y"))
        stream.say({"jsonrpc": "2.0", "id": stream.sent()[0]["id"], "result": {"later": True}})
        assert loop.finish(later) == {"later": True}
        loop.finish(client.close())


@given(damage=st.data(), revision=st.sampled_from(REVISION_NAMES))
def test_a_damaged_answer_fails_its_call_or_leaves_it_waiting(damage: st.DataObject, revision: str) -> None:
    with TurnedLoop() as loop:
        client, stream = connect(loop, revision, max_message=MAX_MESSAGE)
        call = loop.start(client.call_tool("x", timeout=7))
        answer = {"jsonrpc": "2.0", "id": stream.sent()[0]["id"], "result": {"content": [], "resultType": "complete"}}
        stream.feed(damage.draw(torn(json.dumps(answer).encode())) + b"\n")
        loop.idle()
        loop.advance(8)
        assert call.done()
        check_ended(loop, call)
        stream.sent()
        later = loop.start(client.request("acme/y"))
        stream.say({"jsonrpc": "2.0", "id": stream.sent()[0]["id"], "result": {}})
        assert loop.finish(later) == {}
        loop.finish(client.close())


def test_an_answer_that_is_not_utf_8_fails_its_call_at_once_and_says_why() -> None:
    with TurnedLoop() as loop:
        client, stream = connect(loop, "2025-11-25")
        call = loop.start(client.request("acme/x"))
        stream.feed(b'{"jsonrpc":"2.0","id":%d,"result":{"t":"caf\xe9"}}\n' % stream.sent()[0]["id"])
        loop.idle()
        assert isinstance(call.exception(), ProtocolViolation)
        assert "not UTF-8" in str(call.exception())
        loop.finish(client.close())


def check_ended(loop: TurnedLoop, call: Any) -> None:
    try:
        loop.finish(call)
    except ModelwireError:
        pass  # noise may happen to answer it: then it failed for a reason that it names


def check_said_by_client(said: list[Any], revision: str) -> None:
    for message in flat(said):
        assert "method" not in message
        assert answer_faults(message, {revision}, [None]) == []
