"""The mistakes that people make when they register their functions: each is told at once, in words that help."""

from __future__ import annotations

from typing import Any

import pytest

from modelwire import Client, ConfigError, Context, RpcError, Server, SignatureError, ToolError, types


@pytest.mark.parametrize("reason", [ValueError("why"), 404, {"code": 3}, "plain"])
async def test_a_tool_error_takes_whatever_it_is_given_and_says_it(reason: Any) -> None:
    server = Server("s")

    @server.tool
    def refuse() -> str:
        raise ToolError(reason)

    async with Client(server) as client:
        with pytest.raises(ToolError, match=str(reason).replace("{", r"\{")):
            await client.call("refuse")


def test_a_resource_without_a_uri_is_refused() -> None:
    def forgotten() -> str:
        return ""

    with pytest.raises(SignatureError, match="'forgotten' needs a URI"):
        Server("s").resource(forgotten)  # type: ignore[arg-type]


def test_a_name_given_by_position_is_refused_with_the_keyword() -> None:
    with pytest.raises(SignatureError, match="name='mytool'"):
        Server("s").tool("mytool")  # type: ignore[call-overload]


def test_a_ctx_without_annotation_is_refused() -> None:
    with pytest.raises(SignatureError, match="write ctx: Context"):

        @Server("s").tool
        def look(ctx) -> str:  # type: ignore[no-untyped-def]
            return ""


@pytest.mark.parametrize("timeout", [0, -1, "3s", float("nan")])
def test_a_timeout_that_is_no_time_is_refused(timeout: Any) -> None:
    with pytest.raises(ConfigError, match="timeout must be a number of seconds"):
        Server("s").add_tool(lambda: "x", name="x", timeout=timeout)


@pytest.mark.parametrize("name", ["", 3, None])
def test_a_servers_name_is_a_string(name: Any) -> None:
    with pytest.raises(ConfigError, match="name is a string"):
        Server(name)


@pytest.mark.parametrize("what", ["tool", "prompt", "resource"])
def test_a_misspelt_list_is_no_uri(what: str) -> None:
    with pytest.raises(ConfigError, match=f"'{what}s'"):
        Server("s").changed(what)


@pytest.mark.parametrize("annotated", [True, False])
async def test_a_forgotten_await_is_named_in_the_log(caplog: pytest.LogCaptureFixture, annotated: bool) -> None:
    server = Server("s")

    async def inner() -> int:
        return 1

    async def plain():  # type: ignore[no-untyped-def]
        return inner()

    async def typed() -> int:
        return inner()  # type: ignore[return-value]

    server.add_tool(typed if annotated else plain, name="t")
    async with Client(server) as client:
        assert (await client.call_tool("t")).is_error
    assert "did you forget to await it?" in caplog.text


async def test_a_keyboard_interrupt_of_a_sync_tool_is_its_own_failure() -> None:
    server = Server("s")

    @server.tool
    def interrupt() -> str:
        raise KeyboardInterrupt

    async with Client(server) as client:
        assert (await client.call_tool("interrupt")).is_error
        await client.ping()


async def test_a_prompt_may_return_messages_as_most_model_apis_write_them() -> None:
    server = Server("s")

    @server.prompt
    def talk() -> Any:
        return [{"role": "user", "content": "hi"}, {"role": "assistant", "content": {"type": "text", "text": "ho"}}]

    async with Client(server) as client:
        result = await client.get_prompt("talk")
    assert result.messages == [
        types.PromptMessage("user", types.TextContent("hi")),
        types.PromptMessage("assistant", types.TextContent("ho")),
    ]


@pytest.mark.parametrize("value", [None, {"a": 1}, {"role": "system", "content": "x"}])
async def test_a_prompt_that_returns_no_message_fails(value: Any, caplog: pytest.LogCaptureFixture) -> None:
    server = Server("s")
    server.add_prompt(lambda: value, name="p")
    async with Client(server) as client:
        with pytest.raises(RpcError):
            await client.get_prompt("p")
    assert "is no message" in caplog.text or "None was returned" in caplog.text


async def test_a_resource_that_returns_nothing_fails(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("s")
    server.add_resource("x://r", lambda: None, name="r")
    async with Client(server) as client:
        with pytest.raises(RpcError):
            await client.read_resource("x://r")
    assert "None was returned" in caplog.text


@pytest.mark.parametrize("kind", ["resource", "prompt"])
async def test_a_tool_error_elsewhere_keeps_its_words(kind: str) -> None:
    server = Server("s")

    def refuse() -> str:
        raise ToolError("not today")

    server.add_resource("x://r", refuse)
    server.add_prompt(refuse)
    async with Client(server) as client:
        with pytest.raises(RpcError, match="not today"):
            await (client.read_resource("x://r") if kind == "resource" else client.get_prompt("refuse"))


async def test_an_unknown_uri_is_named_with_the_nearest_that_exists() -> None:
    server = Server("s")
    server.add_resource("shop://readme", lambda: "x", name="r")
    async with Client(server) as client:
        with pytest.raises(RpcError, match="shop://readm. Did you mean shop://readme?"):
            await client.read_resource("shop://readm")


def test_a_context_is_still_found_by_its_annotation() -> None:
    @Server("s").tool
    def look(ctx: Context) -> str:
        return ctx.method

    assert callable(look)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RpcError("abc", "m"), -32603),  # type: ignore[arg-type]
        (RpcError(float("nan"), "m"), -32603),  # type: ignore[arg-type]
        (RpcError(True, "m"), -32603),
        (RpcError(1.5, "m"), -32603),  # type: ignore[arg-type]
        (RpcError(10**5000, "m"), -32603),
        (RpcError(7, 5), 7),  # type: ignore[arg-type]
        (RpcError(7, "m", object()), 7),
    ],
)
async def test_an_error_with_odd_parts_is_still_an_error_on_the_wire(error: RpcError, code: int) -> None:
    server = Server("s")

    @server.tool
    async def fail() -> str:
        raise error

    async with Client(server) as client:
        with pytest.raises(RpcError) as caught:
            await client.call_tool("fail")
        assert caught.value.code == code
        await client.ping()


@pytest.mark.parametrize(
    ("template", "uri", "value"),
    [
        ("file:///srv/{name}", "file:///srv/%2Fetc%2Fpasswd", None),
        ("file:///srv/{name}", "file:///srv/a%2Fb", None),
        ("file:///srv/{name}", "file:///srv/a%5Cb", None),
        ("file:///srv/{name}", "file:///srv/a%20b", "a b"),
        ("tree:///{+name}", "tree:////etc/passwd", None),
        ("tree:///{+name}", "tree:///%2Fetc/passwd", None),
        ("tree:///{+name}", "tree:///a/../b", None),
        ("tree:///{+name}", "tree:///a/b.txt", "a/b.txt"),
        ("file://{+name}", "file:///home/me", "/home/me"),
        ("x://s{?name}", "x://s?name=a%2Fb", "a/b"),
    ],
)
async def test_no_value_of_a_template_climbs_out_of_its_place(template: str, uri: str, value: str | None) -> None:
    server = Server("s")

    @server.resource(template)
    def read(name: str) -> str:
        return name

    async with Client(server) as client:
        if value is None:
            with pytest.raises(RpcError, match="Resource not found"):
                await client.read_resource(uri)
        else:
            [contents] = (await client.read_resource(uri)).contents
            assert isinstance(contents, types.TextResourceContents)
            assert contents.text == value


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, float("nan"), "10"])
def test_a_result_limit_that_is_no_number_of_bytes_is_refused(limit: Any) -> None:
    with pytest.raises(ConfigError, match="max_result is a number of bytes"):
        Server("s", max_result=limit)
