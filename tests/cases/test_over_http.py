"""The cases that hold over any transport, over HTTP: each of their tests again, with everything that it is given.

What a test is called with in turn is one test here for each revision, since all of it goes the same way.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.cases import (
    test_json_rpc,
    test_lifecycle,
    test_progress_cancel,
    test_resources,
    test_tool_results,
    test_tools,
)
from tests.server.http.talk import http_talk
from tests.wire import BETWEEN, MODERN

pytestmark = pytest.mark.slow  # each of these is held without HTTP as well
MODULES = (test_json_rpc, test_lifecycle, test_progress_cancel, test_resources, test_tool_results, test_tools)
REVISIONS = ("2025-03-26", "2025-11-25", MODERN)
ALONE = "a request of 2026-07-28 stands alone, whatever its id"
NOTHING = "a notification ends no session; DELETE does, and tests/server/http has that"
ELSEWHERE: dict[str, tuple[tuple[str | None, ...], str]] = {
    "an_id_in_flight_is_refused_and_the_first_request_keeps_its_answer": ((MODERN,), ALONE),
    "a_refused_duplicate_does_not_free_the_id": ((MODERN,), ALONE),
    "ids_of_both_eras_on_one_connection_share_one_table": ((None,), ALONE),
    "an_answer_to_nothing_is_ignored": ((MODERN,), "answers have no place there, and are refused"),
    "exit_ends_the_connection": (REVISIONS, NOTHING),
    "requests_accepted_before_exit_are_answered": (REVISIONS, NOTHING),
    "what_runs_when_the_client_leaves_is_cancelled_with_a_reason": (REVISIONS, "there is no connection to be closed"),
    "fifty_abandoned_calls_leave_nothing_running_and_get_nothing": (
        REVISIONS[:2],
        "the stream of GET has a task that comes a little later, which the test would count",
    ),
}
"""What does not hold over HTTP in this form: in which revisions, and why."""
_GIVEN: Any = type(pytest.param())


def calls_of(test: Any) -> Iterator[dict[str, Any]]:
    """Everything that a test is called with by its marks, in turn."""
    axes: list[list[dict[str, Any]]] = []
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize":
            names, sets = mark.args
            names = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
            axes.append([dict(zip(names, _values(value, len(names)), strict=True)) for value in sets])
    for combined in itertools.product(*axes):
        yield {name: value for part in combined for name, value in part.items()}


def _values(given: Any, count: int) -> Any:
    if isinstance(given, _GIVEN):
        return given.values
    return (given,) if count == 1 else given


def _talks(module: ModuleType, test: Any) -> bool:
    """Whether a test holds a conversation, by itself or through a helper."""
    names = set(test.__code__.co_names)
    helpers = [getattr(module, name) for name in names if inspect.isfunction(getattr(module, name, None))]
    for helper in helpers:
        names.update(inspect.unwrap(helper).__code__.co_names if helper.__module__ == module.__name__ else ())
    return bool({"session_talk", "stream_talk"} & names) or "over" in inspect.signature(test).parameters


def held_in(module: ModuleType) -> Iterator[Any]:
    """Every test of a module that holds a conversation, with the revisions that it holds in over HTTP."""
    for name, test in vars(module).items():
        if not (name.startswith("test_") and inspect.iscoroutinefunction(test)):
            continue
        apart, _ = ELSEWHERE.get(name.removeprefix("test_"), ((), ""))
        spoken = {given.get("revision") for given in calls_of(test)}
        for revision in (None, *REVISIONS):
            if _talks(module, test) and revision in spoken and revision not in apart:
                shown = f"{module.__name__.rpartition('.test_')[2]}-{name.removeprefix('test_')}-{revision}"
                slow = revision in BETWEEN or module in (test_tools, test_tool_results)
                marks = [pytest.mark.slow] if slow else []
                yield pytest.param(module, test, revision, id=shown, marks=marks)


@pytest.mark.parametrize(("module", "test", "revision"), [case for module in MODULES for case in held_in(module)])
async def test_it_holds_over_http(
    module: ModuleType, test: Any, revision: str | None, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    for name in ("session_talk", "stream_talk"):
        monkeypatch.setattr(module, name, http_talk, raising=False)
    fixtures: dict[str, Any] = {}
    done: list[Any] = []
    for given in calls_of(test):
        if "over" in given:
            given["over"] = http_talk
        if given.get("revision") != revision or given in done:
            continue
        done.append(given)
        for name in inspect.signature(test).parameters:
            if name not in given and name not in fixtures:
                fixtures[name] = request.getfixturevalue(name)
        try:
            await test(**given, **fixtures)
        except BaseException as error:
            error.add_note(f"with {given!r:.500}")
            raise
