"""Leave out of a value what a revision lacks.

What to leave out is read from the types once per type and revision and kept as a plan. Most values need nothing, and
those are returned as they are; the others are copied, and the caller's value is never changed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast, get_args

import msgspec
from msgspec import NODEFAULT, Struct

from modelwire.protocol.downgrade import REPLACED, SHAPED, Rewrite
from modelwire.protocol.faults import WireError
from modelwire.protocol.revisions import REVISIONS, Revision, Span
from modelwire.protocol.types.base import is_choice


@dataclass(frozen=True, slots=True)
class _Plan:
    """What one type needs on its way to one revision."""

    drops: tuple[tuple[str, Any], ...]
    """Fields that the revision lacks, each with the value that leaves it out."""
    demands: tuple[tuple[str, str], ...]
    """Fields that the revision demands although others lack them: Python name, wire name."""
    children: tuple[str, ...]
    """Fields that may hold something that needs work."""
    shape: Rewrite | None
    """Rewrites the value before its fields are looked at."""
    replace: Rewrite | None
    """Turns the value into something that the revision has."""


class Plans(dict[type, "_Plan | None"]):
    """The plans of one revision by type; None where there is nothing to do. Filled as types turn up."""

    def __init__(self, revision: Revision) -> None:
        super().__init__()
        self.revision = revision
        self._busy: set[type] = set()

    def __missing__(self, kind: type) -> _Plan | None:
        if kind in self._busy:
            return None
        self._busy.add(kind)
        try:
            plan = self[kind] = self._make(kind) if issubclass(kind, Struct) else None
        finally:
            self._busy.discard(kind)
        return plan

    def _make(self, kind: type[Struct]) -> _Plan | None:
        drops: list[tuple[str, Any]] = []
        demands: list[tuple[str, str]] = []
        children: list[str] = []
        for field in msgspec.structs.fields(kind):
            span = _span(field.type)
            if not self.revision.covers(span.since, span.until):
                drops.append((field.name, None if field.default is NODEFAULT else field.default))
                continue
            if span.required:
                demands.append((field.name, field.encode_name))
            if any(self[child] is not None for child in _reachable(field.type)):
                children.append(field.name)
        last, shape = _row(SHAPED, kind)
        if not self.revision.covers(None, last):
            shape = None
        first, replace = _row(REPLACED, kind)
        if self.revision.covers(first, None):
            replace = None
        if not (drops or demands or children or shape or replace):
            return None
        return _Plan(tuple(drops), tuple(demands), tuple(children), shape, replace)

    def prune(self, value: Any) -> Any:
        """Return ``value`` without what the revision lacks; the same object when it lacks nothing."""
        kind = cast("type[Any]", type(value))
        if kind is list or kind is tuple:
            return self._prune_list(value)
        if kind is dict:
            return self._prune_dict(value)
        plan = self[kind]
        return value if plan is None else self._prune_struct(value, plan)

    def _prune_struct(self, value: Any, plan: _Plan) -> Any:
        if plan.replace is not None:
            return self.prune(plan.replace(value, self.revision))
        result = value if plan.shape is None else plan.shape(value, self.revision)
        for name, wire_name in plan.demands:
            if getattr(result, name) is None:
                raise WireError(f'{type(value).__name__} needs "{wire_name}" in revision {self.revision}')
        for name, default in plan.drops:
            if getattr(result, name) is not default:
                result = _changed(result, value, name, default)
        for name in plan.children:
            old = getattr(result, name)
            new = self.prune(old)
            if new is not old:
                result = _changed(result, value, name, new)
        return result

    def _prune_list(self, values: Any) -> Any:
        pruned = [self.prune(item) for item in values]
        same = all(new is old for new, old in zip(pruned, values, strict=True))
        return values if same else pruned

    def _prune_dict(self, values: dict[Any, Any]) -> dict[Any, Any]:
        if _SCALARS.issuperset(map(type, values.values())):
            return values
        pruned = {key: self.prune(item) for key, item in values.items()}
        same = all(pruned[key] is item for key, item in values.items())
        return values if same else pruned


def _row(table: dict[type[Struct], tuple[str, Rewrite]], kind: type) -> tuple[str | None, Rewrite | None]:
    return next((table[base] for base in kind.__mro__ if base in table), (None, None))


def _changed(result: Any, original: Any, name: str, new: Any) -> Any:
    if result is original:
        result = copy.copy(original)
    setattr(result, name, new)
    return result


def _span(annotation: Any) -> Span:
    marks = getattr(annotation, "__metadata__", ())
    return next((mark for mark in marks if isinstance(mark, Span)), _ALWAYS)


_ALWAYS: Final = Span()
_SCALARS: Final[frozenset[type]] = frozenset({str, int, float, bool, type(None), bytes, msgspec.Raw})
"""What has nothing that a revision could lack."""


def _reachable(annotation: Any) -> Iterator[type]:
    """Yield the types that a value of ``annotation`` may consist of, as far as the annotation says."""
    if isinstance(annotation, type) and not get_args(annotation):
        if is_choice(annotation):
            yield from annotation.members
        else:
            yield annotation
    for argument in get_args(annotation):
        yield from _reachable(argument)


_PLANS: Final = {revision: Plans(revision) for revision in REVISIONS}


def prune(value: Any, revision: Revision) -> Any:
    """Return ``value`` without what ``revision`` lacks; the same object when there is nothing to leave out.

    Raises:
        WireError: The revision has no way at all to say it.
    """
    return _PLANS[revision].prune(value)
