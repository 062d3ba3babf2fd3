"""A modelwire client of the npm server "everything", which shows each feature of 2025-11-25 once (SDK 1.x)."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from typing import Any

import pytest

from modelwire import (
    Client,
    FormQuestion,
    InvalidParams,
    PeerError,
    Reply,
    ResourcesChanged,
    ResourceUpdated,
    SampleQuestion,
    ToolError,
    UrlElicitationNeeded,
    UrlQuestion,
)
from modelwire.protocol import types as t
from tests.interop.peers import LEGACY, PATIENCE, clients_of, connected, needs_node_peers, node_server, shared_loop

pytestmark = [needs_node_peers, shared_loop]
SERVER = node_server("everything")
client = clients_of(SERVER, None, "2024-11-05")
TEXT = "demo://resource/dynamic/text/{resourceId}"
BLOB = "demo://resource/dynamic/blob/{resourceId}"


async def test_a_server_of_handshake_revisions_is_found_out() -> None:
    async with connected(SERVER) as client:
        assert client.revision.name == LEGACY
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.title) == (
            "mcp-servers/everything",
            "Everything Reference Server",
        )
        assert client.instructions is not None
        assert client.instructions.startswith("# Everything Server")


async def test_the_server_sees_a_minimal_environment(client: Client) -> None:
    environment = await client.call("get-env", returns=dict[str, str])
    assert "PATH" in environment
    assert not [name for name in environment if name.startswith(("PYTEST", "PYTHON", "VIRTUAL_ENV"))]


async def test_every_kind_of_content_arrives(client: Client) -> None:
    assert await client.call("echo", {"message": "Grüße 😀"}) == "Echo: Grüße 😀"
    assert await client.call("get-sum", {"a": 1, "b": 2.5}) == "The sum of 1 and 2.5 is 3.5."

    annotated = (
        await client.call_tool("get-annotated-message", {"messageType": "error", "includeImage": True})
    ).content
    assert [block.annotations.priority for block in annotated] == [1.0, 0.5]
    assert annotated[0].annotations.audience == ["user", "assistant"]

    before, image, after = (await client.call_tool("get-tiny-image")).content
    assert isinstance(image, t.ImageContent)
    assert base64.b64decode(image.data).startswith(b"\x89PNG")
    assert before.text.startswith("Here's the image")
    assert after.text.startswith("The image above")

    _, blob, _ = (await client.call_tool("get-resource-reference", {"resourceType": "Blob", "resourceId": 7})).content
    assert base64.b64decode(blob.resource.blob).startswith(b"Resource 7:")

    # Links are older than 2025-06-18 in this server, which knows nothing of what a revision lacks.
    _, *links = (await client.call_tool("get-resource-links", {"count": 3})).content
    assert [type(link) for link in links] == [t.ResourceLink] * 3
    assert links[1].uri == TEXT.format(resourceId=2)


async def test_structured_content_becomes_an_object(client: Client) -> None:
    weather = await client.call("get-structured-content", {"location": "Chicago"}, returns=dict[str, Any])
    assert weather == {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}


async def test_a_file_that_a_tool_made_can_be_read(client: Client) -> None:
    arguments = {"name": "hello.gz", "data": "data:text/plain,hello"}
    [link] = (await client.call_tool("gzip-file-as-resource", {**arguments, "outputType": "resourceLink"})).content
    [content] = (await client.read_resource(link.uri)).contents
    assert gzip.decompress(base64.b64decode(content.blob)) == b"hello"
    assert link.uri in [resource.uri for resource in await client.list_resources()]


async def test_resources_and_templates_are_listed_and_read(client: Client) -> None:
    resources = {resource.uri: resource for resource in await client.list_resources()}
    features = "demo://resource/static/document/features.md"
    assert resources[features].mime_type == "text/markdown"
    assert (await client.read_resource(features)).contents[0].text.startswith("# Everything Server - Features")
    assert [template.uri_template for template in await client.list_resource_templates()] == [TEXT, BLOB]
    assert (await client.read_resource(TEXT.format(resourceId=3))).contents[0].text.startswith("Resource 3:")


async def test_prompts_are_listed_and_written_out(client: Client) -> None:
    prompts = {prompt.name: prompt for prompt in await client.list_prompts()}
    assert set(prompts) == {"simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"}
    assert [(one.name, one.required) for one in prompts["args-prompt"].arguments or ()] == [
        ("city", True),
        ("state", False),
    ]
    [message] = (await client.get_prompt("args-prompt", {"city": "Oslo", "state": "Viken"})).messages
    assert message.content.text == "What's weather in Oslo, Viken?"
    said, embedded = (await client.get_prompt("resource-prompt", {"resourceType": "Text", "resourceId": 3})).messages
    assert "id: 3" in said.content.text
    assert embedded.content.resource.uri == TEXT.format(resourceId=3)


async def test_arguments_are_completed(client: Client) -> None:
    assert (await client.complete("completable-prompt", "department", "E")).values == ["Engineering"]
    people = await client.complete("completable-prompt", "name", arguments={"department": "Engineering"})
    # The arguments given so far are a member since 2025-06-18; before it they are not sent.
    assert people.values == (["Alice", "Bob", "Charlie"] if client.revision.name == LEGACY else [])
    assert (await client.complete(TEXT, "resourceId", "12")).values == ["12"]


async def test_progress_is_heard_step_by_step_before_the_result(client: Client) -> None:
    steps: list[tuple[float, float | None]] = []
    said = await client.call(
        "trigger-long-running-operation",
        {"duration": 0.1, "steps": 4},
        on_progress=lambda progress, total, _: steps.append((progress, total)),
    )
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert said.startswith("Long running operation completed")


async def test_refusals_come_as_this_server_words_them(client: Client) -> None:
    # SDK 1.x answers an unknown tool and wrong arguments alike with a result that is an error.
    with pytest.raises(ToolError, match="Tool dance not found"):
        await client.call("dance")
    with pytest.raises(ToolError, match="expected number, received string at a"):
        await client.call("get-sum", {"a": "x", "b": 1})
    # It has no data.uri on an unknown resource, by which one could tell it from wrong parameters.
    with pytest.raises(InvalidParams, match="demo://nowhere not found"):
        await client.read_resource("demo://nowhere")
    with pytest.raises(PeerError, match="Unknown resource"):
        await client.read_resource(TEXT.format(resourceId="three"))
    with pytest.raises(InvalidParams, match="Prompt dance not found"):
        await client.get_prompt("dance")
    with pytest.raises(InvalidParams, match="at city"):
        await client.get_prompt("args-prompt")
    await client.ping()


async def test_log_messages_are_heard_from_the_level_that_was_chosen() -> None:
    heard: asyncio.Queue[t.LoggingMessageNotificationParams] = asyncio.Queue()
    async with connected(SERVER, on_log=heard.put_nowait) as client:
        await client.set_log_level("debug")
        await client.call("toggle-simulated-logging")  # one at once, of a level drawn by lot
        async with asyncio.timeout(PATIENCE):
            message = await heard.get()
        assert message.level in t.LOGGING_LEVELS
        assert "level" in message.data


async def test_changes_of_resources_and_lists_are_heard() -> None:
    uri = TEXT.format(resourceId=5)
    async with connected(SERVER) as client, client.listen(resources=True, uris=[uri]) as events:
        assert events.honoured.resource_subscriptions == [uri]
        async with asyncio.timeout(PATIENCE):
            await client.call("toggle-subscriber-updates")
            assert await anext(events) == ResourceUpdated(uri)
            await client.call("gzip-file-as-resource", {"data": "data:text/plain,hello"})
            assert await anext(events) == ResourcesChanged()


async def test_what_the_server_asks_is_answered() -> None:
    forms: list[FormQuestion] = []
    pages: list[UrlQuestion] = []
    samples: list[SampleQuestion] = []
    roots = ["/home/ada"]

    def fill_in(question: FormQuestion) -> dict[str, Any]:
        forms.append(question)
        return {"name": "Ada", "check": True, "integer": 7}

    def consent(question: UrlQuestion) -> Reply:
        pages.append(question)
        return Reply.DONE

    async def sample(question: SampleQuestion) -> t.CreateMessageResult:
        samples.append(question)
        return t.CreateMessageResult("assistant", t.TextContent("42"), "deep-thought")

    answering: dict[str, Any] = {"on_elicit": fill_in, "on_elicit_url": consent, "on_sample": sample}
    async with connected(SERVER, roots=lambda: roots, **answering) as client:
        answer = await client.call("trigger-sampling-request", {"prompt": "6 times 7", "maxTokens": 5})
        assert json.loads(answer.partition("\n")[2])["model"] == "deep-thought"
        assert samples[0].max_tokens == 5

        [done, inputs, _] = (await client.call_tool("trigger-elicitation-request")).content
        assert "User provided the requested information" in done.text
        assert "- Name: Ada" in inputs.text
        # It has a field of each kind, and each way to write choices; a default stands where nothing is filled in.
        assert {field.kind for field in forms[0].fields.values()} == {
            "text", "number", "integer", "boolean", "choice", "choices",
        }  # fmt: skip
        assert all(field.choices for field in forms[0].fields.values() if field.kind in ("choice", "choices"))
        assert {name: value for name, value in forms[0].defaults.items() if name not in ("name", "integer", "check")}

        link = {"url": "https://example.org/sign", "elicitationId": "e-1"}
        [done, _] = (await client.call_tool("trigger-url-elicitation", link)).content
        assert "User completed the URL elicitation flow" in done.text
        assert pages[0].url == "https://example.org/sign"
        # It refuses once, for another page; the call that is sent again then asks for its own.
        [done, _] = (await client.call_tool("trigger-url-elicitation", {**link, "errorPath": True})).content
        assert "User completed the URL elicitation flow" in done.text
        assert [page.needed for page in pages] == [False, True, False]

        assert "file:///home/ada" in await client.call("get-roots-list")
        roots[:] = ["/home/grace"]
        await client.roots_changed()
        await client.ping()
        async with asyncio.timeout(PATIENCE):
            while "file:///home/grace" not in await client.call("get-roots-list"):
                await asyncio.sleep(0.05)


async def test_a_page_that_nobody_can_open_is_an_error_that_names_it() -> None:
    link = {"url": "https://example.org/sign", "elicitationId": "e-1", "errorPath": True}
    declared = t.ClientCapabilities(elicitation=t.ElicitationCapability(url={}))
    async with connected(SERVER, capabilities=declared) as client:
        with pytest.raises(UrlElicitationNeeded) as caught:
            await client.call("trigger-url-elicitation", link)
        assert caught.value.elicitations[0]["url"] == "https://modelcontextprotocol.io"


async def test_tasks_of_2025_11_25_can_be_had_by_requests_of_ones_own() -> None:
    call = {"name": "simulate-research-query", "arguments": {"topic": "tea"}}
    async with connected(SERVER) as client:
        with pytest.raises(ToolError, match="requires task augmentation"):
            await client.call(call["name"], call["arguments"])
        task = (await client.request("tools/call", {**call, "task": {"ttl": 60_000}}))["task"]
        assert task["status"] == "working"
        assert [one["taskId"] for one in (await client.request("tasks/list"))["tasks"]] == [task["taskId"]]
        assert (await client.request("tasks/cancel", {"taskId": task["taskId"]}))["status"] == "cancelled"
