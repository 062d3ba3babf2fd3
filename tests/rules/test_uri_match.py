"""From a URI back to the values of its template."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwire.rules.uri_template import UriTemplate

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "uritemplate"


def match(template: str, uri: str) -> Any:
    return UriTemplate(template).match(uri)


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("weather://{city}/now", "weather://oslo/now", {"city": "oslo"}),
        ("weather://now", "weather://now", {}),
        ("x:/{a}/{b}", "x:/1/2", {"a": "1", "b": "2"}),
        ("x:/{a,b}", "x:/1,2", {"a": "1", "b": "2"}),
        ("x:/{a,b}", "x:/1", {"a": "1"}),
        ("x:/{mail}", "x:/me@example.org;v=1", {"mail": "me@example.org;v=1"}),
        ("x:/{name}.{ext}", "x:/a.tar.gz", {"name": "a.tar", "ext": "gz"}),
        ("x:/{name}{.ext}", "x:/a", {"name": "a"}),
        ("x:/{+path}", "x:/a/b?c#d", {"path": "a/b?c#d"}),
        ("x:/{+dir}/{file}", "x:/a/b/c", {"dir": "a/b", "file": "c"}),
        ("x:{/path*}", "x:/a/b/c", {"path": ["a", "b", "c"]}),
        ("x:{/path*}", "x:", {}),
        ("x:{/path*}/end", "x:/a/end/end", {"path": ["a", "end"]}),
        ("x:{/a,b,c}", "x:/1/2", {"a": "1", "b": "2"}),
        ("x:{/a,rest*}", "x:/1/2/3", {"a": "1", "rest": ["2", "3"]}),
        ("x:{/a,rest*}", "x:/1", {"a": "1"}),
        ("x:{/a}{/b}", "x:/1", {"a": "1"}),
        ("x{.a,b}", "x.1.2", {"a": "1", "b": "2"}),
        ("x{.v}", "x.1.2", {"v": "1.2"}),
        ("x{;a,b}", "x;a=1;b", {"a": "1", "b": ""}),
        ("x{;a,ab}", "x;ab=1", {"ab": "1"}),
        ("x{;a*}", "x;k=1;l=2", {"a": {"k": "1", "l": "2"}}),
        ("x{;a*}", "x;a=1;a=2", {"a": ["1", "2"]}),
        ("x{#part}", "x#a/b?c", {"part": "a/b?c"}),
        ("x{#part}", "x", {}),
        ("x{?a,b}", "x?b=2&a=1", {"a": "1", "b": "2"}),
        ("x{?a,b}", "x?b=", {"b": ""}),
        ("x{?a,b}", "x?b", {"b": ""}),
        ("x{?a,b}", "x?", {}),
        ("x{?a,b}", "x", {}),
        ("x{?a}{&b}", "x?b=2&a=1", {"a": "1", "b": "2"}),
        ("x{?a}{&b}", "x&b=2", {"b": "2"}),
        ("x?fixed=1{&a}", "x?fixed=1&a=2", {"a": "2"}),
        ("x{?a}#end", "x?a=1#end", {"a": "1"}),
        ("x{?tags*}", "x?tags=a&tags=b", {"tags": ["a", "b"]}),
        ("x{?a,more*}", "x?k=1&a=2&l=3", {"a": "2", "more": {"k": "1", "l": "3"}}),
        ("x{?Stra%C3%9Fe}", "x?Straße=1", {"Stra%C3%9Fe": "1"}),
        ("x{list*}", "xa,b", {"list": ["a", "b"]}),
        ("x{keys*}", "xa=1,b=2", {"keys": {"a": "1", "b": "2"}}),
        ("{v:1}/{v}", "a/abc", {"v": "abc"}),
        ("{v}/{v}", "a/a", {"v": "a"}),
        ("{v:3}", "abc", {"v": "abc"}),
    ],
)
def test_values_are_recovered(template: str, uri: str, values: dict[str, Any]) -> None:
    assert match(template, uri) == values


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("weather://{city}/now", "weather://oslo/then"),
        ("weather://{city}/now", "weather:///now"),
        ("weather://{city}/now", "weather://a/b/now"),
        ("weather://{city}/now", "Weather://a/now"),
        ("weather://{city}", "weather://a?x=1"),
        ("weather://{city}", "weather://a#x"),
        ("weather://now", "weather://now/"),
        ("x{?a}", "x?b=1"),
        ("x{?a}", "x?a=1&a=2"),
        ("x{?a}", "x&a=1"),
        ("x{/a}", "xa"),
        ("x{/a,b}", "x/1/2/3"),
        ("{v}/{v}", "a/b"),
        ("{v:1}/{v}", "a/bc"),
        ("{v:3}", "abcd"),
        ("{v}", "a%2"),
        ("{v}", "%zz"),
        ("{v}", "%FF"),
        ("{v}", "%C3"),
        ("{v}", "\ud800"),
        ("{v}", ""),
        ("x%2Fy", "x/y"),
        ("x/y", "x%2Fy"),
    ],
)
def test_a_uri_of_another_form_does_not_match(template: str, uri: str) -> None:
    assert match(template, uri) is None


@pytest.mark.parametrize(
    "template", ["file:///docs/café/{name}", "file:///docs/caf%C3%A9/{name}", "file:///docs/caf%c3%a9/{name}"]
)
@pytest.mark.parametrize(
    "uri", ["file:///docs/caf%C3%A9/a.txt", "file:///docs/caf%c3%a9/a.txt", "file:///docs/café/a.txt"]
)
def test_non_ascii_text_matches_however_it_is_written(template: str, uri: str) -> None:
    assert match(template, uri) == {"name": "a.txt"}


@pytest.mark.parametrize("template", ["x:/a b/{v}", "x:/a%20b/{v}", "x:/%61%20b/{v}"])
@pytest.mark.parametrize("uri", ["x:/a b/1", "x:/a%20b/1", "x:/%61%20%62/1"])
def test_spaces_and_needless_encoding_match_however_they_are_written(template: str, uri: str) -> None:
    assert match(template, uri) == {"v": "1"}


def test_values_are_decoded_exactly_once() -> None:
    assert match("x:/{v}", "x:/a%252Fb") == {"v": "a%2Fb"}
    assert match("x:/{v}", "x:/a%2Fb%2f..%2F") == {"v": "a/b/../"}
    assert match("x:/{+v}", "x:/a%2Fb/c") == {"v": "a/b/c"}
    assert match("x{?v}", "x?v=a%26b%3Dc+d") == {"v": "a&b=c+d"}
    assert match("x{/v*}", "x/a%2Fb/c") == {"v": ["a/b", "c"]}


def test_a_character_that_only_looks_like_an_encoded_one_is_itself() -> None:
    assert match("x:/{v}", "x:/\udc2f") is None
    assert match("x:/{v}", "x:/\uff0f") == {"v": "\uff0f"}


def test_no_hole_ends_inside_a_triplet() -> None:
    assert match("{a}2F{b}", "x%2F2Fy") == {"a": "x/", "b": "y"}
    assert match("{a}2F{b}", "x%2Fy") is None


def shared_examples() -> list[Any]:
    found: list[Any] = []
    for name in ("spec-examples", "spec-examples-by-section", "extended-tests"):
        path = DATA / f"{name}.json"
        groups: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        for group in groups.values():
            found += [pytest.param(template, group["variables"], id=template) for template, _ in group["testcases"]]
    return found


@pytest.mark.parametrize(("template", "values"), shared_examples())
def test_what_matched_expands_to_the_same_uri(template: str, values: dict[str, Any]) -> None:
    compiled = UriTemplate(template)
    uri = compiled.expand(values)
    found = compiled.match(uri)

    if found is None:  # the one case: a variable without an operator that came to nothing
        assert any(not values.get(name) for name in compiled.variables)
        return
    unexploded = any(isinstance(values.get(name), list | dict) and f"{name}*" not in template for name in found)
    passed_on = "{+" in template or "{#" in template
    assert unexploded or passed_on or compiled.expand(found) == uri
    assert unexploded or passed_on or compiled.match(compiled.expand(found)) == found


TEXT = st.text(min_size=1, max_size=12).filter(lambda text: not any("\ud800" <= char <= "\udfff" for char in text))


@given(st.fixed_dictionaries({"a": TEXT, "b": TEXT, "q": TEXT, "r": st.lists(TEXT, min_size=1, max_size=3)}))
@pytest.mark.parametrize(
    "template",
    ["x://{a}/y/{b}{?q,r*}", "{a,b}{/r*}{#q}", "{;a,b}{/q}{?r*}", "{/a,b}?fixed=1{&q}{&r*}", "{a}/{b}{;q}{/r*}"],
)
def test_match_is_the_reverse_of_expand(template: str, values: dict[str, Any]) -> None:
    compiled = UriTemplate(template)

    assert compiled.match(compiled.expand(values)) == values


@given(st.text(alphabet="ax/.?&;=,#%2F{}é", max_size=30), st.text(alphabet="ax/.?&;=,#é", max_size=30))
def test_any_uri_matches_or_not_and_what_matches_stands_in_it(uri: str, literal: str) -> None:
    for template in ("{a}x{b}", "{+a}/{b}{?a*}", "{/a,b}{.c}{;d*}{?e,f}{&g*}{#h}", literal + "{a}" + literal):
        found = match(template, uri)
        assert found is None or set(found) <= set(UriTemplate(template).variables)


def steps(template: UriTemplate, uri: str) -> float:
    """The least of several times: a figure to divide, never one to compare with a clock."""
    best = float("inf")
    for _ in range(9):
        start = time.process_time()
        template.match(uri)
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize(
    ("template", "piece"),
    [
        ("{a}a{b}a{c}a{d}a{e}b", "a"),
        ("{+a}/x{+b}/x{+c}/x{+d}/y", "/x"),
        ("{/a,b,c}{/d*}{/e*}/x", "/"),
        ("{;a*}{;b*}{;c*}x", ";a=1"),
        ("{a}{b}{c}{d}{e}{f}{g}{h}!", "%2F"),
        ("{a*}{b*}", ","),
    ],
)
def test_time_grows_with_the_length_of_the_uri_whatever_the_template(template: str, piece: str) -> None:
    compiled = UriTemplate(template)
    short, long = piece * 4_000, piece * 32_000

    # Eight times the length: linear is about 8, quadratic 64.
    assert steps(compiled, long) / steps(compiled, short) < 32
