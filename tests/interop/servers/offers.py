"""Plain functions and their types, which each server of this folder offers with its library's own decorators."""

from __future__ import annotations

import datetime
import enum
import os
import uuid
from dataclasses import dataclass, field
from typing import Any, Literal, Optional

from pydantic import BaseModel, Field

PIXEL = (
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc`\xf8_\x0f\0\x02\x87"
    b"\x01\x80\xebG\xba\x92\0\0\0\0IEND\xaeB`\x82"
)
SECRET = "hunter2"
PEOPLE = ["Ada", "Alan", "Grace"]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Place(BaseModel):
    name: str
    latitude: float = Field(ge=-90, le=90)
    visited: Optional[datetime.date] = None


@dataclass
class Tree:
    value: int
    children: list[Tree] = field(default_factory=list)


class Guests(BaseModel):
    count: int = Field(ge=1, le=9)
    vegetarian: bool = False


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def shout(text: str) -> str:
    return text.upper()


def words(text: str) -> list[str]:
    return text.split()


def lengths(text: str) -> dict[str, int]:
    return {word: len(word) for word in text.split()}


def north(place: Place, degrees: float = 1.0) -> Place:
    return place.model_copy(update={"latitude": place.latitude + degrees})


def mirrored(tree: Tree) -> Tree:
    return Tree(tree.value, [mirrored(child) for child in reversed(tree.children)])


def next_day(day: datetime.date) -> datetime.date:
    return day + datetime.timedelta(days=1)


def named(space: uuid.UUID, name: str) -> uuid.UUID:
    return uuid.uuid5(space, name)


def other(colour: Colour, mode: Literal["fast", "slow"] = "fast") -> Colour:
    return Colour.BLUE if colour is Colour.RED else Colour.RED


def maybe(number: Optional[int] = None) -> Optional[int]:
    return number


def anything(value: Any) -> Any:
    return value


def nothing() -> None:
    pass


def crash() -> str:
    raise ValueError(SECRET)


def die() -> str:
    os._exit(7)


FUNCTIONS = [
    add, shout, words, lengths, north, mirrored, next_day, named, other, maybe, anything, nothing, crash, die,
]  # fmt: skip
