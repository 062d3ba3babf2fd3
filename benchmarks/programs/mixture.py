"""Functions as programs have them, by the thousand: of several kinds, some with classes, most with docstrings.

Each group of ten has its own four classes, of which nothing can be known from an earlier group: an enum, a dataclass, a
pydantic model that holds it, a dataclass that holds all of them. Annotations are no strings here, since the classes are
made anew.
"""

import datetime
import enum
import types
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from benchmarks.programs.tools import GROUP


def mixture(count: int) -> list[Callable[..., Any]]:
    """Return so many functions, each with a name of its own; a multiple of `GROUP`."""
    return [function for number in range(count // GROUP) for function in _group(number)]


def _group(number: int) -> list[Callable[..., Any]]:
    class Priority(enum.Enum):
        LOW = "low"
        HIGH = "high"

    @dataclass
    class Address:
        street: str
        city: str
        zip_code: str = ""

    class Customer(BaseModel):
        name: str = Field(min_length=1, description="As on the invoice.")
        email: str
        address: Address
        since: datetime.date | None = None
        tags: list[str] = []

    @dataclass
    class Order:
        id: uuid.UUID
        customer: Customer
        priority: Priority = Priority.LOW
        lines: dict[str, int] = field(default_factory=dict)

    functions: list[Callable[..., Any]] = [
        _add, _search, _weather, _log, *_with_classes(Customer, Order, Priority, Address)
    ]  # fmt: skip
    return [_renamed(function, f"{function.__name__.strip('_')}_{number}") for function in functions]


def _renamed(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    assert isinstance(function, types.FunctionType)
    copy = types.FunctionType(
        function.__code__, function.__globals__, name, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__, copy.__doc__ = function.__kwdefaults__, function.__doc__
    copy.__annotations__ = dict(function.__annotations__)
    copy.__qualname__ = name
    return copy


async def _add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def _search(query: str, limit: int = 10, exact: bool = False, language: Literal["en", "no"] = "en") -> list[str]:
    """Search the collection and return the titles of what was found.

    Args:
        query: Words to look for, in any order.
        limit: How many titles to return at most.
        exact: Whether the words must stand as they are written.
        language: The language of the collection.
    """
    return [query] * limit


def _weather(city: str, day: datetime.date | None = None, unit: Literal["C", "F"] = "C") -> dict[str, float]:
    """Say what weather there will be.

    Args:
        city: Where.
        day: When; today if left out.
        unit: The unit of temperatures.
    """
    return {city: 20.0}


def _log(message: str, level: Annotated[int, Field(ge=0, le=7)] = 6, more: dict[str, Any] | None = None) -> None:
    """Write a line into the log."""


def _with_classes(customer: Any, order: Any, priority: Any, address: Any) -> list[Callable[..., Any]]:
    async def find_customer(name: str, since: datetime.date | None = None) -> list[customer]:
        """Return the customers of a name."""
        return []

    async def add_customer(new: customer, notify: bool = True) -> customer:
        """Add a customer.

        Args:
            new: Who it is.
            notify: Whether to write to them.
        """
        return new

    async def place(new: order, priority: priority = priority.LOW) -> order:
        """Place an order."""
        return new

    async def move(id: uuid.UUID, to: address, at: datetime.datetime, keep: bool = False) -> str:
        """Have an order sent elsewhere.

        Args:
            id: The order.
            to: Where it goes instead.
            at: From when on.
            keep: Whether the customer's own address stays as it is.
        """
        return str(id)

    async def count(
        by: Literal["city", "day"], ids: list[uuid.UUID], top: Annotated[int, Field(gt=0)] = 5
    ) -> dict[str, int]:
        """Count orders."""
        return {}

    async def quote(lines: dict[str, int], discount: Annotated[float, Field(ge=0, lt=1)] = 0.0) -> float | None:
        """Return what these would cost."""
        return None

    return [find_customer, add_customer, place, move, count, quote]
