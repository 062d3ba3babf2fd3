"""Every kind of schema that modelwire makes, read by ajv, the validator of the JavaScript world, in its strict mode."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from modelwire.server.arguments import ArgumentErrors
from modelwire.server.signature import Signature
from tests.interop.peers import PATIENCE, needs_node_peers, program
from tests.server.kinds import KINDS, signature_of

pytestmark = needs_node_peers

SIGNATURES = {kind: signature_of(annotation) for kind, (annotation, *_) in KINDS.items()}
ODD: list[Any] = [
    0, -1, 2, 6, 1.5, -0.5, "", "a", "5", "not one", "2026-01-31", "2026-02-30", "09:30", "aGk", "€", True, False, None,
    [], {}, [1, 2, 3], ["a", "b", "c"], [[]], [{"a": 1}], {"x": "a"}, {"x": 1, "y": 2, "z": 3}, {"a": None},
    {"unknown": 1}, {"name": 5}, {"count": 0}, {"count": 1, "note": "long note"}, {"from": -1}, {"1": "b", "x": "c"},
    13, {"from": 1, "note": 13},
]  # fmt: skip
VALUES = [json.loads(one) for one in dict.fromkeys(json.dumps(v) for v in [*(k[2] for k in KINDS.values()), *ODD])]

BEYOND_SCHEMAS = {
    "predicate": "a function decides",
    "model": "a validator decides",
    "two models": "a validator decides",
    "bytes": "contentEncoding is an annotation in 2020-12, by which nothing is refused",
}
"""Kinds that refuse more than a schema can say."""
NUMBERS_TOO = {"money", "positive money"}
"""Kinds that are text in the schema and take numbers besides."""


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """What ajv says of each schema, by kind and by side."""
    asked: list[dict[str, Any]] = []
    for kind, signature in SIGNATURES.items():
        arguments = [{"v": value} for value in VALUES]
        asked.append({"name": f"{kind}, in", "schema": signature.input_schema, "values": arguments})
        if signature.output_schema is not None:
            asked.append({"name": f"{kind}, out", "schema": signature.output_schema, "values": [KINDS[kind][2]]})
    ran = subprocess.run(
        program("node/ajv.mjs"), input=json.dumps(asked), capture_output=True, text=True, timeout=PATIENCE
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def accepts(signature: Signature, value: Any) -> bool:
    try:
        signature.bind(json.dumps({"v": value}).encode())
    except ArgumentErrors:
        return False
    return True


def test_every_schema_is_compiled_without_a_complaint(answers: dict[str, Any]) -> None:
    assert {name: answer["fault"] for name, answer in answers.items() if answer["fault"] is not None} == {}


def test_what_a_tool_returns_is_allowed_by_its_output_schema(answers: dict[str, Any]) -> None:
    assert [name for name, answer in answers.items() if name.endswith(", out") and answer["allowed"] != [True]] == []


def test_what_is_allowed_is_accepted_and_what_is_not_is_refused(answers: dict[str, Any]) -> None:
    differ = []
    for kind, signature in SIGNATURES.items():
        for value, allowed in zip(VALUES, answers[f"{kind}, in"]["allowed"], strict=True):
            accepted = accepts(signature, value)
            # Text may stand for another type; tests/server/test_coercion.py says which.
            more = isinstance(value, str) or kind in NUMBERS_TOO
            if (allowed and not accepted and kind not in BEYOND_SCHEMAS) or (accepted and not allowed and not more):
                differ.append((kind, value))
    assert differ == []
