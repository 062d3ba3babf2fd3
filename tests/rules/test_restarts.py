"""How often a lost connection is opened again by itself."""

from __future__ import annotations

from modelwire.rules.restarts import DELAYS, MOST, WINDOW, Restarts


def test_the_first_opening_is_at_once_and_each_further_one_later() -> None:
    restarts = Restarts()
    delays = [restarts.next(100 + number) for number in range(MOST)]
    assert delays[0] == 0
    assert delays == sorted(set(DELAYS))


def test_too_many_within_the_window_are_refused_and_do_not_count() -> None:
    restarts = Restarts()
    for number in range(MOST):
        restarts.next(100 + number)
    assert [restarts.next(110), restarts.next(120)] == [None, None]
    assert restarts.forgiven_in(120) == WINDOW - 20


def test_what_was_long_ago_is_forgiven_one_by_one() -> None:
    restarts = Restarts()
    for number in range(MOST):
        restarts.next(100 + number)
    assert restarts.next(100 + WINDOW) == DELAYS[-1]
    assert restarts.next(100.5 + WINDOW) is None
    assert restarts.next(101 + WINDOW) == DELAYS[-1]


def test_a_connection_that_is_lost_now_and_then_always_comes_back_at_once() -> None:
    restarts = Restarts()
    assert {restarts.next(number * (WINDOW + 1)) for number in range(100)} == {0}
    assert restarts.forgiven_in(100 * WINDOW) == 0
