"""What those cost who say nothing: thousands of sessions and open streams are common, and must be small and given back.

Bytes, unlike seconds, are no matter of how busy the machine is.
"""

from __future__ import annotations

import pytest

from benchmarks.idle import idle

pytestmark = pytest.mark.timeout(180)
MORE = 0.02
"""By how much a server may have grown in a second wave, once the first is gone."""


def test_an_idle_session_is_no_larger_than_eight_kibibytes_and_given_back() -> None:
    with idle() as server:
        found = server.measure(server.sessions, server.no_sessions)
    assert found.each <= 8
    assert found.more < MORE


def test_a_stream_of_a_session_is_no_larger_than_twelve_kibibytes_and_given_back() -> None:
    with idle() as server:
        server.sessions(1000)
        found = server.measure(server.streams, server.no_connections)
    assert found.each <= 12
    assert found.more < MORE


def test_a_subscription_is_no_larger_than_twelve_kibibytes_and_given_back() -> None:
    with idle() as server:
        found = server.measure(server.listenings, server.no_connections)
    assert found.each <= 12
    assert found.more < MORE
