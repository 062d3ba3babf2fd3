"""Admission, in every state: who the peer of a request is, or why it is refused, whatever order things come in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwire.errors import RpcError
from modelwire.protocol.meta import RequestMeta, decode_request_meta
from modelwire.protocol.methods import METHODS
from modelwire.protocol.types import ClientCapabilities, Implementation, InitializeRequestParams
from modelwire.rules.session import Session
from tests.robustness.malformed import GOOD_META, JUNK, LEVEL_KEY, PER_REQUEST, VERSION_KEY, broken
from tests.robustness.server_model import LAST_HANDSHAKE, LEVELS, OLD_ONLY
from tests.spec import REVISION_NAMES

METHOD = st.sampled_from([*METHODS, "shutdown", "acme/x", ""])
VERSION = st.sampled_from([*REVISION_NAMES, "1999-01-01", ""]) | st.text(max_size=5)


def opened(version: str) -> InitializeRequestParams:
    return InitializeRequestParams(version, ClientCapabilities(), Implementation("c", "1"))


def meta_of(version: str | None) -> RequestMeta | None:
    return None if version is None else RequestMeta(version, ClientCapabilities())


@st.composite
def steps(draw: Any) -> list[tuple[str, Any]]:
    """Draw what a session may be told: openings, levels, requests of either era."""
    step = st.one_of(
        st.tuples(st.just("open"), VERSION),
        st.tuples(st.just("level"), st.sampled_from(LEVELS)),
        st.tuples(st.just("admit"), st.tuples(METHOD, st.none() | VERSION)),
    )
    return draw(st.lists(step, max_size=12))


@given(steps=steps())
def test_a_session_admits_by_its_last_handshake_or_by_what_the_request_says(steps: list[tuple[str, Any]]) -> None:
    session = Session()
    revision: str | None = None
    level: str | None = None
    for step, value in steps:
        if step == "open":
            level, revision = "info", value if value in REVISION_NAMES and value != PER_REQUEST else LAST_HANDSHAKE
            assert session.open(opened(value)).name == revision
            assert not session.ready
        elif step == "level":
            level = value if revision is not None else level
            session.set_level(value)
        else:
            check_admission(session, *value, revision=revision, level=level)
    assert (None if session.revision is None else session.revision.name) == revision


def check_admission(
    session: Session, method: str, version: str | None, *, revision: str | None, level: str | None
) -> None:
    code = refusal(method, version, revision)
    ready = session.ready
    if code is not None:
        with pytest.raises(RpcError) as refused:
            session.admit(method, meta_of(version))
        assert refused.value.code == code
        assert session.ready is ready
        return
    peer = session.admit(method, meta_of(version))
    if version is not None:
        assert (peer.revision.name, peer.log_level) == (PER_REQUEST, None)
        assert session.ready is ready
        return
    assert peer.revision.name == (revision or LAST_HANDSHAKE)
    assert peer.log_level == level
    assert session.ready is (ready or (revision is not None and method not in ("ping", "initialize")))


def refusal(method: str, version: str | None, revision: str | None) -> int | None:
    if version is not None:
        if version != PER_REQUEST:
            return -32022
        return -32601 if method == "initialize" else None
    return -32602 if revision is None and method not in ("ping", "initialize") else None


@given(data=st.data())
def test_a_meta_is_understood_or_refused_with_32602(data: st.DataObject) -> None:
    meta: Any = {**GOOD_META, LEVEL_KEY: "info", "progressToken": 1, "acme/x": None}
    for _ in range(data.draw(st.integers(0, 3))):
        meta = broken(data.draw, meta)
    raw = _json(meta)
    found: RequestMeta | RpcError
    try:
        found = decode_request_meta(raw)
    except RpcError as refused:
        found = refused
    if isinstance(found, RpcError):
        assert found.code == -32602
        assert found.message
        return
    said = json.loads(raw).get(VERSION_KEY) if isinstance(meta, dict) else None
    assert found.protocol_version == said


@given(value=JUNK, method=st.sampled_from(sorted(OLD_ONLY)))
def test_an_odd_version_in_a_meta_never_opens_anything(value: Any, method: str) -> None:
    session = Session()
    raw = _json({**GOOD_META, VERSION_KEY: value})
    if value is None and method in ("ping", "initialize"):
        session.admit(method, decode_request_meta(raw))
    else:
        with pytest.raises(RpcError) as refused:
            session.admit(method, decode_request_meta(raw))
        assert refused.value.code in (-32602, -32022)
    assert session.peer is None


def _json(value: Any) -> bytes:
    """Write JSON as the frame decoder hands it on: without lone surrogates."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
