"""Every kind of type from client to function and back, on revisions that differ in what a result may be."""

from __future__ import annotations

from typing import Any

import pytest

from modelwire import Client, Server
from tests.server.kinds import KINDS


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"])
async def test_a_value_reaches_the_function_and_comes_back_unchanged(revision: str) -> None:
    server = Server("kinds", version="1")
    for name, (annotation, *_) in KINDS.items():

        def function(v: Any) -> Any:
            return v

        function.__annotations__ = {"v": annotation, "return": annotation}
        server.tool(name=name.replace(" ", "_"), inline=True)(function)

    async with Client(server, revision=revision) as client:
        for name, (annotation, value, plain) in KINDS.items():
            found = await client.call(name.replace(" ", "_"), {"v": plain}, returns=annotation)

            assert found == value, name
            assert type(found) is type(value), name
