"""Whose fault a failure is: of the arguments, where the server's own list shows it."""

from __future__ import annotations

from typing import Any

import pytest

from modelwire.cli.failures import FAILED, NOT_FOUND, USAGE, Failure
from modelwire.cli.refusals import Fault, blamed, prompt_faults, tool_failure, tool_faults
from modelwire.protocol.types import Prompt, PromptArgument, Tool

CLOSED: dict[str, Any] = {
    "type": "object",
    "properties": {"id": {"type": "integer", "minimum": 1}, "note": {"type": "string"}},
    "required": ["id"],
    "additionalProperties": False,
}


def faults(schema: dict[str, Any], **arguments: Any) -> list[str]:
    return [f"{fault.name}: {fault.text}" for fault in tool_faults(Tool("get", schema), arguments)]


def test_arguments_that_fit_have_no_fault() -> None:
    assert faults(CLOSED, id=1, note="x") == []
    assert faults({"type": "object"}, anything=1) == []


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({}, "id: missing"),
        ({"id": 1, "size": 2}, "size: unknown argument"),
        ({"id": "x"}, 'id: "x" is not of type "integer"'),
        ({"id": 0}, "id: 0 is less than the minimum of 1"),
    ],
)
def test_what_the_schema_has_against_an_argument_is_found(arguments: dict[str, Any], found: str) -> None:
    assert faults(CLOSED, **arguments) == [found]


@pytest.mark.parametrize("schema", [{"type": "no such type"}, {"$ref": "https://elsewhere/schema"}])
def test_a_schema_that_cannot_be_used_has_nothing_against_anything(schema: dict[str, Any]) -> None:
    assert faults(schema, id=1) == []


def test_a_prompt_lacks_what_is_required_and_knows_what_it_lists() -> None:
    prompt = Prompt("review", arguments=[PromptArgument("pr", required=True), PromptArgument("focus")])
    assert prompt_faults(prompt, {"pr": "1"}) == []
    assert prompt_faults(prompt, {"pull": "1"}) == [Fault("pr", "missing"), Fault("pull", "unknown argument")]


def test_a_failure_of_wrong_arguments_is_wrong_use_and_names_them() -> None:
    failure = blamed(Failure(FAILED, "server-error", "it broke", code=-32603), [Fault("id", "missing")])
    assert (failure.exit_code, failure.kind, failure.details) == (USAGE, "refused-arguments", {"code": -32603})
    assert failure.message == "it broke\nThe arguments do not fit:\n- id: missing"


def test_an_argument_that_the_server_named_is_not_named_again() -> None:
    assert blamed(Failure(FAILED, "tool-error", "I want an id"), [Fault("id", "missing")]).message == "I want an id"


@pytest.mark.parametrize("failure", [Failure(FAILED, "tool-error", "no"), Failure(NOT_FOUND, "not-found", "none")])
def test_any_other_failure_stays_what_it_is(failure: Failure) -> None:
    wrong = [Fault("id", "missing")] if failure.exit_code == NOT_FOUND else []
    assert blamed(failure, wrong) is failure


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("no luck", "the tool 'get' failed: no luck"),
        ("", "the tool 'get' failed: "),
        ("The tool 'get' failed unexpectedly.", "the tool 'get' failed unexpectedly."),
        ("The arguments of get are wrong:\n- id: missing", "the arguments of get are wrong:\n- id: missing"),
        ("The tool 'getter' broke", "the tool 'get' failed: The tool 'getter' broke"),
    ],
)
def test_a_failed_tool_is_named_once(said: str, told: str) -> None:
    assert tool_failure("get", said).message == told


@pytest.mark.parametrize(("form", "text"), [("date", "x"), ("uuid", "x"), ("date-time", "yesterday"), ("ipv4", "1.2")])
def test_a_format_is_a_fault_where_the_server_names_the_argument(form: str, text: str) -> None:
    schema = {"type": "object", "properties": {"day": {"type": "string", "format": form}}}
    found = tool_faults(Tool("get", schema), {"day": text})
    assert [(fault.name, fault.sure) for fault in found] == [("day", False)]
    named = blamed(Failure(FAILED, "tool-error", "1 validation error: day is no such thing"), found)
    assert (named.exit_code, named.message) == (USAGE, "1 validation error: day is no such thing")
    other = Failure(FAILED, "tool-error", "nothing for you todays")
    assert blamed(other, found) is other


def test_what_servers_of_this_library_refuse_is_wrong_use_whatever_the_type() -> None:
    refused = tool_failure("get", "The arguments of get are wrong:\n- size: expected a decimal")
    assert (refused.exit_code, refused.kind) == (USAGE, "refused-arguments")
    assert refused.message.startswith("the arguments of get are wrong")
    assert tool_failure("get", "The arguments of other are wrong").exit_code == FAILED
