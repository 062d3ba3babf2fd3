"""The least that answers calls of tools: reads a line, decodes it, calls the function, writes the answer, flushes.

It has no handshake, no errors and no second request in flight: what the cost of a server is held against. The request
is decoded into typed structs, which nothing else that msgspec offers beats; what the arguments are is the function's
matter, since another one has others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct


class Params(Struct):
    name: str
    arguments: dict[str, Any]


class Request(Struct):
    id: int | str
    method: str
    params: Params


def add(a: int, b: int) -> int:
    return a + b


TOOLS: dict[str, Callable[..., int]] = {"add": add}


def main() -> None:
    decode = msgspec.json.Decoder(Request).decode
    encode = msgspec.json.Encoder().encode
    stdout = sys.stdout.buffer
    for line in sys.stdin.buffer:
        request = decode(line)
        if request.method != "tools/call":
            raise SystemExit(f"only tools/call is known here, not {request.method}")
        value = TOOLS[request.params.name](**request.params.arguments)
        result = {"content": [{"type": "text", "text": str(value)}], "structuredContent": {"result": value}}
        stdout.write(encode({"jsonrpc": "2.0", "id": request.id, "result": result}) + b"\n")
        stdout.flush()


if __name__ == "__main__":
    main()
