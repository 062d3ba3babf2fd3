"""The servers of a group: opening, asking and closing all of them at once, so that one that fails harms no other.

It knows what is wrong with which. What is asked, and how answers are joined, is not its business.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from modelwire.client.client import Client
from modelwire.client.requests import DEFAULT
from modelwire.errors import ConfigError, ConnectionFailed, ConnectionLost, ModelwireError
from modelwire.log import log as _log
from modelwire.rpc.callbacks import guarded
from modelwire.rules.settings import function

T = TypeVar("T")

OnFailure: TypeAlias = Callable[[str, ModelwireError], Any]
"""Called with the name of a server and what is wrong with it; may be async."""
MakeClient: TypeAlias = Callable[[str, Any], Client]
"""Makes the client of a server, from its name and target."""

OPENING = "opening"


class Member:
    """One server.

    Args:
        name: Its name in the group.
        target: What its client is pointed at.
    """

    def __init__(self, name: str, target: Any) -> None:
        self.name = name
        self.target = target
        self.client: Client | None = target if isinstance(target, Client) else None
        self.opened = False
        """Whether it has been open since the group was."""
        self.ours = False
        """Whether the group opened it, and so closes it."""


class Members:
    """The servers, in order.

    Args:
        targets: What they are, by name.
        make: Makes their clients.
        strict: Whether opening fails with the first that fails.
        on_failure: Told of every failure.
    """

    def __init__(
        self, targets: Mapping[str, Any], *, make: MakeClient | None, strict: bool, on_failure: OnFailure | None
    ) -> None:
        self._members = {name: Member(name, target) for name, target in targets.items()}
        self._make: MakeClient = function(make, "client", "a server's name and entry") or _client
        self._strict = strict
        self._on_failure = function(on_failure, "on_failure", "a server's name and the error")
        self._coming: dict[str, Member] = {}
        """Those that are being added."""
        self._failures: dict[tuple[str, str], ModelwireError] = {}
        self._telling: set[asyncio.Future[Any]] = set()
        self._opening = asyncio.Lock()
        self.running = False
        """Whether the group is open."""

    def __contains__(self, name: str) -> bool:
        return name in self._members

    @property
    def names(self) -> list[str]:
        """The names of all servers, in order."""
        return list(self._members)

    # ------------------------------------------------------------------ one by one

    @property
    def clients(self) -> dict[str, Client]:
        """The clients of the servers, of all that have one."""
        members = list(self._members.items())  # other threads look, too
        return {name: member.client for name, member in members if member.client is not None}

    @property
    def opened(self) -> dict[str, Client]:
        """The clients of the servers that could be opened."""
        return {name: client for name, client in self.clients.items() if self._members[name].opened}

    def client(self, name: str) -> Client:
        """Return the client of a server that could be opened.

        Raises:
            ConnectionFailed: It could not, or the group is closed.
        """
        found = self.opened.get(name)
        if found is not None:
            return found
        if not self.running:
            raise ConnectionFailed("the group is not open; use `async with group:` or `await group.connect()`")
        why = self._failures.get((name, OPENING))
        raise ConnectionFailed(
            f"the server {name!r} of the group is not open" + (f": {why}" if why is not None else "")
        ) from why

    # ------------------------------------------------------------------ failures

    @property
    def failures(self) -> dict[str, ModelwireError]:
        """What is wrong with which server; of several things the last."""
        return {name: error for (name, _), error in list(self._failures.items())}

    def failed(self, name: str, what: str, error: ModelwireError) -> None:
        """Take note of a failure and tell of it."""
        if name not in self._members:
            return
        self._failures.pop((name, what), None)  # so that it counts as the last
        self._failures[name, what] = error
        _log.warning("%s of the server %r failed: %s", what, name, error)
        callback = self._on_failure
        if callback is not None:
            told = guarded("on_failure", lambda: callback(name, error))
            if inspect.isawaitable(told):
                task = asyncio.ensure_future(told)
                self._telling.add(task)
                task.add_done_callback(self._told)

    def _told(self, task: asyncio.Future[Any]) -> None:
        self._telling.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("on_failure failed", exc_info=task.exception())

    def _works(self, name: str, what: str) -> None:
        self._failures.pop((name, what), None)

    # ------------------------------------------------------------------ opening and closing

    async def open(self, timeout: float | None = DEFAULT) -> None:
        """Open every server that is not open, all at once.

        Args:
            timeout: Seconds that each may take; by default its client's.

        Raises:
            ConnectionFailed: The group is strict, and one failed; all are closed again.
            ConnectionLost: The group was closed meanwhile.
        """
        async with self._opening:
            self.running = True
            try:
                await asyncio.gather(*(self._try(member, timeout) for member in list(self._members.values())))
                if not self.running:
                    raise ConnectionLost("the group was closed while it was being opened")
                if self._strict:
                    self._raise_failures()
            except BaseException:
                await self.close()
                raise

    def _raise_failures(self) -> None:
        failed = {name: error for (name, what), error in self._failures.items() if what == OPENING}
        if failed:
            told = "; ".join(f"{name!r}: {error}" for name, error in failed.items())
            raise ConnectionFailed(f"the group could not be opened: {told}") from next(iter(failed.values()))

    async def _try(self, member: Member, timeout: float | None) -> None:
        try:
            await self._open(member, timeout)
        except ModelwireError as error:
            self.failed(member.name, OPENING, error)
        except Exception as error:  # a target or a factory of the user's may raise anything
            _log.debug("opening %r failed", member.name, exc_info=True)
            self.failed(member.name, OPENING, ConnectionFailed(f"opening it failed: {error!r}"))

    async def _open(self, member: Member, timeout: float | None = DEFAULT) -> None:
        if member.client is None:
            member.client = self._make(member.name, member.target)
        member.ours = member.ours or not member.client.connected
        await member.client.connect(timeout=timeout)  # returns at once when it is open, unless that is elsewhere
        member.opened = True
        self._works(member.name, OPENING)

    async def close(self) -> None:
        """Close every server that the group has opened."""
        self.running = False
        members = [*self._members.values(), *self._coming.values()]
        outcomes = await asyncio.gather(*(self._close(member) for member in members), return_exceptions=True)
        for member, outcome in zip(members, outcomes):
            if isinstance(outcome, Exception):
                _log.error("closing the server %r failed", member.name, exc_info=outcome)
        self._failures = {key: error for key, error in self._failures.items() if key[1] == OPENING}

    async def _close(self, member: Member) -> None:
        member.opened = False
        if member.ours and member.client is not None:
            await member.client.close()

    async def add(self, name: str, target: Any) -> None:
        """Add a server, and open it if the group is open.

        Raises:
            ConfigError: There is one of that name; or the target makes no sense.
            LocalError: It could not be opened, and was not added.
        """
        if name in self._members or name in self._coming:
            raise ConfigError(f"there is a server {name!r} in the group already; remove it first")
        member = self._coming[name] = Member(name, target)
        try:
            if self.running:
                await self._open(member)
                if not self.running:
                    raise ConnectionLost(f"the group was closed while the server {name!r} was being added")
            self._members[name] = member
        except BaseException:
            await self._close(member)
            raise
        finally:
            del self._coming[name]

    async def remove(self, name: str) -> None:
        """Remove a server, and close it if the group opened it.

        Raises:
            ConfigError: There is none of that name.
        """
        member = self._members.pop(name, None)
        if member is None:
            raise ConfigError(
                f"there is no server {name!r} in the group; there are {', '.join(self._members) or 'none'}"
            )
        self._failures = {key: error for key, error in self._failures.items() if key[0] != name}
        await self._close(member)

    # ------------------------------------------------------------------ all at once

    async def ask(self, what: str, question: Callable[[Client], Awaitable[T]]) -> list[tuple[str, T]]:
        """Ask every open server at once; return the answers by server, in order. One that fails is left out.

        Args:
            what: What is asked, such as ``"tools/list"``.
            question: Asks one.

        Raises:
            ConnectionFailed: The group is not open.
            ConfigError: The question makes no sense, whoever is asked.
        """
        if not self.running:
            raise ConnectionFailed("the group is not open; use `async with group:` or `await group.connect()`")
        asked = self.opened
        answers = await asyncio.gather(*(question(client) for client in asked.values()), return_exceptions=True)
        given: list[tuple[str, T]] = []
        for name, answer in zip(asked, answers):
            if isinstance(answer, ConfigError) or (
                isinstance(answer, BaseException) and not isinstance(answer, ModelwireError)
            ):
                raise answer
            if isinstance(answer, ModelwireError):
                self.failed(name, what, answer)
            elif name in self._members:
                self._works(name, what)
                given.append((name, answer))
        return given


def _client(name: str, target: Any) -> Client:
    return Client(target)
