"""pydantic's types are pydantic's to convert; what is said of them is ours."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pydantic
import pytest

from modelwire.errors import SignatureError, ToolError
from modelwire.server.converters import converter
from modelwire.server.results import ResultCheck, ResultError
from modelwire.server.signature import compile_signature
from tests.server.kinds import Checked, Model, ModelPage, Numbers, Strict, signature_of


class Login(pydantic.BaseModel):
    user: str
    api_key: int

    @pydantic.model_validator(mode="after")
    def known(self) -> Login:
        raise ValueError(f"nobody has the key {self.api_key}")


class Lenient(pydantic.BaseModel):
    when: Annotated[str, pydantic.BeforeValidator(lambda value: str(value).strip())]


class Later(pydantic.BaseModel):
    part: Part


class Part(pydantic.BaseModel):
    size: int


def bind(annotation: Any, value: Any) -> Any:
    args, _ = signature_of(annotation).bind(json.dumps({"v": value}).encode())
    return args[0]


def problems(annotation: Any, value: Any) -> list[str]:
    with pytest.raises(ToolError) as refused:
        bind(annotation, value)
    for word in ("pydantic", "errors.", "Input should", "Value error", "Field required"):
        assert word not in refused.value.message
    return refused.value.problems  # pyright: ignore


@pytest.mark.parametrize(
    ("annotation", "value", "told"),
    [
        (Model, {}, ["v.from: missing; expected an integer"]),
        (Model, {"from": "x", "note": "y"},
         ['v.from: expected an integer, got "x"', 'v.note: expected an integer or null, got "y"']),
        (Model, {"from": 1, "children": [{"from": "x"}]}, ['v.children[0].from: expected an integer, got "x"']),
        (Model, {"from": 1, "note": 13}, ["v.note: 13 is unlucky"]),
        (Model, {"from": 1, "children": [{"from": 1, "note": 13}]}, ["v.children[0].note: 13 is unlucky"]),
        (Strict, {"nam": "x"}, ["v.nam: unknown member; did you mean name?", "v.name: missing; expected text"]),
        (ModelPage[int], {"items": [1, "x"]}, ['v.items[1]: expected an integer, got "x"']),
        (Numbers, {}, ["v: expected a list, got an object with 0 members"]),
        (Checked, {"a": 0}, ["v.a: expected an integer >= 1, got the number 0"]),
        (Checked, [], ["v: expected an object, got a list of 0 items"]),
        (list[Model], [{"from": 1}, {}], ["v[1].from: missing; expected an integer"]),
        (Annotated[str, pydantic.StringConstraints(to_lower=True, max_length=1)], "AB",
         ['v: expected text of at most 1 characters, got "AB"']),
    ],
)  # fmt: skip
def test_faults_are_told_in_our_words(annotation: Any, value: Any, told: list[str]) -> None:
    assert problems(annotation, value) == told


@pytest.mark.parametrize("annotation", [pydantic.AnyUrl, pydantic.HttpUrl, pydantic.Json[int], pydantic.UUID4])
def test_formats_are_told_in_our_words(annotation: Any) -> None:
    (problem,) = problems(annotation, "zz")

    assert problem.startswith("v: ")


def test_values_are_coerced_by_our_table_and_no_other() -> None:
    assert bind(Model, {"from": 3.0}).sender == 3
    assert bind(Model, '{"from": 3}').sender == 3
    assert bind(Numbers, "[1, 2.0]").root == [1, 2]
    assert problems(Model, {"from": "3"}) == ['v.from: expected an integer, got "3"']
    assert problems(Model, {"from": True}) == ["v.from: expected an integer, got true"]


def test_what_a_validator_before_makes_of_a_value_is_taken() -> None:
    assert bind(Lenient, {"when": " x "}).when == "x"


def test_a_validator_that_repeats_a_secret_is_not_quoted() -> None:
    told = problems(Login, {"user": "u", "api_key": 424242})

    assert "424242" not in str(told)
    assert told[0].startswith("v: ")
    assert problems(Login, {"user": "u", "api_key": "hunter2"}) == [
        "v.api_key: expected an integer, got text (not shown)"
    ]


def test_names_defined_later_are_found() -> None:
    assert bind(Later, {"part": {"size": 1}}) == Later(part=Part(size=1))


def test_computed_fields_are_in_results_only() -> None:
    signature = signature_of(Model)

    assert "double" not in signature.input_schema["properties"]["v"].get("properties", {})
    assert "double" in (signature.output_schema or {})["properties"]


def test_results_are_held_to_the_model() -> None:
    signature = signature_of(Model)

    assert json.loads(signature.check_result({"from": 1}))["double"] == 2
    with pytest.raises(ResultError, match="returned what its annotation does not allow"):
        signature.check_result(Model.model_construct(sender="x"))
    with pytest.raises(ResultError):
        signature.check_result({"from": "x"})
    with pytest.raises(ResultError):
        signature.check_result(Strict(name="x"))


def test_a_model_needs_no_annotation_to_be_a_result() -> None:
    assert json.loads(ResultCheck("f", converter(Any)).encode([Strict(name="x")])) == [{"name": "x"}]


def test_a_type_that_pydantic_refuses_is_a_signature_error() -> None:
    class Unknown:
        pass

    with pytest.raises(SignatureError, match="parameter 'v'"):
        signature_of(Annotated[Unknown, pydantic.Field(strict=True)])


def test_a_strict_field_with_an_alias_is_a_parameter_of_that_name() -> None:
    def function(v: Annotated[int, pydantic.Field(3, alias="from", strict=True)]) -> None: ...

    signature = compile_signature(function, name="f")

    assert signature.input_schema["properties"] == {"from": {"type": "integer", "default": 3}}
    assert signature.bind(b"{}") == ([3], {})


def test_titles_are_only_those_given_by_hand() -> None:
    class Titled(pydantic.BaseModel):
        plain_name: int
        other: Annotated[int, pydantic.Field(title="The other one")]

    assert signature_of(Titled).input_schema["properties"]["v"]["properties"] == {
        "plain_name": {"type": "integer"},
        "other": {"type": "integer", "title": "The other one"},
    }


def test_a_deep_value_of_a_recursive_model_is_refused_quickly() -> None:
    value: dict[str, Any] = {"from": "bad"}
    for _ in range(30):
        value = {"from": 1, "children": [value]}

    assert problems(Model, value) == ["v: something inside it does not fit; it is nested too deeply to say what"]


def test_a_model_is_compiled_once_for_all_tools_that_take_and_return_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Common(pydantic.BaseModel):
        name: str

    compiled: list[Any] = []
    adapter = pydantic.TypeAdapter
    monkeypatch.setattr(pydantic, "TypeAdapter", lambda kind: compiled.append(kind) or adapter(kind))

    first, second = signature_of(Common), signature_of(list[Common])

    assert compiled == [Common]
    assert first.input_schema["properties"]["v"] == second.input_schema["properties"]["v"]["items"]
    assert first.bind(b'{"v":{"name":"a"}}') == ([Common(name="a")], {})
