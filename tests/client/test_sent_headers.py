"""``headers=``: a dict, or a function of them; and no message shows a value."""

from __future__ import annotations

from typing import Any

import pytest

from modelwire import ConfigError, ConnectionFailed
from modelwire.client.sent_headers import SentHeaders


async def test_fixed_ones_come_before_those_of_a_file() -> None:
    sent = SentHeaders({"A": "1"}, {"A": "2", "B": "3"})
    assert sent
    assert await sent.now() == {"A": "1", "B": "3"}
    assert not SentHeaders(None)


async def test_a_function_is_asked_each_time() -> None:
    answers = iter(["1", "2"])

    async def later() -> dict[str, str]:
        return {"A": next(answers)}

    sent = SentHeaders(later, {"B": "3"})
    assert await sent.now() == {"A": "1", "B": "3"}
    assert await sent.now() == {"A": "2", "B": "3"}
    with pytest.raises(ConnectionFailed, match="the function of headers= failed"):
        await sent.now()


@pytest.mark.parametrize(
    "wrong",
    [
        {"A": "se\ncret"},
        {"A": 1},
        {"A:": "secret"},
        {"": "secret"},
        {1: "secret"},
        {"Upgrade": "secret"},
        {"sec-websocket-KEY": "secret"},
        [("A", "secret")],
        "secret",
    ],
    ids=repr,
)
async def test_what_can_be_none_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="headers=") as caught:
        SentHeaders(wrong)
    assert "secret" not in str(caught.value)
    with pytest.raises(ConfigError, match="headers="):
        await SentHeaders(lambda: wrong).now()
