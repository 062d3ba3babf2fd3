"""What lives as long as a server serves: begun once before the first answer, ended after the last client has left."""

from __future__ import annotations

import asyncio
import functools
import json
import signal
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated, Any, Generic, NewType, TypeVar

import pytest

from modelwire import (
    Client,
    ConfigError,
    ConnectionFailed,
    ConnectionLost,
    Context,
    Depends,
    Server,
    ServerExited,
    SignatureError,
)
from modelwire.server import lifespan as lifespan_module
from modelwire.transports.memory import memory_pair
from tests.wire import MODERN, child_talk, dumps, every_revision, modern_meta, session_talk, stream_talk

T = TypeVar("T")


class Database:
    pass


class Cache:
    pass


class Store(Generic[T]):
    pass


Dsn = NewType("Dsn", str)


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


def noting(note: Journal, value: Any = None) -> Callable[..., AsyncIterator[Any]]:
    """A lifespan that notes its begin and its end."""

    async def lifespan() -> AsyncIterator[Any]:
        note("begin")
        try:
            yield value
        finally:
            note("end")

    return lifespan


def server_with(lifespan: Any, *functions: Callable[..., Any]) -> Server:
    server = Server("living", lifespan=lifespan)
    for function in functions:
        server.add_tool(function)
    return server


def hello() -> str:
    return "hello"


async def whole(ctx: Context) -> str:
    return repr(ctx.lifespan)


# --------------------------------------------------------------------------------------------------- what it may be


class Managed:
    def __init__(self, server: Server) -> None:
        self.server = server

    async def __aenter__(self) -> str:
        return f"value of {self.server.name}"

    async def __aexit__(self, *error: object) -> None:
        pass


async def plain(server: Server) -> AsyncIterator[str]:
    yield f"value of {server.name}"


def sync(server: Server) -> Iterator[str]:
    yield f"value of {server.name}"


async def alone() -> AsyncGenerator[str, None]:
    yield "value of living"


class Owner:
    async def method(self, server: Server) -> AsyncIterator[str]:
        yield f"value of {server.name}"


@pytest.mark.parametrize(
    "lifespan",
    [
        plain,
        sync,
        alone,
        Managed,
        Owner().method,
        asynccontextmanager(plain),
        asynccontextmanager(alone),
        contextmanager(sync),
    ],
)
async def test_every_kind_of_lifespan_gives_its_value(lifespan: Any) -> None:
    async with stream_talk(server_with(lifespan, whole), "2025-11-25") as talk:
        assert await talk.text("whole") == "'value of living'"


async def test_a_plain_generator_runs_in_a_worker_thread() -> None:
    threads: list[int] = []

    def lifespan() -> Generator[None, None, None]:
        threads.append(threading.get_ident())
        yield
        threads.append(threading.get_ident())

    async with stream_talk(server_with(lifespan), "2025-11-25"):
        pass
    assert len(threads) == 2
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("given", [5, "lifespan", plain, Database()])
def test_what_is_no_lifespan_is_refused_when_the_server_is_made(given: Any) -> None:
    async def returns(server: Server) -> str:
        return "value"

    if given is plain:
        with pytest.raises(ConfigError, match="returns.*yield"):
            Server("s", lifespan=returns)  # type: ignore[arg-type]
        return
    with pytest.raises(ConfigError, match="one `yield`"):
        Server("s", lifespan=given)


async def with_three(server: Server, a: int, b: int) -> AsyncIterator[None]:
    yield


async def with_keyword(*, path: str) -> AsyncIterator[None]:
    yield


async def with_default(server: Server, path: str = "x", *, more: int = 1) -> AsyncIterator[None]:
    yield


@pytest.mark.parametrize(("given", "name"), [(with_three, "a"), (with_keyword, "path")])
def test_a_lifespan_that_wants_more_than_the_server_is_refused_when_the_server_is_made(given: Any, name: str) -> None:
    with pytest.raises(SignatureError, match=f"^{given.__name__}: nothing fills parameter '{name}'; give it a default"):
        Server("s", lifespan=given)
    Server("s", lifespan=with_default)
    Server("s", lifespan=functools.partial(with_keyword, path="x"))


async def test_a_function_that_returns_something_else_fails_when_it_is_begun() -> None:
    def returns(server: Server) -> Any:
        return 5

    with pytest.raises(ConfigError, match="the lifespan returns returned a int.*one `yield`"):
        await server_with(returns).serve(memory_pair()[0])


# --------------------------------------------------------------------------------------------------- its values


@every_revision
async def test_a_parameter_of_the_yielded_type_receives_it_and_is_no_argument(revision: str) -> None:
    found = Database()

    async def lifespan() -> AsyncIterator[Database]:
        yield found

    server = Server("s", lifespan=lifespan)

    def get_both(db: Database, ctx: Context) -> list[Any]:
        return [db, ctx.lifespan]

    def same(*values: Any) -> str:
        assert all(value is found for value in values)
        return "same"

    @server.tool
    def run(a: int, db: Database, both: list[Any] = Depends(get_both)) -> str:
        return same(db, *both)

    @server.prompt
    def prompt(described: Annotated[Database, "the database"]) -> str:
        return same(described)

    @server.resource("thing:{id}")
    async def thing(id: int, db: Database) -> str:
        return same(db)

    @server.complete("thing:{id}", "id")
    async def ids(typed: str, db: Database) -> list[str]:
        return [same(db)]

    async with stream_talk(server, revision) as talk:
        (tool,) = (await talk.result("tools/list"))["tools"]
        assert list(tool["inputSchema"]["properties"]) == ["a"]
        assert await talk.text("run", {"a": 1}) == "same"
        (listed,) = (await talk.result("prompts/list"))["prompts"]
        assert not listed.get("arguments")
        got = await talk.result("prompts/get", {"name": "prompt"})
        assert got["messages"][0]["content"]["text"] == "same"
        assert (await talk.result("resources/read", {"uri": "thing:5"}))["contents"][0]["text"] == "same"
        reference = {"type": "ref/resource", "uri": "thing:{id}"}
        params = {"ref": reference, "argument": {"name": "id", "value": ""}}
        assert (await talk.result("completion/complete", params))["completion"]["values"] == ["same"]


async def test_several_values_are_found_by_their_types() -> None:
    async def lifespan() -> AsyncIterator[tuple[Cache, str, Database, Store[int]]]:
        yield Cache(), "text", Database(), Store()

    async def run(db: Database, cache: Cache, store: Store[int], ctx: Context, text: str) -> str:
        assert (cache, db, store) == (ctx.lifespan[0], ctx.lifespan[2], ctx.lifespan[3])
        return f"{text} {ctx.lifespan[1]}"

    async with stream_talk(server_with(lifespan, run), "2025-11-25") as talk:
        assert await talk.text("run", {"text": "an argument, and the"}) == "an argument, and the text"


def yielding(kind: Any) -> Callable[..., AsyncIterator[Any]]:
    async def lifespan() -> AsyncIterator[Any]:
        yield None

    lifespan.__annotations__["return"] = kind
    return lifespan


@pytest.mark.parametrize(
    ("annotation", "kinds"),
    [
        (AsyncIterator[Database], [Database]),
        (AsyncIterator[Annotated[Database, "the database"]], [Database]),
        (AsyncIterator[tuple[Database, Cache]], [Database, Cache]),
        (AsyncIterator[tuple[str, Database, int, Dsn]], [Database, Dsn]),
        (AsyncIterator[tuple[Database, ...]], [tuple[Database, ...]]),
        (AsyncIterator[dict[str, Any]], []),
        (Any, []),
    ],
)
def test_the_annotation_says_which_types_are_the_lifespans(annotation: Any, kinds: list[Any]) -> None:
    assert Server("s", lifespan=yielding(annotation)).features.lifespan.kinds == kinds


async def test_a_lifespan_that_yields_a_dict_takes_no_dict_away_from_arguments() -> None:
    async def lifespan() -> AsyncIterator[dict[str, Any]]:
        yield {"key": "the lifespan's"}

    async def run(options: dict[str, Any], ctx: Context) -> str:
        return f"{options['key']} {ctx.lifespan['key']}"

    async with stream_talk(server_with(lifespan, run), "2025-11-25") as talk:
        assert await talk.text("run", {"options": {"key": "mine"}}) == "mine the lifespan's"


def test_annotations_that_cannot_serve_are_refused() -> None:
    with pytest.raises(ConfigError, match="2 values.*Database"):
        Server("s", lifespan=yielding(AsyncIterator[tuple[Database, Database]]))
    with pytest.raises(SignatureError, match="Nowhere"):
        Server("s", lifespan=yielding("AsyncIterator[Nowhere]"))


@pytest.mark.parametrize("value", [(), (1,), [1, 2], "ab", None])
async def test_a_value_that_is_not_the_annotated_tuple_fails_the_start(value: Any) -> None:
    ended: list[str] = []

    async def lifespan() -> AsyncIterator[tuple[Database, Cache]]:
        try:
            yield value
        finally:
            ended.append("end")

    with pytest.raises(ConfigError, match="annotated to yield 2 values"):
        await server_with(lifespan).serve(memory_pair()[0])
    assert ended == ["end"]


async def test_without_a_lifespan_its_value_is_refused_in_words(caplog: pytest.LogCaptureFixture) -> None:
    async with session_talk(server_with(None, whole), "2025-11-25") as talk:
        assert (await talk.call("whole"))["isError"] is True
    assert "this server has no lifespan" in caplog.text


async def test_a_lifespan_that_yields_nothing_has_the_value_none() -> None:
    async def lifespan() -> AsyncIterator[None]:
        yield

    async with session_talk(server_with(lifespan, whole), "2025-11-25") as talk:
        assert await talk.text("whole") == "None"


# --------------------------------------------------------------------------------------------------- once, for all


@every_revision
@pytest.mark.parametrize("over", [stream_talk, session_talk])
async def test_it_begins_before_the_first_answer_and_ends_after_the_client_has_left(
    over: Any, revision: str, note: Journal
) -> None:
    async def run() -> str:
        note("run")
        return "done"

    async with over(server_with(noting(note), run), revision) as talk:
        assert note.take() == ["begin"]
        await talk.text("run")
        assert note.take() == ["run"]
    assert note.take() == ["end"]


async def test_making_a_server_and_registering_begins_nothing(note: Journal) -> None:
    server = server_with(noting(note), hello)
    server.session()
    server.serving(memory_pair()[0])
    await asyncio.sleep(0)
    assert note.take() == []


async def test_two_clients_share_one_and_the_last_one_ends_it(note: Journal) -> None:
    server = server_with(noting(note, object()), whole)
    async with Client(server) as one:
        async with Client(server) as two, stream_talk(server, MODERN) as three, session_talk(server, MODERN) as four:
            texts = [await one.call("whole"), await two.call("whole"), await three.text("whole")]
            assert len({*texts, await four.text("whole")}) == 1
        assert note.take() == ["begin"]
        assert await one.call("whole") == texts[0]
    assert note.take() == ["end"]


async def test_clients_that_come_at_once_share_one_that_begins_slowly(note: Journal) -> None:
    gate = asyncio.Event()

    async def lifespan() -> AsyncIterator[None]:
        note("begin")
        await gate.wait()
        yield
        note("end")

    server = server_with(lifespan, hello)
    clients = [Client(server) for _ in range(3)]
    connecting = [asyncio.create_task(client.connect()) for client in clients]
    while not note.lines:
        await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(*connecting)
    assert [await client.call("hello") for client in clients] == ["hello"] * 3
    for client in clients:
        await client.close()
    assert note.take() == ["begin", "end"]


async def test_nothing_is_answered_before_it_has_begun() -> None:
    gate = asyncio.Event()

    async def lifespan() -> AsyncIterator[None]:
        await gate.wait()
        yield

    server = server_with(lifespan, hello)
    mine, theirs = memory_pair()
    serving = asyncio.create_task(server.serve(theirs))
    ping = dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    await mine.send(ping)
    session = server.session()
    handled = asyncio.create_task(session.handle(ping))
    for _ in range(20):
        await asyncio.sleep(0)
    assert mine.receive_nowait() is None
    assert not handled.done()
    gate.set()
    assert json.loads(await mine.receive() or b"")["id"] == json.loads(await handled or b"")["id"] == 1
    await session.aclose()
    await mine.aclose()
    await asyncio.wait_for(serving, 10)


async def test_after_the_end_the_next_client_begins_it_anew(note: Journal) -> None:
    server = server_with(noting(note), hello)
    for _ in range(2):
        async with Client(server) as client:
            assert await client.call("hello") == "hello"
        assert note.take() == ["begin", "end"]


async def test_a_client_that_comes_while_it_ends_waits_and_begins_it_anew(note: Journal) -> None:
    gate = asyncio.Event()

    async def lifespan() -> AsyncIterator[None]:
        note("begin")
        yield
        note("ending")
        await gate.wait()
        note("end")

    server = server_with(lifespan, hello)
    first, second = server.session(), server.session()
    ping = dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    await first.handle(ping)
    leaving = asyncio.create_task(first.aclose())
    while note.lines != ["begin", "ending"]:
        await asyncio.sleep(0)
    handled = asyncio.create_task(second.handle(ping))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not handled.done()
    gate.set()
    await handled
    await leaving
    await second.aclose()
    assert note.take() == ["begin", "ending", "end", "begin", "ending", "end"]


def test_every_event_loop_has_its_own(note: Journal) -> None:
    server = server_with(noting(note), hello)
    met = threading.Barrier(2)

    async def main() -> None:
        async with Client(server) as client:
            await asyncio.to_thread(met.wait, 30)
            assert await client.call("hello") == "hello"
            await asyncio.to_thread(met.wait, 30)

    threads = [threading.Thread(target=asyncio.run, args=[main()]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert note.take() == ["begin", "begin", "end", "end"]


async def test_it_is_entered_and_left_in_a_task_of_its_own() -> None:
    tasks: list[asyncio.Task[Any] | None] = []
    ran: list[str] = []

    async def background() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ran.append("background ended")

    async def lifespan() -> AsyncIterator[None]:
        tasks.append(asyncio.current_task())
        async with asyncio.TaskGroup() as group:
            task = group.create_task(background())
            yield
            task.cancel()
        tasks.append(asyncio.current_task())

    async with stream_talk(server_with(lifespan, hello), "2025-11-25") as talk:
        assert await talk.text("hello") == "hello"
    assert tasks[0] is tasks[1] is not asyncio.current_task()
    assert ran == ["background ended"]


async def test_whoever_holds_it_keeps_it_between_clients(note: Journal) -> None:
    """As a listener does for its whole life."""
    server = server_with(noting(note), hello)
    async with server.features.lifespan.held() as running:
        for _ in range(2):
            async with Client(server) as client:
                assert await client.call("hello") == "hello"
        assert note.take() == ["begin"]
        assert not running.over.done()
    assert note.take() == ["end"]
    assert running.over.done()


# --------------------------------------------------------------------------------------------------- companions


@pytest.mark.parametrize("with_lifespan", [True, False])
async def test_companions_run_within_the_lifespan(with_lifespan: bool, note: Journal) -> None:
    server = server_with(noting(note) if with_lifespan else None, hello)

    def companion(name: str) -> Any:
        @asynccontextmanager
        async def beside(given: Server) -> AsyncIterator[None]:
            assert given is server
            note(f"{name} in")
            yield
            note(f"{name} out")

        return beside

    server.features.companions += [companion("one"), companion("two")]
    async with stream_talk(server, "2025-11-25") as talk:
        assert await talk.text("hello") == "hello"
    inner = ["one in", "two in", "two out", "one out"]
    assert note.take() == (["begin", *inner, "end"] if with_lifespan else inner)


async def test_a_companion_that_cannot_start_fails_the_start_and_the_lifespan_is_ended(note: Journal) -> None:
    @asynccontextmanager
    async def broken(server: Server) -> AsyncIterator[None]:
        raise OSError("cannot watch")
        yield

    server = server_with(noting(note), hello)
    server.features.companions.append(broken)
    with pytest.raises(OSError, match="cannot watch"):
        await server.serve(memory_pair()[0])
    assert note.take() == ["begin", "end"]


# --------------------------------------------------------------------------------------------- failures at the start


def failing_at_start(error: BaseException) -> Callable[..., AsyncIterator[None]]:
    async def lifespan() -> AsyncIterator[None]:
        await asyncio.sleep(0)
        raise error
        yield

    return lifespan


@pytest.mark.parametrize("error", [ValueError("no database"), SystemExit(3), ExceptionGroup("g", [KeyError("x")])])
async def test_a_start_that_fails_ends_every_way_to_serve_with_that_error_itself(error: BaseException) -> None:
    server = server_with(failing_at_start(error))
    mine, theirs = memory_pair()

    async def raised(serving: Any) -> BaseException | None:
        try:
            await serving
        except BaseException as found:
            return found
        return None

    assert await raised(server.serve(theirs)) is error
    assert await mine.receive() is None  # and the client is not left waiting
    session = server.session()
    frame = dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert await raised(session.handle(frame)) is error
    await session.aclose()
    if isinstance(error, Exception):
        serving = server.serving(memory_pair()[0])
        assert await raised(serving.__aenter__()) is error


async def test_a_client_in_the_same_program_hears_why_the_start_failed(caplog: pytest.LogCaptureFixture) -> None:
    error = ValueError("no database")
    client = Client(server_with(failing_at_start(error)))
    for _ in range(2):
        with pytest.raises(ConnectionFailed, match="'living'.*ValueError: no database") as caught:
            await client.connect()
        assert caught.value.__cause__ is error
    with pytest.raises(ConnectionFailed, match="SystemExit: set KEY"):
        await Client(server_with(failing_at_start(SystemExit("set KEY")))).connect()


async def test_a_start_that_failed_may_succeed_for_the_next_client(note: Journal) -> None:
    attempts: list[int] = []

    async def lifespan() -> AsyncIterator[None]:
        attempts.append(1)
        if len(attempts) == 1:
            raise OSError("not yet")
        yield

    server = server_with(lifespan, hello)
    with pytest.raises(ConnectionFailed):
        await Client(server).connect()
    async with Client(server) as client:
        assert await client.call("hello") == "hello"
    assert len(attempts) == 2


async def test_a_start_is_given_up_when_its_last_client_is(note: Journal) -> None:
    async def lifespan() -> AsyncIterator[None]:
        note("begin")
        try:
            await asyncio.Event().wait()
            yield
        finally:
            note("undone")

    server = server_with(lifespan)
    serving = [asyncio.create_task(server.serve(memory_pair()[0])) for _ in range(2)]
    while not note.lines:
        await asyncio.sleep(0)
    for task in serving:
        assert note.lines == ["begin"]
        task.cancel()
        await asyncio.wait([task], timeout=10)
        assert task.cancelled()
    assert note.take() == ["begin", "undone"]


async def test_a_missing_yield_is_said_in_words() -> None:
    async def lifespan() -> AsyncIterator[None]:
        if note is None:
            yield

    with pytest.raises(RuntimeError, match="the lifespan lifespan came to its end without a yield"):
        await server_with(lifespan).serve(memory_pair()[0])


# ------------------------------------------------------------------------------------- failures while it is served


class Crashing:
    """A lifespan whose task group fails when told to."""

    def __init__(self, note: Journal) -> None:
        self.crash = asyncio.Event()
        self.note = note

    async def _fail(self) -> None:
        await self.crash.wait()
        raise RuntimeError("crashed")

    async def lifespan(self) -> AsyncIterator[None]:
        try:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(self._fail())
                yield
                task.cancel()
        finally:
            self.note("end")


async def test_a_task_group_that_crashes_ends_the_serving_with_its_error(note: Journal) -> None:
    crashing = Crashing(note)
    server = server_with(crashing.lifespan, hello)
    mine, theirs = memory_pair()
    serving = asyncio.create_task(server.serve(theirs))
    await mine.send(dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
    assert await mine.receive() is not None
    crashing.crash.set()
    with pytest.raises(ExceptionGroup) as caught:
        await asyncio.wait_for(serving, 10)
    assert [str(error) for error in caught.value.exceptions] == ["crashed"]
    assert await mine.receive() is None
    assert note.take() == ["end"]


async def test_a_crash_ends_what_runs_and_the_client_hears_of_the_end(
    note: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    crashing = Crashing(note)
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "never"

    async with Client(server_with(crashing.lifespan, wait)) as client:
        call = asyncio.create_task(client.call("wait"))
        await asyncio.wait_for(started.wait(), 10)
        crashing.crash.set()
        with pytest.raises(ConnectionLost):
            await asyncio.wait_for(call, 10)
        assert cancelled.is_set()
    assert "RuntimeError: crashed" in caplog.text


async def test_a_crash_ends_a_session_of_frames(note: Journal) -> None:
    crashing = Crashing(note)
    started = asyncio.Event()

    async def wait() -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    session = server_with(crashing.lifespan, wait).session()
    params = {"name": "wait", "arguments": {}, "_meta": modern_meta()}
    frame = dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    handled = asyncio.create_task(session.handle(frame))
    await asyncio.wait_for(started.wait(), 10)
    crashing.crash.set()
    for handling in (handled, session.handle(frame), session.aclose()):
        with pytest.raises(ExceptionGroup):
            await asyncio.wait_for(handling, 10)
    await session.aclose()


async def test_every_client_of_a_crashed_lifespan_ends_and_the_next_begins_it_anew(note: Journal) -> None:
    crashing = Crashing(note)
    server = server_with(crashing.lifespan, hello)
    servings = [server.serving(memory_pair()[0]) for _ in range(2)]
    for serving in servings:
        await serving.__aenter__()
    crashing.crash.set()
    for serving in servings:
        with pytest.raises(ExceptionGroup):
            await asyncio.wait_for(serving.wait(), 10)
    crashing.crash.clear()
    async with Client(server) as client:
        assert await client.call("hello") == "hello"
    assert note.take() == ["end", "end"]


async def test_a_lifespan_that_ends_by_itself_ends_the_serving() -> None:
    tasks: list[asyncio.Task[Any]] = []

    async def lifespan() -> AsyncIterator[None]:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        try:
            yield
        except asyncio.CancelledError:
            pass

    serving = asyncio.create_task(server_with(lifespan).serve(memory_pair()[0]))
    while not tasks:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    tasks[0].cancel()
    with pytest.raises(RuntimeError, match="came to its end while the server served"):
        await asyncio.wait_for(serving, 10)


async def test_a_companion_that_crashes_ends_the_serving(note: Journal) -> None:
    crashing = Crashing(note)
    server = server_with(noting(note), hello)
    server.features.companions.append(lambda server: asynccontextmanager(crashing.lifespan)())
    serving = asyncio.create_task(server.serve(memory_pair()[0]))
    while not note.lines:
        await asyncio.sleep(0)
    crashing.crash.set()
    with pytest.raises(ExceptionGroup):
        await asyncio.wait_for(serving, 10)
    assert note.take() == ["begin", "end", "end"]


# --------------------------------------------------------------------------------------------- failures at the end


async def failing_at_end() -> AsyncIterator[None]:
    yield
    raise OSError("cannot close")


async def test_an_end_that_fails_is_raised_by_whoever_leaves_last() -> None:
    server = server_with(failing_at_end, hello)
    first, second = server.session(), server.session()
    ping = dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    await first.handle(ping)
    await second.handle(ping)
    await first.aclose()
    with pytest.raises(OSError, match="cannot close"):
        await second.aclose()
    mine, theirs = memory_pair()
    serving = asyncio.create_task(server.serve(theirs))
    await mine.aclose()
    with pytest.raises(OSError, match="cannot close"):
        await asyncio.wait_for(serving, 10)


async def test_an_end_that_fails_hides_no_other_error(caplog: pytest.LogCaptureFixture) -> None:
    server = server_with(failing_at_end)
    with pytest.raises(KeyError, match="mine"):
        async with server.features.lifespan.held():
            raise KeyError("mine")
    assert "OSError: cannot close" in caplog.text
    caplog.clear()
    with pytest.raises(KeyError, match="mine"):
        async with server.serving(memory_pair()[0]):
            raise KeyError("mine")
    assert "OSError: cannot close" in caplog.text
    caplog.clear()
    async with Client(server):
        pass
    assert "OSError: cannot close" in caplog.text


async def test_an_end_that_takes_too_long_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, note: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lifespan_module, "ENDING", 0.01)
    monkeypatch.setattr(lifespan_module, "STUCK", 0.01)
    ever = asyncio.Event()

    async def slow() -> AsyncIterator[None]:
        yield
        try:
            await asyncio.Event().wait()
        finally:
            note("cut off")

    async def stubborn() -> AsyncIterator[None]:
        yield
        while not ever.is_set():
            try:
                await ever.wait()
            except asyncio.CancelledError:
                pass

    for lifespan in (slow, stubborn):
        async with stream_talk(server_with(lifespan), "2025-11-25"):
            pass
        assert "did not end within 0.01 s" in caplog.text
        caplog.clear()
    assert note.take() == ["cut off"]
    server = server_with(stubborn)
    for _ in range(2):  # one that is still there does not keep the next one from beginning
        async with stream_talk(server, "2025-11-25"):
            pass
    ever.set()
    for _ in range(5):
        await asyncio.sleep(0)


async def test_an_end_that_has_begun_is_not_cancelled_with_the_serving(note: Journal) -> None:
    gate = asyncio.Event()

    async def lifespan() -> AsyncIterator[None]:
        yield
        note("ending")
        await gate.wait()
        note("ended")

    mine, theirs = memory_pair()
    serving = asyncio.create_task(server_with(lifespan).serve(theirs))
    await mine.aclose()
    while not note.lines:
        await asyncio.sleep(0)
    for _ in range(3):  # as a client does, which sends SIGTERM after it has closed the input
        serving.cancel()
        await asyncio.sleep(0)
    assert not serving.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(serving, 10)
    assert note.take() == ["ending", "ended"]


async def test_a_stack_of_many_resources_is_left_in_the_reverse_order(note: Journal) -> None:
    @asynccontextmanager
    async def part(name: str) -> AsyncIterator[str]:
        note(f"{name} in")
        yield name
        note(f"{name} out")

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[list[str]]:
        async with AsyncExitStack() as stack:
            yield [await stack.enter_async_context(part(name)) for name in "ab"]

    async with stream_talk(server_with(lifespan, whole), "2025-11-25") as talk:
        assert await talk.text("whole") == "['a', 'b']"
    assert note.take() == ["a in", "b in", "b out", "a out"]


# --------------------------------------------------------------------------------------------------- processes

PROGRAM = """
import asyncio, sys
from collections.abc import AsyncIterator
from modelwire import Server

def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)

async def crash() -> None:
    await crashing.wait()
    raise RuntimeError("crashed")

async def lifespan(server: Server) -> AsyncIterator[None]:
    print("printed at the start")
    if HOW == "start":
        raise ValueError("no database")
    if HOW == "exit":
        sys.exit("set the variable KEY")
    try:
        if HOW == "crash":
            async with asyncio.TaskGroup() as group:
                group.create_task(crash())
                yield
        else:
            yield
    finally:
        print("printed at the end")
        await asyncio.sleep(0.05)
        say("ended")
    if HOW == "end":
        raise OSError("cannot close")

HOW = sys.argv[1]
crashing = asyncio.Event()
server = Server("program", lifespan=lifespan)

@server.tool
async def go() -> str:
    crashing.set()
    await asyncio.Event().wait()
    return "never"

server.run()
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_process_ends_its_lifespan_at_the_end_of_its_input(program: Path, revision: str) -> None:
    async with child_talk(program, "well", revision=revision, python=["-W", "error"]) as talk:
        talk.close_stdin()
        assert await talk.ended() == 0
        assert talk.stderr.decode().split("\n") == ["printed at the start", "printed at the end", "ended", ""]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_process_ends_its_lifespan_on_a_signal(program: Path, number: signal.Signals) -> None:
    async with child_talk(program, "well") as talk:
        talk.process.send_signal(number)
        assert await talk.ended() in (0, 130)
        assert b"ended" in talk.stderr
        assert b"Traceback" not in talk.stderr


async def test_a_process_whose_lifespan_cannot_start_says_why_and_ends_with_one(program: Path) -> None:
    async with child_talk(program, "start", opened=False) as talk:
        assert await talk.ended() == 1
        assert talk.output == b""
        assert talk.stderr.endswith(b"ValueError: no database\n")
        assert talk.stderr.count(b"Traceback") == 1
    with pytest.raises(ServerExited, match="ValueError: no database") as caught:
        await Client([sys.executable, str(program), "start"]).connect()
    assert caught.value.exit_code == 1


async def test_a_lifespan_may_end_the_program_with_a_word(program: Path) -> None:
    async with child_talk(program, "exit", opened=False) as talk:
        assert await talk.ended() == 1
        assert talk.stderr == b"printed at the start\nset the variable KEY\n"


async def test_a_process_whose_lifespan_crashes_says_why_and_ends_with_one(program: Path) -> None:
    async with child_talk(program, "crash") as talk:
        await talk.begin_call("go")
        assert await talk.ended() == 1
        assert b"RuntimeError: crashed" in talk.stderr
        assert b"ended" in talk.stderr


async def test_a_process_whose_lifespan_cannot_end_says_why_and_ends_with_one(program: Path) -> None:
    async with child_talk(program, "end") as talk:
        talk.close_stdin()
        assert await talk.ended() == 1
        assert talk.stderr.endswith(b"OSError: cannot close\n")
    async with child_talk(program, "end") as talk:
        talk.process.send_signal(signal.SIGTERM)
        assert await talk.ended() == 0
        assert b"OSError: cannot close" in talk.stderr
