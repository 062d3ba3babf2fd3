"""Dependencies of calls: made before the function, once per call, cleaned up in reverse, whatever the call came to."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import itertools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Annotated, Any

import pytest

from modelwire import Client, Context, Depends, RpcError, Server, ToolError, types
from tests.wire import MODERN, every_revision, session_talk, stream_talk

REFERENCES = {
    "prompt": ("prompts/get", {"name": "thing", "arguments": {}}),
    "resource": ("resources/read", {"uri": "thing:fixed"}),
    "template": ("resources/read", {"uri": "thing:one/5"}),
}


class Journal:
    """What happened, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, line: str) -> None:
        self.lines.append(line)

    def take(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines


@pytest.fixture
def note() -> Journal:
    return Journal()


def ended(note: Journal, name: str, error: BaseException) -> None:
    note(f"{name} {type(error).__name__}")


@contextmanager
def noting(note: Journal) -> Iterator[None]:
    note("in")
    try:
        yield
    except BaseException as error:
        ended(note, "out", error)
        raise
    note("out")


def in_every_way(note: Journal) -> dict[str, Callable[..., Any]]:
    """A dependency ``value`` that notes its set-up, its end and what the call has failed with, in every form."""

    async def async_generator() -> AsyncIterator[str]:
        with noting(note):
            yield "value"

    def generator() -> Iterator[str]:
        with noting(note):
            yield "value"

    class Methods:
        def method(self) -> Iterator[str]:
            yield from generator()

        def __call__(self) -> Iterator[str]:
            return (yield from generator())

    @functools.wraps(generator)
    def decorated() -> Iterator[str]:
        return generator()

    return {
        "async generator": async_generator,
        "generator": generator,
        "async context manager": asynccontextmanager(async_generator),
        "context manager": contextmanager(generator),
        "partial": functools.partial(async_generator),
        "method": Methods().method,
        "callable object": Methods(),
        "decorated": decorated,
    }


WAYS = list(in_every_way(Journal()))
every_way = pytest.mark.parametrize("way", WAYS)


def server_with(function: Callable[..., Any], **options: Any) -> Server:
    server = Server("resolving")
    server.add_tool(function, name="run", **options)
    return server


# --------------------------------------------------------------------------------------------------- what is given


def get_word(ctx: Context) -> str:
    return ctx.method


@every_revision
async def test_tools_prompts_resources_and_templates_have_dependencies(revision: str) -> None:
    server = Server("s")

    @server.tool
    async def run(word: str = Depends(get_word)) -> str:
        return word

    @server.prompt
    def thing(word: Annotated[str, Depends(get_word)], size: int = 1) -> str:
        return f"{word} {size}"

    @server.resource("thing:fixed")
    async def fixed(word: Annotated[str, Depends(get_word)]) -> str:
        return word

    @server.resource("thing:one/{id}")
    def one(id: int, word: str = Depends(get_word)) -> str:
        return f"{word} {id}"

    async with session_talk(server, revision) as talk:
        assert await talk.text("run") == "tools/call"
        (tool,) = (await talk.result("tools/list"))["tools"]
        assert tool["inputSchema"]["properties"] == {}
        (prompt,) = (await talk.result("prompts/list"))["prompts"]
        assert [argument["name"] for argument in prompt["arguments"]] == ["size"]
        found = await talk.result(*REFERENCES["prompt"])
        assert found["messages"][0]["content"]["text"] == "prompts/get 1"
        assert (await talk.result(*REFERENCES["resource"]))["contents"][0]["text"] == "resources/read"
        assert (await talk.result(*REFERENCES["template"]))["contents"][0]["text"] == "resources/read 5"


@every_revision
async def test_completers_have_dependencies(revision: str) -> None:
    server = Server("s")
    server.add_prompt(lambda size: "", name="thing")
    server.add_resource("thing:one/{id}", lambda id: "", name="one")

    @server.complete("thing", "size")
    def sizes(word: Annotated[str, Depends(get_word)], typed: str, arguments: dict[str, str]) -> list[str]:
        return [word, typed, *arguments]

    @server.complete("thing:one/{id}", "id")
    async def ids(typed: str, ctx, word: str = Depends(get_word)) -> list[str]:  # type: ignore[no-untyped-def]
        return [word, typed, str(ctx.method)]

    async with session_talk(server, revision) as talk:
        params: dict[str, Any] = {
            "ref": {"type": "ref/prompt", "name": "thing"},
            "argument": {"name": "size", "value": "x"},
        }
        if revision >= "2025-06-18":
            params["context"] = {"arguments": {"other": "1"}}
        expected = ["completion/complete", "x", *params.get("context", {"arguments": []})["arguments"]]
        assert (await talk.result("completion/complete", params))["completion"]["values"] == expected
        params = {
            "ref": {"type": "ref/resource", "uri": "thing:one/{id}"},
            "argument": {"name": "id", "value": "y"},
        }
        values = (await talk.result("completion/complete", params))["completion"]["values"]
        assert values == ["completion/complete", "y", "completion/complete"]


@every_way
async def test_every_way_to_yield_gives_its_value_and_is_cleaned_up_before_the_answer(way: str, note: Journal) -> None:
    async def run(a: int, value: str = Depends(in_every_way(note)[way])) -> str:
        note("run")
        return f"{value} {a}"

    server = server_with(run)
    async with stream_talk(server, "2025-11-25") as talk:
        assert await talk.text("run", {"a": 5}) == "value 5"
        assert note.take() == ["in", "run", "out"]


async def test_every_callable_gives_its_value() -> None:
    class Settings:
        def __init__(self, ctx: Context) -> None:
            self.method = ctx.method

        def own(self) -> str:
            return self.method

        async def __call__(self) -> str:
            return "called"

    def plain(size: int) -> str:
        return str(size)

    async def later() -> str:
        return "later"

    @functools.wraps(later)
    def wrapper() -> Awaitable[str]:
        return later()

    async def run(
        settings: Settings = Depends(Settings),
        part: str = Depends(functools.partial(plain, 5)),
        soon: str = Depends(later),
        wrapped: str = Depends(wrapper),
        anonymous: str = Depends(lambda: "lambda"),
        called: str = Depends(Settings.__new__(Settings)),
        dictionary: dict[str, int] = Depends(dict),
    ) -> str:
        return f"{settings.method} {part} {soon} {wrapped} {anonymous} {called} {dictionary}"

    async with session_talk(server_with(run), "2025-11-25") as talk:
        assert await talk.text("run") == "tools/call 5 later later lambda called {}"


async def test_what_is_no_generator_is_handed_on_as_it_is() -> None:
    """Files, locks and sessions are context managers too, and are the function's to enter."""
    lock = threading.Lock()

    def numbers() -> Iterator[int]:
        return itertools.count(7)

    async def run(given: Any = Depends(lambda: lock), counted: Iterator[int] = Depends(numbers)) -> str:
        return f"{given is lock} {lock.locked()} {next(counted)}"

    async with session_talk(server_with(run), "2025-11-25") as talk:
        assert await talk.text("run") == "True False 7"


async def test_a_yielded_value_that_could_be_awaited_is_left_alone() -> None:
    async def work() -> str:
        return "worked"

    def later() -> Iterator[Awaitable[str]]:
        yield work()

    async def run(value: Awaitable[str] = Depends(later)) -> str:
        return await value

    async with session_talk(server_with(run), "2025-11-25") as talk:
        assert await talk.text("run") == "worked"


async def test_defaults_of_dependencies_are_their_own() -> None:
    def get_size(size: int = 3, *more: int) -> int:
        return size + len(more)

    async def run(size: int = Depends(get_size)) -> str:
        return str(size)

    async with session_talk(server_with(run), "2025-11-25") as talk:
        assert await talk.text("run") == "3"
        assert (await talk.call("run", {"size": 5}))["isError"] is True


async def test_sync_dependencies_run_in_threads_and_async_ones_on_the_loop() -> None:
    main, threads = threading.get_ident(), dict[str, int]()

    def here(name: str) -> int:
        threads[name] = threading.get_ident()
        return threads[name]

    def sync() -> int:
        return here("sync")

    async def later() -> int:
        return here("later")

    def generator() -> Iterator[int]:
        yield here("in")
        here("out")

    async def async_generator() -> AsyncIterator[int]:
        yield here("async in")
        here("async out")

    @contextmanager
    def manager() -> Iterator[int]:
        yield here("manager in")
        here("manager out")

    async def run(
        a: int = Depends(sync),
        b: int = Depends(later),
        c: int = Depends(generator),
        d: int = Depends(async_generator),
        e: int = Depends(manager),
    ) -> str:
        return "done"

    async with session_talk(server_with(run), "2025-11-25") as talk:
        await talk.text("run")
    assert {name for name, thread in threads.items() if thread == main} == {"later", "async in", "async out"}
    assert len(threads) == 8


async def test_a_sync_tool_and_its_inline_twin_have_dependencies() -> None:
    async def get_number() -> int:
        return 7

    def run(number: int = Depends(get_number)) -> str:
        return str(number)

    for options in ({}, {"inline": True}, {"timeout": 30.0}):
        async with session_talk(server_with(run, **options), "2025-11-25") as talk:
            assert await talk.text("run") == "7"


async def test_generator_tools_have_dependencies_until_their_last_item(note: Journal) -> None:
    dependency = in_every_way(note)["async generator"]

    async def run(count: int, value: str = Depends(dependency)) -> AsyncIterator[str]:
        for number in range(count):
            note(f"item {number}")
            yield f"{value} {number}"

    async with session_talk(server_with(run), "2025-11-25") as talk:
        result = await talk.call("run", {"count": 2})
        assert result["structuredContent"] == {"result": ["value 0", "value 1"]}
    assert note.take() == ["in", "item 0", "item 1", "out"]


# --------------------------------------------------------------------------------------------------- once, in order


def journeys(note: Journal) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Three dependencies: ``pool``, ``session`` that needs it, ``user`` that needs both."""

    async def pool() -> AsyncIterator[str]:
        note("pool in")
        yield "pool"
        note("pool out")

    def session(pool: str = Depends(pool)) -> Iterator[str]:
        note("session in")
        yield f"session({pool})"
        note("session out")

    async def user(session: str = Depends(session), pool: str = Depends(pool)) -> str:
        note("user")
        return f"user({session}, {pool})"

    return pool, session, user


async def test_each_is_made_once_per_call_and_cleaned_up_in_reverse(note: Journal) -> None:
    pool, session, user = journeys(note)

    async def audit(user: str = Depends(user), session: str = Depends(session)) -> AsyncIterator[str]:
        note("audit in")
        yield "audit"
        note("audit out")

    async def run(
        user: Annotated[str, Depends(user)],
        audit: Annotated[str, Depends(audit)],
        session: Annotated[str, Depends(session)],
        pool: Annotated[str, Depends(pool)],
    ) -> str:
        note("run")
        return f"{user} {session} {pool}"

    async with session_talk(server_with(run), "2025-11-25") as talk:
        for _ in range(2):  # and anew for each call
            assert await talk.text("run") == "user(session(pool), pool) session(pool) pool"
            assert note.take() == [
                "pool in", "session in", "user", "audit in", "run", "audit out", "session out", "pool out",
            ]  # fmt: skip


async def test_independent_ones_are_made_in_the_order_of_the_parameters(note: Journal) -> None:
    def named(name: str) -> Callable[..., Any]:
        def made() -> None:
            note(name)

        return made

    async def run(b: None = Depends(named("b")), a: None = Depends(named("a")), c: None = Depends(named("c"))) -> str:
        return "done"

    async with session_talk(server_with(run), "2025-11-25") as talk:
        await talk.text("run")
    assert note.take() == ["b", "a", "c"]


async def test_arguments_that_do_not_fit_cost_no_dependency(note: Journal) -> None:
    async def run(a: int, value: str = Depends(in_every_way(note)["generator"])) -> str:
        return value

    async with session_talk(server_with(run), "2025-11-25") as talk:
        assert (await talk.call("run", {"a": "many"}))["isError"] is True
    assert note.take() == []


@every_revision
async def test_calls_at_once_have_their_own(revision: str) -> None:
    numbers, met, left = itertools.count(), asyncio.Barrier(3), list[int]()

    async def get_number() -> AsyncIterator[int]:
        number = next(numbers)
        yield number
        left.append(number)

    async def twice(number: int = Depends(get_number)) -> int:
        return number

    async def run(number: int = Depends(get_number), again: int = Depends(twice)) -> str:
        await met.wait()
        assert number == again
        return str(number)

    async with stream_talk(server_with(run), revision) as talk:
        calls = [await talk.begin_call("run") for _ in range(3)]
        texts = [(await call.result())["content"][0]["text"] for call in calls]
    assert sorted(texts) == ["0", "1", "2"]
    assert sorted(left) == [0, 1, 2]


# --------------------------------------------------------------------------------------------------- context


async def test_a_dependency_has_the_context_of_its_call() -> None:
    contexts: list[Context] = []

    async def get_id(context: Context) -> str:
        contexts.append(context)
        context.progress(1)
        context.log.info("from a dependency")
        return str(context.request_id)

    async def run(ctx: Context, id: str = Depends(get_id)) -> str:
        contexts.append(ctx)
        return id

    async with session_talk(server_with(run), "2025-11-25") as talk:
        assert await talk.text("run", id="a", progressToken="t") == "a"
        assert [params["progress"] for params in talk.heard("notifications/progress")] == [1]
        assert [params["data"] for params in talk.heard("notifications/message")] == ["from a dependency"]
        assert await talk.text("run", id="b") == "b"
    assert contexts[0] is contexts[1] is not contexts[2] is contexts[3]


async def test_context_variables_of_async_dependencies_reach_the_function_and_are_reset_afterwards() -> None:
    variable = contextvars.ContextVar("variable", default="outside")

    async def inside() -> AsyncIterator[None]:
        token = variable.set("inside")
        yield
        variable.reset(token)  # raises in any other context

    def thread() -> Iterator[None]:
        token = variable.set("in a thread")
        yield
        variable.reset(token)

    def run(a: None = Depends(inside), b: None = Depends(thread)) -> str:
        return variable.get()

    async with session_talk(server_with(run), "2025-11-25") as talk:
        assert await talk.text("run") == "inside"


async def test_cancel_scopes_may_be_held_over_the_yield() -> None:
    """Set-up, function and clean-up are in one task."""

    async def group() -> AsyncIterator[asyncio.TaskGroup]:
        async with asyncio.timeout(30), asyncio.TaskGroup() as found:
            yield found

    async def run(group: asyncio.TaskGroup = Depends(group)) -> str:
        task = group.create_task(asyncio.sleep(0, "slept"))
        return await task

    async with session_talk(server_with(run), "2025-11-25") as talk:
        assert await talk.text("run") == "slept"


# --------------------------------------------------------------------------------------------------- failures


@every_way
async def test_what_the_function_raises_is_raised_at_the_yield(way: str, note: Journal) -> None:
    async def run(value: str = Depends(in_every_way(note)[way])) -> str:
        raise ToolError(f"no {value}")

    async with session_talk(server_with(run), "2025-11-25") as talk:
        result = await talk.call("run")
    assert (result["isError"], result["content"][0]["text"]) == (True, "no value")
    assert note.take() == ["in", "out ToolError"]


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("threaded", [False, True])
@every_revision
async def test_errors_for_the_client_reach_it_from_a_dependency(revision: str, where: str, threaded: bool) -> None:
    server = Server("s")
    error: Exception = ToolError("sold out")

    def fail(place: str) -> None:
        if place == where:
            raise error

    async def later() -> AsyncIterator[None]:
        fail("before")
        yield
        fail("after")

    def thread() -> Iterator[None]:
        fail("before")
        yield
        fail("after")

    dependency = thread if threaded else later

    @server.tool
    async def run(value: None = Depends(dependency)) -> str:
        return "done"

    @server.prompt
    async def thing(value: Annotated[None, Depends(dependency)]) -> str:
        return "done"

    async with session_talk(server, revision) as talk:
        result = await talk.call("run")
        assert (result["isError"], result["content"][0]["text"]) == (True, "sold out")
        error = RpcError(7, "seven", {"a": 1})
        params = {"name": "run", "arguments": {}}
        assert await talk.error("tools/call", params) == {"code": 7, "message": "seven", "data": {"a": 1}}
        assert (await talk.error(*REFERENCES["prompt"]))["code"] == 7


async def test_a_set_up_that_fails_undoes_what_was_set_up_before_it(note: Journal, caplog: Any) -> None:
    def broken(outer: str = Depends(in_every_way(note)["generator"])) -> str:
        raise ValueError("a secret")

    async def never(broken: str = Depends(broken)) -> str:
        note("never")
        return "never"

    async def run(value: str = Depends(never)) -> str:
        note("never")
        return "never"

    async with session_talk(server_with(run), "2025-11-25") as talk:
        result = await talk.call("run")
    assert "secret" not in str(result)
    assert "a secret" in caplog.text
    assert note.take() == ["in", "out ValueError"]


async def test_the_first_error_stays_through_dependencies_that_swallow_or_change_it(
    note: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    async def outermost() -> AsyncIterator[None]:
        try:
            yield
        except ToolError as error:
            note(f"outermost {error}")
            raise

    async def swallows(outer: None = Depends(outermost)) -> AsyncIterator[None]:
        try:
            yield
        except ToolError as error:
            note(f"swallows {error}")

    def changes(outer: None = Depends(swallows)) -> Iterator[None]:
        try:
            yield
        except ToolError as error:
            note(f"changes {error}")
            raise KeyError("another") from error

    async def run(value: None = Depends(changes)) -> str:
        raise ToolError("the first")

    async with session_talk(server_with(run), "2025-11-25") as talk:
        result = await talk.call("run")
    assert (result["isError"], result["content"][0]["text"]) == (True, "the first")
    assert note.take() == ["changes the first", "swallows the first", "outermost the first"]
    assert "the clean-up of the dependency" in caplog.text
    assert "KeyError: 'another'" in caplog.text


@pytest.mark.parametrize("threaded", [False, True])
async def test_a_clean_up_that_fails_is_logged_and_fails_the_call_that_had_succeeded(
    threaded: bool, note: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    async def outer() -> AsyncIterator[None]:
        try:
            yield
        except BaseException as error:
            ended(note, "outer", error)
            raise

    async def later(outer: None = Depends(outer)) -> AsyncIterator[None]:
        yield
        raise OSError("cannot commit")

    def thread(outer: None = Depends(outer)) -> Iterator[None]:
        yield
        raise OSError("cannot commit")

    async def run(value: None = Depends(thread if threaded else later)) -> str:
        return "done"

    async with session_talk(server_with(run), "2025-11-25") as talk:
        result = await talk.call("run")
    assert result["isError"] is True
    assert "commit" not in str(result)
    assert note.take() == ["outer OSError"]  # which can roll back, too
    assert "the clean-up of the dependency" in caplog.text
    assert "OSError: cannot commit" in caplog.text


async def test_all_are_cleaned_up_although_one_fails(note: Journal) -> None:
    def failing(name: str) -> Callable[..., Any]:
        async def made() -> AsyncIterator[None]:
            try:
                yield
            finally:
                note(name)
                raise ValueError(name)

        return made

    async def run(
        a: None = Depends(failing("a")), b: None = Depends(failing("b")), c: None = Depends(failing("c"))
    ) -> str:
        return "done"

    async with session_talk(server_with(run), "2025-11-25") as talk:
        assert (await talk.call("run"))["isError"] is True
    assert note.take() == ["c", "b", "a"]


@pytest.mark.parametrize("failing", [False, True])
@pytest.mark.parametrize("threaded", [False, True])
async def test_a_second_yield_is_said_clearly(threaded: bool, failing: bool, caplog: pytest.LogCaptureFixture) -> None:
    def twice() -> Iterator[int]:
        with suppress(ToolError):
            yield 1
        yield 2

    async def twice_later() -> AsyncIterator[int]:
        with suppress(ToolError):
            yield 1
        yield 2

    async def run(value: int = Depends(twice if threaded else twice_later)) -> str:
        if failing:
            raise ToolError("the first")
        return "done"

    async with session_talk(server_with(run), "2025-11-25") as talk:
        result = await talk.call("run")
    assert result["isError"] is True
    assert ("the first" in str(result)) is failing
    assert "yields more than once" in caplog.text
    assert "the dependency twice" in caplog.text


@pytest.mark.parametrize("threaded", [False, True])
async def test_a_missing_yield_is_said_clearly(threaded: bool, caplog: pytest.LogCaptureFixture) -> None:
    def none() -> Iterator[int]:
        if threaded is None:
            yield 1

    async def none_later() -> AsyncIterator[int]:
        if threaded is None:
            yield 1

    async def run(value: int = Depends(none if threaded else none_later)) -> str:
        return "never"

    async with session_talk(server_with(run), "2025-11-25") as talk:
        assert (await talk.call("run"))["isError"] is True
    assert "came to its end without a yield" in caplog.text
    assert "the dependency none" in caplog.text


@pytest.mark.parametrize("raised", [StopIteration("x"), StopAsyncIteration("x"), SystemExit(3), GeneratorExit()])
@pytest.mark.parametrize("way", ["async generator", "generator"])
@pytest.mark.parametrize("threaded", [False, True])
async def test_odd_errors_of_the_function_fail_its_call_only(
    raised: BaseException, way: str, threaded: bool, note: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    dependency = in_every_way(note)[way]

    def run(value: str = Depends(dependency)) -> str:
        raise raised

    async def run_later(value: str = Depends(dependency)) -> str:
        raise raised

    async with session_talk(server_with(run if threaded else run_later), "2025-11-25") as talk:
        assert (await talk.call("run"))["isError"] is True
        assert (await talk.call("run"))["isError"] is True
    assert [line.split()[0] for line in note.take()] == ["in", "out"] * 2
    assert "the clean-up of" not in caplog.text


async def test_a_result_that_says_no_is_a_success(note: Journal) -> None:
    async def run(value: str = Depends(in_every_way(note)["generator"])) -> types.CallToolResult:
        return types.CallToolResult([types.TextContent("no")], is_error=True)

    async with session_talk(server_with(run), "2025-11-25") as talk:
        assert (await talk.call("run"))["isError"] is True
    assert note.take() == ["in", "out"]


# ----------------------------------------------------------------------------------------- timeouts, cancellation


@every_way
async def test_after_a_timeout_everything_is_cleaned_up_before_the_answer(way: str, note: Journal) -> None:
    async def run(value: str = Depends(in_every_way(note)[way])) -> str:
        await asyncio.Event().wait()
        return "never"

    async with session_talk(server_with(run, timeout=0.05), "2025-11-25") as talk:
        result = await talk.call("run")
        assert note.take() == ["in", "out Expired"]
    assert "timed out after 0.05 s" in result["content"][0]["text"]


async def test_a_set_up_counts_for_the_timeout_and_sees_it(note: Journal) -> None:
    async def slow(ctx: Context) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            note("cancelled")
            raise

    async def run(outer: str = Depends(in_every_way(note)["generator"]), value: None = Depends(slow)) -> str:
        return "never"

    async with session_talk(server_with(run, timeout=0.05), "2025-11-25") as talk:
        assert "timed out" in (await talk.call("run"))["content"][0]["text"]
    assert note.take() == ["in", "cancelled", "out Expired"]


async def test_a_clean_up_does_not_count_for_the_timeout() -> None:
    finished = asyncio.Event()

    async def slow() -> AsyncIterator[None]:
        yield
        await asyncio.sleep(0.1)
        finished.set()

    async def run(value: None = Depends(slow)) -> str:
        return "done"

    async with session_talk(server_with(run, timeout=0.05), "2025-11-25") as talk:
        assert await talk.text("run") == "done"
    assert finished.is_set()


async def test_a_thread_that_is_given_up_while_it_sets_up_cleans_up_by_itself() -> None:
    started, go, cleaned = threading.Event(), threading.Event(), threading.Event()

    def slow() -> Iterator[None]:
        started.set()
        go.wait(30)
        try:
            yield
        finally:
            cleaned.set()

    async def run(value: None = Depends(slow)) -> str:
        return "never"

    async with session_talk(server_with(run, timeout=0.05), "2025-11-25") as talk:
        assert "timed out" in (await talk.call("run"))["content"][0]["text"]  # though the thread still holds on
        assert started.is_set()
        assert not cleaned.is_set()
        go.set()
        assert await asyncio.to_thread(cleaned.wait, 30)


@every_way
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", MODERN])
async def test_a_cancelled_call_is_cleaned_up(revision: str, way: str, note: Journal) -> None:
    started, over = asyncio.Event(), asyncio.Event()

    async def outer() -> AsyncIterator[None]:
        try:
            yield
        finally:
            over.set()

    async def run(outer: None = Depends(outer), value: str = Depends(in_every_way(note)[way])) -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    async with stream_talk(server_with(run), revision) as talk:
        call = await talk.begin_call("run")
        await asyncio.wait_for(started.wait(), 10)
        await talk.cancel(call)
        await asyncio.wait_for(over.wait(), 10)
        assert note.take() == ["in", "out CancelledError"]
        assert await talk.quiet()
        assert not call.done


async def test_a_clean_up_that_is_cancelled_does_not_keep_the_next_one_from_running(note: Journal) -> None:
    begun, over = asyncio.Event(), asyncio.Event()

    async def outer() -> AsyncIterator[None]:
        try:
            yield
        except BaseException as error:
            ended(note, "outer", error)
            raise
        finally:
            over.set()

    async def inner(outer: None = Depends(outer)) -> AsyncIterator[None]:
        yield
        begun.set()
        await asyncio.Event().wait()

    async def run(value: None = Depends(inner)) -> str:
        return "done"

    async with stream_talk(server_with(run), "2025-11-25") as talk:
        call = await talk.begin_call("run")
        await asyncio.wait_for(begun.wait(), 10)
        await talk.cancel(call)
        await asyncio.wait_for(over.wait(), 10)
        assert await talk.quiet()
    assert note.take() == ["outer CancelledError"]


async def test_a_clean_up_in_a_thread_is_waited_for_also_by_a_cancelled_call(note: Journal) -> None:
    begun, go, over = threading.Event(), threading.Event(), asyncio.Event()

    async def outer() -> AsyncIterator[None]:
        try:
            yield
        finally:
            note("outer")
            over.set()

    def inner(outer: None = Depends(outer)) -> Iterator[None]:
        yield
        begun.set()
        go.wait(30)
        note("inner")

    async def run(value: None = Depends(inner)) -> str:
        return "done"

    async with stream_talk(server_with(run), "2025-11-25") as talk:
        call = await talk.begin_call("run")
        assert await asyncio.to_thread(begun.wait, 30)
        await talk.cancel(call)
        await talk.settle()
        assert note.lines == []
        go.set()
        await asyncio.wait_for(over.wait(), 10)
    assert note.take() == ["inner", "outer"]


async def test_calls_that_run_when_the_serving_ends_are_cleaned_up_before_the_lifespan_ends(note: Journal) -> None:
    started = asyncio.Event()

    class Pool:
        pass

    async def lifespan() -> AsyncIterator[Pool]:
        yield Pool()
        note("lifespan out")

    async def session(pool: Pool) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await asyncio.sleep(0.05)
            note("session out")

    async def run(value: None = Depends(session)) -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    for over in (stream_talk, session_talk):
        server = Server("s", lifespan=lifespan)
        server.add_tool(run)
        started.clear()
        async with over(server, "2025-11-25") as talk:
            await talk.begin_call("run")
            await asyncio.wait_for(started.wait(), 10)
            await (talk.serving if over is stream_talk else talk).aclose()  # type: ignore[union-attr]
        assert note.take() == ["session out", "lifespan out"]


async def test_a_client_in_the_same_program_sees_it_all(note: Journal) -> None:
    async def run(value: str = Depends(in_every_way(note)["async context manager"])) -> str:
        raise ToolError(value)

    async with Client(server_with(run)) as client:
        with pytest.raises(ToolError, match="^value$"):
            await client.call("run")
    assert note.take() == ["in", "out ToolError"]
