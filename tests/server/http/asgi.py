"""An HTTP client in the same process: requests as ASGI scopes, that can be sent in pieces, heard as streams and left.

`Http` holds an application; `Modern` and `Legacy` speak a revision through it. Every wait has an end, and when the
block ends the application is closed and nothing may be left of what it began.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from modelwire import Server
from tests.server.http.events import Event, Reader
from tests.wire import MODERN, PATIENCE, Ledger, dumps, modern_meta, opening

BOTH = "application/json, text/event-stream"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

Given = Mapping[str, str | None] | Iterable[tuple[str, str]]


def _plain(value: str) -> str:
    if value.isascii() and value.isprintable() and value == value.strip():
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


class Exchange:
    """One request and what comes of it. A piece of the body that is None never comes.

    Attributes:
        status: The status, once there is one.
        headers: The headers by lower-case name.
        body: Every byte of the body so far.
        events: Events that came and that nobody has looked at.
        reader: What reads them.
        over: Whether the response is complete.
    """

    def __init__(self, app: Any, scope: dict[str, Any], body: Iterable[bytes | None], ledger: Ledger | None) -> None:
        self._ledger = ledger
        self._pieces = [*body]
        self._arrival = asyncio.Event()
        self._gone = asyncio.Event()
        self.left = False
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.body = b""
        self.events: list[Event] = []
        self.reader = Reader()
        self.over = False
        self.reads = asyncio.Event()
        self.reads.set()
        self.task = asyncio.create_task(app(scope, self._receive, self._send))
        self.task.add_done_callback(lambda _: self._arrival.set())

    # ------------------------------------------------------------------ what the application sees

    async def _receive(self) -> dict[str, Any]:
        if self._pieces and self._pieces[0] is not None:
            piece = self._pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(self._pieces)}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Mapping[str, Any]) -> None:
        await self.reads.wait()
        if self.left:
            raise OSError("the client has gone")
        if message["type"] == "http.response.start":
            assert self.status is None, "a response begins once"
            self.status = message["status"]
            for name, value in message.get("headers", ()):
                assert name == name.lower(), name
                assert name.decode() not in self.headers, f"{name!r} twice"
                self.headers[name.decode()] = value.decode()
        else:
            assert message["type"] == "http.response.body"
            assert self.status is not None
            assert not self.over, "a body ends once"
            data = message.get("body", b"")
            self.body += data
            self.over = not message.get("more_body", False)
            if self.streams:
                for event in self.reader.feed(data):
                    self._note(event.data.encode())
                    self.events.append(event)
            elif self.over:
                if "content-length" in self.headers:
                    assert int(self.headers["content-length"]) == len(self.body)
                self._note(self.body)
        self._arrival.set()

    def _note(self, frame: bytes) -> None:
        if self._ledger is not None and frame:
            self._ledger.received(frame)

    @property
    def streams(self) -> bool:
        """Whether the response is a stream of events."""
        return self.headers.get("content-type") == "text/event-stream"

    # ------------------------------------------------------------------ what a test does

    async def _until(self, met: Any) -> None:
        async with asyncio.timeout(PATIENCE):
            while not met():
                if self.task.done():
                    self.task.result()
                    assert met(), f"the response is over: {self.status} {self.body!r}"
                self._arrival.clear()
                await self._arrival.wait()

    async def started(self) -> int:
        """Wait for the status and return it."""
        await self._until(lambda: self.status is not None)
        assert self.status is not None
        return self.status

    async def event(self) -> Event:
        """Wait for the next event."""
        await self._until(lambda: self.events)
        return self.events.pop(0)

    async def message(self) -> Any:
        """Wait for the next event and return its message."""
        return json.loads((await self.event()).data)

    async def done(self) -> int:
        """Wait until the response is complete and the application has returned; return the status."""
        async with asyncio.timeout(PATIENCE):
            await self.task
        assert self.over
        assert self.status is not None
        return self.status

    async def json(self) -> Any:
        """Wait for the end; return the body, which is JSON."""
        await self.done()
        assert self.headers["content-type"] == "application/json", self.body
        return json.loads(self.body)

    async def answer(self) -> Any:
        """Wait for the end; return the answer, as JSON or as the last event of a stream."""
        await self.done()
        return json.loads(self.events[-1].data) if self.streams else json.loads(self.body)

    async def result(self) -> Any:
        """Wait for the end; return the result."""
        found = await self.answer()
        assert "result" in found, found
        return found["result"]

    async def messages(self) -> list[Any]:
        """Wait for the end; return the messages of all events nobody has looked at."""
        await self.done()
        return [json.loads(event.data) for event in self.events]

    async def leave(self) -> None:
        """Close the connection, and wait until the application has let go of the request."""
        self.left = True
        self._gone.set()
        self.reads.set()
        async with asyncio.timeout(PATIENCE):
            await self.task


class Http:
    """Requests to an application.

    Args:
        app: The application, or what it is mounted in.
        path: Where the endpoint is.
        closes: The application, where it is mounted in another.
        **scope: Members of ASGI's scope.
    """

    def __init__(self, app: Any, path: str = "/mcp", *, closes: Any = None, **scope: Any) -> None:
        self.app = app
        self.closes = app if closes is None else closes
        self.path = path
        self.scope = scope
        self.open: list[Exchange] = []

    def ask(
        self,
        method: str,
        headers: Given = (),
        body: bytes | Iterable[bytes | None] = b"",
        *,
        path: str | None = None,
        ledger: Ledger | None = None,
        **scope: Any,
    ) -> Exchange:
        """Send a request."""
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        found = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": self.path if path is None else path,
            "query_string": b"",
            "root_path": "",
            "headers": [(key.lower().encode(), value.encode("latin-1")) for key, value in pairs if value is not None],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8000),
            **self.scope,
            **scope,
        }
        if not any(key == b"host" for key, _ in found["headers"]):
            found["headers"].insert(0, (b"host", b"127.0.0.1:8000"))
        exchange = Exchange(self.app, found, [body] if isinstance(body, bytes) else body, ledger)
        self.open.append(exchange)
        return exchange

    def post(self, body: Any, headers: Mapping[str, str | None] | None = None, **more: Any) -> Exchange:
        """POST a message, or bytes, with the headers that every client sends."""
        given = {"Content-Type": "application/json", "Accept": BOTH, **(headers or {})}
        data = body if isinstance(body, bytes | list) and _is_bytes(body) else dumps(body)
        return self.ask("POST", given, data, **more)

    async def aclose(self) -> None:
        """Leave every request that is still open, and close the application."""
        for exchange in self.open:
            if not exchange.task.done():
                await exchange.leave()
            exchange.task.result()
        async with asyncio.timeout(PATIENCE):
            await self.closes.aclose()


def _is_bytes(body: Any) -> bool:
    return isinstance(body, bytes) or (bool(body) and isinstance(body[0], bytes))


@asynccontextmanager
async def serving(server: Server, *, scope: Mapping[str, Any] | None = None, **options: Any) -> AsyncIterator[Http]:
    """Serve a server in this process; at the end no task of it may be left."""
    before = asyncio.all_tasks()
    app = server.asgi(**options)
    http = Http(app, options.get("path", "/mcp"), **(scope or {}))
    try:
        yield http
    finally:
        await http.aclose()
    for _ in range(10):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() - before == set()


class Modern:
    """A client of 2026-07-28; every answer is held against the schema."""

    def __init__(self, http: Http, **meta: Any) -> None:
        self.http = http
        self.ledger = Ledger(MODERN)
        self._meta = meta
        self._id = 0

    def message(self, method: str, params: Mapping[str, Any] | None = None, *, id: Any = None) -> dict[str, Any]:
        """Return a request."""
        self._id += 1
        params = {**(params or {})}
        params["_meta"] = {**modern_meta(**self._meta), **params.get("_meta", {})}
        return {"jsonrpc": "2.0", "id": self._id if id is None else id, "method": method, "params": params}

    @staticmethod
    def headers(message: Any) -> dict[str, str]:
        """Return the headers that repeat a message."""
        found = {"MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
        name = NAMED.get(message["method"])
        if name is not None:
            found["Mcp-Name"] = _plain(message["params"][name])
        return found

    def ask(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        *,
        id: Any = None,
        **more: Any,
    ) -> Exchange:
        """Send a request."""
        message = self.message(method, params, id=id)
        self.ledger.sent(dumps(message), valid=not headers)
        given = {**self.headers(message), **(headers or {})}
        return self.http.post(message, given, ledger=self.ledger, **more)

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None, **more: Any) -> Exchange:
        """Call a tool."""
        meta = {"_meta": more.pop("meta")} if "meta" in more else {}
        return self.ask("tools/call", {"name": tool, "arguments": arguments or {}, **meta}, **more)


class Legacy:
    """A client of a handshake revision, in a session; every message is held against the schema."""

    def __init__(self, http: Http, revision: str = "2025-11-25", **scope: Any) -> None:
        self.http = http
        self.revision = revision
        self.ledger = Ledger(revision)
        self.scope = scope
        self.session: str | None = None
        self._id = 0

    async def open(self, **capabilities: Any) -> Legacy:
        """Shake hands."""
        params = opening(self.revision, capabilities=capabilities)
        opened = self.ask("initialize", params)
        result = await opened.result()
        assert result["protocolVersion"] == self.revision
        self.session = opened.headers["mcp-session-id"]
        assert await self.tell("notifications/initialized").done() == 202
        return self

    def headers(self, given: Mapping[str, str | None] | None = None) -> dict[str, str | None]:
        """Return the headers of the session."""
        own: dict[str, str | None] = {}
        if self.session is not None:
            own["Mcp-Session-Id"] = self.session
            if self.revision >= "2025-06-18":
                own["MCP-Protocol-Version"] = self.revision
        return {**own, **(given or {})}

    def post(self, message: Any, headers: Mapping[str, str | None] | None = None, **more: Any) -> Exchange:
        """POST anything in the session."""
        valid = more.pop("valid", True)
        self.ledger.sent(message if isinstance(message, bytes) else dumps(message), valid=valid)
        return self.http.post(message, self.headers(headers), ledger=self.ledger, **self.scope, **more)

    def ask(self, method: str, params: Mapping[str, Any] | None = None, *, id: Any = None, **more: Any) -> Exchange:
        """Send a request."""
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id if id is None else id, "method": method}
        return self.post(message if params is None else {**message, "params": params}, **more)

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None, **more: Any) -> Exchange:
        """Call a tool."""
        meta = {"_meta": more.pop("meta")} if "meta" in more else {}
        return self.ask("tools/call", {"name": tool, "arguments": arguments or {}, **meta}, **more)

    def tell(self, method: str, params: Mapping[str, Any] | None = None, **more: Any) -> Exchange:
        """Send a notification."""
        message = {"jsonrpc": "2.0", "method": method}
        return self.post(message if params is None else {**message, "params": params}, **more)

    def reply(self, id: Any, result: Any) -> Exchange:
        """Answer a request of the server."""
        return self.post({"jsonrpc": "2.0", "id": id, "result": result}, valid=False)

    def get(self, last: str | None = None, headers: Mapping[str, str | None] | None = None) -> Exchange:
        """Open a stream with GET, or take one up again."""
        given = {"Accept": "text/event-stream", "Last-Event-ID": last, **(headers or {})}
        return self.http.ask("GET", self.headers(given), ledger=self.ledger, **self.scope)

    def delete(self) -> Exchange:
        """End the session."""
        return self.http.ask("DELETE", self.headers(), **self.scope)


@asynccontextmanager
async def modern(server: Server, *, meta: Mapping[str, Any] | None = None, **options: Any) -> AsyncIterator[Modern]:
    """Serve a server and speak 2026-07-28 with it; at the end every message must have been right."""
    async with serving(server, **options) as http:
        client = Modern(http, **(meta or {}))
        yield client
    assert not client.ledger.faults, "\n".join(client.ledger.faults)


@asynccontextmanager
async def legacy(
    server: Server, revision: str = "2025-11-25", *, capabilities: Mapping[str, Any] | None = None, **options: Any
) -> AsyncIterator[Legacy]:
    """Serve a server and open a session with it; at the end every message must have been right."""
    async with serving(server, **options) as http:
        client = await Legacy(http, revision).open(**(capabilities or {}))
        yield client
    assert not client.ledger.faults, "\n".join(client.ledger.faults)
