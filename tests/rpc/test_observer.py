"""Who watches only watches."""

from __future__ import annotations

import pytest

from modelwire.rpc.observer import Observer, tell, watchers


class Watching(Observer):
    def __init__(self) -> None:
        self.seen: list[object] = []

    def frame(self, direction: str, frame: bytes) -> None:
        self.seen.append((direction, frame))

    def stderr(self, chunk: bytes) -> None:
        self.seen.append(chunk)

    def exited(self, exit_code: int) -> None:
        self.seen.append(exit_code)


class Failing(Observer):
    def frame(self, direction: str, frame: bytes) -> None:
        raise ZeroDivisionError

    def __repr__(self) -> str:
        return "<failing>"


def test_everybody_is_told() -> None:
    watching = [Watching(), Watching()]
    tell(watching, lambda observer: observer.frame("in", b"{}"))
    tell(watching, lambda observer: observer.stderr(b"x"))
    tell(watching, lambda observer: observer.exited(3))
    assert [each.seen for each in watching] == [[("in", b"{}"), b"x", 3]] * 2


def test_an_observer_overrides_what_it_needs() -> None:
    quiet = Observer()
    tell([quiet], lambda observer: observer.frame("out", b"{}"))
    tell([quiet], lambda observer: observer.stderr(b""))
    tell([quiet], lambda observer: observer.exited(0))


def test_one_that_fails_is_logged_and_costs_the_others_nothing(caplog: pytest.LogCaptureFixture) -> None:
    watching = Watching()
    tell([Failing(), watching], lambda observer: observer.frame("in", b"{}"))
    assert watching.seen == [("in", b"{}")]
    assert "the observer Failing failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_an_interruption_is_no_failure_of_the_observer() -> None:
    def interrupt(observer: Observer) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tell([Observer()], interrupt)


def test_each_connection_may_have_an_observer_of_its_own() -> None:
    class Many(Observer):
        def __init__(self) -> None:
            self.own: dict[int, tuple[str, Watching]] = {}

        def connection(self, number: int, peer: str) -> Observer:
            self.own[number] = peer, Watching()
            return self.own[number][1]

    class Broken(Watching):
        def connection(self, number: int, peer: str) -> Observer:
            raise ZeroDivisionError

    many, one, broken = Many(), Watching(), Broken()
    for number in (1, 2):
        tell(watchers([many, one, broken], number, f"peer {number}"), lambda each: each.frame("in", b"%d" % number))  # noqa: B023
    assert {number: (peer, own.seen) for number, (peer, own) in many.own.items()} == {
        1: ("peer 1", [("in", b"1")]),
        2: ("peer 2", [("in", b"2")]),
    }
    assert one.seen == broken.seen == [("in", b"1"), ("in", b"2")]
