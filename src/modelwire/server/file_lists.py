"""`FileLists`: keeps the list of resources true to what is on the disk, and finds who reads a URI.

A list is made anew for every ``resources/list`` that begins one: the disk is looked at in a thread, and what came, went
or changed is put into the registry, which keeps places, pages and encoded pages as for every other resource. The pages
that follow are those of the same look.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable

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
        return True

    def switch(self, keys: Iterable[str], on: bool) -> bool:
        """Switch files and directories on or off, and with them everything that they list."""
        switched = set(keys)
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
        if uri in self._fixed and not self._fixed.shows(call)(uri):
            return None
        sources = [source for source in self.visible(call).values() if source.covers(uri)]
        if not sources:
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
        """Put into the registry what a look has found, unless a later one was faster."""
        if number <= self._applied:
            return set()
        self._applied = number
        found: dict[str, t.Resource] = {}
        owners: dict[str, str] = {}
        for source, resources in look:
            if source.key in self:
                owners |= {uri: source.key for uri in resources if uri not in found}
                found |= {uri: resource for uri, resource in resources.items() if uri not in found}
        mine = {uri: found[uri] for uri in found if uri in self._listed or uri not in self._fixed}
        gone = self._listed.keys() - mine.keys()
        new = {uri: resource for uri, resource in mine.items() if self._listed.get(uri) != resource}
        came_or_went = gone | (mine.keys() - self._listed.keys())
        self._listed, self._owners = mine, {uri: owners[uri] for uri in mine}
        if gone or new:
            seen = {uri: seen for uri in new if (seen := self.seen(owners[uri])) is not None}
            self._fixed.replace(gone, {uri: ResourceEntry(resource, None) for uri, resource in new.items()}, seen)
            # Another thread may have switched one off meanwhile, which did not know of these files.
            self.switch([key for key in set(owners.values()) if not self.shows(None)(key)], on=False)
        return came_or_went


def _first(sources: list[Source], uri: str, limit: int | None) -> t.ReadResourceResult | None:
    for source in sources:
        with contextlib.suppress(NotServed):
            return source.read(uri, limit)
    return None
