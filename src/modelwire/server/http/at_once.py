"""Calls of tools that never wait, in 2026-07-28: one look at the body, one call, one answer, and nothing is kept.

Everything that is not of the commonest form is left to `modelwire.server.http.per_request`, which answers the same in
more steps; so nothing is refused here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import UNSET, Raw, Struct

from modelwire.errors import RpcError
from modelwire.protocol import jsonrpc
from modelwire.protocol.types import CallToolRequestParams
from modelwire.rpc.bounds import LARGE
from modelwire.rpc.call import Call
from modelwire.rpc.connection import Connection
from modelwire.rules.http import Routed, status_of
from modelwire.rules.session import Peer, Session
from modelwire.server.http.answers import Whole

if TYPE_CHECKING:
    from modelwire.protocol.meta import RequestMeta
    from modelwire.server.server import Server


class _Called(Struct, forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]
    id: int
    method: Literal["tools/call"]
    params: CallToolRequestParams


_decode = msgspec.json.Decoder(_Called).decode
_KNOWN = 128
"""How many different ``_meta`` are remembered: a client sends the same one again and again."""
_LARGEST_META = 4096
"""Bytes above which one is not."""


class AtOnce:
    """Answers such calls.

    Args:
        server: The server.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._dispatcher = server.dispatcher
        self._connection: Connection | None = None
        """Stands for the clients of all these calls, of which none can be told from another: nothing is ever sent
        over it, and no call is ever found in it."""
        self._askers: dict[tuple[bytes, str | None], tuple[RequestMeta, Peer]] = {}

    def answer(self, routed: Routed, body: bytes, principal: str | None) -> Whole | None:
        """Return the answer to a request; None where it is one of another kind.

        Args:
            routed: What the headers say.
            body: The body.
            principal: Who asks, where somebody has looked.
        """
        if routed.method != "tools/call" or len(body) > LARGE or self._server.observers:
            return None
        try:
            called = _decode(jsonrpc.checked(body))
        except (msgspec.MsgspecError, RecursionError, jsonrpc.InvalidFrame):
            return None
        params = called.params
        if params.name != routed.name or params.raw_meta is UNSET or not 0 < called.id < 1 << 53:
            return None
        asker = self._asker(params.raw_meta, principal)
        if asker is None or asker[0].protocol_version != routed.version:
            return None
        return self._answered(called, *asker)

    def _answered(self, called: _Called, meta: RequestMeta, peer: Peer) -> Whole | None:
        connection, route, params = self._here(), self._dispatcher.routes["tools/call"], called.params
        call = Call(connection, b"%d" % called.id, called.id, route.method, route.handle, params, meta, peer)
        now = None if route.now is None or params.input_responses is not None else route.now(call)
        if now is None or connection.loop.get_task_factory() is not None or self._repeated(params.name):
            return None
        frame = self._dispatcher.frame_now(call, now)
        call.open = False
        return Whole(status_of(frame, call.id), frame)

    def _repeated(self, name: str) -> bool:
        """Whether headers repeat arguments of a tool."""
        entry = self._server.features.tools.registry.get(name)
        return entry is None or bool(entry.headers)

    def _asker(self, raw: Raw, principal: str | None) -> tuple[RequestMeta, Peer] | None:
        key = bytes(raw), principal
        known = self._askers.get(key)
        if known is None:
            try:
                meta = self._dispatcher.meta(raw)
                peer = Session(principal).admit("tools/call", meta)
            except RpcError:
                return None
            if meta.protocol_version is None or peer.revision.name not in self._dispatcher.routes["tools/call"].allowed:
                return None
            known = meta, peer
            if len(self._askers) >= _KNOWN:
                self._askers.clear()
            if len(key[0]) <= _LARGEST_META:
                self._askers[key] = known
        return known

    def _here(self) -> Connection:
        loop = asyncio.get_running_loop()
        if self._connection is None or self._connection.loop is not loop:
            self._connection = Connection(self._dispatcher, _nowhere)
        return self._connection


def _nowhere(frame: bytes) -> None:
    raise AssertionError("nothing is sent while a call is answered that never waits")
