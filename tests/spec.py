"""The official schemas: load them, and check a type or a whole message against them.

Tests validate with this what the package emits. It knows nothing of `modelwire`, so that a mistake in our tables
cannot hide here.
"""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"
SPEC = SHARED / "spec"
REVISION_NAMES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
ABSENT = None if SPEC.is_dir() else "the official schemas (../shared/spec) are not here"

needs_spec = pytest.mark.skipif(ABSENT is not None, reason=str(ABSENT))
"""For tests that cannot run without the official schemas; where ``CI=true`` a skip is a failure."""


@functools.cache
def schema(revision: str) -> dict[str, Any]:
    """Return the official schema of a revision."""
    return json.loads((SPEC / revision / "schema.json").read_text(encoding="utf-8"))


def definitions(revision: str) -> dict[str, Any]:
    """Return every type that a revision defines, by name."""
    whole = schema(revision)
    return whole["$defs"] if "$defs" in whole else whole["definitions"]


@functools.cache
def validator(revision: str, type_name: str) -> jsonschema_rs.Validator:
    """Return a validator for one type of a revision.

    Formats are not checked: a URI is kept as it was given, and people do give relative ones.

    Raises:
        KeyError: The revision has no such type.
    """
    whole = schema(revision)
    key = "$defs" if "$defs" in whole else "definitions"
    definitions(revision)[type_name]
    return jsonschema_rs.validator_for(
        {"$schema": whole["$schema"], key: whole[key], "$ref": f"#/{key}/{type_name}"},
        offline=True,
        validate_formats=False,
    )


def errors_of(revision: str, type_name: str, value: Any) -> list[str]:
    """Return what is wrong with a value of one type, one line each."""
    found = validator(revision, type_name).iter_errors(value)
    return [f"{type_name} {'/'.join(map(str, error.instance_path))}: {error.message[:500]}" for error in found]


# ------------------------------------------------------------------------------------------------- names of types


@functools.cache
def messages(revision: str) -> dict[str, str]:
    """Return the type of every request and notification that a revision defines, by method."""
    found: dict[str, str] = {}
    for name, definition in definitions(revision).items():
        method = definition.get("properties", {}).get("method", {}).get("const")
        if method is not None and not name.startswith(("Client", "Server")):  # a union of one looks like its member
            found[method] = name
    return found


def _members(revision: str, union: str) -> Iterator[str]:
    definition = definitions(revision).get(union)
    if definition is None:
        return
    for member in definition.get("anyOf", [definition]):
        if "$ref" in member:
            yield member["$ref"].rsplit("/", 1)[1]
        elif "properties" in member:  # a union of one: written out in place
            yield messages(revision)[member["properties"]["method"]["const"]]


@functools.cache
def may_send(revision: str, sender: str) -> frozenset[str]:
    """Return the methods that ``sender``, ``client`` or ``server``, may send in a revision."""
    side = sender.capitalize()
    types = {*_members(revision, f"{side}Request"), *_members(revision, f"{side}Notification")}
    return frozenset(method for method, name in messages(revision).items() if name in types)


def result_type(revision: str, method: str) -> str:
    """Return the type of the result of a request."""
    name = messages(revision)[method].removesuffix("Request") + "Result"
    return name if name in definitions(revision) else "EmptyResult"


def may_ask(revision: str, method: str) -> bool:
    """Say whether the result of a request may be ``InputRequiredResult``."""
    response = definitions(revision).get(f"{result_type(revision, method)}Response", {})
    members = response.get("properties", {}).get("result", {}).get("anyOf", [])
    return any(member.get("$ref", "").endswith("/InputRequiredResult") for member in members)


# --------------------------------------------------------------------------------------------------- whole messages


def validate_message(revision: str, sender: str, message: Any, request_method: str | None = None) -> list[str]:
    """Return what is wrong with a message by the official schema, one line each; empty when it is right.

    Args:
        revision: The revision that was agreed on.
        sender: ``client`` or ``server``.
        message: The message, decoded; a list is a batch.
        request_method: The method of the request that a response answers. A result for an unknown method is held
            against the bare ``Result``. Of a batch, all responses answer the same method.
    """
    if isinstance(message, list):
        if revision != "2025-03-26":
            return ["a batch, in a revision without batches"]
        return [line for item in message for line in validate_message(revision, sender, item, request_method)]
    if "method" in message:
        return _validate_sent(revision, sender, message)
    if "error" in message:
        return _validate_error(revision, message)
    return _validate_result(revision, message, request_method)


def _validate_sent(revision: str, sender: str, message: dict[str, Any]) -> list[str]:
    method = message["method"]
    envelope = "JSONRPCRequest" if "id" in message else "JSONRPCNotification"
    found = errors_of(revision, envelope, message)
    name = messages(revision).get(method)
    if name is None:
        return [*found, f"no method {method} in {revision}"]
    if method not in may_send(revision, sender):
        found.append(f"{method} is not for the {sender} to send in {revision}")
    if name.endswith("Request") is not ("id" in message):
        found.append(f"{method} {'has no' if name.endswith('Request') else 'has an'} id")
    return [*found, *errors_of(revision, name, message)]


_DEFINED_CODES = {
    "2024-11-05": {-32002},
    "2025-03-26": {-32002},
    "2025-06-18": {-32002},
    "2025-11-25": {-32002, -32042},
    "2026-07-28": {-32020, -32021, -32022},
}
_ERROR_TYPES = {
    -32020: "HeaderMismatchError",
    -32021: "MissingRequiredClientCapabilityError",
    -32022: "UnsupportedProtocolVersionError",
    -32042: "URLElicitationRequiredError",
}


def _validate_error(revision: str, message: dict[str, Any]) -> list[str]:
    names = definitions(revision)
    if "JSONRPCErrorResponse" in names:
        found = errors_of(revision, "JSONRPCErrorResponse", message)
    else:
        # JSON-RPC 2.0, section 5: the id of an error without a readable request is null, which these schemas lack.
        message = {**copy.copy(message), "id": 0} if message.get("id", 0) is None else message
        found = errors_of(revision, "JSONRPCError", message)
    code = message["error"].get("code")
    if code in _ERROR_TYPES and _ERROR_TYPES[code] in names:
        found += errors_of(revision, _ERROR_TYPES[code], message)
    if isinstance(code, int) and -32099 <= code <= -32000 and code not in _DEFINED_CODES[revision]:
        found.append(f"code {code} is reserved, and not defined in {revision}")
    return found


def _validate_result(revision: str, message: dict[str, Any], request_method: str | None) -> list[str]:
    response = "JSONRPCResultResponse" if "JSONRPCResultResponse" in definitions(revision) else "JSONRPCResponse"
    found = errors_of(revision, response, message)
    if request_method not in messages(revision):
        return found
    result = message.get("result")
    if isinstance(result, dict) and "InputRequiredResult" in definitions(revision):
        kind = result.get("resultType")
        if kind == "input_required":
            if not may_ask(revision, str(request_method)):
                found.append(f"{request_method} may not be answered with input_required")
            return [*found, *errors_of(revision, "InputRequiredResult", result)]
        if kind != "complete":
            found.append(f"resultType is {kind!r}")
    return [*found, *errors_of(revision, result_type(revision, str(request_method)), result)]
