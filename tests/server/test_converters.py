"""Every kind of type: its schemas, its way there and back, and what is refused at registration."""

from __future__ import annotations

import collections
import dataclasses
import enum
import json
import pathlib
import subprocess
import sys
import uuid
from typing import Annotated, Any, Literal, Optional

import annotated_types as at
import jsonschema_rs
import msgspec
import pydantic
import pytest

from modelwire.errors import SignatureError, ToolError
from modelwire.server.annotations import Name
from modelwire.server.converters import Unsupported, converter
from modelwire.server.plain import Plain
from modelwire.server.signature import compile_signature
from tests.server.kinds import KINDS, SNAPSHOTS, Bits, Place, Point, schemas_of, signature_of

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def bind(annotation: Any, value: Any) -> Any:
    args, _ = signature_of(annotation).bind(json.dumps({"v": value}).encode())
    return args[0]


@pytest.mark.parametrize("name", KINDS)
def test_a_value_goes_there_and_back_unchanged(name: str) -> None:
    annotation, value, plain = KINDS[name]
    signature = signature_of(annotation)

    written = signature.check_result(value)

    assert json.loads(written) == plain
    assert signature.bind(b'{"v":' + written + b"}") == ([value], {})
    assert type(bind(annotation, plain)) is type(value)


@pytest.mark.parametrize("name", KINDS)
def test_schemas_are_valid_and_hold_for_the_value(name: str) -> None:
    annotation, _, plain = KINDS[name]
    signature = signature_of(annotation)

    for schema in (signature.input_schema, signature.output_schema or {}):
        jsonschema_rs.meta.validate({"$schema": DIALECT, **schema})
    assert jsonschema_rs.Draft202012Validator(signature.input_schema).is_valid({"v": plain})
    assert jsonschema_rs.Draft202012Validator(signature.output_schema or {}).is_valid(plain)


@pytest.mark.parametrize("name", KINDS)
def test_schemas_are_as_they_were(name: str) -> None:
    """If this fails for a good reason: ``python -m tests.server.kinds``, and read the difference."""
    assert schemas_of(KINDS[name][0]) == json.loads(SNAPSHOTS.read_text())[name]


def test_what_msgspec_enforces_stays_with_msgspec() -> None:
    for annotation in (int, list[Point], Annotated[int, at.Gt(0)], dict[str, Annotated[int, pydantic.Field(ge=1)]],
                       Annotated[int | None, at.Ge(1)], list[pydantic.PositiveInt | None]):  # fmt: skip
        assert type(converter(annotation)) is Plain
    assert type(converter(Point | Place)) is not Plain


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (complex, "complex"),
        (Bits, "Flag"),
        (list[Bits | int], "Flag"),
        (dict[bool, pathlib.Path], "keys"),
        (Annotated[str, at.Gt(5)], "does not apply to text"),
        (Annotated[uuid.UUID | int, at.Len(1)], "does not apply"),
        (Annotated[pathlib.Path, msgspec.Meta(extra_json_schema={"minLength": 3})], "minLength"),
        (Annotated[int, pydantic.Field(alias=None, json_schema_extra={"minimum": 3})], "minimum"),
        (enum.Enum("Times", {"A": 1.5 + 2j}), "no JSON form"),
        (Literal[b"x"], "Literal"),
    ],
)
def test_what_nothing_could_enforce_is_refused_and_named(annotation: Any, words: str) -> None:
    with pytest.raises(SignatureError, match="parameter 'v': ") as refused:
        signature_of(annotation)
    assert words in str(refused.value)


@pytest.mark.parametrize("annotation", [object, list[object], dict[str, object], Optional[object]])
def test_object_is_anything(annotation: Any) -> None:
    value: Any = {"a": [1, None]} if "list" not in str(annotation) else [{"a": 1}]
    assert converter(annotation).load(value, "v") == value


def test_a_refusal_inside_a_class_names_the_field() -> None:
    @dataclasses.dataclass
    class Inner:
        strange: complex

    @dataclasses.dataclass
    class Outer:
        inner: Inner
        path: pathlib.Path

    def function(v: Outer) -> None: ...

    with pytest.raises(SignatureError, match=r"parameter 'v': Outer\.inner: Inner\.strange: .*complex"):
        compile_signature(function, name="f")


def test_an_init_var_is_refused() -> None:
    @dataclasses.dataclass
    class Seeded:
        path: pathlib.Path
        seed: dataclasses.InitVar[int]

    with pytest.raises(SignatureError, match="InitVar"):
        signature_of(Seeded)


def test_local_classes_may_refer_to_each_other() -> None:
    @dataclasses.dataclass
    class Leaf:
        size: Annotated[int, at.Gt(0)]

    @dataclasses.dataclass
    class Branch:
        leaf: Leaf
        branches: list[Branch]

    def function(v: Branch) -> Branch:
        return v

    signature = compile_signature(function, name="f")

    assert signature.bind(b'{"v":{"leaf":{"size":1},"branches":[]}}') == ([Branch(Leaf(1), [])], {})


def test_two_classes_of_one_name_get_two_definitions() -> None:
    def make(kind: Any) -> Any:
        return dataclasses.make_dataclass("Same", [("v", kind)])

    schemas = schemas_of(make(pathlib.Path) | make(Annotated[int, at.Gt(0)]) | make(str))

    assert set(schemas["$defs"]) == {"Same", "Same_2", "Same_3"}


def test_a_default_dict_makes_what_its_type_says() -> None:
    found = bind(collections.defaultdict[str, list[int]], {})

    assert found["new"] == []


def test_our_marker_renames_fields_and_parameters() -> None:
    @dataclasses.dataclass
    class Mail:
        sender: Annotated[str, Name("from")]

    assert bind(Mail, {"from": "a"}) == Mail("a")
    with pytest.raises(Unsupported, match="names a field"):
        converter(list[Annotated[str, Name("from")]])


def test_our_marker_renames_a_parameter() -> None:
    def function(from_: Annotated[str, Name("from")], class_: Annotated[int, Name("class")] = 1, *, other: int) -> Any:
        """Do.

        Args:
            from_: Where from.
        """
        return [from_, class_, other]

    signature = compile_signature(function, name="f")

    assert list(signature.input_schema["properties"]) == ["from", "class", "other"]
    assert signature.input_schema["properties"]["from"]["description"] == "Where from."
    assert signature.input_schema["required"] == ["from", "other"]
    assert signature.bind(b'{"from":"a","class":2,"other":3}') == (["a", 2], {"other": 3})
    with pytest.raises(ToolError, match="from_: unknown argument; did you mean from"):
        signature.bind(b'{"from_":"a","other":3}')


def test_two_parameters_of_one_name_are_refused() -> None:
    def function(a: int, b: Annotated[int, Name("a")]) -> None: ...

    with pytest.raises(SignatureError, match="'a' and 'b' are both called 'a'"):
        compile_signature(function, name="f")


def test_no_library_is_imported_for_types_that_do_not_need_it() -> None:
    program = (
        "import dataclasses, pathlib, sys, uuid\n"
        "from modelwire.server.signature import compile_signature\n"
        "@dataclasses.dataclass\n"
        "class A:\n    path: pathlib.Path\n    either: uuid.UUID | str\n"
        "def function(a: A) -> A: return a\n"
        'compile_signature(function, name=\'f\').bind(b\'{"a":{"path":"x","either":"y"}}\')\n'
        "print([name for name in ('pydantic', 'attr', 'annotated_types', 'jsonschema_rs') if name in sys.modules])\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=50)

    assert found.stdout.strip() == "[]"
