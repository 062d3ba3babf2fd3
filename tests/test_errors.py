"""Errors: the tree as it is drawn, and messages that say what to do."""

from __future__ import annotations

import inspect
import re

import pytest

from modelwire import errors
from modelwire.errors import (
    ConnectionLost,
    FrameTooLarge,
    InvalidParams,
    MethodNotFound,
    MissingCapability,
    ModelwireError,
    NotFound,
    PeerError,
    ProtocolViolation,
    RequestTimeout,
    ResourceNotFound,
    RpcError,
    ServerExited,
    ToolError,
    UnsupportedRevision,
    peer_error,
)


def drawn() -> dict[str, str]:
    """Return each error of the drawing with its parent."""
    parents: dict[int, str] = {}
    found: dict[str, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"( *(?:[│ ]   )*(?:[├└]── )?)([A-Z]\w+)(?: |$)", line)
        if match is None or not line.startswith("    "):
            continue
        depth = len(match[1]) // 4
        parents[depth] = match[2]
        if depth > 1:
            found[match[2]] = parents[depth - 1]
    return found


def test_the_drawing_is_true() -> None:
    classes = {
        name: value
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, ModelwireError) and value is not ModelwireError
    }
    assert drawn() == {name: kind.__base__.__name__ for name, kind in classes.items()}


@pytest.mark.parametrize(
    ("code", "data", "kind"),
    [
        (-32601, None, MethodNotFound),
        (-32602, None, InvalidParams),
        (-32602, {"uri": "a:b"}, ResourceNotFound),
        (-32602, {"uri": "a:b", "more": 1}, InvalidParams),
        (-32602, ["uri"], InvalidParams),
        (-32002, None, ResourceNotFound),
        (-32021, None, MissingCapability),
        (-32022, {"supported": []}, UnsupportedRevision),
        (-32000, None, PeerError),
        (7, None, PeerError),
    ],
)
def test_the_class_fits_the_code(code: int, data: object, kind: type[PeerError]) -> None:
    error = peer_error(code, "words", data)
    assert type(error) is kind
    assert (error.code, error.message, error.data) == (code, "words", data)
    assert str(error) == f"words ({code})"


@pytest.mark.parametrize(
    ("data", "supported"),
    [
        (None, []),
        ({}, []),
        ({"supported": "2026-07-28"}, []),
        ({"supported": ["2026-07-28", 5, None]}, ["2026-07-28"]),
        ([1], []),
    ],
)
def test_supported_revisions_are_read_from_whatever_came(data: object, supported: list[str]) -> None:
    assert UnsupportedRevision(-32022, "x", data).supported == supported


def test_a_local_condition_is_no_answer_of_the_peer() -> None:
    for kind in (RequestTimeout, ConnectionLost, ProtocolViolation, ServerExited):
        assert not issubclass(kind, RpcError)
        assert issubclass(kind, errors.LocalError)


def test_a_timeout_says_what_was_heard_and_which_setting_to_change() -> None:
    late = RequestTimeout("tools/call", 60.0)
    assert str(late) == (
        "no answer to tools/call within 60 s; nothing was heard meanwhile. Pass timeout= to wait longer."
    )
    late = RequestTimeout("tools/call", 0.5, ["progress 1", "2 notifications"], "max_timeout")
    assert str(late) == (
        "no answer to tools/call within 0.5 s; meanwhile: progress 1; 2 notifications. "
        "Pass max_timeout= to wait longer."
    )
    assert (late.method, late.seconds, late.setting) == ("tools/call", 0.5, "max_timeout")
    assert late.heard == ["progress 1", "2 notifications"]


def test_an_exit_quotes_the_end_of_stderr_and_can_be_told_of_each_request() -> None:
    exited = ServerExited("the server exited with code 1", exit_code=1, stderr="x" * 5000 + "\nno database\n")
    assert str(exited).endswith("no database")
    assert len(str(exited)) < 2100
    again = exited.again("tools/call was not sent")
    assert str(again).startswith("tools/call was not sent: the server exited with code 1\n  stderr: ")
    assert str(again).count("stderr:") == 1
    assert (again.exit_code, again.stderr) == (1, exited.stderr)
    assert str(ServerExited("gone", exit_code=None, stderr=" \n")) == "gone"


def test_a_lost_connection_can_be_told_of_each_request() -> None:
    first = ConnectionLost("the cable was cut")
    again = first.again("ping was not sent")
    assert again is not first
    assert str(again) == "ping was not sent: the cable was cut"


def test_a_violation_shows_the_beginning_of_the_frame() -> None:
    violation = ProtocolViolation("never both", b'{"a":"caf\xe9"}' + b"x" * 1000)
    assert str(violation).startswith('never both: {"a":"caf\ufffd"}xxx')
    assert len(str(violation)) < 300
    assert violation.rule == "never both"
    assert violation.frame is not None
    assert str(ProtocolViolation("a rule")) == "a rule"


def test_a_message_that_is_too_large_names_the_setting() -> None:
    error = FrameTooLarge(1024)
    assert "max_message=1024" in str(error)
    assert "raise max_message" in str(error)
    assert error.limit == 1024


def test_a_missing_resource_carries_its_uri() -> None:
    assert NotFound("no such log", uri="file:///x").data == {"uri": "file:///x"}
    assert NotFound("no such thing").data is None
    assert NotFound("no such thing").code == -32602


def test_a_tool_error_keeps_its_content() -> None:
    assert ToolError("no").content is None
    given = ("a", "b")
    assert ToolError("no", given).content == ["a", "b"]


def test_an_exit_says_what_of_stderr_came_before_the_request() -> None:
    exited = ServerExited("it exited", exit_code=1, stderr="starting\nready\nno paint\n")
    assert str(exited) == "it exited\n  stderr: starting\nready\nno paint"
    assert str(exited.since(15)) == "it exited\n  stderr: (2 lines before the request) ...\nno paint"
    assert (
        str(exited.since(9).again("lost"))
        == "lost: it exited\n  stderr: (1 line before the request) ...\nready\nno paint"
    )
    assert str(exited.since(24)).startswith("it exited\n  stderr: (all of it before the request) starting\n")
    assert exited.since(15).stderr == exited.stderr
    assert str(ServerExited("it exited", exit_code=1).since(0)) == "it exited"
