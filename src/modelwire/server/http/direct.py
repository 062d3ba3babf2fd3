"""Connections whose requests are answered without ASGI, where nothing has to be waited for before they begin.

A task, an event and the messages of ASGI cost more than most tools, and an idle stream should be no larger than what is
known of it. Everything else goes the way that uvicorn has for it, as if nobody had looked: large bodies, requests that
are rare, servers that ask somebody else who the client is. Only `modelwire.server.http.run` uses this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from modelwire.log import log as _log
from modelwire.rpc.bounds import LARGE
from modelwire.server.http.answers import Whole
from modelwire.server.http.direct_reply import DirectReply
from modelwire.server.http.guarded import Guarded

if TYPE_CHECKING:
    from modelwire.server.http.app import App

_heads: dict[int, tuple[Any, bytes]] = {}
"""What every response begins with, by its status, and the headers that it was made of."""
_NO_PLAIN_PATH: Final = frozenset(b"?%#")
_FAILED: Final = (
    b"HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 21\r\n"
    b"connection: close\r\n\r\nInternal Server Error"
)


class Direct(Guarded):
    """A connection."""

    __slots__ = ("_failed", "_for_room", "_held", "_size_held")

    app: App
    parser: Any
    cycle: Any

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._held: list[bytes] | None = None
        """The body, as far as it has come, of a request that nobody has been told of yet."""
        self._size_held = 0
        self._for_room: list[Callable[[], Any]] | None = None
        self._failed = False

    # ------------------------------------------------------------------ reading

    def begin(self) -> None:
        """Hold a request back until it is there as a whole, which is nearly always at once."""
        parser, cycle = self.parser, self.cycle
        if self.timeout_keep_alive_task is not None:  # one that came in the same piece was answered already
            self._unset_keepalive_if_required()
        if (
            parser.get_method() in (b"POST", b"GET")
            and (cycle is None or cycle.response_complete)
            and not (self.expect_100_continue or parser.should_upgrade() or self.flow.write_paused)
            and (self.limit_concurrency is None or len(self.connections) < self.limit_concurrency)
        ):
            self._held = []
            self._size_held = 0
            return
        super().begin()
        # uvicorn reads no further while one waits behind another; but then nobody would see the client go.
        self.flow.resume_reading()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._held is not None and not self.transport.is_closing():
            try:
                self._let_go()
            except Exception:  # a URL that is none; while data is parsed that becomes the same
                self.send_400_response("Invalid HTTP request received.")

    def on_body(self, body: bytes) -> None:
        if self._held is None:
            super().on_body(body)
            return
        self._held.append(body)
        self._size_held += len(body)
        if self._size_held > LARGE:
            self._let_go()

    def on_message_complete(self) -> None:
        held, self._held = self._held, None
        if held is not None and not self._taken(b"".join(held)):
            self._held = held
            self._let_go()
            held = None
        if held is None:
            super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        reply = self._answering
        super().connection_lost(exc)
        self._unset_keepalive_if_required()  # uvicorn leaves it where the connection broke
        self._held = self._answering = None
        if isinstance(reply, DirectReply):
            reply.gone()
        if isinstance(self.cycle, DirectReply):
            self.cycle = None
        self._has_room()

    def _let_go(self) -> None:
        """Have the application told of a request after all."""
        parts, self._held = self._held or (), None
        super().begin()
        for part in parts:
            super().on_body(part)

    def _taken(self, body: bytes) -> bool:
        parser = self.parser
        if not parser.should_keep_alive() or parser.get_http_version() != "1.1":
            return False
        if not _NO_PLAIN_PATH.isdisjoint(self.url):
            return False
        scope: Any = self.scope
        scope["method"], scope["path"] = parser.get_method().decode("ascii"), self.url.decode("ascii")
        scope["raw_path"], scope["query_string"] = self.url, b""
        try:
            found = self.app.directly(scope, body, self._reply)
        except BaseException:
            # The parser makes a request of it that is no HTTP; see `send_400_response`.
            _log.exception("answering a request failed")
            self._failed = True
            raise
        if isinstance(found, Whole):
            self.write_whole(found)
            self.on_response_complete()
        elif found is not None:
            found.response.start(found)
        return found is not None

    def _reply(self, silences: Any, *how: Any) -> DirectReply:
        self.cycle = self._answering = DirectReply(self, silences, *how)
        return self.cycle

    def send_400_response(self, msg: str) -> None:
        if self._failed:
            self.transport.write(_FAILED)
            self.transport.close()
        else:
            super().send_400_response(msg)

    @property
    def _idle(self) -> bool:
        return self._held is None and super()._idle

    # ------------------------------------------------------------------ writing

    def head(self, status: int, headers: Iterable[tuple[bytes, bytes]] = ()) -> bytes:
        """Return the head of a response, without the line that ends it."""
        always = self.server_state.default_headers  # another one each second, since it tells the time
        known = _heads.get(status)
        if known is None or known[0] is not always:
            lines = (b"%b: %b\r\n" % header for header in always)
            known = _heads[status] = always, b"".join((STATUS_LINE[status], *lines))
        return known[1] + b"".join([b"%b: %b\r\n" % header for header in headers]) if headers else known[1]

    def write_whole(self, response: Whole) -> None:
        """Write a response."""
        status, body, headers = response
        head = self.head(status, headers)
        if body:
            self.transport.write(
                b"%bcontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (head, len(body), body)
            )
        else:
            self.transport.write(b"%bcontent-length: 0\r\n\r\n" % head)

    @property
    def unwritten(self) -> int:
        """Bytes that the client has not taken yet."""
        return self.transport.get_write_buffer_size()

    def when_room(self, callback: Callable[[], Any]) -> None:
        """Call a function once the client has taken what was written, or has gone."""
        if self._for_room is None:
            self._for_room = []
        self._for_room.append(callback)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._has_room()

    def _has_room(self) -> None:
        waiting, self._for_room = self._for_room or (), None
        for callback in waiting:
            self.loop.call_soon(callback)
