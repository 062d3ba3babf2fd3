"""Which arguments of which tools a client repeats in headers (``x-mcp-header``, 2026-07-28 over HTTP).

"Clients using the Streamable HTTP transport MUST reject tool definitions where any x-mcp-header value violates these
constraints." The headers themselves are made where the requests are sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from modelwire.errors import HEADER_MISMATCH, PeerError
from modelwire.log import log as _log
from modelwire.protocol import types as t
from modelwire.rules.param_headers import InvalidParamHeader, Path, param_headers


class ToolHeaders:
    """The headers of one server's tools.

    Args:
        found: Where they are noted, by the tool's name; None where there are no such headers.
    """

    def __init__(self, found: dict[str, dict[str, Path]] | None) -> None:
        self._found = found

    def learn(self, tools: list[t.Tool]) -> list[t.Tool]:
        """Note the headers of tools as listed; return the tools without those that are invalid."""
        if self._found is None:
            return tools
        self._found.clear()
        return [tool for tool in tools if self._is_valid(tool, self._found)]

    def _is_valid(self, tool: t.Tool, found: dict[str, dict[str, Path]]) -> bool:
        try:
            paths = param_headers(tool.input_schema)
        except InvalidParamHeader as error:
            _log.warning("the tool %r is left out of the list, since its schema is invalid: %s", tool.name, error)
            return False
        if paths:
            found[tool.name] = paths
        return True

    async def unless_the_same(
        self, error: PeerError, tool: str, list_tools: Callable[..., Awaitable[object]], timeout: float | None
    ) -> None:
        """Raise the error of a call, unless it has other headers once the tools were listed again.

        "If the server rejects a request with a HeaderMismatch error [...] the client SHOULD call tools/list to check
        for changes to the tool's inputSchema, then retry" (2026-07-28, basic/transports/streamable-http).
        """
        if self._found is None or error.code != HEADER_MISMATCH:
            raise error
        before = self._found.get(tool)
        await list_tools(timeout=timeout, fresh=True)
        if self._found.get(tool) == before:
            raise error
