"""Arguments: one typed decode when all is well, every fault in plain words when it is not."""

from __future__ import annotations

import dataclasses
import datetime
import enum
from typing import Any, Literal, Optional

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwire.errors import RpcError, ToolError
from modelwire.server.arguments import Argument, ArgumentErrors, Binder
from modelwire.server.arguments import binder as compiled
from modelwire.server.converters import converter


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Day:
    date: datetime.date
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Positive:
    x: int

    def __post_init__(self) -> None:
        if self.x <= 0:
            raise ValueError("x must be positive")


def argument(name: str, kind: Any, *default: Any) -> Argument:
    return Argument(name, converter(kind, closed=True), *default)


def binder(**types: Any) -> Binder:
    return compiled("book", [argument(name, kind) for name, kind in types.items()])


def bind(binder: Binder, text: str | bytes) -> tuple[Any, ...]:
    return binder.values(msgspec.Raw(text.encode() if isinstance(text, str) else text))


def problems(binder: Binder, text: str | bytes) -> list[str]:
    with pytest.raises(ArgumentErrors) as caught:
        bind(binder, text)
    for word in ("`", "$.", "int`", "msgspec"):
        assert word not in caught.value.message
    return caught.value.problems


def test_values_come_in_the_order_of_the_parameters() -> None:
    assert bind(binder(a=int, b=str), '{"b": "x", "a": 1}') == (1, "x")


def test_of_a_long_list_of_faults_the_first_are_told_and_the_others_counted() -> None:
    with pytest.raises(ArgumentErrors) as refused:
        bind(binder(items=list[int]), msgspec.json.encode({"items": ["x"] * 2000}).decode())
    lines = refused.value.message.splitlines()
    assert lines[1] == '- items[0]: expected an integer, got "x"'
    assert lines[-1] == "- and 1950 more like these"
    assert len(lines) == 52


def test_the_error_is_a_tool_error_whose_message_holds_every_problem() -> None:
    with pytest.raises(ToolError) as caught:
        bind(binder(a=int, b=int), '{"a": "x", "c": 1}')

    assert caught.value.message == (
        "The arguments of book are wrong:\n"
        '- a: expected an integer, got "x"\n'
        "- b: missing; expected an integer\n"
        "- c: unknown argument; known are a, b"
    )


@pytest.mark.parametrize("raw", [None, b"{}", b"null", b" {} "])
def test_absent_arguments_are_an_empty_object(raw: bytes | None) -> None:
    assert compiled("book", []).values(raw) == ()


@pytest.mark.parametrize("text", ["{", "", '{"a":', "nope", b'{"a":"\xff"}'])
def test_arguments_that_are_no_json_are_refused(text: str | bytes) -> None:
    assert problems(binder(a=str), text)[0].startswith(("expected a JSON object, got", "a: JSON that cannot be read"))


@pytest.mark.parametrize("text", ["[1]", '"x"', "1", "true"])
def test_arguments_that_are_no_object_are_an_error_of_the_protocol(text: str) -> None:
    with pytest.raises(RpcError, match="must be an object") as refused:
        binder(a=str).values(text.encode())
    assert refused.value.code == -32602


@pytest.mark.parametrize("default", [[], {}, object(), Colour.RED, float("nan"), None, 5, "x", Day(datetime.date.min)])
def test_an_absent_argument_takes_the_default_itself(default: Any) -> None:
    filled = compiled("book", [argument("a", Any, default), argument("b", int, 1)])

    assert filled.values(None)[0] is default
    assert bind(filled, '{"b": "2"}')[0] is default  # also on the path that coerces


def test_an_explicit_null_is_none_only_where_the_type_takes_it() -> None:
    assert bind(compiled("book", [argument("a", Optional[int], 5)]), '{"a": null}') == (None,)
    assert problems(compiled("book", [argument("a", int, 5)]), '{"a": null}') == ["a: expected an integer, got null"]


@pytest.mark.parametrize("kind", [str, Optional[str], Any, str | int, str | list[int] | None])
@pytest.mark.parametrize("text", ['{"a":1}', "[1]", "null", "123", "true", "1.5", ""])
def test_text_stays_text_wherever_text_is_allowed(kind: Any, text: str) -> None:
    (value,) = bind(binder(a=kind), msgspec.json.encode({"a": text}))

    assert value == text
    assert type(value) is str


@pytest.mark.parametrize("text", ["null", "1"])
def test_a_literal_keeps_text_that_looks_like_json(text: str) -> None:
    assert bind(binder(a=Literal["null", "1"]), msgspec.json.encode({"a": text})) == (text,)


def test_a_bool_is_no_integer_and_an_integer_no_bool() -> None:
    assert problems(binder(a=int, b=bool, c=float), '{"a": true, "b": 1, "c": false}') == [
        "a: expected an integer, got true",
        "b: expected true or false, got the number 1",
        "c: expected a number, got false",
    ]


def test_values_of_the_wrong_type_are_coerced_by_the_table() -> None:
    filled = binder(a=int, b=float, c=bool, d=list[int], e=dict[str, int], f=int, g=Optional[Day])
    text = '{"a":"1","b":"1.5","c":"true","d":"[1,2]","e":"{\\"x\\":1}","f":3.0,"g":"{\\"date\\":\\"2026-01-31\\"}"}'

    assert bind(filled, text) == (1, 1.5, True, [1, 2], {"x": 1}, 3, Day(datetime.date(2026, 1, 31)))


def test_text_that_holds_the_wanted_json_is_explained_inside() -> None:
    assert problems(binder(a=list[int]), '{"a": "[1, \\"x\\"]"}') == ['a[1]: expected an integer, got "x"']


def test_faults_are_told_where_they_are() -> None:
    filled = binder(days=list[Day], colour=Colour, when=datetime.datetime)
    text = '{"days":[{"date":5,"tags":[1]},{}],"colour":"green","when":"tomorrow"}'

    assert problems(filled, text) == [
        'days[0].date: expected a date such as "2026-01-31", got the number 5',
        "days[0].tags[0]: expected text, got the number 1",
        'days[1].date: missing; expected a date such as "2026-01-31"',
        'colour: expected one of "red", "blue", got "green"',
        'when: expected a date and time such as "2026-01-31T09:30:00Z", got "tomorrow"',
    ]


def test_the_nearest_known_name_is_suggested() -> None:
    assert problems(binder(city=str, days=int), '{"city":"Oslo","days":1,"citty":"x","zzz":1}') == [
        "citty: unknown argument; did you mean city?",
        "zzz: unknown argument; known are city, days",
    ]
    assert problems(binder(), '{"a":1}') == ["a: unknown argument; none is taken"]


@pytest.mark.parametrize("name", ["password", "api_key", "access_token", "client_secret", "passphrase"])
@pytest.mark.parametrize("value", ["hunter2", 424242, {"hunter2": 424242}, ["hunter2"], '{"x":"hunter2"}'])
def test_a_value_whose_name_smells_of_a_secret_is_never_repeated(name: str, value: Any) -> None:
    for kind in (bool, list[bool], dict[str, bool], Colour):
        (first, *_) = problems(binder(**{name: kind}), msgspec.json.encode({name: value}))

        assert first.startswith(name)
        assert "hunter2" not in first
        assert "424242" not in first


def test_a_secret_inside_an_object_is_not_repeated_either() -> None:
    class Login(msgspec.Struct):
        user: str
        password: int

    found = problems(
        binder(a=Login, b=int), '{"a":{"user":1,"password":"hunter2"},"b":"{\\"password\\":\\"hunter2\\"}"}'
    )

    assert found == [
        "a.user: expected text, got the number 1",
        "a.password: expected an integer, got text (not shown)",
        "b: expected an integer, got text of 22 characters",
    ]


def test_long_values_are_shortened() -> None:
    (problem,) = problems(binder(a=int), msgspec.json.encode({"a": "x" * 10_000}))

    assert len(problem) < 120


@pytest.mark.parametrize("text", ['{"a":1e400}', '{"a":-1e999}'])
def test_a_number_too_large_for_a_float_is_refused(text: str) -> None:
    for kind in (float, Any, int):
        assert problems(binder(a=kind), text) == ["a: a number too large to represent"]


def test_integers_of_any_size_arrive_whole() -> None:
    assert bind(binder(a=int, b=Any), '{"a":123456789012345678901234567890,"b":-99999999999999999999}') == (
        123456789012345678901234567890,
        -99999999999999999999,
    )


def test_what_a_class_says_of_its_values_reaches_the_model() -> None:
    assert problems(binder(p=Positive), '{"p":{"x":0}}') == ["p: x must be positive"]


@pytest.mark.parametrize(
    "name",
    ["_x", "__y", "schema", "copy", "json", "model_dump", "self", "cls", "class", "p0", "Ünï", "__struct_fields__"],
)
def test_any_name_is_an_argument(name: str) -> None:
    assert bind(binder(**{"p1": int, name: str}), msgspec.json.encode({"p1": 1, name: "v"})) == (1, "v")


def test_deep_nesting_is_refused_like_any_other_fault() -> None:
    assert problems(binder(a=list[int]), '{"a":' + "[" * 100_000 + "]" * 100_000 + "}")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["a", "b", "c", "d", "password"]), JSON))
def test_junk_is_bound_or_refused_with_problems(arguments: dict[str, Any]) -> None:
    filled = compiled(
        "book",
        [
            argument("a", list[Day] | None, None),
            argument("b", dict[str, int | list[float]], None),
            argument("c", Literal["x", 1] | None, None),
            argument("password", tuple[int, str], None),
        ],
    )
    try:
        values = filled.values(msgspec.json.encode(arguments))
    except ArgumentErrors as error:
        values = None
        told = error.problems
    else:
        told = []

    assert (values is None) == bool(told)


def test_what_decodes_is_made_with_the_first_call_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    defstruct: Any = msgspec.defstruct

    def counted(name: str, *args: Any, **options: Any) -> Any:
        made.append(name)
        return defstruct(name, *args, **options)

    monkeypatch.setattr(msgspec, "defstruct", counted)
    binder = compiled("f", [Argument("a", converter(int)), Argument("b", converter(Colour), Colour.RED)])
    assert not made

    assert [binder.values(b'{"a": 1}'), binder.values(b'{"a": 2}')] == [(1, Colour.RED), (2, Colour.RED)]
    assert made == ["Arguments"]
