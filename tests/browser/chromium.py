"""Debian's Chromium, started once for a file of tests, and pages of any origin in it; nothing leaves this machine."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.wire import PATIENCE

NAMES = ("app.test", "evil.test")
"""Names that lead to this machine, in this browser alone."""

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=" + ",".join(f"MAP {name} 127.0.0.1" for name in NAMES),
)


class Page:
    """A page, and what the network says of the requests that it makes.

    Attributes:
        seen: Status and headers of every response, those to preflights among them.
    """

    def __init__(self, page: Any) -> None:
        self.page = page
        self.seen: list[tuple[int, dict[str, str]]] = []
        self._news = asyncio.Event()

    async def watch(self) -> None:
        session = await self.page.context.new_cdp_session(self.page)
        session.on("Network.responseReceivedExtraInfo", self._note)
        await session.send("Network.enable")

    def _note(self, told: Any) -> None:
        headers = {name.lower(): value for name, value in told["headers"].items()}
        self.seen.append((told["statusCode"], headers))
        self._news.set()

    async def statuses(self, count: int) -> list[int]:
        """Wait for as many responses as that, and return their statuses."""
        async with asyncio.timeout(PATIENCE):
            while len(self.seen) < count:
                self._news.clear()
                await self._news.wait()
        return [status for status, _ in self.seen]

    @property
    def shared(self) -> list[str]:
        """The headers by which a server has said that pages of other origins may read what it says."""
        return [name for _, headers in self.seen for name in headers if name.startswith("access-control-")]

    async def until(self, script: str, given: Any) -> None:
        """Wait until a function in the page says yes."""
        await self.page.wait_for_function(script, arg=given, timeout=PATIENCE * 1000)

    async def run(self, script: str, **given: Any) -> Any:
        """Run a function in the page."""
        return await self.page.evaluate(script, given)


HTML = b"<!doctype html><link rel=icon href='data:,'><title>page</title>"


class Browser:
    """A browser, and a web server for its pages.

    Args:
        browser: Playwright's.
        port: Where the web server is.
    """

    def __init__(self, browser: Any, port: int) -> None:
        self._browser = browser
        self._port = port

    def origin(self, name: str) -> str:
        """The origin of pages that the web server shows under a name."""
        return f"http://{name}:{self._port}"

    @contextlib.asynccontextmanager
    async def page(self, url: str) -> AsyncIterator[Page]:
        """A page, in a window that knows nothing of others."""
        context = await self._browser.new_context()
        try:
            page = await context.new_page()
            await page.goto(url)
            found = Page(page)
            await found.watch()
            yield found
        finally:
            await context.close()


async def _show(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        writer.write(head % len(HTML) + HTML)
        await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A browser; where there is none, the tests are skipped."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("there is no Chromium here; on Debian: sudo apt-get install chromium")
    from playwright.async_api import async_playwright

    showing = await asyncio.start_server(_show, "127.0.0.1", 0)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        try:
            yield Browser(browser, showing.sockets[0].getsockname()[1])
        finally:
            await browser.close()
            showing.close()
