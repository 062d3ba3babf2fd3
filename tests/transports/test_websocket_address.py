"""Addresses of WebSockets, and what of them may be shown."""

from __future__ import annotations

import pytest

from modelwire import ConfigError
from modelwire.transports.http.endpoint import shown_url
from modelwire.transports.websocket_address import checked, is_secure, is_websocket_url


def test_which_texts_are_meant_as_one() -> None:
    assert [is_websocket_url(text) for text in ("ws://a", "wss:a", "http://a", "ws", "ws.py")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert is_secure("wss://a")
    assert not is_secure("ws://a")


@pytest.mark.parametrize("url", ["ws://a", "ws://a:1/b?c=d", "wss://[::1]:1/", "ws://user:word@a/"])
def test_right_ones_stay_as_they_are(url: str) -> None:
    assert checked(url) == url


@pytest.mark.parametrize(
    "url", ["ws:a", "ws://:80/", "ws://a:0", "ws://a:x", "ws://a/\n", "ws://[::1", "ws://u:secret@"]
)
def test_wrong_ones_are_refused_and_show_no_secret(url: str) -> None:
    with pytest.raises(ConfigError, match="write ws://HOST:PORT/PATH or wss://HOST/PATH") as caught:
        checked(url)
    assert "secret" not in str(caught.value)


def test_credentials_and_query_are_not_shown() -> None:
    assert shown_url("wss://user:secret@host:1/path?token=secret") == "wss://host:1/path"
