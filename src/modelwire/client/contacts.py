"""The connections of a client to its server, one after another: opening, coming back after a loss, closing.

A connection that is lost is opened again by itself, once for all that wait for it: at once when somebody listens or a
request is to be sent again, otherwise with the next request; and only so often (`modelwire.rules.restarts`). What is
sent over it is not this file's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from modelwire.client.connect import Opened, Opener
from modelwire.client.contact import Contact
from modelwire.client.hearing import Hearing
from modelwire.client.targets import Target
from modelwire.client.tool_headers import ToolHeaders
from modelwire.errors import (
    ConfigError,
    ConnectionFailed,
    ConnectionLost,
    HttpFailed,
    LocalError,
    PeerError,
    ProtocolViolation,
    RequestTimeout,
)
from modelwire.log import log as _log
from modelwire.protocol.revisions import Revision
from modelwire.rpc.connection import Connection, lost
from modelwire.rpc.dispatcher import Dispatcher
from modelwire.rpc.observer import Observer, watchers
from modelwire.rules.restarts import MOST, WINDOW, Restarts

SHUTDOWN_SECONDS = 2.0
"""How long a polite shutdown waits for the answer."""
CLOSED = "the client was closed; client.connect() opens it again"
"""Why nothing can be asked after that, whatever had become of the connection before."""

ENTERED = (
    "the {what} is open already, and the end of this block would close it for everybody who uses it: use it as it is, "
    "without another `with` block, or close() it first"
)
"""Why something that is open cannot be entered."""


class Contacts:
    """The connections to one server.

    Args:
        target: What to open.
        opener: How.
        dispatcher: Answers the server's requests.
        hearing: Told when nothing more will be heard.
        observers: Who watches the frames.
        reconnect: Whether a lost connection is opened again by itself.
        connect_timeout: Seconds that this may take each time; None for no limit.
    """

    def __init__(
        self,
        target: Target,
        opener: Opener,
        dispatcher: Dispatcher,
        hearing: Hearing,
        observers: Sequence[Observer],
        *,
        reconnect: bool,
        connect_timeout: float | None,
    ) -> None:
        self._target = target
        self._opener = opener
        self._dispatcher = dispatcher
        self._hearing = hearing
        self._observers = observers
        self._reconnect = reconnect and target.can_restart
        self._connect_timeout = connect_timeout
        self.current: Contact | None = None
        """The connection that there is, or was."""
        self._count = 0
        """How many connections there have been."""
        self._opened: Opened | None = None
        self._opening = asyncio.Lock()
        self._loss: ConnectionLost | None = None
        """Why the last connection that was open was lost, until there is another one."""
        self._restarts = Restarts()
        self._reopening: asyncio.Task[None] | None = None
        self._restoring: asyncio.Task[None] | None = None
        self._vain: BaseException | None = None
        """Why the last attempt to open the connection again was in vain."""
        self._closing: asyncio.Task[None] | None = None
        self._closed = False
        """Set when somebody has asked for the end; an opening that is under way then stops."""
        self._closers: set[asyncio.Task[Any] | None] = set()
        self.on_reopened: Callable[[ConnectionLost], None] = lambda why: None
        """Called when there is another connection in the place of a lost one, with the reason why that was lost."""
        self.restore: Callable[[], Coroutine[Any, Any, None] | None] = lambda: None
        """Called whenever a connection is open: tells the server what the one before had been told, if anything."""

    @property
    def opened(self) -> Opened:
        """What the opening came to.

        Raises:
            ConnectionFailed: There was none.
        """
        if self._opened is None:
            raise ConnectionFailed("the client is not connected; use `async with client:` or `await client.connect()`")
        return self._opened

    @property
    def tool_headers(self) -> ToolHeaders:
        """The headers that repeat arguments, where the revision and what it is spoken over have such."""
        endpoint = self._target.endpoint
        return ToolHeaders(endpoint.tools if endpoint is not None and self.opened.revision.routing_headers else None)

    @property
    def connected(self) -> bool:
        """Whether requests can be sent at once."""
        return self.current is not None and self.current.is_open

    def check_entry(self) -> None:
        """Refuse to be entered by somebody whose leaving would close what others use.

        Raises:
            ConfigError: It is open, lost but not closed, or about to be opened.
        """
        elsewhere = self.current is not None and self.current.loop.is_closed()
        if not elsewhere and (self._opening.locked() or (self._opened is not None and not self._closed)):
            raise ConfigError(ENTERED.format(what="client"))

    @property
    def comes_back(self) -> bool:
        """Whether a connection that is lost is opened again."""
        return self._reconnect and not self._closed

    @property
    def closed(self) -> bool:
        """Whether somebody has asked for the end."""
        return self._closed

    # ------------------------------------------------------------------ opening

    async def open(self, timeout: float | None) -> None:
        """Open a connection, unless there is one.

        Args:
            timeout: Seconds that it may take, all attempts together.

        Raises:
            ConnectionFailed: It could not be opened.
            ConnectionLost: It ended meanwhile; `ServerExited` when the server's process did.
            RequestTimeout: It took too long.
        """
        self.check_loop("use it there")
        async with self._opening:
            if self.connected:
                return
            if self._closing is not None:
                await asyncio.shield(self._closing)
            self._note_loss()
            if self._closed:
                self._closed, self._opened, self._loss = False, None, None
            try:
                await self._open(timeout)
            except BaseException:
                await self.close()
                raise
            self._restarts = Restarts()

    async def _open(self, timeout: float | None) -> None:
        """Open another connection in the place of the one that there was; ``self._opening`` is held."""
        loop = asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + timeout
        self._recall()
        remembered = self._opener.remembers
        try:
            try:
                return await self._attempt(timeout)
            except ConnectionLost:
                if not (self._opener.may_fall_back and self._may_try_again):
                    raise
                # A server of the handshake era may end, or hang up, on a request that it does not know.
                _log.info("%s ended on server/discover; opening it again for initialize", self._target.name)
                self._opener.legacy = True
            except ConnectionFailed as error:
                if not (remembered and self._reached and self._may_try_again):
                    raise
                # "re-probing if the cached assumption later fails" (2026-07-28, basic/versioning)
                _log.info("%s is no longer what it was (%s); finding out anew", self._target.name, error)
                self._forget()
            await self._attempt(None if until is None else max(until - loop.time(), 1.0))
        except BaseException:
            if self._reached:
                self._forget()
            raise

    def _recall(self) -> None:
        """Take what is known of the server in this process for what it still is."""
        endpoint = self._target.endpoint
        if endpoint is None or not self._opener.may_fall_back:
            return
        if endpoint.known.revision is not None:
            self._opener.remember(endpoint.known.revision)
        elif endpoint.known.old:
            self._opener.legacy = True

    def _remember(self, revision: Revision) -> None:
        self._opener.remember(revision)
        if self._target.endpoint is not None and self._opener.remembers:  # not where somebody has chosen it
            self._target.endpoint.known.revision = revision

    def _forget(self) -> None:
        self._opener.forget()
        if self._target.endpoint is not None:
            self._target.endpoint.forget()

    @property
    def _may_try_again(self) -> bool:
        return self._target.can_restart and not self._closed

    @property
    def _reached(self) -> bool:
        return self.current is not None and self.current.reached

    async def _attempt(self, timeout: float | None) -> None:
        await self._release()
        if self._closed:
            raise ConnectionLost("the client was closed while the conversation was being opened")
        self._count += 1
        observers = watchers(self._observers, self._count, self._target.name)
        self.current = contact = Contact(self._target, self._dispatcher, observers, self._on_end)
        contact.on_gap = self._hearing.gap
        self._opened = await contact.open(self._opener, timeout)
        self._remember(self._opened.revision)
        why, self._loss, self._vain = self._loss, None, None
        if why is not None:
            _log.info("%s was opened again", self._target.name)
            self.on_reopened(why)
        self._start_restoring()

    def _start_restoring(self) -> None:
        _cancel(self._restoring)
        restoring = self.restore()
        if restoring is not None:
            self._restoring = asyncio.create_task(restoring)

    # ------------------------------------------------------------------ coming back

    def _on_end(self, contact: Contact) -> None:
        if self._closed or contact is not self.current or contact.opened is None:
            return
        self._note_loss()
        name = self._target.name
        if not self._reconnect:
            self._hearing.lost(contact.ended)
        elif self._hearing.awaited:
            _log.warning("the connection to %s was lost and is opened again: %s", name, contact.ended)
            self._start_reopening()
        else:
            _log.warning(
                "the connection to %s was lost; a request opens it again: %s", self._target.name, contact.ended
            )

    def _note_loss(self) -> ConnectionLost:
        """Return why there is no connection, and remember that there was one."""
        contact = self.current
        if contact is not None and contact.opened is not None and not contact.is_open:
            self._loss = contact.ended
        return self._loss or ConnectionLost("the connection is closed")

    def _start_reopening(self) -> asyncio.Task[None]:
        """Begin to open a lost connection again; return what does so, for everybody who waits for it."""
        if self._reopening is None or self._reopening.done():
            self._reopening = asyncio.create_task(self._reopen(self._note_loss()))
            self._reopening.add_done_callback(_hear_out)
        return self._reopening

    async def _reopen(self, why: ConnectionLost) -> None:
        try:
            while not self.connected:
                await self._wait_a_while(why)
                await self._open_again()
        except Exception as error:
            if not self._closed:
                _log.warning("%s could not be opened again: %s", self._target.name, error)
            self._hearing.lost(error)
            raise

    async def _wait_a_while(self, why: ConnectionLost) -> None:
        loop = asyncio.get_running_loop()
        delay = self._restarts.next(loop.time())
        if delay is None:
            rest = self._restarts.forgiven_in(loop.time())
            tried = f"the connection was lost {MOST} times within {WINDOW:g} s and"
            if self._vain is not None:
                tried = f"{MOST} attempts within {WINDOW:g} s to open the connection again have failed, and it"
            last = f" (the last: {self._vain})" if self._vain is not None else ""
            raise why.again(f"{tried} is left alone for {rest:.0f} s; client.connect() opens it at once{last}")
        await asyncio.sleep(delay)

    async def _open_again(self) -> None:
        """Try once to open a lost connection again; return also when it is worth another try.

        Raises:
            LocalError: It is not: a server that we start ourselves, and that does not start, never will; nor will one
                that is there become another.
        """
        async with self._opening:
            if self.connected:
                return
            try:
                await self._open(self._connect_timeout)
            except BaseException as error:
                await self._release()
                if not self._may_pass(error):
                    raise
                self._vain = error
                _log.info("%s is not there yet: %s", self._target.name, error)

    def _may_pass(self, error: BaseException) -> bool:
        """Whether an opening that has failed with this is worth another try."""
        if self._closed or not self._target.elsewhere:
            return False
        broken: Any = error.__cause__ if isinstance(error, ConnectionFailed) else error
        if isinstance(broken, HttpFailed):
            return broken.broken
        return isinstance(error, ConnectionLost) or (isinstance(error, ConnectionFailed) and not self._reached)

    async def ready(self, method: str, what: str = "was not sent", *, began: float, until: float | None) -> Contact:
        """Return the open connection; one that was lost is waited for.

        Args:
            method: What is to be sent, for messages.
            what: What it means for the method that there is no connection.
            began: When the waiting began, on the loop's clock.
            until: When the waiting ends; None for no end.

        Raises:
            ConnectionFailed: There never was one.
            ConnectionLost: It is lost and does not come back; `ServerExited` when the server's process ended.
            RequestTimeout: It does not come back in time.
        """
        contact = self.here()
        if contact.is_open:
            return contact
        if self._closed:
            raise lost(ConnectionLost(CLOSED), f"{method} {what}")
        why = self._note_loss()
        if not self.comes_back:
            raise lost(why, f"{method} {what}")
        reopening = self._start_reopening()
        await asyncio.wait([reopening], timeout=None if until is None else max(until - contact.loop.time(), 0))
        if not reopening.done():
            waited = round(contact.loop.time() - began, 3)
            raise RequestTimeout(method, waited, [str(why), "it is being opened again"])
        if reopening.cancelled():
            raise ConnectionLost(f"{method} {what}: the client was closed while the connection was being opened again")
        error = reopening.exception()
        if error is not None:
            raise _not_back(error, why, f"{method} {what}") from None
        return self.here()

    def here(self) -> Contact:
        """Return the connection that there is, open or not.

        Raises:
            ConnectionFailed: There never was one.
            ConfigError: It belongs to another event loop.
        """
        contact = self.current
        if self._opened is None or contact is None:
            self.opened  # noqa: B018 - says that the client is not connected
            raise AssertionError
        if contact.loop is not asyncio.get_running_loop():
            raise ConfigError("the client was connected in another event loop; connect it in the one that uses it")
        return contact

    # ------------------------------------------------------------------ closing

    async def close(self, goodbye: bool = False) -> None:
        """Close the connection. May be called twice and from any task; a caller that is cancelled does not stop it.

        Args:
            goodbye: Send ``shutdown`` and ``exit`` first, which tutorials teach; handshake revisions only.
        """
        self._closed = True
        if self.current is None:
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
            await _say_goodbye(self.here().connection)
        stopping = [task for task in map(_cancel, (self._reopening, self._restoring)) if task is not None]
        if stopping:
            await asyncio.wait(stopping)
        await self._release()

    async def _release(self) -> None:
        if self.current is not None:
            await self.current.release(self._closers, ConnectionLost(CLOSED))

    def check_loop(self, what_to_do: str) -> None:
        """Let go of what belongs to an event loop that has ended.

        Args:
            what_to_do: Where the loop still runs.

        Raises:
            ConfigError: It belongs to one that still runs.
        """
        contact = self.current
        if contact is None or contact.loop is asyncio.get_running_loop():
            return
        if not contact.loop.is_closed():
            raise ConfigError(f"the client was connected in another event loop; {what_to_do}")
        contact.abandon()
        self.current = self._opened = self._loss = self._reopening = self._restoring = self._closing = None
        self._opening = asyncio.Lock()
        self._closers.clear()


async def _say_goodbye(connection: Connection) -> None:
    try:
        await connection.request("shutdown", None, timeout=SHUTDOWN_SECONDS, cancellable=False)
    except (PeerError, RequestTimeout, ProtocolViolation) as error:
        _log.debug("the polite shutdown was not answered as it should be: %s", error)
    except ConnectionLost:
        return
    connection.notify("exit")


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
