"""Definitions of one schema: each under a name of its own, what is equal shared."""

from __future__ import annotations

from typing import Any

from modelwire.server.definitions import Definitions


def definitions() -> Definitions:
    return Definitions(lambda annotation: {"const": annotation})


def merged(defs: Definitions, value: int) -> dict[str, Any]:
    return defs.merge({"$ref": "#/$defs/A"}, {"A": {"const": value}})


def test_a_definition_may_refer_to_itself() -> None:
    defs = definitions()

    def make() -> dict[str, Any]:
        return {"items": defs.recursive("key", "Node", dict)}

    assert defs.recursive("key", "Node", make) == {"$ref": "#/$defs/Node"}
    assert defs.found == {"Node": {"items": {"$ref": "#/$defs/Node"}}}


def test_equal_definitions_are_shared_and_others_renamed() -> None:
    defs = definitions()

    assert merged(defs, 1) == {"$ref": "#/$defs/A"}
    assert merged(defs, 1) == {"$ref": "#/$defs/A"}
    assert merged(defs, 2) == {"$ref": "#/$defs/A_2"}
    assert defs.put("mine", "A", {"const": 3}) == {"$ref": "#/$defs/A_3"}
    assert defs.found == {"A": {"const": 1}, "A_2": {"const": 2}, "A_3": {"const": 3}}


def test_references_follow_the_renamed() -> None:
    defs = definitions()
    defs.put("mine", "A", {})

    schema = defs.merge({"items": {"$ref": "#/$defs/A"}, "const": "#/$defs/A"}, {"A": {"items": {"$ref": "#/$defs/A"}}})

    assert schema == {"items": {"$ref": "#/$defs/A_2"}, "const": "#/$defs/A"}
    assert defs.found["A_2"] == {"items": {"$ref": "#/$defs/A_2"}}


def test_names_are_fit_for_a_reference() -> None:
    assert definitions().put("mine", "Page[int, str]", {}) == {"$ref": "#/$defs/Page_int__str"}
