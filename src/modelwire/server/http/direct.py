"""Connections on which a call that never waits is answered as soon as its last byte has come.

A task, an event and the messages of ASGI cost more than most tools; here such a call needs none of them. Everything
else goes the way that uvicorn has for it, as if nobody had looked. Only `modelwire.server.http.run` uses this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from modelwire.rpc.bounds import LARGE
from modelwire.server.http.guarded import Guarded

if TYPE_CHECKING:
    from modelwire.server.http.app import App

_NO_PLAIN_PATH: Final = frozenset(b"?%#")


class Direct(Guarded):
    """A connection."""

    __slots__ = ("_held",)

    app: App
    parser: Any
    cycle: Any

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._held: list[bytes] | None = None
        """The body, as far as it has come, of a request that nobody has been told of yet."""

    def begin(self) -> None:
        """Hold a POST back until it is there as a whole, which is nearly always at once."""
        parser, cycle = self.parser, self.cycle
        if (
            parser.get_method() == b"POST"
            and (cycle is None or cycle.response_complete)
            and not (self.expect_100_continue or parser.should_upgrade() or self.flow.write_paused)
            and (self.limit_concurrency is None or len(self.connections) < self.limit_concurrency)
        ):
            self._held = []
        else:
            super().begin()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._held is not None and not self.transport.is_closing():
            self._let_go()

    def on_body(self, body: bytes) -> None:
        if self._held is None:
            super().on_body(body)
        else:
            self._held.append(body)

    def on_message_complete(self) -> None:
        if self._held is not None:
            answer = self._answer(b"".join(self._held))
            if answer is not None:
                self._held = None
                self._respond(*answer)
                return
            self._let_go()
        super().on_message_complete()

    def _let_go(self) -> None:
        """Have the application told of a request after all."""
        parts, self._held = self._held or (), None
        super().begin()
        for part in parts:
            super().on_body(part)

    def _answer(self, body: bytes) -> tuple[bytes, int] | None:
        if len(body) > LARGE or not self.parser.should_keep_alive() or self.parser.get_http_version() != "1.1":
            return None
        if not _NO_PLAIN_PATH.isdisjoint(self.url):
            return None
        scope: Any = {**self.scope, "method": "POST", "path": self.url.decode("ascii")}
        return self.app.directly(scope, body)

    def _respond(self, body: bytes, status: int) -> None:
        parts = [STATUS_LINE[status]]
        for name, value in self.server_state.default_headers:
            parts += (name, b": ", value, b"\r\n")
        parts += (b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body), body)
        self.transport.write(b"".join(parts))
        self.on_response_complete()
