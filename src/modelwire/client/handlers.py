"""Who answers a server's requests: the functions that were handed to the client, as routes of its dispatcher."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
from msgspec import UNSET

from modelwire.protocol import types as t
from modelwire.protocol.methods import METHODS, Method
from modelwire.rpc.call import Call
from modelwire.rpc.dispatcher import Route

Handler = Callable[[dict[str, Any]], Any]
"""Answers one of the server's requests; may be async."""


def routes(handlers: Mapping[str, Handler]) -> dict[str, Route]:
    """Return the routes for the handlers, by method, and for ``ping``."""
    found = {"ping": Route(METHODS["ping"], lambda call: {}, t.RequestParams, immediate=True)}
    for name, handler in handlers.items():
        row = METHODS.get(name) or Method(name, t.RequestParams, t.Result, "server")
        found[name] = Route(row, _answering(handler), None)
    return found


def _answering(handler: Handler) -> Callable[[Call], Any]:
    async def answer(call: Call) -> Any:
        params = cast("dict[str, Any]", msgspec.json.decode(call.params)) if call.params is not UNSET else {}
        # A person may have to think about it; the server waits, so nothing that we wait for can be late.
        with call.connection.deadlines_stopped():
            result = handler(params)
            return await result if inspect.isawaitable(result) else result

    return answer
