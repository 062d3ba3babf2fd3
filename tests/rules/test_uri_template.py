"""URI templates: expansion as RFC 6570 has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from modelwire.errors import ConfigError
from modelwire.rules.uri_template import UriTemplate

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "uritemplate"


def examples(*names: str) -> list[Any]:
    """Template, values and what may come out, of every example in the shared files."""
    found: list[Any] = []
    for name in names:
        path = DATA / f"{name}.json"
        groups: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        for group in groups.values():
            for template, expected in group["testcases"]:
                expansions = expected if isinstance(expected, list) else [expected]
                found.append(pytest.param(template, group["variables"], expansions, id=template))
    return found


@pytest.mark.parametrize(
    ("template", "values", "expected"), examples("spec-examples", "spec-examples-by-section", "extended-tests")
)
def test_expansion_is_that_of_the_shared_examples(template: str, values: dict[str, Any], expected: list[str]) -> None:
    compiled = UriTemplate(template)

    assert compiled.expand(values) in expected


@pytest.mark.parametrize(("template", "values", "expected"), examples("negative-tests"))
def test_the_shared_bad_examples_are_refused(template: str, values: dict[str, Any], expected: list[bool]) -> None:
    assert expected == [False]
    with pytest.raises(ConfigError):
        UriTemplate(template).expand(values)


def test_values_come_from_a_mapping_or_from_keywords() -> None:
    template = UriTemplate("weather://{city}/now{?units,lang}")

    assert template.expand({"city": "Oslo", "units": "c"}) == "weather://Oslo/now?units=c"
    assert template.expand(city="São Paulo") == "weather://S%C3%A3o%20Paulo/now"
    assert template.expand({"city": "a", "lang": "no"}, city="b") == "weather://b/now?lang=no"
    assert template.expand() == "weather:///now"
    assert UriTemplate("{self}").expand(self=1) == "1"


@pytest.mark.parametrize(
    ("value", "text"), [(5, "5"), (1.5, "1.5"), (True, "true"), (False, "false"), (None, ""), ("", ""), ((1, 2), "1,2")]
)
def test_numbers_and_booleans_are_written_as_in_json(value: Any, text: str) -> None:
    assert UriTemplate("{v}").expand(v=value) == text


@pytest.mark.parametrize("value", [object(), b"x", [["nested"]], {"a": {"b": 1}}, "\ud800"])
def test_values_that_no_uri_can_hold_are_refused(value: Any) -> None:
    with pytest.raises(ConfigError):
        UriTemplate("{v}").expand(v=value)


def test_undefined_members_leave_nothing() -> None:
    assert UriTemplate("x{/v*}{?w*}").expand(v=["a", None, "b"], w={"k": None, "l": 1}) == "x/a/b?l=1"


def test_literal_text_is_encoded_and_what_is_encoded_stays() -> None:
    assert UriTemplate("file:///caf\u00e9 au lait/%41{v}").expand(v="x") == "file:///caf%C3%A9%20au%20lait/%41x"


def test_a_prefix_counts_characters_and_splits_no_triplet() -> None:
    assert UriTemplate("{v:2}").expand(v="日本語") == "%E6%97%A5%E6%9C%AC"
    assert UriTemplate("{+v:2}").expand(v="a%2Fb") == "a%2F"


def test_variables_are_listed_once_in_order() -> None:
    assert UriTemplate("{b}{?a,b}{c:1}{c}").variables == ("b", "a", "c")


def test_templates_are_equal_by_their_text() -> None:
    assert UriTemplate("{a}") == UriTemplate("{a}")
    assert len({UriTemplate("{a}"), UriTemplate("{a}"), UriTemplate("{b}")}) == 2
    assert UriTemplate("{a}") != "{a}"
    assert repr(UriTemplate("{a}")) == "UriTemplate('{a}')"
