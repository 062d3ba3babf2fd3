"""How the checks of the conformance suite are judged; and that the lists of what may fail or be skipped say why."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.verdicts import Allowances, allowances, judge

FINE = {"id": "ping", "status": "SUCCESS"}
WIRE = {"id": "wire-schema-valid", "status": "SUCCESS"}


def statuses(checks: list[dict[str, Any]] | None, failures: str = "", skips: str = "") -> list[str]:
    """Return check and status of what is wrong in a scenario with these checks; None is one that crashed."""
    found = {} if checks is None else {"ping": checks}
    lists = (allowances("failures", failures), allowances("skips", skips))
    return [f"{problem.check} {problem.status}" for problem in judge("2025-11-25", ["ping"], found, *lists)]


def test_a_scenario_whose_own_checks_succeed_is_in_order() -> None:
    assert statuses([FINE, WIRE]) == []


@pytest.mark.parametrize("status", ["FAILURE", "WARNING", "SKIPPED", "INFO"])
def test_anything_else_than_success_is_a_problem(status: str) -> None:
    assert statuses([FINE, {"id": "more", "status": status}]) == [f"more {status}"]


def test_what_the_suite_tells_of_its_own_doing_is_no_problem() -> None:
    assert statuses([FINE, {"id": "outgoing-request", "status": "INFO"}]) == []


def test_a_scenario_that_crashed_is_a_problem() -> None:
    assert statuses(None) == ["nothing-checked MISSING"]


def test_a_scenario_that_only_saw_well_formed_silence_is_a_problem() -> None:
    assert statuses([WIRE]) == ["nothing-checked MISSING"]


def test_a_failure_with_a_reason_is_let_pass_and_a_skip_only_by_the_list_of_skips() -> None:
    line = "2025-11-25 ping more -- the suite reads a clause differently"
    for status, is_failure in (("FAILURE", True), ("WARNING", True), ("SKIPPED", False), ("INFO", False)):
        checks = [FINE, {"id": "more", "status": status}]
        assert statuses(checks, failures=line) == ([] if is_failure else [f"more {status}"])
        assert statuses(checks, skips=line) == ([f"more {status}"] if is_failure else [])


def test_a_line_that_nothing_fits_any_more_is_told() -> None:
    lines = allowances("failures", "2025-11-25 ping a -- b\n2025-11-25 ping more -- c\n2026-07-28 ping a -- d")
    judge("2025-11-25", ["ping"], {"ping": [FINE, {"id": "more", "status": "FAILURE"}]}, lines, allowances("skips", ""))
    assert lines.stale(["2025-11-25"]) == ["2025-11-25 ping a"]


@pytest.mark.parametrize("line", ["2025-11-25 ping more", "2025-11-25 ping more -- ", "ping more -- why"])
def test_a_line_without_a_reason_or_without_a_place_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="WHERE SCENARIO CHECK -- reason"):
        allowances("failures", line)


def test_of_several_checks_with_one_id_a_line_may_name_one_by_its_name() -> None:
    skipped = [{"id": "headers", "name": f"Header_{of}", "status": "SKIPPED"} for of in ("ping", "initialize")]
    assert statuses([FINE, *skipped], skips="* ping Header_initialize -- there is none") == ["headers SKIPPED"]
    assert statuses([FINE, *skipped], skips="* ping headers -- there are none") == []


@pytest.mark.parametrize("file", ["server_expected_failures.txt", "client_expected_failures.txt"])
def test_nothing_is_expected_to_fail(file: str) -> None:
    assert allowances(file) == Allowances(file, [])
