"""Unions that msgspec would refuse: two classes, ``UUID | str``, two kinds of list.

Which member a value is taken for depends on the value and on the order written, and on nothing else: members that fit
as it came go before what must be coerced; among them the one that passes over the least goes first, then the first.
"""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import Any, NoReturn

from modelwire.server import explain, schema_words
from modelwire.server.definitions import Definitions
from modelwire.server.json_values import is_list, is_object
from modelwire.server.nodes import Misfit, Node


class Union(Node):
    """Several types: what fits one as it is goes before what must be coerced, and the nearest before the first.

    Args:
        members: The types, in the order written.
    """

    __slots__ = ("members",)

    def __init__(self, members: Sequence[Node]) -> None:
        self.members = list(members)

    @property
    def wanted(self) -> frozenset[str]:
        return frozenset[str]().union(*(member.wanted for member in self.members))

    def load(self, value: Any, path: str, lax: bool = False) -> Any:
        fitting: list[tuple[Node, Any]] = []
        misfits: list[Misfit] = []
        for member in self._possible(value):
            try:
                fitting.append((member, member.load(value, path)))
            except Misfit as misfit:
                misfits.append(misfit)
        if len(fitting) > 1:
            return min(fitting, key=lambda found: _surplus_of(found[0], value, found[1]))[1]
        if fitting:
            return fitting[0][1]
        return self._coerced(value, path) if lax else self._refused(value, path, misfits)

    def _possible(self, value: Any) -> list[Node]:
        """The members that a value could be of: an object that says of which class it is is of no other."""
        if not is_object(value):
            return self.members
        given: dict[str, Any] = value
        return [member for member in self.members if member.tag is None or given.get(member.tag[0]) == member.tag[1]]

    def _coerced(self, value: Any, path: str) -> Any:
        misfits: list[Misfit] = []
        for member in self._possible(value):
            try:
                return member.load(value, path, True)
            except Misfit as misfit:
                misfits.append(misfit)
        return self._refused(value, path, misfits)

    def _refused(self, value: Any, path: str, misfits: list[Misfit]) -> NoReturn:
        """Tell the faults of the member that the value says it is, or is nearest to, if there is one."""
        self._refuse_tag(value, path)
        if is_object(value):
            self._refuse_said(value, path, misfits)
        near = sorted((misfit for misfit in misfits if misfit.inside), key=_score)
        if near and (len(near) == 1 or (_score(near[0]) < _score(near[1]) and near[0].matched)):
            raise near[0]
        matched = max((misfit.matched for misfit in misfits), default=0)
        problem = f"{path}: expected {self.expected()}, got {explain.shown(value, path)}"
        raise Misfit([problem], inside=bool(near), matched=matched)

    def _refuse_said(self, value: dict[str, Any], path: str, misfits: list[Misfit]) -> None:
        """Tell the faults of the class that an object says it is of, by a member that has another value in each."""
        objects = [(i, member) for i, member in enumerate(self._possible(value)) if "object" in member.wanted]
        name, tags = schema_words.telling({i: member.constants() for i, member in objects})
        if name:
            own = schema_words.said_to_be(value, name, tags)
            if own is not None:
                raise misfits[own]
            matched = max(misfit.matched for misfit in misfits)
            raise Misfit([schema_words.untold(value, name, tags, path)], inside=True, matched=matched)

    def _refuse_tag(self, value: Any, path: str) -> None:
        tags = [member.tag for member in self.members if member.tag is not None]
        if not is_object(value) or not tags or len(tags) < sum("object" in member.wanted for member in self.members):
            return
        name, choices = tags[0][0], [tag for _, tag in tags]
        if value.get(name) in choices:
            return
        wanted = f"expected {explain.one_of(choices)}"
        got = f"{wanted}, got {explain.shown(value[name], path)}" if name in value else f"missing; {wanted}"
        raise Misfit([f"{path}.{name}: {got}"], inside=True)

    def dump(self, value: Any, path: str) -> Any:
        own: Misfit | None = None
        inside: list[Misfit] = []
        for member in sorted(self.members, key=lambda member: member.exact is not type(value)):
            try:
                return member.dump(value, path)
            except Misfit as misfit:
                own = misfit if member.exact is type(value) else own
                inside += [] if misfit.problems[0].startswith(f"{path}: ") else [misfit]
        if own is not None:  # it is of this class, but wrong inside
            raise own
        if len(inside) == 1:  # it is of this kind
            raise inside[0]
        self.foreign(value, path)

    def schema(self, defs: Definitions) -> dict[str, Any]:
        options: list[Any] = []
        for member in self.members:
            schema = member.schema(defs)
            nested = schema["anyOf"] if set(schema) == {"anyOf"} else [schema]
            options += [option for option in nested if option not in options]
        return {"anyOf": options} if len(options) > 1 else options[0]

    def expected(self) -> str:
        return " or ".join(dict.fromkeys(member.expected() for member in self.members))

    def shape(self) -> Any:
        shapes = [member.shape() for member in self.members]
        if all(shape is None for shape in shapes):
            return None
        options = [getattr(member, "annotation", Any) if shape is None else shape
                   for member, shape in zip(self.members, shapes, strict=True)]  # fmt: skip
        return typing.Union[tuple(options)]  # noqa: UP007 - known at run time only


def _score(misfit: Misfit) -> int:
    return len(misfit.problems) - misfit.matched


def _surplus_of(member: Node, value: Any, loaded: Any) -> float:
    try:
        return _surplus(value, member.dump(loaded, ""))
    except Misfit:
        return float("inf")


def _surplus(given: Any, back: Any) -> int:
    """How much of what came is not in what it was taken for: members that were passed over, numbers of another kind."""
    if is_object(given) and is_object(back):
        return sum(_surplus(item, back[key]) if key in back else 1 for key, item in given.items())
    if is_list(given) and is_list(back):
        return sum(_surplus(one, other) for one, other in zip(given, back, strict=False))
    return int(type(given) is not type(back))
