"""Between Python values and what calls carry: arguments on the way out, results on the way back.

Pure conversion: nothing here sends or waits.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any, cast, get_args

import msgspec
from msgspec import UNSET, Raw

from modelwire.client.written import as_read
from modelwire.errors import ConfigError, ToolError, WrongResult
from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.protocol.revisions import LATEST, Revision
from modelwire.protocol.structured import MEMBER, is_wrapping


def text_of(content: list[Any]) -> str:
    """Return the text of content blocks, one block per line; blocks that are no text are left out."""
    return "\n".join(block.text for block in content if isinstance(block, t.TextContent))


def value_of(result: t.CallToolResult, returns: Any, tool: str = "") -> Any:
    """Return the value of a tool's result.

    Structured content when there is any; else the text, if all of it is text; else the content blocks.

    Args:
        result: The result.
        returns: The type to convert to, or None to leave the value as JSON has it. Other libraries, too, wrap what is
            no object as ``{"result": ...}``, but mark it in ways of their own or not at all: a value that is not of
            the type is taken out of such an object.
        tool: The tool's name, for messages.

    Raises:
        ToolError: The tool failed.
        WrongResult: The value is not of the type.
        ConfigError: Nothing can be converted to the type.
    """
    if result.is_error:
        raise ToolError(text_of(result.content) or "the tool failed and said nothing", result.content)
    try:
        if result.structured_content is not UNSET:
            value: Any = result.structured_content
            return value if returns is None else _converted(value, returns)
        if not result.content or not all(isinstance(block, t.TextContent) for block in result.content):
            return _blocks(result.content, returns)
        text = text_of(result.content)
        return text if returns is None or returns is str else _read(text, returns)
    except _Misfit as misfit:
        raise WrongResult(tool, _called(returns), str(misfit), result) from None


class _Misfit(Exception):
    """Why a value is not of the type that was asked for."""


def _called(returns: Any) -> str:
    return returns.__name__ if isinstance(returns, type) and not get_args(returns) else str(returns)


def _blocks(content: list[Any], returns: Any) -> Any:
    """Take content for what was asked for: nothing for None, blocks for blocks."""
    if returns is None:
        return content or None
    if not content:
        return _decoded(b"null", returns, "the empty result")
    node = _block_node(returns)
    for value in (content, *(content if len(content) == 1 else ())):
        with contextlib.suppress(Exception):
            return node.dump(value, "content")
    kinds = ", ".join(str(getattr(block, "type", type(block).__name__)) for block in content[:10])
    raise _Misfit(f"it is content of {len(content)} blocks ({kinds})")


def _block_node(returns: Any) -> Any:
    from modelwire.server.annotations import Scope
    from modelwire.server.content_nodes import Instance, content_node
    from modelwire.server.contents import RETURNED

    if returns in (list, Any):
        return Instance(object, "anything")
    return content_node(returns, RETURNED, Scope(_block_node))


def _read(text: str, returns: Any) -> Any:
    """Read a tool's text as JSON of a type, or else as a string that the type takes: a date, a name of an enum."""
    encoded = text.encode()
    try:
        return _decoded(encoded, returns, "text")
    except _Misfit as as_json:
        try:
            return _decoded(msgspec.json.encode(text), returns, "text")
        except _Misfit as as_text:
            raise (as_json if _is_json(encoded) else as_text) from None


def _is_json(encoded: bytes) -> bool:
    try:
        msgspec.json.decode(encoded)
    except _MISFITS:
        return False
    return True


def _converted(value: Any, returns: Any) -> Any:
    # By way of JSON: a date or a UUID is a string there.
    try:
        return _decoded(msgspec.json.encode(value), returns, "result")
    except _Misfit:
        if not is_wrapping(value):
            raise
        return _decoded(msgspec.json.encode(value[MEMBER]), returns, f"result.{MEMBER}")


_MISFITS = (msgspec.MsgspecError, ValueError, RecursionError)
_SIMPLE = (int, float, str, bool, list, dict)


def _decoded(encoded: bytes, returns: Any, path: str) -> Any:
    if returns in _SIMPLE:
        decode = cast("Callable[[bytes], Any]", msgspec.json.Decoder(returns).decode)
        with contextlib.suppress(*_MISFITS):
            return decode(encoded)
    try:
        return _reader(returns)(encoded, path)
    except _MISFITS as error:
        raise _Misfit(str(error)) from None


_Reader = Callable[[bytes, str], Any]
"""Called with JSON and what to call it."""


def _reader(returns: Any) -> _Reader:
    """What reads a type as servers write it: by the server's own converter, loaded when a type first needs it."""
    try:
        return _kept_reader(returns)
    except TypeError:  # an annotation that cannot be a key
        return _made_reader(returns)


def _made_reader(returns: Any) -> _Reader:
    from modelwire.server.converters import Unsupported, converter
    from modelwire.server.nodes import Misfit

    try:
        node = converter(returns)
    except Unsupported as error:
        return _foreign_reader(returns, str(error))

    def read(encoded: bytes, path: str) -> Any:
        try:
            return node.read(encoded, path)
        except Misfit as misfit:
            raise ValueError(str(misfit)) from None

    return read


def _foreign_reader(returns: Any, reason: str) -> _Reader:
    """What reads classes that nobody knows, but that make themselves, as pydantic's models do."""
    refused = f"returns={returns!r} is no type that a result can be converted to: {reason}"

    def make(kind: Any, value: Any) -> Any:
        validate = getattr(kind, "model_validate", None)
        if validate is None:
            raise ConfigError(refused)
        return validate(value)

    try:
        decode = msgspec.json.Decoder(returns, dec_hook=make).decode
    except TypeError:
        raise ConfigError(refused) from None

    def read(encoded: bytes, path: str) -> Any:
        try:
            return decode(encoded)
        except _MISFITS as error:
            raise ValueError(f"{path}: {error}") from None

    return read


_kept_reader = functools.lru_cache(maxsize=256)(_made_reader)


def seconds(value: Any, name: str) -> float | None:
    """Return a time in seconds, or None for no limit.

    Raises:
        ConfigError: It is neither.
    """
    if value is None or (isinstance(value, int | float) and value > 0):
        return value
    raise ConfigError(f"{name} must be a number of seconds above 0, or None for no limit; not {value!r}")


def arguments_json(arguments: Mapping[str, Any] | None) -> bytes | None:
    """Return a call's arguments as JSON; None when there are none to send.

    Raises:
        ConfigError: They are no mapping, or cannot be written as JSON.
    """
    if arguments is None:
        return None
    _check_mapping(arguments)
    try:
        return plain_json(dict(arguments))
    except wire.WireError as error:
        raise ConfigError(f"the arguments cannot be sent: {error}") from None


def prompt_arguments(arguments: Mapping[str, Any] | None) -> dict[str, str] | None:
    """Return a prompt's arguments as strings, which is all that the wire has for them: JSON for what is no string.

    What JSON writes as a string (a date, a member of an enum) is that string, without quotes. None is left out: no
    string says so.

    Raises:
        ConfigError: They are no mapping, or one cannot be written as JSON.
    """
    if arguments is None:
        return None
    _check_mapping(arguments)
    try:
        return {
            name: value if type(value) is str else _as_text(value)
            for name, value in arguments.items()
            if value is not None
        }
    except wire.WireError as error:
        raise ConfigError(f"the arguments cannot be sent: {error}") from None


def _as_text(value: Any) -> str:
    written = plain_json(value)
    return msgspec.json.decode(written, type=str) if written.startswith(b'"') else written.decode()


def plain_json(value: Any) -> bytes:
    """Return a value as JSON, written as its type is read.

    Raises:
        WireError: It cannot be written.
    """
    try:
        plain = as_read(value)
    except RecursionError:
        plain = value  # it contains itself, which is said below
    except Exception as error:
        raise wire.WireError(f"a value cannot be written: {error}") from error
    return wire.encode(plain, LATEST)


def _check_mapping(arguments: Any) -> None:
    if not isinstance(arguments, Mapping):
        raise ConfigError(f"arguments go by name, as a dict such as {{'city': 'Oslo'}}, not {arguments!r}")


def responses(given: Mapping[str, Any] | None, revision: Revision) -> dict[str, Raw] | None:
    """Return answers to what a server asked, by key, as they are sent.

    Raises:
        ConfigError: One cannot be written as JSON.
    """
    if given is None:
        return None
    try:
        return {key: Raw(wire.encode(answer, revision)) for key, answer in given.items()}
    except wire.WireError as error:
        raise ConfigError(f"the answers cannot be sent: {error}") from None


def reference(ref: str | t.PromptReference | t.ResourceTemplateReference) -> Any:
    """Return what a completion is for: a URI or template is a resource, any other string a prompt."""
    if not isinstance(ref, str):
        return ref
    return t.ResourceTemplateReference(ref) if "://" in ref or "{" in ref else t.PromptReference(ref)
