"""A connection without a stream: frames are handed in, and what it sends lies in a list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from modelwire.protocol import types as t
from modelwire.protocol.jsonrpc import ErrorResponse, Notification
from modelwire.protocol.methods import Method
from modelwire.protocol.revisions import by_name
from modelwire.protocol.types import ClientCapabilities, Implementation, InitializeRequestParams
from modelwire.rpc.batch import BatchCall
from modelwire.rpc.call import Call
from modelwire.rpc.connection import Connection
from modelwire.rpc.dispatcher import Dispatcher, Route
from modelwire.rules.session import Session

INFO = Implementation("me", "1")


def route(name: str, handle: Callable[[Call], Any], **options: Any) -> Route:
    """Return the route of a method that no revision has; its params stay raw."""
    options.setdefault("params", None)
    since, until = options.pop("since", None), options.pop("until", None)
    return Route(Method(name, t.RequestParams, t.Result, "both", since=since, until=until), handle, **options)


class Desk:
    """One side of a connection, driven by hand.

    Args:
        *routes: The methods that it answers.
        revision: What was agreed on; None before the opening.
        **options: For the connection.
    """

    def __init__(self, *routes: Route, revision: str | None = "2025-11-25", **options: Any) -> None:
        self.noticed: list[Notification] = []
        self.strays: list[ErrorResponse] = []
        self.frames: list[bytes] = []
        self.dispatcher = Dispatcher(
            {each.method.name: each for each in routes},
            lambda connection, notification: self.noticed.append(notification),
            b'{"name":"desk","version":"1"}',
            lambda connection, error: self.strays.append(error),
        )
        session = Session()
        if revision is not None and (by_name(revision) or session).handshake:  # type: ignore[union-attr]
            session.open(InitializeRequestParams(revision, ClientCapabilities(), INFO))
        self.connection = Connection(self.dispatcher, self.frames.append, session=session, **options)
        self.connection.batching = revision == "2025-03-26"

    @property
    def sent(self) -> list[Any]:
        """What was sent, decoded."""
        return [json.loads(frame) for frame in self.frames]

    def take(self, message: Any) -> Any:
        """Hand a message in; return what the connection makes of it."""
        return self.connection.receive(message if isinstance(message, bytes) else json.dumps(message).encode())

    async def answer(self, message: Any) -> Any:
        """Hand a message in; return what is answered, or None."""
        taken = self.take(message)
        if isinstance(taken, bytes):
            return json.loads(taken)
        if isinstance(taken, Call):
            before = len(self.frames)
            await self.run(taken)
            return self.sent[before] if len(self.frames) > before else None
        if isinstance(taken, BatchCall):
            await asyncio.gather(*(self.run(call) for call in taken.calls))
            return None if taken.frame is None else json.loads(taken.frame)
        return None

    async def run(self, call: Call) -> None:
        """Answer a call in a task of its own, as a link does."""
        call.task = asyncio.create_task(self.dispatcher.answer(call))
        await asyncio.wait([call.task])

    def begin(self, method: str = "tools/call", params: bytes | None = None, **options: Any) -> asyncio.Task[Any]:
        """Send a request and go on."""
        options.setdefault("timeout", 60)
        return asyncio.create_task(self.connection.request(method, params, **options))


def request(id_: Any, method: str, params: Any = None) -> dict[str, Any]:
    """Return a request."""
    return {"jsonrpc": "2.0", "id": id_, "method": method} | ({} if params is None else {"params": params})


def notification(method: str, params: Any = None) -> dict[str, Any]:
    """Return a notification."""
    return {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})


def response(id_: Any, result: Any) -> dict[str, Any]:
    """Return a response."""
    return {"jsonrpc": "2.0", "id": id_, "result": result}
