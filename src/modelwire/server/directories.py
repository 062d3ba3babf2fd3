"""Files as resources: a single file, and everything below a directory.

Each knows which URIs it has, what a list says of them, and how one is read; all of it waits for a disk, and belongs in
a thread. Who lists and who asks is for `modelwire.server.file_lists`.
"""

from __future__ import annotations

import base64
import os
import re
import stat
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote_from_bytes, unquote_to_bytes

from msgspec.structs import replace

from modelwire.errors import ConfigError, RpcError
from modelwire.log import log as _log
from modelwire.protocol import types as t
from modelwire.server import media_types
from modelwire.server.caching import Caching
from modelwire.server.file_types import is_text, media_type
from modelwire.server.files import (
    MAX_DEPTH,
    Names,
    NotServed,
    is_hidden,
    open_below,
    open_regular,
    read_all,
    walk,
)
from modelwire.server.globs import Glob
from modelwire.server.limits import oversized

_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*", re.ASCII)
_PATH = re.compile(r"(?:[^%?#\x00-\x1f\x7f\ud800-\udfff]|%[0-9A-Fa-f]{2})*", re.ASCII)
_REMEDY = "all can be read. Narrow the pattern, or raise max_files"
_LOOKED_AT = 20
"""How many files are looked at for each one that may be listed."""


class Source(Protocol):
    """Something whose resources change without anybody registering them.

    Attributes:
        key: What it was registered under.
        caching: How clients may keep what they read.
    """

    key: str
    caching: Caching

    def scan(self) -> dict[str, t.Resource]:
        """Return what a list says at this moment, by URI."""
        ...

    def own(self, uri: str) -> str | None:
        """Return a URI of its kind as its lists write it, None for another's; if there is something, `read` finds out.

        A file has one URI in lists, and as many as percent-encoding allows in requests.
        """
        ...

    def read(self, uri: str, limit: int | None) -> t.ReadResourceResult:
        """Read a resource.

        Raises:
            NotServed: There is none.
            RpcError: It is larger than the limit, in bytes.
        """
        ...


class SingleFile:
    """One file under one URI.

    Args:
        resource: What a list says of it, without size and time.
        path: The file.
        caching: How clients may keep it.

    Raises:
        ConfigError: There is no such file.
    """

    def __init__(self, resource: t.Resource, path: Path, caching: Caching) -> None:
        self.key = resource.uri
        self.caching = caching
        self._path = path.absolute()
        self._resource = resource
        try:
            os.close(open_regular(path))
        except (OSError, NotServed) as error:
            reason = error.__cause__ or error
            told = f": {reason.strerror}" if isinstance(reason, OSError) else ", or no regular file"
            raise ConfigError(f"resource {resource.uri!r}: there is no file {str(path)!r} to read{told}") from None

    def scan(self) -> dict[str, t.Resource]:
        """Return the file with its size and time; nothing while there is none."""
        try:
            status = self._path.stat()
        except OSError:
            return {}
        return {self.key: _described(self._resource, status)} if stat.S_ISREG(status.st_mode) else {}

    def own(self, uri: str) -> str | None:
        """Return the file's URI, if it is this."""
        return uri if uri == self.key else None

    def read(self, uri: str, limit: int | None) -> t.ReadResourceResult:
        """Read the file anew."""
        return _read(open_regular(self._path), uri, self._resource.mime_type, limit)


class Directory:
    """Every file below a directory, each under a URI of its own.

    Args:
        prefix: What the URIs begin with.
        path: The directory; links on the way to it are followed, also when they come to lead elsewhere later.
        pattern: Which files, as for `Glob`.
        hidden: Also those whose names, or whose folders' names, begin with a dot.
        max_files: How many are listed; all can be read.
        template: What a list says of each besides name, type, size and time.
        caching: How clients may keep each.

    Raises:
        ConfigError: There is no such directory, or the prefix is no beginning of a URI.
    """

    def __init__(
        self,
        prefix: str,
        path: Path,
        *,
        pattern: str,
        hidden: bool,
        max_files: int,
        template: t.Resource,
        caching: Caching,
    ) -> None:
        if not _PREFIX.fullmatch(prefix):
            raise ConfigError(
                f"{prefix!r} is no beginning of a URI, which is like 'docs://' or 'file:///srv/docs/'; "
                "what is no ASCII letter there is percent-encoded"
            )
        if max_files < 1:
            raise ConfigError(f"max_files must be at least 1, not {max_files}")
        self.key = prefix
        self.caching = caching
        self.path = path.absolute()
        self._stem = prefix if prefix.endswith(("/", ":")) else prefix + "/"
        self._glob = Glob(pattern)
        self._depth = MAX_DEPTH if self._glob.depth is None else min(self._glob.depth, MAX_DEPTH)
        self._hidden = hidden
        self._max_files = max_files
        self._template = template
        self._told = ""
        try:
            os.scandir(path).close()
        except OSError as error:
            raise ConfigError(f"{prefix!r}: {str(path)!r} is no directory to read: {error.strerror}") from None

    def serves(self, names: Sequence[str]) -> bool:
        """Say whether a file of these names below the directory would be served."""
        return (self._hidden or not is_hidden(names)) and self._glob.matches(names)

    def may_hold(self, names: Sequence[str]) -> bool:
        """Say whether a folder of these names may hold files that are served."""
        return self._hidden or not is_hidden(names)

    def uri(self, names: Sequence[str]) -> str:
        """Return the URI of a file; what RFC 3986 does not call unreserved is percent-encoded."""
        return self._stem + "/".join(quote_from_bytes(os.fsencode(name), safe="") for name in names)

    def scan(self) -> dict[str, t.Resource]:
        """Return the files that are there now."""
        found: dict[str, t.Resource] = {}
        fault = ""
        try:
            for seen, (names, status) in enumerate(walk(self.path, hidden=self._hidden, depth=self._depth)):
                fits = self._glob.matches(names)
                if (fits and len(found) == self._max_files) or seen == self._max_files * _LOOKED_AT:
                    fault = f"has more files than the {len(found)} that are listed; {_REMEDY}"
                    break
                if fits:
                    uri = self.uri(names)
                    found[uri] = _described(self._resource(uri, names), status)
        except OSError as error:
            fault = f"cannot be read, and nothing in it is listed: {error.strerror}"
        self._tell(fault)
        return found

    def own(self, uri: str) -> str | None:
        """Return the URI, as lists write it, of the file that would be served under this one."""
        names = self._names(uri)
        return self.uri(names) if names is not None and self.serves(names) else None

    def read(self, uri: str, limit: int | None) -> t.ReadResourceResult:
        """Read a file, whether it was listed or not."""
        names = self._names(uri)
        if names is None or not self.serves(names):
            raise NotServed
        try:
            descriptor = open_below(self.path, names, hidden=self._hidden)
        except NotServed as error:
            if isinstance(error.__cause__, PermissionError):
                _log.warning("resource %r cannot be read: permission denied", uri)
            raise
        return _read(descriptor, uri, self._resource(uri, names).mime_type, limit)

    def _names(self, uri: str) -> Names | None:
        """Return the names that a URI stands for, each decoded once; None when it can stand for no file here.

        Bytes are compared, as the file system does it: an overlong form of a dot or a slash is just another name.
        """
        if not uri.startswith(self._stem):
            return None
        path = uri[len(self._stem) :]
        if not _PATH.fullmatch(path):
            return None
        names = [unquote_to_bytes(segment) for segment in path.split("/")]
        if any(name in (b"", b".", b"..") or b"/" in name or b"\0" in name for name in names):
            return None
        return tuple(os.fsdecode(name) for name in names)

    def _resource(self, uri: str, names: Names) -> t.Resource:
        name = written(names[-1])
        return replace(self._template, uri=uri, name=name, mime_type=self._template.mime_type or media_type(name))

    def _tell(self, fault: str) -> None:
        """Write to the log what is wrong, once."""
        if fault and fault != self._told:
            _log.warning("the directory %r of %r %s", str(self.path), self.key, fault)
        self._told = fault


def written(name: str) -> str:
    """Return the name of a file as text; bytes in it that are no UTF-8 are replaced."""
    return os.fsencode(name).decode("utf-8", "replace")


def _described(resource: t.Resource, status: os.stat_result) -> t.Resource:
    return replace(
        resource,
        size=status.st_size,
        annotations=replace(resource.annotations or t.Annotations(), last_modified=_time(status.st_mtime)),
    )


def _time(seconds: float) -> str | None:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return None  # a file system may hold times that no calendar has


def _read(descriptor: int, uri: str, kind: str | None, limit: int | None) -> t.ReadResourceResult:
    """Read a file to its end and close it; one that is too large is not read at all."""
    try:
        size = os.fstat(descriptor).st_size
        if limit is not None and size > limit:
            raise _oversized(uri, size, limit)
        data = read_all(descriptor, limit)
        if limit is not None and len(data) > limit:  # it grows, or does not tell its size, as those of /proc
            raise _oversized(uri, max(len(data), os.fstat(descriptor).st_size), limit)
    finally:
        os.close(descriptor)
    return t.ReadResourceResult([_contents(uri, data, kind)])


def _oversized(uri: str, size: int, limit: int) -> RpcError:
    return oversized(f"resource {uri!r}", size, limit)


def _contents(uri: str, data: bytes, kind: str | None) -> Any:
    """Text where the file is text in UTF-8, else a blob; a file of no known type is text where it looks like it."""
    if kind is None or is_text(kind):
        try:
            if kind is not None or b"\0" not in data:
                return t.TextResourceContents(uri, data.decode("utf-8"), mime_type=kind or "text/plain")
        except UnicodeDecodeError:
            pass
    kind = kind or media_types.sniffed(data) or "application/octet-stream"
    return t.BlobResourceContents(uri, base64.b64encode(data).decode(), mime_type=kind)
