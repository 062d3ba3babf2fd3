"""Methods that take what a method of another class takes, with its types, written down once.

It calls nothing: what a method does with the arguments is the method's own business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def like(method: Callable[Concatenate[Any, P], R]) -> Callable[[Callable[..., Any]], Callable[Concatenate[Any, P], R]]:
    """Return a decorator that gives a function the parameters of a method, for type checkers and ``help()``.

    The docstring stays the function's own. Of a method with overloads, type checkers see the first only.

    Args:
        method: What people know the parameters from.
    """

    def decorate(function: Callable[..., Any]) -> Callable[Concatenate[Any, P], R]:
        function.__wrapped__ = method  # type: ignore[attr-defined]  # where `inspect.signature` looks
        return function

    return decorate
