"""Whatever a completer returns becomes text, at most a hundred of it, and says how much more there is."""

from __future__ import annotations

import asyncio
import enum
import itertools
import threading
from collections import UserList, deque
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import pytest

from modelwire import Context, RpcError, Server
from modelwire import types as t
from tests.wire import MODERN, every_revision, session_talk

REF = {"type": "ref/prompt", "name": "p"}


class Colour(enum.Enum):
    RED = "red"
    ONE = 1


class Level(enum.StrEnum):
    HIGH = "high"


SURROGATE = "caf\ud800"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (["fine", SURROGATE], "the suggestion 'caf\\ud800' holds half of a surrogate pair"),
        (SURROGATE, "holds half of a surrogate pair"),
        (t.Completion([SURROGATE]), "holds half of a surrogate pair"),
        (t.CompleteResult(t.Completion([SURROGATE])), "holds half of a surrogate pair"),
        (t.Completion(["a", {"b": 1}]), "a suggestion is text, not a dict"),  # type: ignore[list-item]
        (t.Completion("abc"), "values of a Completion are a list, not a str"),  # type: ignore[arg-type]
        ([b"raw"], "a suggestion is text, not a bytes"),
    ],
    ids=repr,
)
async def test_what_is_no_suggestion_is_refused_and_the_log_names_completer_and_value(
    value: Any, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    error = await completed(returning(value))

    assert error["message"] == "The completion of 'x' of 'p' failed unexpectedly; the server's log says more"
    assert "completion of 'x' of 'p' failed" in caplog.text
    assert words in caplog.text


async def test_other_values_in_a_completion_become_text_too() -> None:
    found = await completed(returning(t.Completion([1, Colour.RED], total=7)))  # type: ignore[list-item]

    assert found == {"values": ["1", "red"], "total": 7}


async def completed(completer: Any, typed: str = "", revision: str = MODERN) -> dict[str, Any]:
    """Register a completer, and return what a client receives of it."""
    server = Server("s")
    server.add_prompt(lambda x: x, name="p")
    server.complete("p", "x")(completer)
    async with session_talk(server, revision) as talk:
        answer = await talk.request("completion/complete", {"ref": REF, "argument": {"name": "x", "value": typed}})
        return answer["result"]["completion"] if "result" in answer else answer["error"]


def returning(value: Any) -> Any:
    return lambda typed: value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, []),
        ([], []),
        (["a", "b"], ["a", "b"]),
        (("a", "b"), ["a", "b"]),
        ({"a": 1, "b": 2}, ["a", "b"]),
        ({"a": 1}.keys(), ["a"]),
        ({"a"}, ["a"]),
        (frozenset({"a"}), ["a"]),
        (deque(["a"]), ["a"]),
        (UserList(["a"]), ["a"]),
        (range(3), ["0", "1", "2"]),
        (map(str.upper, ["a", "b"]), ["A", "B"]),
        (iter(["a"]), ["a"]),
        ("alone", ["alone"]),
        ("", [""]),
        ([1, 2.5, True, False], ["1", "2.5", "true", "false"]),
        ([Colour.RED, Colour.ONE, Level.HIGH], ["red", "1", "high"]),
        (Colour, ["red", "1"]),
        ([UUID(int=1), Decimal("1.50"), PurePosixPath("a/b")], [str(UUID(int=1)), "1.50", "a/b"]),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_all_that_can_be_gone_through_becomes_text(value: Any, expected: list[str]) -> None:
    assert await completed(returning(value)) == {"values": expected}


@pytest.mark.parametrize("value", [5, 1.5, True, len, b"abc", bytearray(b"a"), [None], [b"a"], [["a"]], [{}], [()]])
async def test_anything_else_is_an_error_without_internals(value: Any, caplog: pytest.LogCaptureFixture) -> None:
    error = await completed(returning(value))
    assert error["code"] == -32603
    assert error["message"] == "The completion of 'x' of 'p' failed unexpectedly; the server's log says more"
    assert "TypeError: a " in caplog.text


@pytest.mark.parametrize(
    ("count", "expected"),
    [(99, {}), (100, {}), (101, {"total": 101, "hasMore": True}), (5000, {"total": 5000, "hasMore": True})],
)
@every_revision
async def test_a_hundred_are_sent_and_how_many_there_are(revision: str, count: int, expected: dict[str, Any]) -> None:
    values = [f"v{index}" for index in range(count)]
    assert await completed(returning(values), revision=revision) == {"values": values[:100], **expected}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (t.Completion(["a"], total=10, has_more=True), {"values": ["a"], "total": 10, "hasMore": True}),
        (t.Completion(["a"], has_more=False), {"values": ["a"], "hasMore": False}),
        (t.Completion(["a"]), {"values": ["a"]}),
        (t.Completion(["a"] * 150, total=900), {"values": ["a"] * 100, "total": 900, "hasMore": True}),
        (t.Completion(["a"] * 150, has_more=False), {"values": ["a"] * 100, "total": 150, "hasMore": True}),
        (t.CompleteResult(t.Completion(["a"], total=2)), {"values": ["a"], "total": 2}),
        (t.CompleteResult(t.Completion(["a"] * 101)), {"values": ["a"] * 100, "total": 101, "hasMore": True}),
    ],
)
async def test_a_completion_keeps_what_it_says(given: Any, expected: dict[str, Any]) -> None:
    for _ in range(2):  # what was given is not changed
        assert await completed(returning(given)) == expected


async def test_the_meta_of_a_whole_result_is_kept() -> None:
    server = Server("s")
    server.add_prompt(lambda x: x, name="p")
    server.complete("p", "x")(returning(t.CompleteResult(t.Completion(["a"] * 101), meta={"com.example/a": 1})))
    async with session_talk(server, MODERN) as talk:
        found = await talk.result("completion/complete", {"ref": REF, "argument": {"name": "x", "value": ""}})
        assert found["_meta"]["com.example/a"] == 1


def generated(typed: str) -> Iterator[str]:
    yield from (typed, threading.current_thread().name)


def endless(typed: str) -> Iterator[int]:
    yield from itertools.count()


async def asynchronous(typed: str) -> list[str]:
    await asyncio.sleep(0)
    return [typed]


async def asynchronous_items(typed: str) -> AsyncIterator[str]:
    yield typed
    await asyncio.sleep(0)
    yield "b"


async def asynchronous_endless(typed: str) -> AsyncIterator[int]:
    for index in itertools.count():
        yield index


async def of_an_iterator(typed: str) -> Iterator[int]:
    return itertools.count()


class Callable:
    async def __call__(self, value: str) -> list[str]:
        return [value]


async def test_every_kind_of_function_may_complete() -> None:
    values = (await completed(generated, "a"))["values"]
    assert values[0] == "a"
    assert values[1] != threading.current_thread().name  # a generator runs where its function does
    assert (await completed(asynchronous, "a"))["values"] == ["a"]
    assert (await completed(asynchronous_items, "a"))["values"] == ["a", "b"]
    assert (await completed(Callable(), "a"))["values"] == ["a"]
    assert (await completed(lambda value: asynchronous(value), "a"))["values"] == ["a"]
    assert (await completed(lambda value: asynchronous_items(value), "a"))["values"] == ["a", "b"]


@pytest.mark.parametrize("function", [endless, asynchronous_endless, of_an_iterator])
async def test_what_never_ends_is_asked_for_no_more_than_is_sent(function: Any) -> None:
    assert await completed(function) == {"values": [str(index) for index in range(100)], "hasMore": True}


async def test_a_generator_is_closed_and_a_short_one_has_no_more() -> None:
    closed: list[str] = []

    def many(typed: str) -> Iterator[str]:
        try:
            yield from ["a"] * 500
        finally:
            closed.append("many")

    async def many_later(typed: str) -> AsyncIterator[str]:
        try:
            for _ in range(500):
                yield "a"
        finally:
            closed.append("many_later")

    await completed(many)
    await completed(many_later)
    assert closed == ["many", "many_later"]
    assert await completed(lambda typed: (x for x in "abc")) == {"values": ["a", "b", "c"]}
    assert await completed(lambda typed: iter(["a"] * 100)) == {"values": ["a"] * 100}


async def test_failures_of_generators_and_errors_of_ones_own_are_told() -> None:
    def fails(typed: str) -> Iterator[str]:
        yield "a"
        raise RuntimeError("secret")

    async def refuses(typed: str, ctx: Context) -> AsyncIterator[str]:
        yield "a"
        raise RpcError(4711, f"no {ctx.method}")

    assert (await completed(fails))["code"] == -32603
    assert "secret" not in str(await completed(fails))
    assert await completed(refuses) == {"code": 4711, "message": "no completion/complete"}


class Endless:
    def __iter__(self) -> Iterator[int]:
        return itertools.count()


async def test_something_to_go_through_that_has_no_length_is_not_gone_through_to_its_end() -> None:
    found = await completed(lambda typed: Endless())
    assert found["values"] == [str(number) for number in range(100)]
    assert found["hasMore"] is True
    assert "total" not in found


async def test_of_something_long_no_more_is_made_than_is_sent() -> None:
    found = await completed(lambda typed: range(2**40))
    assert found["values"] == [str(number) for number in range(100)]
    assert (found["total"], found["hasMore"]) == (2**40, True)
