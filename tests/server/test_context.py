"""`Context`: what a handler knows, and what it may say while its request is open and never after."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from modelwire import ConfigError, Context, PeerError, ProtocolViolation, RequestTimeout, Server, types
from tests.wire import HANDSHAKE, MODERN, every_handshake, every_revision, session_talk, stream_talk

LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


def server_with(function: Any, **options: Any) -> Server:
    server = Server("context")
    server.add_tool(function, name="run", **options)
    return server


async def numbers(talk: Any) -> list[float]:
    await talk.settle()
    return [params["progress"] for params in talk.heard("notifications/progress")]


# --------------------------------------------------------------------------------------------------- what is known


@every_revision
async def test_a_handler_knows_its_request_and_its_peer(revision: str) -> None:
    seen: list[Any] = []

    async def run(ctx: Context) -> str:
        seen.append(ctx)
        assert not ctx.cancelled
        assert ctx.cancel_reason is None
        return f"{ctx.request_id!r} {ctx.method} {ctx.peer.revision} {ctx.peer.info.name}"  # type: ignore[union-attr]

    async with session_talk(server_with(run), revision) as talk:
        assert await talk.text("run", id="an id") == f"'an id' tools/call {revision} test"
        assert await talk.text("run", id=7) == f"7 tools/call {revision} test"
    assert seen[0] is not seen[1]


async def test_the_context_is_no_argument_of_the_tool() -> None:
    async def run(a: int, ctx: Context, b: int = 1) -> str:
        return str(a + b)

    async with session_talk(server_with(run), "2025-11-25") as talk:
        (tool,) = (await talk.result("tools/list"))["tools"]
        assert list(tool["inputSchema"]["properties"]) == ["a", "b"]
        assert (await talk.call("run", {"a": 1, "ctx": {}}))["isError"] is True


# --------------------------------------------------------------------------------------------------- progress


@pytest.mark.parametrize("token", ["t", "", 0, -5, 2**60, "日本", "job-001"])
@every_revision
async def test_progress_carries_the_token_of_the_request(revision: str, token: Any) -> None:
    async def run(ctx: Context) -> str:
        ctx.progress(1, 4, "first")
        ctx.progress(2.5)
        ctx.progress(4, 4.0)
        return "done"

    async with session_talk(server_with(run), revision) as talk:
        await talk.text("run", progressToken=token)
        heard = talk.heard("notifications/progress")
    first = {"progressToken": token, "progress": 1, "total": 4}
    if revision >= "2025-03-26":
        first["message"] = "first"
    assert heard == [
        first,
        {"progressToken": token, "progress": 2.5},
        {"progressToken": token, "progress": 4, "total": 4.0},
    ]
    assert type(heard[0]["progressToken"]) is type(token)


@every_revision
async def test_progress_comes_before_the_result(revision: str) -> None:
    async def run(ctx: Context) -> str:
        for step in range(5):
            ctx.progress(step + 1)
        return "done"

    async with stream_talk(server_with(run), revision) as talk:
        await talk.text("run", progressToken="t")
        assert [params["progress"] for params in talk.heard("notifications/progress")] == [1, 2, 3, 4, 5]


@every_revision
async def test_without_a_token_nothing_is_sent(revision: str) -> None:
    async def run(ctx: Context) -> str:
        ctx.progress(1)
        return "done"

    async with session_talk(server_with(run), revision) as talk:
        await talk.text("run")
        assert await talk.quiet()


async def test_progress_only_rises() -> None:
    async def run(ctx: Context) -> str:
        for value in (1, 1, 0.5, -1, 2, 2.0, 1.9, 3):
            ctx.progress(value)
        return "done"

    async with session_talk(server_with(run), "2025-11-25") as talk:
        await talk.text("run", progressToken="t")
        assert await numbers(talk) == [1, 2, 3]


async def test_progress_may_begin_anywhere() -> None:
    async def run(ctx: Context) -> str:
        for value in (-3, 0, 0.0):
            ctx.progress(value)
        return "done"

    async with session_talk(server_with(run), "2025-11-25") as talk:
        await talk.text("run", progressToken="t")
        assert await numbers(talk) == [-3, 0]


@pytest.mark.parametrize(("progress", "total"), [(math.nan, None), (math.inf, None), (1, math.nan), (1, -math.inf)])
async def test_a_number_that_is_not_finite_is_refused_where_it_is_given(progress: float, total: float | None) -> None:
    async def run(ctx: Context) -> str:
        with pytest.raises(ValueError, match="finite"):
            ctx.progress(progress, total)
        return "refused"

    async with session_talk(server_with(run), "2025-11-25") as talk:
        assert await talk.text("run", progressToken="t") == "refused"
        assert await talk.quiet()


async def test_two_calls_have_a_progress_of_their_own() -> None:
    async def run(value: int, ctx: Context) -> str:
        ctx.progress(value)
        return "done"

    async with session_talk(server_with(run), "2025-11-25") as talk:
        await talk.text("run", {"value": 5}, progressToken="a")
        await talk.text("run", {"value": 1}, progressToken="b")
        heard = [(params["progressToken"], params["progress"]) for params in talk.heard("notifications/progress")]
    assert heard == [("a", 5), ("b", 1)]


@pytest.mark.parametrize("over", [session_talk, stream_talk])
async def test_progress_from_a_sync_tool_and_its_threads_rises_and_comes_before_the_result(over: Any) -> None:
    def run(ctx: Context) -> str:
        barrier = threading.Barrier(4)

        def work() -> None:
            barrier.wait()
            for step in range(50):
                ctx.progress(step)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ctx.progress(1000)
        return "done"

    async with over(server_with(run), "2025-11-25") as talk:
        await talk.text("run", progressToken="t")
        heard = [params["progress"] for params in talk.heard("notifications/progress")]
    assert heard == sorted(set(heard))
    assert heard[-1] == 1000


@every_revision
async def test_nothing_is_said_for_a_request_that_is_over(revision: str) -> None:
    kept: list[Context] = []

    async def run(ctx: Context) -> str:
        ctx.progress(1)
        kept.append(ctx)
        return "done"

    async with stream_talk(server_with(run), revision, own=["com.example/n"]) as talk:
        level = {"logLevel": "debug"} if revision == MODERN else {}
        await talk.text("run", progressToken="t", **level)
        talk.inbox.clear()
        kept[0].progress(2)
        kept[0].log.error("late")
        kept[0].notify("com.example/n")
        thread = threading.Thread(target=lambda: (kept[0].progress(3), kept[0].log.error("late")))
        thread.start()
        await asyncio.to_thread(thread.join)
        assert await talk.quiet()


@every_revision
async def test_resources_and_prompts_have_a_context_too(revision: str) -> None:
    server = Server("s")

    @server.resource("x://r")
    async def read(ctx: Context) -> str:
        ctx.progress(1)
        return "r"

    @server.prompt
    def ask(ctx: Context) -> str:
        ctx.progress(2)
        return "p"

    async with session_talk(server, revision) as talk:
        await talk.result("resources/read", {"uri": "x://r"}, progressToken="r")
        await talk.result("prompts/get", {"name": "ask"}, progressToken="p")
        heard = [(params["progressToken"], params["progress"]) for params in talk.heard("notifications/progress")]
    assert heard == [("r", 1), ("p", 2)]


async def test_a_client_that_does_not_read_costs_no_memory_and_no_time() -> None:
    async def run(ctx: Context) -> str:
        for step in range(20_000):
            ctx.progress(step, 20_000, "x" * 100)
        return "done"

    async with stream_talk(server_with(run), "2025-11-25") as talk:
        talk.reads.clear()
        pending = await talk.begin_call("run", progressToken="t")
        for _ in range(50):
            await asyncio.sleep(0)
        talk.reads.set()
        await pending.result()
        heard = await numbers(talk)
        assert heard == sorted(set(heard))
        assert len(heard) < 20_000


# --------------------------------------------------------------------------------------------------- log messages


async def speak(ctx: Context) -> str:
    for level in LEVELS:
        getattr(ctx.log, level)(level, logger="me")
    return "said"


@pytest.mark.parametrize("level", [None, *LEVELS])
@every_handshake
async def test_the_level_of_the_session_holds_and_is_info_before_it_is_set(revision: str, level: str | None) -> None:
    async with session_talk(server_with(speak), revision) as talk:
        if level is not None:
            assert await talk.result("logging/setLevel", {"level": level}) == {}
        await talk.text("run")
        heard = talk.heard("notifications/message")
    wanted = LEVELS[LEVELS.index(level or "info") :]
    assert heard == [{"level": name, "data": name, "logger": "me"} for name in wanted]


@pytest.mark.parametrize("level", [None, *LEVELS])
async def test_per_request_a_level_is_asked_for_or_nothing_is_sent(level: str | None) -> None:
    async with session_talk(server_with(speak), MODERN) as talk:
        await talk.text("run", **({} if level is None else {"logLevel": level}))
        heard = [params["level"] for params in talk.heard("notifications/message")]
        assert heard == ([] if level is None else LEVELS[LEVELS.index(level) :])
        talk.inbox.clear()
        await talk.text("run")  # what one request asked for holds for no other
        assert await talk.quiet()


async def test_the_levels_of_two_eras_on_one_connection_are_independent() -> None:
    async with session_talk(server_with(speak), "2025-06-18") as talk:
        await talk.result("logging/setLevel", {"level": "emergency"})
        await talk.text("run", revision=MODERN)
        assert await talk.quiet()
        await talk.text("run")
        assert [params["level"] for params in talk.heard("notifications/message")] == ["emergency"]


async def test_a_level_set_while_a_tool_runs_holds_at_once() -> None:
    gate = asyncio.Event()

    async def run(ctx: Context) -> str:
        ctx.log.info("before")
        await gate.wait()
        ctx.log.info("after")
        return "done"

    async with stream_talk(server_with(run), "2025-11-25") as talk:
        pending = await talk.begin_call("run")
        await talk.hear("notifications/message", data="before")
        await talk.result("logging/setLevel", {"level": "error"})
        gate.set()
        await pending.result()
        assert await talk.quiet()


@pytest.mark.parametrize("data", ["text", "", 5, None, True, [1, {"a": None}], {"k": "日本"}, 1.5], ids=repr)
@every_revision
async def test_anything_that_is_json_may_be_logged(revision: str, data: Any) -> None:
    async def run(ctx: Context) -> str:
        ctx.log.warning(data)
        ctx.log("error", data, "named")
        return "said"

    async with session_talk(server_with(run), revision) as talk:
        await talk.text("run", **({"logLevel": "debug"} if revision == MODERN else {}))
        assert talk.heard("notifications/message") == [
            {"level": "warning", "data": data},
            {"level": "error", "data": data, "logger": "named"},
        ]


@pytest.mark.parametrize("data", [object(), math.nan, {1, 2}, {"a": object()}], ids=lambda data: type(data).__name__)
async def test_what_cannot_be_logged_is_left_out_and_the_tool_goes_on(
    data: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def run(ctx: Context) -> str:
        ctx.log.error(data)
        return "went on"

    async with session_talk(server_with(run), "2025-11-25") as talk:
        assert await talk.text("run") == "went on"
        await talk.settle()
        assert len(talk.heard("notifications/message")) <= 1
    assert caplog.records or type(data) is set  # a set is a list to JSON


async def test_an_unknown_level_is_refused_where_it_is_given() -> None:
    async def run(ctx: Context) -> str:
        with pytest.raises(ValueError, match="loud"):
            ctx.log("loud", "x")  # type: ignore[arg-type]
        return "refused"

    async with session_talk(server_with(run), "2025-11-25") as talk:
        assert await talk.text("run") == "refused"


async def test_log_messages_from_a_thread_come_in_order_and_before_the_result() -> None:
    def run(ctx: Context) -> str:
        for number in range(50):
            ctx.log.info(number)
        return "done"

    async with stream_talk(server_with(run), "2025-11-25") as talk:
        await talk.text("run")
        assert [params["data"] for params in talk.heard("notifications/message")] == list(range(50))


# --------------------------------------------------------------------------------------------------- notify, request


@every_revision
async def test_a_handler_may_send_any_notification(revision: str) -> None:
    async def run(ctx: Context) -> str:
        ctx.notify("com.example/bare")
        ctx.notify("com.example/with", {"a": [1, None], "t": types.TextContent("x")})
        return "done"

    async with stream_talk(server_with(run), revision, own=["com.example/bare", "com.example/with"]) as talk:
        await talk.text("run")
        assert await talk.hear("com.example/bare") == {}
        assert (await talk.hear("com.example/with"))["a"] == [1, None]


async def test_params_that_are_no_json_are_refused_where_they_are_given() -> None:
    async def run(ctx: Context) -> str:
        try:
            ctx.notify("com.example/n", {"a": object()})
        except Exception as error:
            return type(error).__name__
        return "sent"

    async with session_talk(server_with(run), "2025-11-25", own=["com.example/n"]) as talk:
        assert await talk.text("run") == "WireError"
        assert await talk.quiet()


@pytest.mark.parametrize("over", [session_talk, stream_talk])
@every_handshake
async def test_a_handler_may_ask_the_client_where_the_revision_has_requests(revision: str, over: Any) -> None:
    async def run(ctx: Context) -> str:
        try:
            result = await ctx.request("roots/list")
        except PeerError as error:
            return f"{error.code} {error.message}"
        return str(result.roots[0].uri)

    async with over(server_with(run), revision, opened=False) as talk:
        await talk.open(capabilities={"roots": {}})
        for answer, expected in (
            ({"result": {"roots": [{"uri": "file:///home"}]}}, "file:///home"),
            ({"error": {"code": -32601, "message": "no"}}, "-32601 no"),
        ):
            pending = await talk.begin_call("run")
            question = await talk.take(lambda message: message.get("method") == "roots/list")
            await talk.raw({"jsonrpc": "2.0", "id": question["id"], **answer}, valid=True)
            assert (await pending.result())["content"][0]["text"] == expected


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"roots": []}, "error": {"code": 1, "message": "m"}},
        {"result": {"roots": []}, "method": "roots/list"},
        {"error": {"code": "one", "message": "m"}},
        {"result": {"roots": "none"}},
        {"result": [1]},
    ],
    ids=str,
)
@every_handshake
async def test_a_malformed_answer_of_the_client_fails_the_question_at_once(revision: str, answer: Any) -> None:
    async def run(ctx: Context) -> str:
        with pytest.raises(ProtocolViolation):
            await ctx.request("roots/list", timeout=None)
        return "failed at once"

    async with stream_talk(server_with(run), revision) as talk:
        pending = await talk.begin_call("run")
        question = await talk.take(lambda message: message.get("method") == "roots/list")
        await talk.raw({"jsonrpc": "2.0", "id": question["id"], **answer})
        assert (await pending.result())["content"][0]["text"] == "failed at once"
        assert not any("result" in message for message in talk.inbox)


@every_handshake
async def test_a_question_that_takes_too_long_is_cancelled_and_its_late_answer_ignored(revision: str) -> None:
    async def run(ctx: Context) -> str:
        with pytest.raises(RequestTimeout):
            await ctx.request("roots/list", timeout=0.01)
        return "gave up"

    async with stream_talk(server_with(run), revision) as talk:
        pending = await talk.begin_call("run")
        question = await talk.take(lambda message: message.get("method") == "roots/list")
        assert (await pending.result())["content"][0]["text"] == "gave up"
        await talk.hear("notifications/cancelled", requestId=question["id"])
        await talk.raw({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}, valid=True)
        assert await talk.quiet()


@every_handshake
async def test_a_question_ends_with_the_request_that_asked_it(revision: str) -> None:
    async def run(ctx: Context) -> str:
        await ctx.request("roots/list")
        return ""

    async with stream_talk(server_with(run), revision) as talk:
        pending = await talk.begin_call("run")
        question = await talk.take(lambda message: message.get("method") == "roots/list")
        await talk.cancel(pending)
        await talk.hear("notifications/cancelled", requestId=question["id"])
        await talk.settle()
        assert not pending.done


async def test_there_are_no_requests_to_the_client_in_2026_07_28() -> None:
    async def run(ctx: Context) -> str:
        with pytest.raises(ConfigError, match="2026-07-28"):
            await ctx.request("roots/list")
        return "refused"

    async with stream_talk(server_with(run), MODERN) as talk:
        assert await talk.text("run") == "refused"
        assert await talk.quiet()


# --------------------------------------------------------------------------------------------------- cancelled


@pytest.mark.parametrize("reason", [None, "User cancelled", "日本\ud800".encode("utf-8", "replace").decode()])
@every_revision
async def test_cancellation_reaches_an_async_function_with_its_reason(revision: str, reason: str | None) -> None:
    started, ended = asyncio.Event(), asyncio.Event()
    seen: list[Any] = []

    async def run(ctx: Context) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append((ctx.cancelled, ctx.cancel_reason))
            ctx.progress(99)
            ctx.log.error("too late")
            raise
        finally:
            ended.set()
        return ""

    async with stream_talk(server_with(run), revision) as talk:
        pending = await talk.begin_call(
            "run", progressToken="t", **({"logLevel": "debug"} if revision == MODERN else {})
        )
        await asyncio.wait_for(started.wait(), 5)
        await talk.cancel(pending, reason)
        await asyncio.wait_for(ended.wait(), 5)
        assert await talk.quiet()
        assert not pending.done
    assert seen == [(True, reason)]


@every_revision
async def test_cancellation_is_seen_by_a_sync_function_and_nothing_is_sent_for_it(revision: str) -> None:
    started, noticed = threading.Event(), threading.Event()
    reasons: list[str | None] = []

    def run(ctx: Context) -> str:
        started.set()
        while not ctx.cancelled:
            noticed.wait(0.001)
        reasons.append(ctx.cancel_reason)
        ctx.progress(99)
        ctx.log.error("too late")
        noticed.set()
        return "late"

    async with stream_talk(server_with(run), revision) as talk:
        pending = await talk.begin_call("run", progressToken="t")
        assert await asyncio.to_thread(started.wait, 5)
        await talk.cancel(pending, "enough")
        assert await asyncio.to_thread(noticed.wait, 5)
        assert await talk.quiet()
        assert not pending.done
    assert reasons == ["enough"]


@every_revision
async def test_a_function_that_swallows_its_cancellation_gets_no_answer_through(revision: str) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def run() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
        ended.set()
        return "stubborn"

    async with stream_talk(server_with(run), revision) as talk:
        pending = await talk.begin_call("run")
        await asyncio.wait_for(started.wait(), 5)
        await talk.cancel(pending)
        await asyncio.wait_for(ended.wait(), 5)
        assert await talk.quiet()
        assert not pending.done
        assert "result" in await talk.request("tools/list", id=pending.id)  # the id is free again


async def test_what_a_handler_knows_of_its_peer_is_frozen() -> None:
    async def run(ctx: Context) -> str:
        with pytest.raises(AttributeError):
            ctx.peer.log_level = "debug"  # type: ignore[misc]
        return "frozen"

    async with session_talk(server_with(run), HANDSHAKE[0]) as talk:
        assert await talk.text("run") == "frozen"


# --------------------------------------------------------------------------------------------------- state


async def visit(ctx: Context) -> str:
    ctx.state["visits"] = ctx.state.get("visits", 0) + 1
    return str(ctx.state["visits"])


def visit_in_a_thread(ctx: Context) -> str:
    return str(ctx.state.setdefault("things", []).append(threading.get_ident()) or len(ctx.state["things"]))


@every_handshake
@pytest.mark.parametrize("over", [session_talk, stream_talk])
async def test_state_lasts_from_one_request_of_a_session_to_the_next(over: Any, revision: str) -> None:
    server = server_with(visit)
    server.add_tool(visit_in_a_thread)
    server.method("com.example/visits")(lambda params, ctx: dict(ctx.state))
    server.add_prompt(lambda: "visited", name="prompt")
    async with over(server, revision, own=["com.example/visits"]) as talk:
        assert [await talk.text("run") for _ in range(3)] == ["1", "2", "3"]
        assert [await talk.text("visit_in_a_thread") for _ in range(2)] == ["1", "2"]
        assert (await talk.result("com.example/visits"))["visits"] == 3


@every_handshake
async def test_two_clients_never_share_state(revision: str) -> None:
    server = server_with(visit)
    async with (
        stream_talk(server, revision) as one,
        stream_talk(server, revision) as two,
        session_talk(server, revision) as three,
    ):
        assert [await talk.text("run") for talk in (one, two, three, one, two)] == ["1", "1", "1", "2", "2"]
    async with stream_talk(server, revision) as later:
        assert await later.text("run") == "1"


@every_handshake
async def test_a_second_initialize_begins_state_anew(revision: str) -> None:
    async with stream_talk(server_with(visit), revision) as talk:
        assert [await talk.text("run") for _ in range(2)] == ["1", "2"]
        await talk.open()
        assert await talk.text("run") == "1"


@pytest.mark.parametrize("revision", [MODERN, "2025-11-25"])
async def test_a_request_without_a_session_has_no_state_and_the_log_says_what_to_do(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Also on a connection on which somebody has opened a session."""
    said: list[str] = []

    async def run(ctx: Context) -> str:
        try:
            ctx.state["a"] = 1
        except ConfigError as error:
            said.append(str(error))
            raise
        return "kept"

    async with stream_talk(server_with(run), revision) as talk:
        if revision != MODERN:
            assert await talk.text("run") == "kept"
        assert (await talk.call("run", revision=MODERN))["isError"] is True
    (words,) = said
    for word in ("2026-07-28 is stateless", "identifier", "argument", "Server(lifespan=...)"):
        assert word in words
    assert "is stateless" in caplog.text


# --------------------------------------------------------------------------------------------------- lifespan


@every_revision
async def test_what_the_lifespan_yields_is_there_for_every_handler(revision: str) -> None:
    async def lifespan() -> AsyncIterator[dict[str, str]]:
        yield {"key": "value"}

    async def run(ctx: Context) -> str:
        return str(ctx.lifespan["key"])

    server = Server("context", lifespan=lifespan)
    server.add_tool(run)
    server.add_tool(types.Tool("low", {"type": "object"}), lambda arguments, ctx: ctx.lifespan["key"])
    server.method("com.example/key")(lambda params, ctx: ctx.lifespan)
    async with stream_talk(server, revision, own=["com.example/key"]) as talk:
        assert await talk.text("run") == await talk.text("low") == "value"
        assert (await talk.result("com.example/key"))["key"] == "value"
