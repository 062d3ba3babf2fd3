"""Asking a client while one of its requests is answered: one way for handlers, two ways on the wire.

    handshake revisions    a request to the client; the handler waits for its answer
    2026-07-28             the request is answered with ``input_required``; the handler waits, parked, for a later
                           request that brings the answers, and goes on from where it stood

One `Exchange` belongs to one run of a handler, however many requests that takes. Where parked ones are kept, and what a
``requestState`` says, is in `modelwire.server.parking`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from modelwire.errors import (
    INVALID_PARAMS,
    ConfigError,
    Declined,
    PeerError,
    ProtocolViolation,
    RequestTimeout,
    RpcError,
    ToolError,
)
from modelwire.protocol import jsonrpc, wire
from modelwire.protocol.revisions import LATEST
from modelwire.rpc.call import Call
from modelwire.rules.asking import question_key
from modelwire.rules.pending import Outgoing
from modelwire.server.questions import Question

if TYPE_CHECKING:
    from modelwire.server.parking import Lot

_USER_REJECTED = -1
"""The code of "User rejected sampling request" (2025-11-25, client/sampling, Error Handling)."""
_OVER = "the request that it belongs to is over"
_PATIENCE = 2
"""Turns of the loop without another question after which those that were asked go out together."""


class _Open:
    """A question that waits for its answer."""

    __slots__ = ("future", "params", "question")

    def __init__(self, question: Question, params: bytes, future: asyncio.Future[Any]) -> None:
        self.question = question
        self.params = params
        self.future = future


class Exchange:
    """What one run of a handler asks, is answered, and has done once.

    Args:
        call: The request that the handler was started for.
        brought: Answers that it brought, as JSON by key; those that nobody asks for are ignored.
        answers: What was answered in an earlier run, as JSON by key.
        done: What was done once in an earlier run, as JSON by name.
    """

    def __init__(
        self,
        call: Call,
        brought: Mapping[str, bytes] | None = None,
        answers: Mapping[str, bytes] | None = None,
        done: Mapping[str, bytes] | None = None,
    ) -> None:
        self.root = call
        self.call = call
        """The request that is being answered: the first one, or the last that brought answers."""
        self.answers = dict(answers or {})
        self.done = dict(done or {})
        self._brought = dict(brought or {})
        self._doing: dict[str, asyncio.Future[Any]] = {}
        self._waiting: dict[str, _Open] = {}
        self._requests: set[Outgoing] = set()
        self._keys: set[str] = set()
        self._over = not call.open
        self._count = 0
        self._round: asyncio.Handle | None = None
        self._returned: asyncio.Future[None] | None = None
        self._unasked = 0
        self._time_left: float | None = None

    # ------------------------------------------------------------------ asking

    async def ask(self, question: Question, key: str | None, timeout: float | None) -> Any:
        """Bring a question to the client, and return what its answer means.

        Raises:
            ConfigError: Nobody can be asked now.
            CapabilityRequired: The client did not declare what it takes.
            Declined: Its user said no. Likewise `Dismissed`.
            ToolError: It could not answer.
            ProtocolViolation: Its answer does not fit.
            RequestTimeout: It did not answer in time.
        """
        self._refuse_threads("asks")
        if not self.root.method.asks:
            raise ConfigError(f"nobody can be asked while {self.root.method.name} is answered; a tool can ask")
        call = self.call
        if self._over or self.root.cancelled or (call.peer.revision.server_requests and not call.open):
            raise _too_late(question)
        params = question.params(call.peer)
        with self._clock_stopped():
            if call.peer.revision.server_requests:
                found = await self._request(call, question, params, timeout)
            else:
                found = await self._wait(question, key, params, timeout)
                self._adopt_variables()
        if isinstance(found, BaseException):
            raise found
        return found

    async def _request(self, call: Call, question: Question, params: bytes, timeout: float | None) -> Any:
        asked = call.connection.ask(question.method, params, timeout=timeout, post=call.send)
        self._requests.add(asked)
        try:
            raw = await call.connection.answer(asked)
        except PeerError as error:
            if error.code == _USER_REJECTED:
                raise Declined(f"The user declined: {error.message}") from error
            raise ToolError(f"The client could not answer {question.method}: {error.message}") from error
        finally:
            self._requests.discard(asked)
        return question.answer(raw, call.peer.revision)

    async def _wait(self, question: Question, key: str | None, params: bytes, timeout: float | None) -> Any:
        key = self._key(question, key, params)
        if (raw := self.answers.get(key) or self._brought.pop(key, None)) is not None:
            found = self._read(key, question, raw)
            self.answers[key] = raw
            return found
        asked = self._waiting[key] = _Open(question, params, self._loop.create_future())
        self._count += 1
        self._send_soon()
        clock = asyncio.timeout(timeout)
        try:
            async with clock:
                return await asked.future
        except TimeoutError:
            if timeout is None or not clock.expired():
                raise
            raise RequestTimeout(question.method, timeout) from None
        finally:
            del self._waiting[key]

    def _key(self, question: Question, key: str | None, params: bytes) -> str:
        """Return what an answer is told by: what is asked twice, or under one key, are two questions."""
        if key is not None and (not isinstance(key, str) or not key):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"the key of a question is a string, not {key!r}")
        made = key or question_key(question.kind, question.method, question.identity or params)
        name, count = made, 1
        while name in self._keys:
            count += 1
            name = f"{made}-{count}"
        self._keys.add(name)
        return name

    def _read(self, key: str, question: Question, raw: bytes) -> Any:
        """Return what an answer that a request brought means.

        Raises:
            RpcError: It is malformed, which is the client's fault and no result of a tool.
        """
        try:
            return question.answer(raw, self.call.peer.revision)
        except ProtocolViolation as error:
            raise RpcError(INVALID_PARAMS, f"inputResponses[{key!r}]: {error.rule}") from None

    # ------------------------------------------------------------------ rounds (2026-07-28)

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return self.root.connection.loop

    @property
    def _lot(self) -> Lot:
        shared = self.root.connection.shared
        if shared is None:
            raise ConfigError("nobody can be asked here: the connection is not one of a server that serves")
        return shared.lot

    def _send_soon(self) -> None:
        """Send what was asked once nothing more is asked for a moment: what `gather` asks goes out together."""
        if self._round is None:
            self._round = self._loop.call_soon(self._look, self._count, _PATIENCE)

    def _look(self, count: int, patience: int) -> None:
        self._round = None
        if not self._waiting or not self.call.open:
            return
        if count != self._count or patience:
            patience = patience - 1 if count == self._count else _PATIENCE
            self._round = self._loop.call_soon(self._look, self._count, patience)
            return
        self._send_round()

    def _send_round(self) -> None:
        call = self.call
        if call is not self.root and self._undeclared(call):
            return  # to whoever asked it is said soon, and may ask something else
        questions = {key: (asked.question.method, asked.params) for key, asked in self._waiting.items()}
        size = sum(len(key) + len(params) for key, (_, params) in questions.items())
        try:
            state = self._lot.park(self, size)
        except Exception as error:
            self._fail_all(error)
            return
        body = wire.encode_input_required(questions, state, call.connection.dispatcher.server_info)
        call.answered(jsonrpc.encode_result(call.id, body))

    def _undeclared(self, call: Call) -> bool:
        """Fail the questions that a later request's client did not declare, though an earlier one's did."""
        found = False
        for asked in self._waiting.values():
            try:
                asked.question.params(call.peer)
            except RpcError as error:
                found = True
                if not asked.future.done():
                    asked.future.set_result(error)
        if found:
            self._send_soon()
        return found

    def _fail_all(self, error: Exception) -> None:
        for asked in self._waiting.values():
            if not asked.future.done():
                asked.future.set_result(error)

    @property
    def size(self) -> int:
        """The bytes of the answers that it holds."""
        return sum(map(len, self.answers.values())) + sum(map(len, self._brought.values()))

    def check(self, call: Call) -> dict[str, Any]:
        """Return what the answers that a request brings mean, by key; unknown ones are left out.

        Raises:
            RpcError: One is malformed.
        """
        brought: dict[str, msgspec.Raw] = call.params.input_responses or {}
        return {
            key: self._read(key, asked.question, bytes(brought[key]))
            for key, asked in self._waiting.items()
            if key in brought
        }

    async def resume(self, call: Call, meanings: Mapping[str, Any]) -> None:
        """Go on with the answers of a later request, and wait until that is answered.

        Args:
            call: The request.
            meanings: What `check` returned.
        """
        call.asking = self
        self.call = call
        brought: dict[str, msgspec.Raw] = call.params.input_responses or {}
        for key, meaning in meanings.items():
            self.answers[key] = bytes(brought[key])
            asked = self._waiting.get(key)
            if asked is not None and not asked.future.done():
                asked.future.set_result(meaning)
        if self._returned is not None and not self._returned.done():
            self._returned.set_result(None)
        self._send_soon()  # what is still not answered
        try:
            await call.closed()
        except asyncio.CancelledError:
            self.give_up(call.cancel_reason or "the request that brought the answers was cancelled")
            raise

    def _adopt_variables(self) -> None:
        """Take over the context variables of the request that brought the answers, where they are not the first one's.

        What the handler has set itself stays, unless that request says otherwise.
        """
        now, before = self.call.context, self.root.context
        if now is None or before is None or now is before:
            return
        for variable, value in now.items():
            if variable not in before or before[variable] is not value:
                variable.set(value)

    async def to_be_answered(self, call: Call) -> Call:
        """Return the request that waits for the handler's result; see `modelwire.rpc.call.Asking`."""
        if call is not self.root:
            return call
        self._over = True  # tasks that the handler has left behind may wait for answers, and would for ever
        for asked in self._requests:
            if not asked.answer.done():
                asked.answer.set_exception(ConfigError(f"{asked.method} was given up: {_OVER}"))
        for asked in self._waiting.values():
            if not asked.future.done():
                asked.future.set_result(_too_late(asked.question))
        while not self.call.open and not self.root.cancelled:  # it was parked, and has ended all the same
            self._returned = self._loop.create_future()
            await self._returned
        return self.call

    def give_up(self, reason: str) -> None:
        """End the handler: nobody will bring the answers that it waits for."""
        root = self.root
        root.cancelled = True
        root.cancel_reason = reason
        if root.task is not None and not root.task.done():
            root.connection.leaves(root.task)
            root.task.cancel(reason)

    # ------------------------------------------------------------------ time

    @contextlib.contextmanager
    def _clock_stopped(self) -> Generator[None]:
        """Let the handler's time limit stand still while it waits for a person."""
        clock = self.root.clock
        if self._unasked == 0 and clock is not None and (when := clock.when()) is not None:
            self._time_left = when - self._loop.time()
            clock.reschedule(None)
        self._unasked += 1
        try:
            yield
        finally:
            self._unasked -= 1
            if self._unasked == 0 and clock is not None and self._time_left is not None and not clock.expired():
                with contextlib.suppress(RuntimeError):  # the handler may be over, and a task of it still ask
                    clock.reschedule(self._loop.time() + max(0.0, self._time_left))
                self._time_left = None

    # ------------------------------------------------------------------ once

    async def once(self, name: str, function: Callable[[], Any], returns: Any) -> Any:
        """Call a function, or return what it gave when it was called before under this name."""
        if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"the name of what is done once is a string, not {name!r}")
        self._refuse_threads("does something once")
        if name not in self.done:
            doing = self._doing.get(name)
            if doing is None:
                doing = self._doing[name] = asyncio.ensure_future(self._do(name, function))
                doing.add_done_callback(lambda _: self._doing.pop(name, None))
            # Shielded: who waits for it may be cancelled, and it was done all the same.
            await asyncio.shield(doing)
        try:
            return msgspec.json.decode(self.done[name], type=Any if returns is None else returns)
        except msgspec.MsgspecError as error:
            raise ConfigError(f"what {name!r} gave once is no {returns!r}: {error}") from None

    async def _do(self, name: str, function: Callable[[], Any]) -> None:
        from modelwire.server.functions import run_sync, threads_for  # which has a use for contexts, and they for this

        shared = self.root.connection.shared
        pool = threads_for(function, None if shared is None else shared.lot.pool)
        self.done[name] = _written(name, await run_sync(function, pool))

    def _refuse_threads(self, what: str) -> None:
        if asyncio.get_running_loop() is not self._loop:
            raise ConfigError(
                f"an event loop of its own {what} here; a sync function takes Ask parameters instead, or is made async"
            )


def exchange_of(call: Call) -> Exchange:
    """Return the exchange of a request, made when there was none."""
    found = call.asking
    if isinstance(found, Exchange):
        return found
    call.asking = made = Exchange(call)
    return made


def _written(name: str, value: Any) -> bytes:
    try:
        return wire.encode(value, LATEST)
    except wire.WireError as error:
        raise ConfigError(f"what {name!r} gave cannot be kept: {error}; return something that JSON can hold") from None


def _too_late(question: Question) -> ConfigError:
    return ConfigError(f"{question.method} was not asked: {_OVER}")
