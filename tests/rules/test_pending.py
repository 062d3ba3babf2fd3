"""Requests that wait: ids, deadlines, progress, and answers that are too late."""

from __future__ import annotations

from typing import Any

import pytest

from modelwire.rules.pending import Outgoing, Pending


def ignore(outcome: Any) -> None: ...


def add(pending: Pending, now: float = 0, timeout: float | None = 60, **options: Any) -> Outgoing:
    return pending.add("tools/call", ignore, now=now, timeout=timeout, **options)


def progress(*news: Any) -> None: ...


def test_ids_count_up_and_never_come_again() -> None:
    pending = Pending()
    first, second = add(pending), add(pending)
    assert (first.key, second.key) == (1, 2)
    pending.take(2)
    pending.take(1)
    assert add(pending).key == 3


def test_an_answer_is_taken_once() -> None:
    pending = Pending()
    entry = add(pending)
    assert len(pending) == 1
    assert pending.take(1) is entry
    assert pending.take(1) is None
    assert len(pending) == 0


@pytest.mark.parametrize("key", [None, 2, 0, -1, "1", ""])
def test_a_foreign_id_takes_nothing(key: Any) -> None:
    pending = Pending()
    add(pending)
    assert pending.take(key) is None
    assert len(pending) == 1


def test_a_late_answer_is_told_from_a_foreign_one() -> None:
    pending = Pending()
    add(pending)
    add(pending)
    pending.take(1)
    assert [pending.was_ours(key) for key in (1, 2)] == [True, True]
    assert [pending.was_ours(key) for key in (0, 3, -1, "1", None)] == [False] * 5


def test_everything_can_be_taken_at_the_end() -> None:
    pending = Pending()
    entries = [add(pending), add(pending)]
    assert pending.take_all() == entries
    assert pending.take_all() == []
    assert pending.next_deadline() is None


# --------------------------------------------------------------------------------------------------- deadlines


@pytest.mark.parametrize(
    ("timeout", "max_timeout", "deadline"),
    [(60, None, 160), (60, 600, 160), (60, 10, 110), (None, 10, 110), (None, None, None), (0, None, 100)],
)
def test_the_deadline_is_the_earlier_of_both(
    timeout: float | None, max_timeout: float | None, deadline: float | None
) -> None:
    assert add(Pending(), now=100, timeout=timeout, max_timeout=max_timeout).deadline == deadline


def test_the_earliest_deadline_comes_next() -> None:
    pending = Pending()
    for timeout in (30, None, 10, 20):
        add(pending, timeout=timeout)
    assert pending.next_deadline() == 10
    assert [entry.key for entry in pending.expired(9.9)] == []
    assert [entry.key for entry in pending.expired(20)] == [3, 4]
    assert pending.next_deadline() == 30
    assert [entry.key for entry in pending.expired(1e9)] == [1]
    assert pending.next_deadline() is None
    assert len(pending) == 1


def test_a_late_request_says_how_long_was_waited_and_why() -> None:
    pending = Pending()
    entry = add(pending, now=100, timeout=60, max_timeout=90, on_progress=progress)
    late = entry.late(160.004)
    assert (late.method, late.seconds, late.setting) == ("tools/call", 60, "timeout")
    pending.progressed(entry.key, 1, None, 120)
    assert entry.deadline == 180
    pending.progressed(entry.key, 2, None, 170)
    assert entry.deadline == 190
    late = entry.late(190.004)
    assert (late.seconds, late.setting) == (90, "max_timeout")


def test_a_request_with_progress_says_how_long_it_took_in_all() -> None:
    pending = Pending()
    entry = add(pending, now=100, timeout=10, on_progress=progress)
    pending.progressed(entry.key, 1, None, 105)
    assert entry.late(115).seconds == 15


# --------------------------------------------------------------------------------------------------- progress


def test_progress_moves_the_deadline_up_to_the_limit() -> None:
    pending = Pending()
    entry = add(pending, timeout=10, max_timeout=25, on_progress=progress)
    for now, deadline in ((5, 15), (14, 24), (20, 25), (24, 25)):
        assert pending.progressed(1, now, 100, now) is entry
        assert entry.deadline == deadline
        assert entry.progress == (now, 100)


def test_progress_never_shortens_a_deadline_that_has_no_timeout() -> None:
    pending = Pending()
    entry = add(pending, timeout=None, max_timeout=25, on_progress=progress)
    pending.progressed(1, 1, None, 5)
    assert entry.deadline == 25


@pytest.mark.parametrize("token", [2, "1", 1.0, True, None, [1], {}])
def test_progress_with_a_foreign_token_moves_nothing(token: Any) -> None:
    pending = Pending()
    entry = add(pending, on_progress=progress)
    assert pending.progressed(token, 1, None, 5) is None
    assert entry.deadline == 60


def test_progress_that_nobody_wants_or_that_comes_late_moves_nothing() -> None:
    pending = Pending()
    unwanted, wanted = add(pending), add(pending, on_progress=progress)
    assert pending.progressed(unwanted.key, 1, None, 5) is None
    pending.take(wanted.key)
    assert pending.progressed(wanted.key, 1, None, 5) is None
