"""The specification's own examples, and frames that tutorials print: our types read them, and write them back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from modelwire.protocol import meta, wire
from modelwire.protocol import types as t
from modelwire.protocol.methods import METHODS, Method
from modelwire.protocol.revisions import LATEST, by_name
from tests import spec

pytestmark = spec.needs_spec

EXAMPLES = spec.SPEC / "2026-07-28" / "examples"
FILES = sorted(EXAMPLES.glob("*/*.json"))
FRAMES = spec.SHARED / "tutorial-frames.jsonl"

ERROR_DATA: dict[str, type] = {
    "MissingRequiredClientCapabilityError": t.MissingRequiredClientCapabilityErrorData,
    "UnsupportedProtocolVersionError": t.UnsupportedProtocolVersionErrorData,
}
BY_MEMBER = {"roots": "roots/list", "action": "elicitation/create", "role": "sampling/createMessage"}
"""Which question an example of an answer is for: examples come without their question."""


def _again(value: Any, kind: Any) -> Any:
    """Decode and encode with our types."""
    return json.loads(wire.encode(wire.decode(json.dumps(value).encode(), kind), LATEST))


def _member(value: dict[str, Any], name: str, kind: Any) -> dict[str, Any]:
    return {**value, name: _again(value[name], kind)}


def _method(value: dict[str, Any]) -> Method:
    return METHODS[value["method"]]


def _answered(type_name: str) -> Method:
    name = type_name.removesuffix("ResultResponse") + "Result"
    return next(row for row in METHODS.values() if row.result is not None and row.result.__name__ == name)


def _error(type_name: str, value: dict[str, Any]) -> dict[str, Any]:
    if "error" not in value:
        return _again(value, t.Error)
    error = _again(value["error"], t.Error)
    if type_name in ERROR_DATA:
        error = _member(error, "data", ERROR_DATA[type_name])
    return {**value, "error": error}


def _answers(value: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, raw in wire.decode(json.dumps(value).encode(), dict[str, Raw]).items():
        method = next(METHODS[BY_MEMBER[name]] for name in value[key] if name in BY_MEMBER)
        found[key] = json.loads(wire.encode(wire.decode_answer(raw, method), LATEST))
    return found


def _rewritten(type_name: str, value: dict[str, Any]) -> dict[str, Any]:
    if type_name.endswith("Error"):
        return _error(type_name, value)
    if type_name == "InputResponses":
        return _answers(value)
    if type_name == "InputRequests":
        return _again({"inputRequests": value}, t.InputRequiredResult)["inputRequests"]
    if type_name.endswith("Response"):
        result = wire.decode_result(json.dumps(value["result"]).encode(), _answered(type_name), LATEST)
        return {**value, "result": json.loads(wire.encode(result, LATEST))}
    kind = getattr(t, type_name, None)
    if kind is not None:
        # One example of a question carries an id, which belongs to the envelope of older revisions.
        envelope = {"id": value["id"]} if "method" in value and "id" in value else {}
        return {**_again(value, kind), **envelope}
    return _member(value, "params", _method(value).params) if "params" in value else value


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_an_example_of_the_specification_reads_and_writes_to_the_same_json(file: Path) -> None:
    value = json.loads(file.read_text(encoding="utf-8"))
    assert _rewritten(file.parent.name, value) == value


def test_there_are_as_many_examples_as_the_specification_has() -> None:
    assert len(FILES) == 129


@pytest.mark.parametrize("file", [f for f in FILES if f.parent.name.endswith("Request")], ids=lambda f: f.parent.name)
def test_the_meta_of_an_example_request_can_be_read(file: Path) -> None:
    value = json.loads(file.read_text(encoding="utf-8"))
    if "_meta" not in value.get("params", {}):
        return  # a question
    found = meta.decode_request_meta(json.dumps(value["params"]["_meta"]).encode())
    assert found.protocol_version == "2026-07-28"
    assert found.client_capabilities is not None


def _tutorial_frames() -> list[Any]:
    if not FRAMES.exists():
        return []
    frames = [json.loads(line) for line in FRAMES.read_text(encoding="utf-8").splitlines()]
    return [pytest.param(frame, id=frame["name"]) for frame in frames if frame["verdict"] == "valid"]


@pytest.mark.parametrize("entry", _tutorial_frames())
def test_a_valid_frame_of_a_tutorial_has_its_type(entry: dict[str, Any]) -> None:
    revision = by_name(entry["revision"])
    assert revision is not None
    frame = entry["frame"]
    if "method" in frame:
        method = _method(frame)
        assert method.sent_by(entry["sender"], revision)
        params = wire.decode(json.dumps(frame.get("params", {})).encode(), method.params)
        known = {field.encode_name for field in msgspec.structs.fields(params)}
        assert frame.get("params", {}).keys() <= known
    else:
        result = wire.decode_result(
            json.dumps(frame["result"]).encode(), _answered(entry["type"] + "Response"), revision
        )
        assert type(result).__name__ == entry["type"]
        assert json.loads(wire.encode(result, revision)) == frame["result"]
