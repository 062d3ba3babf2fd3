"""The library's logger never raises, whatever people attach to it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from modelwire import Client, Server
from modelwire.log import log, on_one_line


class Hostile(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        raise ValueError("a filter that fails")


@pytest.fixture
def hostile() -> Iterator[None]:
    logger = logging.getLogger("modelwire")
    filter_ = Hostile()
    logger.addFilter(filter_)
    yield
    logger.removeFilter(filter_)


@pytest.mark.usefixtures("hostile")
def test_a_filter_that_raises_costs_only_the_record() -> None:
    log.error("lost")
    log.exception("lost, too")


@pytest.mark.usefixtures("hostile")
async def test_a_filter_that_raises_costs_no_answer() -> None:
    server = Server("s")

    @server.tool
    async def crash() -> str:
        raise ZeroDivisionError

    async with Client(server) as client:
        for _ in range(2):
            assert (await client.call_tool("crash")).is_error


def test_records_come_under_the_librarys_name(caplog: pytest.LogCaptureFixture) -> None:
    log.warning("seen %d", 1)
    assert [(record.name, record.getMessage()) for record in caplog.records] == [("modelwire", "seen 1")]


def test_what_a_peer_has_said_stands_on_one_line() -> None:
    assert on_one_line("a\nb\r\x1b[2J\x85\u2028ü日") == "a\\nb\\r\\x1b[2J\\x85\\u2028ü日"
    assert on_one_line(5) == 5
