"""Sealed states: only who has the key can make, read or change one."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwire.server.sealing import MAX_STATE, KeyRing

OLD, NEW, OTHER = "o" * 32, b"n" * 32, "x" * 40


@given(st.binary(max_size=500))
def test_what_was_sealed_is_opened_and_cannot_be_read(content: bytes) -> None:
    state = KeyRing([OLD]).seal(content)
    assert KeyRing([OLD]).open(state) == content
    assert state.isascii()
    if len(content) > 8:
        assert content not in base64.urlsafe_b64decode(state + "=" * (-len(state) % 4))


def test_the_first_key_seals_and_every_key_opens() -> None:
    old, both, new = KeyRing([OLD]), KeyRing([NEW, OLD]), KeyRing([NEW])
    assert both.open(old.seal(b"content")) == b"content"
    assert new.open(both.seal(b"content")) == b"content"
    assert old.open(both.seal(b"content")) is None
    assert KeyRing([OTHER]).open(old.seal(b"content")) is None


def test_the_same_content_is_never_sealed_into_the_same_state() -> None:
    ring = KeyRing([OLD])
    assert len({ring.seal(b"content") for _ in range(20)}) == 20


@given(st.data())
def test_a_state_that_was_changed_anywhere_is_not_opened(data: st.DataObject) -> None:
    ring = KeyRing([OLD])
    raw = bytearray(base64.urlsafe_b64decode(ring.seal(b"content") + "=="))
    index = data.draw(st.integers(0, len(raw) - 1))
    raw[index] ^= data.draw(st.integers(1, 255))
    assert ring.open(base64.urlsafe_b64encode(bytes(raw)).decode().rstrip("=")) is None


@pytest.mark.parametrize("state", ["", "A", "AAAA", "\u00e4" * 40, "!" * 60, "AQ" * 20, "\x00", "A" * (MAX_STATE + 4)])
def test_what_is_no_state_is_not_opened(state: str) -> None:
    assert KeyRing([OLD]).open(state) is None
