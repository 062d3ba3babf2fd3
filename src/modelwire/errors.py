"""Every error that modelwire raises, as one tree.

    ModelwireError
    ├── ToolError                    a tool said no: ``isError: true`` with its content
    │   ├── Declined                     the user was asked and said no
    │   └── Dismissed                    the user was asked and chose nothing
    ├── RpcError                     a JSON-RPC error: code, message, data; handlers may raise it
    │   ├── NotFound                 a handler's word for "no such resource"
    │   ├── CapabilityRequired       the client cannot be asked: it did not declare that it can
    │   ├── UrlElicitationRequired   a URL has to be visited first (2025-11-25)
    │   └── PeerError                the other side answered with an error
    │       ├── MethodNotFound           -32601
    │       ├── InvalidParams            -32602
    │       │   └── ResourceNotFound     -32002, or -32602 with ``data.uri``
    │       ├── MissingCapability        -32021
    │       ├── UrlElicitationNeeded     -32042
    │       └── UnsupportedRevision      -32022
    └── LocalError                   this side; never dressed as an answer from the peer
        ├── RequestTimeout           no answer within the deadline
        ├── RequestCancelled         the request was given up before its answer
        ├── ConnectionFailed         the connection could not be opened
        ├── ConnectionLost           the connection ended while it was needed
        │   ├── ServerExited         the server's process ended: exit code, stderr
        │   └── HttpFailed           a request over HTTP got no answer: status, body, url
        ├── ProtocolViolation        the peer broke a rule of the specification
        │   └── FrameTooLarge        a message above ``max_message``
        ├── Unanswered               what the server asked could not be answered
        ├── WrongResult              a tool's result is not of the type that ``returns=`` asks for
        ├── SignatureError           a function that cannot become a tool, prompt or resource
        └── ConfigError              a setting or a call of the library that cannot work

This file holds no logic beyond building messages, and imports nothing of modelwire.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
"""Handshake revisions only; 2026-07-28 answers ``-32602`` instead."""
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_REVISION = -32022
URL_ELICITATION_REQUIRED = -32042
"""2025-11-25 only."""


class ModelwireError(Exception):
    """The root of every error that modelwire raises."""


class ToolError(ModelwireError):
    """A tool failed in a way that the model should read.

    A tool's function raises it, and the caller of ``Client.call`` receives it. On the wire it is a
    result with ``isError: true``, never a JSON-RPC error.

    Args:
        message: What happened, in words a model can act on.
        content: The content blocks of the result; by default one text block with the message.
    """

    def __init__(self, message: str, content: Sequence[Any] | None = None) -> None:
        self.message = str(message)  # people pass the exception that they caught
        super().__init__(self.message)
        self.content: list[Any] | None = None if content is None else list(content)


class Declined(ToolError):
    """The user was asked something and said no. Uncaught, it is the result of the tool: an error with these words."""


class Dismissed(ToolError):
    """The user was asked something and closed the question without an answer. Uncaught, it is the tool's result."""


class RpcError(ModelwireError):
    """A JSON-RPC error, to be raised by a handler or received as `PeerError`.

    Args:
        code: The integer code. Choose one outside -32768..-32000 for errors of your own.
        message: One sentence that says what happened.
        data: Anything that can be written as JSON, or None for no ``data`` member.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class NotFound(RpcError):
    """Raised by a handler: what the request names does not exist.

    Sent as ``-32002`` on handshake revisions when a resource was asked for, and as ``-32602`` otherwise
    (2026-07-28, server/resources, Error Handling).

    Args:
        message: What was not found.
        uri: The URI that was asked for, when it was a resource; a resource's own function may leave it out.
    """

    def __init__(self, message: str, *, uri: str | None = None) -> None:
        super().__init__(INVALID_PARAMS, message, None if uri is None else {"uri": uri})
        self.uri = uri


class CapabilityRequired(RpcError):
    """A handler had to ask the client something that it did not declare to be able to answer.

    Sent as ``-32021`` with ``requiredCapabilities`` on 2026-07-28; on handshake revisions, which have no code for it, a
    tool's result is an error.

    Args:
        capability: What is missing, as a dotted path such as ``elicitation.url``.
        why: Why it is.
    """

    def __init__(self, capability: str, why: str = "which yours did not declare") -> None:
        required: dict[str, Any] = {}
        inner = required
        for part in capability.split("."):
            inner[part] = inner = {}
        super().__init__(
            MISSING_CAPABILITY,
            f"this needs a client with the capability {capability}, {why}",
            {"requiredCapabilities": required},
        )
        self.capability = capability


class UrlElicitationRequired(RpcError):
    """Raised by a handler: the user has to visit a URL before the request can succeed (2025-11-25, ``-32042``).

    Other revisions have no such error; `Context.elicit_url` works on all that know URLs.

    Args:
        elicitations: What is to be done where: `types.ElicitRequestURLParams` with an ``elicitation_id`` each.
        message: One sentence for people.

    Raises:
        ConfigError: There is none, or one has no id.
    """

    def __init__(self, elicitations: Sequence[Any], message: str = "a URL has to be visited first") -> None:
        if not elicitations or not all(getattr(one, "elicitation_id", None) for one in elicitations):
            # "Any elicitations returned in the error MUST be URL mode elicitations and have an elicitationId property"
            raise ConfigError("UrlElicitationRequired takes types.ElicitRequestURLParams, with an elicitation_id each")
        super().__init__(URL_ELICITATION_REQUIRED, message, {"elicitations": list(elicitations)})
        self.elicitations = list(elicitations)


class PeerError(RpcError):
    """The other side answered a request with an error: ``code``, ``message``, ``data`` are its own."""


class MethodNotFound(PeerError):
    """``-32601``: the peer does not have the method."""


class InvalidParams(PeerError):
    """``-32602``: the peer refused the parameters; also an unknown tool or prompt."""


class ResourceNotFound(InvalidParams):
    """The peer has no resource of that URI (``-32002``, or ``-32602`` naming the URI in 2026-07-28)."""


class MissingCapability(PeerError):
    """``-32021``: the request needs a client capability that was not declared."""


class UnsupportedRevision(PeerError):
    """``-32022``: the peer does not speak the revision; ``supported`` lists those it does."""

    @property
    def supported(self) -> list[str]:
        """The revisions that the peer offers, as it listed them."""
        data = self.data
        found = data.get("supported") if isinstance(data, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]


class UrlElicitationNeeded(PeerError):
    """``-32042``: the request can be sent again once pages have been dealt with (2025-11-25)."""

    @property
    def elicitations(self) -> list[dict[str, Any]]:
        """The pages as they came: each with ``message``, ``url`` and ``elicitationId``."""
        data = self.data
        found = data.get("elicitations") if isinstance(data, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]


def peer_error(code: int, message: str, data: Any = None) -> PeerError:
    """Return the error class that fits what the peer answered."""
    if code == RESOURCE_NOT_FOUND:
        return ResourceNotFound(code, message, data)
    if code == INVALID_PARAMS and isinstance(data, dict) and set(data) == {"uri"}:  # pyright: ignore[reportUnknownArgumentType]
        return ResourceNotFound(code, message, data)
    return _BY_CODE.get(code, PeerError)(code, message, data)


_BY_CODE: dict[int, type[PeerError]] = {
    METHOD_NOT_FOUND: MethodNotFound,
    INVALID_PARAMS: InvalidParams,
    MISSING_CAPABILITY: MissingCapability,
    UNSUPPORTED_REVISION: UnsupportedRevision,
    URL_ELICITATION_REQUIRED: UrlElicitationNeeded,
}


class LocalError(ModelwireError):
    """Something on this side went wrong; the peer said nothing of the kind."""


class RequestTimeout(LocalError):
    """No answer came within the deadline.

    Args:
        method: The request's method.
        seconds: How long was waited.
        heard: What arrived meanwhile, one clause each.
        setting: The parameter that was the limit.
        process: The state of the server's process, one clause; empty where there is none.
        stderr: The end of what it wrote to stderr.
        place: Where the request went, where that is worth a word.
    """

    def __init__(
        self,
        method: str,
        seconds: float,
        heard: Sequence[str] = (),
        setting: str = "timeout",
        *,
        process: str = "",
        stderr: str = "",
        place: str = "",
    ) -> None:
        text = f"no answer to {method}{f' from {place}' if place else ''} within {seconds:g} s"
        text += f"; meanwhile: {'; '.join(heard)}" if heard else "; nothing was heard meanwhile"
        text += f"; {process}" if process else ""
        tail = _last_lines(stderr, 5)
        super().__init__(f"{text}. Pass {setting}= to wait longer." + (f"\n  stderr: {tail}" if tail else ""))
        self.method = method
        self.seconds = seconds
        self.heard = list(heard)
        self.setting = setting
        self.process = process
        self.stderr = stderr


class RequestCancelled(LocalError):
    """The request was given up before its answer arrived."""


class ConnectionFailed(LocalError):
    """A connection could not be opened, or not be listened for; the message says where, why, and what to try."""


class ConnectionLost(LocalError):
    """The connection ended while a request was open, or is no longer there."""

    def again(self, what: str) -> ConnectionLost:
        """Return the same condition as a new exception, for another request that it hits."""
        other = type(self)(f"{what}: {self}")
        other.__cause__ = self.__cause__
        return other


class ServerExited(ConnectionLost):
    """The server's process ended.

    Args:
        message: What was going on.
        exit_code: The exit status; negative is the signal's number; None when unknown.
        stderr: The end of what it wrote to stderr.
        earlier: How many characters of that it wrote before what was going on.
    """

    def __init__(self, message: str, *, exit_code: int | None, stderr: str = "", earlier: int = 0) -> None:
        before = len(stderr[:earlier].strip().splitlines())
        tail = _last_lines(stderr[earlier:])
        if before and tail:
            tail = f"({before} line{'' if before == 1 else 's'} before the request) ...\n{tail}"
        elif before:
            tail = f"(all of it before the request) {_last_lines(stderr)}"
        super().__init__(f"{message}\n  stderr: {tail}" if tail else message)
        self.exit_code = exit_code
        self.stderr = stderr
        self._message = message
        self._earlier = earlier

    def hinted(self, hint: str) -> ServerExited:
        """Return the same condition with a word on what may be the cause."""
        return self._with(f"{self._message}; {hint}", self._earlier)

    def again(self, what: str) -> ServerExited:
        """Return the same condition as a new exception, for another request that it hits."""
        return self._with(f"{what}: {self._message}", self._earlier)

    def since(self, earlier: int) -> ServerExited:
        """Return the same condition for a request before which so many characters of stderr were written."""
        return self._with(self._message, earlier)

    def _with(self, message: str, earlier: int) -> ServerExited:
        return ServerExited(message, exit_code=self.exit_code, stderr=self.stderr, earlier=earlier)


class HttpFailed(ConnectionLost):
    """A request over HTTP came to no answer: it was refused, or broke off. Other requests go on.

    Args:
        message: What happened, to what, and what to do next.
        status: The HTTP status; None where the server was not reached, or hung up.
        body: The beginning of the body that came instead of an answer.
        url: Where the request went, without its secrets.
        unsent: Whether the server cannot have acted on the request.
        broken: Whether this is of the kind that passes: the network failed, or a machine on the way.
        retry_after: Seconds that the server asks to wait.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        body: str = "",
        url: str = "",
        unsent: bool = False,
        broken: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = body
        self.url = url
        self.unsent = unsent
        self.broken = broken
        self.retry_after = retry_after

    def again(self, what: str) -> HttpFailed:
        """Return the same condition as a new exception, for another request that it hits."""
        return self._with(f"{what}: {self}")

    def besides(self, what: str) -> HttpFailed:
        """Return the same condition as a new exception, with something more that was tried."""
        return self._with(f"{self}. {what}")

    def _with(self, message: str) -> HttpFailed:
        other = HttpFailed(
            message,
            status=self.status,
            body=self.body,
            url=self.url,
            unsent=self.unsent,
            broken=self.broken,
            retry_after=self.retry_after,
        )
        other.__cause__ = self.__cause__
        return other


def _last_lines(stderr: str, most: int = 20) -> str:
    lines = stderr.strip().splitlines()
    kept = [line[:300] for line in lines[-most:]]
    return "\n".join([f"({len(lines) - most} lines before) ...", *kept] if len(lines) > most else kept)


class ProtocolViolation(LocalError):
    """The peer broke a rule.

    Args:
        rule: The rule, in the specification's words where it has any.
        frame: The bytes that broke it, where they are at hand.
    """

    def __init__(self, rule: str, frame: bytes | None = None) -> None:
        shown = "" if frame is None else f": {frame[:200].decode('utf-8', 'replace')}"
        super().__init__(f"{rule}{shown}")
        self.rule = rule
        self.frame = frame


class FrameTooLarge(ProtocolViolation):
    """A message is longer than ``max_message``; it was dropped, and the next one is read as usual.

    Args:
        limit: The value of ``max_message``, in bytes.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(f"message longer than max_message={limit} bytes; raise max_message to accept it")
        self.limit = limit


class WrongResult(LocalError):
    """A tool's result is not of the type that the caller asked for with ``returns=``; the tool has run.

    Args:
        tool: The tool's name.
        expected: What was asked for, in words.
        why: What came instead, and where inside it.
        result: The whole result, a `CallToolResult`.
    """

    def __init__(self, tool: str, expected: str, why: str, result: Any) -> None:
        super().__init__(
            f"the tool {tool!r} did not return what returns={expected} wants: {why}; the error's `result` is the whole "
            "of it"
        )
        self.tool = tool
        self.expected = expected
        self.why = why
        self.result = result


class Unanswered(LocalError):
    """What the server asked to finish a request was not answered: a function failed, or it asked too often."""


class SignatureError(LocalError):
    """A function cannot become a tool, prompt or resource; the message names the parameter."""


class ConfigError(LocalError):
    """A setting, or a call of the library, that cannot work."""
