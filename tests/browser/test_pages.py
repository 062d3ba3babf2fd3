"""Web pages as clients, in a real browser: those that were allowed get all of it, and the others nothing."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio

from tests.browser.chromium import HTML, Browser, Page, chromium
from tests.server.http.asgi import BOTH, Modern
from tests.server.http.servers import make
from tests.wire import PATIENCE, dumps, modern_meta, opening

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

HERE = "http://127.0.0.1:0/mcp"
PAGE, STRANGER = "app.test", "evil.test"
POSTED = {"Content-Type": "application/json", "Accept": BOTH}

CLIENT = """
() => {
window.ask = async (url, method, headers, body) => {
    try {
        const answer = await fetch(url, {method, headers, body});
        return {status: answer.status, session: answer.headers.get("Mcp-Session-Id"), text: await answer.text()};
    } catch (error) { return {error: error.name}; }
};
window.listen = async (url, method, headers, body) => {
    window.heard = ""; window.over = false; window.stop = new AbortController();
    const answer = await fetch(url, {method, headers, body, signal: window.stop.signal});
    (async () => {
        const decoder = new TextDecoder();
        try { for await (const chunk of answer.body) window.heard += decoder.decode(chunk, {stream: true}); }
        catch { window.heard += "aborted"; }
        window.over = true;
    })();
    return answer.status;
};
}
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as found:
        yield found


class Client:
    """A client in a page.

    Attributes:
        page: The page.
        url: The endpoint.
        session: The headers of its session, where it has one.
    """

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.session: dict[str, str] = {}

    async def ask(self, method: str, headers: Mapping[str, str], body: Any = None) -> Any:
        """Send a request, and read its answer."""
        return await self._run("ask", method, headers, body)

    async def listen(self, method: str, headers: Mapping[str, str], body: Any = None) -> int:
        """Send a request, and hear its answer as it comes; return its status."""
        return await self._run("listen", method, headers, body)

    async def _run(self, what: str, method: str, headers: Mapping[str, str], body: Any) -> Any:
        return await self.page.run(
            f"given => {what}(given.url, given.method, given.headers, given.body)",
            url=self.url,
            method=method,
            headers={**self.session, **headers},
            body=body if body is None or isinstance(body, str) else dumps(body).decode(),
        )

    async def post(self, message: Any) -> Any:
        """Send a message in the session."""
        return await self.ask("POST", POSTED, message)

    async def hears(self, text: str) -> None:
        """Wait until a text was heard."""
        await self.page.until("text => window.heard.includes(text)", text)

    async def over(self) -> str:
        """Wait for the end of what is heard, and return it."""
        await self.page.until("() => window.over", None)
        return await self.page.run("() => window.heard")


@contextlib.asynccontextmanager
async def client_at(browser: Browser, where: str, endpoint: str | None) -> AsyncIterator[Client]:
    async with browser.page(where if ":" in where else browser.origin(where)) as page:
        await page.page.evaluate(CLIENT)
        yield Client(page, str(endpoint))


async def shown(scope: Any, receive: Any, send: Any) -> None:
    """A page that is shown beside the endpoint."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
    await send({"type": "http.response.body", "body": HTML})


def modern(tool: str, arguments: Any = None, **meta: Any) -> tuple[dict[str, str], Any]:
    params = {"name": tool, "arguments": arguments or {}, "_meta": {**modern_meta(), **meta}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return {**POSTED, **Modern.headers(message)}, message


def text_of(answer: Any) -> str:
    """The text of a tool's result."""
    assert answer["status"] == 200, answer
    return json.loads(answer["text"])["result"]["content"][0]["text"]


# ------------------------------------------------------------------ pages that were allowed


async def test_a_page_that_was_allowed_calls_tools_and_hears_them_as_they_go_on(browser: Browser) -> None:
    bench = make()
    async with (
        bench.server.serving(HERE, allowed_origins=[browser.origin(PAGE)]) as serving,
        client_at(browser, PAGE, serving.url) as client,
    ):
        headers, message = modern("region", {"place": "nö", "number": 3})
        place = base64.b64encode("nö".encode()).decode()
        more = {"Mcp-Param-Region": f"=?base64?{place}?=", "Mcp-Param-Number": "3", "Authorization": "Bearer x"}
        assert text_of(await client.ask("POST", {**headers, **more}, message)) == "nö 3"
        assert await client.page.statuses(2) == [204, 200]
        assert (await client.ask("POST", headers, message))["status"] == 400  # the browser hides no refusal of ours
        assert await client.listen("POST", *modern("steps", {"count": 1, "then_wait": True}, progressToken=1)) == 200
        await client.hears('"progress":1')
        await bench.waiting.wait()
        bench.go.set()
        assert "1 steps" in await client.over()


async def test_a_page_that_stops_listening_cancels_its_request(browser: Browser) -> None:
    bench = make()
    async with (
        bench.server.serving(HERE, allowed_origins=[browser.origin(PAGE)]) as serving,
        client_at(browser, PAGE, serving.url) as client,
    ):
        assert await client.listen("POST", *modern("steps", {"count": 1, "then_wait": True}, progressToken=1)) == 200
        await bench.waiting.wait()
        await client.page.run("() => window.stop.abort()")
        async with asyncio.timeout(PATIENCE):
            await bench.cancelled.wait()


async def test_a_page_that_was_allowed_has_a_session(browser: Browser) -> None:
    bench = make()
    async with (
        bench.server.serving(HERE, allowed_origins=[browser.origin(PAGE)]) as serving,
        client_at(browser, PAGE, serving.url) as client,
    ):
        opened = await client.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening("2025-11-25")})
        client.session = {"Mcp-Session-Id": opened["session"], "MCP-Protocol-Version": "2025-11-25"}
        assert (await client.post({"jsonrpc": "2.0", "method": "notifications/initialized"}))["status"] == 202
        assert await client.listen("GET", {"Accept": "text/event-stream"}) == 200
        bench.server.add_tool(lambda: "x", name="more")
        await client.hears("list_changed")
        await client.page.run("() => window.stop.abort()")
        last = re.findall(r"^id: (.+)$", await client.over(), re.MULTILINE)[-1]
        bench.server.add_tool(lambda: "x", name="even_more")
        assert await client.listen("GET", {"Accept": "text/event-stream", "Last-Event-ID": last}) == 200
        await client.hears("list_changed")
        assert (await client.ask("DELETE", {}))["status"] == 204
        assert "aborted" not in await client.over()
        assert (await client.post({"jsonrpc": "2.0", "id": 2, "method": "ping"}))["status"] == 404


async def test_a_page_that_the_server_itself_shows_may_ask(browser: Browser) -> None:
    bench = make()
    async with bench.server.serving(HERE, routes={"/": shown}) as serving:
        for name in ("127.0.0.1", "localhost"):
            where = str(serving.url).replace("127.0.0.1", name).removesuffix("mcp")
            async with client_at(browser, where, "/mcp") as client:
                assert text_of(await client.ask("POST", *modern("add", {"a": 1, "b": 2}))) == "3"
                assert client.page.shared == []


# ------------------------------------------------------------------ all others


@pytest.mark.parametrize("allowed", [(), (PAGE,)])
async def test_a_page_that_was_not_allowed_is_refused_and_told_nothing(
    browser: Browser, allowed: tuple[str, ...]
) -> None:
    bench = make()
    async with (
        bench.server.serving(HERE, allowed_origins=[browser.origin(name) for name in allowed]) as serving,
        client_at(browser, STRANGER, serving.url) as client,
    ):
        assert await client.ask("POST", *modern("note")) == {"error": "TypeError"}
        assert await client.page.statuses(1) == [403]
        for kind in ("text/plain", "application/x-www-form-urlencoded"):
            # No preflight comes before these.
            assert await client.ask("POST", {"Content-Type": kind}, modern("note")[1]) == {"error": "TypeError"}
        assert await client.ask("GET", {}) == {"error": "TypeError"}
        assert await client.page.statuses(4) == [403] * 4
        assert client.page.shared == []
        assert bench.events == []


async def test_another_page_of_this_machine_may_ask_only_what_needs_no_leave_until_it_is_allowed(
    browser: Browser,
) -> None:
    bench = make()
    local = browser.origin("localhost")
    async with bench.server.serving(HERE) as serving, client_at(browser, local, serving.url) as client:
        assert await client.ask("POST", *modern("note")) == {"error": "TypeError"}
        assert client.page.shared == []
        assert bench.events == []
    async with (
        bench.server.serving(HERE, allowed_origins=[local]) as serving,
        client_at(browser, local, serving.url) as client,
    ):
        assert text_of(await client.ask("POST", *modern("note"))) == "noted"


@pytest.mark.parametrize("origins", [(), ("*",)])
async def test_a_name_that_was_bound_to_this_machine_anew_is_refused(
    browser: Browser, origins: tuple[str, ...]
) -> None:
    bench = make()
    async with bench.server.serving(HERE, allowed_origins=origins, sse=True, routes={"/": shown}) as serving:
        where = str(serving.url).replace("127.0.0.1", "evil.test")  # the page is of the same origin as the server
        async with client_at(browser, where.removesuffix("mcp"), where) as client:
            headers, message = modern("note")
            answer = await client.ask("POST", headers, message)
            assert answer["status"] == 403
            assert "allowed_hosts" in answer["text"]
            client.url = "/sse"
            assert (await client.ask("GET", {"Accept": "text/event-stream"}))["status"] == 403
            assert bench.events == []


# ------------------------------------------------------------------ WebSockets


SOCKET = """
given => new Promise(resolve => {
    const socket = new WebSocket(given.url, given.protocols), heard = [];
    socket.onopen = () => socket.send(JSON.stringify(given.message));
    socket.onmessage = event => { heard.push(JSON.parse(event.data)); socket.close(1000); };
    socket.onclose = event => resolve({heard, code: event.code, protocol: socket.protocol});
})
"""


async def spoken(client: Client, *protocols: str) -> tuple[int, str, list[Any]]:
    """Open a WebSocket, call a tool, and close it; return the code, the protocol and what was heard."""
    url = client.url.replace("http://", "ws://")
    found = await client.page.run(SOCKET, url=url, protocols=[*protocols], message=modern("note")[1])
    return found["code"], found["protocol"], [each["result"]["content"][0]["text"] for each in found["heard"]]


async def test_a_page_that_was_allowed_and_the_server_s_own_open_websockets(browser: Browser) -> None:
    async with make().server.serving(HERE, allowed_origins=[browser.origin(PAGE)], routes={"/": shown}) as serving:
        for where in (PAGE, str(serving.url).removesuffix("mcp")):
            async with client_at(browser, where, serving.url) as client:
                assert await spoken(client, "mcp") == (1000, "mcp", ["noted"])
                assert await spoken(client) == (1000, "", ["noted"])
                assert await spoken(client, "other") == (1006, "", [])


async def test_other_pages_open_none(browser: Browser) -> None:
    bench = make()
    async with bench.server.serving(HERE, allowed_origins=[browser.origin(PAGE)], routes={"/": shown}) as serving:
        again = str(serving.url).replace("127.0.0.1", "evil.test")  # bound to this machine anew
        for where, url in (
            (STRANGER, str(serving.url)),
            (browser.origin("localhost"), str(serving.url)),
            (again.removesuffix("mcp"), again),
        ):
            async with client_at(browser, where, url) as client:
                assert await spoken(client, "mcp") == (1006, "", [])
        assert bench.events == []


# ------------------------------------------------------------------ HTTP+SSE


OLD = """
given => new Promise(resolve => {
    const source = new EventSource(given.url), heard = [];
    const over = () => { source.close(); resolve(heard); };
    source.onerror = over;
    source.addEventListener("endpoint", async event => {
        const endpoint = new URL(event.data, given.url);
        const post = body => fetch(endpoint, {
            method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)
        });
        source.onmessage = event => {
            heard.push(JSON.parse(event.data));
            given.messages.length ? post(given.messages.shift()) : over();
        };
        if ((await post(given.messages.shift())).status !== 202) over();
    });
})
"""


@pytest.mark.parametrize(("where", "allowed"), [(PAGE, True), (STRANGER, False)])
async def test_an_event_source_is_served_across_origins_where_it_was_allowed(
    browser: Browser, where: str, allowed: bool
) -> None:
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening("2024-11-05")},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}},
    ]
    bench = make()
    async with (
        bench.server.serving(HERE, allowed_origins=[browser.origin(PAGE)], sse=True) as serving,
        client_at(browser, where, serving.url) as client,
    ):
        url = str(serving.url).replace("/mcp", "/sse")
        found = await client.page.run(OLD, url=url, messages=messages)
        if allowed:
            assert [each["id"] for each in found] == [1, 2]
        else:
            assert found == []
            assert await client.page.statuses(1) == [403]
