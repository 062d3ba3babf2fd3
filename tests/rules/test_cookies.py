"""Cookies of one server."""

from __future__ import annotations

import pytest

from modelwire.rules.cookies import MOST, Cookies


def jar(*headers: str, now: float = 0.0) -> Cookies:
    found = Cookies()
    for header in headers:
        found.take(header, now)
    return found


def test_cookies_are_sent_back_by_name() -> None:
    found = jar("a=1; Path=/; HttpOnly", "b = x y ;Secure", "a=2")
    assert found.header(0) == "b=x y; a=2"


def test_cookies_end_with_their_age() -> None:
    found = jar("a=1; Max-Age=10", "b=2; max-age=0", "c=3; Expires=Thu, 01 Jan 1970 00:00:00 GMT")
    assert found.header(9) == "a=1"
    assert found.header(10) == ""


def test_a_cookie_is_taken_back() -> None:
    found = jar("a=1", "a=; Max-Age=-1")
    assert found.header(0) == ""


@pytest.mark.parametrize("header", ["", "a", "=1", "a=1\r\nX: y", "a=" + "x" * 5000, "a=\x00"])
def test_what_is_no_cookie_is_left(header: str) -> None:
    assert jar(header).header(0) == ""


def test_only_so_many_are_kept() -> None:
    found = jar(*(f"c{number}=1" for number in range(MOST + 5)))
    assert found.header(0).count("=") == MOST
    assert "c0=" not in found.header(0)
