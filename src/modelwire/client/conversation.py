"""The conversation of a client with its server: requests in the form of the revision, over connections that come back.

A connection that is lost is opened again by itself, once for all that wait for it: at once when somebody listens or a
request is to be sent again, otherwise with the next request. What was sent and may have effects is never sent twice.
Methods are known only by their rows; what they are for is the client's business.

    the connection is lost    the request                   what becomes of it
    ------------------------  ----------------------------  -------------------------------------------------
    before it was written     any                           sent over the new connection
    after that                one without effects           sent again, once, within its own deadline
    after that                one that may have effects     fails, and says that it may have run or not
    by `close`                any                           fails
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from msgspec import Raw

from modelwire.client.connect import Opened, Opener
from modelwire.client.contact import Contact
from modelwire.client.handlers import Handler, routes
from modelwire.client.hearing import Hearing
from modelwire.client.targets import Target
from modelwire.errors import (
    ConfigError,
    ConnectionFailed,
    ConnectionLost,
    LocalError,
    PeerError,
    ProtocolViolation,
    RequestTimeout,
    ServerExited,
    peer_error,
)
from modelwire.log import log as _log
from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.protocol.jsonrpc import ErrorResponse, Notification
from modelwire.protocol.meta import LOG_LEVEL
from modelwire.protocol.methods import Method
from modelwire.protocol.revisions import Revision
from modelwire.rpc.connection import Connection, lost
from modelwire.rpc.dispatcher import Dispatcher
from modelwire.rpc.observer import Observer
from modelwire.rules.pending import OnProgress, Outgoing
from modelwire.rules.restarts import MOST, WINDOW, Restarts
from modelwire.transports.process import ProcessStream

SHUTDOWN_SECONDS = 2.0
"""How long a polite shutdown waits for the answer."""

MayRepeat = Callable[[str, Any], bool]
"""Called with method and params: whether a request may be sent twice."""


class Conversation:
    """A conversation, from opening to closing. It can be opened again once it has ended.

    Args:
        target: What to open.
        opener: How.
        handlers: Who answers the server's requests, by method.
        hearing: Told of every notification, and when the conversation ends by itself.
        observers: Who watches the frames.
        reconnect: Whether a lost connection is opened again by itself.
        connect_timeout: Seconds that this may take each time; None for no limit.
        may_repeat: Says of a request that has got lost whether it may be sent again.
    """

    def __init__(
        self,
        target: Target,
        opener: Opener,
        *,
        handlers: Mapping[str, Handler],
        hearing: Hearing,
        observers: Sequence[Observer],
        reconnect: bool,
        connect_timeout: float | None,
        may_repeat: MayRepeat,
    ) -> None:
        self._target = target
        self._opener = opener
        self._hearing = hearing
        self._observers = observers
        self._reconnect = reconnect and target.can_restart
        self._connect_timeout = connect_timeout
        self._may_repeat = may_repeat
        self._dispatcher = Dispatcher(routes(handlers), self._notice, stray_error=self._stray_error)
        self._contact: Contact | None = None
        self._opened: Opened | None = None
        self._opening = asyncio.Lock()
        self._restarts = Restarts()
        self._loss = ConnectionLost("the connection is closed")
        """Why the last connection that was open was lost."""
        self._reopening: asyncio.Task[None] | None = None
        self._restoring: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._closed = False
        """Set when somebody has asked for the end; an opening that is under way then stops."""
        self._closers: set[asyncio.Task[Any] | None] = set()
        self.log_level: t.LoggingLevel | None = "info" if hearing.wants_logs else None
        """The level that each request asks for, where the revision has it so."""
        self.on_reopened: Callable[[ConnectionLost], None] = lambda why: None
        """Called when a lost connection is back, with the reason why it was lost."""
        self.restore: Callable[[], Coroutine[Any, Any, None] | None] = lambda: None
        """Called whenever a connection is open: tells the server what the one before had been told, if anything."""
        self._stamp: tuple[t.LoggingLevel | None, dict[str, Any]] | None = None

    # ------------------------------------------------------------------ opening

    async def open(self, timeout: float | None) -> None:
        """Open the conversation, unless it is open.

        Args:
            timeout: Seconds that it may take, all attempts together.

        Raises:
            ConnectionFailed: It could not be opened.
            ConnectionLost: It ended meanwhile; `ServerExited` when the server's process did.
            RequestTimeout: It took too long.
        """
        self._leave_other_loop("connect it there")
        async with self._opening:
            if self.connected:
                return
            if self._closing is not None:
                await asyncio.shield(self._closing)
            self._closed = False
            self._opened = None
            try:
                await self._open(timeout)
            except BaseException:
                await self.close()
                raise
            self._restarts = Restarts()

    async def _open(self, timeout: float | None) -> None:
        """Open another connection, in the place of the one that there was; ``self._opening`` is held."""
        loop = asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + timeout
        remembered = self._opener.remembers
        try:
            try:
                return await self._attempt(timeout)
            except ServerExited:
                if self._closed or not (self._opener.may_fall_back and self._target.can_restart):
                    raise
                # A server of the handshake era may end on a request that it does not know.
                _log.info("%s ended on server/discover; starting it again for initialize", self._target)
                self._opener.legacy = True
            except ConnectionFailed as error:
                if self._closed or not (remembered and self._reached and self._target.can_restart):
                    raise
                # "re-probing if the cached assumption later fails" (2026-07-28, basic/versioning)
                _log.info("%s is no longer what it was (%s); finding out anew", self._target, error)
                self._opener.forget()
            await self._attempt(None if until is None else max(until - loop.time(), 1.0))
        except BaseException:
            if self._reached:
                self._opener.forget()
            raise

    @property
    def _reached(self) -> bool:
        return self._contact is not None and self._contact.reached

    async def _attempt(self, timeout: float | None) -> None:
        await self._release()
        if self._closed:
            raise ConnectionLost("the client was closed while the conversation was being opened")
        self._contact = contact = Contact(self._target, self._dispatcher, self._observers, self._on_end)
        opened = await contact.open(self._opener, timeout)
        self._stamp = None
        self._opened = opened
        self._opener.remember(opened.revision)
        self._start_restoring()

    # ------------------------------------------------------------------ coming back

    def _on_end(self, contact: Contact) -> None:
        if self._closed or contact is not self._contact or contact.opened is None:
            return
        self._loss = contact.ended
        if not self._reconnect:
            self._hearing.lost(self._loss)
        elif self._hearing.awaited:
            _log.warning("the connection to %s was lost and is opened again: %s", self._target, self._loss)
            self._start_reopening()
        else:
            _log.warning("the connection to %s was lost; a request opens it again: %s", self._target, self._loss)

    def _start_reopening(self) -> asyncio.Task[None]:
        """Begin to open a lost connection again; return what does so, for everybody who waits for it."""
        if self._reopening is None or self._reopening.done():
            self._reopening = asyncio.create_task(self._reopen(self._loss))
            self._reopening.add_done_callback(_hear_out)
        return self._reopening

    async def _reopen(self, why: ConnectionLost) -> None:
        try:
            while not await self._reopened(why):
                pass
        except Exception as error:
            _log.warning("%s could not be opened again: %s", self._target, error)
            self._hearing.lost(error)
            raise
        _log.info("%s was opened again", self._target)
        self.on_reopened(why)

    async def _reopened(self, why: ConnectionLost) -> bool:
        """Try once to open a lost connection again; return whether it is open.

        Raises:
            LocalError: It is not, and there is no use in trying once more.
        """
        loop = asyncio.get_running_loop()
        delay = self._restarts.next(loop.time())
        if delay is None:
            rest = self._restarts.forgiven_in(loop.time())
            raise why.again(
                f"the connection was lost {MOST} times within {WINDOW:g} s and is left alone for {rest:.0f} s; "
                "client.connect() opens it at once"
            )
        await asyncio.sleep(delay)
        async with self._opening:
            if self.connected:
                return True
            try:
                await self._open(self._connect_timeout)
            except BaseException as error:
                await self._release()
                # A server that we start ourselves and that does not start will not start the next time either.
                if isinstance(error, ConnectionFailed) and self._target.elsewhere:
                    _log.info("%s is not there yet: %s", self._target, error)
                    return False
                raise
        return True

    def _start_restoring(self) -> None:
        _cancel(self._restoring)
        restoring = self.restore()
        if restoring is not None:
            self._restoring = asyncio.create_task(restoring)

    async def ready(self, method: str, what: str = "was not sent", *, began: float, until: float | None) -> Contact:
        """Return the open connection; one that was lost is waited for.

        Args:
            method: What is to be sent, for messages.
            what: What it means for the method that there is no connection.
            began: When the waiting began, on the loop's clock.
            until: When the waiting ends; None for no end.

        Raises:
            ConnectionFailed: The conversation is not open.
            ConnectionLost: The connection is lost and does not come back; `ServerExited` when the server's process
                ended.
            RequestTimeout: It does not come back in time.
        """
        contact = self.here()
        if contact.is_open:
            return contact
        if contact.opened is not None:
            self._loss = contact.ended
        if not self.comes_back:
            raise lost(self._loss, f"{method} {what}")
        reopening = self._start_reopening()
        await asyncio.wait([reopening], timeout=None if until is None else max(until - contact.loop.time(), 0))
        if not reopening.done():
            waited = round(contact.loop.time() - began, 3)
            raise RequestTimeout(method, waited, [str(self._loss), "it is being opened again"])
        if reopening.cancelled():
            raise ConnectionLost(f"{method} {what}: the client was closed while the connection was being opened again")
        error = reopening.exception()
        if error is not None:
            raise _not_back(error, self._loss, f"{method} {what}") from None
        return self.here()

    # ------------------------------------------------------------------ requests

    @property
    def opened(self) -> Opened:
        """What the opening came to.

        Raises:
            ConnectionFailed: The conversation is not open.
        """
        if self._opened is None:
            raise ConnectionFailed("the client is not connected; use `async with client:` or `await client.connect()`")
        return self._opened

    @property
    def connected(self) -> bool:
        """Whether requests can be sent at once."""
        return self._contact is not None and self._contact.is_open

    @property
    def comes_back(self) -> bool:
        """Whether a connection that is lost is opened again."""
        return self._reconnect and not self._closed

    @property
    def process(self) -> ProcessStream | None:
        """The server's process, where it is one."""
        return None if self._contact is None else self._contact.process

    async def request(
        self,
        method: str,
        params: Any = None,
        *,
        timeout: float | None,
        max_timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
        on: Contact | None = None,
    ) -> Raw:
        """Send a request in the form of the revision; return the raw result. See `Connection.request`.

        Args:
            method: The method.
            params: Its parameters.
            timeout: Seconds without an answer, or progress, after which it is given up; None to wait for ever.
            max_timeout: Seconds after which it is given up whatever progress comes.
            on_progress: Told of progress.
            meta: Further entries for its ``_meta``.
            on: The only connection that it may be sent over; on another, what it names means nothing.

        Raises:
            ConfigError: The parameters cannot be written as JSON.
        """
        contact, started = self.here() if on is None else on, None
        if on is None and not contact.is_open:
            started = contact.loop.time()
            contact = await self.ready(method, began=started, until=_deadline(started, timeout, max_timeout))
        entry = contact.connection.ask(
            method,
            self._encoded(method, params, meta),
            timeout=timeout,
            max_timeout=max_timeout,
            on_progress=on_progress,
            started=started,
        )
        try:
            return await contact.connection.answer(entry)
        except RequestTimeout as late:
            raise contact.late(late) from None
        except ConnectionLost:
            why = self._lost(contact, entry, params, only=on is not None)
        if why is not None:
            raise why
        return await self._ask_again(entry, params, meta)

    def _lost(self, contact: Contact, entry: Outgoing, params: Any, *, only: bool) -> LocalError | None:
        """Return the error for a request whose connection was lost; None if it may be sent over another one."""
        ended = f"the connection ended before {entry.method} was answered"
        if self._closed:
            return lost(contact.ended, ended)
        if contact.was_sent(entry) and not self._may_repeat(entry.method, params):
            return lost(contact.ended, f"{ended}; it may have run or not, and was not sent again")
        return None if self._reconnect and not only else lost(contact.ended, ended)

    async def _ask_again(self, entry: Outgoing, params: Any, meta: Mapping[str, Any] | None) -> Raw:
        contact = await self.ready(entry.method, "was not answered", began=entry.started, until=entry.deadline)
        contact.connection.ask_again(entry, self._encoded(entry.method, params, meta))
        try:
            return await contact.connection.answer(entry)
        except RequestTimeout as late:
            raise contact.late(late) from None
        except ConnectionLost:
            raise lost(contact.ended, f"the connection ended twice before {entry.method} was answered") from None

    async def notify(self, method: str, params: Any = None, *, timeout: float | None) -> None:
        """Send a notification.

        Args:
            method: The method.
            params: Its parameters.
            timeout: Seconds to wait for a lost connection.

        Raises:
            ConnectionLost: The connection has ended, and does not come back.
            ConfigError: The parameters cannot be written as JSON.
        """
        now = asyncio.get_running_loop().time()
        contact = await self.ready(method, began=now, until=_deadline(now, timeout, None))
        try:
            encoded = None if params is None else wire.encode_params(params, self.opened.revision)
        except wire.WireError as error:
            raise ConfigError(f"{method} was not sent: {error}") from None
        contact.connection.notify(method, encoded)

    def decode(self, raw: Raw, method: Method) -> t.Received:
        """Return a result, typed.

        Raises:
            ProtocolViolation: The server broke a rule.
        """
        try:
            return wire.decode_result(raw, method, self.opened.revision)
        except wire.WireError as error:
            raise ProtocolViolation(f"the answer to {method.name} is invalid: {error}", bytes(raw)) from None

    def listen(self, contact: Contact, wanted: t.SubscriptionFilter) -> Outgoing:
        """Send ``subscriptions/listen`` over a connection, and over no other."""
        method, params = "subscriptions/listen", t.SubscriptionsListenRequestParams(wanted)
        return contact.connection.ask(method, self._encoded(method, params, None), timeout=None)

    def _encoded(self, method: str, params: Any, meta: Mapping[str, Any] | None) -> bytes | None:
        revision = self.opened.revision
        added = {} if revision.handshake else self._who_asks(revision)
        if meta:
            added = {**meta, **added}
        try:
            encoded = b"{}" if params is None else wire.encode_params(params, revision)
            if added:
                encoded = wire.with_meta(encoded, added)
        except wire.WireError as error:
            raise ConfigError(f"{method} was not sent: {error}") from None
        return None if encoded == b"{}" else encoded

    def _who_asks(self, revision: Revision) -> dict[str, Any]:
        """Return the ``_meta`` of every request, made once; it changes with the log level only."""
        if self._stamp is None or self._stamp[0] != self.log_level:
            level: dict[str, Any] = {} if self.log_level is None else {LOG_LEVEL: self.log_level}
            self._stamp = self.log_level, {**self._opener.request_meta(revision), **level}
        return self._stamp[1]

    def here(self) -> Contact:
        """Return the connection that there is, open or not.

        Raises:
            ConnectionFailed: The conversation was never opened.
            ConfigError: It belongs to another event loop.
        """
        contact = self._contact
        if self._opened is None or contact is None:
            self.opened  # noqa: B018 - says that the client is not connected
            raise AssertionError
        if contact.loop is not asyncio.get_running_loop():
            raise ConfigError("the client was connected in another event loop; connect it in the one that uses it")
        return contact

    # ------------------------------------------------------------------ hearing

    def _notice(self, connection: Connection, notification: Notification) -> None:
        self._hearing.hear(connection, notification)

    def _stray_error(self, connection: Connection, error: ErrorResponse) -> None:
        self._opener.stray_error(peer_error(error.code, error.message, error.data))

    # ------------------------------------------------------------------ closing

    async def close(self, goodbye: bool = False) -> None:
        """Close the conversation. May be called twice and from any task; a caller that is cancelled does not stop it.

        Args:
            goodbye: Send ``shutdown`` and ``exit`` first, which tutorials teach; handshake revisions only.

        Raises:
            ConfigError: It was opened in another event loop, which still runs.
        """
        self._leave_other_loop("close it there: asyncio.run_coroutine_threadsafe(client.close(), loop)")
        self._closed = True
        if self._contact is None:
            return
        if self._closing is None or self._closing.done():
            self._closing = asyncio.create_task(self._close(goodbye))
        closer = asyncio.current_task()
        self._closers.add(closer)
        try:
            await asyncio.shield(self._closing)
        finally:
            self._closers.discard(closer)

    async def _close(self, goodbye: bool) -> None:
        if goodbye and self.connected and self.opened.revision.handshake:
            await self._say_goodbye(self.here().connection)
        stopping = [task for task in map(_cancel, (self._reopening, self._restoring)) if task is not None]
        if stopping:
            await asyncio.wait(stopping)
        await self._release()

    async def _release(self) -> None:
        if self._contact is not None:
            await self._contact.release(self._closers)

    async def _say_goodbye(self, connection: Connection) -> None:
        try:
            await connection.request("shutdown", None, timeout=SHUTDOWN_SECONDS, cancellable=False)
        except (PeerError, RequestTimeout, ProtocolViolation) as error:
            _log.debug("the polite shutdown was not answered as it should be: %s", error)
        except ConnectionLost:
            return
        connection.notify("exit")

    def _leave_other_loop(self, what_to_do: str) -> None:
        """Let go of what belongs to an event loop that has ended.

        Raises:
            ConfigError: It belongs to one that still runs.
        """
        contact = self._contact
        if contact is None or contact.loop is asyncio.get_running_loop():
            return
        if not contact.loop.is_closed():
            raise ConfigError(f"the client was connected in another event loop; {what_to_do}")
        contact.abandon()
        self._contact = self._opened = self._reopening = self._restoring = self._closing = None
        self._opening = asyncio.Lock()


def _deadline(now: float, timeout: float | None, max_timeout: float | None) -> float | None:
    return min((now + seconds for seconds in (timeout, max_timeout) if seconds is not None), default=None)


def _not_back(error: BaseException, why: ConnectionLost, what: str) -> LocalError:
    """Return the error for something that needed a connection which could not be opened again."""
    if isinstance(error, ConnectionLost):
        return error.again(what)
    return why.again(f"{what}; the connection was lost, and could not be opened again ({error})")


def _cancel(task: asyncio.Task[None] | None) -> asyncio.Task[None] | None:
    """Cancel a task that runs; return it then."""
    if task is None or task.done():
        return None
    task.cancel()
    return task


def _hear_out(task: asyncio.Task[None]) -> None:
    """Look at how a task ended, so that nobody warns of it."""
    if not task.cancelled():
        task.exception()
