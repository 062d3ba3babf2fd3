"""Images and sounds on their way into content: which bytes they are, and of what media type.

Pictures of other libraries are known by their methods; those libraries are never imported here.
"""

from __future__ import annotations

import base64
import binascii
import io
import os
import re
from pathlib import Path
from typing import Any

from modelwire.errors import ConfigError
from modelwire.server import media_types

_DATA_URL = re.compile(r"data:(?P<kind>[^;,]+)(?:;[^;,]*)*;base64,(?P<data>.*)", re.DOTALL | re.IGNORECASE)
_EXAMPLES = {"image": "image/png", "audio": "audio/wav"}


def encoded(family: str, data: Any, mime_type: str | None) -> tuple[str, str]:
    """Return data in base64, and its media type.

    Args:
        family: ``image`` or ``audio``.
        data: Bytes, base64, a ``data:`` URL; of images also the source of an SVG, and what saves itself.
        mime_type: What it is said to be; None to find out.

    Raises:
        ConfigError: It is no such data, or not what it is said to be.
    """
    _check_type(family, mime_type)
    if family == "image":
        data = _drawn(data, mime_type)
    if isinstance(data, str):
        url = _DATA_URL.fullmatch(data.strip())
        if url is not None:
            data, mime_type = url["data"], mime_type or url["kind"].strip().lower()
            _check_type(family, mime_type)
        data = _decoded(family, data)
    if not isinstance(data, bytes | bytearray | memoryview):
        hint = f"{_maker(family)}.from_path(...) reads a file" if hasattr(data, "__fspath__") else "pass its bytes"
        raise ConfigError(f"this {type(data).__name__} is no {family} data; {hint}")
    written = bytes(data)  # pyright: ignore[reportUnknownArgumentType]
    return base64.b64encode(written).decode(), _recognised(family, written, mime_type)


def read(family: str, path: Any, mime_type: str | None) -> tuple[bytes, str]:
    """Return the bytes of a file, and their media type.

    Raises:
        ConfigError: It is no file of the family.
        OSError: It cannot be read.
    """
    if not (isinstance(path, str) or hasattr(path, "__fspath__")):
        raise ConfigError(f"{_maker(family)}.from_path(...) takes a path, not {path!r:.60}")
    file = Path(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        where = "" if file.is_absolute() else f" (the path is taken from {os.getcwd()!r})"
        raise type(error)(error.errno, f"{_maker(family)}.from_path: {error.strerror}{where}", str(path)) from None
    kind = mime_type or media_types.sniffed(data) or media_types.named(file)
    if kind is None:
        raise ConfigError(
            f"{file.name!r} is no known {family} ({media_types.recognised(family)}), neither by its first bytes nor by "
            f'its suffix; pass mime_type="{family}/..."'
        )
    if not kind.startswith(family + "/"):
        raise ConfigError(f"{file.name!r} is {kind}, no {family}")
    return data, kind


def _maker(family: str) -> str:
    return family.capitalize()


def _drawn(data: Any, mime_type: str | None) -> Any:
    """The bytes of what is a picture in another form."""
    save = getattr(data, "savefig", None) or getattr(data, "save", None)
    if save is not None:
        return _saved(data, save, mime_type)
    source = data.encode("utf-8", "replace") if isinstance(data, str) else b""
    return source if media_types.sniffed(source) == "image/svg+xml" else data


def _saved(picture: Any, save: Any, mime_type: str | None) -> bytes:
    """The file that another library writes for its picture."""
    if mime_type is None:
        own = str(getattr(picture, "format", None) or "").lower()
        kind = own if own in ("jpeg", "gif", "webp") else "png"
    else:
        kind = mime_type.partition("/")[2].partition("+")[0]
    buffer = io.BytesIO()
    try:
        save(buffer, format=kind)
    except Exception as error:
        raise ConfigError(
            f"this {type(picture).__name__} cannot be written as {kind}: {error}; pass another mime_type, or convert it"
        ) from error
    return buffer.getvalue()


def _decoded(family: str, text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        shown = text if len(text) <= 60 else text[:60] + "..."
        raise ConfigError(f"the string {shown!r} is no base64; {_maker(family)}.from_path(...) reads a file") from None


def _recognised(family: str, data: bytes, mime_type: str | None) -> str:
    found = media_types.sniffed(data)
    if found is None:
        if mime_type is not None:
            return mime_type
        what = "there are no bytes" if not data else f"the bytes begin like no known {family}"
        raise ConfigError(f'{what} ({media_types.recognised(family)}); pass mime_type="{family}/..."')
    if not found.startswith(family + "/"):
        other = found.partition("/")[0]
        raise ConfigError(f"the bytes are {found}, no {family}; use {_maker(other)}(...)")
    # Models refuse images that are not what they are said to be.
    if family == "image" and mime_type is not None and media_types.is_another(mime_type, found):
        raise ConfigError(f"the bytes are {found}, not {mime_type}; leave mime_type out")
    return mime_type or found


def _check_type(family: str, mime_type: str | None) -> None:
    if mime_type is not None and not (media_types.is_type(mime_type) and mime_type.lower().startswith(family + "/")):
        raise ConfigError(f'a mime_type of {family} data is like "{_EXAMPLES[family]}", not {mime_type!r}')
