"""Resources and resource templates: registering them, listing them, reading them.

URIs are kept and compared as they were written: "users/me" and "HTTP://Ex.com" are names like any other. A template's
values are percent-decoded once, and none may climb out of its place.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from modelwire.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ConfigError,
    NotFound,
    PeerError,
    RpcError,
    SignatureError,
    ToolError,
)
from modelwire.protocol import types as t
from modelwire.rpc.call import Call
from modelwire.rules.uri_template import UriTemplate
from modelwire.server import contents
from modelwire.server.asking import Exchange
from modelwire.server.caching import NOT_KEPT, Caching
from modelwire.server.choices import choices
from modelwire.server.collection import Collection
from modelwire.server.crashes import log_crash
from modelwire.server.exploded import refuse_scalars
from modelwire.server.functions import Expired, Function
from modelwire.server.headers import refuse_headers
from modelwire.server.limits import limited
from modelwire.server.names import nearest
from modelwire.server.registry import Registry
from modelwire.server.signature import ArgumentErrors
from modelwire.server.spoken import spoken

if TYPE_CHECKING:
    from modelwire.server.directories import Source
    from modelwire.server.file_lists import FileLists

_SLASH = re.compile(r"[/\\]")
_LITERAL = re.compile(r"true|false|-?(?:0|[1-9][0-9]{0,300})(?:\.[0-9]{1,300})?", re.ASCII)
"""What a URI writes of numbers and truth values."""
_EXPRESSION = re.compile(r"\{([+#./;?&]?)([^}]*)\}")


class ResourceEntry:
    """One resource of a list.

    Args:
        resource: What the list says of it.
        function: What is called when it is read; None where its file is.
        caching: How clients may keep what is read.
    """

    __slots__ = ("caching", "function", "resource")

    def __init__(self, resource: t.Resource, function: Function | None, caching: Caching = NOT_KEPT) -> None:
        self.resource = resource
        self.function = function
        self.caching = caching


class TemplateEntry:
    """One registered family of resources."""

    __slots__ = ("_rooted", "_segments", "caching", "choices", "function", "pattern", "template")

    def __init__(
        self, template: t.ResourceTemplate, pattern: UriTemplate, function: Function, caching: Caching
    ) -> None:
        self.template = template
        self.caching = caching
        self.pattern = pattern
        self.function = function
        self.choices = choices(function.signature.input_schema, pattern.variables)
        self._segments: set[str] = set()
        """Variables that stand for one segment of a path each: no slash may be smuggled into them as ``%2F``."""
        self._rooted: set[str] = set()
        """Variables that stand behind a slash: they may not begin with another, which would make them absolute once
        their members are joined."""
        for expression in _EXPRESSION.finditer(template.uri_template):
            operator, names = expression.groups()
            before = template.uri_template[: expression.start()]
            variables = {name.split("*")[0].split(":")[0].strip() for name in names.split(",")}
            if operator in ("", ".", "/"):
                self._segments |= variables
                self._rooted |= variables if operator == "/" else set()
            elif operator == "+" and before.endswith("/") and not before.endswith("://"):
                self._rooted |= variables

    def match(self, uri: str) -> dict[str, Any] | None:
        """Return the variables' values; None when the URI is not of this family, or climbs out of its place."""
        values = self.pattern.match(uri)
        if values is None or any(self._climbs(name, value) for name, value in values.items()):
            return None
        return values

    def _climbs(self, name: str, value: Any) -> bool:
        members = _items(value)
        absolute = name in self._rooted and isinstance(value, list) and members[:1] == [""]
        return absolute or any(self._leaves(name, member) for member in members)

    def _leaves(self, name: str, item: str) -> bool:
        return (
            "\0" in item
            or any(part in (".", "..") for part in _SLASH.split(item))
            or (name in self._segments and _SLASH.search(item) is not None)
            or (name in self._rooted and item[:1] in ("/", "\\"))
        )


def _items(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    return [value] if isinstance(value, str) else list(value)


_NONE: frozenset[str] = frozenset()


class Resources:
    """The resources of a server.

    Args:
        fixed: Those of one URI each.
        templates: Those of a template each.
        max_result: The most bytes that a result may have; None for any number.
    """

    def __init__(
        self, fixed: Registry[ResourceEntry], templates: Registry[TemplateEntry], max_result: int | None
    ) -> None:
        self._max_result = max_result
        self.fixed = fixed
        self.templates = templates
        self.files: FileLists | None = None
        """Files and directories, once there is one."""

    def from_function(self, resource: t.Resource, function: Function, caching: Caching) -> ResourceEntry:
        """Return the resource of one URI that a function reads.

        Raises:
            SignatureError: Its function wants arguments, which such a URI cannot give.
        """
        wanted = function.signature.input_schema.get("required", [])
        if wanted:
            raise SignatureError(
                f"resource {resource.uri!r}: parameter {wanted[0]!r} has no value; put {{{wanted[0]}}} into the URI"
            )
        refuse_headers(f"resource {resource.uri!r}", function.signature.input_schema)
        return ResourceEntry(resource, function, caching)

    def family(
        self, template: t.ResourceTemplate, pattern: UriTemplate, function: Function, caching: Caching
    ) -> TemplateEntry:
        """Return the family of resources that a function reads.

        Raises:
            SignatureError: Its variables are not the function's parameters, or not of their types.
        """
        schema = function.signature.input_schema
        known, wanted = set(schema["properties"]), set(schema.get("required", []))
        for name in pattern.variables:
            if name not in known:
                raise SignatureError(f"resource {template.uri_template!r}: no parameter takes {{{name}}}")
        missing = sorted(wanted - set(pattern.variables))
        if missing:
            raise SignatureError(f"resource {template.uri_template!r}: parameter {missing[0]!r} is not in the template")
        refuse_headers(f"resource {template.uri_template!r}", schema)
        refuse_scalars(pattern, schema)
        return TemplateEntry(template, pattern, function, caching)

    def remove(self, uri: str) -> None:
        """Remove a resource by its URI, a family by its template, or a directory by its prefix.

        Raises:
            ConfigError: There is none.
        """
        if self.files is not None and self.files.forget(uri):
            return
        if uri in self.fixed:
            self.fixed.remove(uri)
        elif uri in self.templates:
            self.templates.remove(uri)
        else:
            raise ConfigError(f"there is no resource {uri!r} to remove")

    async def page(self, call: Call) -> bytes:
        """Answer ``resources/list`` where there are files: a list that begins is made of what is there now."""
        if self.files is not None and call.params.cursor is None:
            await self.files.refresh()
        return self.fixed.page(call)

    async def read(self, call: Call) -> Any:
        """Answer ``resources/read``."""
        uri: str = call.params.uri
        entry = self.fixed.find(uri, call)
        if entry is not None and entry.function is not None:
            result = await _read(call, uri, entry.function, None, entry.resource.mime_type)
            result = _kept(call, entry.caching, result)
        else:
            result = await self._read_unregistered(call, uri)
        return limited(call, result, f"resource {uri!r}", self._max_result)

    async def _read_unregistered(self, call: Call, uri: str) -> Any:
        """Read what nobody registered under this very URI: a file, or a member of a family."""
        if self.files is not None and (found := await self.files.read(call, uri, self._max_result)) is not None:
            return found
        for family in self.templates.visible(call).values():
            values = family.match(uri)
            if values is not None:
                read = await _read(call, uri, family.function, values, family.template.mime_type)
                return _kept(call, family.caching, read)
        # The very URI may be that of a file that has just gone.
        near = nearest(uri, [other for other in self.fixed.visible(call) if other != uri])
        raise NotFound(f"Resource not found: {uri[:200]}" + (f". Did you mean {near}?" if near else ""), uri=uri)

    def concealed(self, uris: Iterable[str], call: Call | None = None) -> frozenset[str]:
        """Return those URIs that are ours, but not there: for whoever calls, or without a call for anybody.

        A URI that was never registered is not concealed: it may be followed, and told of.
        """
        if not any(collection.hides for collection in self.collections):
            return _NONE
        shown, families = self.fixed.shows(call), self.templates.visible(call).values()
        files, sources = list(self.files or ()), list((self.files.visible(call) if self.files else {}).values())

        def conceals(uri: str) -> bool:
            if uri in self.fixed:
                return not shown(uri) and not _matches(families, uri)
            if _matches(families, uri) or _covers(sources, uri):
                return False
            return _matches(self.templates, uri) or _covers(files, uri)

        return frozenset(uri for uri in uris if conceals(uri))

    @property
    def collections(self) -> list[Collection[Any]]:
        """Everything that there are resources in."""
        files: list[Collection[Any]] = [] if self.files is None else [self.files]
        return [self.fixed, self.templates, *files]


def _matches(families: Iterable[TemplateEntry], uri: str) -> bool:
    return any(family.match(uri) is not None for family in families)


def _covers(sources: Iterable[Source], uri: str) -> bool:
    return any(source.own(uri) is not None for source in sources)


async def _read(call: Call, uri: str, function: Function, values: dict[str, Any] | None, mime_type: str | None) -> Any:
    try:
        args, kwargs = _bound(function, values)
    except ArgumentErrors as error:
        raise RpcError(INVALID_PARAMS, str(error), {"uri": uri, "problems": error.problems}) from None
    try:
        value = await guarded(call, f"resource {uri!r}", function(call, args, kwargs))
    except NotFound as error:
        raise (error if error.uri is not None else NotFound(error.message, uri=uri)) from None
    if isinstance(value, t.InputRequiredResult | t.ReadResourceResult):
        return value
    if function.signature.output_schema is not None and not isinstance(value, str | bytes | msgspec.Struct | list):
        function.signature.check_result(value)
    return t.ReadResourceResult(contents.resource_contents(value, uri, mime_type))


def _kept(call: Call, caching: Caching, result: Any) -> Any:
    """Say how a result may be kept; not where it depends on answers, which whoever keeps it would not know of."""
    if caching is NOT_KEPT or not isinstance(result, t.ReadResourceResult):
        return result
    asked, params = call.asking, call.params
    answered = isinstance(asked, Exchange) and bool(asked.answers)
    if answered or params.input_responses is not None or params.request_state is not None:
        return result
    return caching.stamp(result)


def _bound(function: Function, values: dict[str, Any] | None) -> Any:
    """Return what to call a function with; the members of a list are numbers and truth values where they have to be."""
    bind = function.signature.bind
    if values is None:
        return bind(None)
    try:
        return bind(msgspec.json.encode(values))
    except ArgumentErrors:
        typed = {name: _literals(value) if isinstance(value, list) else value for name, value in values.items()}  # pyright: ignore[reportUnknownArgumentType]
        if typed == values:
            raise
        return bind(msgspec.json.encode(typed))


def _literals(members: list[str]) -> list[Any]:
    return [msgspec.json.decode(member) if _LITERAL.fullmatch(member) else member for member in members]


async def guarded(call: Call, what: str, running: Any) -> Any:
    """Await a handler of a resource, prompt or completion; its failures become errors without internals.

    Raises:
        RpcError: The handler's own, or ``-32603`` for anything unexpected.
    """
    try:
        return await running
    except asyncio.CancelledError as error:
        if call.cancelled:
            raise
        log_crash(f"{what} was cancelled from inside", error)
    except BaseException as raised:
        error = spoken(raised)
        if isinstance(error, RpcError) and not isinstance(error, PeerError):
            raise error from None
        if isinstance(error, KeyboardInterrupt) and not call.connection.dispatcher.contains_interrupts:
            raise
        if isinstance(error, ToolError):  # only tools have isError; its words are meant for the client all the same
            raise RpcError(INTERNAL_ERROR, error.message) from None
        if isinstance(error, Expired):
            raise RpcError(INTERNAL_ERROR, f"The {what} {error}") from None
        log_crash(f"{what} failed", error)
    raise RpcError(INTERNAL_ERROR, f"The {what} failed unexpectedly; the server's log says more")
