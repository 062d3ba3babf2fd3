"""Validators of attrs classes, read: the limits that a schema can show, and that are then told in our words.

The class goes on validating by itself; what is not known here is left to it. attrs is never imported: its validators
are known by the names of their classes.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterator
from typing import Any, cast

from modelwire.server.constraints import Rules

_COMPARISONS = {">": "gt", ">=": "ge", "<": "lt", "<=": "le"}


def limits(validator: Any) -> list[Rules]:
    """Return the limits of a field's validator, one by one, since one may not apply where others do."""
    return list(_limits(validator))


def narrowed(hint: Any, validator: Any) -> Any:
    """Return the type of a field: what ``instance_of`` says where nothing is annotated."""
    if hint is not Any:
        return hint
    for one, optional in _each(validator, False):
        if type(one).__name__ == "_InstanceOfValidator":
            given: Any = one.type
            classes = cast("tuple[Any, ...]", given) if isinstance(given, tuple) else (given,)
            return typing.Union[(*classes, type(None)) if optional else classes]  # noqa: UP007 - known at run time
    return hint


def refused_field(error: BaseException) -> str | None:
    """Return which field a validator of attrs itself has refused, as the class takes it; None for any other error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not str(trace.tb_frame.f_globals.get("__name__")).startswith(("attr.", "attrs.")):
        return None
    alias = getattr(trace.tb_frame.f_locals.get("attr"), "alias", None)
    return alias if isinstance(alias, str) else None


def _limits(validator: Any) -> Iterator[Rules]:
    for one, _ in _each(validator, False):
        reader = _READERS.get(type(one).__name__)
        if reader is not None and (found := reader(one)) is not None:
            yield found


def _each(validator: Any, optional: bool) -> Iterator[tuple[Any, bool]]:
    """The validators that must all hold, each with whether None is passed over."""
    kind = type(validator).__name__ if type(validator).__module__.partition(".")[0] in ("attr", "attrs") else ""
    if kind == "_AndValidator":
        for one in validator._validators:
            yield from _each(one, optional)
    elif kind == "_OptionalValidator":
        inner = validator.validator
        for one in inner if isinstance(inner, list | tuple) else (inner,):  # pyright: ignore[reportUnknownVariableType]
            yield from _each(one, True)
    elif kind:
        yield validator, optional


def _number(validator: Any) -> Rules | None:
    name = _COMPARISONS.get(validator.compare_op)
    return None if name is None else Rules(limits={name: validator.bound})


def _pattern(validator: Any) -> Rules | None:
    """JSON Schema looks for a pattern anywhere in the text, attrs by default at its whole."""
    written, how = validator.pattern, getattr(validator.match_func, "__name__", "")
    if not isinstance(written.pattern, str) or written.flags != re.UNICODE:
        return None
    whole = {"fullmatch": f"^(?:{written.pattern})$", "match": f"^(?:{written.pattern})", "search": written.pattern}
    return Rules(limits={"pattern": whole[how]}) if how in whole else None


def _options(validator: Any) -> Rules | None:
    options = validator.options
    if isinstance(options, range):
        return Rules(limits={"ge": options.start, "le": options.stop - 1}) if options.step == 1 else None
    if not isinstance(options, list | tuple | dict | set | frozenset):  # text is a container of its parts
        return None
    found: list[Any] = list(options)  # pyright: ignore[reportUnknownArgumentType]
    return Rules(options=sorted(found, key=repr) if isinstance(options, set | frozenset) else found)


_READERS: dict[str, Callable[[Any], Rules | None]] = {
    "_NumberValidator": _number,
    "_MinLengthValidator": lambda validator: Rules(limits={"min_length": validator.min_length}),
    "_MaxLengthValidator": lambda validator: Rules(limits={"max_length": validator.max_length}),
    "_MatchesReValidator": _pattern,
    "_InValidator": _options,
}
