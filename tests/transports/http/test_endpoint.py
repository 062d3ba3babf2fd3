"""What may be said about a server behind HTTP."""

from __future__ import annotations

import asyncio
import logging
from contextvars import ContextVar
from typing import Any

import pytest

from modelwire import Client, ConfigError, ConnectionFailed
from modelwire.transports.http.endpoint import HttpOptions, endpoint, shown_url
from tests.transports.http.scripted import (
    done,
    modern,
    web,
)

# ------------------------------------------------------------------ settings


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"headers": {"X": "a\r\nY: b"}}, "the value of X"),
        ({"headers": {"bad name": "x"}}, "can be no name of one"),
        ({"headers": {"Mcp-Session-Id": "x"}}, "is the library's to set"),
        ({"headers": {"MCP-Protocol-Version": "x"}}, "revision= chooses"),
        ({"headers": "Authorization: x"}, "a dict of headers"),
        ({"verify": False}, "verify= is for https:// and wss:// targets"),
        ({"cert": "x.pem"}, "cert= is for https:// and wss:// targets"),
        ({"proxy": "socks5://x"}, "is no URL of an HTTP proxy"),
        ({"http": object()}, "http= is an aiohttp.ClientSession"),
        ({"http": object(), "proxy": "http://x"}, "proxy= does nothing beside http="),
    ],
)
async def test_settings_that_make_no_sense_are_refused(options: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        await Client("http://127.0.0.1:1/mcp", **options).connect()
    assert "a\r\nY" not in str(caught.value)


@pytest.mark.parametrize("name", ["headers", "cert", "proxy", "http", "verify"])
def test_settings_for_http_are_refused_elsewhere(name: str) -> None:
    value: Any = {"headers": {"X": "y"}, "verify": False}.get(name, "http://x")
    with pytest.raises(ConfigError, match=f"{name}= is for http"):
        Client(["python", "x.py"], **{name: value})


async def test_a_function_for_headers_that_fails_costs_its_request(caplog: pytest.LogCaptureFixture) -> None:
    fail = False

    def headers() -> dict[str, str]:
        if fail:
            raise RuntimeError("no token")
        return {}

    caplog.set_level(logging.DEBUG)
    async with web(modern(done)) as server, Client(server.url, headers=headers) as client:
        fail = True
        with pytest.raises(ConnectionFailed, match=r"the function of headers= failed: RuntimeError\('no token'\)"):
            await client.call("t")
        fail = False
        assert await client.call("t") == "done"


async def test_a_call_may_have_headers_of_its_own() -> None:
    tenant: ContextVar[str] = ContextVar("tenant", default="none")
    async with web(modern(done)) as server, Client(server.url, headers=lambda: {"X-Tenant": tenant.get()}) as client:

        async def call(name: str) -> None:
            tenant.set(name)
            await client.call("t")

        await asyncio.gather(call("a"), call("b"))
    assert {request.headers["x-tenant"] for request in server.asked("tools/call")} == {"a", "b"}


def test_urls_are_shown_without_secrets() -> None:
    assert shown_url("https://me:pass@h.example:8443/a/b?key=1#x") == "https://h.example:8443/a/b"
    assert shown_url("http://h?a=b@c") == "http://h"
    found = endpoint("http://me:p%20w@h/ä?q=ß#x", HttpOptions())
    assert found.url == "http://h/%C3%A4?q=%C3%9F"
    assert found.shown == "http://h/%C3%A4"
    assert endpoint("https://bücher.example", HttpOptions()).url == "https://xn--bcher-kva.example/"
    assert endpoint("http://[::1]:80/%2f", HttpOptions()).url == "http://[::1]:80/%2f"
