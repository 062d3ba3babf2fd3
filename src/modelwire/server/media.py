"""What people return from tools, prompts and resources besides plain values: text, images, sounds, links, resources.

Each name makes a content block of the protocol (`Image(...)` is an `ImageContent`), so that it may stand wherever a
block may. What it is given is checked here, once: the protocol's own types hold whatever they are given.
"""

from __future__ import annotations

import base64
import functools
import inspect
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, get_type_hints

import msgspec

from modelwire.errors import ConfigError
from modelwire.protocol import faults
from modelwire.protocol import types as t
from modelwire.server import media_data, media_types

if TYPE_CHECKING:
    from typing import Self

Bytes: TypeAlias = bytes | bytearray | memoryview


class SavesImage(Protocol):
    """A picture as Pillow has it."""

    def save(self, fp: Any, format: str | None = ..., /) -> Any:
        """Write the picture."""


class SavesFigure(Protocol):
    """A figure as matplotlib has it."""

    def savefig(self, fname: Any, /, *, format: Any = ...) -> Any:
        """Write the figure."""


class BlockMaker(type):
    """The class of names that make a block of the protocol when they are called.

    Structs may have no ``__init__``, so the name is no subclass; to ``isinstance`` it is the block's class all the
    same.
    """

    block: type[msgspec.Struct]
    make: Callable[..., Any]
    __signature__: inspect.Signature

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.block)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        takes = cls.__signature__
        try:
            given = takes.bind(*args, **kwargs)
        except TypeError as error:
            reads = "path" in kwargs and hasattr(cls, "from_path")
            hint = f"{cls.__name__}.from_path(...) reads a file" if reads else f"it takes {', '.join(takes.parameters)}"
            raise ConfigError(f"{cls.__name__}: {error}; {hint}") from None
        for name, value in given.arguments.items():
            if name != "data":  # which may be many things
                given.arguments[name] = _checked(cls, name, value)
        return cls.make(*given.args, **given.kwargs)


def _checked(cls: BlockMaker, name: str, value: Any) -> Any:
    """Return a value as the block's field of that name holds it; annotations may be a dict.

    Raises:
        ConfigError: The message names the field.
    """
    hint = _hints(cls.block).get(name, _OWN_HINTS.get(name))
    optional = cls.__signature__.parameters[name].default is None
    if hint is None or (value is None and optional):
        return value
    where = f"{cls.__name__}: {name}"
    try:
        value = msgspec.convert(value, hint | None if optional else hint)
    except msgspec.ValidationError as error:
        raise ConfigError(faults.read_fault(error, where)) from None
    if name == "uri" and ":" not in value:
        raise ConfigError(f'{where} must be a URI such as "docs://a", not {value!r:.60}')
    if name == "name" and not value:
        raise ConfigError(f"{where} must not be empty")
    if name == "size" and value < 0:
        raise ConfigError(f"{where} must not be negative")
    if name == "mime_type" and not (media_types.is_type(value) or hasattr(cls, "from_path")):
        raise ConfigError(f'{where} must be like "text/plain", not {value!r:.60}')
    return value


_OWN_HINTS: dict[str, Any] = {"uri": str, "text": str, "mime_type": str}
"""Of what an `EmbeddedResource` is made of, which is in its contents."""


@functools.cache
def _hints(block: type[msgspec.Struct]) -> dict[str, Any]:
    return get_type_hints(block)


if TYPE_CHECKING:
    _TextBlock, _ImageBlock, _AudioBlock = t.TextContent, t.ImageContent, t.AudioContent
    _LinkBlock, _ResourceBlock = t.ResourceLink, t.EmbeddedResource
else:

    def _maker(block, make):
        parameters = inspect.signature(make)
        return BlockMaker("_Block", (), {"block": block, "make": staticmethod(make), "__signature__": parameters})

    def _from_data(family, block):
        def make(data, mime_type=None, *, annotations=None, meta=None):
            encoded, kind = media_data.encoded(family, data, mime_type)
            return block(encoded, kind, annotations=annotations, meta=meta)

        return _maker(block, make)

    def _embedded(uri, text=None, *, data=None, mime_type=None, annotations=None, meta=None):
        return t.EmbeddedResource(_contents(uri, text, data, mime_type), annotations=annotations, meta=meta)

    _TextBlock = _maker(t.TextContent, t.TextContent)
    _ImageBlock = _from_data("image", t.ImageContent)
    _AudioBlock = _from_data("audio", t.AudioContent)
    _LinkBlock = _maker(t.ResourceLink, t.ResourceLink)
    _ResourceBlock = _maker(t.EmbeddedResource, _embedded)


class _FromPath:
    """What is made of the bytes of a file, and of the file."""

    _family: ClassVar[str]

    @classmethod
    def from_path(
        cls,
        path: str | PathLike[str],
        mime_type: str | None = None,
        *,
        annotations: t.Annotations | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Self:
        """Read it from a file, at once.

        Args:
            path: The file.
            mime_type: Its media type; by default found out from the bytes, else from the file's suffix.
            annotations: For whom it is, how much it matters.
            meta: Its ``_meta``.

        Raises:
            ConfigError: It is of no kind that is recognised, and no ``mime_type`` is given; or it is something else.
            OSError: The file cannot be read.
        """
        data, kind = media_data.read(cls._family, path, mime_type)
        make: Any = cls
        return make(data, kind, annotations=annotations, meta=meta)


class Text(_TextBlock):
    """Text; for a list of several kinds, or for text with annotations. It makes a `TextContent`."""


class ResourceLink(_LinkBlock):
    """A pointer to a resource that the reader may want. It makes a `ResourceLink` of the protocol."""


class Image(_ImageBlock, _FromPath):
    """An image, for tools, prompts and resources to return. It makes an `ImageContent`.

    Args:
        data: The bytes of an image file; the same in base64, a ``data:`` URL or the source of an SVG as a string; an
            image of Pillow; a figure of matplotlib.
        mime_type: Its media type, such as ``"image/png"``; by default found out from the bytes. Pictures of Pillow
            and matplotlib are written in this format; by default in their own where models take it, else as PNG.
        annotations: For whom it is, how much it matters.
        meta: Its ``_meta``.

    Raises:
        ConfigError: It is no image of a kind that is recognised, and no ``mime_type`` is given; or it is another one.
    """

    _family = "image"

    if TYPE_CHECKING:

        def __init__(
            self,
            data: Bytes | str | SavesImage | SavesFigure,
            mime_type: str | None = None,
            *,
            annotations: t.Annotations | None = None,
            meta: dict[str, Any] | None = None,
        ) -> None: ...


class Audio(_AudioBlock, _FromPath):
    """A sound, for tools and prompts to return. It makes an `AudioContent`.

    Args:
        data: The bytes of a sound file; the same in base64 or a ``data:`` URL as a string.
        mime_type: Its media type, such as ``"audio/wav"``; by default found out from the bytes.
        annotations: For whom it is, how much it matters.
        meta: Its ``_meta``.

    Raises:
        ConfigError: It is no sound of a kind that is recognised, and no ``mime_type`` is given.
    """

    _family = "audio"

    if TYPE_CHECKING:

        def __init__(
            self,
            data: Bytes | str,
            mime_type: str | None = None,
            *,
            annotations: t.Annotations | None = None,
            meta: dict[str, Any] | None = None,
        ) -> None: ...


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


MAKERS: tuple[type, ...] = (Text, Image, Audio, ResourceLink, EmbeddedResource)
"""The names here that are no class of the protocol, but may annotate what is returned."""


def _contents(uri: str, text: str | None, data: Any, mime_type: str | None) -> Any:
    if (text is None) == (data is None):
        raise ConfigError(f"the embedded resource {uri!r} holds either text or data; pass one of them")
    if text is not None:
        return t.TextResourceContents(uri, text, mime_type=mime_type or "text/plain")
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ConfigError(f"data of {uri!r} must be bytes, not a {type(data).__name__}; text goes as text=")
    held = bytes(data)  # pyright: ignore[reportUnknownArgumentType]
    kind = mime_type or media_types.sniffed(held) or "application/octet-stream"
    return t.BlobResourceContents(uri, base64.b64encode(held).decode(), mime_type=kind)
