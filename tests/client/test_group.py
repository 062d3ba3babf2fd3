"""Several servers as one client: opened at once, each failure its own, every call to the right one."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_overloads

import pytest

from modelwire import (
    Client,
    ConfigError,
    ConnectionFailed,
    ConnectionLost,
    Group,
    InvalidParams,
    LocalError,
    ModelwireError,
    NotFound,
    RequestTimeout,
    Server,
    ServerExited,
    ToolError,
    WrongResult,
)
from modelwire.protocol import types as t
from tests.clock import Clock
from tests.fake_server import child, fake_server, text

GONE = child("read(); complain('no luck'); sys.exit(3)")


def weather() -> Server:
    server = Server("weather")
    server.add_tool(lambda: "weather was reset", name="admin.reset")

    @server.tool(title="Forecast")
    def forecast(city: str, days: int = 1) -> list[str]:
        """Forecast for a city."""
        return [f"sun over {city}"] * days

    @server.tool
    def a__b() -> str:
        return "weather's a__b"

    @server.resource("weather://{city}/now")
    def now(city: str) -> str:
        return f"sun over {city}"

    @server.resource("weather://about")
    def about() -> str:
        return "about weather"

    @server.prompt
    def pack(city: str) -> str:
        return f"What to pack for {city}?"

    @server.complete("pack", "city")
    def cities(typed: str) -> list[str]:
        return [city for city in ("Oslo", "Bergen") if city.startswith(typed)]

    server.complete("weather://{city}/now", "city")(lambda typed: ["Paris"])
    return server


def files() -> Server:
    server = Server("files")

    @server.tool
    def forecast() -> str:
        return "files has a forecast, too"

    @server.tool
    def read(path: str) -> str:
        if path == "missing":
            raise ToolError("no such file")
        return f"content of {path}"

    @server.resource("file:///{+path}")
    def file(path: str) -> str:
        if path == "missing":
            raise NotFound("gone")
        return f"resource {path}"

    @server.prompt
    def review() -> str:
        return "Review it."

    return server


def both(**options: Any) -> Group:
    return Group({"weather": weather(), "files": files()}, **options)


# --------------------------------------------------------------------------------------------------- lists and calls


async def test_lists_are_joined_in_the_order_of_servers_and_unchanged_but_for_names() -> None:
    async with both() as group:
        tools = await group.list_tools()
        assert [tool.name for tool in tools] == [
            "weather__admin_reset_a341e39a", "weather__forecast", "weather__a__b", "files__forecast", "files__read",
        ]  # fmt: skip
        own = (await group.clients["weather"].list_tools())[1]
        own.name = "weather__forecast"
        assert tools[1] == own
        assert [prompt.name for prompt in await group.list_prompts()] == ["weather__pack", "files__review"]
        assert [resource.uri for resource in await group.list_resources()] == ["weather://about"]
        templates = [template.uri_template for template in await group.list_resource_templates()]
        assert templates == ["weather://{city}/now", "file:///{+path}"]


async def test_a_call_goes_to_the_server_that_its_name_says() -> None:
    async with both() as group:
        assert await group.call("weather__forecast", {"city": "Oslo", "days": 2}, returns=list[str]) == [
            "sun over Oslo", "sun over Oslo",
        ]  # fmt: skip
        assert await group.call("files__forecast") == "files has a forecast, too"
        result = await group.call_tool("files__read", {"path": "x"}, timeout=5)
        assert isinstance(result, t.CallToolResult)
        assert isinstance(result.content[0], t.TextContent)
        assert result.content[0].text == "content of x"
        with pytest.raises(ToolError, match="no such file"):
            await group.call("files__read", arguments={"path": "missing"})
        with pytest.raises(InvalidParams):
            await group.call("files__write")


async def test_names_with_the_separator_and_changed_names_go_right_before_anything_was_listed() -> None:
    async with Group({"weather": weather(), "weather__a": files()}) as group:
        assert await group.call("weather__a__b") == "weather's a__b"
        assert await group.call("weather_a__forecast") == "files has a forecast, too"
        assert await group.call("weather__admin_reset_a341e39a") == "weather was reset"
        assert group.origin("weather__admin_reset_a341e39a") == ("weather", "admin.reset")
        assert group.origin("weather_a__read") == ("weather__a", "read")


async def test_a_tool_whose_own_name_looks_changed_is_still_called() -> None:
    server = Server("s")
    server.add_tool(lambda: "called", name="x_0123abcd")
    async with Group({"s": server}) as group:
        assert await group.call("s__x_0123abcd") == "called"
        with pytest.raises(InvalidParams):
            await group.call("s__y_0123abcd")


async def test_an_unknown_name_is_told_with_the_nearest() -> None:
    async with both() as group:
        with pytest.raises(ConfigError, match=r"no server of the group has a tool 'wether__forecast'.*weather, files"):
            await group.call("wether__forecast")
        await group.list_tools()
        with pytest.raises(ConfigError, match=r"did you mean 'weather__forecast'\?"):
            await group.call_tool("wether__forecast")
        with pytest.raises(ConfigError, match="has a tool or prompt 'nothing'"):
            group.origin("nothing")


async def test_a_wrong_result_names_the_tool_as_the_group_does() -> None:
    async with Group({"a": weather()}) as group:
        with pytest.raises(
            WrongResult,
            match="the tool 'a__forecast' did not return what returns=int wants: result: expected an integer",
        ):
            await group.call("a__forecast", {"city": "Oslo"}, returns=int)


async def test_options_of_calls_are_those_of_the_client() -> None:
    async with fake_server() as fake:
        opening = asyncio.create_task(Group({"f": Client(fake.stream)}).connect())
        await fake.open("2025-11-25")
        group = await opening
        heard: list[float] = []
        call = asyncio.create_task(
            group.call("f__x", {"a": 1}, on_progress=lambda done, total, message: heard.append(done), returns=int)
        )
        request = await fake.expect("tools/call")
        assert request["params"]["name"] == "x"
        await fake.progress(request, 0.5)
        await fake.result(request, text("7"))
        assert (await call, heard) == (7, [0.5])
        with pytest.raises(ConfigError, match="timeout must be a number"):
            await group.list_tools(timeout="soon")  # type: ignore[arg-type]
        assert group.failures == {}
        await group.close()


@pytest.mark.parametrize(
    "name",
    "list_tools list_resources list_resource_templates list_prompts call call_tool read_resource get_prompt "
    "complete".split(),
)
def test_methods_take_what_those_of_the_client_take(name: str) -> None:
    mine: Any = getattr(Group, name)
    theirs: Any = getattr(Client, name)
    assert inspect.signature(mine) == inspect.signature(theirs)
    spelt = [[inspect.signature(form) for form in get_overloads(method)] for method in (mine, theirs)]
    assert spelt[0] == spelt[1]
    assert inspect.iscoroutinefunction(mine)
    assert mine.__doc__ != theirs.__doc__
    assert "Args:" not in mine.__doc__ or "As for `Client" in mine.__doc__


# --------------------------------------------------------------------------------------------------- prefixes


async def test_without_a_prefix_the_first_of_two_equal_names_counts_and_a_warning_names_both(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with both(prefix=False) as group:
        assert await group.call("forecast", {"city": "Oslo"}, returns=list[str]) == ["sun over Oslo"]
        names = [tool.name for tool in await group.list_tools()]
        assert names == ["admin_reset_a341e39a", "forecast", "a__b", "read"]
        assert await group.call("read", {"path": "x"}) == "content of x"
        assert await group.clients["files"].call("forecast") == "files has a forecast, too"
        with pytest.raises(ConfigError, match=r"has a tool 'reed'; did you mean 'read'\?"):
            await group.call("reed")
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warned == ["'forecast' is of both 'weather' and 'files'; it stands for that of 'weather'"]


async def test_without_a_prefix_a_tool_that_appears_later_is_found() -> None:
    first, second = weather(), files()
    async with Group({"weather": first, "files": second}, prefix=False) as group:
        await group.list_tools()
        second.add_tool(lambda: "new", name="later")
        assert await group.call("later") == "new"


async def test_a_function_may_make_the_names() -> None:
    async with both(prefix=lambda server, tool: f"{tool}-{server}") as group:
        assert await group.call("read-files", {"path": "x"}) == "content of x"
        assert (await group.get_prompt("review-files")).messages[0].content == t.TextContent("Review it.")


# --------------------------------------------------------------------------------------------------- resources, prompts


async def test_a_resource_is_read_from_the_server_that_listed_it_or_has_a_template_for_it() -> None:
    async with both() as group:
        contents = {
            "file:///a/b": "resource a/b",
            "weather://about": "about weather",
            "weather://Rome/now": "sun over Rome",
        }
        for uri, words in contents.items():
            [content] = (await group.read_resource(uri, timeout=5)).contents
            assert isinstance(content, t.TextResourceContents)
            assert content.text == words
        with pytest.raises(ModelwireError, match="gone"):
            await group.read_resource("file:///missing")
        with pytest.raises(ConfigError, match="no server of the group lists 'shop://1', nor a template for it"):
            await group.read_resource("shop://1")


async def test_a_resource_of_several_servers_is_refused_with_their_names() -> None:
    async with Group({"a": files(), "b": files()}) as group:
        with pytest.raises(ConfigError, match=r"'file:///x' belongs to several servers, a and b; .*group\.clients"):
            await group.read_resource("file:///x")


async def test_a_resource_that_nobody_lists_is_asked_of_the_only_server_with_resources() -> None:
    tools = Server("tools")
    tools.add_tool(lambda: "x", name="x")
    async with Group({"tools": tools, "files": files()}) as group:
        with pytest.raises(ModelwireError) as raised:
            await group.read_resource("shop://1")
        assert not isinstance(raised.value, LocalError)


async def test_prompts_and_completion_go_to_their_server() -> None:
    async with both() as group:
        prompt = await group.get_prompt("weather__pack", {"city": "Oslo"})
        assert prompt.messages[0].content == t.TextContent("What to pack for Oslo?")
        assert (await group.complete("weather__pack", "city", "O")).values == ["Oslo"]
        assert (await group.complete(t.PromptReference("weather__pack"), "city", "B")).values == ["Bergen"]
        assert (await group.complete("weather://{city}/now", "city")).values == ["Paris"]
        with pytest.raises(ConfigError, match="has a prompt 'wether__pack'"):
            await group.complete("wether__pack", "city")


# --------------------------------------------------------------------------------------------------- failures


async def test_a_server_that_cannot_be_opened_is_reported_and_harms_no_other(caplog: pytest.LogCaptureFixture) -> None:
    told: list[tuple[str, ModelwireError]] = []
    targets = {"gone": GONE, "weather": weather(), "nonsense": 5, "missing": ["no-such-program"]}
    async with Group(targets, on_failure=lambda server, error: told.append((server, error))) as group:
        assert await group.call("weather__a__b") == "weather's a__b"
        assert {tool.name.partition("__")[0] for tool in await group.list_tools()} == {"weather"}
        assert {name: type(error) for name, error in group.failures.items()} == {
            "gone": ServerExited, "nonsense": ConfigError, "missing": ConnectionFailed,
        }  # fmt: skip
        assert dict(told) == group.failures
        with pytest.raises(
            ConnectionFailed, match=r"the server 'gone' of the group is not open: .*code 3(.|\n)*no luck"
        ):
            await group.call("gone__x")
    assert caplog.text.count("opening of the server") == 3


async def test_a_strict_group_opens_whole_or_not_at_all() -> None:
    client = Client(weather())
    group = Group({"weather": client, "gone": GONE}, strict=True)
    with pytest.raises(ConnectionFailed, match=r"the group could not be opened: 'gone': .*code 3") as raised:
        await group.connect()
    assert isinstance(raised.value.__cause__, ServerExited)
    assert not group.connected
    assert not client.connected


async def test_a_callback_that_fails_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    heard = asyncio.Event()

    async def fail(server: str, error: ModelwireError) -> None:
        heard.set()
        raise KeyError(server)

    async with Group({"gone": ["no-such-program"], "weather": weather()}, on_failure=fail) as group:
        await heard.wait()
        assert await group.call("weather__a__b") == "weather's a__b"
    assert "on_failure failed" in caplog.text


async def test_what_failed_is_tried_again_by_connecting_again(tmp_path: Path) -> None:
    late = tmp_path / "late.py"
    async with Group({"late": str(late), "weather": weather()}) as group:
        assert "there is no file" in str(group.failures["late"])
        late.write_text("from modelwire import Server\nServer('late').run()\n")
        await group.connect()
        assert group.failures == {}
        assert [tool.name for tool in await group.list_tools()][1] == "weather__forecast"


async def test_a_list_that_fails_is_reported_and_the_others_are_joined() -> None:
    async with fake_server() as fake:
        told: list[str] = []
        group = Group(
            {"fake": fake.stream, "weather": weather()},
            client=lambda name, target: Client(target, revision="2025-11-25"),
            on_failure=lambda server, error: told.append(f"{server}: {error}"),
        )
        opening = asyncio.create_task(group.connect())
        await fake.open("2025-11-25")
        await opening

        listing = asyncio.create_task(group.list_tools())
        await fake.error(await fake.expect("tools/list"), -32603, "broken")
        assert [tool.name for tool in await listing][1] == "weather__forecast"
        assert told == ["fake: broken (-32603)"]
        assert str(group.failures["fake"]) == "broken (-32603)"

        listing = asyncio.create_task(group.list_tools())
        tool = {"name": "x", "inputSchema": {"type": "object"}}
        await fake.result(await fake.expect("tools/list"), {"tools": [tool]})
        assert (await listing)[0].name == "fake__x"
        assert group.failures == {}
        await group.close()


async def test_a_server_that_ends_harms_no_other() -> None:
    ending = child("opened(); read(); sys.exit(4)")
    async with Group({"ending": ending, "weather": weather()}) as group:
        with pytest.raises(ServerExited):
            await group.call("ending__x")
        assert await group.call("weather__a__b") == "weather's a__b"


async def test_a_slow_server_costs_its_own_time_only() -> None:
    async with fake_server() as fake:
        group = Group(
            {"silent": fake.stream, "weather": weather()},
            client=lambda name, target: Client(target, connect_timeout=0.05 if name == "silent" else 30),
        )
        async with group:
            assert isinstance(group.failures["silent"], RequestTimeout)
            assert await group.call("weather__a__b") == "weather's a__b"
        fake.inbox.clear()


# --------------------------------------------------------------------------------------------------- opening, closing


async def test_a_timeout_of_the_opening_is_that_of_each_server() -> None:
    async with fake_server() as fake:
        clock = Clock()
        group = Group({"silent": fake.stream, "weather": weather()})
        opening = asyncio.create_task(group.connect(timeout=20))
        while not group.clients or not group.clients["weather"].connected:
            await asyncio.sleep(0)
        await clock.advance(21)
        await opening
        assert isinstance(group.failures["silent"], RequestTimeout)
        assert await group.call("weather__a__b") == "weather's a__b"
        await group.close()
        fake.inbox.clear()


async def test_all_servers_are_opened_at_once() -> None:
    async with fake_server() as one, fake_server() as other:
        group = Group({"one": one.stream, "other": other.stream})
        opening = asyncio.create_task(group.connect())
        await other.open("2025-11-25")  # would wait for ever if `one` came first
        await one.open("2025-11-25")
        await opening
        await group.close()


async def test_a_client_that_is_open_already_stays_open_and_one_that_is_not_is_closed() -> None:
    mine, theirs = Client(weather()), Client(files())
    async with mine:
        async with Group({"mine": mine, "theirs": theirs}) as group:
            assert group.clients == {"mine": mine, "theirs": theirs}
            assert await group.call("theirs__read", {"path": "x"}) == "content of x"
        assert (mine.connected, theirs.connected) == (True, False)


async def test_a_group_can_be_closed_twice_and_opened_again() -> None:
    group = both()
    for _ in range(2):
        async with group:
            assert await group.call("weather__a__b") == "weather's a__b"
        await group.close()
        assert not group.connected
        for request in (group.call("weather__a__b"), group.list_tools()):
            with pytest.raises(ConnectionFailed, match="the group is not open; use `async with group:`"):
                await request


async def test_closing_while_opening_ends_the_opening() -> None:
    async with fake_server() as fake:
        group = Group({"fake": fake.stream, "weather": weather()})
        opening = asyncio.create_task(group.connect())
        await fake.expect("server/discover")
        await group.close()
        with pytest.raises(ConnectionLost, match="closed while it was being opened"):
            await opening


async def test_an_opening_that_is_cancelled_leaves_nothing_open() -> None:
    async with fake_server() as fake:
        client = Client(weather())
        group = Group({"fake": fake.stream, "weather": client})
        opening = asyncio.create_task(group.connect())
        await fake.expect("server/discover")
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await fake.closed()
        assert not client.connected


async def test_the_block_passes_on_what_is_raised_in_it() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with both():
            raise KeyError("mine")


# --------------------------------------------------------------------------------------------------- adding, removing


async def test_servers_come_and_go_while_the_group_is_open() -> None:
    async with Group({"weather": weather()}) as group:
        await group.add("files", files())
        assert await group.call("files__read", {"path": "x"}) == "content of x"
        assert [tool.name for tool in await group.list_tools()][-1] == "files__read"
        client = group.clients["files"]
        await group.remove("files")
        assert not client.connected
        assert list(group.clients) == ["weather"]
        with pytest.raises(ConfigError, match="no server of the group has a tool 'files__read'"):
            await group.call("files__read", {"path": "x"})
        assert {tool.name.partition("__")[0] for tool in await group.list_tools()} == {"weather"}
        await group.add("files", files())
        assert await group.call("files__read", {"path": "x"}) == "content of x"


async def test_a_server_that_cannot_be_added_changes_nothing() -> None:
    async with Group({"weather": weather()}) as group:
        with pytest.raises(ConfigError, match="there is a server 'weather' in the group already"):
            await group.add("weather", files())
        with pytest.raises(ServerExited):
            await group.add("gone", GONE)
        with pytest.raises(ConfigError, match="cannot connect to 5"):
            await group.add("nonsense", 5)
        assert list(group.clients) == ["weather"]
        assert group.failures == {}
        with pytest.raises(ConfigError, match="there is no server 'gone' in the group; there are weather"):
            await group.remove("gone")


async def test_a_client_that_is_open_in_another_loop_fails_by_itself() -> None:
    opened, done = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    mine = Client(weather())

    async def elsewhere() -> None:
        async with mine:
            loop.call_soon_threadsafe(opened.set)
            await asyncio.to_thread(done.wait)

    running = asyncio.create_task(asyncio.to_thread(lambda: asyncio.run(elsewhere())))
    await opened.wait()
    try:
        async with Group({"mine": mine, "weather": weather()}) as group:
            assert await group.call("weather__a__b") == "weather's a__b"
            assert {name.partition("__")[0] for name in [tool.name for tool in await group.list_tools()]} == {"weather"}
            assert "was connected in another event loop" in str(group.failures["mine"])
        assert mine.connected
    finally:
        done.set()
        await running


async def test_servers_are_added_side_by_side_and_one_that_is_slow_holds_up_no_other() -> None:
    async with fake_server() as fake:
        async with Group({}) as group:
            slow = asyncio.create_task(group.add("slow", fake.stream))
            await fake.expect("server/discover")
            await group.add("weather", weather())
            assert await group.call("weather__a__b") == "weather's a__b"
            with pytest.raises(ConfigError, match="there is a server 'slow' in the group already"):
                await group.add("slow", weather())
            assert list(group.clients) == ["weather"]
        # The group is closed, and with it what was being added.
        await fake.closed()
        with pytest.raises(ConnectionLost, match="closed"):
            await slow
        assert list(group.clients) == ["weather"]


async def test_an_addition_that_is_given_up_leaves_nothing() -> None:
    async with fake_server() as fake, Group({}) as group:
        slow = asyncio.create_task(group.add("slow", fake.stream))
        await fake.expect("server/discover")
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        await fake.closed()
        await group.add("slow", weather())


async def test_what_is_added_before_the_opening_is_opened_with_it() -> None:
    group = Group({})
    await group.add("weather", weather())
    async with group:
        assert await group.call("weather__a__b") == "weather's a__b"


async def test_a_request_of_a_server_that_is_removed_fails_and_no_other() -> None:
    async with fake_server() as fake:
        group = Group({"fake": fake.stream, "weather": weather()})
        opening = asyncio.create_task(group.connect())
        await fake.open("2025-11-25")
        await opening
        call = asyncio.create_task(group.call("fake__x"))
        await fake.expect("tools/call")
        await group.remove("fake")
        with pytest.raises(ConnectionLost):
            await call
        assert await group.call("weather__a__b") == "weather's a__b"
        await group.close()


# --------------------------------------------------------------------------------------------------- what it is made of


@pytest.mark.parametrize("servers", [5, ["a.py"], None])
def test_servers_come_by_name(servers: Any) -> None:
    with pytest.raises(ConfigError, match="a group takes servers by name"):
        Group(servers)


@pytest.mark.parametrize("name", ["", 5, None])
def test_a_name_is_a_string(name: Any) -> None:
    with pytest.raises(ConfigError, match="the name of a server is a string"):
        Group({name: weather()})


async def test_entries_and_strings_are_targets_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "k")
    command, *args = child("opened(); text(read(), os.environ['KEY']); serve()")
    config = tmp_path / "mcp.json"
    servers = {"a": {"command": command, "args": args, "env": {"KEY": "${KEY}"}}}
    config.write_text(json.dumps({"mcpServers": servers}))
    targets = {"entry": {"command": command, "args": args, "env": {"KEY": "${KEY}"}}, "named": f"{config}#a"}
    async with Group(targets) as group:
        assert await group.call("entry__x") == "${KEY}"
        assert await group.call("named__x") == "k"


@pytest.mark.parametrize("as_path", [str, Path])
async def test_a_file_is_a_group(
    as_path: Callable[[Any], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UNSET", raising=False)
    command, *args = child("opened(); serve()")
    servers = {
        "runs": {"command": command, "args": args},
        "off": {"command": command, "args": args, "disabled": True},
        "needs": {"command": command, "args": args, "env": {"KEY": "${UNSET}"}},
        "wrong": {"comand": "x"},
    }
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": servers}))
    async with Group(as_path(config)) as group:
        assert await group.call("runs__x") == "done"
        assert set(group.failures) == {"needs", "wrong"}
        for name, said in [("needs", "the environment variable UNSET"), ("wrong", 'it needs "command"')]:
            assert isinstance(group.failures[name], ConfigError)
            assert f"mcp.json, server {name!r}" in str(group.failures[name])
            assert said in str(group.failures[name])
        monkeypatch.setenv("UNSET", "set now")
        await group.connect()
        assert set(group.failures) == {"wrong"}
        assert await group.call("needs__x") == "done"


def test_a_file_that_is_none_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        Group(tmp_path / "mcp.json")


async def test_settings_of_the_clients_are_those_of_the_function_that_makes_them() -> None:
    made: list[str] = []

    def make(name: str, target: Any) -> Client:
        made.append(name)
        return Client(target, timeout=7)

    ready = Client(files())
    async with Group({"weather": weather(), "ready": ready}, client=make) as group:
        assert made == ["weather"]
        assert group.clients["weather"].timeout == 7
        assert group.clients["ready"] is ready


async def test_a_function_that_makes_no_client_is_a_failure_of_that_server() -> None:
    def make(name: str, target: Any) -> Client:
        if name == "bad":
            raise KeyError("mine")
        return Client(target)

    async with Group({"bad": weather(), "good": weather()}, client=make) as group:
        assert "KeyError" in str(group.failures["bad"])
        assert await group.call("good__a__b") == "weather's a__b"
