"""A client against a server that answers rightly, wrongly, late, twice, never, or goes away: every call ends."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from modelwire import Client, ConnectionLost, ModelwireError, PeerError, ProtocolViolation, RequestTimeout
from modelwire.rules.pending import OnProgress
from tests.robustness.fed_stream import FedStream
from tests.robustness.malformed import PER_REQUEST
from tests.robustness.opening import ASKED, new_client, opening_result
from tests.robustness.server_model import SUBSCRIPTION_KEY
from tests.robustness.turning import TurnedLoop
from tests.spec import REVISION_NAMES, needs_spec, validate_message

HANDSHAKES = [name for name in REVISION_NAMES if name != PER_REQUEST]
RARELY = st.sampled_from([False] * 11 + [True])
TEXT = {"type": "text", "text": "x"}
RIGHT: dict[str, dict[str, Any]] = {
    "tools/call": {"content": [TEXT]},
    "tools/list": {"tools": [{"name": "x", "inputSchema": {"type": "object"}}]},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/read": {"contents": [{"uri": "a:b", "text": "x"}]},
    "prompts/list": {"prompts": []},
    "prompts/get": {"messages": [{"role": "user", "content": TEXT}]},
    "completion/complete": {"completion": {"values": ["x"]}},
}
CALLS: dict[str, Callable[[Client, float | None, OnProgress], Awaitable[Any]]] = {
    "call_tool": lambda client, timeout, tell: client.call_tool("x", timeout=timeout, on_progress=tell),
    "call": lambda client, timeout, tell: client.call("x", {"a": 1}, timeout=timeout),
    "list_tools": lambda client, timeout, tell: client.list_tools(timeout=timeout),
    "list_resources": lambda client, timeout, tell: client.list_resources(timeout=timeout),
    "list_templates": lambda client, timeout, tell: client.list_resource_templates(timeout=timeout),
    "list_prompts": lambda client, timeout, tell: client.list_prompts(timeout=timeout),
    "read": lambda client, timeout, tell: client.read_resource("a:b", timeout=timeout),
    "prompt": lambda client, timeout, tell: client.get_prompt("x", timeout=timeout),
    "complete": lambda client, timeout, tell: client.complete("x", "a", timeout=timeout),
    "ping": lambda client, timeout, tell: client.ping(timeout=timeout),
    "request": lambda client, timeout, tell: client.request("acme/x", {"b": 2}, timeout=timeout),
}
ODD_RESULTS = st.sampled_from(
    [
        None, 5, "x", [], {}, {"content": 5}, {"content": [5]}, {"tools": None}, {"tools": [{}, 3]},
        {"resultType": "no"}, {"resultType": "input_required"}, {"resultType": 7}, {"_meta": 3}, {"isError": "maybe"},
        {"contents": [{"uri": 1}]}, {"completion": {}}, {"messages": [{"role": "x"}]}, {"nextCursor": 5},
    ]
)  # fmt: skip
NOISE = st.sampled_from(
    [
        b"nope", b"\xff\xfe", b"[]", b"{}", b"[[]]", b"7", b'{"jsonrpc":"2.0","id":', b"[" * 300, b"\0",
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}',
        b'{"jsonrpc":"2.0","id":"x","result":{}}', b'{"jsonrpc":"2.0","id":99999,"result":{}}',
        b'{"jsonrpc":"2.0","id":1.0,"result":{}}', b'{"jsonrpc":"2.0","id":true,"result":{}}',
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":7}}',
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"x","progress":1}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
        b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":7}',
        b'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":7}}',
        b'{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}',
        b'{"jsonrpc":"2.0","method":"tools/list"}', b'{"jsonrpc":"2.0","method":"exit"}',
    ]
)  # fmt: skip


@dataclass(eq=False)
class Waiting:
    """A call of the client that the server has not answered yet."""

    id: int
    method: str
    task: asyncio.Task[Any]
    deadline: float | None
    timeout: float | None
    told: list[float] | None
    """The progress that the caller was told of; None when it does not ask."""


class ClientMachine(RuleBasedStateMachine):
    """A server that does anything at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = TurnedLoop()
        self.loop.__enter__()
        self.client: Client | None = None
        self.revision: str | None = None
        self.gone = False
        self.waiting: list[Waiting] = []
        self.given_up: Counter[int] = Counter()
        self.owed: Counter[str] = Counter()
        """The answers that the client owes, by id."""
        self.listening: Any = None
        self.listen_id: int | None = None

    # ------------------------------------------------------------------ opening

    @initialize(revision=st.sampled_from(REVISION_NAMES), pinned=st.booleans())
    def connects_well(self, revision: str, pinned: bool) -> None:
        self.connects(revision, pinned, "right", "right")

    @precondition(lambda self: self.client is None)
    @rule(
        revision=st.sampled_from(REVISION_NAMES),
        pinned=st.booleans(),
        discover=st.sampled_from(["right"] * 6 + ["refuse", "silence", "odd", "stray"]),
        initialize=st.sampled_from(["right"] * 8 + ["refuse", "silence", "odd", "hang up"]),
    )
    def connects(self, revision: str, pinned: bool, discover: str, initialize: str) -> None:
        self.stream = FedStream()
        self.client = new_client(self.stream, revision if pinned else None)
        connecting = self.loop.start(self.client.connect())
        for _ in range(50):
            for message in self.stream.sent():
                if "id" in message:
                    self.opens(message, revision, discover if message["method"] == "server/discover" else initialize)
            self.loop.idle()
            if connecting.done():
                break
            self.loop.advance(1)
        assert connecting.done(), "opening never ends"
        if connecting.exception() is not None:
            assert isinstance(connecting.exception(), ModelwireError)
            self.client = None
            return
        self.revision = self.client.revision.name
        assert self.revision == revision
        self.stream.sent()
        self.gone = False

    def opens(self, message: dict[str, Any], revision: str, how: str) -> None:
        if (message["method"] == "server/discover") is not (revision == PER_REQUEST) and how == "right":
            how = "refuse"
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if how == "right":
            self.stream.say({**answer, "result": opening_result(message["method"], revision)})
        elif how in ("refuse", "stray"):
            answer["id"] = None if how == "stray" else message["id"]
            self.stream.say({**answer, "error": {"code": -32601, "message": "no"}})
        elif how == "odd":
            self.stream.say({**answer, "result": {"protocolVersion": 7}})
        elif how == "hang up":
            self.stream.hang_up()

    # ------------------------------------------------------------------ what the client does

    @precondition(lambda self: self.client is not None)
    @rule(kind=st.sampled_from(sorted(CALLS) + ["call_tool"] * 6), timeout=st.sampled_from([None, 5.0, 20.0]))
    def calls(self, kind: str, timeout: float | None) -> None:
        assert self.client is not None
        told: list[float] = []
        calling = CALLS[kind](self.client, timeout, lambda done, total, words: told.append(done))
        task = self.loop.start(_as_coroutine(calling))
        if self.gone:
            assert isinstance(task.exception(), ConnectionLost)
            return
        [request] = self.check(1)
        deadline = None if timeout is None else self.loop.time() + timeout
        self.waiting.append(
            Waiting(request["id"], request["method"], task, deadline, timeout, told if kind == "call_tool" else None)
        )

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def a_caller_gives_up(self, data: st.DataObject) -> None:
        call = self.drawn(data)
        call.task.cancel()
        self.given_up[call.id] += 1
        self.loop.idle()
        assert call.task.cancelled()
        self.check()

    @precondition(lambda self: self.client is not None and self.listening is None and not self.gone)
    @rule(how=st.sampled_from(["right", "right", "error", "ends", "odd", "silence"]))
    def listens(self, how: str) -> None:
        assert self.client is not None
        listening = self.client.listen(tools=True)
        entering = self.loop.start(listening.__aenter__())
        if self.revision != PER_REQUEST:
            self.check()
            self.listening = entering.result()
            return
        [request] = self.check(1)
        self.answers_listen(request["id"], how)
        self.loop.idle()
        if not entering.done():
            self.given_up[request["id"]] += 1
            self.time_passes(90)
        assert entering.done()
        if entering.exception() is None:
            self.listening, self.listen_id = listening, request["id"]
            if how != "right":
                self.stops_listening(over=True)
        else:
            assert isinstance(entering.exception(), ModelwireError)
        self.check()

    def answers_listen(self, id_: int, how: str) -> None:
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": id_}
        meta = {"_meta": {SUBSCRIPTION_KEY: id_}}
        agreed: Any = {"toolsListChanged": True} if how == "right" else 7
        if how in ("right", "odd"):
            self.notify("notifications/subscriptions/acknowledged", {**meta, "notifications": agreed})
        elif how == "error":
            self.stream.say({**answer, "error": {"code": -32603, "message": "no"}})
        elif how == "ends":
            self.stream.say({**answer, "result": {**meta, "resultType": "complete"}})

    @precondition(lambda self: self.listening is not None and not self.gone)
    @rule(times=st.integers(1, 3))
    def news_come(self, times: int) -> None:
        params = {} if self.listen_id is None else {"_meta": {SUBSCRIPTION_KEY: self.listen_id}}
        for _ in range(times):
            self.notify("notifications/tools/list_changed", params)
        self.loop.idle()
        self.loop.finish(_as_coroutine(self.listening.__anext__()), within=0)
        assert not self.listening._events
        self.check()

    @precondition(lambda self: self.listening is not None)
    @rule()
    def stops_listening(self, over: bool = False) -> None:
        if self.listen_id is not None and not over and not self.gone:
            self.given_up[self.listen_id] += 1
        listening, self.listening, self.listen_id = self.listening, None, None
        self.loop.finish(listening.aclose())
        if not over:
            self.check()

    @precondition(lambda self: self.client is not None)
    @rule(really=RARELY, polite=st.booleans())
    def closes(self, really: bool, polite: bool) -> None:
        assert self.client is not None
        if not really:
            return
        if self.listen_id is not None and not self.gone and polite:
            self.stops_listening()
        self.listening = self.listen_id = None
        closing = self.loop.start(self.client.close())
        self.loop.finish(closing)
        self.all_fail()
        self.ended()

    # ------------------------------------------------------------------ what the server does

    @precondition(lambda self: self.waiting and not self.gone)
    @rule(data=st.data(), how=st.sampled_from(["result", "error", "both", "string id", "twice", "batch"]))
    def answers(self, data: st.DataObject, how: str) -> None:
        call = self.drawn(data)
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": call.id, "result": self.right(call.method)}
        expected: type[BaseException] | None = None
        if how == "error":
            del answer["result"]
            expected = PeerError
        elif how == "both" or (how == "batch" and self.revision != "2025-03-26"):
            expected = ProtocolViolation
        if how in ("error", "both"):
            answer["error"] = {"code": -32000, "message": "no", "data": [1]}
        if how == "string id":
            answer["id"] = str(call.id)
            self.waiting.append(call)
        self.stream.say([answer] if how == "batch" else answer, *([answer] if how == "twice" else []))
        self.loop.idle()
        if how == "string id":
            assert not call.task.done()
        else:
            assert call.task.done()
            error = call.task.exception()
            assert error is None if expected is None else isinstance(error, expected)
        self.check()

    @precondition(lambda self: self.waiting and not self.gone)
    @rule(data=st.data(), result=ODD_RESULTS)
    def answers_oddly(self, data: st.DataObject, result: Any) -> None:
        call = self.drawn(data)
        self.stream.say({"jsonrpc": "2.0", "id": call.id, "result": result})
        self.loop.idle()
        assert call.task.done()
        assert isinstance(call.task.exception(), ModelwireError | None)
        self.check()

    @precondition(lambda self: any(call.method.endswith("/list") for call in self.waiting) and not self.gone)
    @rule(data=st.data(), cursor=st.sampled_from(["a", "b", ""]))
    def answers_with_a_page(self, data: st.DataObject, cursor: str) -> None:
        call = data.draw(st.sampled_from([call for call in self.waiting if call.method.endswith("/list")]))
        self.waiting.remove(call)
        answer = {"jsonrpc": "2.0", "id": call.id, "result": {**self.right(call.method), "nextCursor": cursor}}
        self.stream.say(answer)
        self.loop.idle()
        if call.task.done():  # the cursor had come before: a list without end
            assert isinstance(call.task.exception(), ProtocolViolation)
            self.check()
            return
        [following] = self.check(1)
        assert following["params"]["cursor"] == cursor
        call.id = following["id"]
        call.deadline = None if call.timeout is None else self.loop.time() + call.timeout
        self.waiting.append(call)

    @precondition(lambda self: self.client is not None and not self.gone)
    @rule(data=st.data(), value=st.sampled_from([0, 0.5, 2, -1]))
    def tells_progress(self, data: st.DataObject, value: float) -> None:
        tokens: list[Any] = [call.id for call in self.waiting] + [4711, "x"]
        token = data.draw(st.sampled_from(tokens), label="token")
        self.notify("notifications/progress", {"progressToken": token, "progress": value})
        self.loop.idle()
        for call in self.waiting:
            if call.id == token and call.told is not None:
                assert call.told.pop() == value
                call.deadline = None if call.timeout is None else self.loop.time() + call.timeout
        assert not any(call.told for call in self.waiting)
        self.check()

    @precondition(lambda self: self.client is not None and not self.gone)
    @rule(noise=NOISE)
    def makes_noise(self, noise: bytes) -> None:
        self.stream.feed(noise + b"\n")
        self.loop.idle()
        self.check()

    @precondition(lambda self: self.client is not None and not self.gone)
    @rule(
        id_=st.sampled_from([1, 2, 3, 4, 5, "1", "x"]),
        method=st.sampled_from(["ping", *ASKED, "initialize", "tools/list", "acme/x"]),
        params=st.sampled_from([{}, {"messages": 7}, [], 7, None]),
    )
    def asks(self, id_: Any, method: str, params: Any) -> None:
        self.stream.say({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
        if self.revision != PER_REQUEST:  # "The server MUST NOT write JSON-RPC requests" there
            self.owed[json.dumps(id_)] += 1
        self.loop.idle()
        self.check()

    @precondition(lambda self: self.client is not None)
    @rule(seconds=st.sampled_from([3, 6, 30]))
    def time_passes(self, seconds: float) -> None:
        end = self.loop.time() + seconds
        late = [call for call in self.waiting if call.deadline is not None and call.deadline <= end]
        self.loop.advance(seconds)
        for call in late:
            self.waiting.remove(call)
            self.given_up[call.id] += 1
            assert isinstance(call.task.exception(), RequestTimeout)
        self.check()

    @precondition(lambda self: self.client is not None and not self.gone)
    @rule(really=RARELY, how=st.sampled_from(["hang up", "break"]))
    def goes_away(self, really: bool, how: str) -> None:
        if not really:
            return
        if how == "hang up":
            self.stream.hang_up()
        else:
            self.stream.break_off()
        self.loop.idle()
        self.gone = True
        self.all_fail()
        if self.listening is not None:
            events = self.loop.start(_until_the_end(self.listening))  # what was heard before is still handed out
            assert isinstance(events.exception(), ConnectionLost)
        self.check()

    # ------------------------------------------------------------------ what holds

    def drawn(self, data: st.DataObject) -> Waiting:
        call = data.draw(st.sampled_from(self.waiting), label="call")
        self.waiting.remove(call)
        return call

    def right(self, method: str) -> dict[str, Any]:
        result = dict(RIGHT.get(method, {}))
        if method == "server/discover":
            result = opening_result(method, PER_REQUEST)
        return {**result, "resultType": "complete"} if self.revision == PER_REQUEST else result

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self.stream.say({"jsonrpc": "2.0", "method": method, "params": params})

    def check(self, requests: int = 0) -> list[dict[str, Any]]:
        """Hold what the client sent against what it had to; return its requests."""
        asked: list[dict[str, Any]] = []
        for message in self.stream.sent():
            known = message.get("method") != "acme/x"
            assert self.revision is None or not known or validate_message(self.revision, "client", message) == []
            if "method" not in message:
                self.owed[json.dumps(message["id"])] -= 1
            elif "id" in message:
                asked.append(message)
            else:
                assert message["method"] == "notifications/cancelled"
                self.given_up[message["params"]["requestId"]] -= 1
        assert {id_: count for id_, count in self.owed.items() if count} == {}
        assert {id_: count for id_, count in self.given_up.items() if count} == {}
        assert len(asked) == requests
        assert [call for call in self.waiting if call.task.done()] == []
        return asked

    def all_fail(self) -> None:
        for call in self.waiting:
            assert call.task.done()
            assert isinstance(call.task.exception(), ConnectionLost)
        self.waiting.clear()

    def ended(self) -> None:
        assert self.client is not None
        assert self.stream.closed
        assert not self.client.connected
        contact = self.client._contacts.current
        assert contact is not None
        connection = contact.connection
        assert (len(connection.pending), connection.calls, len(connection.callbacks)) == (0, {}, 0)
        self.client = self.revision = None
        self.gone = False
        self.given_up.clear()
        assert self.loop.left_over() == []

    def teardown(self) -> None:
        try:
            if self.client is not None:
                self.closes(really=True, polite=True)
        except BaseException as error:
            self.loop.__exit__(type(error), error, None)
            raise
        self.loop.__exit__(None, None, None)


async def _until_the_end(listening: Any) -> None:
    async for _ in listening:
        pass


async def _as_coroutine(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


@needs_spec
@pytest.mark.timeout(600)
class TestAClient(ClientMachine.TestCase):
    settings = settings(stateful_step_count=40, max_examples=max(150, settings().max_examples))
