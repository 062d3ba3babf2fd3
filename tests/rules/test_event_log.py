"""What is kept of a stream for a reader that lost it: every place can be gone on from, and nothing grows for ever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwire.rules.event_log import MAX_BYTES, MAX_EVENTS, EventLog, event_id, place_of


@given(st.integers(0, 10**15 - 1), st.lists(st.binary(max_size=20), max_size=12))
def test_from_every_place_exactly_the_rest_is_said_in_order(stream: int, said: list[bytes]) -> None:
    log = EventLog(stream)
    ids = [log.add(data) for data in said]
    assert len(set(ids)) == len(said)
    for place in range(len(said) + 1):
        assert log.says(place)
        assert log.after(place) == list(zip(ids[place:], said[place:], strict=True))
    for number, id_ in enumerate(ids, 1):
        assert place_of(id_) == (stream, number)


def test_a_place_that_was_never_had_is_none() -> None:
    log = EventLog(1)
    log.add(b"x")
    assert not log.says(2)
    assert not log.says(-1)


def test_a_long_stream_keeps_its_newest_events() -> None:
    log = EventLog(1)
    for number in range(3 * MAX_EVENTS):
        log.add(b"%d" % number)
    kept = log.after(0)
    assert len(kept) == MAX_EVENTS
    assert kept[-1] == (event_id(1, 3 * MAX_EVENTS), b"%d" % (3 * MAX_EVENTS - 1))


def test_what_is_kept_is_bounded_in_bytes() -> None:
    log = EventLog(1)
    for _ in range(40):
        log.add(b"x" * (MAX_BYTES // 10))
    assert sum(len(data) for _, data in log.after(0)) <= MAX_BYTES
    log.add(b"y" * (2 * MAX_BYTES))
    assert [len(data) for _, data in log.after(0)] == [2 * MAX_BYTES]
    log.add(b"z")
    assert [data for _, data in log.after(0)] == [b"z"]


def test_what_no_longer_can_be_gone_on_from_is_no_place_of_the_log() -> None:
    log = EventLog(1)
    for _ in range(MAX_EVENTS + 2):
        log.add(b"x")
    assert not log.says(0)
    assert not log.says(1)
    assert log.says(2)
    assert len(log.after(2)) == MAX_EVENTS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "1",
        "1-",
        "-1",
        "1--1",
        "a-b",
        "1-1-1",
        "1-1\n",
        " 1-1",
        "1 - 1",
        "+1-1",
        "1-+1",
        "1_0-1",
        "１-１",
        "²-1",
        "9" * 5000 + "-1",
        "1-" + "9" * 5000,
    ],
)
def test_an_id_of_somebody_else_is_none_of_ours(text: str) -> None:
    assert place_of(text) is None
