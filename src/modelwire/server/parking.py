"""Handlers that wait for answers of a later request (2026-07-28): where they stand, how they are found, when they end.

Without keys a ``requestState`` is a name that nobody can guess: what it stands for never leaves the process. With keys
it holds, sealed, all that was answered so far: a request that finds no parked handler has the handler run again from
the top, with those answers.
"""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from modelwire.errors import INTERNAL_ERROR, INVALID_PARAMS, ConfigError, RpcError, ToolError
from modelwire.log import log as _log
from modelwire.rpc.call import Call
from modelwire.rules.asking import Binding, Journal, decode_journal, digest, encode_journal, written
from modelwire.server.asking import Exchange
from modelwire.server.sealing import MAX_STATE, KeyRing
from modelwire.server.workers import WorkerPool

_OVERHEAD = 4096
"""What a parked handler is taken to hold beside its questions and arguments."""
_MOST_SPENT = 100_000
"""How many used states are remembered, so that none is used twice, until they expire."""


@dataclass(frozen=True, slots=True)
class Parking:
    """How many handlers may wait for their clients' answers in memory, and for how long (2026-07-28).

    Args:
        calls: How many.
        bytes: What they may hold together: arguments, questions, and 4 KiB each.
        seconds: How long one waits for its answers; a ``requestState`` is refused after that.
    """

    calls: int = 1000
    bytes: int = 64 << 20
    seconds: float = 600

    def __post_init__(self) -> None:
        for name in ("calls", "bytes", "seconds"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
                raise ConfigError(f"parking: {name} is a number from 0 on, not {value!r}")


class Lot:
    """The parked handlers of a server, in one event loop.

    Args:
        server: The server's name; a state of another one is refused.
        limits: How many, and for how long.
        keys: What seals states; None for states that are names.
        may_replay: Says of a request whether its handler may be run again.
        pool: The threads for what is done once.
    """

    def __init__(
        self,
        server: str,
        limits: Parking,
        keys: KeyRing | None,
        may_replay: Callable[[Call], bool],
        pool: WorkerPool,
    ) -> None:
        self.pool = pool
        self._server = server
        self._limits = limits
        self._keys = keys
        self._may_replay = may_replay
        self._loop = asyncio.get_running_loop()
        self._parked: OrderedDict[str, _Parked] = OrderedDict()
        """By name, the first to expire first."""
        self._bytes = 0
        self._spent: OrderedDict[str, float] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._parked)

    # ------------------------------------------------------------------ parking

    def park(self, exchange: Exchange, size: int) -> str:
        """Keep a handler until its answers come, and return the state that finds it.

        Args:
            exchange: What it asks.
            size: The bytes of its questions.

        Raises:
            RpcError: Too many wait already.
            ToolError: What was answered so far is too much to be sealed.
        """
        name = secrets.token_urlsafe(24)
        params = written(exchange.call.params)
        binding = self._binding(exchange.call, params)
        state = name if self._keys is None else self._sealed(self._keys, name, binding, exchange)
        copies = 1 if exchange.call is exchange.root else 2  # the first request is kept, too
        size += _OVERHEAD + exchange.size + copies * len(params)
        full = len(self._parked) >= self._limits.calls or self._bytes + size > self._limits.bytes or self._closed
        if not full:
            expires = self._loop.time() + self._limits.seconds
            self._parked[name] = _Parked(exchange, binding, expires, size)
            self._bytes += size
            self._arm()
        elif self._keys is not None and self._may_replay(exchange.root):
            # Whoever brings the answers has it run again from the top.
            self._loop.call_soon(exchange.give_up, "too many calls wait for answers; it will be run again")
        else:
            raise RpcError(INTERNAL_ERROR, "Too many calls wait for answers; try again later")
        return state

    def _sealed(self, keys: KeyRing, name: str, binding: Binding, exchange: Exchange) -> str:
        journal = Journal(name, binding, time.time() + self._limits.seconds, exchange.answers, exchange.done)
        state = keys.seal(encode_journal(journal))
        if len(state) > MAX_STATE:
            raise ToolError(
                f"What was answered so far makes a state of {len(state)} bytes, and {MAX_STATE} is the most; "
                "ask for less, or keep what is large on the server"
            )
        return state

    def _binding(self, call: Call, params: bytes | None = None) -> Binding:
        params = written(call.params) if params is None else params
        return Binding(self._server, call.peer.principal, call.method.name, digest(params))

    # ------------------------------------------------------------------ coming back

    def route(self, handle: Callable[[Call], Awaitable[Any]], call: Call) -> Awaitable[Any]:
        """Answer a request that brings answers or a state.

        Args:
            handle: Answers one that does not.
            call: The request.

        Raises:
            RpcError: The state is not one that can be gone on with, or an answer is malformed.
        """
        state: str | None = call.params.request_state
        responses: dict[str, msgspec.Raw] = call.params.input_responses or {}
        brought = {key: bytes(raw) for key, raw in responses.items()}
        if state is None:
            call.asking = Exchange(call, brought)
            return handle(call)
        found = self._find(call, state)
        if isinstance(found, Journal):
            call.asking = Exchange(call, brought, found.answers, found.done)
            return handle(call)
        return found

    def _find(self, call: Call, state: str) -> Awaitable[Any] | Journal:
        journal = None
        name = state
        if self._keys is not None:
            journal = self._opened(call, self._keys, state)
            name = journal.name
        parked = self._parked.get(name)
        if parked is None:
            if journal is None:
                raise _refused("no call waits under it")
            if name in self._spent:
                raise _refused("it was used before")
            if not self._may_replay(call):
                raise _refused("the call is no longer in memory, and its handler must not run twice")
            self._spend(name)
            return journal
        if parked.binding != self._binding(call):
            raise _refused("it belongs to another request, or to somebody else")
        meanings = parked.exchange.check(call)
        self._take(name)
        self._spend(name)
        return parked.exchange.resume(call, meanings)

    def _opened(self, call: Call, keys: KeyRing, state: str) -> Journal:
        content = keys.open(state)
        if content is None:
            raise _refused("none of the keys has sealed it")
        try:
            journal = decode_journal(content)
        except msgspec.MsgspecError:
            raise _refused("it was sealed for something else") from None
        if journal.binding != self._binding(call):
            raise _refused("it belongs to another request, or to somebody else")
        if journal.expires <= time.time():
            raise _refused("it has expired")
        return journal

    def _take(self, name: str) -> _Parked:
        parked = self._parked.pop(name)
        self._bytes -= parked.size
        return parked

    def _spend(self, name: str) -> None:
        """Remember a used state until it expires: "of two retries with one state one wins"."""
        if self._keys is None:
            return
        now = self._loop.time()
        while self._spent and (len(self._spent) >= _MOST_SPENT or next(iter(self._spent.values())) < now):
            self._spent.popitem(last=False)
        self._spent[name] = now + self._limits.seconds

    # ------------------------------------------------------------------ the end

    def _arm(self) -> None:
        if self._timer is None and self._parked:
            first = next(iter(self._parked.values()))
            self._timer = self._loop.call_at(first.expires, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._loop.time()
        while self._parked and next(iter(self._parked.values())).expires <= now:
            name = next(iter(self._parked))
            self._take(name).exchange.give_up(f"no answers came within {self._limits.seconds:g} s")
        self._arm()

    async def close(self, seconds: float) -> None:
        """End every handler that waits, and give them some time to clean up.

        Args:
            seconds: How long.
        """
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        tasks: list[asyncio.Task[Any]] = []
        for parked in self._parked.values():
            parked.exchange.give_up("the server is ending")
            if parked.exchange.root.task is not None:
                tasks.append(parked.exchange.root.task)
        self._parked.clear()
        self._bytes = 0
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)


@dataclass(slots=True)
class _Parked:
    exchange: Exchange
    binding: Binding
    expires: float
    size: int


def _refused(why: str) -> RpcError:
    """Return the one error for every state that cannot be gone on with; only the log says why."""
    _log.warning("a requestState was refused: %s", why)
    return RpcError(INVALID_PARAMS, "This requestState cannot be used; start the call again without it")


def asking(handle: Callable[[Call], Awaitable[Any]]) -> Callable[[Call], Awaitable[Any]]:
    """Return a handler of requests that may bring answers to what was asked before, or a state.

    Args:
        handle: Answers those that bring neither.
    """

    def answer(call: Call) -> Awaitable[Any]:
        params = call.params
        if params.request_state is None and params.input_responses is None:
            return handle(call)
        shared = call.connection.shared
        if call.peer.revision.server_requests or shared is None:
            return handle(call)  # where nothing of the kind exists
        return shared.lot.route(handle, call)

    return answer


def adjusted(limits: Any) -> Parking:
    """Return the limits that `Server(parking=...)` was given.

    Raises:
        ConfigError: They are none.
    """
    if limits is None:
        return Parking()
    if not isinstance(limits, Parking):
        raise ConfigError(f"parking= takes a Parking(calls=..., bytes=..., seconds=...), not {limits!r}")
    return dataclasses.replace(limits)
