"""`FileRegistration`: how files and directories become resources of a server.

The part of `modelwire.server.registration` that looks at no function.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from modelwire.protocol import types as t
from modelwire.server.caching import caching
from modelwire.server.directories import Directory, SingleFile, written
from modelwire.server.features import Features
from modelwire.server.file_types import media_type
from modelwire.server.options import Enabled
from modelwire.server.registry import refuse_unwritable
from modelwire.server.visibility import visibility
from modelwire.server.workers import WorkerPool


class FileRegistration:
    """What a `Server` can be given of the disk.

    Args:
        features: Where what is registered is kept.
        pool: The threads that the disk is looked at in.
    """

    def __init__(self, features: Features, pool: WorkerPool) -> None:
        self.features = features
        self._pool = pool

    def add_file(
        self,
        uri: str,
        path: str | PathLike[str],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        annotations: t.Annotations | None = None,
        icons: Sequence[t.Icon] | None = None,
        meta: dict[str, Any] | None = None,
        tags: Iterable[str] = (),
        enabled: Enabled = True,
        ttl: float | None = None,
        shared: bool = False,
    ) -> None:
        """Register a file as a resource, at any time; connected clients are told.

        It is read anew at each read, in a thread; the list has its size and when it changed. A file of text in UTF-8
        is text, any other one a blob. One that is gone is not listed, and not found.

        Args:
            uri: Its URI, kept verbatim.
            path: The file; links are followed.
            name: Its name; by default that of the file.
            title: A name for people.
            description: What it holds.
            mime_type: Its type; by default by the end of the file's name, or by its first bytes.
            annotations: For whom it is, how much it matters.
            icons: Images that may stand for it.
            meta: Its ``_meta``.
            tags: A set of words, by which `Registration.enable` and `disable` find it.
            enabled: For whom it is there, as for `Registration.tool`.
            ttl: Seconds for which clients may go by what they have read, as for `Registration.resource`.
            shared: Whether a gateway may tell others what it has read, likewise.

        Raises:
            ConfigError: There is no such file, or there is a resource of that URI already.

        Example:
            ```
            server.add_file("docs://readme", "README.md")
            ```
        """
        file = Path(path)
        resource = t.Resource(
            uri,
            name or written(file.name),
            title=title,
            description=description,
            mime_type=mime_type or media_type(file.name),
            annotations=annotations,
            icons=None if icons is None else list(icons),
            meta=meta,
        )
        refuse_unwritable(f"file {uri!r}", resource)
        what = f"file {uri!r}"
        seen = visibility(what, enabled, tags)
        kept = caching(what, ttl, shared, seen)
        self.features.add_files(SingleFile(resource, file, kept), self._pool, seen)

    def add_directory(
        self,
        uri: str,
        path: str | PathLike[str],
        *,
        pattern: str = "**/*",
        hidden: bool = False,
        watch: bool = False,
        max_files: int = 10_000,
        mime_type: str | None = None,
        annotations: t.Annotations | None = None,
        icons: Sequence[t.Icon] | None = None,
        meta: dict[str, Any] | None = None,
        tags: Iterable[str] = (),
        enabled: Enabled = True,
        ttl: float | None = None,
        shared: bool = False,
    ) -> None:
        """Register every file below a directory as a resource, at any time; connected clients are told.

        With ``docs://`` the file ``sub/my file.md`` is ``docs://sub/my%20file.md``. The list is made of what is there
        when it is asked for, and a file can be read as soon as it exists. Nothing outside the directory is ever read,
        whatever a URI or a link says; neither are devices and FIFOs, nor files above the server's ``max_result``.

        Args:
            uri: What the URIs begin with.
            path: The directory.
            pattern: Which files: ``*``, ``?`` and ``[...]`` within a name, ``**`` for any number of folders.
            hidden: Also files whose names, or whose folders' names, begin with a dot.
            watch: While serving, tell clients of files that come, go and change; for what is registered before the
                serving begins. Needs ``modelwire[watch]``.
            max_files: How many files are listed; more can be read, and the log says that there are more.
            mime_type: The type of all of them; by default each by the end of its name, or by its first bytes.
            annotations: For whom they are, how much they matter.
            icons: Images that may stand for each.
            meta: The ``_meta`` of each.
            tags: A set of words, by which `Registration.enable` and `disable` find all of them; so does the prefix.
            enabled: For whom they are there, as for `Registration.tool`.
            ttl: Seconds for which clients may go by what they have read, as for `Registration.resource`.
            shared: Whether a gateway may tell others what it has read, likewise.

        Raises:
            ConfigError: There is no such directory, the prefix or the pattern is malformed, there is a resource of that
                URI already, or what ``watch`` needs is not installed.

        Example:
            ```
            server.add_directory("docs://", "docs", pattern="**/*.md")
            ```
        """
        template = t.Resource(
            uri,
            "",
            mime_type=mime_type,
            annotations=annotations,
            icons=None if icons is None else list(icons),
            meta=meta,
        )
        refuse_unwritable(f"directory {uri!r}", template)
        what = f"directory {uri!r}"
        seen = visibility(what, enabled, tags)
        directory = Directory(
            uri,
            Path(path),
            pattern=pattern,
            hidden=hidden,
            max_files=max_files,
            template=template,
            caching=caching(what, ttl, shared, seen),
        )
        add = self.features.add_watched if watch else self.features.add_files
        add(directory, self._pool, seen)
