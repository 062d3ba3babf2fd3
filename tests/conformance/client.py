"""The client that the official conformance suite starts, once for each scenario, written as a user would.

``python -m tests.conformance.client URL`` does what the scenario in ``MCP_CONFORMANCE_SCENARIO`` wants done. Names and
arguments are the suite's own. The client finds out for itself which revision to speak, where that can be the one that
is to be tested; no other is accepted. The suite looks at what the client sends; what it makes of the answers is looked
at here.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from modelwire import Client, FormQuestion, MethodNotFound, SampleQuestion
from modelwire.protocol.revisions import LATEST, LATEST_HANDSHAKE

FOUND_OUT = (LATEST_HANDSHAKE.name, LATEST.name)
"""The revisions that a client speaks by itself."""
DONE = "did all that the scenario wants"
"""What is said at the end; the suite lets some scenarios pass whose client has crashed."""
Scenario: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(name: str) -> Callable[[Scenario], Scenario]:
    """Name the scenario that a function does."""

    def named(function: Scenario) -> Scenario:
        SCENARIOS[name] = function
        return function

    return named


@asynccontextmanager
async def connected(**settings: Any) -> AsyncGenerator[Client]:
    """Connect to the suite's server, on the revision that is to be tested."""
    wanted = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    revision = None if wanted in FOUND_OUT else wanted
    async with Client(sys.argv[-1], revision=revision, timeout=15, **settings) as client:
        expect(client.revision.name, wanted)
        yield client


def expect(found: Any, wanted: Any) -> None:
    """Say what is wrong where something else was found than is wanted."""
    if found != wanted:
        raise AssertionError(f"this was to be {wanted!r}, and is {found!r}")


def as_it_stands(question: FormQuestion) -> bool:
    """Send a form with its defaults."""
    return bool(question.fields)


# ------------------------------------------------------------------ every revision


@scenario("initialize")
async def initialize() -> None:
    """Connect, and list what there is."""
    async with connected() as client:
        expect(await client.list_tools(), [])


@scenario("tools_call")
async def tools_call() -> None:
    """Call a tool with two numbers."""
    async with connected() as client:
        expect([tool.name for tool in await client.list_tools()], ["add_numbers"])
        expect(await client.call("add_numbers", {"a": 2, "b": 3.5}, returns=str), "The sum of 2 and 3.5 is 5.5")


@scenario("json-schema-2020-12-preservation")
async def json_schema_2020_12() -> None:
    """Hand a schema back as it came."""
    async with connected() as client:
        schemas = {tool.name: tool.input_schema for tool in await client.list_tools()}
        schema = schemas["json_schema_2020_12_tool"]
        expect(await client.call("json_schema_echo", {"schema": schema}, returns=str), "echoed")


# ------------------------------------------------------------------ handshake revisions


@scenario("elicitation-sep1034-client-defaults")
async def elicitation_defaults() -> None:
    """Be asked to fill in a form, and take it as it stands."""
    async with connected(on_elicit=as_it_stands) as client:
        answer = await client.call("test_client_elicitation_defaults", returns=str)
        expect(answer.partition(":")[0], "Elicitation completed")


@scenario("sse-retry")
async def sse_retry() -> None:
    """Call a tool whose stream ends before its answer."""
    async with connected() as client:
        expect([tool.name for tool in await client.list_tools()], ["test_reconnection"])
        answer = await client.call("test_reconnection", returns=str)
        expect(answer, "Reconnection test completed successfully")


# ------------------------------------------------------------------ 2026-07-28


@scenario("request-metadata")
async def request_metadata() -> None:
    """Be told to take another revision, by a server that every capability is declared to."""

    def write(question: SampleQuestion) -> str:
        return f"An answer to {len(question.messages)} messages."

    async with connected(on_elicit=as_it_stands, on_sample=write, roots=[os.getcwd()]) as client:
        await client.list_tools()
        expect((await client.call_tool("add_numbers", {"a": 1, "b": 2})).content, [])


@scenario("sep-2322-client-request-state")
async def request_state() -> None:
    """Be asked in the middle of calls, and meanwhile make another."""

    async def confirm(question: FormQuestion) -> dict[str, bool]:
        expect(await client.call("test_mrtr_unrelated", returns=str), "unrelated-ok")
        return {"confirmed": True}

    async with connected(on_elicit=confirm) as client:
        expect(len(await client.list_tools()), 4)
        calls = ("test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_no_result_type")
        answers = await asyncio.gather(*(client.call(name, returns=str) for name in calls))
        expect(answers, ["echo-state-ok", "no-state-ok", "no-result-type-test-ok"])


@scenario("http-standard-headers")
async def standard_headers() -> None:
    """Send one request of every kind."""
    async with connected() as client:
        for tool in await client.list_tools():
            expect(await client.call(tool.name, returns=str), "Headers test completed")
        for resource in await client.list_resources():
            expect((await client.read_resource(resource.uri)).contents, [])
        for prompt in await client.list_prompts():
            expect((await client.get_prompt(prompt.name)).messages, [])


@scenario("http-custom-headers")
async def custom_headers() -> None:
    """Make the calls that the suite wants made, of tools that want arguments in headers."""
    async with connected() as client:
        await client.list_tools()
        for call in json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]:
            answer = await client.call(call["name"], call["arguments"], returns=str)
            expect(answer, "Custom headers test completed")


@scenario("http-invalid-tool-headers")
async def invalid_tool_headers() -> None:
    """Call every tool that is offered, whatever it takes."""
    async with connected() as client:
        for tool in await client.list_tools():
            arguments = dict.fromkeys(tool.input_schema.get("required", []), "something")
            expect(await client.call(tool.name, arguments, returns=str), "Tool call received")


@scenario("json-schema-ref-no-deref")
async def no_dereferencing() -> None:
    """List a tool whose schema refers to the network, and call it, although the suite has none to be called."""
    async with connected() as client:
        expect([tool.name for tool in await client.list_tools()], ["lookup_user"])
        try:
            await client.call_tool("lookup_user", {"id": "somebody"})
        except MethodNotFound:
            return
        raise AssertionError("the suite can call tools here; look at the answer")


# ------------------------------------------------------------------ extensions


@scenario("sep-2640-client-no-prefetch")
async def no_prefetch() -> None:
    """List skills, and read none."""
    async with connected() as client:
        listed = await client.request("skills/list")
        expect([skill["uri"] for skill in listed["skills"]], ["skill://pdf-processing/SKILL.md"])


def main() -> None:
    """Do the scenario, and say so once everything is closed."""
    asyncio.run(SCENARIOS[os.environ["MCP_CONFORMANCE_SCENARIO"]]())
    sys.stdout.write(f"{DONE}\n")


if __name__ == "__main__":
    main()
