"""uvicorn's WebSockets with bounds: no peer makes it keep what it sends or does not read, or a connection that is dead.

What a WebSocket carries is `modelwire.server.http.websocket`'s business. Only `modelwire.server.http.run` uses this;
uvicorn and websockets are imported with it.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from modelwire.log import log as _log

CLOSE_SECONDS = 5.0
"""Seconds that a client may take to close, too, and to take what was sent to it before."""
FAIL_SECONDS = 1.0
"""The same for one that is cut off: what it still sends is thrown away for so long, lest it misses why."""
_UNREADABLE = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class GuardedWebSocket(WebSocketsSansIOProtocol):
    """A connection."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._failed = False
        self._pieces = bytearray()
        """A message that comes in fragments. In one piece: a list of them takes far more than their bytes."""
        self._pong: bytes | None = None
        """What is to be answered to the last ping, once there is room."""
        self._alive = False
        """Whether anything came since the last look."""
        self._unsent = 0
        """Bytes that waited to be sent at the last look."""

    # ------------------------------------------------------------------ in

    def data_received(self, data: bytes) -> None:
        self._alive = True
        if self._failed:
            self.conn.receive_data(data)  # which throws it away
            return
        super().data_received(data)
        problem = self.conn.handshake_exc
        if problem is not None and not self.handshake_initiated:
            # uvicorn does not look, and would wait for ever.
            _log.warning("a WebSocket was refused, since its request cannot be read: %s", problem)
            self.transport.write(b"".join(self.conn.data_to_send()) or _UNREADABLE)
            self.transport.close()

    def handle_text(self, event: Frame) -> None:
        self._begin("text", event)

    def handle_bytes(self, event: Frame) -> None:
        self._begin("bytes", event)

    def _begin(self, kind: Any, event: Frame) -> None:
        self.curr_msg_data_type = kind
        if event.fin:
            self._whole(event.data)
        else:
            self._pieces += event.data

    def handle_cont(self, event: Frame) -> None:
        self._pieces += event.data
        if event.fin:
            data, self._pieces = self._pieces, bytearray()
            self._whole(data)

    def _whole(self, data: Any) -> None:
        if self.close_sent:
            return
        if self.curr_msg_data_type == "text":
            try:
                text = str(data, "utf-8")
            except UnicodeDecodeError:
                self.conn.fail(1007, "a text frame is not UTF-8")
                self.handle_parser_exception()
                return
            self.queue.put_nowait({"type": "websocket.receive", "text": text})
        else:
            self.queue.put_nowait({"type": "websocket.receive", "bytes": bytes(data)})
        if not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()

    def handle_ping(self) -> None:
        output = self.conn.data_to_send()
        if self.writable.is_set():
            self.transport.write(b"".join(output))
        elif output:
            # "If an endpoint receives a Ping frame and has not yet sent Pong frame(s) in response to previous Ping
            # frame(s), the endpoint MAY elect to send a Pong frame for only the most recently processed Ping frame"
            # (RFC 6455, 5.5.3). Who pings and does not read would have all of them kept.
            self._pong = output[-1]

    def resume_writing(self) -> None:
        super().resume_writing()
        pong, self._pong = self._pong, None
        if pong is not None and not self.close_sent:
            self.transport.write(pong)

    # ------------------------------------------------------------------ signs of life

    def send_keepalive_ping(self) -> None:
        self._alive = False
        super().send_keepalive_ping()
        self._unsent = self.transport.get_write_buffer_size()

    def keepalive_timeout(self) -> None:
        """Cut off who has given no sign of life; a pong may well be stuck behind a large message, either way."""
        unsent = self.transport.get_write_buffer_size()
        if (self._alive or unsent < self._unsent) and not self.transport.is_closing():
            self._alive, self._unsent = False, unsent
            assert self.ping_timeout is not None
            self.pong_timer = self.loop.call_later(self.ping_timeout, self.keepalive_timeout)
            return
        self.pong_timer = self.pending_ping_payload = None
        if not self.close_sent and not self.transport.is_closing():
            self.conn.fail(1011, "no sign of life")
            self.handle_parser_exception()

    # ------------------------------------------------------------------ the end

    def handle_parser_exception(self) -> None:
        """Say why the connection ends, and leave it to the client to close, for a while.

        Closed with something unread, TCP would drop what is said.
        """
        self._failed = True
        said = self.conn.close_sent
        assert said is not None
        if not self.close_sent:
            self.queue.put_nowait({"type": "websocket.disconnect", "code": said.code, "reason": said.reason})
        self.close_sent = True
        self.stop_keepalive()
        self.transport.write(b"".join(self.conn.data_to_send()))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self._let_go(FAIL_SECONDS)

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and self.close_sent:
            self.handshake_complete = True  # else uvicorn complains of an application that has answered nothing

    async def run_asgi(self) -> None:
        await super().run_asgi()
        self._let_go(CLOSE_SECONDS)

    def _let_go(self, seconds: float) -> None:
        """Cut the connection off unless it is closed in time: a transport waits for who does not read for ever."""
        if not self.disconnected:
            if self.close_timer is not None:
                self.close_timer.cancel()
            self.close_timer = self.loop.call_later(seconds, self.transport.abort)

    def shutdown(self) -> None:
        """Leave it to the application to end its WebSockets in order; see `hang_up`."""

    def hang_up(self) -> None:
        """End what the application has left open."""
        if not self.close_sent:
            super().shutdown()
