"""Listening on TCP: all addresses of a host on one port, or the reason why not."""

from __future__ import annotations

import errno
import os
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from modelwire.errors import ConnectionFailed
from modelwire.transports.socket_address import TcpAddress
from modelwire.transports.socket_bind import listen_tcp
from tests.transports.sockets import descriptors, resolving


@asynccontextmanager
async def listening(host: str, port: int = 0) -> AsyncIterator[list[tuple[str, int]]]:
    """Where the sockets of a host listen, after the test of nothing left over."""
    before = descriptors()
    sockets = await listen_tcp(TcpAddress(host, port), 8)
    yield [one.getsockname()[:2] for one in sockets]
    for one in sockets:
        one.close()
    assert descriptors() == before


async def refusal(host: str, port: int = 0) -> str:
    before = descriptors()
    with pytest.raises(ConnectionFailed) as refused:
        await listen_tcp(TcpAddress(host, port), 8)
    assert descriptors() == before
    text = str(refused.value)
    assert text.startswith(f"cannot listen on {TcpAddress(host, port)}: ")
    return text.partition(": ")[2]


def reaches(host: str, port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex((host, port)) == 0


async def test_port_0_takes_a_free_one() -> None:
    async with listening("127.0.0.1") as [(_, one)], listening("127.0.0.1") as [(_, other)]:
        assert 0 not in (one, other)
        assert one != other
        assert reaches("127.0.0.1", one)


async def test_sockets_say_that_they_are_tcp() -> None:
    # asyncio has small writes leave at once (TCP_NODELAY) on sockets that say so, and on no others.
    sockets = await listen_tcp(TcpAddress("127.0.0.1", 0), 8)
    assert [one.proto for one in sockets] == [socket.IPPROTO_TCP]
    for one in sockets:
        one.close()


async def test_a_port_that_is_taken_is_told() -> None:
    async with listening("127.0.0.1") as [(_, port)]:
        assert (await refusal("127.0.0.1", port)).startswith("the port is taken; end the program that has it")


async def test_an_address_that_this_machine_lacks_is_told() -> None:
    why = await refusal("203.0.113.1")
    assert why.startswith("this machine does not have that address; 127.0.0.1 is for itself")


async def test_a_host_is_listened_to_at_each_of_its_addresses_on_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "127.0.0.1", "127.0.0.2", "127.0.0.1")
    async with listening("several") as where:
        assert [host for host, _ in where] == ["127.0.0.1", "127.0.0.2"]
        assert len({port for _, port in where}) == 1
        assert all(reaches(host, port) for host, port in where)


async def test_a_port_that_is_free_at_one_address_and_taken_at_another_is_not_settled_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolving(monkeypatch, "127.0.0.1", "127.0.0.2")
    bind = socket.socket.bind
    tried: list[int] = []

    def somebody_is_faster(self: socket.socket, where: Any) -> None:
        if where[0] == "127.0.0.2" and len(tried) < 3:
            tried.append(where[1])
            raise OSError(errno.EADDRINUSE, "taken")
        bind(self, where)

    monkeypatch.setattr(socket.socket, "bind", somebody_is_faster)
    async with listening("several") as where:
        assert len(tried) == 3
        assert 0 not in tried
        assert len(where) == 2


async def test_when_no_port_is_free_at_all_addresses_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "127.0.0.1", "127.0.0.2")

    def taken(self: socket.socket, where: Any) -> None:
        raise OSError(errno.EADDRINUSE, "taken")

    monkeypatch.setattr(socket.socket, "bind", taken)
    assert (await refusal("several")).startswith("the port is taken")


async def test_an_address_of_a_host_that_the_machine_lacks_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "203.0.113.1", "127.0.0.1")
    async with listening("several") as where:
        assert [host for host, _ in where] == ["127.0.0.1"]


async def test_where_the_machine_has_none_of_the_addresses_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "203.0.113.1", "203.0.113.2")
    assert "does not have that address" in await refusal("several")


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.EACCES, "permission denied; ports below 1024 are for the administrator, take a higher one"),
        (errno.EAFNOSUPPORT, "this machine has no address of that kind"),
        (errno.ENOBUFS, os.strerror(errno.ENOBUFS)),
    ],
)
async def test_the_system_s_reason_is_told_in_plain_words(
    number: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: socket.socket, where: Any) -> None:
        raise OSError(number, "the system's own words")

    monkeypatch.setattr(socket.socket, "bind", refused)
    assert await refusal("127.0.0.1", 80) == why


async def test_ipv6_works_or_is_said_not_to_be_there() -> None:
    try:
        async with listening("::1") as [(host, _)]:
            why = f"it listens on {host}"
    except ConnectionFailed as failed:
        why = str(failed)
    assert re.search("it listens on ::1|this machine (does not have that address|has no address of that kind)", why)
