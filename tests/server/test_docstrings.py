"""Docstrings in the three common styles."""

from __future__ import annotations

import pytest

from modelwire.server.docstrings import Docstring, parse

GOOGLE = """Forecast for a city.

    Looks at two models.

    Args:
        city (str): City name, as a traveller
            would write it.
        days (int, optional): How many days: 1 to 7.
        **extra: Anything else.

    Returns:
        A list of days.

    Raises:
        ValueError: Never.

    Note:
        Free of charge.
    """

NUMPY = """Forecast for a city.

    Looks at two models.

    Parameters
    ----------
    city : str
        City name, as a traveller
        would write it.
    days, nights : int, optional
        How many.

    Returns
    -------
    list
        The days.

    Notes
    -----
    Free of charge.
    """

SPHINX = """Forecast for a city.

    Looks at two models.

    :param city: City name, as a traveller
        would write it.
    :param int days: How many days.
    :type city: str
    :returns: A list of days.
    :rtype: list
    :raises ValueError: Never.
    """


def test_google_sections_give_the_parameters_and_leave_the_description() -> None:
    found = parse(GOOGLE)

    assert found.description == "Forecast for a city.\n\nLooks at two models.\n\nNote:\n    Free of charge."
    assert found.parameters == {
        "city": "City name, as a traveller would write it.",
        "days": "How many days: 1 to 7.",
        "extra": "Anything else.",
    }


def test_numpy_sections_give_the_parameters_and_leave_the_description() -> None:
    found = parse(NUMPY)

    assert found.description == "Forecast for a city.\n\nLooks at two models.\n\nNotes\n-----\nFree of charge."
    assert found.parameters == {
        "city": "City name, as a traveller would write it.",
        "days": "How many.",
        "nights": "How many.",
    }


def test_sphinx_fields_give_the_parameters_and_leave_the_description() -> None:
    found = parse(SPHINX)

    assert found.description == "Forecast for a city.\n\nLooks at two models."
    assert found.parameters == {"city": "City name, as a traveller would write it.", "days": "How many days."}


@pytest.mark.parametrize("text", [None, "", "   \n  "])
def test_no_docstring_is_empty(text: str | None) -> None:
    assert parse(text).description == ""


@pytest.mark.parametrize(
    "text",
    [
        "Returns the current time.",
        "Args: these are words in a sentence",
        "Parameters\nare explained elsewhere.",
        "Yields:\nnothing indented below",
        "One line.\n\n- a list: item\n- b: item",
        ":math:`x` opens this line.",
        "回显输入的任何文本",
    ],
)
def test_text_that_only_looks_like_a_section_is_description(text: str) -> None:
    found = parse(text)

    assert (found.description, found.parameters) == (text, {})


def test_a_blank_line_inside_an_entry_does_not_end_the_section() -> None:
    found = parse("Do.\n\nArgs:\n    a: First.\n\n    b: Second,\n\n        with a pause.\n\nMore.")

    assert found.parameters == {"a": "First.", "b": "Second, with a pause."}
    assert found.description == "Do.\n\nMore."


def test_what_was_taken_apart_once_is_nobody_elses_to_change() -> None:
    text = "Say.\n\nArgs:\n    a: One."
    first = parse(text)
    first.parameters["b"] = "two"
    first.description = "changed"

    assert parse(text) == Docstring("Say.", {"a": "One."})
