"""Both directions of one connection, frame by frame: who is answered, what is awaited, what is cancelled.

A connection is given frames and hands out frames through ``post``; it owns no stream and starts no task, so that every
transport, and people who bring their own, can drive it. `modelwire.rpc.stream` drives it over a duplex stream.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw

from modelwire.errors import (
    INVALID_REQUEST,
    ConnectionLost,
    FrameTooLarge,
    LocalError,
    ProtocolViolation,
    RequestTimeout,
    peer_error,
)
from modelwire.log import log as _log
from modelwire.protocol import jsonrpc, wire
from modelwire.protocol.jsonrpc import Batch, ErrorResponse, IdKey, InvalidFrame, Notification, Request, Response
from modelwire.rpc.batch import BatchCall
from modelwire.rpc.bounds import LARGE, MAX_OPEN, Callbacks, OpenBytes
from modelwire.rpc.call import Call
from modelwire.rpc.callbacks import guarded
from modelwire.rpc.notices import cancelled, decode_cancelled, decode_progress
from modelwire.rpc.noticing import Noticing
from modelwire.rpc.observer import Observer, tell_frame
from modelwire.rules.pending import OnProgress, Outgoing, Pending
from modelwire.rules.session import Session

if TYPE_CHECKING:
    from modelwire.rpc.dispatcher import Dispatcher

MAX_REQUESTS = 4096
"""How many requests of one connection may be open at once; above it a request is refused, and the rest go on."""


class Connection(Noticing):
    """The state of one connection.

    Args:
        dispatcher: Answers the peer's requests and takes its notifications.
        post: Sends a frame without waiting.
        session: What the peer's handshake established.
        observers: Who watches the frames.
        answers_invalid: Whether every invalid frame is answered. A server does so; a client that did would answer
            noise, and answers only what is a request with a readable id.
    """

    # Servers hold thousands of idle ones; without a dict each is a quarter of the size.
    __slots__ = (
        "__weakref__", "_answers_invalid", "_large", "_leaving", "_send", "_stopped",
        "_stoppers", "_timer", "answers_requests", "batching", "callbacks", "calls", "crowded", "deaf", "dispatcher",
        "ended", "http", "loop", "observers", "on_stop", "pending", "post",
        "session", "shared", "thread", "when_room", "withdraw",
    )  # fmt: skip

    def __init__(
        self,
        dispatcher: Dispatcher,
        post: Callable[[bytes], None],
        *,
        session: Session | None = None,
        observers: Sequence[Observer] = (),
        answers_invalid: bool = True,
    ) -> None:
        super().__init__()
        self.dispatcher = dispatcher
        self.session = session or Session()
        self.shared: Any = None
        """What handlers of all connections may use together; for whoever serves the connection to set."""
        self.http: Any = None
        """What the HTTP request was that the connection began with, where one did; likewise."""
        self.observers = observers
        self.calls: dict[IdKey, Call] = {}
        """The peer's requests that are being answered."""
        self._leaving: set[asyncio.Task[Any]] | None = None
        self.pending = Pending()
        self.batching = False
        """Whether the peer may send batches; on a server the session's revision says so."""
        self.answers_requests = True
        """Whether the peer may send requests at all: "The server MUST NOT write JSON-RPC requests" in 2026-07-28."""
        self.ended: Exception | None = None
        """Why nothing more will come, and nothing can be sent, once that is so."""
        self.deaf: Exception | None = None
        """Why nothing more will come although frames can still be sent, once that is so."""
        self.loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        self.crowded: Callable[..., bool] = _never_crowded
        """``crowded(n=1)`` says whether more than n MiB wait to be sent, because the peer reads too slowly."""
        self.when_room: Callable[[Callable[[], None]], object] = self.loop.call_soon
        """Calls a function once the connection is not crowded."""
        self.withdraw: Callable[[Outgoing], bool] = _left_to_the_peer
        """Called with a request that is given up; says whether the peer knows by that, as by the end of its stream."""
        self.on_stop: Callable[[], Any] | None = None
        """Set by whoever drives the connection: called when the peer says goodbye."""
        self._send = post
        self.post: Callable[[bytes], None] = self._post_watched if observers else post
        """Sends a frame without waiting. Call it on the connection's event loop."""
        self._answers_invalid = answers_invalid
        self._timer: asyncio.TimerHandle | None = None
        self._stoppers = 0
        self._stopped = 0.0
        """How many keep the deadlines from passing, and since when."""
        self.callbacks = Callbacks()
        """What still runs of what the user wants to be told."""
        self._large = OpenBytes()

    # ------------------------------------------------------------------ out

    def _post_watched(self, frame: bytes) -> None:
        tell_frame(self.observers, "out", frame)
        self._send(frame)

    def notify(self, method: str, params: bytes | None = None) -> None:
        """Send a notification that belongs to no request."""
        if self.ended is None:
            self.post(jsonrpc.encode_notification(method, params))

    async def room(self) -> None:
        """Wait until the connection is not crowded, or has ended."""
        if self.crowded():
            room: asyncio.Future[None] = self.loop.create_future()
            self.when_room(lambda: None if room.done() else room.set_result(None))
            await room

    async def request(
        self,
        method: str,
        params: bytes | None,
        *,
        timeout: float | None,
        max_timeout: float | None = None,
        on_progress: OnProgress | None = None,
        cancellable: bool = True,
        post: Callable[[bytes], None] | None = None,
    ) -> Raw:
        """Send a request and return the raw JSON of its result.

        Args:
            method: The method.
            params: Its parameters, a JSON object.
            timeout: Seconds without an answer, or progress, after which it is given up; None to wait for ever.
            max_timeout: Seconds after which it is given up whatever progress comes.
            on_progress: Told of progress; all of it before this returns.
            cancellable: Whether the peer is told when the request is given up. "The initialize request MUST NOT be
                cancelled by clients."
            post: Sends it, where that is not `post`.

        Raises:
            PeerError: The peer answered with an error.
            RequestTimeout: No answer came in time.
            ConnectionLost: The connection ended.
            ProtocolViolation: The answer is no JSON-RPC response.
        """
        entry = self.ask(method, params, timeout=timeout, max_timeout=max_timeout, on_progress=on_progress, post=post)
        return await self.answer(entry, cancellable)

    def ask(
        self,
        method: str,
        params: bytes | None,
        *,
        timeout: float | None,
        max_timeout: float | None = None,
        on_progress: OnProgress | None = None,
        started: float | None = None,
        post: Callable[[bytes], None] | None = None,
    ) -> Outgoing:
        """Send a request whose `answer` must be waited for right after; otherwise as `request`.

        Args:
            method: The method.
            params: Its parameters, a JSON object.
            timeout: As for `request`.
            max_timeout: As for `request`.
            on_progress: As for `request`.
            started: Since when the time counts, on the loop's clock; by default from now on.
            post: As for `request`.

        Raises:
            ConnectionLost: The connection had ended before; nothing was sent.
        """
        why = self.ended or self.deaf
        if why is not None:
            raise lost(why, f"{method} was not sent")
        answer: asyncio.Future[Raw] = self.loop.create_future()
        entry = self.pending.add(
            method,
            lambda outcome: _settle(answer, outcome),
            now=self.loop.time() if started is None else started,
            timeout=timeout,
            max_timeout=max_timeout,
            on_progress=on_progress,
        )
        entry.answer = answer
        self._ask(entry, params, post or self.post)
        return entry

    def ask_again(self, entry: Outgoing, params: bytes | None) -> None:
        """Send a request that another connection has lost; its deadlines stay as they are.

        Raises:
            ConnectionLost: This one has ended, too; nothing was sent.
        """
        if self.ended is not None:
            raise lost(self.ended, f"{entry.method} was not sent")
        answer: asyncio.Future[Raw] = self.loop.create_future()
        self.pending.again(entry, lambda outcome: _settle(answer, outcome))
        entry.answer = answer
        self._ask(entry, params, self.post)

    def _ask(self, entry: Outgoing, params: bytes | None, post: Callable[[bytes], None]) -> None:
        entry.post = post
        if entry.on_progress is not None:
            params = wire.with_meta(params or b"{}", {"progressToken": entry.key})
        entry.heard = self.heard_count, self.dropped_count
        try:
            post(jsonrpc.encode_request(jsonrpc.encode_id(entry.key), entry.method, params))
        except BaseException:
            self.pending.take(entry.key)
            raise
        self._arm(entry.deadline)

    async def answer(self, entry: Outgoing, cancellable: bool = True) -> Raw:
        """Wait for the answer to what was asked; see `request`."""
        try:
            result: Raw = await entry.answer
        except BaseException as error:
            self._give_up(entry, error, cancellable)
            if isinstance(error, RequestTimeout):
                raise RequestTimeout(entry.method, error.seconds, self._heard(entry), error.setting) from None
            raise
        if entry.telling:
            # Only this request's own: a callback may well wait for a request that it made itself.
            await asyncio.wait(entry.telling)
        return result

    def _give_up(self, entry: Outgoing, error: BaseException, cancellable: bool) -> None:
        """Stop waiting for an answer; tell the peer, unless it has answered or must not be told."""
        waits = self.pending.take(entry.key) is not None or isinstance(error, RequestTimeout)
        known = waits and self.withdraw(entry)
        if waits and not known and cancellable and self.ended is None:
            reason = f"no answer within {error.seconds:g} s" if isinstance(error, RequestTimeout) else str(error)
            entry.post(jsonrpc.encode_notification("notifications/cancelled", cancelled(entry.key, reason)))

    def _heard(self, entry: Outgoing) -> list[str]:
        noticed = self.noticed(*entry.heard)
        if entry.progress is None:
            return noticed
        done, total = entry.progress
        return [f"progress {done:g}" + ("" if total is None else f" of {total:g}"), *noticed]

    # ------------------------------------------------------------------ in

    def receive(self, frame: bytes) -> bytes | Call | BatchCall | None:
        """Take in one frame, in the order of arrival.

        Returns:
            A frame that answers it, a call or batch still to be answered, or None when there is nothing to answer.
        """
        if self.observers:
            tell_frame(self.observers, "in", frame)
        try:
            message = jsonrpc.decode(frame)
        except InvalidFrame as invalid:
            return self._invalid(invalid, frame)
        return self.take(message, frame)

    def take(self, message: jsonrpc.Message | Batch, frame: bytes) -> bytes | Call | BatchCall | None:
        """Do as `receive` does with a frame that was decoded already, and that no observer is told of."""
        if type(message) is Request:
            return self._request(message) if len(frame) <= LARGE else self._large_frame(message, frame)
        if type(message) is Batch:
            return self._batch(message, frame) if len(frame) <= LARGE else self._large_frame(message, frame)
        self._unanswered(message)
        return None

    def _large_frame(self, message: Any, frame: bytes) -> bytes | Call | BatchCall | None:
        """Take in a large request, or batch, unless too many bytes of such are open."""
        if self._large.full:
            reason = f"{MAX_OPEN >> 20} MiB of requests are open on this connection; wait for answers"
            self.complain("a frame was refused: %s", reason)
            return self._refusal(message.id if type(message) is Request else None, 429, reason)
        answer = self._request(message) if type(message) is Request else self._batch(message, frame)
        if type(answer) is Call:
            self._large.hold([answer], len(frame))
        elif type(answer) is BatchCall:
            self._large.hold(answer.calls, len(frame))
        return answer

    def _request(self, request: Request) -> bytes | Call | None:
        if not self.answers_requests:
            self.complain("the server sent the request %s, which its revision forbids; it was ignored", request.method)
            return None
        if request.key in self.calls:
            # "The request ID MUST NOT match the ID of any other request the sender has issued and not yet received a
            # response for."
            return self._refusal(request.id, INVALID_REQUEST, f"a request with id {request.id.decode()} is still open")
        if len(self.calls) >= MAX_REQUESTS:
            return self._refusal(
                request.id, 429, f"{MAX_REQUESTS} requests are open on this connection; wait for answers"
            )
        call = self.dispatcher.admit(self, request)
        if type(call) is Call:
            self.calls[call.key] = call
        return call

    def _unanswered(self, message: Notification | Response | ErrorResponse | Request | Batch) -> None:
        if type(message) is Notification:
            self._notification(message)
        elif type(message) is Response:
            entry = self.pending.take(message.key)
            if entry is None:
                self._to_nobody(message.key)
            else:
                entry.settle(message.result)
        elif type(message) is ErrorResponse:
            entry = self.pending.take(message.key)
            if entry is None:
                self._error_to_nobody(message)
            else:
                entry.settle(peer_error(message.code, message.message, message.data))

    def _notification(self, message: Notification) -> None:
        self.hear(message.method)
        if message.method == "notifications/cancelled":
            self._cancelled(message)
        elif message.method == "notifications/progress":
            self._progress(message)
        guarded(f"handling the notification {message.method}", lambda: self.dispatcher.notice(self, message))

    def _cancelled(self, message: Notification) -> None:
        try:
            params = decode_cancelled(message.params if message.params is not UNSET else b"{}")
            key = jsonrpc.id_key(bytes(params.requestId))
        except msgspec.MsgspecError:
            return  # "Invalid cancellation notifications SHOULD be ignored"
        call = None if key is None else self.calls.get(key)
        # 1 and 1.0 or True are equal to Python, not to us; the key's type decides.
        if call is not None and type(call.key) is type(key):
            _log.debug("request %r cancelled by the peer: %r", key, params.reason)
            call.cancel(params.reason)

    def _progress(self, message: Notification) -> None:
        try:
            params = decode_progress(message.params if message.params is not UNSET else b"{}")
        except msgspec.MsgspecError:
            self.complain("a malformed notifications/progress was dropped")
            return
        entry = self.pending.progressed(params.progressToken, params.progress, params.total, self.loop.time())
        if entry is None or entry.on_progress is None:
            return
        if self.callbacks.full:
            self.overheard("notifications/progress")
            return
        # The deadline has moved away, if at all; the timer finds that out when it comes.
        tell_progress = entry.on_progress
        told = guarded("on_progress", lambda: tell_progress(params.progress, params.total, params.message))
        if inspect.isawaitable(told):
            task = self.follow(told, 0 if message.params is UNSET else len(message.params))
            entry.telling = entry.telling or set()
            entry.telling.add(task)
            task.add_done_callback(entry.telling.discard)

    async def settle_cancelled(self, seconds: float) -> None:
        """Wait until the handlers of cancelled requests have ended: they may have to clean up.

        Args:
            seconds: How long to wait at most.
        """
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=seconds)

    def leaves(self, task: asyncio.Task[Any]) -> None:
        """Note what still runs for a request that was cancelled."""
        if self._leaving is None:
            self._leaving = set()
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    def follow(self, told: Any, size: int = 0) -> asyncio.Future[Any]:
        """Run a callback that turned out to be async; see `Callbacks.follow`."""
        return self.callbacks.follow(told, size)

    def _to_nobody(self, key: IdKey | None) -> None:
        if self.pending.was_ours(key):
            _log.debug("a late answer to request %s was ignored", key)
        else:
            self.complain("an answer to request %r was dropped: no such request was sent", key)

    def _error_to_nobody(self, error: ErrorResponse) -> None:
        if error.key is not None:
            self._to_nobody(error.key)
            return
        self.complain("the peer reports an error that belongs to no request: %s (%d)", error.message, error.code)
        self.dispatcher.stray_error(self, error)

    # ------------------------------------------------------------------ what breaks the rules

    def oversized(self, error: FrameTooLarge) -> bytes | None:
        """Take note of a frame that was too long to be read; return the frame that answers it, if any."""
        self.complain("a frame was dropped: %s", error)
        head = error.frame or b""
        invalid = InvalidFrame(INVALID_REQUEST, str(error), **jsonrpc.peek(head))
        entry = None if invalid.answerable else self.pending.take(invalid.key)
        if entry is None:
            return self._invalid(invalid, head)
        entry.settle(error)
        return None

    def _invalid(self, invalid: InvalidFrame, frame: bytes) -> bytes | None:
        # What may be an answer of ours fails its request at once, even if it may be something else besides.
        entry = None if invalid.request else self.pending.take(invalid.key)
        if entry is not None:
            entry.settle(ProtocolViolation(f"the answer to {entry.method} is invalid: {invalid.reason}", frame))
        if invalid.answerable and (self._answers_invalid or (invalid.request and self.answers_requests)):
            return self._refusal(invalid.id, invalid.code, invalid.reason)
        if entry is not None:
            return None
        shown = frame[:200].decode("utf-8", "replace")
        self.complain("a frame was dropped: %s: %s", invalid.reason, shown)
        self.drop(f"{shown!r} ({invalid.reason})")
        return None

    def _refusal(self, id_: bytes | None, code: int, message: str) -> bytes:
        revision = self.session.revision
        if id_ is None and revision is not None and revision.null_error_id:
            id_ = b"null"
        return jsonrpc.encode_error(id_, code, message)

    def _batch(self, batch: Batch, frame: bytes) -> bytes | BatchCall | None:
        revision = self.session.revision
        if not (self.batching or (revision is not None and revision.batching)):
            return self._no_batch(batch, frame)
        if not batch.items:
            return self._invalid(InvalidFrame(INVALID_REQUEST, "an empty batch"), frame)
        group = BatchCall()
        for item in batch.items:
            group.add(self._item(item))
        group.calls = [call for call in group.calls if call.open]  # a later item may have cancelled an earlier one
        return group if group.calls else group.frame

    def _item(self, item: jsonrpc.Message | InvalidFrame) -> bytes | Call | None:
        if isinstance(item, InvalidFrame):
            return self._invalid(item, b"")
        if type(item) is Request:
            if item.method == "initialize":
                # "The initialize request MUST NOT be part of a JSON-RPC batch" (2025-03-26, basic/lifecycle)
                return self._refusal(item.id, INVALID_REQUEST, "initialize must not be part of a batch")
            return self._batched(item, self._request(item))
        self._unanswered(item)
        return None

    def _batched(self, item: Request, answer: bytes | Call | None) -> bytes | Call | None:
        if type(answer) is not Call or answer.peer.revision.batching:
            return answer
        # It brought its own metadata, of a revision without batches; a subscription would hold back all other answers.
        answer.cancel("refused")
        return self._refusal(item.id, INVALID_REQUEST, f"{answer.peer.revision} has no batches; send this by itself")

    def _no_batch(self, batch: Batch, frame: bytes) -> bytes | None:
        """Refuse a batch where the revision has none; what waits for an answer in it fails at once."""
        rule = "batches exist only in revision 2025-03-26"
        answers = [item for item in batch.items if isinstance(item, Response | ErrorResponse)]
        for item in answers:
            entry = self.pending.take(item.key)
            if entry is not None:
                entry.settle(ProtocolViolation(rule, frame))
        if answers and len(answers) == len(batch.items):
            return None
        return self._invalid(InvalidFrame(INVALID_REQUEST, rule), frame)

    # ------------------------------------------------------------------ deadlines and the end

    @contextlib.contextmanager
    def deadlines_stopped(self) -> Generator[None]:
        """Let no deadline of our requests pass in a ``with`` block: it is we who keep the peer waiting."""
        if not self._stoppers:
            self._stopped = self.loop.time()
        self._stoppers += 1
        try:
            yield
        finally:
            self._stoppers -= 1
            if not self._stoppers:
                self.pending.stood_still(self._stopped, self.loop.time())
                self._arm(self.pending.next_deadline())

    def _arm(self, deadline: float | None) -> None:
        """Keep one timer for all requests, set to the earliest deadline or before it; ``deadline`` is a new one."""
        if deadline is None or self.ended is not None:
            return
        if self._timer is not None and not self._timer.cancelled() and self._timer.when() <= deadline:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_at(deadline, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if self._stoppers:
            return
        now = self.loop.time()
        for entry in self.pending.expired(now):
            entry.settle(entry.late(now))
        self._arm(self.pending.next_deadline())

    def stop(self) -> None:
        """Have whoever drives the connection end it, in order."""
        if self.on_stop is not None:
            self.on_stop()

    def hears_no_more(self, why: Exception) -> None:
        """Note that the peer has closed its side: what waits for an answer of its fails, what it asked is answered."""
        self.deaf = why
        for entry in self.pending.take_all():
            entry.settle(lost(why, f"the connection ended before {entry.method} was answered"))

    def end(self, why: Exception) -> None:
        """Note that nothing more will come: what waits fails, what is being answered is cancelled."""
        if self.ended is not None:
            return
        self.ended = why
        if self._timer is not None:
            self._timer.cancel()
        for entry in self.pending.take_all():
            entry.settle(lost(why, f"the connection ended before {entry.method} was answered"))
        for call in list(self.calls.values()):
            call.cancel("the connection ended")

    def let_go(self) -> None:
        """Forget whoever drives it, after the end: two that lead to each other stay until the collector comes by."""
        self._send = self.post = _nowhere
        self.crowded, self.when_room = _never_crowded, self.loop.call_soon
        self.session.on_ready = None


def _nowhere(frame: bytes) -> None:
    """Where a frame goes once nobody takes any."""


def lost(why: Exception, what: str) -> LocalError:
    """Return the error for something that the end of the connection made impossible."""
    if isinstance(why, ConnectionLost):
        return why.again(what)
    return ConnectionLost(f"{what}: {why}")


def _left_to_the_peer(entry: Outgoing) -> bool:
    return False


def _never_crowded(mebibytes: int = 1) -> bool:
    return False


def _settle(answer: asyncio.Future[Raw], outcome: Any) -> None:
    if answer.done():
        return
    if isinstance(outcome, BaseException):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
