"""`FileLists`: keeps the list of resources true to what is on the disk, and finds who reads a URI.

A list is made anew for every ``resources/list`` that begins one: the disk is looked at in a thread, and what came, went
or changed is put into the registry, which keeps places, pages and encoded pages as for every other resource. The pages
that follow are those of the same look.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Container, Iterable
from dataclasses import replace

from modelwire.errors import ConfigError
from modelwire.protocol import types as t
from modelwire.rpc.call import Call
from modelwire.server.collection import Collection
from modelwire.server.directories import Directory, Source
from modelwire.server.files import NotServed
from modelwire.server.functions import run_sync
from modelwire.server.registry import Registry
from modelwire.server.resources import ResourceEntry, guarded
from modelwire.server.visibility import Visibility
from modelwire.server.watching import Watch
from modelwire.server.workers import WorkerPool

Look = list[tuple[Source, dict[str, t.Resource]]]
"""What each source had, by URI."""


class FileLists(Collection[Source]):
    """The files and directories of a server, by their URIs and prefixes.

    Args:
        fixed: Where resources of one URI each are listed.
        pool: The threads that the disk is looked at in.
    """

    def __init__(self, fixed: Registry[ResourceEntry], pool: WorkerPool) -> None:
        super().__init__("resource")
        self._fixed = fixed
        self._pool = pool
        self._listed: dict[str, t.Resource] = {}
        self._owners: dict[str, str] = {}
        """Which source has listed which URI."""
        self._looking = threading.Lock()
        self._off: dict[str, str] = {}
        """The same of those that are gone and were switched off by themselves, as they shall be if they come back."""
        self._applying = threading.Lock()
        self._begun = 0
        self._last: tuple[int, Look] = (0, [])
        self._applied = 0

    def take(self, source: Source, seen: Visibility) -> None:
        """Register a file or a directory, and look at it.

        Args:
            source: The file or directory.
            seen: For whom it is there, and each of its files.

        Raises:
            ConfigError: There is one already under that URI or prefix.
        """
        if source.key in self._fixed:
            raise ConfigError(f"there is already a resource {source.key!r}; remove it first, or choose another name")
        self.add(source.key, source, seen)
        self._apply(*self._look(self._begun))

    def forget(self, key: str) -> bool:
        """Forget a file or a directory; false when there is none under that URI or prefix.

        Raises:
            ConfigError: It is the URI of a file in a directory.
        """
        if key not in self:
            if key in self._listed:
                raise ConfigError(f"{key!r} is a file of a directory; remove the directory, by the prefix of its URIs")
            return False
        self.remove(key)
        self._apply(*self._look(self._begun))
        self._forget_off({key})
        return True

    def switch(self, keys: Iterable[str], on: bool) -> bool:
        """Switch files and directories on or off, and with them everything that they list."""
        switched = set(keys)
        self._forget_off(switched)
        changed = super().switch(switched, on)
        return self._fixed.switch([uri for uri, key in self._owners.items() if key in switched], on) or changed

    def watching(self, directory: Directory, changed: Callable[[str], None]) -> Watch:
        """Return an ``async with`` block during which clients are told of what changes below a directory.

        Args:
            directory: The directory.
            changed: Tells clients that the resource of a URI changed.
        """

        def tell(uri: str) -> None:
            if self.get(directory.key) is directory:  # it may have been removed
                changed(uri)

        return Watch(directory, refresh=self.refresh, changed=tell)

    async def refresh(self) -> set[str]:
        """See that the list is that of the disk; return the URIs of what came and went."""
        known = self._begun
        return self._apply(*await run_sync(lambda: self._look(known), self._pool))

    async def read(self, call: Call, uri: str, limit: int | None) -> t.ReadResourceResult | None:
        """Read a file, whether it was listed or not; None when there is none for whoever calls.

        Raises:
            RpcError: It is larger than the limit, in bytes.
        """
        shown = self._fixed.shows(call)

        def offers(source: Source) -> bool:
            own = source.own(uri)  # hidden under one spelling, hidden under each
            return own is not None and own not in self._off and (own not in self._fixed or shown(own))

        sources = [source for source in self.visible(call).values() if offers(source)]
        if not sources or (uri in self._fixed and not shown(uri)):
            return None
        return await guarded(call, f"resource {uri!r}", run_sync(lambda: _first(sources, uri, limit), self._pool))

    def _look(self, known: int) -> tuple[int, Look]:
        """Look at the disk, unless somebody has done so who began later than the look number ``known``.

        Returns:
            The number of the look, and what was found.
        """
        with self._looking:
            if self._last[0] <= known:
                self._begun += 1
                self._last = (self._begun, [(source, source.scan()) for source in self])
            return self._last

    def _apply(self, number: int, look: Look) -> set[str]:
        """Put into the registry what a look has found, unless a later one was faster; return what came and went."""
        with self._applying:
            if number <= self._applied:
                return set()
            self._applied = number
            return self._put_in(look)

    def _put_in(self, look: Look) -> set[str]:
        found: dict[str, t.Resource] = {}
        owners: dict[str, str] = {}
        for source, resources in look:
            if source.key in self:
                owners |= {uri: source.key for uri in resources if uri not in found}
                found |= {uri: resource for uri, resource in resources.items() if uri not in found}
        mine = {uri: found[uri] for uri in found if uri in self._listed or uri not in self._fixed}
        gone = self._listed.keys() - mine.keys()
        # What another source has now is there for whom that source is.
        moved = {uri for uri in mine.keys() & self._owners.keys() if owners[uri] != self._owners[uri]}
        new = {uri: item for uri, item in mine.items() if uri in moved or self._listed.get(uri) != item}
        came_or_went = gone | (mine.keys() - self._listed.keys())
        seen = {uri: self._seen_as(uri, owners[uri]) for uri in new}
        self._note_off(gone, mine)
        self._listed, self._owners = mine, {uri: owners[uri] for uri in mine}
        if gone or new:
            items = {uri: ResourceEntry(resource, None) for uri, resource in new.items()}
            self._fixed.replace(gone | moved, items, seen)
            # Another thread may have switched one off meanwhile, which did not know of these files.
            self.switch([key for key in set(owners.values()) if not self.shows(None)(key)], on=False)
        return came_or_went

    def _seen_as(self, uri: str, key: str) -> Visibility:
        """For whom a file is there, that a source has now."""
        seen = self.seen(key) or Visibility(on=False)
        return replace(seen, on=False) if self._off.get(uri) == key else seen

    def _note_off(self, gone: Iterable[str], there: Container[str]) -> None:
        """Remember which files were switched off when they went; forget it of those that are back."""
        kept = {uri: key for uri, key in self._off.items() if uri not in there}
        off = {uri: self._owners[uri] for uri in gone if (seen := self._fixed.seen(uri)) is not None and not seen.on}
        self._off = {**kept, **off}

    def _forget_off(self, keys: Container[str]) -> None:
        """Forget it of the files of sources that are switched as a whole, or removed."""
        self._off = {uri: key for uri, key in self._off.items() if key not in keys}


def _first(sources: list[Source], uri: str, limit: int | None) -> t.ReadResourceResult | None:
    for source in sources:
        with contextlib.suppress(NotServed):
            return source.caching.stamp(source.read(uri, limit))
    return None
