"""Hears, by the library `watchdog`, which files below a directory change, and has clients told.

The library only says where to look: what came and went is found out by looking at the disk, as for every list. Changes
are gathered for a moment, so that a file that is written in many pieces, or a thousand files at once, is told of once.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from modelwire.errors import ConfigError
from modelwire.log import log as _log
from modelwire.server.directories import Directory
from modelwire.server.files import Names
from modelwire.server.functions import run_sync
from modelwire.server.workers import WorkerPool

GATHERING = 0.1
"""Seconds that changes are gathered for before clients are told."""

Hear = Callable[[Names, bool, bool], None]
"""Called, in any thread, with the names below the directory, whether it is a folder, and whether it came or went."""


def require() -> None:
    """See that the library is installed.

    Raises:
        ConfigError: It is not.
    """
    try:
        import watchdog.observers  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError:
        raise ConfigError(
            'watch=True needs the library watchdog, which is not installed: pip install "modelwire[watch]"'
        ) from None


class Watch:
    """Follows a directory while an ``async with`` block runs.

    Where the system can follow no more directories, the log says so, and lists are true all the same.

    Args:
        directory: The directory.
        refresh: Looks at the disk; returns the URIs of what came and went.
        changed: Tells clients that the resource of a URI changed.
    """

    def __init__(
        self,
        directory: Directory,
        *,
        refresh: Callable[[], Awaitable[set[str]]],
        changed: Callable[[str], None],
    ) -> None:
        self._directory = directory
        self._refresh = refresh
        self._changed = changed
        self._pool = WorkerPool(1)
        """A thread to begin and to end in, which must not wait for functions that hold the server's."""
        self._heard = asyncio.Event()
        self._uris: set[str] = set()
        self._look = False
        """Whether something came or went since the last look."""
        self._stop: Callable[[], None] = lambda: None
        self._following: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        loop = asyncio.get_running_loop()

        def hear(names: Names, is_folder: bool, came_or_went: bool) -> None:
            try:
                loop.call_soon_threadsafe(self._note, names, is_folder, came_or_went)
            except RuntimeError:
                return  # the loop is gone, and so is whoever listened

        try:
            self._stop = await run_sync(lambda: _observed(self._directory.path, hear), self._pool)
        except OSError as error:
            _log.error(
                "the directory %r is not watched: %s. Clients are not told of changes (on Linux, "
                "fs.inotify.max_user_watches says how many folders may be watched)",
                str(self._directory.path),
                error.strerror or error,
            )
        self._following = asyncio.create_task(self._follow())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])
        await run_sync(self._stop, self._pool)
        self._pool.shutdown()

    def _note(self, names: Names, is_folder: bool, came_or_went: bool) -> None:
        if is_folder:
            self._look = self._look or self._directory.may_hold(names)
        elif self._directory.serves(names):
            self._uris.add(self._directory.uri(names))
            self._look = self._look or came_or_went
        if self._look or self._uris:
            self._heard.set()

    async def _follow(self) -> None:
        while True:
            await self._heard.wait()
            await asyncio.sleep(GATHERING)
            self._heard.clear()
            uris, self._uris = self._uris, set()
            look, self._look = self._look, False
            try:
                if look:
                    uris |= await self._refresh()
                for uri in uris:
                    self._changed(uri)
            except Exception:
                _log.exception("clients were not told of a change below %r", str(self._directory.path))


def _observed(path: Path, hear: Hear) -> Callable[[], None]:
    """Begin to watch a directory; return what ends it."""
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers import Observer

    root = os.path.realpath(path)

    class Handler(FileSystemEventHandler):
        def on_any_event(self, event: FileSystemEvent) -> None:
            kind = event.event_type
            if kind not in ("created", "deleted", "moved", "modified") or (kind == "modified" and event.is_directory):
                return  # reading is no change, and a folder changes by what is in it
            for place in (event.src_path, event.dest_path):
                if place and (names := _names(root, os.fsdecode(place))) is not None:
                    hear(names, event.is_directory, kind != "modified")

    observer: Any = Observer()
    observer.schedule(Handler(), root, recursive=True)
    observer.start()

    def stop() -> None:
        observer.stop()
        observer.join()

    return stop


def _names(root: str, place: str) -> Names | None:
    """Return the names of a path below the root; None for one that is elsewhere."""
    inside = os.path.relpath(place, root)
    names = () if inside == os.curdir else tuple(inside.split(os.sep))
    return None if os.pardir in names else names
