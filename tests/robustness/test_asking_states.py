"""Rounds, retries, expiries, cancellations and restarts in any order: one answer each, and nobody's but one's own.

Two servers share their keys, two users ask both. Each answer is unlike any other, so that a result tells whose answers
it was made of.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from modelwire import ConnectionLost, Context, Parking, Server
from modelwire.rpc.call import Call
from modelwire.rpc.connection import Connection
from modelwire.rules.session import Session
from modelwire.server import parking
from tests.robustness.turning import TurnedLoop
from tests.wire import modern_meta

LIFETIME = 60.0
USERS = ["ada", "bob"]
SERVERS = [0, 1]
FORM = {"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]}


@dataclass
class State:
    """What is known of a ``requestState``: whose it is, and what must come of it."""

    text: str
    user: str
    rounds: int
    said: list[str]
    born: float
    used: set[int] = field(default_factory=set)
    """The runs of servers in which it was used."""


class Run:
    """One run of a server, from its start to its end."""

    def __init__(self, number: int, seen: list[str]) -> None:
        self.number = number
        self.answers: dict[int, list[dict[str, Any]]] = {}
        self.server = Server("desk", state_keys=["k" * 32], parking=Parking(calls=6, seconds=LIFETIME))

        @self.server.tool
        async def ask(rounds: int, ctx: Context) -> str:
            said: list[str] = []
            for index in range(rounds):
                answer = await ctx.elicit(f"Round {index}?", schema=FORM, key=f"round {index}")
                said.append(answer["said"])
            seen.append(f"{ctx.peer.principal}: {said}")
            return json.dumps([ctx.peer.principal, said])

    async def start(self) -> None:
        self.running = await self.server.features.lifespan.enter()
        self.desks = {user: self._desk(user) for user in USERS}

    def _desk(self, user: str) -> Connection:
        connection = Connection(self.server.dispatcher, self._posted, session=Session(user))
        self.server.features.attach(connection, False, self.running)
        return connection

    def _posted(self, frame: bytes) -> None:
        message = json.loads(frame)
        if "id" in message:
            self.answers.setdefault(message["id"], []).append(message)

    async def send(self, user: str, messages: list[dict[str, Any]]) -> None:
        for message in messages:
            found = self.desks[user].receive(json.dumps(message).encode())
            if isinstance(found, Call):
                found.task = asyncio.ensure_future(self.server.dispatcher.answer(found))
            elif isinstance(found, bytes):
                self._posted(found)

    async def end(self) -> None:
        for connection in self.desks.values():
            self.server.features.detach(connection)
            connection.end(ConnectionLost("over"))
        await self.server.features.lifespan.leave(self.running)


def _refused(answer: dict[str, Any] | None) -> bool:
    return answer is not None and answer.get("error", {}).get("code") == -32602


class Rounds(RuleBasedStateMachine):
    states = Bundle("states")

    @initialize()
    def begin_all(self) -> None:
        self.loop = TurnedLoop()
        self.loop.__enter__()
        self.real = parking.time.time
        parking.time.time = lambda: 1e9 + self.loop.time()  # type: ignore[assignment]
        self.seen: list[str] = []
        self.next_id = 0
        self.next_word = 0
        self.runs: dict[int, Run] = {}
        self.numbers = 0
        for server in SERVERS:
            self._start(server)

    def _start(self, server: int) -> None:
        self.numbers += 1
        self.runs[server] = Run(self.numbers, self.seen)
        self.loop.finish(self.runs[server].start())

    def _exchange(self, server: int, user: str, rounds: int, cancelled: bool, **more: Any) -> dict[str, Any] | None:
        self.next_id += 1
        run, id_ = self.runs[server], self.next_id
        params = {"name": "ask", "arguments": {"rounds": rounds}, **more}
        params["_meta"] = modern_meta(clientCapabilities={"elicitation": {}})
        frames = [{"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}]
        if cancelled:
            frames.append({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_}})
        self.loop.finish(run.send(user, frames))
        answers = run.answers.get(id_, [])
        assert len(answers) == (0 if cancelled else 1), (id_, answers)
        return answers[0] if answers else None

    def _taken(self, answer: dict[str, Any] | None, user: str, rounds: int, said: list[str]) -> Any:
        """Hold an answer against what must come, and return the state that is in it."""
        if answer is None:
            return multiple()
        result = answer["result"]
        if len(said) == rounds:
            assert json.loads(result["content"][0]["text"]) == [user, said]
            return multiple()
        assert list(result["inputRequests"]) == [f"round {len(said)}"]
        return State(result["requestState"], user, rounds, said, self.loop.time())

    @rule(target=states, server=st.sampled_from(SERVERS), user=st.sampled_from(USERS), rounds=st.integers(1, 3))
    def call(self, server: int, user: str, rounds: int) -> Any:
        return self._taken(self._exchange(server, user, rounds, False), user, rounds, [])

    @rule(
        target=states,
        state=states,
        server=st.sampled_from(SERVERS),
        answered=st.sampled_from([True, True, False]),
        cancelled=st.sampled_from([False, False, False, True]),
    )
    def go_on(self, state: State, server: int, answered: bool, cancelled: bool) -> Any:
        self.next_word += 1
        word = f"word {self.next_word}"
        key = f"round {len(state.said)}" if answered else "nobody asked"
        brought = {key: {"action": "accept", "content": {"said": word}}}
        answer = self._exchange(
            server, state.user, state.rounds, cancelled, requestState=state.text, inputResponses=brought
        )
        run = self.runs[server].number
        good = run not in state.used and self.loop.time() < state.born + LIFETIME
        if cancelled:
            # Cancelled before it was looked at: nothing came of it, and the state is as good as before.
            return multiple()
        if not good:
            assert _refused(answer), answer
            return multiple()
        state.used.add(run)
        return self._taken(answer, state.user, state.rounds, [*state.said, word] if answered else state.said)

    @rule(state=states, server=st.sampled_from(SERVERS), rounds=st.integers(1, 3), other=st.booleans())
    def bring_what_belongs_to_another(self, state: State, server: int, rounds: int, other: bool) -> None:
        user = next(name for name in USERS if (name == state.user) is not other)
        if user == state.user and rounds == state.rounds:
            return
        brought = {f"round {len(state.said)}": {"action": "accept", "content": {"said": "stolen"}}}
        answer = self._exchange(server, user, rounds, False, requestState=state.text, inputResponses=brought)
        assert _refused(answer), answer

    # Never together exactly a lifetime: clocks of two kinds are looked at, which round differently.
    @rule(seconds=st.sampled_from([1.0, 20.3, LIFETIME + 1]))
    def wait(self, seconds: float) -> None:
        self.loop.advance(seconds)

    @rule(server=st.sampled_from(SERVERS))
    def restart(self, server: int) -> None:
        self.loop.finish(self.runs[server].end())
        self._start(server)

    @invariant()
    def nobody_hears_what_another_said(self) -> None:
        assert not any("stolen" in line for line in getattr(self, "seen", []))

    def teardown(self) -> None:
        if not hasattr(self, "loop"):
            return
        try:
            for run in self.runs.values():
                self.loop.finish(run.end())
        finally:
            parking.time.time = self.real  # type: ignore[assignment]
            self.loop.__exit__(None, None, None)


TestRounds = Rounds.TestCase
TestRounds.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
