"""The mistakes that people make with a client: each is told at once, in words that help."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from modelwire import Client, ConfigError, Server, ServerExited


def _server() -> Server:
    server = Server("s")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    return server


@pytest.mark.parametrize("arguments", [["a"], "a", 3])
async def test_arguments_that_are_no_mapping_are_refused(arguments: Any) -> None:
    async with Client(_server()) as client:
        with pytest.raises(ConfigError, match="arguments go by name"):
            await client.call("add", arguments)
        with pytest.raises(ConfigError, match="arguments go by name"):
            await client.get_prompt("p", arguments)


@pytest.mark.parametrize("setting", ["timeout", "max_timeout", "connect_timeout"])
@pytest.mark.parametrize("value", [0, -1, "3", float("nan")])
def test_a_time_that_is_none_is_refused_by_name(setting: str, value: Any) -> None:
    settings: dict[str, Any] = {setting: value}
    with pytest.raises(ConfigError, match=f"^{setting} must be a number of seconds"):
        Client(_server(), **settings)


@pytest.mark.parametrize("value", [0, -1, "3"])
async def test_a_calls_own_time_is_checked_too(value: Any) -> None:
    async with Client(_server()) as client:
        with pytest.raises(ConfigError, match="timeout must be a number of seconds"):
            await client.call("add", {"a": 1, "b": 2}, timeout=value)


async def test_on_progress_must_be_a_function() -> None:
    async with Client(_server()) as client:
        with pytest.raises(ConfigError, match="on_progress is called with"):
            await client.call("add", {"a": 1, "b": 2}, on_progress=3)  # type: ignore[call-overload]


async def test_listening_for_nothing_is_refused() -> None:
    async with Client(_server()) as client:
        with pytest.raises(ConfigError, match="asked for nothing"):
            client.listen()


async def test_uris_are_a_list_and_no_string() -> None:
    async with Client(_server()) as client:
        with pytest.raises(ConfigError, match=r"uris=\['x://r'\]"):
            client.listen(uris="x://r")


async def test_a_listening_that_was_not_entered_says_how() -> None:
    async with Client(_server()) as client:
        with pytest.raises(ConfigError, match="async with client.listen"):
            async for _ in client.listen(tools=True):
                pass


def test_a_client_belongs_to_the_loop_that_connected_it() -> None:
    client = Client(_server())
    with asyncio.Runner() as first, asyncio.Runner() as second:
        first.run(client.connect())
        with pytest.raises(ConfigError, match="another event loop"):
            second.run(client.ping())
        first.run(client.close())


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (".", "is a folder"),
        ("server.js", r"\['node', 'server.js'\]"),
        ("python server.py", r"\['python', 'server.py'\]"),
    ],
)
def test_a_target_that_cannot_be_one_says_what_can(target: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Client(target)


async def test_a_program_that_never_serves_is_asked_for_run(tmp_path: Path) -> None:
    file = tmp_path / "forgot.py"
    file.write_text("from modelwire import Server\nserver = Server('s')\n")
    with pytest.raises(ServerExited, match=r"does it call server\.run\(\)"):
        async with Client(str(file)):
            pass


async def test_a_missing_variable_that_we_have_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "s3cret")
    with pytest.raises(ServerExited, match=r"pass_env=\['SHOP_KEY'\]") as caught:
        async with Client([sys.executable, "-c", "import os; os.environ['SHOP_KEY']"]):
            pass
    assert "s3cret" not in str(caught.value)
