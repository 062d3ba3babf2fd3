"""The clients that wait have what those that are awaited have: no method or property is missing or different."""

from __future__ import annotations

import inspect
from typing import Any, get_overloads

import pytest

import modelwire
from modelwire import sync

PAIRS = [(modelwire.Client, sync.Client), (modelwire.Group, sync.Group)]
BY_HAND = {"connect", "close", "listen", "add"}
"""Those that return or take something else than the asynchronous ones."""


def public(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_")]


METHODS = [
    (awaited, waits, name) for awaited, waits in PAIRS for name in public(awaited) if callable(getattr(awaited, name))
]


@pytest.mark.parametrize(("awaited", "waits"), PAIRS)
def test_both_have_the_same_names(awaited: type, waits: type) -> None:
    own = {"timeout", "tools", "resources"} if awaited is modelwire.Client else set()
    assert set(public(waits)) == set(public(awaited)) | own


@pytest.mark.parametrize(("awaited", "waits", "name"), METHODS)
def test_methods_take_the_same(awaited: type, waits: type, name: str) -> None:
    theirs, mine = (inspect.signature(getattr(kind, name)) for kind in (awaited, waits))
    assert mine.parameters == theirs.parameters
    if name not in BY_HAND:
        assert mine.return_annotation == theirs.return_annotation
    assert not inspect.iscoroutinefunction(getattr(waits, name))


@pytest.mark.parametrize(("awaited", "waits", "name"), METHODS)
def test_every_method_has_a_docstring_and_its_own_name(awaited: type, waits: type, name: str) -> None:
    method: Any = getattr(waits, name)
    assert inspect.getdoc(method)
    assert method.__name__ == name
    if name not in BY_HAND | {"origin"}:
        assert method.__doc__ == getattr(awaited, name).__doc__


@pytest.mark.parametrize(("awaited", "waits"), PAIRS)
def test_both_are_made_of_the_same(awaited: Any, waits: Any) -> None:
    theirs, mine = (inspect.signature(kind.__init__).parameters for kind in (awaited, waits))
    assert list(mine) == list(theirs)
    assert [parameter.default for parameter in mine.values()] == [parameter.default for parameter in theirs.values()]
    assert [parameter.kind for parameter in mine.values()] == [parameter.kind for parameter in theirs.values()]


@pytest.mark.parametrize(("awaited", "waits"), PAIRS)
def test_properties_have_the_same_types(awaited: type, waits: type) -> None:
    for name in public(awaited):
        theirs, mine = getattr(awaited, name), getattr(waits, name)
        if isinstance(theirs, property) and name != "clients":
            assert isinstance(mine, property)
            assert inspect.signature(mine.fget).return_annotation == inspect.signature(theirs.fget).return_annotation  # type: ignore[arg-type]
            assert mine.__doc__


def test_there_are_overloads_to_keep() -> None:
    """That they are kept, type checkers say; see test_types.py."""
    assert len(get_overloads(modelwire.Client.call)) == len(get_overloads(modelwire.Group.call)) == 2
