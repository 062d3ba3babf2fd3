"""Streamable HTTP, as far as it can be decided by looking: who may ask, with which headers, and which status answers.

The headers of 2026-07-28 repeat parts of the body, so that machines in between need not read it; "servers that process
the request body MUST reject requests where the values specified in the headers do not match" it. Nothing here reads a
socket or keeps anything.
"""

from __future__ import annotations

import base64
import binascii
import functools
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from ipaddress import AddressValueError, IPv6Address, ip_address
from typing import Any, Final, NamedTuple

from modelwire.errors import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_REVISION,
    ConfigError,
)
from modelwire.protocol import jsonrpc
from modelwire.protocol.revisions import REVISIONS, Revision, by_name
from modelwire.rules.param_headers import Path, value_at
from modelwire.rules.settings import several

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""The names of this machine that nobody else has."""

_STATUS: Final = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_REVISION: 400,
    METHOD_NOT_FOUND: 404,
}
_BASE64 = re.compile(r"=\?base64\?(.*)\?=\Z", re.DOTALL)
_PLAIN = re.compile(r"[!-<>-~][\x20-\x7e]*\Z")
"""What is no base64 form, which begins with an equals sign, and has nothing that no header may have."""
_VISIBLE = re.compile(r"[\t\x20-\x7e]*\Z")
_NUMBER = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,4})?\Z")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_AUTHORITY = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([^:/?#@,\s\[\]]+))(?::([0-9]{1,5}))?\Z")
_ORIGIN = re.compile(r"[!-~]+\Z")
_NAMED_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#@*\s]+/?\Z")
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


class Headers:
    """The headers of a request, by lower-case name.

    Args:
        raw: Names and values as they came.
    """

    __slots__ = ("_found",)

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        # Most are never looked at, so that their values stay as they came until somebody does.
        self._found: dict[str, list[bytes]] = {}
        for name, value in raw:
            known = _name(name)
            if known in self._found:
                self._found[known].append(value)
            else:
                self._found[known] = [value]

    def one(self, name: str) -> str | None:
        """Return a header that may stand once; None for none, and several as the list that they are together."""
        found = self._found.get(name)
        if found is None:
            return None
        return _value(found[0]) if len(found) == 1 else ", ".join(map(_value, found))

    def all(self, name: str) -> list[str]:
        """Return every header of a name."""
        return [_value(value) for value in self._found.get(name, ())]

    def plain(self) -> dict[str, str]:
        """Return all of them, several of a name joined by commas."""
        return {name: ", ".join(map(_value, values)) for name, values in self._found.items()}


@functools.lru_cache(maxsize=512)
def _name(raw: bytes) -> str:
    return raw.decode("latin-1").lower()


def _value(raw: bytes) -> str:
    return raw.decode("latin-1").strip(" \t")


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer without a look at the message.

    Attributes:
        status: The HTTP status.
        reason: What is wrong, for people.
        code: The JSON-RPC error code of the body.
        headers: More headers.
    """

    status: int
    reason: str
    code: int = INVALID_REQUEST
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def body(self, id_: bytes | None = None) -> bytes:
        """Return the JSON-RPC error that goes with it."""
        return jsonrpc.encode_error(id_, self.code, self.reason)


def named_hosts(given: Any) -> Collection[str]:
    """Return the setting ``allowed_hosts=``, checked.

    Raises:
        ConfigError: It is no list of names, or one of them is no name that a ``Host`` header may have.
    """
    names = several(given, "allowed_hosts", str, 'a list of names, such as ["api.example", "localhost:8000"]')
    for name in names:
        if name != "*" and _host(name) is None and _host(f"[{name}]") is None:
            raise ConfigError(f"allowed_hosts= has names such as 'api.example' or 'localhost:8000'; {name!r} is none")
    return names


def named_origins(given: Any) -> Collection[str]:
    """Return the setting ``allowed_origins=``, checked.

    Raises:
        ConfigError: It is no list of origins, or one of them is none that a browser would ever name.
    """
    origins = several(given, "allowed_origins", str, 'a list of origins, such as ["https://app.example"]')
    for origin in origins:
        if origin not in ("*", "null") and not _NAMED_ORIGIN.match(origin):
            raise ConfigError(f"allowed_origins= has origins such as 'https://app.example'; {origin!r} is none")
    return origins


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches an address."""
    if address in LOOPBACK:
        return True
    try:
        found = ip_address(address)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None  # as a socket for both sees IPv4
    return (mapped or found).is_loopback


def status_of(frame: bytes, id_: bytes) -> int:
    """Return the status of an answer of 2026-07-28 that stands alone.

    Args:
        frame: The answer, as `modelwire.protocol.jsonrpc` writes it.
        id_: The request's id as JSON.
    """
    code = jsonrpc.code_of(frame, id_)
    return 200 if code is None else _STATUS.get(code, 200)


# ------------------------------------------------------------------ who may ask


@dataclass(frozen=True, slots=True)
class Allowed:
    """From where requests are accepted, against DNS rebinding: "Servers MUST validate the Origin header".

    Attributes:
        hosts: Names that the ``Host`` header may have, with or without a port; ``*`` or None for any.
        origins: Origins such as ``https://example.com`` beside those of ``hosts`` on loopback; ``*`` for any.
    """

    hosts: Collection[str] | None
    origins: Collection[str] = ()

    def refusal(self, headers: Headers) -> Refusal | None:
        """Return why a request is refused; None when it is not."""
        hosts = headers.all("host")
        if self.hosts is not None:
            name = _host(hosts[0]) if len(hosts) == 1 else None
            if name is None or not self._known(*name):
                said = ", ".join(hosts) or "none"
                return Refusal(403, f"the Host {said!r} is not served here; add it to allowed_hosts=")
        for origin in headers.all("origin"):
            if not self._origin(origin):
                return Refusal(403, f"the Origin {origin!r} may not ask; add it to allowed_origins=")
        return None

    def shares(self, headers: Headers) -> str | None:
        """Return the origin of the page that asks, where somebody has said that it may; None for any other."""
        for origin in headers.all("origin"):
            return origin if self._named(origin) else None
        return None

    def _named(self, origin: str) -> bool:
        if "*" in self.origins:
            return _ORIGIN.match(origin) is not None  # it is repeated to the page
        return _plain(origin) in {_plain(item.rstrip("/")) for item in self.origins}

    def _known(self, host: str, port: str | None) -> bool:
        hosts = self.hosts or ()
        if host in hosts or "*" in hosts:
            return True
        shown = f"[{host}]" if ":" in host else host
        known = {item.lower().removesuffix(".") for item in hosts}
        return bool({host, shown, f"{shown}:{port}"} & known)

    def _origin(self, origin: str) -> bool:
        if self._named(origin):
            return True
        scheme, slashes, rest = origin.partition("://")
        name = _host(rest) if slashes and scheme.lower() in ("http", "https") else None
        # A page of the machine itself is no stranger to a server that only the machine reaches.
        local = self.hosts is not None and "*" not in self.hosts
        return name is not None and name[0] in LOOPBACK and local and self._known(*name)


def _plain(origin: str) -> str:
    """An origin as browsers write it: in lower case, without the port that its scheme has anyway."""
    origin = origin.lower()
    return origin.removesuffix(_DEFAULT_PORTS.get(origin.partition(":")[0], "/"))


def _host(authority: str) -> tuple[str, str | None] | None:
    found = _AUTHORITY.match(authority)
    if found is None:
        return None
    if found[1] is None:
        return found[2].lower().removesuffix("."), found[3]
    try:
        return IPv6Address(found[1]).compressed, found[3]
    except AddressValueError:
        return None


# ------------------------------------------------------------------ what is accepted


def accepts(headers: Headers, kind: str) -> bool:
    """Whether the client takes answers of a media type. Without ``Accept`` it takes any (RFC 9110, 12.5.1)."""
    given = headers.one("accept")
    return given is None or _accepts(given, kind)


@functools.lru_cache(maxsize=256)
def _accepts(given: str, kind: str) -> bool:
    family = kind.partition("/")[0]
    best: tuple[int, float] = (-1, 0.0)
    for item in _QUOTED.sub('""', given).split(","):
        name, *parameters = (part.strip().lower() for part in item.split(";"))
        rank = (kind, f"{family}/*", "*/*").index(name) if name in (kind, f"{family}/*", "*/*") else None
        if rank is not None:
            best = max(best, (2 - rank, _quality(parameters)))
    return best[1] > 0


def _quality(parameters: Iterable[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def is_json(headers: Headers) -> bool:
    """Whether the body says that it is JSON."""
    given = headers.one("content-type")
    return given is not None and given.partition(";")[0].strip().lower() == JSON


# ------------------------------------------------------------------ headers and body (2026-07-28)


def revision_named(headers: Headers) -> Revision | str | None:
    """Return the revision of ``MCP-Protocol-Version``; None without one, the text where it is unknown."""
    given = headers.one("mcp-protocol-version")
    return None if given is None else by_name(given) or given


class Routed(NamedTuple):
    """What the headers of a request say that its body asks for.

    Attributes:
        version: The revision's name.
        method: The method.
        name: What the request is for, where ``Mcp-Name`` says so.
    """

    version: str
    method: str
    name: str | None


def routed(headers: Headers) -> Routed | None:
    """Return what the headers say, where each stands once and in plain letters; None where `mismatch` has to look."""
    found = [headers.all(name) for name in ("mcp-protocol-version", "mcp-method", "mcp-name")]
    if any(len(values) > 1 for values in found):
        return None
    version, method, name = (values[0] if values else None for values in found)
    if version is None or method is None or any(value and not _PLAIN.match(value) for value in (version, method, name)):
        return None
    return Routed(version, method, name)


def mismatch(
    headers: Headers, version: str | None, method: str, name: str | None, mirrored: Mapping[str, Any]
) -> str | None:
    """Return how the headers of a request contradict its body; None when they do not.

    Args:
        headers: The headers.
        version: The body's ``protocolVersion``.
        method: The body's method.
        name: What the request is for, where its method says that ``Mcp-Name`` repeats it; None where that header means
            nothing that we know, as for methods that we do not know.
        mirrored: The arguments that ``Mcp-Param-*`` headers repeat, by the rest of the header's name; None where there
            is none to repeat.
    """
    wanted: list[tuple[str, Any, bool]] = [("MCP-Protocol-Version", version, False), ("Mcp-Method", method, False)]
    if name is not None:
        wanted.append(("Mcp-Name", name, True))
    if mirrored:
        wanted += [(f"Mcp-Param-{key}", value, True) for key, value in mirrored.items()]
    for header, value, encoded in wanted:
        problem = _differs(header, headers.all(header.lower()), value, encoded)
        if problem is not None:
            return f"Header mismatch: {problem}"
    return None


def _differs(header: str, found: list[str], value: Any, encoded: bool) -> str | None:
    if len(found) == 1 and found[0] == value and _PLAIN.match(value):
        return None  # as nearly always
    if len(found) > 1:
        return f"{header} stands {len(found)} times"
    if value is None:
        # A server "MUST NOT expect the header"; one that is there says what the body does not.
        return f"{header} is there, and the body has nothing that it could repeat" if found and encoded else None
    if not found:
        return f"{header} is missing; the body says {_shown(value)}"
    if not _VISIBLE.match(found[0]):
        return f"{header} has characters that no header may have"
    said = _decoded(found[0]) if encoded else found[0]
    if said is None:
        return f"{header} is no well-formed base64"
    if said == _written(value) or (type(value) in (int, float) and _same_number(said, value)):
        return None
    return f"{header} header value {said[:100]!r} does not match body value {_shown(value)}"


def _decoded(value: str) -> str | None:
    found = _BASE64.match(value)
    if found is None:
        return value
    try:
        return base64.b64decode(found[1], validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _same_number(text: str, value: float) -> bool:
    """Whether a text is that number: "servers SHOULD compare the header value and the body value numerically"."""
    return _NUMBER.match(text) is not None and Decimal(text) == value


def _shown(value: Any) -> str:
    return repr(_written(value)[:100])


def mirrored(paths: Mapping[str, Path], arguments: Any) -> dict[str, Any]:
    """Return the arguments that headers repeat, by the name of the header.

    Args:
        paths: As `modelwire.rules.param_headers.param_headers` gives them.
        arguments: The arguments of the call, as JSON.
    """
    return {name: value_at(arguments, path) for name, path in paths.items()}


def known_revisions() -> str:
    """Return the names of all revisions, for people."""
    return ", ".join(revision.name for revision in REVISIONS)
