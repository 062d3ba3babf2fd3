"""Names of several servers' tools: they fit every API, mean one thing, and depend on what they stand for only."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwire import ConfigError
from modelwire.client.naming import MAX_LABEL, Names, Prefix

FITS = re.compile(r"[A-Za-z0-9_-]{1,64}")


def names(*servers: str, prefix: Prefix = "__") -> Names:
    found = Names(prefix)
    for server in servers:
        found.add(server)
    return found


def test_a_name_is_the_server_and_the_tool() -> None:
    assert names("weather").name("weather", "forecast") == "weather__forecast"
    assert names("weather", prefix="-").name("weather", "get_now") == "weather-get_now"
    assert names("weather", prefix=False).name("weather", "forecast") == "forecast"


def test_a_function_may_make_names() -> None:
    made = names("weather", prefix=lambda server, tool: f"{tool}_of_{server}")
    assert made.name("weather", "forecast") == "forecast_of_weather"


@pytest.mark.parametrize("prefix", ["", ".", "a", "_" * 9, True, 5, None, b"__"])
def test_a_separator_that_names_cannot_hold_is_refused(prefix: Any) -> None:
    with pytest.raises(ConfigError, match="prefix= is a separator of '_' and '-'"):
        Names(prefix)


def test_a_function_that_returns_no_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="prefix= must return a name, not None"):
        names("a", prefix=lambda server, tool: None).name("a", "x")  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("own", ["admin.tools.list", "a b", "é", "", "x" * 100, "a/b", "😀" * 40])
def test_what_does_not_fit_is_changed_and_told_apart(own: str) -> None:
    table = names("s")
    name = table.name("s", own)
    assert FITS.fullmatch(name)
    assert name.startswith("s__")
    table.listed("s", [own, "other"])
    assert table.find(name) == ("s", own)


def test_what_is_changed_depends_on_the_server_and_its_own_name_only() -> None:
    alone, among = names("s"), names("a", "b", "s", "c")
    among.listed("s", ["a_b", "a-b"])
    assert alone.name("s", "a.b") == among.name("s", "a.b") == "s__a_b_f8bf8f0a"
    assert len({alone.name("s", own) for own in ("a.b", "a b", "a/b", "a_b")}) == 4


@pytest.mark.parametrize("separator", ["__", "_", "-", "--", "_-", "-_-"])
@pytest.mark.parametrize("server", ["s", "a__b", "a_", "_a", "a_-_-b", "__", "日本", "a.b", "x" * 80, "a--b__c-_d"])
@pytest.mark.parametrize("own", ["x", "a__b", "_x", "__x", "a-b", "--", "_-_"])
def test_a_name_with_separators_in_it_says_what_it_stands_for(separator: str, server: str, own: str) -> None:
    table = names("a", server, "b", prefix=separator)
    name = table.name(server, own)
    assert FITS.fullmatch(name)
    assert table.spelt(name) == (server, own)
    assert len(name) - len(separator) - len(own) <= MAX_LABEL


ANY_NAME = st.text(st.sampled_from("ab_-. é"), max_size=8) | st.text(max_size=80)


@given(
    servers=st.lists(ANY_NAME.filter(bool), min_size=1, max_size=4, unique=True),
    owns=st.lists(ANY_NAME, min_size=1, max_size=5, unique=True),
    separator=st.sampled_from(["__", "_", "-", "_-"]),
)
def test_every_tool_of_every_server_has_a_name_of_its_own(servers: list[str], owns: list[str], separator: str) -> None:
    table = names(*servers, prefix=separator)
    for server in servers:
        table.listed(server, owns)
    made = {(server, own): table.name(server, own) for server in servers for own in owns}
    assert len(set(made.values())) == len(made)
    for origin, name in made.items():
        assert FITS.fullmatch(name)
        assert table.find(name) == origin
        if table.says_itself(name):
            assert table.spelt(name) == origin


def test_servers_that_look_the_same_get_names_that_do_not() -> None:
    table = names("my server", "my.server", "my_server")
    made = [table.name(server, "x") for server in ("my server", "my.server", "my_server")]
    assert made[0] == "my_server__x"
    assert len(set(made)) == 3


def test_without_a_prefix_the_first_server_counts() -> None:
    table = names("a", "b", prefix=False)
    table.listed("b", ["search", "more"])
    table.listed("a", ["search"])
    assert table.find("search") == ("a", "search")
    assert table.find("more") == ("b", "more")
    assert table.find("nothing") is None
    assert table.spelt("search") is None
    assert not table.says_itself("search")


def test_a_server_that_is_removed_is_forgotten() -> None:
    table = names("a", "b")
    table.listed("a", ["x.y"])
    name = table.name("a", "x.y")
    table.remove("a")
    assert table.find(name) is None
    assert table.spelt("a__x") is None
    table.listed("a", ["x"])  # an answer that was on its way
    assert table.find("a__x") is None


def test_the_nearest_name_is_a_tool_or_else_a_server() -> None:
    table = names("weather", "files")
    assert table.nearest("wether__") == "weather__..."
    table.listed("weather", ["forecast"])
    assert table.nearest("weather__forcast") == "weather__forecast"
    assert table.nearest("qqq") is None
