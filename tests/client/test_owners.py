"""Whose a URI is: of the server that listed it, or else of those with a template for it."""

from __future__ import annotations

import logging

import pytest

from modelwire.client.owners import Owners


def owners(**servers: tuple[list[str], list[str]]) -> Owners:
    found = Owners()
    for server, (uris, templates) in servers.items():
        found.add(server)
        found.resources_listed(server, uris)
        found.templates_listed(server, templates)
    return found


def test_a_uri_is_of_whoever_listed_it() -> None:
    table = owners(a=(["x:1"], []), b=(["x:2"], []))
    assert table.find("x:1") == ["a"]
    assert table.find("x:2") == ["b"]
    assert table.find("x:3") == []


def test_or_of_whoever_has_a_template_for_it() -> None:
    table = owners(a=([], ["city://{name}/now"]), b=([], ["shop://{id}"]))
    assert table.find("city://Oslo/now") == ["a"]
    assert table.find("shop://5") == ["b"]
    assert table.find("city://{name}/now") == ["a"]  # completion goes by the template


def test_a_listed_uri_comes_before_a_template() -> None:
    assert owners(a=([], ["x:{n}"]), b=(["x:1"], [])).find("x:1") == ["b"]


def test_several_may_have_it() -> None:
    assert owners(a=(["x:1"], []), b=(["x:1"], [])).find("x:1") == ["a", "b"]
    assert owners(a=([], ["x:{n}"]), b=([], ["x:{m}"])).find("x:1") == ["a", "b"]


def test_a_template_that_is_none_matches_nothing_but_itself(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    table = owners(a=([], ["x:{", "y:{n}"]))
    assert table.find("x:1") == []
    assert table.find("x:{") == ["a"]
    assert table.find("y:1") == ["a"]
    assert "matches no URI" in caplog.text


def test_what_is_listed_anew_takes_the_place_of_what_was() -> None:
    table = owners(a=(["x:1"], ["y:{n}"]))
    table.resources_listed("a", ["x:2"])
    table.templates_listed("a", ["z:{n}"])
    assert [table.find(uri) for uri in ("x:1", "x:2", "y:1", "z:1")] == [[], ["a"], [], ["a"]]


def test_a_server_that_is_removed_is_forgotten() -> None:
    table = owners(a=(["x:1"], ["y:{n}"]))
    table.remove("a")
    table.resources_listed("a", ["x:1"])
    table.templates_listed("a", ["y:{n}"])
    assert table.find("x:1") == table.find("y:1") == []
