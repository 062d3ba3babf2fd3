"""What is measured: each measurement with its contestants, and the ratios that modelwire promises.

Numbers of requests are chosen so that one round of a contestant takes a few tenths of a second at most.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from benchmarks import requests
from benchmarks.contestants import (
    PEERS,
    ClientCalls,
    Contestant,
    CrowdCalls,
    IdleMemory,
    Import,
    Registration,
    ServerCalls,
    WebCalls,
    WebClientCalls,
    own,
    peer,
)
from benchmarks.programs import tools
from benchmarks.requests import Ask

OURS, PEER, BARE, BARE_ASGI = "modelwire", "mcp", "bare loop", "bare ASGI"


@dataclass(frozen=True)
class Bound:
    """A promise: modelwire costs at most so many times what another contestant costs."""

    against: str
    at_most: Fraction


@dataclass(frozen=True)
class Measurement:
    """One thing that is measured.

    Args:
        name: What ``--only`` takes.
        title: What it is, for people.
        unit: The unit of every figure.
        contestants: Start each of them, by name; modelwire first.
        bounds: What is promised of the ratios.
        rounds: How many rounds there are.
    """

    name: str
    title: str
    unit: str
    contestants: Mapping[str, Callable[[], Contestant]]
    bounds: tuple[Bound, ...] = ()
    rounds: int = 7


def _bounds(**at_most: Fraction | int) -> tuple[Bound, ...]:
    names = {"bare": BARE, "asgi": BARE_ASGI, "peer": PEER}
    return tuple(Bound(names[name], Fraction(value)) for name, value in at_most.items())


def _rounds(bounds: tuple[Bound, ...]) -> int:
    """What calls are promised to cost is measured for longer: a burst of other work then covers few of the rounds."""
    return 21 if bounds else 7


def _server(
    name: str,
    what: str,
    ask: Ask,
    chosen: str,
    counts: tuple[int, int],
    *,
    bare: bool = False,
    depth: int = 16,
    revision: str = requests.HANDSHAKE,
    bounds: tuple[Bound, ...] = (),
) -> Measurement:
    """Return the measurement of a server's CPU time per request; ``counts`` are modelwire's requests and the peer's."""
    count, peer_count = counts
    contestants: dict[str, Callable[[], Contestant]] = {
        OURS: lambda: ServerCalls(own("modelwire_server", chosen), ask, count, depth, revision),
        PEER: lambda: ServerCalls(peer("mcp_server", chosen), ask, peer_count, depth, revision),
    }
    if bare:
        contestants[BARE] = lambda: ServerCalls(own("bare_loop"), ask, count, depth, None)
    return Measurement(
        name, f"{what}, {depth} deep: server CPU per request", "µs", contestants, bounds, _rounds(bounds)
    )


def _web(
    name: str,
    what: str,
    ask: Ask,
    chosen: str,
    counts: tuple[int, int],
    *,
    started: str = "run",
    kind: str = "json",
    bare: bool = False,
    revision: str = requests.PER_REQUEST,
    bounds: tuple[Bound, ...] = (),
) -> Measurement:
    """Return the same of a server over HTTP, with 16 connections; ``started`` and ``kind`` are the programs' words."""
    count, peer_count = counts
    contestants: dict[str, Callable[[], Contestant]] = {
        OURS: lambda: WebCalls(own("modelwire_web", chosen, started), ask, count, revision=revision),
        PEER: lambda: WebCalls(peer("mcp_web", chosen, kind), ask, peer_count, revision=revision),
    }
    if bare:
        contestants[BARE_ASGI] = lambda: WebCalls(own("bare_asgi"), ask, count)
    return Measurement(
        name, f"{what} over HTTP, 16 deep: server CPU per request", "µs", contestants, bounds, _rounds(bounds)
    )


def _client(name: str, what: str, depth: int, revision: str, bounds: tuple[Bound, ...] = ()) -> Measurement:
    """Return the measurement of a client's CPU time per call, where both call the same server."""
    server = own("modelwire_server", tools.ADD)
    contestants: dict[str, Callable[[], Contestant]] = {
        OURS: lambda: ClientCalls(own("modelwire_client", revision, *server), 2000, depth),
        PEER: lambda: ClientCalls(peer("mcp_client", revision, *server), 200, depth),
    }
    return Measurement(name, f"{what}, {depth} deep: client CPU per call", "µs", contestants, bounds, _rounds(bounds))


def _web_client(name: str, what: str, depth: int, revision: str, bounds: tuple[Bound, ...] = ()) -> Measurement:
    """Return the same of a client over HTTP."""
    server = own("modelwire_web", tools.ADD, "run")
    contestants: dict[str, Callable[[], Contestant]] = {
        OURS: lambda: WebClientCalls(server, own("modelwire_client", revision), 1000, depth),
        PEER: lambda: WebClientCalls(server, peer("mcp_client", revision), 60, depth),
    }
    return Measurement(
        name, f"{what} over HTTP, {depth} deep: client CPU per call", "µs", contestants, bounds, _rounds(bounds)
    )


def _import(name: str, statement: str, peer_statement: str, bounds: tuple[Bound, ...] = ()) -> Measurement:
    """Return the measurement of what importing costs."""
    return Measurement(
        name,
        f"{statement} (mcp: {peer_statement}): CPU of the process",
        "ms",
        {OURS: lambda: Import(sys.executable, statement), PEER: lambda: Import(str(PEERS), peer_statement)},
        bounds,
    )


_CALL = _bounds(bare=4, peer=Fraction(1, 30))
_LIST = _bounds(peer=Fraction(1, 100))
_CLIENT = _bounds(peer=Fraction(1, 10))
_IMPORT = _bounds(peer=Fraction(1, 5))
_MEMORY = _bounds(peer=Fraction(1, 2))
_REGISTER = _bounds(peer=Fraction(1, 5))

_WEB = _bounds(asgi=Fraction(8, 5), peer=Fraction(1, 8))
_WEB_STREAM = _bounds(peer=Fraction(1, 8))

_ADD, _KIT = requests.ADD, tools.KIT

WEB_CALL = _web("web-call", "tools/call", _ADD, tools.ADD, (2000, 200), bare=True, bounds=_WEB)
WEB_PROGRESS = _web(
    "web-progress",
    f"a call that tells progress {tools.STEPS} times,",
    requests.PROGRESS,
    _KIT,
    (300, 60),
    kind="sse",
    bounds=_WEB_STREAM,
)

WEB_CLIENT = _web_client("web-client", "tools/call", 16, requests.PER_REQUEST, _CLIENT)

REGISTER = Measurement(
    "register",
    f"registering {Registration.TOOLS} tools of ten kinds: CPU of all of them",
    "ms",
    {
        OURS: lambda: Registration(own("modelwire_registration")),
        PEER: lambda: Registration(peer("mcp_registration")),
    },
    _REGISTER,
)

PROMISED = (
    _server("call", "tools/call", _ADD, tools.ADD, (5000, 300), bare=True, bounds=_CALL),
    _server("call-200", "tools/call with 200 tools", _ADD, tools.ADD_AMONG_200, (5000, 300), bare=True, bounds=_CALL),
    _server("list-200", "tools/list of 200 tools", requests.LIST_TOOLS, tools.MANY, (160, 16), bounds=_LIST),
    _client("client", "tools/call", 16, requests.HANDSHAKE, _CLIENT),
    _import("import", "import modelwire", "import mcp", _IMPORT),
    Measurement(
        "memory",
        "an idle server: resident memory",
        "MiB",
        {
            OURS: lambda: IdleMemory(own("modelwire_server", tools.ADD)),
            PEER: lambda: IdleMemory(peer("mcp_server", tools.ADD)),
        },
        _MEMORY,
        rounds=3,
    ),
    REGISTER,
    WEB_CALL,
    WEB_PROGRESS,
    WEB_CLIENT,
)
"""What has a bound."""

REPORTED = (
    _server("call-depth-1", "tools/call", _ADD, tools.ADD, (2000, 200), bare=True, depth=1),
    _server("call-depth-64", "tools/call", _ADD, tools.ADD, (5000, 300), bare=True, depth=64),
    _server("call-2026", "tools/call in 2026-07-28", _ADD, tools.ADD, (5000, 200), revision=requests.PER_REQUEST),
    _server("call-await", "tools/call of a function that waits", requests.ADD_AFTER_A_TURN, _KIT, (3000, 300)),
    _server("call-sync", "tools/call of a plain function", requests.ADD_IN_THREAD, _KIT, (1000, 200)),
    _server("echo-1k", "an echo of 1 KiB", requests.echoing(1 << 10), _KIT, (2000, 200)),
    _server("echo-64k", "an echo of 64 KiB", requests.echoing(1 << 16), _KIT, (160, 64)),
    _server("echo-1m", "an echo of 1 MiB", requests.echoing(1 << 20), _KIT, (12, 8), depth=4),
    _server("progress", f"a call that tells progress {tools.STEPS} times", requests.PROGRESS, _KIT, (500, 64)),
    _server("read", "resources/read of 1 KiB", requests.READ_PAGE, _KIT, (2000, 200)),
    _server("refused", "a call that ends in a tool error", requests.REFUSED, _KIT, (2000, 200)),
    _web("web-asgi", "tools/call, mounted under uvicorn,", _ADD, tools.ADD, (2000, 200), started="asgi", bare=True),
    _web("web-session", "tools/call of 2025-11-25", _ADD, tools.ADD, (2000, 100), revision=requests.HANDSHAKE),
    _web("web-await", "tools/call of a function that waits", requests.ADD_AFTER_A_TURN, _KIT, (1000, 200)),
    _web("web-echo-64k", "an echo of 64 KiB", requests.echoing(1 << 16), _KIT, (160, 64)),
    Measurement(
        "ids",
        "a million calls of 50 clients over HTTP, all with the id 1, each with its own answer: server CPU per call",
        "µs",
        {OURS: lambda: CrowdCalls(own("modelwire_web", _KIT, "run"), 200_000)},
        rounds=5,
    ),
    _client("client-1", "tools/call", 1, requests.HANDSHAKE),
    _web_client("web-client-1", "tools/call", 1, requests.PER_REQUEST),
    _web_client("web-client-session", "tools/call of 2025-11-25", 16, requests.HANDSHAKE),
    _client("client-2026", "tools/call in 2026-07-28", 16, requests.PER_REQUEST),
    # Names are loaded when they are first used, so that the import of the package alone is not the whole truth.
    _import(
        "import-names",
        "from modelwire import Client, Server",
        "from mcp import Client; from mcp.server import MCPServer",
    ),
)
"""What is there to be looked at."""

ALL = (*PROMISED, *REPORTED)
