"""A modelwire client of `mcp-server-fetch`: pages of a web server on loopback, and what its robots.txt forbids."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from modelwire import Client, InvalidParams, ToolError
from tests.interop.peers import LEGACY, PYTHON, clients_of, needs_python_peers, python_server, shared_loop

pytestmark = [needs_python_peers, shared_loop]
# Where it finds Node, its library for articles runs `npm install` in the middle of the first call, and what npm prints
# goes onto the wire. So it finds none, and takes the articles out by itself.
client = clients_of(python_server("fetch", "--allow-private-ips"), None, LEGACY, env={"PATH": str(PYTHON.parent)})

PAGES = {
    "/robots.txt": ("text/plain", "User-agent: *\nDisallow: /private\n"),
    "/": (
        "text/html; charset=utf-8",
        "<html><head><title>Tea</title></head><body><article><h1>On tea</h1>"
        "<p>Pour <b>hot</b> water — 90 °C.</p></article></body></html>",
    ),
    "/private/diary": ("text/plain", "dear diary"),
    "/long": ("text/plain", "0123456789" * 10),
}


class Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        kind, text = PAGES.get(self.path, ("text/plain", "there is no such page"))
        self.send_response(200 if self.path in PAGES else 404)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of a web server that runs as long as the tests of this file."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


async def test_one_tool_and_one_prompt_are_offered(client: Client) -> None:
    [tool] = await client.list_tools()
    assert tool.input_schema["properties"]["max_length"] | {"description": ""} == {
        "type": "integer",
        "minimum": 1,
        "maximum": 999999,
        "default": 5000,
        "title": "Max Length",
        "description": "",
    }
    [prompt] = await client.list_prompts()
    assert [(argument.name, argument.required) for argument in prompt.arguments or ()] == [("url", True)]


async def test_a_page_comes_as_markdown_or_as_it_is(client: Client, site: str) -> None:
    text = await client.call("fetch", {"url": f"{site}/"}, returns=str)
    assert text.startswith(f"Contents of {site}/:\n")
    assert text.endswith("# On tea\n\nPour hot water — 90 °C.")
    assert PAGES["/"][1] in await client.call("fetch", {"url": f"{site}/", "raw": True}, returns=str)


async def test_a_long_page_is_read_part_by_part(client: Client, site: str) -> None:
    first = await client.call("fetch", {"url": f"{site}/long", "max_length": 30}, returns=str)
    assert "start_index of 30" in first
    rest = await client.call("fetch", {"url": f"{site}/long", "start_index": 95}, returns=str)
    assert rest.endswith("\n56789")


async def test_robots_txt_keeps_the_tool_out_but_not_the_user(client: Client, site: str) -> None:
    with pytest.raises(ToolError, match=r"(?s)robots\.txt.*autonomous fetching of this page is not allowed"):
        await client.call("fetch", {"url": f"{site}/private/diary"})
    [message] = (await client.get_prompt("fetch", {"url": f"{site}/private/diary"})).messages
    assert message.role == "user"
    assert message.content.text.endswith("dear diary")


async def test_what_cannot_be_fetched_is_a_tool_error(client: Client, site: str) -> None:
    with pytest.raises(ToolError, match="status code 404"):
        await client.call("fetch", {"url": f"{site}/nowhere"})
    with pytest.raises(ToolError, match="max_length"):
        await client.call("fetch", {"url": f"{site}/", "max_length": 0})


async def test_what_is_not_there_is_an_error_of_the_request(client: Client) -> None:
    with pytest.raises(InvalidParams, match="Unknown tool"):
        await client.call("fetch_all", {})
    with pytest.raises(InvalidParams, match="Unknown prompt"):
        await client.get_prompt("fetch_all", {})
    with pytest.raises(InvalidParams, match="URL is required"):
        await client.get_prompt("fetch", {})
