"""Methods that take what a method of another class takes."""

from __future__ import annotations

import inspect
from typing import Any

from modelwire.client.signatures import like


class Theirs:
    def plain(self, name: str, *, timeout: float = 5) -> int:
        """Theirs."""
        return 1


class Mine:
    @like(Theirs.plain)
    def plain(self, *given: Any, **options: Any) -> Any:
        """Mine."""
        return given, options


def test_the_parameters_are_theirs_and_the_rest_is_mine() -> None:
    assert inspect.signature(Mine().plain) == inspect.signature(Theirs().plain)
    assert Mine.plain.__doc__ == "Mine."
    assert Mine.plain.__name__ == "plain"
    given: Any = Mine().plain("x", timeout=7)
    assert given == (("x",), {"timeout": 7})
