"""What a server asks inside a result (``input_required``, 2026-07-28), in words.

This client answers no such questions by itself: it says what was asked, and how to answer. Nothing here is sent.
"""

from __future__ import annotations

from modelwire.errors import ConfigError, LocalError, ProtocolViolation
from modelwire.protocol import types as t
from modelwire.protocol.methods import METHODS


def unanswered(method: str, name: str, result: t.InputRequiredResult, capabilities: t.ClientCapabilities) -> LocalError:
    """Return the error for a result that asks for input.

    Args:
        method: The method that was called.
        name: What it was called for: the tool, prompt or URI.
        result: What came instead of the result.
        capabilities: What this client declared.
    """
    asked = result.input_requests or {}
    questions = "; ".join(_question(key, request) for key, request in asked.items())
    text = (
        f"{method} of {name!r} is not finished: the server asks for input"
        + (f" ({questions})" if questions else "")
        + ". This client does not answer by itself. Call "
        + f"client.request({method!r}, ...), which returns what was asked as it came, and once more with the same "
        + 'params and "inputResponses": {key: answer}'
        + (' and the "requestState" that came' if result.request_state is not None else "")
    )
    undeclared = sorted({request.method for request in asked.values() if not _declared(request.method, capabilities)})
    if undeclared:
        # "Servers MUST NOT send an inputRequests that the client has not declared support for in its capabilities."
        return ProtocolViolation(f"{text}. It must not ask for {', '.join(undeclared)}: capabilities= declares no such")
    return ConfigError(text)


def _question(key: str, request: t.ElicitRequest | t.CreateMessageRequest | t.ListRootsRequest) -> str:
    message = getattr(request.params, "message", None)
    return f"{request.method} {key!r}" + (f": {message}" if isinstance(message, str) else "")


def _declared(method: str, capabilities: t.ClientCapabilities) -> bool:
    needed = METHODS[method].capability
    return needed is None or getattr(capabilities, needed) is not None
