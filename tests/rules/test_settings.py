"""Settings of the wrong kind: refused when something is made, by name, with what is wanted."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from modelwire import Client, ConfigError, Group, Observer, Server
from modelwire.sync import Client as SyncClient


class Watch(Observer):
    pass


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("pass_env", "API_KEY", r"pass_env= is a list of names of variables, such as \['API_KEY'\], not 'API_KEY'"),
        ("pass_env", [5], r"pass_env= .*; 5 in it is none"),
        ("env", "A=1", "env= is a dict of variables"),
        ("env", {"A": 1}, "the value of A must be a str"),
        ("stderr", "server.log", "stderr= is a file object.*not 'server.log'"),
        ("stderr", Path("server.log"), r"open\('server.log', 'a'\)"),
        ("cwd", 5, "cwd= is the path of a folder, not 5"),
        ("observers", 5, "observers= is a list of instances of Observer.*not 5"),
        ("observers", Watch(), "observers= is a list"),
        ("observers", [Watch], "observers= .*Watch'> in it is none"),
        ("on_log", 5, "on_log= is a function that is called with each log message, not 5"),
        ("on_notification", "f", "on_notification= is a function"),
        ("on_reconnect", True, "on_reconnect= is a function"),
        ("on_elicit", 5, "on_elicit= is a function"),
        ("on_elicit_url", 5, "on_elicit_url= is a function"),
        ("on_sample", "gpt", "on_sample= is a function"),
        ("handlers", [1], "handlers= is a dict of functions by method"),
        ("handlers", {"roots/list": 5}, "'roots/list': 5 cannot be in it"),
        ("capabilities", {"roots": {}}, "capabilities= is a types.ClientCapabilities"),
        ("name", 5, "name= is a string, not 5"),
        ("version", 1, "version= is a string, not 1"),
        ("title", b"x", "title= is a string"),
        ("revision", 20250618, "revision= is a string"),
        ("max_message", "1M", "max_message= is a whole number from 1 on, not '1M'"),
    ],
)
def test_a_clients_setting_of_the_wrong_kind_is_refused_when_it_is_made(setting: str, value: Any, words: str) -> None:
    options = {setting: value}
    with pytest.raises(ConfigError, match=words):
        Client(["python", "server.py"], **options)
    with pytest.raises(ConfigError, match=words):
        SyncClient(["python", "server.py"], **options)


@pytest.mark.parametrize(("setting", "value"), [("on_failure", 5), ("client", 5)])
def test_a_groups_setting_too(setting: str, value: Any) -> None:
    options: dict[str, Any] = {setting: value}
    with pytest.raises(ConfigError, match=f"{setting}= is a function"):
        Group({}, **options)


async def lifespan() -> AsyncGenerator[None]:
    yield


def no_generator(server: Server) -> None:
    pass


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("version", 1, "version= is a string, not 1"),
        ("title", 5, "title= is a string"),
        ("instructions", ["Be", "brief"], "instructions= is a string"),
        ("observers", 5, "observers= is a list"),
        ("declare", "tools", r"declare= is a list of features, such as \['tools'\], not 'tools'"),
        ("extensions", ["x"], "extensions= is a dict of settings by name"),
        ("experimental", {"x": 5}, "'x': 5 cannot be in it"),
        ("page_size", "3", "page_size= is a whole number"),
        ("max_workers", 0, "max_workers= is a whole number from 1 on"),
        ("max_message", None, "max_message= is a whole number"),
        ("lifespan", contextlib.asynccontextmanager(lifespan)(), "without calling it"),
        ("lifespan", no_generator, "returns where it should yield"),
    ],
)
def test_a_servers_setting_of_the_wrong_kind_is_refused_when_it_is_made(setting: str, value: Any, words: str) -> None:
    options = {setting: value}
    with pytest.raises(ConfigError, match=words):
        Server("s", **options)


def test_what_is_right_is_taken() -> None:
    given: Any = (name for name in ["HOME"])  # gone through once
    Client(["python"], pass_env=given, env={"A": "1"}, stderr=sys.stderr, cwd=Path(), observers=(Watch(),))
    Client(["python"], stderr=io.BytesIO(), on_log=print, handlers={"x/y": print})
    Client(["python"], stderr=print, cwd="/")

    def mistaken(server: Server) -> None:  # type: ignore[misc]
        yield

    Server("s", lifespan=mistaken)  # type: ignore[arg-type]
    Server("s", declare=iter(["tools"]), observers=(), extensions={"x": {}})  # type: ignore[arg-type]
