"""Costs that need nothing to compare with but ourselves, the interpreter and a bare loop: ratios within one run.

Noise only ever adds to a cost, so each side is given by its least round, and rounds take turns; they stop as soon as
the bound holds. What is held against other libraries is in `benchmarks`, which `make bench` runs.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack

import pytest

from benchmarks import requests
from benchmarks.contestants import Contestant, Import, ServerCalls, WebCalls, own
from benchmarks.programs import tools
from modelwire import Client, Server
from tests.bench.least import least_ratio

Start = Callable[[Contestant], Contestant]


@pytest.fixture
def start() -> Iterator[Start]:
    """Have a contestant closed at the end."""
    with ExitStack() as stack:

        def started(contestant: Contestant) -> Contestant:
            stack.callback(contestant.close)
            contestant.measure(0.2)
            return contestant

        yield started


def calls(chosen: str = tools.ADD, ask: requests.Ask = requests.ADD, count: int = 3000) -> ServerCalls:
    return ServerCalls(own("modelwire_server", chosen), ask, count)


def test_a_call_costs_at_most_four_times_what_a_bare_loop_costs(start: Start) -> None:
    bare = ServerCalls(own("bare_loop"), requests.ADD, 3000, revision=None)
    assert least_ratio(start(calls()), start(bare), 4) <= 4


def test_a_call_over_http_costs_at_most_eight_fifths_of_a_bare_asgi_application(start: Start) -> None:
    ours = start(WebCalls(own("modelwire_web", tools.ADD, "run"), requests.ADD, 1500))
    assert least_ratio(ours, start(WebCalls(own("bare_asgi"), requests.ADD, 1500)), 1.6) <= 1.6


def test_a_mounted_application_keeps_the_same_bound(start: Start) -> None:
    ours = start(WebCalls(own("modelwire_web", tools.ADD, "asgi"), requests.ADD, 1500))
    assert least_ratio(ours, start(WebCalls(own("bare_asgi"), requests.ADD, 1500)), 1.6) <= 1.6


def test_a_call_costs_the_same_with_two_hundred_tools(start: Start) -> None:
    assert least_ratio(start(calls(tools.ADD_AMONG_200)), start(calls()), 1.25) <= 1.25


def test_a_long_connection_does_not_slow_down_and_does_not_grow(start: Start) -> None:
    old, young = calls(), calls()
    start(old)
    before = old.memory
    old.measure(7)
    assert old.memory <= before * 1.1
    assert least_ratio(old, start(young), 1.25) <= 1.25


def test_an_answer_of_a_mebibyte_costs_per_byte_what_one_of_64_kibibytes_does(start: Start) -> None:
    large = start(ServerCalls(own("modelwire_server", tools.KIT), requests.echoing(1 << 20), 6, depth=1))
    small = start(ServerCalls(own("modelwire_server", tools.KIT), requests.echoing(1 << 16), 96, depth=1))
    assert least_ratio(large, small, 2 * 16) <= 2 * 16


def test_listing_two_hundred_tools_costs_no_more_than_thirty_calls(start: Start) -> None:
    listing = start(calls(tools.MANY, requests.LIST_TOOLS, 100))
    assert least_ratio(listing, start(calls()), 30) <= 30


class Asking:
    """CPU time of a client and a server in one process per request, in microseconds.

    Args:
        ask: Makes one request.
    """

    def __init__(self, ask: Callable[[Client], Awaitable[object]]) -> None:
        self._ask = ask
        self._runner = asyncio.Runner()
        server = Server("s")
        server.add_resource("a:b", lambda: "x" * 200, name="b", inline=True, ttl=3600)
        self._client = self._runner.run(Client(server).connect())

    def measure(self, share: float = 1) -> float:
        return self._runner.run(self._asked(round(500 * share)))

    async def _asked(self, count: int) -> float:
        began = time.process_time()
        for _ in range(count):
            await self._ask(self._client)
        return (time.process_time() - began) / count * 1e6

    def close(self) -> None:
        self._runner.run(self._client.close())
        self._runner.close()


def test_what_is_kept_costs_at_most_half_of_what_asking_costs_a_client_and_a_server_in_memory(start: Start) -> None:
    kept = start(Asking(lambda client: client.read_resource("a:b")))
    asked = start(Asking(lambda client: client.read_resource("a:b", fresh=True)))
    assert least_ratio(kept, asked, 0.5) <= 0.5


@pytest.mark.parametrize(
    ("statement", "at_most"), [("import modelwire", 1), ("from modelwire import Client, Server", 3)]
)
def test_an_import_costs_little_beside_what_every_program_imports(statement: str, at_most: float) -> None:
    ours, theirs = (Import(sys.executable, imported) for imported in (statement, "import asyncio, msgspec"))
    ours.measure(1)
    assert least_ratio(ours, theirs, at_most) <= at_most
