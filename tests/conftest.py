"""What holds for every test: marks by folder, Hypothesis profiles, no silent skip where CI=true, fixtures of many."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Generator, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
ON_CI = os.environ.get("CI") == "true"
MARKED_FOLDERS = ("conformance", "interop", "bench")

# Deadlines per example measure the machine, not the code. `HYPOTHESIS_PROFILE=thorough` looks harder.
settings.register_profile("dev", deadline=None, max_examples=30)
settings.register_profile(
    "ci", deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if ON_CI else "dev"))


def parse_allowed_skips(text: str) -> dict[str, str]:
    """Read lines of ``node pattern -- reason``; a line without a reason is refused."""
    allowed: dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        pattern, dashes, reason = line.partition(" -- ")
        if not dashes or not reason.strip():
            raise pytest.UsageError(f"tests/allowed_skips.txt: give a reason after ' -- ' in: {line!r}")
        allowed[pattern.strip()] = reason.strip()
    return allowed


ALLOWED_SKIPS = parse_allowed_skips((ROOT / "tests" / "allowed_skips.txt").read_text(encoding="utf-8"))


def skip_is_allowed(node_id: str) -> bool:
    """Whether the list names this test. ``[`` is literal: parameters of a test are written with it."""
    return any(fnmatchcase(node_id, pattern.replace("[", "[[]")) for pattern in ALLOWED_SKIPS)


def refuse_unlisted_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip that the list does not name into a failure that says how to allow it."""
    if not report.skipped or hasattr(report, "wasxfail") or skip_is_allowed(report.nodeid):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"{reason}\nA skip fails where CI=true, unless tests/allowed_skips.txt names it: {report.nodeid}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if ON_CI:
        refuse_unlisted_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if ON_CI:
        refuse_unlisted_skip(report)
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = item.path.relative_to(ROOT).parts[1] if item.path.is_relative_to(ROOT / "tests") else ""
        if folder in MARKED_FOLDERS:
            item.add_marker(folder)


def pytest_collection_finish() -> None:
    # Thousands of tests are millions of objects; tests that look for leftovers by `gc.collect` need not look at them.
    gc.collect()
    gc.freeze()


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not end by itself is not waited for."""
    from modelwire.client import contact
    from modelwire.transports import process

    for name in ("DRAIN_SECONDS", "EOF_SECONDS", "TERM_SECONDS"):
        monkeypatch.setattr(process, name, 0.05)
    monkeypatch.setattr(contact, "FLUSH_SECONDS", 0.05)


@pytest.fixture
def quiet_loop() -> Iterator[None]:
    """The loop's own complaints, of failures that nobody heard, are looked for in the log."""
    logging.getLogger("asyncio").setLevel(logging.DEBUG)
    yield
    logging.getLogger("asyncio").setLevel(logging.NOTSET)
