"""What each Python client does with the server of `tests/interop/server.py`, and the JSON of what it saw.

The plan comes on stdin, see `seen_by` in `tests/interop/peers.py`. A client program gives an `Adapter` to its library;
everything else is the same for all of them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import traceback
from typing import Any, Protocol

from mcp.shared.exceptions import MCPError

PATIENCE = 20


class Adapter(Protocol):
    """A connected client."""

    heard: Heard

    def about(self) -> dict[str, Any]: ...
    async def page(self, what: str, cursor: str | None) -> Any: ...
    async def call(self, name: str, arguments: dict[str, Any], **options: Any) -> Any: ...
    async def read(self, uri: str) -> Any: ...
    async def prompt(self, name: str, arguments: dict[str, str]) -> Any: ...
    async def complete(self, prompt: str, argument: dict[str, str], context: dict[str, str] | None) -> list[str]: ...
    def listening(self, uri: str) -> Any: ...


class Heard:
    """What came unasked."""

    def __init__(self) -> None:
        self.logs: list[Any] = []
        self.changes: list[str] = []
        self.changed = asyncio.Event()

    async def log(self, params: Any) -> None:
        self.logs.append([params.level, params.logger, params.data])

    async def message(self, message: Any) -> None:
        """Take a notification; those that arrive on a subscription come here as well."""
        method = getattr(message, "method", None)
        if method == "notifications/tools/list_changed":
            self._note("tools")
        elif method == "notifications/resources/updated":
            self._note(str(message.params.uri))

    def _note(self, what: str) -> None:
        self.changes.append(what)
        if len(set(self.changes)) == 2:
            self.changed.set()


async def every(adapter: Adapter, what: str) -> tuple[list[Any], int]:
    """Follow the pages of a list; return the items, and how many pages there were."""
    items: list[Any] = []
    cursor, pages = None, 0
    while pages == 0 or cursor:
        page = await adapter.page(what, cursor)
        items += getattr(page, what)
        cursor, pages = page.next_cursor, pages + 1
    return items, pages


def content(block: Any) -> Any:
    return block.model_dump(mode="json", by_alias=True, exclude_none=True)


async def called(adapter: Adapter, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool; what the client refuses in the result is told as a fault."""
    try:
        result = await adapter.call(name, arguments)
    except Exception:
        return {"fault": traceback.format_exc()}
    return {
        "content": [content(block) for block in result.content],
        "structured": result.structured_content,
        "error": result.is_error,
    }


async def refused(request: Any) -> list[Any]:
    try:
        return ["accepted", str(await request)]
    except MCPError as error:
        return [error.error.code, error.error.message, error.error.data]


async def lists(adapter: Adapter) -> dict[str, Any]:
    tools, tool_pages = await every(adapter, "tools")
    resources, _ = await every(adapter, "resources")
    templates, _ = await every(adapter, "resource_templates")
    prompts, _ = await every(adapter, "prompts")
    return {
        "tools": [tool.name for tool in tools],
        "tool_pages": tool_pages,
        "resources": {str(resource.uri): resource.mime_type for resource in resources},
        "templates": [template.uri_template for template in templates],
        "prompts": [[one.name, one.title, [[a.name, a.required] for a in one.arguments or ()]] for one in prompts],
    }


async def progressing(adapter: Adapter) -> dict[str, Any]:
    steps: list[Any] = []
    hurried: list[Any] = []
    going_on: list[Any] = []

    async def on_step(progress: float, total: float | None, message: str | None) -> None:
        steps.append([progress, total, message])
        going_on.append(asyncio.create_task(adapter.call("go_on", {})))

    async def on_hurry(progress: float, total: float | None, message: str | None) -> None:
        hurried.append(progress)

    adapter.heard.logs.clear()
    done = await adapter.call("steps", {"count": 3}, progress=on_step)
    await asyncio.gather(*going_on)
    await adapter.call("hurry", {}, progress=on_hurry)
    return {"progress": steps, "hurried": hurried, "logs": adapter.heard.logs, "done": done.content[0].text}


async def cancelling(adapter: Adapter) -> Any:
    """Give a call up in the middle, and see how many the server knows to be given up."""
    started = asyncio.Event()

    async def on_progress(*_: Any) -> None:
        started.set()

    call = asyncio.create_task(adapter.call("stall", {}, progress=on_progress))
    async with asyncio.timeout(PATIENCE):
        await started.wait()
        call.cancel()
        await asyncio.wait([call])
        while (count := (await adapter.call("cancelled", {})).content[0].text) == "0":
            pass
    return count


async def changing(adapter: Adapter) -> dict[str, Any]:
    async with adapter.listening("notes://ada"):
        await adapter.call("change", {})
        async with asyncio.timeout(PATIENCE):
            await adapter.heard.changed.wait()
    tools, _ = await every(adapter, "tools")
    return {"changes": sorted(set(adapter.heard.changes)), "new": "new" in [tool.name for tool in tools]}


class Complaints(logging.Handler):
    """What the library warns of: of results that it cannot validate, above all."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


async def walk(adapter: Adapter, plan: dict[str, Any]) -> dict[str, Any]:
    complaints = Complaints()
    for name in ("client", "mcp", "fastmcp"):
        logging.getLogger(name).addHandler(complaints)
    seen = {**adapter.about(), **await lists(adapter), "complaints": complaints.said}
    seen["calls"] = {name: await called(adapter, name, arguments) for name, arguments in plan["calls"].items()}
    if not plan["whole"]:
        return seen
    seen["refused"] = {
        "deny": await refused(adapter.call("deny", {})),
        "unknown tool": await refused(adapter.call("dance", {})),
        "unknown resource": await refused(adapter.read("elsewhere://x")),
        "missing resource": await refused(adapter.read("notes://nobody")),
        "unknown prompt": await refused(adapter.prompt("dance", {})),
        "missing argument": await refused(adapter.prompt("greet", {})),
    }
    seen["read"] = {
        uri: [content(one) for one in (await adapter.read(uri)).contents]
        for uri in ("notes://all", "notes://pixel", "notes://ada")
    }
    [message] = (await adapter.prompt("greet", {"person": "Ada", "tone": "formal"})).messages
    seen["prompt"] = [message.role, message.content.text]
    seen["completed"] = await adapter.complete("greet", {"name": "person", "value": "A"}, None)
    seen["completed rudely"] = await adapter.complete("greet", {"name": "person", "value": "A"}, {"tone": "rude"})
    seen |= await progressing(adapter)
    seen["cancelled"] = await cancelling(adapter)
    seen["booked"] = (await adapter.call("book", {"hotel": "Ritz"})).content[0].text
    return seen | await changing(adapter)


def read_plan() -> dict[str, Any]:
    return json.load(sys.stdin)


def tell(seen: dict[str, Any]) -> None:
    json.dump(seen, sys.stdout)
