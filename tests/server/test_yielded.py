"""What the annotation of a lifespan says, and which of its types are not to be taken away from arguments."""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import datetime
import decimal
import enum
import functools
import logging
import sqlite3
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NewType, Optional, TypedDict, TypeVar, Union

import pytest

from modelwire import SignatureError
from modelwire.server.yielded import goes_by_type, yielded_type

T = TypeVar("T")
Dsn = NewType("Dsn", str)


class Database:
    pass


class Store(Generic[T]):
    pass


@dataclasses.dataclass
class Settings:
    size: int


class Options(TypedDict):
    size: int


class Mode(enum.Enum):
    FAST = "fast"


def annotated(kind: Any) -> Callable[..., Any]:
    def lifespan() -> Any: ...

    lifespan.__annotations__["return"] = kind
    return lifespan


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (AsyncIterator[Database], Database),
        (AsyncGenerator[Database, None], Database),
        (Iterator[Database], Database),
        (Generator[Database, None, None], Database),
        (AbstractAsyncContextManager[Database], Database),
        ("AsyncIterator[Database]", Database),
        (AsyncIterator["Database"], Database),
        (AsyncIterator[tuple[Database, Settings]], tuple[Database, Settings]),
        (AsyncIterator, None),
        (Database, None),
        (Any, None),
        (None, None),
    ],
)
def test_the_yielded_type_is_read_off_the_annotation(annotation: Any, expected: Any) -> None:
    assert yielded_type(annotated(annotation), "it") == expected


def test_every_kind_of_function_is_read() -> None:
    async def plain(size: int) -> AsyncIterator[Database]:
        yield Database()

    class Owner:
        async def method(self) -> AsyncIterator[Database]:
            yield Database()

        async def __call__(self) -> AsyncIterator[Database]:
            yield Database()

    def without_annotation():  # type: ignore[no-untyped-def]
        yield

    functions = [plain, asynccontextmanager(plain), functools.partial(plain, 1), Owner().method, Owner()]
    assert [yielded_type(function, "it") for function in functions] == [Database] * 5
    assert yielded_type(without_annotation, "it") is None
    assert yielded_type(Database, "it") is None


def test_an_annotation_that_cannot_be_evaluated_is_refused_by_name() -> None:
    with pytest.raises(SignatureError, match="what the lifespan x yields.*Nowhere.*module level"):
        yielded_type(annotated("AsyncIterator[Nowhere]"), "the lifespan x")


@pytest.mark.parametrize(
    "kind",
    [
        Database,
        Settings,
        Options,
        Mode,
        Store[int],
        Dsn,
        Annotated[Database, "the database"],
        Optional[Database],
        dict[str, Database],
        sqlite3.Connection,
        asyncio.Queue[int],
        logging.Logger,
        concurrent.futures.ThreadPoolExecutor,
        Callable[[str], int],
    ],
)
def test_types_of_the_users_own_and_types_that_no_argument_can_have_go_to_the_lifespan(kind: Any) -> None:
    assert goes_by_type(kind)


@pytest.mark.parametrize(
    "kind",
    [
        str,
        int,
        bytes,
        dict,
        list,
        dict[str, Any],
        dict[str, Settings],
        list[int],
        tuple[int, ...],
        Mapping[str, int],
        Sequence[str],
        Optional[int],
        Union[int, str],
        Optional[Settings],
        Literal["a"],
        Path,
        uuid.UUID,
        decimal.Decimal,
        datetime.datetime,
        Any,
        object,
        None,
        type(None),
    ],
)
def test_types_that_arguments_have_by_themselves_stay_theirs(kind: Any) -> None:
    assert not goes_by_type(kind)
