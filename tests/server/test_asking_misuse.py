"""Handlers that ask at odd moments: too late, twice under one key, from another thread. None hangs, none asks twice."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest

from modelwire import ConfigError, Context, Parking, Server
from tests.server.persons import MODERN, Person, accepting, person

ERAS = pytest.mark.parametrize("revision", ["2025-11-25", MODERN])


@dataclasses.dataclass
class Guests:
    count: int


@ERAS
@pytest.mark.parametrize("early", [True, False], ids=["asked before the handler returned", "asked afterwards"])
async def test_a_task_that_outlives_its_handler_is_told_that_nobody_will_answer(revision: str, early: bool) -> None:
    server = Server("s")
    left: list[asyncio.Task[Any]] = []
    returned = asyncio.Event()

    @server.tool(timeout=60)
    async def begin(ctx: Context) -> str:
        async def later() -> Any:
            if not early:
                await returned.wait()
            return await ctx.elicit("Go on?")

        left.append(asyncio.create_task(later()))
        await asyncio.sleep(0)
        return "begun"

    async with person(server, revision, lambda method, params: None) as user:
        pending = await user.begin("tools/call", {"name": "begin", "arguments": {}})
        assert (await pending.result())["content"][0]["text"] == "begun"
        returned.set()
        with pytest.raises(ConfigError, match="is over"):
            await left[0]
        if early and revision != MODERN:
            asked = await user.talk.take(lambda found: found.get("method") == "elicitation/create")
            given_up = await user.talk.take(lambda found: found.get("method") == "notifications/cancelled")
            assert given_up["params"]["requestId"] == asked["id"]


async def test_who_asks_again_after_the_call_was_given_up_is_told_so() -> None:
    server = Server("s", parking=Parking(seconds=0))
    caught: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    @server.tool
    async def stubborn(ctx: Context) -> str:
        try:
            await ctx.elicit("Go on?")
        except asyncio.CancelledError:
            try:
                await ctx.elicit("Really not?")
            except ConfigError as error:
                caught.set_result(error)
        return "never seen"

    async with person(server, MODERN, accepting()) as user:
        await (await user.begin("tools/call", {"name": "stubborn", "arguments": {}})).result()
        assert "is over" in str(await caught)


@ERAS
async def test_two_questions_under_one_key_are_both_asked(revision: str) -> None:
    server = Server("s")

    @server.tool
    async def ask(ctx: Context) -> str:
        first = await ctx.elicit("First?", Guests, key="guests")
        rest = await asyncio.gather(*(ctx.elicit(f"{number}?", Guests, key="guests") for number in (2, 3)))
        return f"{first.count} {rest[0].count} {rest[1].count}"

    async with person(server, revision, accepting(*({"count": number} for number in (1, 2, 3)))) as user:
        assert await user.text("ask") == "1 2 3"


@ERAS
async def test_asking_and_doing_once_take_the_server_s_event_loop(revision: str) -> None:
    server = Server("s")

    @server.tool
    def ask(ctx: Context) -> list[str]:
        said: list[str] = []
        for waits in (ctx.elicit("Go on?"), ctx.once("work", int)):
            with pytest.raises(ConfigError, match="Ask parameters") as caught:
                asyncio.run(waits)
            said.append(str(caught.value))
        return said

    async with person(server, revision, accepting()) as user:
        assert "event loop of its own" in await user.text("ask")


# --------------------------------------------------------------------------------------------------- once


async def test_what_was_done_once_is_kept_also_where_nobody_waited_for_its_end() -> None:
    server = Server("s")
    charges: list[str] = []
    go_on, done = asyncio.Event(), asyncio.Event()

    async def charge() -> int:
        await go_on.wait()
        charges.append("charged")
        done.set()
        return len(charges)

    @server.tool
    async def buy(ctx: Context) -> str:
        waiting = asyncio.create_task(ctx.once("charge", charge))
        await asyncio.sleep(0)
        waiting.cancel()
        go_on.set()
        await done.wait()
        await asyncio.wait([waiting])
        return str(await ctx.once("charge", charge))

    async with person(server, MODERN, accepting()) as user:
        assert await user.text("buy") == "1"
    assert charges == ["charged"]


async def test_a_function_that_raises_what_no_future_can_carry_fails_its_call() -> None:
    server = Server("s")

    def exhausted() -> None:
        next(iter(()))

    @server.tool
    async def ask(ctx: Context) -> str:
        with pytest.raises(RuntimeError, match="raised StopIteration") as caught:
            await ctx.once("work", exhausted)
        return str(caught.value)

    async with person(server, MODERN, accepting()) as user:
        assert "StopIteration" in await user.text("ask")


# --------------------------------------------------------------------------------------------------- later requests


def _inn(**options: Any) -> Server:
    server = Server("inn", **options)

    @server.tool
    async def book(ctx: Context, note: str = "") -> str:
        first = await ctx.elicit("First?", Guests, key="first")
        second, third = await asyncio.gather(
            ctx.elicit("Second?", Guests, key="second"), ctx.elicit("Third?", Guests, key="third")
        )
        return f"{first.count} {second.count} {third.count}"

    return server


def _count(number: int) -> dict[str, Any]:
    return {"action": "accept", "content": {"count": number}}


async def _send(user: Person, state: str | None, answers: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"name": "book", "arguments": arguments, "inputResponses": answers}
    if state is not None:
        params["requestState"] = state
    return (await (await user.begin("tools/call", params)).answer()).get("result", {})


@pytest.mark.parametrize("calls", [1, 0], ids=["parked", "run again"])
async def test_what_was_answered_before_cannot_be_changed_and_what_nobody_asked_is_not_kept(calls: int) -> None:
    server = _inn(state_keys=["a" * 32], parking=Parking(calls=calls))
    async with person(server, MODERN, accepting()) as user:
        junk = {"junk": _count(0), "more": {"action": "accept", "content": {"text": "x" * 100_000}}}
        began = await _send(user, None, junk)
        second = await _send(user, began["requestState"], {"first": _count(1), **junk})
        assert list(second["inputRequests"]) == ["second", "third"]
        changed = {"first": _count(9), "second": _count(2), "third": _count(3)}
        result = await _send(user, second["requestState"], changed)
    assert result["content"][0]["text"] == "1 2 3"


async def test_a_later_request_is_not_asked_what_it_did_not_declare() -> None:
    async with person(_inn(), MODERN, accepting()) as user:
        began = await _send(user, None, {"first": _count(1)})
        user.capabilities = {}
        pending = await user.begin(
            "tools/call",
            {
                "name": "book",
                "arguments": {},
                "requestState": began["requestState"],
                "inputResponses": {"second": _count(2)},
            },
        )
        error = await pending.error()
    assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {"elicitation": {"form": {}}}})


async def test_arguments_count_among_what_waits_in_memory() -> None:
    async with person(_inn(parking=Parking(bytes=50_000)), MODERN, accepting()) as user:
        assert "requestState" in await _send(user, None, {}, note="short")
        params = {"name": "book", "arguments": {"note": "x" * 50_000}}
        assert "wait for answers" in (await (await user.begin("tools/call", params)).error())["message"]
