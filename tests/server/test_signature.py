"""Plain functions become tools: every kind of callable, under its own names."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Annotated, Any, Generic, Literal, NotRequired, Optional, Required, TypedDict, TypeVar, Unpack

import msgspec
import pytest
import typing_extensions

from modelwire import Name
from modelwire.errors import SignatureError
from modelwire.server.signature import ArgumentErrors, ResultError, Signature, compile_signature, description, tool_name


class Context:
    pass


class Image:
    pass


class Photo(Image):
    pass


@dataclasses.dataclass
class Day:
    high: float


def compiled(function: Callable[..., Any], **options: Any) -> Signature:
    return compile_signature(function, name="f", context_type=Context, content_types=(Image,), **options)


def call(function: Callable[..., Any], text: str = "{}", **more: Any) -> Any:
    args, kwargs = compiled(function).bind(msgspec.Raw(text.encode()))
    return function(*args, **kwargs, **more)


def names(signature: Signature) -> list[str]:
    return list(signature.input_schema["properties"])


def forecast(city: str, days: int = 3) -> list[Day]:
    """Forecast for a city.

    Args:
        city: City name.
        days: How many days.

    Returns:
        The days.
    """
    return [Day(1.0)] * days


def test_a_function_becomes_its_schemas() -> None:
    signature = compiled(forecast)

    assert signature.input_schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "City name."},
            "days": {"type": "integer", "default": 3, "description": "How many days."},
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert signature.output_schema == {
        "type": "array",
        "items": {"$ref": "#/$defs/Day"},
        "$defs": {"Day": {"type": "object", "properties": {"high": {"type": "number"}}, "required": ["high"]}},
    }
    assert (signature.is_async, signature.is_generator, signature.context_parameter) == (False, False, None)
    assert tool_name(forecast) == "forecast"
    assert description(forecast) == "Forecast for a city."


def test_a_function_that_takes_nothing() -> None:
    def now() -> str:
        return "now"

    signature = compiled(now)

    assert signature.input_schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert signature.bind(None) == ([], {})
    assert signature.output_schema is None
    assert description(now) is None


def test_every_kind_of_parameter_is_passed_as_python_wants_it() -> None:
    def function(a: int, /, b: int, c: int = 3, *, d: int, e: int = 5) -> Any:
        return [a, b, c, d, e]

    assert call(function, '{"d":4,"b":2,"a":1}') == [1, 2, 3, 4, 5]
    assert call(function, '{"e":50,"d":40,"c":30,"b":20,"a":10}') == [10, 20, 30, 40, 50]


@pytest.mark.parametrize(("parameter", "source"), [("args", "*args"), ("options", "**options")])
def test_star_parameters_are_refused_by_name(parameter: str, source: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def function({source}: int): ...", scope)

    with pytest.raises(SignatureError, match=f"^f: parameter '{parameter}'"):
        compiled(scope["function"])


@pytest.mark.parametrize("name", ["_x", "schema", "copy", "json", "model_dump", "self", "cls", "__doc", "match", "p0"])
def test_parameters_keep_their_own_names(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def function({name}: int, other: int = 1): return {name}", scope)

    assert names(compiled(scope["function"])) == [name, "other"]
    assert call(scope["function"], f'{{"{name}":2}}') == 2


def test_defaults_are_handed_over_themselves() -> None:
    marker: list[int] = []
    sentinel = object()

    def function(a: list[int] = marker, b: Any = sentinel, c: int = None) -> Any:  # noqa: RUF013
        return a, b, c

    a, b, c = call(function)

    assert a is marker
    assert b is sentinel
    assert c is None
    assert compiled(function).input_schema["properties"] == {
        "a": {"type": "array", "items": {"type": "integer"}, "default": []},
        "b": {},
        "c": {"type": "integer"},
    }
    assert call(function, '{"c":null}')[2] is None


def test_text_that_looks_like_json_stays_text() -> None:
    def function(a: Optional[str], b: Any, c, d: Literal["null", "1"]) -> Any:
        return [a, b, c, d]

    for text in ('{"a":1}', "[1]", "null", "123"):
        arguments = msgspec.json.encode({"a": text, "b": text, "c": text, "d": "null"}).decode()
        assert call(function, arguments) == [text, text, text, "null"]


def test_bad_arguments_name_the_tool() -> None:
    with pytest.raises(ArgumentErrors, match=r"^The arguments of f are wrong:\n- city: missing; expected text"):
        compiled(forecast).bind(None)


class Counter:
    """Counts things."""

    def __call__(self, x: int) -> int:
        """Count.

        Args:
            x: What to count.
        """
        return x + 1

    def method(self, x: int) -> int:
        return x + 2

    @classmethod
    def make(cls, x: int) -> int:
        return x + 3

    @staticmethod
    def static(x: int) -> int:
        return x + 4


class AsyncCounter:
    async def __call__(self, x: int) -> int:
        return x


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@pytest.mark.parametrize(
    ("function", "result", "name"),
    [
        (Counter(), 2, "Counter"),
        (Counter().method, 3, "method"),
        (Counter.make, 4, "make"),
        (Counter.static, 5, "static"),
        (Counter().static, 5, "static"),
        (traced(Counter().method), 3, "method"),
        (functools.partial(Counter().method), 3, "method"),
        (traced(traced(functools.partial(Counter().method))), 3, None),
    ],
)
def test_every_callable_is_a_tool(function: Any, result: int, name: str | None) -> None:
    assert call(function, '{"x":1}') == result
    assert compiled(function).output_schema == {"type": "integer"}
    assert name is None or tool_name(function) == name


def test_a_callable_object_is_described_by_its_class_and_its_call() -> None:
    assert description(Counter()) == "Counts things."
    assert compiled(Counter()).input_schema["properties"]["x"]["description"] == "What to count."


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(SignatureError, match="name="):
        tool_name(lambda: 1)
    assert call(lambda x: x, '{"x":[1]}') == [1]


def test_a_method_taken_from_its_class_is_refused() -> None:
    with pytest.raises(SignatureError, match="'self' belongs to a method of Counter"):
        compiled(Counter.method)


def test_a_class_method_that_is_not_bound_is_refused() -> None:
    with pytest.raises(SignatureError, match="parameters cannot be read"):
        compiled(Counter.__dict__["make"])


def test_arguments_that_a_partial_binds_are_no_parameters() -> None:
    def function(a: int, b: int, c: int = 3, *, d: int = 4) -> Any:
        return [a, b, c, d]

    first = functools.partial(function, 1)
    middle = functools.partial(function, b=2)

    assert names(compiled(first)) == ["b", "c", "d"]
    assert call(first, '{"b":2}') == [1, 2, 3, 4]
    assert names(compiled(middle)) == ["a", "c", "d"]
    assert call(middle, '{"a":1,"c":9}') == [1, 2, 9, 4]
    with pytest.raises(ArgumentErrors, match="b: unknown argument"):
        compiled(middle).bind(b'{"a":1,"b":5}')


async def coroutine(x: int) -> int:
    return x


def promise(x: int) -> Awaitable[int]:
    return coroutine(x)


@pytest.mark.parametrize(
    "function", [coroutine, AsyncCounter(), AsyncCounter().__call__, functools.partial(coroutine), promise]
)
async def test_what_must_be_awaited_is_known(function: Any) -> None:
    signature = compiled(function)

    assert signature.is_async
    assert not signature.is_generator
    assert signature.output_schema == {"type": "integer"}
    assert await call(function, '{"x":1}') == 1


def items() -> Iterator[int]:
    yield 1
    yield 2


async def later_items() -> AsyncIterator[int]:
    yield 1


def bare_items():
    yield 1


def test_generators_give_the_list_of_their_items() -> None:
    plain, later, bare = compiled(items), compiled(later_items), compiled(bare_items)

    assert (plain.is_generator, plain.is_async) == (True, False)
    assert (later.is_generator, later.is_async) == (True, True)
    assert (bare.is_generator, bare.is_async) == (True, False)
    assert plain.output_schema == later.output_schema == {"type": "array", "items": {"type": "integer"}}
    assert bare.output_schema is None
    assert plain.check_result(list(items())) == b"[1,2]"


def test_a_decorated_generator_is_a_generator() -> None:
    later, plain = compiled(traced(later_items)), compiled(traced(items))

    assert (later.is_generator, later.is_async) == (True, True)
    assert (plain.is_generator, plain.is_async) == (True, False)
    assert later.output_schema == {"type": "array", "items": {"type": "integer"}}


def test_the_context_is_no_argument() -> None:
    def last(a: int, ctx: Context) -> Any:
        return [a, ctx]

    def first(ctx: Context, a: int, b: int = 2) -> Any:
        return [ctx, a, b]

    def middle(a: int, context: Optional[Context] = None, b: int = 2, *, c: int = 3) -> Any:
        return [a, context, b, c]

    assert compiled(last).context_parameter == compiled(first).context_parameter == "ctx"
    assert names(compiled(middle)) == ["a", "b", "c"]
    assert call(last, '{"a":1}', ctx="C") == [1, "C"]
    assert call(first, '{"a":1}', ctx="C") == ["C", 1, 2]
    assert call(middle, '{"a":1,"b":5}', context="C") == [1, "C", 5, 3]


def test_the_context_may_stand_once_and_not_before_the_slash() -> None:
    def twice(a: Context, b: Context) -> None: ...
    def positional(ctx: Context, /) -> None: ...

    with pytest.raises(SignatureError, match="'a' and 'b' both"):
        compiled(twice)
    with pytest.raises(SignatureError, match="parameter 'ctx'"):
        compiled(positional)


def test_without_a_context_type_its_class_is_an_unknown_type() -> None:
    def function(ctx: Context) -> None: ...

    with pytest.raises(SignatureError, match="parameter 'ctx'"):
        compile_signature(function, name="f")


def test_local_classes_are_found_by_name() -> None:
    class Local(TypedDict):
        a: int

    def function(x: Local) -> Local:
        return x

    assert call(function, '{"x":{"a":1}}') == {"a": 1}


def test_an_annotation_that_means_nothing_names_the_parameter() -> None:
    def function(x: Nowhere) -> None: ...  # noqa: F821
    def result() -> Nowhere: ...  # noqa: F821

    with pytest.raises(SignatureError, match="f: the annotation of parameter 'x' cannot be evaluated: .*Nowhere"):
        compiled(function)
    with pytest.raises(SignatureError, match="f: the annotation of its result cannot be evaluated"):
        compiled(result)


def test_types_that_cannot_be_enforced_name_the_parameter() -> None:
    def function(a: int, where: complex) -> None: ...
    def result() -> complex: ...

    with pytest.raises(SignatureError, match="f: parameter 'where': .*complex"):
        compiled(function)
    with pytest.raises(SignatureError, match="f: its result cannot be checked: .*structured=False"):
        compiled(result)
    assert compiled(result, structured=False).output_schema is None


def test_a_builtin_without_a_signature_is_refused() -> None:
    with pytest.raises(SignatureError, match="f: its parameters cannot be read"):
        compiled(dict)


@pytest.mark.parametrize(
    "annotation",
    [
        str, None, Any, object, Image, Photo, list[Image], Image | str, list[Image | str], tuple[Image, ...],
        Optional[Image], Annotated[str, "words"], list[list[Photo]], list[Image | int], tuple[str, Image], Image | dict,
    ],
)  # fmt: skip
def test_text_and_content_have_no_output_schema(annotation: Any) -> None:
    def function() -> Any: ...

    function.__annotations__["return"] = annotation

    assert compiled(function).output_schema is None


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (int, {"type": "integer"}),
        (bool, {"type": "boolean"}),
        (dict, {"type": "object"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (Optional[str], {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (Day, {"type": "object", "properties": {"high": {"type": "number"}}, "required": ["high"]}),
    ],
)
def test_every_other_annotated_result_has_one(annotation: Any, schema: Any) -> None:
    def function() -> Any: ...

    function.__annotations__["return"] = annotation

    assert compiled(function).output_schema == schema
    assert compiled(function, structured=False).output_schema is None


def test_structured_results_can_be_asked_for() -> None:
    def text() -> str: ...
    def nothing(): ...

    assert compiled(text, structured=True).output_schema == {"type": "string"}
    with pytest.raises(SignatureError, match="needs an annotation"):
        compiled(nothing, structured=True)


def test_a_result_is_held_to_the_annotation() -> None:
    signature = compiled(forecast)

    assert signature.check_result([Day(1.5)]) == b'[{"high":1.5}]'
    with pytest.raises(ResultError, match=r"result\[0\]\.high: expected a number"):
        signature.check_result([{"high": "x"}])
    with pytest.raises(ResultError, match="nan at result"):
        compiled(forecast, structured=False).check_result(math.nan)


def test_descriptions_beside_the_type_go_before_the_docstring() -> None:
    def function(a: Annotated[int, "From the type."], b: Annotated[int, "B."] = None, c: int = 0) -> None:  # noqa: RUF013
        """Do.

        Args:
            a: From the docstring.
            c: From the docstring.
        """

    properties = compiled(function).input_schema["properties"]

    assert [properties[name]["description"] for name in "abc"] == ["From the type.", "B.", "From the docstring."]


def test_a_decorator_of_the_standard_library_keeps_the_signature() -> None:
    @functools.lru_cache
    def cached(x: int) -> int:
        return x

    @contextlib.contextmanager
    def unusual(x: int) -> Iterator[int]:
        yield x

    assert call(cached, '{"x":"1"}') == 1
    assert names(compiled(unusual, structured=False)) == ["x"]


class Address(TypedDict):
    street: str
    zip: NotRequired[Annotated[int, msgspec.Meta(ge=1)]]


class Person(Address, total=False):
    name: Required[str]
    born: Annotated[str, Name("from")]
    friends: list[str] | None


def test_unpacked_members_are_parameters_by_keyword() -> None:
    def function(a: int, /, b: int = 2, **more: Unpack[Person]) -> Any:
        return a, b, more

    schema = compiled(function).input_schema

    assert schema["properties"] == {
        "a": {"type": "integer"},
        "b": {"type": "integer", "default": 2},
        "street": {"type": "string"},
        "zip": {"type": "integer", "minimum": 1},
        "name": {"type": "string"},
        "from": {"type": "string"},
        "friends": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
    }
    assert schema["required"] == ["a", "street", "name"]
    assert schema["additionalProperties"] is False
    assert call(function, '{"a":1,"street":"s","name":"n"}') == (1, 2, {"street": "s", "name": "n"})
    found = call(function, '{"a":1,"street":"s","name":"n","from":"here","zip":"7","friends":null}')
    assert found == (1, 2, {"street": "s", "name": "n", "born": "here", "zip": 7, "friends": None})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"street":"s"}', "name: missing; expected text"),
        ('{"street":"s","name":"n","zip":0}', "zip: expected an integer >= 1"),
        ('{"street":"s","name":"n","nome":1}', "nome: unknown argument; did you mean name?"),
    ],
)
def test_unpacked_members_are_checked(arguments: str, said: str) -> None:
    def function(**more: Unpack[Person]) -> None: ...

    with pytest.raises(ArgumentErrors) as caught:
        call(function, arguments)
    assert said in str(caught.value)


def test_what_unpacked_members_are_of_may_be_generic_or_from_typing_extensions() -> None:
    T = TypeVar("T")

    class Pair(TypedDict, Generic[T]):
        first: T
        second: NotRequired[T]

    def of_numbers(**more: Unpack[Pair[int]]) -> Any:
        return more

    def extension(ctx: Context, **more: typing_extensions.Unpack[Pair[str]]) -> Any:
        return more

    assert call(of_numbers, '{"first":"1"}') == {"first": 1}
    assert call(extension, '{"first":"1","second":"2"}', ctx=None) == {"first": "1", "second": "2"}
    assert compiled(extension).context_parameter == "ctx"


def test_unpacked_members_beside_a_schema_given_by_hand() -> None:
    def function(a: int, *rows: Any, **more: Unpack[Person]) -> Any:
        return a, rows, more

    given = {"type": "object", "properties": {"a": {"type": "integer"}, "rows": {"type": "array"}}, "required": ["a"]}
    signature = compiled(function, input_schema=given)
    assert signature.input_schema is given
    args, kwargs = signature.bind(b'{"a":1,"rows":[2,3],"street":"s","name":"n","zip":"4"}')
    assert function(*args, **kwargs) == (1, (2, 3), {"street": "s", "name": "n", "zip": 4})


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (Person, r"parameter 'more' \(\*\*more\) has no schema; .*annotate it as Unpack\[...\] of a TypedDict"),
        (Any, "has no schema"),
        (Unpack[tuple[int, ...]], "has no schema"),
        (Unpack[TypedDict("Twice", {"a": int})], "parameter 'more' has a member 'a', and another parameter"),  # type: ignore[operator]
        (Unpack[TypedDict("Odd", {"x": Iterator})], "parameter 'more', member 'x'"),  # type: ignore[operator]
    ],
)
def test_other_keywords_are_refused(annotation: Any, said: str) -> None:
    def function(a: int, **more: Any) -> None: ...

    function.__annotations__["more"] = annotation
    with pytest.raises(SignatureError, match=f"^f: .*{said}"):
        compiled(function)


def test_names_beside_one_option_of_a_union_are_the_parameters() -> None:
    other = Annotated[int, msgspec.Meta(ge=1)] | Annotated[str, Name("to")]

    def function(a: Annotated[int, Name("from")] | None, b: other) -> Any:  # type: ignore[valid-type]
        return a, b

    assert names(compiled(function)) == ["from", "to"]
    assert call(function, '{"from":1,"to":"x"}') == (1, "x")
