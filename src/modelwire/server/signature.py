"""A plain Python function, as a tool: its schemas, its arguments, its result.

`compile_signature` looks at a function once, when it is registered, and refuses what it could not keep: every
constraint that a schema shows is enforced, and a type that cannot be is a `SignatureError` that names the parameter.
It never calls the function.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections import abc
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Optional, get_args, get_origin

import msgspec

from modelwire.errors import SignatureError
from modelwire.rules.param_headers import KEYWORD
from modelwire.server import docstrings
from modelwire.server.annotations import Scope, is_typed_dict, is_union, unwrap, without_markers
from modelwire.server.arguments import MISSING, Argument, ArgumentErrors, binder
from modelwire.server.constraints import Rules, beside, is_field
from modelwire.server.content_nodes import content_node, mentioned_inside, only_content, unsaid_list
from modelwire.server.contents import INSTEAD
from modelwire.server.converters import Unsupported, converter
from modelwire.server.converters import mirrored as mirrored_converter
from modelwire.server.defaults import problems
from modelwire.server.dependencies import Dependency, Injection
from modelwire.server.fields import unqualified
from modelwire.server.generics import class_hints
from modelwire.server.given_schema import GivenBinder
from modelwire.server.headers import with_headers
from modelwire.server.nodes import Node
from modelwire.server.plain import Plain
from modelwire.server.results import ContentCheck, ResultCheck, ResultError
from modelwire.server.schemas import input_schema, result_schema
from modelwire.server.unsupported import NoForm

__all__ = ["ArgumentErrors", "ResultError", "Signature", "compile_signature", "description", "tool_name"]

ABSENT: Any = msgspec.UNSET
"""Stands for a member of ``**kwargs`` that was left out."""
_FORMS = "a dataclass, a TypedDict or a model"
"""What to write instead of a class that says nothing of its members."""
_STREAMS = (abc.Iterator, abc.Iterable, abc.Generator, abc.AsyncIterator, abc.AsyncIterable, abc.AsyncGenerator)


class Signature:
    """What is known of a function that serves as a tool, prompt or resource. Made by `compile_signature`.

    Attributes:
        input_schema: JSON Schema of the arguments object.
        output_schema: JSON Schema of the result, or None where the result is only content.
        content: What holds the result against its annotation where it is only content; None where it is not.
        unsaid_list: The result is a list of which nothing more is said: content where a block is in it.
        is_async: Calling the function gives an awaitable.
        is_generator: Calling it gives a generator (asynchronous when ``is_async``), whose items are the result's.
        check_result: Returns a result as JSON, or raises `ResultError`; see `ResultCheck.encode`.
        context_parameter: The parameter that takes the context, to be passed by keyword; None without one.
        plan: What else fills parameters that are no arguments, and how it is made; None where nothing does.
        positional: The parameters that are passed by position, in order.
        description: What the docstring says of the function; None without any.
        descriptions: What the docstring says of each parameter.
    """

    __slots__ = ("_given", "_keywords", "_may_lack", "_plain", "_positional", "_values", "check_result", "content",
                 "context_parameter", "description", "descriptions", "input_schema", "is_async", "is_generator",
                 "output_schema", "plan", "positional", "unsaid_list")  # fmt: skip

    def __init__(
        self,
        parts: _Parts,
        check: ResultCheck,
        output_schema: dict[str, Any] | None,
        content: ContentCheck | None = None,
        *,
        unsaid_list: bool = False,
    ) -> None:
        self._values = parts.binder.values
        self._given = parts.given
        self._positional = len(parts.positional)
        self.positional = tuple(parts.positional)
        self._keywords = tuple(parts.keywords)
        self._may_lack = parts.may_lack
        self._plain = self._given is None and not self._keywords
        self.check_result = check.encode
        self.input_schema = parts.schema
        self.output_schema = output_schema
        self.content = content
        self.unsaid_list = unsaid_list
        self.is_async = parts.is_async
        self.is_generator = parts.is_generator
        self.context_parameter = parts.injection.context
        plan = parts.injection.plan
        self.plan = plan if plan.more_than_context else None
        self.description = parts.description
        self.descriptions = parts.descriptions

    @property
    def values(self) -> Callable[[msgspec.Raw | bytes | None], tuple[Any, ...]] | None:
        """What `bind` does, where all arguments go by position and nothing besides them; None otherwise."""
        return self._values if self._plain else None

    def bind(self, arguments: msgspec.Raw | bytes | None) -> tuple[list[Any], dict[str, Any]]:
        """Return what to call the function with; what is no argument is for the caller to add by keyword.

        Args:
            arguments: The JSON object of the call; None is an empty one.

        Raises:
            ArgumentErrors: Something does not fit; all faults at once.
        """
        if self._plain:
            return list(self._values(arguments)), {}
        if self._given is not None:
            args, kwargs = self._given.bind(arguments, self._positional, self._keywords)
        else:
            values = self._values(arguments)
            count = self._positional
            args, kwargs = list(values[:count]), dict(zip(self._keywords, values[count:], strict=True))
        for name in self._may_lack:
            if kwargs[name] is ABSENT:
                del kwargs[name]
        return args, kwargs


def compile_signature(
    function: Callable[..., Any],
    *,
    name: str,
    context_type: type | None = None,
    shared: Sequence[Any] = (),
    structured: bool | None = None,
    content_types: tuple[type, ...] = (),
    check_content: bool = True,
    input_schema: dict[str, Any] | None = None,
    scope: Scope | None = None,
) -> Signature:
    """Turn a function into schemas and a binder.

    Args:
        function: A function, bound method, partial or callable object.
        name: What to call it in messages: the name of the tool.
        context_type: The class whose parameter takes the context and is no argument.
        shared: The types whose parameters take what the lifespan yields, and are no arguments.
        structured: False for no output schema, True to have one even for text, None to decide by the annotation.
        content_types: Classes that are content already, so that a result of them has no output schema.
        check_content: Hold a result that is only content against the annotation, too.
        input_schema: JSON Schema of the arguments, given by hand. They are validated by it first; parameters then get
            the members of their names, converted by their types, and ``**kwargs`` the others as they are.
        scope: The names that its annotations may use, where they were looked up before.

    Raises:
        SignatureError: It cannot be called from JSON arguments, or a type cannot be enforced. Where only a name is not
            defined, `waits_for_a_name`.
        ConfigError: ``input_schema`` is no JSON Schema 2020-12 of an object.
    """
    parts = _Parts(function, name, Injection(name, context_type, shared), input_schema, scope or Scope(function))
    annotation = _returned(parts)
    unsaid = structured is None and unsaid_list(annotation)
    if structured is False or not (structured or not only_content(annotation, content_types)):
        _refuse_undefined(parts)
        content = ContentCheck(name, content_node(annotation, content_types, parts.scope)) if check_content else None
        return Signature(parts, ResultCheck(name, Plain(Any)), None, content)
    kind = _result_kind(parts, annotation, content_types)
    _refuse_undefined(parts)
    schema = result_schema(kind)
    declared = any(cls.__name__ in schema.get("$defs", ()) for cls in content_types)
    check = ResultCheck(name, kind, blocks=declared)
    return Signature(parts, check, None if unsaid else schema, unsaid_list=unsaid)


def _refuse_undefined(parts: _Parts) -> None:
    if parts.undefined:
        raise parts.undefined[0]


def waits_for_a_name(error: BaseException) -> bool:
    """Whether all that is wrong with a function is a name in an annotation that may still be defined."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, NameError):
        cause = cause.__cause__
    return cause is not None


def tool_name(function: Callable[..., Any]) -> str:
    """Return the name that a function has by itself; for a callable object that of its class.

    Raises:
        SignatureError: It is a lambda, or no function at all.
    """
    if not callable(function):
        raise SignatureError(f"{function!r:.60} is no function")
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    found = str(getattr(inner, "__name__", type(inner).__name__))
    if found == "<lambda>":
        raise SignatureError("a lambda has no name of its own; pass name=")
    return found


def description(function: Callable[..., Any]) -> str | None:
    """Return the docstring without its sections on parameters, results and exceptions; None without any."""
    return _docstring(function).description or None


class _Parts:
    """What a function's parameters come to."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        injection: Injection,
        given: dict[str, Any] | None,
        scope: Scope,
    ) -> None:
        self.name = name
        self.function: Any = function
        self.scope = scope
        self.injection = injection
        self.positional: list[str] = []
        self.keywords: list[str] = []
        self.may_lack: list[str] = []
        self.undefined: list[SignatureError] = []
        """What a name that is defined later may put right; everything else is refused at once."""
        self.given: GivenBinder | None = None
        self._by_hand = given is not None
        self._rest = self._rows = ""
        self._types: dict[str, Node] = {}
        self._hints: dict[str, Any] = {}
        self._rules: dict[str, Rules] = {}
        self._defaults: dict[str, Any] = {}
        self._read_parameters()
        self.returns = self._evaluated(self._signature.return_annotation, "its result")
        self.is_async, self.is_generator = _flavour(function, self.returns)
        documented = _docstring(function)
        self.description = documented.description or None
        self.descriptions = {**documented.parameters, **_written_beside(self._hints)}
        self.wire = {key: rules.name or key for key, rules in self._rules.items()}
        self._refuse_same_names()
        # Positional ones first: the order in which `Signature.bind` takes the values apart.
        arguments = [self._argument(key) for key in self.positional + self.keywords]
        if given is None:
            self.schema = self._schema()
        else:
            self.schema = given
            self.given = GivenBinder(name, arguments, given, rest=self._rest, rows=self._rows)
            self._refuse_headers()
        self.binder = binder(name, arguments)

    def _argument(self, key: str) -> Argument:
        default = self._defaults.get(key, MISSING)
        factory = self._rules[key].factory if default is MISSING else None
        if faults := problems(self._types[key], factory() if factory else default, self.wire[key]):
            raise SignatureError(f"{self.name}: the default of parameter {key!r} does not fit: {'; '.join(faults)}")
        return Argument(self.wire[key], self._types[key], default, factory)

    def _schema(self) -> dict[str, Any]:
        defaults = {self.wire[key]: default for key, default in self._defaults.items()}
        for key, rules in self._rules.items():
            if rules.factory is not None:
                defaults.setdefault(self.wire[key], rules.factory())
        types = {self.wire[key]: kind for key, kind in self._types.items()}
        descriptions = {self.wire.get(key, key): text for key, text in self.descriptions.items()}
        found = input_schema(types, defaults, descriptions)
        headers = {self.wire[key]: rules.header.name for key, rules in self._rules.items() if rules.header is not None}
        return found if self.undefined else with_headers(self.name, found, headers)

    def _refuse_headers(self) -> None:
        for key, rules in self._rules.items():
            if rules.header is not None:
                raise SignatureError(
                    f"{self.name}: parameter {key!r} has {rules.header!r}, but the schema was given by hand; "
                    f'write "{KEYWORD}" there'
                )

    def put_off(self, message: str, error: Exception) -> None:
        """Refuse the function; if a name is all that it lacks, only once everything else was looked at."""
        refusal = SignatureError(message)
        if not waits_for_a_name(error):
            raise refusal from error
        refusal.__cause__ = error
        self.undefined.append(refusal)

    def _refuse_same_names(self) -> None:
        seen: dict[str, str] = {}
        for key, wire in self.wire.items():
            if wire in seen:
                raise SignatureError(f"{self.name}: parameters {seen[wire]!r} and {key!r} are both called {wire!r}")
            seen[wire] = key

    def _read_parameters(self) -> None:
        try:
            self._signature = inspect.signature(_described(self.function))
        except (TypeError, ValueError, NameError) as error:
            why = "Python does not say which they are; register a function that calls it"
            why = str(error) if isinstance(error, NameError) else why
            why = why if callable(self.function) else f"{self.function!r:.60} is no function"
            raise SignatureError(f"{self.name}: its parameters cannot be read: {why}") from error
        self.injection.names = list(self._signature.parameters)
        _refuse_unbound(self.name, self.function, list(self._signature.parameters))
        partial = isinstance(self.function, functools.partial)
        bound: set[str] = set(self.function.keywords) if partial else set()
        for parameter in self._signature.parameters.values():
            if parameter.name not in bound:
                self._read(parameter)

    def _read(self, parameter: inspect.Parameter) -> None:
        where = f"parameter {parameter.name!r}"
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            self._take_stars(parameter, where)
            return
        # What `Depends` fills needs no annotation: its type may be imported for type checkers only.
        depends = isinstance(parameter.default, Dependency)
        annotation = Any if depends else self._evaluated(parameter.annotation, where)
        if self._injected(parameter, annotation):
            return
        default = parameter.default
        if is_field(default):  # `days: int = Field(3, ge=1)`
            annotation, default = Annotated[annotation, default], MISSING
        if default is not MISSING:
            self._defaults[parameter.name] = default
            if default is None and annotation is not Any:
                annotation = Optional[annotation]  # noqa: UP045 - `x: int = None` is common, and means this
        # Past what is no argument everything goes by keyword, since the caller adds that by keyword.
        by_keyword = parameter.kind is parameter.KEYWORD_ONLY or bool(self.injection)
        self._take(parameter.name, annotation, where, self.keywords if by_keyword else self.positional)

    def _injected(self, parameter: inspect.Parameter, annotation: Any) -> bool:
        """Whether a parameter is no argument, but filled in."""
        try:
            return self.injection.take(parameter, annotation)
        except SignatureError as error:
            if not waits_for_a_name(error):
                raise
            self.undefined.append(error)
            return True

    def _take(self, name: str, annotation: Any, where: str, into: list[str]) -> None:
        try:
            rules = beside(annotation)
            # A schema given by hand says by itself what an object may have.
            node = self._node(without_markers(annotation), mirrored=rules.header is not None)
        except (Unsupported, NameError) as error:
            instead = f"; use {_FORMS}, or Depends(...) for what the server makes" if isinstance(error, NoForm) else ""
            self.put_off(f"{self.name}: {where}: {error}{instead}", error)
            annotation, rules, node = Any, Rules(), Plain(Any)
        self._hints[name], self._rules[name], self._types[name] = annotation, rules, node
        into.append(name)

    def _node(self, annotation: Any, *, mirrored: bool) -> Node:
        make = mirrored_converter if mirrored else converter
        return make(annotation, self.scope, closed=not self._by_hand)

    def _take_stars(self, parameter: inspect.Parameter, where: str) -> None:
        rows = parameter.kind is parameter.VAR_POSITIONAL
        before = len(self.undefined)
        members = None if rows else _unpacked(self._evaluated(parameter.annotation, where))
        if members is not None:
            self._take_members(members, where)
        elif not self._by_hand and len(self.undefined) == before:
            stars = "*" if rows else "**"
            raise SignatureError(
                f"{self.name}: {where} ({stars}{parameter.name}) has no schema; name every parameter, "
                f"{'' if rows else 'annotate it as Unpack[...] of a TypedDict, '}or give a schema: input_schema="
            )
        elif rows and self.injection:
            raise SignatureError(
                f"{self.name}: {where} (*{parameter.name}) stands behind a parameter that is passed by keyword; "
                "move what takes the context or a dependency behind it"
            )
        elif rows:
            self._rows = parameter.name
        else:
            self._rest = parameter.name

    def _take_members(self, members: Any, where: str) -> None:
        """``**kwargs: Unpack[SomeTypedDict]``: each member is a parameter, to be passed by keyword."""
        cls = get_origin(members) or members
        try:
            hints = class_hints(cls, get_args(members), self.scope)
        except Exception as error:
            self.put_off(f"{self.name}: {where}: the annotations of {cls.__name__} cannot be evaluated: {error}", error)
            return
        for key, hint in hints.items():
            if key in self._signature.parameters:
                raise SignatureError(f"{self.name}: {where} has a member {key!r}, and another parameter has that name")
            annotation, required = unqualified(hint)
            self._take(key, annotation, f"{where}, member {key!r}", self.keywords)
            if not (key in cls.__required_keys__ if required is None else required):
                self._defaults[key] = ABSENT
                self.may_lack.append(key)

    def _evaluated(self, annotation: Any, where: str) -> Any:
        if annotation is inspect.Parameter.empty or annotation is object:
            return Any
        try:
            return self.scope.evaluate(annotation)
        except Exception as error:
            why = f"{error}; define or import its names at module level, outside `if TYPE_CHECKING`"
            why = f"{annotation!r:.60} is no expression" if isinstance(error, SyntaxError) else why
            self.put_off(f"{self.name}: the annotation of {where} cannot be evaluated: {why}", error)
            return Any


def _result_kind(parts: _Parts, annotation: Any, content_types: tuple[type, ...]) -> Any:
    if annotation is Any and not parts.undefined:
        raise SignatureError(f"{parts.name}: structured=True needs an annotation of the result")
    try:
        return converter(annotation, parts.scope)
    except (Unsupported, NameError) as error:
        if mentioned_inside(annotation, content_types):
            raise SignatureError(f"{parts.name}: its result has content inside an object or a set; {INSTEAD}") from None
        instead = f"return {_FORMS}, or " if isinstance(error, NoForm) else ""
        hint = f"{instead}pass structured=False to send it as text"
        parts.put_off(f"{parts.name}: its result cannot be checked: {error}; {hint}", error)
        return Any


def _unpacked(annotation: Any) -> Any:
    """The TypedDict of ``Unpack[...]``; None for anything else."""
    origin = get_origin(annotation)
    name = getattr(origin, "_name", None) or getattr(origin, "__name__", "")
    members = get_args(annotation)[0] if name == "Unpack" else None
    return members if is_typed_dict(get_origin(members) or members) else None


def _refuse_unbound(name: str, function: Any, parameters: Sequence[str]) -> None:
    """A method taken from its class would advertise ``self`` as an argument."""
    if not isinstance(function, types.FunctionType) or parameters[:1] not in (["self"], ["cls"]):
        return
    owner = function.__qualname__.rpartition(".")[0].rpartition(".")[2]
    if owner and owner != "<locals>":
        raise SignatureError(
            f"{name}: parameter {parameters[0]!r} belongs to a method of {owner}; register the method of an instance"
        )


def called(function: Callable[..., Any]) -> Any:
    """Return the function that runs when a callable is called, which may be a partial or an object."""
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    plain = isinstance(inner, types.FunctionType | type) or inspect.isroutine(inner)
    return inner if plain else type(inner).__call__


def _described(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what `inspect.signature` describes rightly: it takes the first parameter off a static ``__call__`` too."""
    if isinstance(function, types.FunctionType):
        return function
    static = isinstance(inspect.getattr_static(type(function), "__call__", None), staticmethod)
    return function.__call__ if static else function


def _flavour(function: Callable[..., Any], returns: Any) -> tuple[bool, bool]:
    """Whether calling gives something to await or iterate asynchronously, and whether it is a generator."""
    inner = called(function)
    if inspect.iscoroutinefunction(inner) or get_origin(returns) in (abc.Awaitable, abc.Coroutine):
        return True, False
    plain = unwrap(inner)  # a decorator's plain function hands on what the generator function inside it gives
    asynchronous_items = inspect.isasyncgenfunction(plain)
    return asynchronous_items, asynchronous_items or inspect.isgeneratorfunction(plain)


def _returned(parts: _Parts) -> Any:
    """The type of the result: what is awaited, or the list that a generator's items make."""
    annotation = parts.returns
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in (abc.Awaitable, abc.Coroutine):
        return args[-1]
    if parts.is_generator:
        return list[args[0]] if origin in _STREAMS and args and args[0] is not Any else Any
    return Any if annotation is object else annotation


def _docstring(function: Callable[..., Any]) -> docstrings.Docstring:
    """A callable object is described by its class, its arguments also by its ``__call__``."""
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    if isinstance(inner, types.FunctionType):
        return docstrings.parse(inner.__doc__ or inspect.getdoc(inner))
    found = docstrings.parse(inspect.getdoc(inner))
    plain = unwrap(inner)
    if not inspect.isroutine(inner) and not isinstance(inner, type) and plain is not inner:
        call = docstrings.parse(plain.__doc__)
        found.description = found.description or call.description
        found.parameters.update(call.parameters)
    return found


def _documentation(item: Any) -> Any:
    return getattr(item, "description" if is_field(item) else "documentation", None)


def _written_beside(annotations: dict[str, Any]) -> dict[str, str]:
    """Descriptions in ``Annotated[str, "City name"]`` and ``Annotated[str, Doc("City name")]``."""
    found: dict[str, str] = {}
    for name, annotation in annotations.items():
        if isinstance(annotation, type):
            continue
        options = get_args(annotation) if is_union(annotation) else (annotation,)
        for item in (item for option in options for item in getattr(option, "__metadata__", ())):
            text = item if isinstance(item, str) else _documentation(item)
            if isinstance(text, str):
                found[name] = text
    return found
