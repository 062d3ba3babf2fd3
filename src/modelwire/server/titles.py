"""`Titles`: what people see of the choices of a form, where the values themselves are not for people.

Only `modelwire.server.forms` looks at it; nothing here knows revisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from modelwire.errors import SignatureError
from modelwire.server.constraints import Unsupported


class Titles:
    """Give the choices of a form's field names for people.

    ``Annotated[Literal["s", "l"], Titles(s="Small", l="Large")]``; beside a ``Literal`` or an ``Enum`` whose values are
    text, or a list of such. A choice without a title is shown as it is. Clients of 2025-06-18 get the titles the way
    that revision writes them.

    Args:
        titles: What people see, by value; for values that can be no keyword.
        more: The same by keyword.

    Raises:
        SignatureError: There is no title, or one is no text.
    """

    __slots__ = ("of",)

    def __init__(self, titles: Mapping[str, str] | None = None, /, **more: str) -> None:
        self.of = {**(titles or {}), **more}
        if not self.of or not all(isinstance(title, str) and title for title in self.of.values()):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SignatureError(f"Titles takes what people see by value, such as Titles(s='Small'), not {self.of!r}")

    def __repr__(self) -> str:
        return f"Titles({self.of!r})"


def options(values: Sequence[str], metadata: Iterable[Any]) -> list[dict[str, str]] | None:
    """Return the choices with their titles; None where nobody gave any.

    Args:
        values: The choices.
        metadata: What stands beside their type, the outermost last.

    Raises:
        Unsupported: A title belongs to no choice.
    """
    found = {value: title for item in metadata if isinstance(item, Titles) for value, title in item.of.items()}
    if not found:
        return None
    for value in found:
        if value not in values:
            raise Unsupported(f"Titles names {value!r}, which is none of the choices: {', '.join(values)}")
    return [{"const": value, "title": found.get(value, value)} for value in values]
