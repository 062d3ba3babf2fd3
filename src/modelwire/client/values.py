"""Between Python values and what calls carry: arguments on the way out, results on the way back.

Pure conversion: nothing here sends or waits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from modelwire.client.written import as_read
from modelwire.errors import ConfigError, ProtocolViolation, ToolError
from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.protocol.revisions import LATEST
from modelwire.protocol.structured import MEMBER, is_wrapping


def text_of(content: list[Any]) -> str:
    """Return the text of content blocks, one block per line; blocks that are no text are left out."""
    return "\n".join(block.text for block in content if isinstance(block, t.TextContent))


def value_of(result: t.CallToolResult, returns: Any) -> Any:
    """Return the value of a tool's result.

    Structured content when there is any; else the text, if all of it is text; else the content blocks.

    Args:
        result: The result.
        returns: The type to convert to, or None to leave the value as JSON has it. Other libraries, too, wrap what is
            no object as ``{"result": ...}``, but mark it in ways of their own or not at all: a value that is not of
            the type is taken out of such an object.

    Raises:
        ToolError: The tool failed.
        ProtocolViolation: The value is not of the type.
        ConfigError: Nothing can be converted to the type.
    """
    if result.is_error:
        raise ToolError(text_of(result.content) or "the tool failed and said nothing", result.content)
    if result.structured_content is not UNSET:
        value: Any = result.structured_content
        return value if returns is None else _converted(value, returns)
    if not result.content or not all(isinstance(block, t.TextContent) for block in result.content):
        return None if not result.content else result.content
    text = text_of(result.content)
    return text if returns is None or returns is str else _read(text, returns)


def _read(text: str, returns: Any) -> Any:
    """Read a tool's text as JSON of a type, or else as a string that the type takes: a date, a name of an enum."""
    try:
        return _decoded(text.encode(), returns)
    except _MISFITS as error:
        try:
            return _decoded(msgspec.json.encode(text), returns)
        except _MISFITS:
            raise ProtocolViolation(f"the tool's text is no {returns!r} ({error})", text.encode()) from None


def _converted(value: Any, returns: Any) -> Any:
    # By way of JSON: a date or a UUID is a string there.
    encoded = msgspec.json.encode(value)
    try:
        return _decoded(encoded, returns)
    except _MISFITS as error:
        if is_wrapping(value):
            try:
                return _decoded(msgspec.json.encode(value[MEMBER]), returns)
            except _MISFITS:
                pass
        raise ProtocolViolation(f"the tool's result is no {returns!r} ({error})", encoded) from None


_MISFITS = (msgspec.MsgspecError, ValueError)
_SIMPLE = (int, float, str, bool, list, dict)


def _decoded(encoded: bytes, returns: Any) -> Any:
    return _reader(returns)(encoded)


def _reader(returns: Any) -> Callable[[bytes], Any]:
    """What reads a type as servers write it: by the server's own converter, loaded when a type first needs it."""
    if returns in _SIMPLE:
        return msgspec.json.Decoder(returns).decode
    try:
        return _kept_reader(returns)
    except TypeError:  # an annotation that cannot be a key
        return _made_reader(returns)


def _made_reader(returns: Any) -> Callable[[bytes], Any]:
    from modelwire.server.converters import Unsupported, converter
    from modelwire.server.nodes import Misfit

    try:
        node = converter(returns)
    except Unsupported as error:
        return _foreign_reader(returns, str(error))

    def read(encoded: bytes) -> Any:
        try:
            return node.read(encoded, "result")
        except Misfit as misfit:
            raise ValueError(str(misfit)) from None

    return read


def _foreign_reader(returns: Any, reason: str) -> Callable[[bytes], Any]:
    """What reads classes that nobody knows, but that make themselves, as pydantic's models do."""
    refused = f"returns={returns!r} is no type that a result can be converted to: {reason}"

    def make(kind: Any, value: Any) -> Any:
        validate = getattr(kind, "model_validate", None)
        if validate is None:
            raise ConfigError(refused)
        return validate(value)

    try:
        return msgspec.json.Decoder(returns, dec_hook=make).decode
    except TypeError:
        raise ConfigError(refused) from None


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
        return _written(dict(arguments))
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
    written = _written(value)
    return msgspec.json.decode(written, type=str) if written.startswith(b'"') else written.decode()


def _written(value: Any) -> bytes:
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


def reference(ref: str | t.PromptReference | t.ResourceTemplateReference) -> Any:
    """Return what a completion is for: a URI or template is a resource, any other string a prompt."""
    if not isinstance(ref, str):
        return ref
    return t.ResourceTemplateReference(ref) if "://" in ref or "{" in ref else t.PromptReference(ref)
