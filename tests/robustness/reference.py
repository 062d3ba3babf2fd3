"""JSON-RPC 2.0 as simply as it can be told, on top of `json`: what a frame is, to compare the real decoder with.

It knows nothing of `modelwire`, is slow, and has no limits of its own: `verdict` says None where a limit or a leniency
of ours decides.
"""

from __future__ import annotations

import json
import re
from typing import Any, Literal, NamedTuple

Kind = Literal["request", "notification", "response", "error", "batch", "invalid", "unparsable"]


class Verdict(NamedTuple):
    """What a frame is; ``id`` is its id's JSON as it came, where it can be read."""

    kind: Kind
    id: str | None = None


def verdict(frame: bytes) -> Verdict:
    """Say what a frame is."""
    try:
        value = json.loads(frame.decode("utf-8"), parse_constant=_refuse, parse_int=Spelled, parse_float=Spelled)
    except (ValueError, RecursionError):
        return Verdict("unparsable")
    return judge(value)


class Spelled(str):
    """A number as it was written."""


def _refuse(name: str) -> None:
    raise ValueError(name)


def judge(value: Any) -> Verdict:
    """Say what decoded JSON is; numbers in it must be `Spelled`."""
    if isinstance(value, list):
        return Verdict("batch")
    if not isinstance(value, dict) or isinstance(value, Spelled):
        return Verdict("invalid")
    id_ = spelling(value.get("id"))
    if value.get("jsonrpc") != "2.0" or isinstance(value["jsonrpc"], Spelled):
        return Verdict("invalid", id_)
    if "method" in value:
        return _called(value, id_)
    if ("result" in value) == ("error" in value):
        return Verdict("invalid", id_)
    if "result" in value:
        return Verdict("response", id_) if id_ is not None else Verdict("invalid")
    return _failed(value, id_)


def _called(value: dict[str, Any], id_: str | None) -> Verdict:
    method, params = value["method"], value.get("params")
    well = isinstance(method, str) and not isinstance(method, Spelled) and "result" not in value
    if not well or "error" in value or not isinstance(params, dict | list | None):
        return Verdict("invalid", id_)
    if "id" not in value:
        return Verdict("notification")
    return Verdict("request", id_) if id_ is not None else Verdict("invalid")


def _failed(value: dict[str, Any], id_: str | None) -> Verdict:
    error = value["error"]
    if id_ is None and value.get("id") is not None:
        return Verdict("invalid")
    if not isinstance(error, dict) or not _is_integer(error.get("code")):
        return Verdict("invalid", id_)
    if not isinstance(error.get("message"), str) or isinstance(error["message"], Spelled):
        return Verdict("invalid", id_)
    return Verdict("error", id_)


def _is_integer(value: Any) -> bool:
    return isinstance(value, Spelled) and re.fullmatch(r"-?[0-9]+", value) is not None


def spelling(id_: Any) -> str | None:
    """Return an id in one spelling; None when it is neither string nor integer."""
    if isinstance(id_, Spelled):
        return str(id_) if _is_integer(id_) else None
    return json.dumps(id_) if isinstance(id_, str) else None
