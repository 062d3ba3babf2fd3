"""Who is the peer of a request: every kind of message in every state."""

from __future__ import annotations

from typing import Any

import pytest

from modelwire.errors import RpcError
from modelwire.protocol.meta import RequestMeta
from modelwire.protocol.revisions import LATEST, LATEST_HANDSHAKE, REVISIONS, by_name
from modelwire.protocol.types import ClientCapabilities, Implementation, InitializeRequestParams, SamplingCapability
from modelwire.rules.session import HOW_TO_OPEN, Peer, Session, per_request_revisions

INFO = Implementation("me", "1")
CAN = ClientCapabilities(sampling=SamplingCapability())


def opened(revision: str = "2025-06-18") -> Session:
    session = Session("alice")
    session.open(InitializeRequestParams(revision, CAN, INFO))
    return session


def meta(version: str | None = "2026-07-28", **more: Any) -> RequestMeta:
    return RequestMeta(protocol_version=version, client_capabilities=CAN, client_info=INFO, **more)


def refusal(session: Session, method: str, given: RequestMeta | None) -> RpcError:
    with pytest.raises(RpcError) as caught:
        session.admit(method, given)
    return caught.value


STATES = pytest.mark.parametrize("state", [Session, opened], ids=["NEW", "HANDSHAKEN"])


def test_before_anything_only_ping_and_initialize_are_served() -> None:
    session = Session()
    assert session.admit("ping", None).revision is LATEST_HANDSHAKE
    assert session.admit("initialize", None).revision is LATEST_HANDSHAKE
    error = refusal(session, "tools/list", None)
    assert (error.code, error.message) == (-32602, HOW_TO_OPEN)
    assert not session.ready


def test_the_refusal_names_both_ways_to_open() -> None:
    assert "initialize" in HOW_TO_OPEN
    assert "io.modelcontextprotocol/protocolVersion" in HOW_TO_OPEN
    assert "io.modelcontextprotocol/clientCapabilities" in HOW_TO_OPEN


def test_meta_without_a_version_opens_nothing() -> None:
    assert refusal(Session(), "tools/list", RequestMeta(log_level="info")).code == -32602


@pytest.mark.parametrize(
    ("asked", "answered"),
    [(revision.name, revision.name) for revision in REVISIONS if revision.handshake]
    + [(asked, "2025-11-25") for asked in ("2026-07-28", "1900-01-01", "", "2099-01-01")],
)
def test_initialize_is_negotiated(asked: str, answered: str) -> None:
    session = Session()
    assert session.open(InitializeRequestParams(asked, CAN, INFO)).name == answered
    assert session.revision is by_name(answered)


def test_after_the_handshake_the_peer_is_who_initialize_named() -> None:
    peer = opened().admit("tools/list", None)
    assert peer == Peer(by_name("2025-06-18") or LATEST, INFO, CAN, "info", "alice")
    assert opened().admit("tools/list", RequestMeta(log_level="debug")) == peer


def test_initialize_again_starts_over() -> None:
    session = opened()
    session.set_level("error")
    session.subscribed["a:b"] = True
    session.state["kept"] = 1
    before = session.state
    session.admit("tools/list", None)
    session.open(InitializeRequestParams("2024-11-05", ClientCapabilities(), INFO))
    assert session.peer is not None
    assert (session.peer.revision.name, session.peer.log_level) == ("2024-11-05", "info")
    assert session.subscribed == {}
    assert session.state == {}
    assert before == {"kept": 1}  # what still runs for the old session keeps what it has
    assert not session.ready


def test_the_level_belongs_to_the_peer_and_needs_one() -> None:
    session = opened()
    session.set_level("error")
    assert session.admit("tools/list", None).log_level == "error"
    unopened = Session()
    unopened.set_level("error")
    assert unopened.peer is None


def test_a_client_is_ready_once_it_says_so_or_asks_for_something() -> None:
    told: list[bool] = []
    session = opened()
    session.on_ready = lambda: told.append(True)
    session.admit("ping", None)
    assert not session.ready
    session.admit("tools/list", None)
    session.admit("tools/list", None)
    assert session.ready
    assert told == [True]
    session = opened()
    session.initialized = True
    assert session.ready


# --------------------------------------------------------------------------------------------------- per request


@STATES
def test_a_request_that_brings_its_peer_is_served_in_any_state(state: Any) -> None:
    session = state()
    before = session.peer
    peer = session.admit("tools/list", meta(log_level="debug"))
    assert (peer.revision, peer.info, peer.capabilities, peer.log_level) == (LATEST, INFO, CAN, "debug")
    assert peer.principal == session.principal
    assert session.peer is before


@STATES
@pytest.mark.parametrize("version", ["2025-11-25", "2024-11-05", "1900-01-01", "", "2099-01-01"])
def test_another_revision_in_meta_is_refused_with_what_is_supported(state: Any, version: str) -> None:
    error = refusal(state(), "tools/list", meta(version))
    assert error.code == -32022
    assert error.data == {"supported": ["2026-07-28"], "requested": version}


@STATES
def test_initialize_that_brings_its_peer_is_no_method(state: Any) -> None:
    assert refusal(state(), "initialize", meta()).code == -32601


@STATES
def test_a_request_that_brings_half_a_peer_says_what_is_missing(state: Any) -> None:
    error = refusal(state(), "tools/list", RequestMeta(protocol_version="2026-07-28"))
    assert error.code == -32602
    assert "io.modelcontextprotocol/clientCapabilities" in error.message


def test_only_per_request_revisions_are_listed_newest_first() -> None:
    assert per_request_revisions() == [revision.name for revision in reversed(REVISIONS) if not revision.handshake]
