"""What the tests of the examples need: the programs, a fresh copy of one as a module, and a record of every frame.

It starts nothing by itself.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from modelwire import Client, Observer
from tests import spec

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples"
TIME_SERVER = [sys.executable, str(EXAMPLES / "time_server.py")]
LOG = "file:///internal/server_log.txt"

# What tutorials teach and no revision has; sent only when asked for with polite_shutdown and announce_lists.
TOLERATED = {
    ("client", "shutdown"), ("client", "exit"),
    ("server", "tools/list"), ("server", "resources/list"), ("server", "notifications/root"),
}  # fmt: skip


def fresh_module(name: str) -> ModuleType:
    """Import an example anew, so that nothing of an earlier test is in it."""
    found = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module  # where the annotations of its classes are looked up
    found.loader.exec_module(module)
    return module


class Record(Observer):
    """Keeps every frame that a client sent and received."""

    def __init__(self) -> None:
        self.messages: list[tuple[Literal["client", "server"], dict[str, Any]]] = []

    def frame(self, direction: Literal["in", "out"], frame: bytes) -> None:
        self.messages.append(("server" if direction == "in" else "client", json.loads(frame)))

    def methods(self, sender: Literal["client", "server"]) -> list[str]:
        """The methods of the requests and notifications that one side sent, in order."""
        return [message["method"] for who, message in self.messages if who == sender and "method" in message]

    def faults(self, revision: str) -> list[str]:
        """What the official schema of the revision finds wrong, one line each."""
        asked: dict[Any, str] = {}
        found: list[str] = []
        for sender, message in self.messages:
            method = message.get("method")
            if (sender, method) in TOLERATED:
                assert message["jsonrpc"] == "2.0"
            else:
                found += spec.validate_message(revision, sender, message, asked.get(message.get("id")))
            if method is not None and "id" in message:
                asked[message["id"]] = method
        return found


@asynccontextmanager
async def time_server(
    revision: str, *arguments: str, record: Record | None = None, **options: Any
) -> AsyncIterator[Client]:
    """A client of the time server, over real stdio; at the end every frame is held against the official schema.

    ``echo`` does not appear during a test, unless it says when.
    """
    record = record or Record()
    command = [*TIME_SERVER, *(arguments or ("--echo-after", "600"))]
    async with Client(command, revision=revision, observers=[record], **options) as client:
        yield client
    assert client.exit_code == 0
    assert record.messages
    if spec.ABSENT is None:
        assert record.faults(revision) == []
