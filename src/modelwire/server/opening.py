"""How a conversation opens and closes: initialize, discover, ping, log level, and the closings that tutorials teach.

Everything here is answered at once, in the order of arrival, because what comes after depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from modelwire.log import log as _log
from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.protocol.methods import METHODS, Method
from modelwire.rpc.call import Call
from modelwire.rpc.dispatcher import Route
from modelwire.rules.session import per_request_revisions
from modelwire.server.caching import Caching

SHUTDOWN = Method("shutdown", t.RequestParams, t.Result, "client", until="2025-11-25")
"""In no revision: it comes from the Language Server Protocol. Tutorials teach it, so clients send it."""


class Opening:
    """Answers what opens a conversation.

    Args:
        info: Who the server is.
        capabilities: Returns what it can do at this moment.
        instructions: How a model should use it.
        caching: How clients may keep what ``server/discover`` says.
    """

    def __init__(
        self,
        info: t.Implementation,
        capabilities: Callable[[], t.ServerCapabilities],
        instructions: str | None,
        caching: Caching,
    ) -> None:
        self._info = info
        self._capabilities = capabilities
        self._instructions = instructions
        self._caching = caching

    def routes(self) -> list[Route]:
        """Return the routes of everything here."""
        return [
            Route(METHODS["initialize"], self._initialize, t.InitializeRequestParams, immediate=True),
            Route(METHODS["server/discover"], self._discover, t.RequestParams, immediate=True),
            Route(METHODS["ping"], _nothing, t.RequestParams, immediate=True),
            Route(METHODS["logging/setLevel"], _set_level, t.SetLevelRequestParams, immediate=True),
            Route(SHUTDOWN, _nothing, t.RequestParams, immediate=True),
        ]

    def _initialize(self, call: Call) -> bytes:
        session = call.connection.session
        revision = session.open(call.params)
        capabilities = self._capabilities()
        session.declared = msgspec.json.decode(wire.encode(capabilities, revision))
        _log.debug("opened with %r, revision %s", call.params.client_info.name, revision)
        result = t.InitializeResult(revision.name, capabilities, self._info, instructions=self._instructions)
        return wire.encode_result(result, call.method, revision, None)

    def _discover(self, call: Call) -> t.DiscoverResult:
        found = t.DiscoverResult(per_request_revisions(), self._capabilities(), instructions=self._instructions)
        return self._caching.stamp(found)


def _nothing(call: Call) -> dict[str, Any]:
    return {}


def _set_level(call: Call) -> dict[str, Any]:
    call.connection.session.set_level(call.params.level)
    return {}
