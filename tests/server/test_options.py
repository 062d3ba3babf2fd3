"""What can be said at registration: every option by its name, and no other."""

from __future__ import annotations

import typing
from typing import Any

import pytest

from modelwire import ConfigError, Server
from modelwire import types as t
from modelwire.server.options import Options, PromptOptions, ResourceOptions, ToolOptions


def f(x: str = "") -> str:
    return x


@pytest.mark.parametrize("method", ["tool", "add_tool", "add_resource", "resource", "prompt", "add_prompt"])
def test_an_option_that_does_not_exist_is_refused_with_the_nearest(method: str) -> None:
    server = Server("s")
    register: dict[str, Any] = {
        "tool": lambda **options: server.tool(**options)(f),
        "add_tool": lambda **options: server.add_tool(f, **options),
        "resource": lambda **options: server.resource("x://y", **options)(f),
        "add_resource": lambda **options: server.add_resource("x://y", f, **options),
        "prompt": lambda **options: server.prompt(**options)(f),
        "add_prompt": lambda **options: server.add_prompt(f, **options),
    }
    with pytest.raises(TypeError, match=r"\(\) got an unexpected keyword argument 'tittle'; did you mean 'title'\?"):
        register[method](tittle="A")
    if "prompt" in method:
        with pytest.raises(TypeError, match="unexpected keyword argument 'mime_type'"):
            register[method](mime_type="text/plain")
    register[method](title="A")


@pytest.mark.parametrize("kind", [Options, ToolOptions, ResourceOptions, PromptOptions])
def test_every_option_can_be_read_by_type_checkers(kind: Any) -> None:
    assert set(typing.get_type_hints(kind)) == set(kind.__annotations__)


@pytest.mark.parametrize(
    "option", ["name", "title", "description", "icons", "meta", "annotations", "structured", "text", "input_schema"]
)
def test_a_tool_given_whole_says_those_things_itself(option: str) -> None:
    with pytest.raises(ConfigError, match=f"tool 't': {option}= belongs into the Tool that is given"):
        Server("s").add_tool(t.Tool("t", {"type": "object"}), f, **{option: None})  # type: ignore[arg-type]


def test_a_handler_stands_beside_a_tool_and_not_beside_a_function() -> None:
    with pytest.raises(ConfigError, match="tool 'f': a handler stands beside a Tool"):
        Server("s").add_tool(f, f)
    with pytest.raises(ConfigError, match="tool 't' needs a handler"):
        Server("s").add_tool(t.Tool("t", {"type": "object"}))


@pytest.mark.parametrize("timeout", [0, -1, "5", float("nan")])
def test_a_time_limit_is_seconds_for_everything(timeout: Any) -> None:
    server = Server("s")
    for register in (
        lambda: server.add_tool(f, timeout=timeout),
        lambda: server.add_tool(t.Tool("t", {"type": "object"}), f, timeout=timeout),
        lambda: server.add_prompt(f, timeout=timeout),
        lambda: server.add_resource("x://y", f, timeout=timeout),
    ):
        with pytest.raises(ConfigError, match="timeout must be a number of seconds above 0"):
            register()
