"""A record of frames, and what can be asked of it."""

from __future__ import annotations

from typing import Any

import pytest

from modelwire import Client, Server
from modelwire.testing import Frame, Frames


def kept(*frames: tuple[Any, bytes]) -> Frames:
    found = Frames()
    for direction, frame in frames:
        found.frame(direction, frame)
    return found


ASKED = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}'
ANSWERED = b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
RECORD = kept(
    ("out", ASKED),
    ("in", b'{"jsonrpc":"2.0","id":1,"method":"ping"}'),
    ("out", b'{"jsonrpc":"2.0","id":1,"result":{}}'),
    ("in", b'{"jsonrpc":"2.0","id":"1","result":{"not":"it"}}'),
    ("in", ANSWERED),
)


def test_a_record_is_a_sequence_of_frames() -> None:
    assert len(RECORD) == 5
    assert RECORD[0] == Frame("out", ASKED) == ("out", ASKED)
    assert RECORD[-1].data == ANSWERED
    assert [frame.direction for frame in RECORD] == ["out", "in", "out", "in", "in"]
    assert RECORD[1:2] == [RECORD[1]]


def test_messages_are_found_by_direction_method_and_pattern() -> None:
    [asked] = RECORD.sent("tools/call")
    assert asked["params"] == {"name": "add"}
    assert RECORD.sent({"params": {"name": "add"}}) == [asked]
    assert RECORD.sent("ping") == []
    assert [message["id"] for message in RECORD.received()] == [1, "1", 1]
    assert RECORD.received("ping") == RECORD.received({"method": str})


def test_an_answer_is_found_by_the_type_of_the_id_and_on_the_other_side() -> None:
    [asked] = RECORD.sent("tools/call")
    assert RECORD.answer_to(asked)["result"] == {"content": []}
    [ping] = RECORD.received("ping")
    assert RECORD.answer_to(ping)["result"] == {}
    with pytest.raises(AssertionError, match=r"no answer to x 7 in:\nout "):
        RECORD.answer_to({"id": 7, "method": "x"})


def test_batches_and_frames_that_are_no_json() -> None:
    record = kept(("in", b'[{"method":"a"},{"method":"b"}]'), ("in", b"{"), ("in", b"\xff"))
    assert [message["method"] for message in record.received()] == ["a", "b"]
    assert record.transcript().splitlines()[1:] == ["in  {", r"in  \xff"]
    record.clear()
    assert list(record) == []


def test_a_transcript_has_a_line_per_frame_and_cuts_long_ones() -> None:
    lines = kept(("out", ASKED), ("in", b"x" * 10_000)).transcript().splitlines()
    assert lines[0] == f"out {ASKED.decode()}"
    assert lines[1].endswith("... (10000 bytes)")
    assert len(lines[1]) < 2100


async def test_clients_and_servers_take_a_record_as_an_observer() -> None:
    mine, theirs = Frames(), Frames()
    server = Server("s", observers=[theirs])
    server.add_tool(lambda: "x", name="x")
    async with Client(server, observers=[mine]) as client:
        await client.call("x")
    assert mine.sent("tools/call") == theirs.received("tools/call") != []
