"""What a server asks inside a result (``input_required``, 2026-07-28) and nobody here answers, in words.

Nothing here is sent.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from modelwire.errors import ConfigError, LocalError, ProtocolViolation
from modelwire.protocol import types as t

CALLS = {"tools/call": "call_tool", "prompts/get": "get_prompt", "resources/read": "read_resource"}
"""The client's method for each method that may ask."""
_SETTINGS = {"sampling/createMessage": "on_sample=", "roots/list": "roots="}


def unanswered(method: str, name: str, result: t.InputRequiredResult, undeclared: Collection[str]) -> LocalError:
    """Return the error for a result that asks for input which nobody gives.

    Args:
        method: The method that was called.
        name: What it was called for: the tool, prompt or URI.
        result: What came instead of the result.
        undeclared: The keys of the questions that the client has not declared.
    """
    asked = result.input_requests or {}
    what = f"{method} of {name!r} is not finished: the server asks for input ({questions(result)})"
    if undeclared:
        # "Servers MUST NOT send an inputRequests that the client has not declared support for in its capabilities."
        kinds = ", ".join(sorted({kind(asked[key]) for key in undeclared}))
        return ProtocolViolation(
            f"{what}. It must not ask for {kinds}: the client declares no such thing. {_settings(asked, undeclared)}"
        )
    return ConfigError(
        f"{what}, and nobody answers. {_settings(asked, asked)} Or go on by hand: client.{CALLS[method]}(..., "
        "rounds=False) returns what was asked; send the same once more with input_responses={key: answer}"
        + (" and the request_state that came" if result.request_state is not None else "")
    )


def questions(result: t.InputRequiredResult) -> str:
    """Return what a result asks, one clause each."""
    asked = result.input_requests or {}
    return "; ".join(question(key, request) for key, request in asked.items()) or "nothing but to be asked again"


def question(key: str, request: Any) -> str:
    """Return one question in a clause."""
    message = getattr(request.params, "message", None)
    return f"{request.method} {key!r}" + (f": {message}" if isinstance(message, str) else "")


def kind(request: Any) -> str:
    """Return what kind of a question it is, so precisely as capabilities tell them apart."""
    return request.method + (" in URL mode" if isinstance(request.params, t.ElicitRequestURLParams) else "")


def _settings(asked: Any, keys: Collection[str]) -> str:
    found = {_setting(asked[key]) for key in keys}
    return f"Client(..., {', '.join(sorted(found))}...) would answer it." if found else ""


def _setting(request: Any) -> str:
    page = isinstance(request.params, t.ElicitRequestURLParams)
    return _SETTINGS.get(request.method, "on_elicit_url=" if page else "on_elicit=")
