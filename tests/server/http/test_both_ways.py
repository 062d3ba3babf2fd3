"""Without ASGI or with it: the same bytes get the same answers, are told of alike, and leave the same behind."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelwire.rpc.bounds import LARGE
from tests.server.http.asgi import BOTH
from tests.server.http.both_ways import LOOPS, MAX_MESSAGE, Way, both, exchanged, served
from tests.server.http.events import Reader
from tests.server.http.raw import call, connected, opened, posted, request
from tests.wire import MODERN, PATIENCE, dumps, modern_meta

Headers = dict[str, str]
ID = 1000
"""Of calls in a session; in a line each has another, since the call of a client that is let go is still open."""
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


def modern(method: str, **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": "m", "method": method, "params": {**params, "_meta": modern_meta()}}
    return request("POST", *posted(message))


def old(session: Headers, message: Any, method: str = "POST", **headers: str) -> bytes:
    return request(method, {**session, **headers}, message if isinstance(message, bytes) else dumps(message))


def asked(session: Headers, tool: str, id_: Any = ID, **arguments: Any) -> bytes:
    params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": 1}}
    return old(session, {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params})


def sized(size: int) -> bytes:
    """A call whose body has that many bytes."""
    own, body = call("quick", {"text": ""})
    return request("POST", own, body.replace(b'"text":""', b'"text":"%b"' % (b"x" * (size - len(body)))))


def in_chunks(whole: bytes, size: int) -> bytes:
    head, _, body = whole.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length")]
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"\r\n".join([*lines, b"Transfer-Encoding: chunked", b"", b""]) + b"".join(
        b"%x\r\n%b\r\n" % (len(piece), piece) for piece in [*pieces, b""]
    )


every_loop = pytest.mark.parametrize("loop", [pytest.param("asyncio", marks=pytest.mark.slow), "uvloop"])
Kind = Callable[[Headers, Headers], bytes]
"""Returns a request, for a session of 2025-11-25 and one of 2025-03-26."""

BATCH = [
    {"jsonrpc": "2.0", "id": 1, "method": "ping"},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "short", "arguments": {}}},
]
KINDS: dict[str, Kind] = {
    "at once": lambda new, early: request("POST", *call("quick")),
    "in a thread": lambda new, early: request("POST", *call("add", {"a": 1, "b": 2})),
    "soon": lambda new, early: request("POST", *call("short")),
    "a failure": lambda new, early: request("POST", *call("fails")),
    "progress at once": lambda new, early: request("POST", *call("tells", progressToken="t")),
    "progress": lambda new, early: request("POST", *call("steps", {"count": 3}, progressToken="t")),
    "progress nobody wants": lambda new, early: request("POST", *call("steps")),
    "a question": lambda new, early: request("POST", *call("short", {}, **{"x/y": 1})),
    "tools that come and go": lambda new, early: request("POST", *call("restless", {"name": "new"})),
    "an unknown tool": lambda new, early: request("POST", *call("nothing")),
    "an unknown method": lambda new, early: modern("no/method"),
    "a list": lambda new, early: modern("tools/list"),
    "a notification": lambda new, early: request(
        "POST", *posted({"jsonrpc": "2.0", "method": "notifications/x", "params": {"_meta": modern_meta()}})
    ),
    "a header that lies": lambda new, early: request("POST", {**call("quick")[0], "Mcp-Name": "add"}, call("quick")[1]),
    "no JSON": lambda new, early: request("POST", call("quick")[0], b"{"),
    "a mark of bytes": lambda new, early: request("POST", call("quick")[0], b"\xef\xbb\xbf" + call("quick")[1]),
    "a large body": lambda new, early: sized(LARGE),
    "a larger body": lambda new, early: sized(LARGE + 1),
    "the largest body": lambda new, early: sized(MAX_MESSAGE),
    "too large a body": lambda new, early: sized(MAX_MESSAGE + 1),
    "chunks": lambda new, early: in_chunks(request("POST", *call("quick")), 50),
    "large chunks": lambda new, early: in_chunks(sized(LARGE + 1000), 40_000),
    "a query": lambda new, early: request("POST", *call("quick"), path="/mcp?a=%20"),
    "another path": lambda new, early: request("POST", *call("quick"), path="/other"),
    "a stranger": lambda new, early: request("POST", {**call("quick")[0], "Origin": "http://evil.example"}),
    "expected": lambda new, early: request("POST", {**call("quick")[0], "Expect": "100-continue"}, call("quick")[1]),
    "an offer": lambda new, early: request("OPTIONS", {}),
    "a head": lambda new, early: request("HEAD", {}),
    "a ping": lambda new, early: old(new, {"jsonrpc": "2.0", "id": 3, "method": "ping"}),
    "at once in a session": lambda new, early: asked(new, "quick"),
    "soon in a session": lambda new, early: asked(new, "short"),
    "progress in a session": lambda new, early: asked(new, "steps", count=2),
    "progress in the early one": lambda new, early: asked(early, "steps", count=2),
    "a client that is let go": lambda new, early: asked(new, "polls"),
    "tools that come and go in a session": lambda new, early: asked(new, "restless", name="newer"),
    "a batch": lambda new, early: old(early, BATCH),
    "a batch of nothing": lambda new, early: old(early, []),
    "a batch where there is none": lambda new, early: old(new, BATCH),
    "a batch of notifications": lambda new, early: old(early, BATCH[1:2]),
    "no JSON in a session": lambda new, early: old(new, b"[1,"),
    "an answer to nothing": lambda new, early: old(new, {"jsonrpc": "2.0", "id": 99, "result": {}}),
    "a wrong session": lambda new, early: old({**new, "Mcp-Session-Id": "wrong"}, BATCH[0]),
    "no session": lambda new, early: old({k: v for k, v in new.items() if k != "Mcp-Session-Id"}, BATCH[0]),
    "a wrong revision": lambda new, early: old({**new, "MCP-Protocol-Version": "2099-01-01"}, BATCH[0]),
    "another revision": lambda new, early: old({**new, "MCP-Protocol-Version": MODERN}, BATCH[0]),
    "taken up again": lambda new, early: old(new, b"", "GET", **{"Last-Event-ID": "1-0", "Accept": BOTH}),
    "taken up in the middle": lambda new, early: old(new, b"", "GET", **{"Last-Event-ID": "2-1", "Accept": BOTH}),
    "nothing to take up": lambda new, early: old(new, b"", "GET", **{"Last-Event-ID": "77-1", "Accept": BOTH}),
    "a stream nobody takes": lambda new, early: old(new, b"", "GET", Accept="text/plain"),
    "the end of a session": lambda new, early: old(early, b"", "DELETE"),
    "the end of none": lambda new, early: old({**new, "Mcp-Session-Id": "wrong"}, b"", "DELETE"),
}
STAYING: dict[str, Kind] = {
    "waits": lambda new, early: request("POST", *call("wait")),
    "tells and waits": lambda new, early: request(
        "POST", *call("steps", {"count": 1, "then_wait": True}, progressToken=1)
    ),
    "waits in a session": lambda new, early: asked(new, "wait", id_="waits"),
    "listens": lambda new, early: modern("subscriptions/listen", notifications={"toolsListChanged": True}),
    "listens in a session": lambda new, early: old(new, b"", "GET", Accept="text/event-stream"),
}
"""Requests that stay open."""
LAST = request("POST", {**call("quick")[0], "Connection": "close"}, call("quick")[1])
FORMS = {"1.1": LAST, "1.0": LAST.replace(b"HTTP/1.1", b"HTTP/1.0", 1).replace(b"Connection: close\r\n", b"", 1)}


def same(loop: str, kinds: list[str], cuts: list[float], last: str, *, observed: bool) -> None:
    async def talk(way: Way) -> Any:
        async with connected(way.url) as http:
            new, early = await opened(http, "2025-11-25"), await opened(http, "2025-03-26")
        parts = [
            KINDS[kind](new, early).replace(b'"id":%d' % ID, b'"id":%d' % (ID + number))
            for number, kind in enumerate(kinds)
        ]
        data = b"".join([*parts, FORMS[last]])
        places = sorted({0, len(data), *(int(cut * len(data)) for cut in cuts)})
        pieces = [data[start:end] for start, end in itertools.pairwise(places)]
        methods = [part.split(b" ", 1)[0].decode() for part in [*parts, FORMS[last]]]
        return await exchanged(way.url, pieces, methods)

    direct, mounted = both(loop, talk, observed=observed)
    for kind, found, wanted in zip([*kinds, "the last"], direct[0], mounted[0], strict=False):
        assert found == wanted, kind
    assert direct == mounted
    assert len(direct[0]) == len(kinds) + 1 + kinds.count("expected")


@every_loop
@pytest.mark.parametrize("observed", [False, True])
def test_every_kind_of_request_over_one_connection(loop: str, observed: bool) -> None:
    same(loop, [kind for kind in KINDS if kind != "the end of a session"] + ["the end of a session"], [], "1.1",
         observed=observed)  # fmt: skip


lines = st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=50)
cuts = st.lists(st.floats(0, 1), max_size=12)


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=60, suppress_health_check=QUIET)
@given(st.sampled_from(sorted(LOOPS)), lines, cuts, st.sampled_from(sorted(FORMS)), st.booleans())
def test_any_line_of_requests_cut_anywhere(
    loop: str, kinds: list[str], cuts: list[float], last: str, observed: bool
) -> None:
    same(loop, kinds, cuts, last, observed=observed)


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=60, suppress_health_check=QUIET)
@given(
    st.sampled_from(sorted(LOOPS)),
    st.lists(st.sampled_from([*sorted(KINDS), *STAYING]), min_size=1, max_size=12),
    st.floats(0, 1),
    st.sampled_from(["abort", "half", "close"]),
    st.integers(0, 3),
)
def test_a_client_that_goes_at_any_moment_leaves_nothing(
    loop: str, kinds: list[str], until: float, how: str, turns: int
) -> None:
    async def one() -> None:
        async with asyncio.timeout(6 * PATIENCE), served("direct") as way:
            async with connected(way.url) as http:
                new, early = await opened(http, "2025-11-25"), await opened(http, "2025-03-26")
            data = b"".join((KINDS | STAYING)[kind](new, early) for kind in kinds)
            async with connected(way.url) as goes:
                goes.writer.write(data[: int(until * len(data))])
                for _ in range(turns):
                    await asyncio.sleep(0)
                if how == "abort":
                    goes.writer.transport.abort()
                elif how == "half":
                    goes.writer.write_eof()
                    with contextlib.suppress(ConnectionError):
                        await goes.reader.read()
            async with connected(way.url) as http:
                await http.ask("POST", *call("quick"))
                assert (await http.whole())[0] == 200
            async with asyncio.timeout(PATIENCE):
                while len(way.connections()) or way.app._at_work._responses or way.app._silences._streams:
                    await asyncio.sleep(0.001)
            way.bench.go.set()  # nothing of a session is cancelled
            async with asyncio.timeout(PATIENCE):
                while any(not session.idle for session in way.app._sessions._found.values()):
                    await asyncio.sleep(0.001)

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(one())


# ------------------------------------------------------------------ conversations

Conversation = Callable[[Way], Coroutine[Any, Any, Any]]


async def read(http: Any, session: Headers) -> Any:
    """Read a whole response, whatever its form; what is in it."""
    status, headers = await http.head()
    if "content-length" in headers:
        body = await http.reader.readexactly(int(headers["content-length"]))
        return status, json.loads(body) if body else None
    return status, await http.messages()


async def message(http: Any) -> Any:
    """Read the next message of a stream."""
    while True:
        for line in (await http.chunk()).decode().splitlines():
            if line.startswith("data: {"):
                return json.loads(line.removeprefix("data: "))


async def a_question_in_a_session(way: Way) -> Any:
    async with connected(way.url) as http, connected(way.url) as other:
        session = await opened(http, capabilities={"elicitation": {}})
        http.writer.write(asked(session, "ask_name"))
        assert (await http.head())[0] == 200
        question = await message(http)
        answer = {"action": "accept", "content": {"name": "Ann"}}
        other.writer.write(old(session, {"jsonrpc": "2.0", "id": question["id"], "result": answer}))
        return question["method"], await read(other, session), await http.messages()


async def a_question_in_a_result(way: Way) -> Any:
    meta = modern_meta()
    meta["io.modelcontextprotocol/clientCapabilities"] = {"elicitation": {"form": {}}}
    async with connected(way.url) as http:
        params: dict[str, Any] = {"name": "ask_name", "arguments": {}, "_meta": meta}
        await http.ask("POST", *posted({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
        status, first = await read(http, {})
        result = first["result"]
        (key,) = result["inputRequests"]
        params |= {
            "inputResponses": {key: {"action": "accept", "content": {"name": "Ann"}}},
            "requestState": result["requestState"],
        }
        await http.ask("POST", *posted({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}))
        second = await read(http, {})
        await http.ask("POST", *posted({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}))
        third = await read(http, {})
        return status, result["inputRequests"], second, third[0]


async def a_call_that_is_cancelled(way: Way) -> Any:
    async with connected(way.url) as http, connected(way.url) as other:
        session = await opened(http)
        http.writer.write(asked(session, "wait"))
        await way.bench.waiting.wait()
        other.writer.write(asked(session, "quick"))  # the same id, which is still in use
        again = await read(other, session)
        other.writer.write(
            old(session, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": ID}})
        )
        return again, await read(other, session), await read(http, session)


def gone(how: str, *, in_session: bool) -> Conversation:
    async def talk(way: Way) -> Any:
        async with connected(way.url) as other:
            session = await opened(other)
            async with connected(way.url) as http:
                told = {"count": 1, "then_wait": True}
                whole = request("POST", *call("steps", told, progressToken=1))
                http.writer.write(asked(session, "steps", **told) if in_session else whole)
                assert (await http.head())[0] == 200
                heard = [await message(http)]
                if how == "half":
                    http.writer.write_eof()
                    await http.reader.read()
                else:
                    http.writer.transport.abort()
            if not in_session:
                async with asyncio.timeout(PATIENCE):
                    await way.bench.cancelled.wait()
                return heard
            way.bench.go.set()
            other.writer.write(old(session, b"", "GET", **{"Last-Event-ID": "1-1", "Accept": "text/event-stream"}))
            return heard, await read(other, session)

    return talk


async def what_is_listened_to(way: Way) -> Any:
    listen = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["file:///a"]}}
    async with connected(way.url) as http, connected(way.url) as own, connected(way.url) as calls:
        http.writer.write(modern("subscriptions/listen", **listen))
        assert (await http.head())[0] == 200
        heard = [await message(http)]
        session = await opened(calls)
        own.writer.write(old(session, b"", "GET", Accept="text/event-stream"))
        assert (await own.head())[0] == 200
        way.bench.server.changed("file:///a")
        heard.append(await message(http))
        way.bench.server.add_tool(lambda: "x", name="told")
        heard += [await message(http), await message(own)]
        # Another one takes over, and what the first has heard it does not hear again.
        async with connected(way.url) as second:
            second.writer.write(old(session, b"", "GET", Accept="text/event-stream"))
            assert (await second.head())[0] == 200
            assert await own.messages() == []
            way.bench.server.remove_tool("told")
            heard += [await message(http), await message(second)]
            calls.writer.write(old(session, b"", "DELETE"))
            heard += [await read(calls, session), await second.messages()]
        http.writer.transport.abort()
        return heard


async def a_client_that_is_let_go_and_comes_back(way: Way) -> Any:
    async with connected(way.url) as http:
        session = await opened(http)
        http.writer.write(asked(session, "polls"))
        status, _ = await http.head()
        reader, data = Reader(), b""
        while chunk := await http.chunk():
            data += chunk
        first = [(event.id, event.data) for event in reader.feed(data)]
        async with connected(way.url) as other:
            other.writer.write(
                old(session, b"", "GET", **{"Last-Event-ID": reader.last_id, "Accept": "text/event-stream"})
            )
            return status, first, reader.retry, await read(other, session)


async def streams_over_one_connection(way: Way) -> Any:
    async with connected(way.url) as http:
        await http.ask("POST", *call("quick"))
        first = await read(http, {})
        await http.ask("POST", *call("steps", {"count": 1}, progressToken=1))
        second = await read(http, {})
        for _ in range(20):
            await http.ask("POST", *call("tells", progressToken=1))
            assert (await read(http, {}))[0] == 200
        return first, second


CONVERSATIONS: dict[str, Conversation] = {
    "a question in a session": a_question_in_a_session,
    "a question in a result": a_question_in_a_result,
    "a call that is cancelled": a_call_that_is_cancelled,
    "a client that resets a call": gone("abort", in_session=False),
    "a client that closes half of a call": gone("half", in_session=False),
    "a client that resets a stream of a session": gone("abort", in_session=True),
    "a client that closes half of a stream of a session": gone("half", in_session=True),
    "what is listened to": what_is_listened_to,
    "a client that is let go and comes back": a_client_that_is_let_go_and_comes_back,
    "streams over one connection": streams_over_one_connection,
}


@every_loop
@pytest.mark.parametrize("talk", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_conversations_are_the_same(loop: str, talk: Conversation) -> None:
    direct, mounted = both(loop, talk)
    assert direct == mounted


@every_loop
def test_silence_is_broken_alike(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modelwire.server.http.handshake.SOON", 0.05)

    async def talk(way: Way) -> Any:
        heard: list[Any] = []
        async with connected(way.url) as http:
            for revision in ("2025-11-25", "2025-03-26"):
                way.bench.go.clear()
                session = await opened(http, revision)
                http.writer.write(asked(session, "wait"))
                heard += [(await http.head())[0], await http.chunk()]
                way.bench.go.set()
                heard.append(await http.messages())
        return heard

    direct, mounted = both(loop, talk)
    assert direct == mounted
    assert direct[0][1].startswith(b"id: 1-0\n")
    assert direct[0][4] == b":\n\n"
