"""Clients that others wrote, on modelwire servers: each runs as a program and prints what it saw.

All of them check structured content by the tool's schema: what comes without a fault has been accepted.
"""

from __future__ import annotations

import base64
import json
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from tests.interop import server
from tests.interop.peers import LEGACY, MODERN, ROOT, needs_node_peers, needs_python_peers, program, seen_by
from tests.server.kinds import KINDS

SERVER = [sys.executable, "-m", "tests.interop.server"]
TIME_SERVER = [sys.executable, str(ROOT / "examples" / "time_server.py")]


@dataclass(frozen=True)
class Peer:
    """A client program, how it is told which era to speak, and what comes of it."""

    name: str
    path: str
    mode: str
    revision: str
    python: bool = True
    http: bool = False

    @property
    def modern(self) -> bool:
        return self.revision == MODERN


PEERS = [
    Peer("mcp", "clients/mcp_client.py", "auto", MODERN),
    Peer("mcp", "clients/mcp_client.py", "legacy", LEGACY),
    Peer("mcp", "clients/mcp_client.py", MODERN, MODERN),
    Peer("fastmcp", "clients/fastmcp_client.py", "auto", MODERN),
    Peer("fastmcp", "clients/fastmcp_client.py", "legacy", LEGACY),
    Peer("js 1", "node/sdk_client.mjs", "legacy", LEGACY, python=False),
    Peer("js 2", "node/client.mjs", "auto", MODERN, python=False),
    Peer("js 2", "node/client.mjs", "legacy", LEGACY, python=False),
    Peer("mcp", "clients/mcp_client.py", "auto", MODERN, http=True),
    Peer("mcp", "clients/mcp_client.py", "legacy", LEGACY, http=True),
    Peer("fastmcp", "clients/fastmcp_client.py", "auto", MODERN, http=True),
    Peer("js 1", "node/sdk_client.mjs", "legacy", LEGACY, python=False, http=True),
    Peer("js 2", "node/client.mjs", "auto", MODERN, python=False, http=True),
    Peer("js 2", "node/client.mjs", "legacy", LEGACY, python=False, http=True),
]


def params(peers: list[Peer]) -> list[Any]:
    return [
        pytest.param(
            peer,
            id=f"{peer.name} {peer.mode}{' http' * peer.http}",
            marks=needs_python_peers if peer.python else needs_node_peers,
        )
        for peer in peers
    ]


@pytest.fixture(scope="module", params=params(PEERS))
def peer(request: pytest.FixtureRequest) -> Peer:
    return request.param


@pytest.fixture(scope="module")
def seen(peer: Peer) -> dict[str, Any]:
    """What a client saw of the big server."""
    calls = {server.tool_name(kind): {"v": plain} for kind, (_, _, plain) in KINDS.items()}
    calls |= {"show": {}, "refuse": {"why": "the kettle is empty"}, "crash": {}}
    return seen_by(program(peer.path), SERVER, peer.mode, calls, whole=True, over_http=peer.http)


def test_the_server_is_known_by_name_and_revision(peer: Peer, seen: dict[str, Any]) -> None:
    assert seen["revision"] == peer.revision
    if peer.mode == MODERN:  # taken for granted, without a word of the server
        assert (seen["server"], seen["instructions"]) == (None, None)
    else:
        assert seen["server"] == ["made-with-modelwire", "1.2.3", "Made with modelwire"]
        assert seen["instructions"] == "Ask nicely."


def test_every_tool_is_listed_over_several_pages(peer: Peer, seen: dict[str, Any]) -> None:
    assert {server.tool_name(kind) for kind in KINDS} < set(seen["tools"])
    assert len(set(seen["tools"])) == len(seen["tools"])
    # Version 2 of the JavaScript SDK follows the pages by itself.
    assert seen["tool_pages"] == (1 if peer.name == "js 2" else -(-len(seen["tools"]) // server.PAGE))


def test_every_kind_of_result_is_accepted_by_its_schema(peer: Peer, seen: dict[str, Any]) -> None:
    answers = {kind: seen["calls"][server.tool_name(kind)] for kind in KINDS}
    assert {kind: answer["fault"] for kind, answer in answers.items() if "fault" in answer} == {}
    assert [kind for kind, answer in answers.items() if answer["error"]] == []
    for kind, (_, _, plain) in KINDS.items():
        written, structured = answers[kind]["content"][0]["text"], answers[kind]["structured"]
        assert written == plain or json.loads(written) == plain, kind
        # Before 2026-07-28 what is no object is wrapped in one, and so is what need not be one: a union.
        as_sent = [plain] if peer.modern else [{"result": plain}, *([plain] if isinstance(plain, dict) else [])]
        assert structured is None or structured in as_sent, kind


def test_no_result_was_left_unchecked(seen: dict[str, Any]) -> None:
    assert seen.get("complaints", []) == []


def test_every_kind_of_content_arrives(seen: dict[str, Any]) -> None:
    text, image, audio, link, embedded = seen["calls"]["show"]["content"]
    assert text["text"] == "all kinds of content"
    assert base64.b64decode(image["data"]) == server.PIXEL
    assert (audio["type"], audio["mimeType"]) == ("audio", "audio/wav")
    assert (link["type"], link["uri"]) == ("resource_link", "notes://all")
    assert embedded["resource"]["text"] == "a note on Ada"


def test_a_refusal_arrives_in_words_and_a_crash_without_its_secrets(seen: dict[str, Any]) -> None:
    refused, crashed = seen["calls"]["refuse"], seen["calls"]["crash"]
    assert (refused["error"], refused["content"][0]["text"]) == (True, "the kettle is empty")
    assert crashed["error"] is True
    assert "hunter2" not in json.dumps(crashed)


def test_errors_of_requests_keep_their_code(peer: Peer, seen: dict[str, Any]) -> None:
    refused = seen["refused"]
    code, message, data = refused["deny"]
    assert (code, data) == (4711, {"who": "me"})
    assert message.endswith("not you")
    # Version 2 of the JavaScript SDK gives -32002 as what 2026-07-28 made of it.
    missing = -32602 if peer.modern or peer.name == "js 2" else -32002
    assert {name: answer[0] for name, answer in refused.items()} == {
        "deny": 4711,
        "unknown tool": -32602,
        "unknown resource": missing,
        "missing resource": missing,
        "unknown prompt": -32602,
        "missing argument": -32602,
    }
    assert refused["missing resource"][2] == {"uri": "notes://nobody"}


def test_resources_are_listed_and_read(seen: dict[str, Any]) -> None:
    assert seen["resources"] == {"notes://all": "application/json", "notes://pixel": "image/png"}
    assert seen["templates"] == ["notes://{person}"]
    assert json.loads(seen["read"]["notes://all"][0]["text"]) == {"people": server.PEOPLE}
    assert base64.b64decode(seen["read"]["notes://pixel"][0]["blob"]) == server.PIXEL
    assert seen["read"]["notes://ada"][0]["text"] == "a note on ada"


def test_prompts_are_listed_written_out_and_completed(seen: dict[str, Any]) -> None:
    assert seen["prompts"] == [["greet", "Greeting", [["person", True], ["tone", False]]]]
    assert seen["prompt"] == ["user", "Write a formal greeting for Ada."]
    assert seen["completed"] == ["Ada", "Alan"]
    assert seen["completed rudely"] == []


def test_progress_and_logs_are_heard_while_a_tool_works(seen: dict[str, Any]) -> None:
    assert seen["done"] == "done"
    assert seen["progress"] == [[1, 3, "step 1"], [2, 3, "step 2"], [3, 3, "step 3"]]
    # FastMCP's client asks for everything.
    assert [log for log in seen["logs"] if log[0] == "info"] == [
        ["info", "steps", {"step": step}] for step in (1, 2, 3)
    ]


def test_progress_that_comes_with_the_answer_is_heard_in_python(peer: Peer, seen: dict[str, Any]) -> None:
    """Over stdio both JavaScript SDKs take the answer in first, and then know of no call whose progress it could be."""
    assert seen["hurried"] == ([1, 2, 3] if peer.python or peer.http else [])


def test_a_call_that_is_given_up_ends_on_the_server(seen: dict[str, Any]) -> None:
    assert seen["cancelled"] == "1"


def test_what_changes_is_heard(seen: dict[str, Any]) -> None:
    assert seen["changes"] == ["notes://ada", "tools"]
    assert seen["new"] is True


def test_a_tool_can_ask_the_user_the_model_and_for_roots(seen: dict[str, Any]) -> None:
    assert seen["booked"] == "Ritz for 3: Welcome!, ['file:///home']"


@pytest.mark.parametrize(
    "peer", params([peer for peer in PEERS if not peer.http and (peer.name == "js 1" or peer.mode == "auto")])
)
def test_the_time_server_serves_them_all(peer: Peer) -> None:
    calls = {"get_current_time": {}, "get_current_time_v2": {"timezone": "UTC"}, "build_project": {"steps": 1}}
    seen = seen_by(program(peer.path), TIME_SERVER, peer.mode, calls, whole=False)
    assert seen["revision"] == peer.revision
    assert seen["prompts"] == [["code_review", None, [["pr_number", True], ["focus", False]]]]
    said = {tool: answer["content"][0]["text"] for tool, answer in seen["calls"].items()}
    assert said["get_current_time"].startswith("当前系统时间是：")
    assert said["get_current_time_v2"].startswith("UTC 的当前时间是：")
    assert said["build_project"] == "构建完成，共 1 步"
