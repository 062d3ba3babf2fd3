"""`modelwire.protocol.revisions`."""

from __future__ import annotations

import copy
import pickle

import pytest

from modelwire.protocol import revisions
from modelwire.protocol.revisions import LATEST, LATEST_HANDSHAKE, REVISIONS, by_name, negotiate
from tests import spec


def test_all_five_revisions_are_known_oldest_first() -> None:
    assert tuple(map(str, REVISIONS)) == spec.REVISION_NAMES
    assert [by_name(name) for name in spec.REVISION_NAMES] == list(REVISIONS)
    assert (str(LATEST_HANDSHAKE), str(LATEST)) == ("2025-11-25", "2026-07-28")


@pytest.mark.parametrize("name", ["", "1900-01-01", "2025-06-19", "draft", "2026-07-28 "])
def test_a_revision_that_does_not_exist_has_no_row(name: str) -> None:
    assert by_name(name) is None


@pytest.mark.parametrize("revision", REVISIONS[:-1], ids=str)
def test_initialize_with_a_known_handshake_revision_gets_it(revision: revisions.Revision) -> None:
    assert negotiate(revision.name) is revision


@pytest.mark.parametrize("requested", ["2026-07-28", "1900-01-01", "9999-12-31", "", "draft"])
def test_initialize_with_anything_else_gets_the_newest_handshake_revision(requested: str) -> None:
    assert negotiate(requested) is LATEST_HANDSHAKE


@pytest.mark.parametrize(
    ("since", "until", "covered"),
    [
        (None, None, "11111"),
        ("2025-06-18", None, "00111"),
        (None, "2025-06-18", "11100"),
        ("2025-11-25", "2025-11-25", "00010"),
        ("2026-07-28", None, "00001"),
    ],
)
def test_covers_includes_both_ends(since: str | None, until: str | None, covered: str) -> None:
    assert "".join("01"[revision.covers(since, until)] for revision in REVISIONS) == covered


def test_facts_that_differ_between_revisions() -> None:
    facts = {
        "handshake": "11110",
        "server_requests": "11110",
        "batching": "01000",
        "sessions": "01110",
        "streamable_http": "01111",
        "resumable": "01110",
        "version_header": "00111",
        "routing_headers": "00001",
        "listen": "00001",
        "log_level_per_request": "00001",
        "stamped_results": "00001",
        "structured": "00111",
        "any_structured": "00001",
        "null_error_id": "11100",
    }
    found = {name: "".join("01"[getattr(revision, name)] for revision in REVISIONS) for name in facts}
    assert found == facts


def test_a_revision_stays_the_same_object_when_it_is_copied_or_pickled() -> None:
    assert pickle.loads(pickle.dumps(LATEST)) is LATEST
    assert copy.deepcopy(LATEST) is LATEST


def test_marks_say_which_revisions_have_a_field() -> None:
    assert revisions.since("2025-06-18") == revisions.Span("2025-06-18", None)
    assert revisions.until("2025-06-18") == revisions.Span(None, "2025-06-18")
    assert revisions.only("2025-11-25", required=True) == revisions.Span("2025-11-25", "2025-11-25", required=True)
