"""What servers are asked: the frames, and whether their answers are right.

A check is given the parsed answer and gives back whether it is what the request with that id must be answered with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from benchmarks.child import BenchError
from benchmarks.programs import tools

HANDSHAKE, PER_REQUEST = "2025-11-25", "2026-07-28"
_CLIENT = {"name": "bench", "version": "1.0.0"}
_META = {
    "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
    "io.modelcontextprotocol/clientInfo": _CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}

_encode = msgspec.json.encode
_decode = msgspec.json.decode


@dataclass(frozen=True)
class Ask:
    """One kind of request.

    Args:
        method: The method.
        params: Makes the parameters of the request with that id.
        right: Whether a result is right for the request with that id.
        notices: How many progress notifications come before the answer.
    """

    method: str
    params: Callable[[int], dict[str, Any]]
    right: Callable[[int, Mapping[str, Any]], bool]
    notices: int = 0

    @property
    def lines_each(self) -> int:
        """How many lines answer one request."""
        return 1 + self.notices

    def frames(self, ids: range, revision: str = HANDSHAKE) -> list[bytes]:
        """Return one request, as a line, for each id."""
        return [request(id_, self.method, self._params(id_, revision)) for id_ in ids]

    def _params(self, id_: int, revision: str) -> dict[str, Any]:
        meta = dict(_META) if revision == PER_REQUEST else {}
        if self.notices:
            meta["progressToken"] = id_
        return {**self.params(id_), "_meta": meta} if meta else self.params(id_)

    def verify(self, ids: range, lines: Sequence[bytes]) -> None:
        """Hold every line against what must come.

        Raises:
            BenchError: An answer is wrong, missing or double, or a notification is.
        """
        unanswered = set(ids)
        progress = dict.fromkeys(ids, 0)
        for line in lines:
            try:
                right = self._take(_decode(line), unanswered, progress)
            except (msgspec.MsgspecError, LookupError, TypeError, ValueError, AttributeError):
                right = False  # no JSON, or of a form so different that it cannot be looked at
            if not right:
                raise BenchError(f"wrong answer to {self.method}: {line[:500]!r}")
        if unanswered:
            raise BenchError(f"{len(unanswered)} requests of {self.method} were not answered")

    def _take(self, message: dict[str, Any], unanswered: set[int], progress: dict[int, float]) -> bool:
        """Return whether a message may come now, and remember that it came."""
        if "method" in message:
            token, done = message["params"]["progressToken"], message["params"]["progress"]
            progress[token] += 1
            return token in unanswered and done == progress[token]
        id_ = message["id"]
        expected = id_ in unanswered and progress[id_] == self.notices
        unanswered.discard(id_)
        return expected and self.right(id_, message["result"])


def request(id_: int, method: str, params: Mapping[str, Any]) -> bytes:
    """Return a request as a line."""
    return _encode({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}) + b"\n"


INITIALIZE = request(0, "initialize", {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": _CLIENT})
# The ping makes sure that the notification before it has been dealt with.
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n' + request(1, "ping", {})


def check_opening(lines: Sequence[bytes]) -> None:
    """Hold the answers to `INITIALIZE` and `INITIALIZED` against what must come.

    Raises:
        BenchError: The server speaks something else.
    """
    opened, pong = map(_decode, lines)
    if opened.get("result", {}).get("protocolVersion") != HANDSHAKE or pong.get("result") != {}:
        raise BenchError(f"the handshake failed: {lines!r}")


# ---------------------------------------------------------------- tools/call


def call(
    tool: str, arguments: Callable[[int], dict[str, Any]], right: Callable[[int, Mapping[str, Any]], bool], **more: Any
) -> Ask:
    """Return the request for a call of a tool."""
    return Ask("tools/call", lambda id_: {"name": tool, "arguments": arguments(id_)}, right, **more)


def _says(text: str, result: Mapping[str, Any], *, error: bool = False) -> bool:
    return result["content"] == [{"type": "text", "text": text}] and result.get("isError", False) is error


def _is_sum(id_: int, result: Mapping[str, Any]) -> bool:
    # 2026-07-28 allows any structured content; before it, and with `mcp` in it, what is no object is wrapped in one.
    return _says(str(id_ + 2), result) and result["structuredContent"] in (id_ + 2, {"result": id_ + 2})


def adding(tool: str) -> Ask:
    """Return the request for a sum."""
    return call(tool, lambda id_: {"a": id_, "b": 2}, _is_sum)


def echoing(size: int) -> Ask:
    """Return the request for an echo of so many bytes of text."""
    text = ("0123456789abcde " * (size // 16 + 1))[:size]
    return call("echo", lambda id_: {"text": text}, lambda id_, result: _says(text, result))


ADD = adding("add")
ADD_AFTER_A_TURN = adding("add_after_a_turn")
ADD_IN_THREAD = adding("add_in_thread")
REFUSED = call("refuse", lambda id_: {}, lambda id_, result: _refusal(result))
PROGRESS = call("steps", lambda id_: {}, lambda id_, result: _says("done", result), notices=tools.STEPS)


def _refusal(result: Mapping[str, Any]) -> bool:
    # `mcp` writes a preamble before the tool's own words.
    [block] = result["content"]
    return result["isError"] is True and block["text"].endswith(tools.REFUSAL)


# ---------------------------------------------------------------- other methods


def _is_full_list(id_: int, result: Mapping[str, Any]) -> bool:
    found = result["tools"]
    names = {tool["name"] for tool in found}
    return (
        len(found) == len(names) == tools.MANY_COUNT
        and "nextCursor" not in result
        and all(len(tool["inputSchema"]["properties"]) == 5 for tool in found)
        and all(tool["description"].startswith("Search the collection") for tool in found)
    )


def _is_page(id_: int, result: Mapping[str, Any]) -> bool:
    [page] = result["contents"]
    return (page["uri"], page["text"], page["mimeType"]) == (tools.PAGE_URI, tools.PAGE_TEXT, "text/plain")


LIST_TOOLS = Ask("tools/list", lambda id_: {}, _is_full_list)
READ_PAGE = Ask("resources/read", lambda id_: {"uri": tools.PAGE_URI}, _is_page)
