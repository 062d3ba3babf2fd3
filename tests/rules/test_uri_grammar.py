"""Malformed templates are refused, with the place and the reason."""

from __future__ import annotations

import pytest

from modelwire.errors import ConfigError
from modelwire.rules.uri_grammar import OPERATORS, Expression, Variable, parse


def test_a_template_is_literals_and_expressions() -> None:
    assert parse("x{a}y{?b:3,c.d*}") == (
        "x",
        Expression(OPERATORS[""], (Variable("a"),)),
        "y",
        Expression(OPERATORS["?"], (Variable("b", prefix=3), Variable("c.d", explode=True))),
    )
    assert parse("") == ()


@pytest.mark.parametrize(
    ("template", "place", "word"),
    [
        ("a{b", 2, "never closed"),
        ("a}b", 2, "never opened"),
        ("{a}}", 4, "never opened"),
        ("{}", 2, "needs a variable"),
        ("{?}", 3, "a variable's name"),
        ("{a,}", 4, "a variable's name"),
        ("{=a}", 2, "reserved"),
        ("{a{b}}", 3, "no modifier"),
        ("{a:0}", 3, "1 to 9999"),
        ("{a:10000}", 3, "1 to 9999"),
        ("{a:3*}", 3, "1 to 9999"),
        ("{a b}", 3, "no modifier"),
        ("{é}", 2, "a variable's name"),
        ("{a.}", 3, "no modifier"),
        ("100%/{a}", 4, "%25"),
        ("x\n{a}", 2, "control characters"),
        ("\ud800{a}", 1, "lone surrogates"),
    ],
)
def test_the_place_and_the_reason_of_a_fault_are_told(template: str, place: int, word: str) -> None:
    with pytest.raises(ConfigError, match=f"at character {place}: ") as caught:
        parse(template)

    assert word in str(caught.value)


def test_size_is_bounded() -> None:
    assert len(parse("{a}" * 64)) == 64
    with pytest.raises(ConfigError, match="4096 characters"):
        parse("x" * 4097)
    with pytest.raises(ConfigError, match="64 expressions"):
        parse("{a}" * 65)
    with pytest.raises(ConfigError, match="128 variables"):
        parse("{" + ",".join(["a"] * 129) + "}")
