"""What a server owes a client, message by message: the model that the state machine holds a real server against.

It reads the same messages as the server, in the same order, and says which answers and news must come. It is written
from the specification and the design, and shares no code with the package.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.robustness.malformed import CAPABILITIES_KEY, LEVEL_KEY, PER_REQUEST, VERSION_KEY
from tests.spec import REVISION_NAMES, validate_message

SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
LAST_HANDSHAKE = "2025-11-25"
IMMEDIATE = {
    "initialize", "ping", "server/discover", "logging/setLevel", "shutdown", "tools/list", "prompts/list",
    "resources/list", "resources/templates/list", "resources/subscribe", "resources/unsubscribe",
}  # fmt: skip
"""Answered in the order of arrival."""
TASKS = {"tools/call", "prompts/get", "resources/read", "completion/complete", "subscriptions/listen"}
NEW_ONLY = {"server/discover", "subscriptions/listen"}
OLD_ONLY = {
    "initialize", "ping", "logging/setLevel", "shutdown", "resources/subscribe", "resources/unsubscribe",
}  # fmt: skip
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

State = Literal["now", "soon", "held", "gated", "asking", "listen"]
OPEN: tuple[State, ...] = ("soon", "gated", "asking", "listen")
TOOL_STATES: dict[str, State] = {"gate": "gated", "stubborn": "gated", "ask": "asking"}
FAILING_TOOLS = {"fail", "cancel_itself", "wrong"}
TOOLS = ["quick", "threaded", "steps", "talk", "keep", "refuse", *TOOL_STATES, *FAILING_TOOLS, "unknown"]


def spelled(id_: Any) -> str:
    """Return an id as JSON, so that 1 and "1" and True differ."""
    return json.dumps(id_)


@dataclass(eq=False)
class Owed:
    """One answer that must come, or may still be cancelled."""

    id: Any
    method: str
    revision: str
    code: int | None = None
    state: State = "now"
    tool: str | None = None
    is_error: bool = False
    token: Any = None
    group: int | None = None
    wanted: dict[str, Any] = field(default_factory=dict)
    acknowledged: bool = False
    progress: list[float] = field(default_factory=list)
    log_level: str | None = None
    outgoing: Any = None
    """The id of the server's own request, while the tool asks."""

    def faults(self, answer: dict[str, Any]) -> list[str]:
        """Return why ``answer`` is not the one that is owed."""
        found = validate_message(self.revision, "server", answer, self.method)
        if answer.get("error", {}).get("code") != self.code:
            found.append(f"expected {'a result' if self.code is None else self.code}")
        elif self.is_error is not answer.get("result", {}).get("isError", False):
            found.append(f"expected isError {self.is_error}")
        if self.state not in ("now", "soon", "held"):
            found.append(f"the request is still {self.state}")
        if self.tool == "steps" and self.code is None and self.token is not None and self.progress != [1, 3]:
            found.append(f"progress was {self.progress}")
        return found


class ServerModel:
    """One connection as its client may expect it to be."""

    def __init__(self) -> None:
        self.session: str | None = None
        self.initialized = False
        self.served = False
        self.level: str | None = None
        self.subscribed: set[str] = set()
        self.owed: list[Owed] = []
        self.news: Counter[tuple[str | None, str]] = Counter()
        """What must be told, by subscription (None for the session) and list or URI."""
        self.given_up: Counter[str] = Counter()
        """The server's own requests of which it must say that it gave them up."""
        self.exiting = False
        self._groups = 0

    @property
    def ready(self) -> bool:
        return self.initialized or self.served

    @property
    def refusing(self) -> str:
        """The revision that refusals are written in where the request names none."""
        return self.session or LAST_HANDSHAKE

    # ------------------------------------------------------------------ requests

    def request(self, message: dict[str, Any], group: int | None = None) -> Owed:
        """Take in a request; return the answer that is owed for it."""
        owed = self._judge(message, message["method"], message.get("params", {}))
        owed.group = group
        self.owed.append(owed)
        return owed

    def _judge(self, message: dict[str, Any], method: str, params: dict[str, Any]) -> Owed:
        id_ = message["id"]
        if self.open_with(id_) is not None:
            return Owed(id_, method, self.refusing, -32600)
        if method not in IMMEDIATE | TASKS:
            return Owed(id_, method, self.refusing, -32601)
        meta = params.get("_meta", {})
        if VERSION_KEY not in meta:
            return self._judge_by_session(id_, method, params)
        if CAPABILITIES_KEY not in meta:
            return Owed(id_, method, self.refusing, -32602)
        if meta[VERSION_KEY] != PER_REQUEST:
            return Owed(id_, method, PER_REQUEST, -32022)
        if method in OLD_ONLY:
            return Owed(id_, method, PER_REQUEST, -32601)
        return self._admitted(id_, method, params, PER_REQUEST)

    def _judge_by_session(self, id_: Any, method: str, params: dict[str, Any]) -> Owed:
        if method == "initialize":
            return self._initialize(id_, params)
        if self.session is None and method != "ping":
            return Owed(id_, method, LAST_HANDSHAKE, -32602)
        self.served = self.served or (method != "ping" and self.session is not None)
        if method in NEW_ONLY:
            return Owed(id_, method, self.refusing, -32601)
        return self._admitted(id_, method, params, self.refusing)

    def _initialize(self, id_: Any, params: dict[str, Any]) -> Owed:
        version = params.get("protocolVersion")
        if not isinstance(version, str) or "clientInfo" not in params:
            return Owed(id_, "initialize", self.refusing, -32602)
        self.session = version if version in REVISION_NAMES and version != PER_REQUEST else LAST_HANDSHAKE
        self.served = self.initialized = False
        self.level = "info"
        self.subscribed = set()
        return Owed(id_, "initialize", self.session)

    def _admitted(self, id_: Any, method: str, params: dict[str, Any], revision: str) -> Owed:
        owed = Owed(id_, method, revision, state="now" if method in IMMEDIATE else "soon")
        owed.token = params.get("_meta", {}).get("progressToken")
        if method == "logging/setLevel":
            self.level = params["level"]
        elif method == "resources/subscribe":
            self.subscribed.add(params["uri"])
        elif method == "resources/unsubscribe":
            self.subscribed.discard(params["uri"])
        elif method == "subscriptions/listen":
            owed.state, owed.wanted = "listen", params["notifications"]
        elif method == "tools/call":
            self._call(owed, params)
        elif method == "resources/read" and params["uri"] != "note://a":
            owed.code = -32602 if revision == PER_REQUEST else -32002
        return owed

    def _call(self, owed: Owed, params: dict[str, Any]) -> None:
        tool = owed.tool = params["name"]
        owed.log_level = params.get("_meta", {}).get(LEVEL_KEY)
        if tool == "unknown":
            owed.code = -32602
        elif tool == "refuse":
            owed.code = 1234
        elif tool == "ask" and owed.revision == PER_REQUEST:
            owed.is_error = True  # a server sends no requests there
        else:
            owed.state = TOOL_STATES.get(tool, "soon")
            owed.is_error = tool in FAILING_TOOLS

    def open_with(self, id_: Any) -> Owed | None:
        """Return the request of that id that is still being answered."""
        same = (owed for owed in self.owed if spelled(owed.id) == spelled(id_) and owed.state in OPEN)
        return next(same, None)

    # ------------------------------------------------------------------ the other messages

    def notification(self, method: str) -> None:
        """Take in a notification other than a cancellation."""
        if method in ("notifications/initialized", "initialized") and self.session is not None:
            self.initialized = True
        elif method == "exit" and self.session is not None:
            self.exiting = True

    def cancel(self, id_: Any) -> None:
        """Take in a cancellation."""
        owed = self.open_with(id_)
        if owed is None:
            return
        self.owed.remove(owed)
        if owed.outgoing is not None:
            self.given_up[spelled(owed.outgoing)] += 1

    def garbage(self, code: int, id_: Any = None) -> None:
        """Take in what is no message but must be answered."""
        self.owed.append(Owed(id_, "", self.refusing, code))

    def batch(self, items: list[dict[str, Any]]) -> None:
        """Take in a batch: requests, and notifications that cancel."""
        if self.session != "2025-03-26" or not items:
            self.garbage(-32600)
            return
        self._groups += 1
        for item in items:
            if "id" not in item:
                self.cancel(item["params"]["requestId"])
            elif item["method"] == "initialize":
                self.owed.append(Owed(item["id"], "initialize", self.refusing, -32600, group=self._groups))
            else:
                self.request(item, self._groups)

    def changed(self, name: str, kind: str) -> None:
        """Note that something changed, all messages having been read.

        Args:
            name: A list's name, or a URI.
            kind: "list" or "resource".
        """
        if self.session is not None and (kind == "list" or name in self.subscribed):
            self.news[None, name] = 1
        for owed in self.owed:
            if owed.state == "listen":
                lists, uris = owed.wanted.get(f"{name}ListChanged"), owed.wanted.get("resourceSubscriptions", ())
                if name in uris if kind == "resource" else lists:
                    self.news[spelled(owed.id), name] = 1

    # ------------------------------------------------------------------ what came

    def logs(self) -> Counter[str]:
        """Return the log messages that the tools will send which are about to run."""
        expected: Counter[str] = Counter()
        for owed in self.owed:
            if owed.tool == "talk" and owed.state == "soon":
                level = owed.log_level if owed.revision == PER_REQUEST else self.level
                if level is not None:
                    expected += Counter(one for one in ("debug", "error") if LEVELS.index(one) >= LEVELS.index(level))
        return expected

    def answered(self, answer: dict[str, Any], group: int | None = None) -> None:
        """Check an answer, which must be owed."""
        same = [owed for owed in self.owed if spelled(owed.id) == spelled(answer.get("id")) and owed.group == group]
        faults = {f"{owed.method} of {owed.revision}": owed.faults(answer) for owed in same}
        fitting = next((owed for owed in same if not owed.faults(answer)), None)
        assert fitting is not None, f"nobody waits for {answer}: {faults}"
        self.owed.remove(fitting)

    def answered_batch(self, answers: list[dict[str, Any]]) -> None:
        """Check the array that answers a batch: every answer that is owed for it, and no other."""
        ids = Counter(spelled(answer.get("id")) for answer in answers)
        groups = {owed.group for owed in self.owed if owed.group is not None}
        of = {group: Counter(spelled(owed.id) for owed in self.owed if owed.group == group) for group in groups}
        group = next((group for group in sorted(groups) if of[group] == ids and not self._waiting(group)), None)
        assert group is not None, f"no batch is to be answered with {answers}; open are {of}"
        for answer in answers:
            self.answered(answer, group)

    def _waiting(self, group: int) -> bool:
        return any(owed.group == group and owed.state in ("gated", "asking") for owed in self.owed)

    def settle(self) -> None:
        """Check that everything came that had to come by now."""
        for owed in self.owed:
            if owed.group is not None and self._waiting(owed.group) and owed.state in ("now", "soon"):
                owed.state = "held"
        late = [owed for owed in self.owed if owed.state in ("now", "soon")]
        late += [owed for owed in self.owed if owed.state == "held" and not self._waiting(owed.group or 0)]
        assert late == []
        assert [owed for owed in self.owed if owed.state == "listen" and not owed.acknowledged] == []
        assert [owed for owed in self.owed if owed.state == "asking" and owed.outgoing is None] == []
        assert +self.given_up == Counter()
        held = set() if self.ready else {key for key in self.news if key[0] is None}
        assert {key for key, count in self.news.items() if count} - held == set()
