"""`examples/hotel.py`: the same lines ask every client, over every transport; elsewhere they go on or are refused."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from modelwire import Client, FormQuestion, InvalidParams, types
from tests import spec
from tests.examples.programs import EXAMPLES, fresh_module

HOTEL = str(EXAMPLES / "hotel.py")
ARGUMENTS = {"hotel": "Ritz", "nights": 2}
MODERN = spec.REVISION_NAMES[-1]


def fill_in(question: FormQuestion) -> Any:
    return {"count": 3, "beds": "two small"} if "How many" in question.message else True


def write(request: types.CreateMessageRequestParams) -> str:
    return "Welcome!"


CLIENT: dict[str, Any] = {
    "on_elicit": fill_in,
    "on_sample": write,
    "roots": [types.Root("file:///trips", name="trips")],
}
BOOKED = "Reservation 1: 3 for 2 nights, two small with breakfast. Welcome! (kept in trips)"
UNASKED = "Reservation 1: 1 for 2 nights, one large. Welcome! (kept in trips)"


@contextlib.asynccontextmanager
async def client_over(transport: str, revision: str, **options: Any) -> AsyncIterator[tuple[Client, Any]]:
    """A client of the hotel, and the module where it runs in this process."""
    given = {**CLIENT, **options}
    if transport == "stdio":
        async with Client([sys.executable, HOTEL], revision=revision, **given) as client:
            yield client, None
        return
    module = fresh_module("hotel")
    if transport == "memory":
        async with Client(module.server, revision=revision, **given) as client:
            yield client, module
        return
    async with (
        module.server.serving("tcp://127.0.0.1:0") as serving,
        Client(serving.url, revision=revision, **given) as client,
    ):
        yield client, module


@pytest.mark.parametrize("transport", ["memory", "stdio", "tcp"])
@pytest.mark.parametrize("revision", spec.REVISION_NAMES)
async def test_it_asks_twice_has_a_line_written_and_lists_roots_where_the_revision_has_it(
    revision: str, transport: str
) -> None:
    async with client_over(transport, revision) as (client, module):
        assert await client.call("book", ARGUMENTS) == (BOOKED if revision >= "2025-06-18" else UNASKED)
    if module is not None:
        assert module.reserved == ["Ritz, 2"]


async def _asked(client: Client) -> types.InputRequiredResult:
    result = await client.call_tool("book", ARGUMENTS, rounds=False)
    assert isinstance(result, types.InputRequiredResult)
    return result


def _answers(asked: types.InputRequiredResult) -> dict[str, Any]:
    return {key: types.ElicitResult("accept", {"count": 3, "beds": "two small"}) for key in asked.input_requests or {}}


@pytest.mark.parametrize(
    ("keys", "there"),
    [("a" * 32, True), ("b" * 32 + "," + "a" * 32, True), ("c" * 32, False), ("", False)],
    ids=["the same keys", "a newer key before", "other keys", "no keys"],
)
async def test_another_process_goes_on_where_it_has_the_keys(
    keys: str, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOTEL_STATE_KEYS", "a" * 32)
    async with client_over("memory", MODERN) as (client, first):
        asked = await _asked(client)
    assert first.reserved == ["Ritz, 2"]
    monkeypatch.setenv("HOTEL_STATE_KEYS", keys)
    command = [sys.executable, HOTEL]
    async with Client(command, revision=MODERN, env={"HOTEL_STATE_KEYS": keys}, **CLIENT) as client:
        going_on = client.call_tool(
            "book", ARGUMENTS, input_responses=_answers(asked), request_state=asked.request_state
        )
        if there:
            result = await going_on
            # The reservation was made by the first process, and is not made again.
            assert result.content == [types.TextContent(BOOKED)]
        else:
            with pytest.raises(InvalidParams, match="start the call again"):
                await going_on
