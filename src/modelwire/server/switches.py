"""What `Server.enable` and `Server.disable` mean: which items a name, a URI or a tag stands for, and who is told.

All of it is looked up before anything is switched, so that a misspelt name changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from modelwire.errors import ConfigError
from modelwire.server.collection import Collection
from modelwire.server.names import did_you_mean
from modelwire.server.visibility import tag_set

Kind: TypeAlias = Literal["tool", "prompt", "resource"]
"""A resource template is a resource here."""

Places: TypeAlias = Mapping[Kind, Sequence[Collection[Any]]]
Found: TypeAlias = tuple[Collection[Any], str]


class Switches:
    """Switches items on and off.

    Args:
        collections: Returns where the items of each kind are.
    """

    def __init__(self, collections: Mapping[Kind, Callable[[], Sequence[Collection[Any]]]]) -> None:
        self._collections = collections

    def turn(self, on: bool, names: Sequence[str], kind: Kind | None, tags: Iterable[str]) -> list[Kind]:
        """Switch items, and return the kinds of which any was switched the other way before.

        Args:
            on: Whether they are to be there.
            names: Names of tools and prompts, URIs and templates of resources.
            kind: Look at this kind only.
            tags: Also whatever has any of these.

        Raises:
            ConfigError: There is no such item, or a name stands for items of several kinds.
        """
        asked = "enable" if on else "disable"
        if kind is not None and kind not in self._collections:
            raise ConfigError(f"{asked}: kind is one of {', '.join(self._collections)}, not {kind!r}")
        words = tag_set(tags, asked)
        if not names and not words:
            raise ConfigError(f"{asked}() needs a name, a URI or tags=")
        kinds: list[Kind] = list(self._collections) if kind is None else [kind]
        places: Places = {one: self._collections[one]() for one in kinds}
        found = [place for name in names for place in _named(name, places, asked)]
        found += [place for word in sorted(words) for place in _tagged(word, places, asked)]
        changed: list[Kind] = []
        for one, collections in places.items():
            switched = [here.switch([key for place, key in found if place is here], on) for here in collections]
            if any(switched):
                changed.append(one)
        return changed


def _named(name: str, places: Places, asked: str) -> list[Found]:
    found = [(one, here) for one, collections in places.items() for here in collections if name in here]
    kinds = list(dict.fromkeys(one for one, _ in found))
    if not found:
        known = [key for collections in places.values() for here in collections for key in here.keys()]  # noqa: SIM118
        what = next(iter(places)) if len(places) == 1 else "tool, prompt or resource"
        raise ConfigError(f"{asked}: there is no {what} {name!r}{did_you_mean(str(name), known)}")
    if len(kinds) > 1:
        which = " and ".join(f"a {one}" for one in kinds)
        raise ConfigError(f"{asked}: {name!r} is {which}; say which: kind={kinds[0]!r}")
    return [(here, name) for _, here in found]


def _tagged(tag: str, places: Places, asked: str) -> list[Found]:
    everywhere = [here for collections in places.values() for here in collections]
    found = [(here, key) for here in everywhere for key in here.tagged(tag)]
    if not found:
        known = {word for here in everywhere for word in here.tags()}
        raise ConfigError(f"{asked}: nothing has the tag {tag!r}{did_you_mean(tag, sorted(known))}")
    return found
