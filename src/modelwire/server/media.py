"""What people return from tools, prompts and resources besides plain values: text, images, sounds, links, resources.

Each name makes a content block of the protocol (`Image(...)` is an `ImageContent`), so that it may stand wherever a
block may. Pictures of other libraries are known by their methods; those libraries are never imported here.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from modelwire.errors import ConfigError
from modelwire.protocol import types as t
from modelwire.server import media_types

if TYPE_CHECKING:
    from typing import Self

Text = t.TextContent
"""Text; for a list of several kinds, or for text with annotations."""
ResourceLink = t.ResourceLink
"""A pointer to a resource that the reader may want."""

Bytes: TypeAlias = bytes | bytearray | memoryview

_DATA_URL = re.compile(r"data:(?P<kind>[^;,]+)(?:;[^;,]*)*;base64,(?P<data>.*)", re.DOTALL | re.IGNORECASE)


class SavesImage(Protocol):
    """A picture as Pillow has it."""

    def save(self, fp: Any, format: str | None = ..., /) -> Any:
        """Write the picture."""


class SavesFigure(Protocol):
    """A figure as matplotlib has it."""

    def savefig(self, fname: Any, /, *, format: Any = ...) -> Any:
        """Write the figure."""


class _MakesBlocks(type):
    """The class of names that make a block of the protocol when they are called.

    Structs may have no ``__init__``, so the name is no subclass; to ``isinstance`` it is the block's class all the
    same.
    """

    block: type

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.block)


if TYPE_CHECKING:
    _ImageBlock, _AudioBlock, _ResourceBlock = t.ImageContent, t.AudioContent, t.EmbeddedResource
else:

    class _ImageBlock(metaclass=_MakesBlocks):
        block = t.ImageContent

    class _AudioBlock(metaclass=_MakesBlocks):
        block = t.AudioContent

    class _ResourceBlock(metaclass=_MakesBlocks):
        block = t.EmbeddedResource


class Image(_ImageBlock):
    """An image, for tools, prompts and resources to return. It makes an `ImageContent`.

    Args:
        data: The bytes of an image file; the same in base64, a ``data:`` URL or the source of an SVG as a string; an
            image of Pillow; a figure of matplotlib.
        mime_type: Its media type, such as ``"image/png"``; by default found out from the bytes. Pictures of Pillow
            and matplotlib are written in this format; by default in their own where models take it, else as PNG.
        annotations: For whom it is, how much it matters.
        meta: Its ``_meta``.

    Raises:
        ConfigError: It is no image of a kind that is recognised, and no ``mime_type`` is given.
    """

    if TYPE_CHECKING:

        def __init__(
            self,
            data: Bytes | str | SavesImage | SavesFigure,
            mime_type: str | None = None,
            *,
            annotations: t.Annotations | None = None,
            meta: dict[str, Any] | None = None,
        ) -> None: ...

    else:

        def __new__(cls, data, mime_type=None, *, annotations=None, meta=None):
            _check_type("image", mime_type)
            encoded, kind = _image(data, mime_type)
            return t.ImageContent(encoded, kind, annotations=annotations, meta=meta)

    @classmethod
    def from_path(
        cls,
        path: str | PathLike[str],
        mime_type: str | None = None,
        *,
        annotations: t.Annotations | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Self:
        """Read an image from a file, at once.

        Args:
            path: The file.
            mime_type: Its media type; by default found out from the bytes, else from the file's suffix.
            annotations: As for `Image`.
            meta: As for `Image`.

        Raises:
            ConfigError: It is no image of a kind that is recognised, and no ``mime_type`` is given.
            OSError: The file cannot be read.
        """
        data, kind = _read("image", path, mime_type)
        return cls(data, kind, annotations=annotations, meta=meta)


class Audio(_AudioBlock):
    """A sound, for tools and prompts to return. It makes an `AudioContent`.

    Args:
        data: The bytes of a sound file; the same in base64 or a ``data:`` URL as a string.
        mime_type: Its media type, such as ``"audio/wav"``; by default found out from the bytes.
        annotations: For whom it is, how much it matters.
        meta: Its ``_meta``.

    Raises:
        ConfigError: It is no sound of a kind that is recognised, and no ``mime_type`` is given.
    """

    if TYPE_CHECKING:

        def __init__(
            self,
            data: Bytes | str,
            mime_type: str | None = None,
            *,
            annotations: t.Annotations | None = None,
            meta: dict[str, Any] | None = None,
        ) -> None: ...

    else:

        def __new__(cls, data, mime_type=None, *, annotations=None, meta=None):
            _check_type("audio", mime_type)
            encoded, kind = _encoded("audio", data, mime_type)
            return t.AudioContent(encoded, kind, annotations=annotations, meta=meta)

    @classmethod
    def from_path(
        cls,
        path: str | PathLike[str],
        mime_type: str | None = None,
        *,
        annotations: t.Annotations | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Self:
        """Read a sound from a file, at once.

        Args:
            path: The file.
            mime_type: Its media type; by default found out from the bytes, else from the file's suffix.
            annotations: As for `Audio`.
            meta: As for `Audio`.

        Raises:
            ConfigError: It is no sound of a kind that is recognised, and no ``mime_type`` is given.
            OSError: The file cannot be read.
        """
        data, kind = _read("audio", path, mime_type)
        return cls(data, kind, annotations=annotations, meta=meta)


class EmbeddedResource(_ResourceBlock):
    """A resource's contents inside a message. It makes an `EmbeddedResource` of the protocol.

    Args:
        uri: The resource's URI.
        text: What it holds, if that is text.
        data: What it holds, if that is bytes.
        mime_type: Its media type; by default ``text/plain``, or what the bytes of an image or a sound say.
        annotations: For whom it is, how much it matters.
        meta: Its ``_meta``.

    Raises:
        ConfigError: Neither text nor data is given, or both.
    """

    if TYPE_CHECKING:

        def __init__(
            self,
            uri: str,
            text: str | None = None,
            *,
            data: Bytes | None = None,
            mime_type: str | None = None,
            annotations: t.Annotations | None = None,
            meta: dict[str, Any] | None = None,
        ) -> None: ...

    else:

        def __new__(cls, uri, text=None, *, data=None, mime_type=None, annotations=None, meta=None):
            contents = _contents(uri, text, data, mime_type)
            return t.EmbeddedResource(contents, annotations=annotations, meta=meta)


MAKERS: tuple[type, ...] = (Image, Audio, EmbeddedResource)
"""The names here that are no class of the protocol, but may annotate what is returned."""


def _image(data: Any, mime_type: str | None) -> tuple[str, str]:
    save = getattr(data, "savefig", None) or getattr(data, "save", None)
    if save is not None:
        data = _saved(data, save, mime_type)
    elif isinstance(data, str) and media_types.sniffed(data.encode("utf-8", "replace")) == "image/svg+xml":
        data = data.encode("utf-8", "replace")
    return _encoded("image", data, mime_type)


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


def _encoded(family: str, data: Any, mime_type: str | None) -> tuple[str, str]:
    """The data in base64, and its media type."""
    if isinstance(data, str):
        url = _DATA_URL.fullmatch(data.strip())
        if url is not None:
            data, mime_type = url["data"], mime_type or url["kind"].strip().lower()
            _check_type(family, mime_type)
        data = _decoded(family, data)
    if not isinstance(data, bytes | bytearray | memoryview):
        hint = f"{family.capitalize()}.from_path(...) reads a file" if hasattr(data, "__fspath__") else "pass its bytes"
        raise ConfigError(f"this {type(data).__name__} is no {family} data; {hint}")
    written = bytes(data)  # pyright: ignore[reportUnknownArgumentType]
    return base64.b64encode(written).decode(), mime_type or _recognised(family, written)


def _decoded(family: str, text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        shown = text if len(text) <= 60 else text[:60] + "..."
        raise ConfigError(
            f"the string {shown!r} is no base64; {family.capitalize()}.from_path(...) reads a file"
        ) from None


def _recognised(family: str, data: bytes) -> str:
    found = media_types.sniffed(data)
    if found is None:
        what = "there are no bytes" if not data else f"the bytes begin like no known {family}"
        raise ConfigError(f'{what} ({media_types.recognised(family)}); pass mime_type="{family}/..."')
    if not found.startswith(family + "/"):
        other = found.partition("/")[0]
        raise ConfigError(f"the bytes are {found}, no {family}; use {other.capitalize()}(...)")
    return found


def _check_type(family: str, mime_type: str | None) -> None:
    if mime_type is not None and not mime_type.startswith(family + "/"):
        example = {"image": "image/png", "audio": "audio/wav"}[family]
        raise ConfigError(f'a mime_type of {family} data is like "{example}", not {mime_type!r}')


def _read(family: str, path: str | PathLike[str], mime_type: str | None) -> tuple[bytes, str]:
    file = Path(path)
    data = file.read_bytes()
    kind = mime_type or media_types.sniffed(data) or media_types.named(file)
    if kind is None:
        raise ConfigError(
            f"{file.name!r} is no known {family} ({media_types.recognised(family)}), neither by its first bytes nor by "
            f'its suffix; pass mime_type="{family}/..."'
        )
    if not kind.startswith(family + "/"):
        raise ConfigError(f"{file.name!r} is {kind}, no {family}")
    return data, kind


def _contents(uri: str, text: str | None, data: Bytes | None, mime_type: str | None) -> Any:
    if (text is None) == (data is None):
        raise ConfigError(f"the embedded resource {uri!r} holds either text or data; pass one of them")
    if text is not None:
        return t.TextResourceContents(uri, text, mime_type=mime_type or "text/plain")
    held = bytes(data or b"")
    kind = mime_type or media_types.sniffed(held) or "application/octet-stream"
    return t.BlobResourceContents(uri, base64.b64encode(held).decode(), mime_type=kind)
