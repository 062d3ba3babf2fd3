"""Keys of questions, and what a request is bound to."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwire.protocol import types as t
from modelwire.rules.asking import Binding, Journal, decode_journal, digest, encode_journal, question_key, written


def params(text: str) -> bytes:
    return written(msgspec.json.decode(text, type=t.CallToolRequestParams))


SAME = [
    '{"name":"a","arguments":{"x":1,"y":[1,2]}}',
    '{"arguments":{"y":[1, 2],"x":1},"name":"a"}',
    '{"name":"a","arguments":{"x":1,"y":[1,2]},"_meta":{"progressToken":7}}',
    '{"name":"a","arguments":{"x":1,"y":[1,2]},"requestState":"s","inputResponses":{"k":{"roots":[]}}}',
]
OTHERS = [
    '{"name":"b","arguments":{"x":1,"y":[1,2]}}',
    '{"name":"a","arguments":{"x":1,"y":[2,1]}}',
    '{"name":"a","arguments":{"x":"1","y":[1,2]}}',
    '{"name":"a","arguments":{"x":1}}',
    '{"name":"a"}',
]


@pytest.mark.parametrize("text", SAME)
def test_a_request_is_the_same_however_it_is_spelled_and_whatever_it_brings(text: str) -> None:
    assert digest(params(text)) == digest(params(SAME[0]))


def test_other_requests_are_told_apart() -> None:
    assert len({digest(params(text)) for text in [SAME[0], *OTHERS]}) == 1 + len(OTHERS)


def test_a_question_has_the_same_key_in_each_run() -> None:
    first = question_key("elicit", "elicitation/create", b"{}")
    assert first == question_key("elicit", "elicitation/create", b"{}")
    assert first != question_key("elicit", "elicitation/create", b'{"a":1}')
    assert first != question_key("elicit", "roots/list", b"{}")


@given(st.dictionaries(st.text(), st.text()), st.none() | st.text())
def test_a_journal_is_read_as_it_was_written(answers: dict[str, str], principal: str | None) -> None:
    encoded = {key: json.dumps(answer).encode() for key, answer in answers.items()}
    journal = Journal("name", Binding("server", principal, "tools/call", b"digest"), 7.5, encoded, {})
    assert decode_journal(encode_journal(journal)) == journal
