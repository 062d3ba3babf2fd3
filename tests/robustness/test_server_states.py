"""Every message in every state of a server: one answer each, none after a cancellation, nothing left at the end."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from modelwire import Context, RpcError, Server, ToolError
from tests.robustness.fed_stream import FedStream
from tests.robustness.malformed import CAPABILITIES_KEY, GOOD_META, LEVEL_KEY, PER_REQUEST, VERSION_KEY
from tests.robustness.opening import initialize as opening
from tests.robustness.server_model import FAILING_TOOLS, LEVELS, SUBSCRIPTION_KEY, TOOLS, Owed, ServerModel, spelled
from tests.robustness.turning import TurnedLoop
from tests.spec import REVISION_NAMES, needs_spec, validate_message

IDS = st.sampled_from([1, "1", 2, 3, "a", 2**70, -1, "", *range(10, 20)])
ERAS: dict[str, dict[str, Any]] = {
    "none": {},
    "per-request": GOOD_META,
    "handshake revision": {VERSION_KEY: "2025-06-18", CAPABILITIES_KEY: {}},
    "unknown revision": {VERSION_KEY: "1999-01-01", CAPABILITIES_KEY: {}},
    "no capabilities": {VERSION_KEY: PER_REQUEST},
}
ERA = st.sampled_from(["none"] * 8 + ["per-request"] * 5 + [*ERAS])
HANDSHAKES = [name for name in REVISION_NAMES if name != PER_REQUEST]
VERSIONS = st.sampled_from(["2025-03-26"] * 4 + [*REVISION_NAMES, *REVISION_NAMES, "1999-01-01", "", None, 7])
RARELY = st.sampled_from([False] * 11 + [True])
LATER = st.sampled_from([False, False, True])
"""Whether a message stays with the next one, so that both arrive in one read."""
URIS = st.sampled_from(["note://a", "note://b"])
LISTS = ["tools", "prompts", "resources"]
PLAIN: list[tuple[str, dict[str, Any]]] = [
    ("ping", {}), ("ping", {}), ("server/discover", {}), ("tools/list", {}), ("prompts/list", {}),
    ("resources/list", {}), ("resources/templates/list", {}), ("shutdown", {}), ("prompts/get", {"name": "hello"}),
    ("resources/read", {"uri": "note://a"}), ("resources/read", {"uri": "note://none"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "hello"}, "argument": {"name": "x", "value": ""}}),
    ("sampling/createMessage", {}), ("tasks/list", {}), ("acme/none", {}), ("notifications/initialized", {}),
]  # fmt: skip
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        **{f"{name}ListChanged": st.booleans() for name in LISTS},
        "resourceSubscriptions": st.lists(URIS, max_size=2),
    },
)
GARBAGE: list[tuple[bytes, int | None]] = [
    (b"nope", -32700),
    (b'{"jsonrpc":"2.0","id":', -32700),
    (b"\xff\xfe", -32700),
    (b"{}", -32600),
    (b"7", -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","method":"ping","params":3}', -32600),
    (b'{"jsonrpc":"2.0","id":777,"result":{}}', None),
    (b'{"jsonrpc":"2.0","id":777,"result":{},"error":{"code":1,"message":""}}', None),
    (b'{"jsonrpc":"2.0","id":"1","error":{"code":1,"message":"x"}}', None),
    (b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}', None),
    (b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"quick"}}', None),
    (b"", None),
]


class Stage:
    """A server whose tools do what the machine says, when it says so."""

    def __init__(self) -> None:
        self.gates: dict[str, asyncio.Future[None]] = {}
        self.kept: list[Context] = []
        self.server = Server("stage")
        self.server.add_prompt(lambda: "hello", name="hello")
        for uri in ("note://a", "note://b"):
            self.server.add_resource(uri, lambda: "text", name=uri)
        for tool in (self.quick, self.steps, self.talk, self.keep, self.gate, self.stubborn, self.ask):
            self.server.add_tool(tool)
        for tool in (self.fail, self.cancel_itself, self.wrong, self.refuse, self.threaded):
            self.server.add_tool(tool)

    async def quick(self) -> str:
        return "done"

    def threaded(self) -> str:
        return "done"

    async def steps(self, ctx: Context) -> None:
        for step in (1, 1, 3, 2):
            ctx.progress(step, 3, "on it")
            await asyncio.sleep(0)

    async def talk(self, ctx: Context) -> None:
        ctx.log.debug("quietly")
        ctx.log.error("loudly")

    async def keep(self, ctx: Context) -> None:
        self.kept.append(ctx)

    async def gate(self, ctx: Context) -> str:
        ctx.progress(1)
        await self._gate(ctx)
        ctx.progress(2)
        return "released"

    async def stubborn(self, ctx: Context) -> str:
        self.kept.append(ctx)
        try:
            await self._gate(ctx)
        except asyncio.CancelledError:
            ctx.progress(2)
            ctx.log.error("too late")
        return "released"

    async def _gate(self, ctx: Context) -> None:
        gate = self.gates[spelled(ctx.request_id)] = asyncio.get_running_loop().create_future()
        await gate

    async def ask(self, ctx: Context) -> str:
        await ctx.request("roots/list", timeout=30)
        return "answered"

    async def fail(self) -> None:
        raise ValueError("on purpose")

    async def cancel_itself(self) -> None:
        raise asyncio.CancelledError

    async def wrong(self) -> None:
        raise ToolError("no")

    async def refuse(self) -> None:
        raise RpcError(1234, "refused")


class ServerMachine(RuleBasedStateMachine):
    """A client that says anything at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = TurnedLoop()
        self.loop.__enter__()
        self.loop.forgiven = lambda record: any(f"'{tool}'" in record.getMessage() for tool in (*FAILING_TOOLS, "ask"))
        self.stage = Stage()
        self.tokens = 0
        self.extra = False
        self.serve()

    # ------------------------------------------------------------------ saying things

    def say(self, message: Any, later: bool) -> None:
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.waiting += line + b"\n"
        if not later:
            self.flush()

    def flush(self) -> None:
        """Let everything arrive that was said, in one read, and hold what comes against the model."""
        if self.model.exiting:
            self.end()
            return
        logs = self.model.logs()
        self.stream.feed(self.waiting)
        self.waiting = b""
        self.loop.idle()
        self.check(logs)

    def request(self, id_: Any, method: str, params: dict[str, Any], era: str, **meta: Any) -> dict[str, Any]:
        meta = {**ERAS[era], **meta}
        params = {**params, "_meta": meta} if meta else params
        return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}

    @property
    def over(self) -> bool:
        return self.serving.done()

    # ------------------------------------------------------------------ rules: what a client may say

    def serve(self) -> None:
        self.model = ServerModel()
        self.stream = FedStream()
        self.serving = self.loop.start(self.stage.server.serve(self.stream))
        self.waiting = b""
        self.stage.kept.clear()

    @initialize(version=st.sampled_from([None, "2025-03-26", *HANDSHAKES]), ready=st.booleans())
    def connects_first(self, version: str | None, ready: bool) -> None:
        self.connects(version, ready)

    @precondition(lambda self: self.over)
    @rule(version=st.sampled_from([None, "2025-03-26", *HANDSHAKES]), ready=st.booleans())
    def connects(self, version: str | None, ready: bool) -> None:
        if self.over:
            self.serve()
        if version is not None:
            self.opens("opening", version, "none", later=ready)
        if ready:
            self.notifies("notifications/initialized", later=False)

    @precondition(lambda self: not self.over)
    @rule(really=RARELY)
    def hangs_up(self, really: bool) -> None:
        self.flush()
        if really and not self.over:
            self.end()

    @precondition(lambda self: not self.over)
    @rule(id_=IDS, version=VERSIONS, era=ERA, later=LATER)
    def opens(self, id_: Any, version: Any, era: str, later: bool) -> None:
        message = opening(version, id_)
        if ERAS[era]:
            message["params"]["_meta"] = ERAS[era]
        self.model.request(message)
        self.say(message, later)

    @precondition(lambda self: not self.over)
    @rule(id_=IDS)
    def opens_without_a_name(self, id_: Any) -> None:
        message = opening("2025-06-18", id_)
        del message["params"]["clientInfo"]
        self.model.request(message)
        self.say(message, later=False)

    @precondition(lambda self: not self.over)
    @rule(method=st.sampled_from(["notifications/initialized", "initialized", "acme/none", "ping"]), later=LATER)
    def notifies(self, method: str, later: bool) -> None:
        self.model.notification(method)
        self.say({"jsonrpc": "2.0", "method": method}, later)

    @precondition(lambda self: not self.over)
    @rule(id_=IDS, what=st.sampled_from(PLAIN), era=ERA, later=LATER)
    def requests(self, id_: Any, what: tuple[str, dict[str, Any]], era: str, later: bool) -> None:
        message = self.request(id_, *what, era)
        self.model.request(message)
        self.say(message, later)

    @precondition(lambda self: not self.over)
    @rule(id_=IDS, tool=st.sampled_from(TOOLS), era=ERA, token=st.booleans(), level=st.sampled_from([None, *LEVELS]))
    def calls(self, id_: Any, tool: str, era: str, token: bool, level: str | None) -> None:
        self.calls_soon(id_, tool, era, token, level)
        self.flush()

    @precondition(lambda self: not self.over)
    @rule(id_=IDS, tool=st.sampled_from(TOOLS), era=ERA, token=st.booleans(), level=st.sampled_from([None, *LEVELS]))
    def calls_soon(self, id_: Any, tool: str, era: str, token: bool, level: str | None) -> None:
        meta: dict[str, Any] = {} if level is None else {LEVEL_KEY: level}
        if token:
            self.tokens += 1
            meta["progressToken"] = self.tokens if self.tokens % 2 else f"t{self.tokens}"
        message = self.request(id_, "tools/call", {"name": tool}, era, **meta)
        self.model.request(message)
        self.say(message, later=True)

    @precondition(lambda self: not self.over)
    @rule(id_=IDS, uri=URIS, un=st.sampled_from(["", "un"]), era=ERA, later=LATER)
    def subscribes(self, id_: Any, uri: str, un: str, era: str, later: bool) -> None:
        message = self.request(id_, f"resources/{un}subscribe", {"uri": uri}, era)
        self.model.request(message)
        self.say(message, later)

    @precondition(lambda self: not self.over)
    @rule(id_=IDS, level=st.sampled_from(LEVELS), era=ERA, later=LATER)
    def sets_the_level(self, id_: Any, level: str, era: str, later: bool) -> None:
        message = self.request(id_, "logging/setLevel", {"level": level}, era)
        self.model.request(message)
        self.say(message, later)

    @precondition(lambda self: not self.over)
    @rule(id_=IDS, wanted=FILTERS, era=ERA, later=LATER)
    def listens(self, id_: Any, wanted: dict[str, Any], era: str, later: bool) -> None:
        message = self.request(id_, "subscriptions/listen", {"notifications": wanted}, era)
        self.model.request(message)
        self.say(message, later)

    @precondition(lambda self: not self.over)
    @rule(id_=IDS | st.sampled_from([99, None, 1.0, True]), reason=st.sampled_from([{}, {"reason": "x"}]), later=LATER)
    def cancels(self, id_: Any, reason: dict[str, Any], later: bool) -> None:
        if isinstance(id_, int | str) and not isinstance(id_, bool):
            self.model.cancel(id_)
        params = {"requestId": id_, **reason}
        self.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}, later)

    @precondition(lambda self: not self.over)
    @rule(what=st.sampled_from(GARBAGE), later=LATER)
    def says_garbage(self, what: tuple[bytes, int | None], later: bool) -> None:
        if what[1] is not None:
            self.model.garbage(what[1])
        self.say(what[0], later)

    @precondition(lambda self: not self.over)
    @rule(
        items=st.lists(
            st.tuples(IDS, st.sampled_from(["ping", "initialize", "cancel", "quick", "gate", "ask", "steps"])),
            max_size=4,
        ),
        later=LATER,
    )
    def sends_a_batch(self, items: list[tuple[Any, str]], later: bool) -> None:
        batch: list[dict[str, Any]] = []
        for id_, what in items:
            if what == "cancel":
                batch.append({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_}})
            elif what == "initialize":
                batch.append(opening("2025-11-25", id_))
            else:
                params = {} if what == "ping" else {"name": what}
                batch.append(self.request(id_, "ping" if what == "ping" else "tools/call", params, "none"))
        self.model.batch(batch)
        self.say(batch, later)

    # ------------------------------------------------------------------ rules: what happens besides

    @precondition(lambda self: not self.over)
    @rule(data=st.data())
    def a_tool_goes_on(self, data: st.DataObject) -> None:
        self.flush()
        gated = [owed for owed in self.model.owed if owed.state == "gated"] if not self.over else []
        if gated:
            owed = data.draw(st.sampled_from(gated), label="released")
            owed.state = "soon"
            self.stage.gates.pop(spelled(owed.id)).set_result(None)
            self.flush()

    @precondition(lambda self: not self.over)
    @rule(
        data=st.data(),
        how=st.sampled_from(["right", "error", "both", "method", "string id", "unknown id"]),
        twice=st.booleans(),
    )
    def the_client_answers(self, data: st.DataObject, how: str, twice: bool) -> None:
        self.flush()
        asking = [owed for owed in self.model.owed if owed.outgoing is not None] if not self.over else []
        if not asking:
            return
        owed = data.draw(st.sampled_from(asking), label="answered")
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": owed.outgoing, "result": {"roots": []}}
        if how in ("error", "both"):
            answer["error"] = {"code": -32601, "message": "no"}
        if how == "error":
            del answer["result"]
        if how == "method":  # is it an answer or a request? It fails the one, and is refused as the other
            answer["method"] = "roots/list"
            for _ in range(1 + twice):
                self.model.garbage(-32600, owed.outgoing)
        if how.endswith("id"):
            answer["id"] = str(owed.outgoing) if how == "string id" else 12345
        else:
            owed.state, owed.outgoing, owed.is_error = "soon", None, how != "right"
        self.say(answer, later=twice)
        if twice:
            self.say(answer, later=False)

    @precondition(lambda self: not self.over)
    @rule(seconds=st.sampled_from([1, 31]))
    def time_passes(self, seconds: int) -> None:
        self.flush()
        if self.over:
            return
        logs = self.model.logs()
        if seconds == 31:
            for owed in self.model.owed:
                if owed.outgoing is not None:
                    self.model.given_up[spelled(owed.outgoing)] += 1
                    owed.state, owed.outgoing, owed.is_error = "soon", None, True
        self.loop.advance(seconds)
        self.check(logs)

    @precondition(lambda self: not self.over)
    @rule(names=st.lists(st.sampled_from(LISTS) | URIS, min_size=1, max_size=3))
    def things_change(self, names: list[str]) -> None:
        self.flush()
        if self.over:
            return
        for name in names:
            self.model.changed(name, "list" if name in LISTS else "resource")
            self.stage.server.changed(name)
        self.flush()

    @precondition(lambda self: not self.over)
    @rule()
    def a_tool_comes_or_goes(self) -> None:
        self.flush()
        if self.over:
            return
        self.model.changed("tools", "list")
        if self.extra:
            self.stage.server.remove_tool("extra")
        else:
            self.stage.server.add_tool(self.stage.quick, name="extra")
        self.extra = not self.extra
        self.flush()

    @precondition(lambda self: not self.over)
    @rule()
    def handlers_speak_after_their_end(self) -> None:
        self.flush()
        gone = {spelled(owed.id) for owed in self.model.owed if owed.tool == "stubborn"}
        for ctx in self.stage.kept:
            if spelled(ctx.request_id) not in gone:
                ctx.progress(9)
                ctx.log.emergency("late")
                ctx.notify("acme/late")
        self.flush()

    @precondition(lambda self: not self.over)
    @rule(really=RARELY)
    def exits(self, really: bool) -> None:
        if not really:
            return
        self.model.notification("exit")
        self.say({"jsonrpc": "2.0", "method": "exit"}, later=True)
        if self.model.exiting:  # then nothing after it is read
            self.say(self.request("after the end", "ping", {}, "none"), later=True)
        self.flush()

    # ------------------------------------------------------------------ what comes

    def check(self, logs: Counter[str]) -> None:
        for message in self.stream.sent():
            if isinstance(message, list):
                self.model.answered_batch(message)
            elif "method" not in message:
                self.model.answered(message)
            elif "id" in message:
                self.server_asks(message)
            else:
                self.heard(message, logs)
        assert +logs == Counter(), f"log messages did not come: {logs}"
        self.model.settle()

    def server_asks(self, message: dict[str, Any]) -> None:
        owed = next(owed for owed in self.model.owed if owed.state == "asking" and owed.outgoing is None)
        assert validate_message(owed.revision, "server", message) == []
        owed.outgoing = message["id"]

    def heard(self, message: dict[str, Any], logs: Counter[str]) -> None:
        params = message.get("params", {})
        tag = params.get("_meta", {}).get(SUBSCRIPTION_KEY)
        revision = PER_REQUEST if tag is not None else None
        method = message["method"]
        if method == "notifications/progress":
            revision = self.progress(params)
        elif method == "notifications/message":
            logs[params["level"]] -= 1
            assert logs[params["level"]] >= 0, f"nobody wanted {params}"
        elif method == "notifications/cancelled":
            self.model.given_up[spelled(params["requestId"])] -= 1
            assert self.model.given_up[spelled(params["requestId"])] >= 0
        elif method == "notifications/subscriptions/acknowledged":
            self.acknowledged(self.listen(tag), params)
        else:
            self.told(method, params, None if tag is None else self.listen(tag))
        assert validate_message(revision or self.model.refusing, "server", message) == []

    def progress(self, params: dict[str, Any]) -> str:
        owed = next(one for one in self.model.owed if one.token is not None and one.token == params["progressToken"])
        assert not owed.progress or owed.progress[-1] < params["progress"]
        owed.progress.append(params["progress"])
        return owed.revision

    def listen(self, tag: Any) -> Owed:
        same = (owed for owed in self.model.owed if spelled(owed.id) == spelled(tag))
        return next(owed for owed in same if owed.method == "subscriptions/listen" and owed.code is None)

    def acknowledged(self, owed: Owed, params: dict[str, Any]) -> None:
        assert not owed.acknowledged
        assert params["notifications"] == {key: value for key, value in owed.wanted.items() if value is not False}
        owed.acknowledged = True

    def told(self, method: str, params: dict[str, Any], owed: Owed | None) -> None:
        assert owed.acknowledged if owed is not None else self.model.ready
        name = params["uri"] if method == "notifications/resources/updated" else method.split("/")[1]
        key = (None if owed is None else spelled(owed.id), name)
        assert self.model.news[key] == 1, f"nobody wanted to know of {key}"
        del self.model.news[key]

    # ------------------------------------------------------------------ the end

    def end(self) -> None:
        """The client has gone: what listens or asks is told, what can finish does, the rest is cancelled in silence."""
        sessions = list(self.stage.server.features._sessions)
        logs = self.model.logs()
        for owed in self.model.owed:
            if owed.state == "listen":
                self.model.given_up[spelled(owed.id)] += 1
                owed.state = "soon"
        self.stream.feed(self.waiting)
        self.stream.hang_up()
        for owed in self.model.owed:
            if owed.state == "asking":  # nobody will answer, which is the tool's failure
                owed.state, owed.is_error = "soon", True
        self.loop.idle()
        self.check(logs)
        unfinished = {owed.group for owed in self.model.owed if owed.group is not None}
        self.model.owed = [owed for owed in self.model.owed if owed.group in unfinished and owed.state == "held"]
        self.model.news.clear()
        self.loop.advance(10)
        self.check(Counter())
        assert self.serving.done()
        assert self.serving.exception() is None
        assert self.stream.closed
        assert [dict(connection.calls) for connection in sessions] == [{} for _ in sessions]
        assert [len(connection.pending) for connection in sessions] == [0 for _ in sessions]
        features = self.stage.server.features
        assert (features._sessions, features.hub._subscribers, features.listeners._open) == ({}, {}, {})

    def teardown(self) -> None:
        try:
            if not self.over:
                self.flush()
            if not self.over:
                self.end()
        except BaseException as error:
            self.loop.__exit__(type(error), error, None)
            raise
        self.loop.__exit__(None, None, None)


@needs_spec
@pytest.mark.timeout(600)
class TestAServer(ServerMachine.TestCase):
    settings = settings(stateful_step_count=40, max_examples=max(150, settings().max_examples))
