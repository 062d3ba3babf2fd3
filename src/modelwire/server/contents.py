"""What handlers return, as the content that goes on the wire: blocks, resource contents, prompt messages.

This is the one table from Python values to content. It never calls anything and knows no revision; what a revision
cannot carry is mapped later, by `modelwire.protocol.wire`.
"""

from __future__ import annotations

import base64
import collections
import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.protocol.revisions import LATEST
from modelwire.server import media

BLOCKS: tuple[type, ...] = (
    t.TextContent,
    t.ImageContent,
    t.AudioContent,
    t.ResourceLink,
    t.EmbeddedResource,
    t.UnknownContent,
)
"""The classes that are content already."""

RETURNED: tuple[type, ...] = (*BLOCKS, *media.MAKERS)
"""What annotates a result that is content."""

_CONTENTS: tuple[type, ...] = (t.TextResourceContents, t.BlobResourceContents)
_HELD = (*BLOCKS, *_CONTENTS)


def blocks(value: Any, path: str = "result") -> list[Any]:
    """Return the content blocks for what a tool returned.

    None is no content, a string a text block, a block itself, resource contents an embedded resource. A list that holds
    a block, however deep in lists, is taken item by item; anything else is its JSON, in one text block.

    Args:
        value: What was returned.
        path: What to call it in messages.

    Raises:
        WireError: The value cannot be written as JSON.
    """
    if value is None:
        return []
    if is_content_list(value):
        places = ((f"{path}[{index}]", item) for index, item in enumerate(value))
        return [block for place, item in places for block in ([_block(item)] if item is None else blocks(item, place))]
    return [_block(value, path)]


def is_content_list(value: Any) -> bool:
    """Say whether a value is a list with a block in it, or in a list in it."""
    try:
        return isinstance(value, list | tuple | collections.deque) and any(
            isinstance(item, _HELD) or is_content_list(item)
            for item in value  # pyright: ignore[reportUnknownVariableType]
        )
    except RecursionError:
        return False  # it contains itself; writing it as JSON says so


def _block(value: Any, path: str = "result") -> Any:
    if isinstance(value, BLOCKS):
        return value
    if isinstance(value, _CONTENTS):
        return t.EmbeddedResource(value)
    if isinstance(value, str):
        return t.TextContent(value)
    return t.TextContent(_json(value, path))


def _json(value: Any, path: str = "result") -> str:
    if (waiting := unawaited(value)) is not None:
        raise wire.WireError(f"{waiting} was returned; did you forget to await it?")
    encoded = wire.encode(value, LATEST)
    if (place := block_inside(value, encoded, path)) is not None:
        raise wire.WireError(f"it returned {misplaced(place)}")
    return encoded.decode()


def unawaited(value: Any) -> str | None:
    """Say what a value is that somebody forgot to await, which nobody will any more; None for any other."""
    if not inspect.isawaitable(value):
        return None
    if inspect.iscoroutine(value):
        value.close()
    return f"a {type(value).__name__}"


INSTEAD = "return a list, such as [Image(...), {...}], or one block alone"
"""What to do about blocks inside an object, which would be sent as JSON."""


def misplaced(place: str) -> str:
    """Say of a block that it stands where JSON is to be, and what to do about it.

    Args:
        place: Where, as `block_inside` has it.
    """
    if "." in place:
        return f"content inside an object, at {place}; {INSTEAD}"
    return (
        f"content at {place}, where JSON of a schema was promised; annotate the result as what it is, such as "
        "list[Image | dict[str, int]], or return a CallToolResult with both"
    )


_LEAVES = (*BLOCKS, str, bytes, int, float, type(None), type)
_LOOKED_AT = 100_000
"""Objects that are looked through for a block, which what was returned by mistake may lead to any number of."""
_MAY_HOLD = re.compile(rb'"type":"(?:text|image|audio|resource|resource_link)"')


def block_inside(value: Any, encoded: bytes | None = None, path: str = "result") -> str | None:
    """Return where a content block stands in a value that is to be JSON; None without any.

    Args:
        value: The value.
        encoded: Its JSON, if there is any, which is quick to look through.
        path: What to call it.
    """
    if encoded is not None and (b'"type":"' not in encoded or _MAY_HOLD.search(encoded) is None):
        return None
    try:
        return next(_places(value, path, set()), None)
    except RecursionError:
        return None  # it contains itself; writing it as JSON says so


def _places(value: Any, path: str, seen: set[int]) -> Iterator[str]:
    if isinstance(value, BLOCKS):
        yield path
    if isinstance(value, _LEAVES) or id(value) in seen or len(seen) > _LOOKED_AT:
        return
    seen.add(id(value))
    for place, item in _members(value, path):
        yield from _places(item, place, seen)


def _members(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, item in cast("dict[Any, Any]", value).items():
            yield f"{path}.{str(name)[:60]}", item
    elif isinstance(value, list | tuple | collections.deque | set | frozenset):
        for index, item in enumerate(cast("Iterable[Any]", value)):
            yield f"{path}[{index}]", item
    else:
        slots = [slot for cls in type(value).__mro__ for slot in _names(getattr(cls, "__slots__", ()))]
        for name in (*getattr(value, "__dict__", ()), *slots):
            yield f"{path}.{name}", getattr(value, name, None)


def _names(slots: Any) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else slots


def resource_contents(value: Any, uri: str, mime_type: str | None) -> list[Any]:
    """Return the contents for what a resource's function returned.

    A string is text, bytes a blob, an image or a sound one of its own type, contents themselves; a list that holds
    contents or content is taken item by item. Anything else is JSON.

    Args:
        value: What was returned.
        uri: The URI that was asked for.
        mime_type: The declared type, or None to go by the value.
    """
    if isinstance(value, t.ReadResourceResult):
        return list(value.contents)
    if isinstance(value, _HELD):
        return [_held(value, uri, mime_type)]
    if is_content_list(value):
        return [part for item in value for part in resource_contents(item, uri, mime_type)]
    if isinstance(value, bytes | bytearray | memoryview):
        blob = base64.b64encode(bytes(value)).decode()  # pyright: ignore[reportUnknownArgumentType]
        return [t.BlobResourceContents(uri, blob, mime_type=mime_type or "application/octet-stream")]
    if isinstance(value, str):
        return [t.TextResourceContents(uri, value, mime_type=mime_type or "text/plain")]
    if value is None:
        raise wire.WireError("None was returned; a resource is text, bytes, or anything that JSON can hold")
    return [t.TextResourceContents(uri, _json(value), mime_type=mime_type or "application/json")]


def _held(value: Any, uri: str, mime_type: str | None) -> Any:
    """Return the contents that a content block stands for."""
    if isinstance(value, t.EmbeddedResource):
        return value.resource
    if isinstance(value, t.TextContent):
        return t.TextResourceContents(uri, value.text, mime_type=mime_type or "text/plain")
    if isinstance(value, t.ImageContent | t.AudioContent):
        return t.BlobResourceContents(uri, value.data, mime_type=mime_type or value.mime_type)
    if isinstance(value, _CONTENTS):
        return value
    raise wire.WireError(f"a {type(value).__name__} is nothing that a resource holds; return text, bytes or an image")


def prompt_messages(value: Any) -> list[t.PromptMessage]:
    """Return the messages for what a prompt's function returned.

    A string or a content block is one user message, a message itself, also as a dict of role and content; a list is
    taken item by item.

    Raises:
        WireError: The value cannot be written as JSON.
    """
    if isinstance(value, t.PromptMessage):
        return [value]
    if value is None:
        raise wire.WireError("None was returned; a prompt is text, content or messages")
    if isinstance(value, dict):
        return [_message(cast("dict[str, Any]", value))]
    if isinstance(value, list | tuple):
        return [message for item in cast(Iterable[Any], value) for message in prompt_messages(item)]
    return [t.PromptMessage("user", _block(value))]


def _message(value: dict[str, Any]) -> t.PromptMessage:
    """Return the message that a dict is: what most model APIs call a message."""
    content = value.get("content")
    if set(value) != {"role", "content"} or value["role"] not in ("user", "assistant"):
        keys = ", ".join(sorted(map(str, value))) or "nothing"
        raise wire.WireError(f"a dict of {keys} is no message; it needs role (user or assistant) and content")
    if isinstance(content, dict):
        return wire.decode(wire.encode(cast(Any, value), LATEST), t.PromptMessage)
    return t.PromptMessage(value["role"], _block(content))
