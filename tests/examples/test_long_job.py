"""`examples/long_job.py`, on every revision: the answer comes at once, and the result is told of."""

from __future__ import annotations

import pytest

from modelwire import Client, ResourceNotFound, ResourceUpdated, types
from tests import spec
from tests.examples.programs import fresh_module


@pytest.mark.parametrize("revision", spec.REVISION_NAMES)
async def test_the_result_is_told_of_to_whoever_follows_the_link(revision: str) -> None:
    server = fresh_module("long_job").server
    async with Client(server, revision=revision) as client:
        result = await client.call_tool("count_words", {"text": "three plain words"})
        (link,) = result.content
        uri = link.uri if isinstance(link, types.ResourceLink) else "none"
        async with client.listen(uris=["job://1"]) as events:
            text = await _text(client, "job://1")
            if text == "still counting":
                assert await anext(events) == ResourceUpdated("job://1")
            assert await _text(client, "job://1") == "3 words"
        if revision >= "2025-06-18":
            assert uri == "job://1"
        with pytest.raises(ResourceNotFound):
            await client.read_resource("job://7")


async def _text(client: Client, uri: str) -> str:
    [part] = (await client.read_resource(uri)).contents
    assert isinstance(part, types.TextResourceContents)
    return part.text


async def test_jobs_that_still_run_end_with_the_server() -> None:
    server = fresh_module("long_job").server
    async with Client(server) as client:
        await client.call_tool("count_words", {"text": "word " * 10_000})
