"""The requests of a client, in the form that the revision wants, and what becomes of those that get lost.

    the connection is lost    the request                   what becomes of it
    ------------------------  ----------------------------  -------------------------------------------------
    before it was written     any                           sent over the next connection
    after that                one without effects           sent again, once, within its own deadline
    after that                one that may have effects     fails, and says that it may have run or not
    by closing the client     any                           fails

Methods are known only by their rows; what they are for is the client's business. Nothing is opened or closed here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Raw

from modelwire.client.connect import Opener
from modelwire.client.contact import Contact
from modelwire.client.contacts import Contacts
from modelwire.errors import ConfigError, ConnectionLost, HttpFailed, LocalError, ProtocolViolation, RequestTimeout
from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.protocol.meta import LOG_LEVEL
from modelwire.protocol.methods import Method
from modelwire.protocol.revisions import Revision
from modelwire.rpc.connection import lost
from modelwire.rules.pending import OnProgress, Outgoing

MayRepeat = Callable[[str, Any], bool]
"""Called with method and params: whether a request may be sent twice."""


class Conversation:
    """What a client says, over the connections that it has.

    Args:
        contacts: The connections.
        opener: Knows who asks.
        may_repeat: Says of a request that has got lost whether it may be sent again.
        log_level: The level that each request asks for, where the revision has it so.
    """

    def __init__(
        self, contacts: Contacts, opener: Opener, *, may_repeat: MayRepeat, log_level: t.LoggingLevel | None
    ) -> None:
        self.contacts = contacts
        self._opener = opener
        self._may_repeat = may_repeat
        self.log_level = log_level
        """The level that each request asks for, where the revision has it so."""
        self._stamp: tuple[Revision, str | None, dict[str, Any]] | None = None

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
        contact, started = self.contacts.here() if on is None else on, None
        if on is None and not contact.is_open:
            started = contact.loop.time()
            contact = await self.contacts.ready(method, began=started, until=_deadline(started, timeout, max_timeout))
        connection = contact.connection
        entry = connection.ask(
            method,
            self._encoded(method, params, meta),
            timeout=timeout,
            max_timeout=max_timeout,
            on_progress=on_progress,
            started=started,
        )
        try:
            return await connection.answer(entry)
        except RequestTimeout as late:
            raise contact.late(late) from None
        except ConnectionLost as error:
            why = self._lost(contact, entry, params, error, only=on is not None)
        if why is not None:
            raise why
        return await self._ask_again(entry, params, meta)

    def _lost(
        self, contact: Contact, entry: Outgoing, params: Any, error: ConnectionLost, *, only: bool
    ) -> LocalError | None:
        """Return the error for a request that was lost, alone or with its connection; None if it may be sent again."""
        if contact.is_open:
            return self._lost_alone(contact, entry, params, error)
        what = f"the connection ended before {entry.method} was answered"
        if not self.contacts.closed:
            if not contact.was_sent(entry):
                what = f"{entry.method} was not sent"
            elif not self._may_repeat(entry.method, params):
                return lost(contact.ended_for(entry), f"{what}; it may have run or not, and was not sent again")
            if self.contacts.comes_back and not only:
                return None
        return lost(contact.ended_for(entry), what)

    def _lost_alone(
        self, contact: Contact, entry: Outgoing, params: Any, error: ConnectionLost
    ) -> ConnectionLost | None:
        """The same for a request over HTTP, which has a connection of its own."""
        if not isinstance(error, HttpFailed) or not error.broken or self.contacts.closed:
            return error
        if error.unsent or not contact.was_sent(entry):
            return error  # it was tried for long enough
        if error.status != 429 and self._may_repeat(entry.method, params):
            return None
        return error.again("it may have run or not, and was not sent again") if error.status is None else error

    async def _ask_again(self, entry: Outgoing, params: Any, meta: Mapping[str, Any] | None) -> Raw:
        contact = await self.contacts.ready(entry.method, "was not answered", began=entry.started, until=entry.deadline)
        contact.connection.ask_again(entry, self._encoded(entry.method, params, meta))
        try:
            return await contact.connection.answer(entry)
        except RequestTimeout as late:
            raise contact.late(late) from None
        except ConnectionLost as error:
            if contact.is_open:
                raise error.again(f"{entry.method} was sent twice") from None
            what = f"the connection ended twice before {entry.method} was answered"
            # One that may not be repeated is here because it was not sent the first time.
            may_have_run = "" if self._may_repeat(entry.method, params) else "; it may have run or not"
            raise lost(contact.ended_for(entry), what + may_have_run) from None

    async def notify(self, method: str, params: Any = None, *, timeout: float | None) -> None:
        """Send a notification; waits while the server reads too slowly.

        Args:
            method: The method.
            params: Its parameters.
            timeout: Seconds to wait for a lost connection.

        Raises:
            ConnectionLost: The connection has ended, and does not come back.
            ConfigError: The parameters cannot be written as JSON.
        """
        now = asyncio.get_running_loop().time()
        contact = await self.contacts.ready(method, began=now, until=_deadline(now, timeout, None))
        try:
            encoded = None if params is None else wire.encode_params(params, self.contacts.opened.revision)
        except wire.WireError as error:
            raise ConfigError(f"{method} was not sent: {error}") from None
        contact.connection.notify(method, encoded)
        await contact.connection.room()

    def decode(self, raw: Raw, method: Method) -> t.Received:
        """Return a result, typed.

        Raises:
            ProtocolViolation: The server broke a rule.
        """
        try:
            return wire.decode_result(raw, method, self.contacts.opened.revision)
        except wire.WireError as error:
            raise ProtocolViolation(f"the answer to {method.name} is invalid: {error}", bytes(raw)) from None

    def listen(self, contact: Contact, wanted: t.SubscriptionFilter) -> Outgoing:
        """Send ``subscriptions/listen`` over a connection, and over no other."""
        method, params = "subscriptions/listen", t.SubscriptionsListenRequestParams(wanted)
        return contact.connection.ask(method, self._encoded(method, params, None), timeout=None)

    def _encoded(self, method: str, params: Any, meta: Mapping[str, Any] | None) -> bytes | None:
        revision = self.contacts.opened.revision
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
        stamp, log_level = self._stamp, self.log_level
        if stamp is None or stamp[0] is not revision or stamp[1] != log_level:
            level: dict[str, Any] = {} if log_level is None else {LOG_LEVEL: log_level}
            self._stamp = stamp = revision, log_level, {**self._opener.request_meta(revision), **level}
        return stamp[2]


def _deadline(now: float, timeout: float | None, max_timeout: float | None) -> float | None:
    return min((now + seconds for seconds in (timeout, max_timeout) if seconds is not None), default=None)
