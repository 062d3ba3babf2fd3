"""What is written as an event is what a reader by the WHATWG text gets back; the reader is not the library's."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwire.rules import sse
from tests.server.http.events import Event, Reader

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner)
)


def read(data: bytes) -> list[Event]:
    reader = Reader()
    return reader.feed(data)


@given(VALUES, st.sampled_from([None, 1, 4]), st.booleans())
def test_any_json_text_is_read_back(value: object, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    (event,) = read(sse.event(text.encode(), id="7-1"))
    assert json.loads(event.data) == value
    assert (event.id, event.type) == ("7-1", "message")


@given(st.lists(TEXT, max_size=4), st.data())
def test_events_are_read_one_by_one_however_the_bytes_arrive(texts: list[str], data: st.DataObject) -> None:
    stream = b"".join(sse.event(json.dumps(text, ensure_ascii=False).encode()) + sse.COMMENT for text in texts)
    reader, found = Reader(), []
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        found += reader.feed(stream[:cut])
        stream = stream[cut:]
    assert [json.loads(event.data) for event in found] == texts


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\n\n", "\r\r"])
def test_a_line_end_in_a_json_text_ends_no_event(end: str) -> None:
    (event,) = read(sse.event(f'{{{end}"a":1}}'.encode()))
    assert json.loads(event.data) == {"a": 1}


def test_separators_of_unicode_are_characters_like_any_other() -> None:
    for char in "\u2028\u2029\x85\x0b\x0c\ufeff":
        (event,) = read(sse.event(json.dumps(char, ensure_ascii=False).encode()))
        assert event.data == json.dumps(char, ensure_ascii=False)


def test_an_event_without_data_sets_the_id_and_says_nothing() -> None:
    reader = Reader()
    assert reader.feed(sse.event(b"", id="3-1")) == []
    assert reader.last_id == "3-1"


def test_a_name_is_the_type() -> None:
    (event,) = read(sse.event(b"/messages?s=1", name="endpoint"))
    assert (event.type, event.data) == ("endpoint", "/messages?s=1")


def test_the_word_on_when_to_come_back() -> None:
    reader = Reader()
    assert reader.feed(sse.retry(1500)) == []
    assert reader.retry == 1500


def test_a_comment_says_nothing_and_keeps_the_id() -> None:
    reader = Reader()
    reader.feed(sse.event(b"1", id="a"))
    assert reader.feed(sse.COMMENT) == []
    assert reader.last_id == "a"


def test_the_reader_of_these_tests_reads_the_examples_of_the_standard() -> None:
    assert [e.data for e in read(b"data: YHOO\ndata: +2\ndata: 10\n\n")] == ["YHOO\n+2\n10"]
    first = read(b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n")
    assert [(e.data, e.id) for e in first] == [("first event", "1"), ("second event", ""), (" third event", "")]
    assert [e.data for e in read(b"data\n\ndata\ndata\n\ndata:")] == ["\n"]  # the standard's text, not its example
    assert [e.data for e in read(b"data:test\r\n\r\ndata: test\r\r")] == ["test", "test"]
