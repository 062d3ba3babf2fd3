"""Callbacks that only listen: what they raise is logged and harms nobody."""

from __future__ import annotations

import asyncio

import pytest

from modelwire.rpc.callbacks import guarded


@pytest.mark.parametrize("error", [ValueError("x"), asyncio.CancelledError(), SystemExit(3), GeneratorExit()])
def test_what_a_callback_raises_is_logged_and_goes_no_further(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> int:
        raise error

    assert guarded("on_log", fail) is None
    assert "on_log failed" in caplog.text


def test_what_a_callback_returns_is_returned() -> None:
    assert guarded("on_log", lambda: 3) == 3


def test_ctrl_c_passes() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guarded("on_log", interrupted)
