"""Every fault of a server over a stream, at every moment: each call ends in time and rightly, and nothing is left."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from modelwire import (
    Client,
    ConnectionFailed,
    ConnectionLost,
    ModelwireError,
    ProtocolViolation,
    RequestTimeout,
    ToolsChanged,
)
from tests.robustness.fed_stream import FedStream
from tests.robustness.malformed import PER_REQUEST
from tests.robustness.opening import opening_result
from tests.robustness.server_model import SUBSCRIPTION_KEY
from tests.robustness.turning import TurnedLoop

MAX_MESSAGE = 10_000
TOOL = {"inputSchema": {"type": "object"}}


class Faulty(FedStream):
    """A stream to a server that is right but for one fault, once.

    Args:
        moment: When it goes wrong.
        fault: What it does then, called with the stream and the request; returns whether it has answered that.
        revision: What the server speaks.
    """

    def __init__(self, moment: str, fault: Fault, revision: str) -> None:
        super().__init__(MAX_MESSAGE)
        self.moment, self.fault, self.revision = moment, fault, revision
        self.unable = False
        """Set once nothing can be sent any more."""
        self.silent = False
        self.at("before anything")

    async def send(self, frame: bytes) -> None:
        if self.unable:
            raise OSError("the cable was cut")
        await super().send(frame)
        for message in self.sent():
            if "id" in message and not self.silent:
                self.react(message)

    async def aclose(self) -> None:
        self.at("when it is closed")
        await super().aclose()

    def at(self, moment: str, request: Any = None) -> bool:
        if moment != self.moment:
            return False
        self.moment = ""
        return self.fault(self, request)

    def react(self, request: Any) -> None:
        method = request["method"]
        second = method == "tools/list" and "cursor" in request.get("params", {})
        if self.at("during the second page" if second else MOMENT_OF.get(method, ""), request):
            return
        if method == "subscriptions/listen":
            self.listened(request)
        elif method == "server/discover" and self.revision != PER_REQUEST:
            self.say({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no"}})
        else:
            self.say(self.right(request))
            if method == "ping":
                self.at("between two calls")

    def listened(self, request: Any) -> None:
        meta = {"_meta": {SUBSCRIPTION_KEY: request["id"]}}
        agreed = {**meta, "notifications": {"toolsListChanged": True}}
        self.say({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": agreed})
        if not self.at("during a listening", request):
            self.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": meta})

    def right(self, request: Any) -> dict[str, Any]:
        """Return the answer that is right."""
        method = request["method"]
        more = "cursor" not in request.get("params", {})
        results: dict[str, Any] = {
            "tools/call": {"content": [{"type": "text", "text": "done"}]},
            "tools/list": {
                "tools": [{**TOOL, "name": "one" if more else "two"}],
                **({"nextCursor": "2"} if more else {}),
            },
            "ping": {},
            "subscriptions/listen": {"_meta": {SUBSCRIPTION_KEY: request["id"]}},
        }
        result = results[method] if method in results else opening_result(method, self.revision)
        return {"jsonrpc": "2.0", "id": request["id"], "result": result}

    def drip(self, request: Any) -> bool:
        for byte in json.dumps(self.right(request)).encode() + b"\n":
            self.feed(bytes([byte]))
        return True

    def fall_silent(self) -> bool:
        self.silent = True
        return True

    def cut(self) -> bool:
        self.unable = True
        return self.fall_silent()


Fault = Callable[[Faulty, Any], bool]
MOMENT_OF = {
    "server/discover": "before the answer to the probe",
    "initialize": "before the answer to initialize",
    "tools/call": "during a call",
}
NEWS = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}


def fine(put: Callable[[Faulty], object]) -> Fault:
    """Return the fault that adds something to what is right."""
    return lambda stream, request: bool(put(stream))


FAULTS: dict[str, tuple[str, Fault, str]] = {
    "hangs up": ("lost", lambda stream, request: stream.hang_up() or True, "the server closed the connection"),
    "breaks": ("lost", lambda stream, request: stream.break_off() or True, "the test broke the connection"),
    "takes nothing any more": ("cut", lambda stream, request: stream.cut(), "the cable was cut|nothing was heard"),
    "falls silent": ("late", lambda stream, request: stream.fall_silent(), "nothing was heard meanwhile"),
    "says half a line and falls silent": (
        "late",
        lambda stream, request: stream.feed(b'{"jsonrpc":') or stream.fall_silent(),
        "nothing was heard meanwhile",
    ),
    "says half a line and hangs up": (
        "lost",
        lambda stream, request: stream.feed(b'{"jsonrpc":') or stream.hang_up() or True,
        "the server closed the connection",
    ),
    "prints a line": ("fine", fine(lambda stream: stream.feed(b"[INFO] 100% {ready}\n")), ""),
    "prints no UTF-8": ("fine", fine(lambda stream: stream.feed(b"\xff\xfe \x00 bad\n")), ""),
    "prints a giant line": ("fine", fine(lambda stream: stream.feed(b"#" * 5 * MAX_MESSAGE + b"\n")), ""),
    "answers nobody": ("fine", fine(lambda stream: stream.say({"jsonrpc": "2.0", "id": 4711, "result": {}})), ""),
    "complains to nobody": (
        "fine",
        fine(lambda stream: stream.say({"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "?"}})),
        "",
    ),
    "floods with notifications": ("fine", fine(lambda stream: stream.say(*[NEWS] * 1000)), ""),
    "drips": ("fine", lambda stream, request: stream.drip(request), ""),
    "answers twice": ("fine", lambda stream, request: stream.say(*[stream.right(request)] * 2) or True, ""),
    "answers with a result and an error": (
        "wrong",
        lambda stream, request: stream.say({**stream.right(request), "error": {"code": 1, "message": "?"}}) or True,
        "never both",
    ),
    "answers with a number": (
        "wrong",
        lambda stream, request: stream.say({**stream.right(request), "result": 5}) or True,
        "is invalid",
    ),
}
OPENING = "before anything", "before the answer to the probe", "before the answer to initialize"
UNASKED = "before anything", "between two calls", "when it is closed"
MOMENTS = (*OPENING, *UNASKED[1:], "during a call", "during the second page", "during a listening")
ERRORS: dict[str, tuple[type[ModelwireError], ...]] = {
    "lost": (ConnectionLost,),
    "cut": (ConnectionLost, RequestTimeout),
    "late": (RequestTimeout,),
    "wrong": (ProtocolViolation,),
}
ANSWERING = {"drips", "answers twice", "answers with a result and an error", "answers with a number"}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_costs_only_what_it_must(name: str, moment: str) -> None:
    if name in ANSWERING and moment in UNASKED:
        return
    outcome, fault, words = FAULTS[name]
    with TurnedLoop() as loop:
        loop.forgiven = lambda record: "reading from" in record.getMessage()
        discovers = moment == "before the answer to the probe" and outcome == "fine"
        revision = PER_REQUEST if discovers or moment == "during a listening" else "2025-11-25"
        pinned = "2025-11-25" if moment == "before the answer to initialize" else None
        client = loop.finish(made(moment, fault, revision, pinned))
        goes_wrong(loop, client, outcome, moment, words)
        loop.finish(client.close())
        assert not client.connected


async def made(moment: str, fault: Fault, revision: str, pinned: str | None) -> Client:
    return Client(Faulty(moment, fault, revision), revision=pinned)


def goes_wrong(loop: TurnedLoop, client: Client, outcome: str, moment: str, words: str) -> None:
    errors = ERRORS.get(outcome)
    if moment in OPENING:
        if outcome == "wrong":
            errors = (ConnectionFailed,) if moment == "before the answer to initialize" else None
        ends(loop, client.connect(), errors, words)
        if errors is None:
            assert loop.finish(client.call("x"), within=0) == "done"
        return
    loop.finish(client.connect())
    if moment == "between two calls":
        loop.finish(client.ping(), within=0)
    if moment == "during a listening":
        listens(loop, client, outcome, words)
    elif moment != "when it is closed":
        ends(loop, client.list_tools() if moment == "during the second page" else client.call("x"), errors, words)
    if outcome in ("fine", "wrong") and moment != "when it is closed":
        assert loop.finish(client.call("x"), within=0) == "done"


def ends(loop: TurnedLoop, work: Any, errors: tuple[type[ModelwireError], ...] | None, words: str) -> None:
    """See that work ends, and how; only silence is waited for."""
    if errors is None:
        loop.finish(work, within=0)
        return
    with pytest.raises(errors, match=words):
        loop.finish(work, within=61 if RequestTimeout in errors else 0)


def listens(loop: TurnedLoop, client: Client, outcome: str, words: str) -> None:
    events = loop.finish(client.listen(tools=True).__aenter__(), within=0)
    hearing = loop.start(anext(events, None))
    if outcome in ("late", "cut"):
        loop.advance(10_000)
        assert not hearing.done(), "to listen is to wait"
    elif outcome == "lost" or "both" in words:
        with pytest.raises(ConnectionLost, match=f"nothing more will be told: .*({words})"):
            loop.finish(hearing, within=0)
    else:
        assert loop.finish(hearing, within=0) in (ToolsChanged(), None)
    loop.finish(events.aclose())
    if not hearing.done():
        hearing.cancel()
        loop.idle()
