"""Methods that take what a method of another class takes, with its types, written down once.

It calls nothing: what a method does with the arguments is the method's own business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def alike(method: Callable[Concatenate[Any, P], R], function: Callable[..., Any]) -> Callable[Concatenate[Any, P], R]:
    """Return the function, for type checkers and ``help()`` with the parameters of the method, but its own docstring.

    Args:
        method: What people know the parameters from. Its overloads are kept.
        function: What is to be called like it.
    """
    function.__wrapped__ = method  # type: ignore[attr-defined]  # where `inspect.signature` looks
    return function


def like(method: Callable[Concatenate[Any, P], R]) -> Callable[[Callable[..., Any]], Callable[Concatenate[Any, P], R]]:
    """Return a decorator that does as `alike`; of a method with overloads it keeps the first only."""

    def decorate(function: Callable[..., Any]) -> Callable[Concatenate[Any, P], R]:
        return alike(method, function)

    return decorate
