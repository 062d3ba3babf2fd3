"""Our types and tables against the five official schemas: nothing missing, nothing invented, all of it valid."""

from __future__ import annotations

import json
import re
from typing import Any, get_args, get_origin

import pytest
from msgspec import Struct

from modelwire.protocol import meta, wire
from modelwire.protocol import types as t
from modelwire.protocol.downgrade import REPLACED
from modelwire.protocol.methods import METHODS, Method
from modelwire.protocol.revisions import REVISIONS, Revision
from modelwire.protocol.types.base import is_choice
from tests import spec
from tests.protocol.samples import struct_variants, variants, wire_fields

pytestmark = spec.needs_spec

SERVER_INFO = b'{"name":"s","version":"1"}'

RENAMED = {
    "ResourceReference": "ResourceTemplateReference",
    "JSONRPCError": "Error",
    "InternalError": "Error",
    "InvalidParamsError": "Error",
    "InvalidRequestError": "Error",
    "MethodNotFoundError": "Error",
    "ParseError": "Error",
}
"""Types that go by another name with us: the newest one, or the one that they all are."""

NO_TYPE_OF_OURS = {
    r"(Client|Server)(Request|Notification|Result)": "a union; who may send what is a column of METHODS",
    r"JSONRPC\w+": "an envelope; modelwire.protocol.jsonrpc",
    r"(Request|Notification|PaginatedRequest)": "the shape of every message",
    r"\w+ResultResponse": "an envelope around the result",
    r"(HeaderMismatch|UnsupportedProtocolVersion|MissingRequiredClientCapability|URLElicitationRequired)Error": (
        "an envelope around an error; its data has a type"
    ),
    r"Annotated|BaseMetadata|Icons": "a mix-in; its fields are walked where they are used",
    r"JSONValue|JSONArray|ResultType": "any JSON, or a plain string",
    r"(Multi|Single)SelectEnumSchema|EnumSchema": "a union within PrimitiveSchemaDefinition",
    r"InputRequest": "a union within InputRequests",
    r"InputResponse": "a union; with us the base of its members",
    r"InputRequests|InputResponses": "a dict; the annotation of the fields that hold it",
    r"(Request|Notification|Result|SubscriptionsListenResult)MetaObject": "a dict; its keys are constants in meta",
}

Pair = tuple[str, str]


def _pairs() -> list[Pair]:
    if spec.ABSENT:
        return []
    return [(name, type_name) for name in spec.REVISION_NAMES for type_name in spec.definitions(name)]


def _revision(name: str) -> Revision:
    return next(revision for revision in REVISIONS if revision.name == name)


def _exempt(type_name: str) -> bool:
    return any(re.fullmatch(pattern, type_name) for pattern in NO_TYPE_OF_OURS)


def _is_message(type_name: str, revision: str) -> bool:
    """Messages are walked by method. Questions of 2026-07-28 look like requests, but are types of their own."""
    return type_name in spec.messages(revision).values() and not (
        hasattr(t, type_name) and not _revision(revision).server_requests
    )


def _struct_pairs() -> list[tuple[str, str, type[Struct]]]:
    found: list[tuple[str, str, type[Struct]]] = []
    for revision, type_name in _pairs():
        kind = _our_type(type_name)
        exempt = _exempt(type_name) or _is_message(type_name, revision) or type_name == "JSONRPCError"
        if not exempt and isinstance(kind, type) and issubclass(kind, Struct):
            found.append((revision, type_name, kind))
    return found


def _our_type(type_name: str) -> Any:
    return getattr(t, RENAMED.get(type_name, type_name), None)


# ---------------------------------------------------------------------------------------------------------- methods


@pytest.mark.parametrize("revision", REVISIONS, ids=str)
@pytest.mark.parametrize("sender", ["client", "server"])
def test_each_side_may_send_what_the_schema_says_and_nothing_else(revision: Revision, sender: Any) -> None:
    ours = {name for name, method in METHODS.items() if method.sent_by(sender, revision)}
    assert ours == spec.may_send(revision.name, sender)


@pytest.mark.parametrize("revision", REVISIONS, ids=str)
def test_messages_of_the_schema_that_nobody_sends_are_questions(revision: Revision) -> None:
    sent = spec.may_send(revision.name, "client") | spec.may_send(revision.name, "server")
    unsent = set(spec.messages(revision.name)) - sent
    assert unsent == (
        {name for name, row in METHODS.items() if row.question} if not revision.server_requests else set()
    )


@pytest.mark.parametrize("revision", REVISIONS, ids=str)
def test_results_cacheability_and_asking_are_those_of_the_schema(revision: Revision) -> None:
    for name, method in METHODS.items():
        if not method.sent_by("client", revision) and not method.sent_by("server", revision):
            continue
        assert method.notification == spec.messages(revision.name)[name].endswith("Notification")
        if method.result is None:
            continue
        expected = spec.result_type(revision.name, name)
        assert method.result.__name__ == expected.replace("EmptyResult", "Result")
        if revision.stamped_results:
            fields = spec.definitions(revision.name)[expected].get("properties", {})
            assert method.cacheable == ("ttlMs" in fields)
            assert method.asks == spec.may_ask(revision.name, name)


# ------------------------------------------------------------------------------------------------- types and fields


@pytest.mark.parametrize(("revision_name", "type_name"), _pairs())
def test_every_type_of_every_revision_has_its_counterpart(revision_name: str, type_name: str) -> None:
    if _exempt(type_name) or _is_message(type_name, revision_name):
        return
    assert _our_type(type_name) is not None, f"no {type_name} in modelwire.protocol.types"


@pytest.mark.parametrize(("revision_name", "type_name", "kind"), _struct_pairs())
def test_every_struct_has_exactly_the_fields_of_its_revision(
    revision_name: str, type_name: str, kind: type[Struct]
) -> None:
    revision = _revision(revision_name)
    definition = _resolve({"$ref": f"#/{type_name}"}, revision, kind)
    assert _differences(kind, definition, revision) == []


@pytest.mark.parametrize("revision", REVISIONS, ids=str)
def test_every_message_has_exactly_the_parameters_of_its_revision(revision: Revision) -> None:
    found: list[str] = []
    for method, type_name in spec.messages(revision.name).items():
        definition = spec.definitions(revision.name)[type_name]["properties"].get("params", {})
        kind = METHODS[method].params
        for member in getattr(kind, "members", (kind,)):
            if is_choice(kind) and not revision.covers(REPLACED.get(member, (None,))[0], None):
                continue
            found += [
                f"{method}: {line}" for line in _differences(member, _resolve(definition, revision, member), revision)
            ]
    assert found == []


def _resolve(definition: dict[str, Any], revision: Revision, kind: type) -> dict[str, Any]:
    """Follow references; of a union take the member of the same name as ``kind``."""
    while "$ref" in definition or "anyOf" in definition:
        if "anyOf" in definition:
            definition = next(member for member in definition["anyOf"] if member["$ref"].endswith(f"/{kind.__name__}"))
        definition = spec.definitions(revision.name)[definition["$ref"].rsplit("/", 1)[1]]
    return definition


def _properties(definition: dict[str, Any], revision: Revision) -> dict[str, Any]:
    merged: dict[str, Any] = dict(definition.get("properties", {}))
    for part in definition.get("allOf", ()):
        merged |= _properties(_resolve(part, revision, Struct), revision)
    return merged


def _differences(kind: type[Struct], definition: dict[str, Any], revision: Revision, path: str = "") -> list[str]:
    """Compare a struct with a schema, member by member, into objects that are written out in place."""
    theirs = _properties(definition, revision)
    ours = wire_fields(kind, revision)
    if issubclass(kind, (t.RequestParams, t.NotificationParams, t.TaskStatusNotificationParams, t.InputResponse)):
        # Up to 2025-06-18 `_meta` of messages is declared once, on the shape of every message.
        theirs.setdefault("_meta", {}) if revision.covers(None, "2025-11-25") else None
    found = [f"{path}{name} is missing" for name in theirs.keys() - ours.keys()]
    found += [f"{path}{name} is not in {revision}" for name in ours.keys() - theirs.keys()]
    for name in theirs.keys() & ours.keys():
        found += _compare_member(ours[name], theirs[name], revision, f"{path}{name}.")
    return found


def _compare_member(annotation: Any, theirs: dict[str, Any], revision: Revision, path: str) -> list[str]:
    structs = _structs(annotation)
    if "Raw" in str(annotation):
        return []  # read later, when it is known as what
    if theirs.get("type") == "object" and "properties" in theirs and len(structs) == 1:
        return _differences(structs[0], theirs, revision, path)
    if theirs.get("type") == "array" and "properties" in theirs.get("items", {}) and len(structs) == 1:
        return _differences(structs[0], theirs["items"], revision, path)
    ours = {kind.__name__ for kind in structs if revision.covers(REPLACED.get(kind, (None,))[0], None)}
    refs = {RENAMED.get(name, name) for name in _object_refs(theirs, revision)}
    return [] if ours == refs else [f"{path} holds {sorted(ours)}, the schema says {sorted(refs)}"]


def _structs(annotation: Any) -> list[type[Struct]]:
    if isinstance(annotation, type) and not get_origin(annotation):
        if is_choice(annotation):
            return [kind for kind in annotation.members if issubclass(kind, Struct)]
        return [annotation] if issubclass(annotation, Struct) else []
    return [kind for argument in get_args(annotation) for kind in _structs(argument)]


def _object_refs(definition: dict[str, Any], revision: Revision) -> set[str]:
    """Return the names of the objects that a property may hold; unions are looked through."""
    if "$ref" in definition:
        name = definition["$ref"].rsplit("/", 1)[1]
        target = spec.definitions(revision.name)[name]
        if name in ("JSONObject", "JSONValue"):
            return set()
        if name == "EnumSchema" and "anyOf" not in target:
            return {"LegacyTitledEnumSchema", "UntitledSingleSelectEnumSchema"}
        if "anyOf" in target or target.get("type") == "array":
            return _object_refs(target, revision)
        if name in spec.messages(revision.name).values() or (_our_type(name) is not None and "properties" in target):
            return {name}
        return _object_refs(target.get("additionalProperties") or {}, revision)
    parts = [*definition.get("anyOf", ())]
    parts += [definition[key] for key in ("items", "additionalProperties") if isinstance(definition.get(key), dict)]
    return {name for part in parts for name in _object_refs(part, revision)}


def test_every_reserved_key_of_meta_is_a_constant() -> None:
    constants = {value for name, value in vars(meta).items() if name.isupper()}
    for name in (
        "RequestMetaObject",
        "NotificationMetaObject",
        "ResultMetaObject",
        "SubscriptionsListenResultMetaObject",
    ):
        assert spec.definitions("2026-07-28")[name]["properties"].keys() <= constants


# ----------------------------------------------------------------------------------------- what we write is valid


def _encoded(value: Any, revision: Revision) -> Any:
    """Encode; None when the revision has no way to say it, which must be one that the table names."""
    try:
        return json.loads(wire.encode(value, revision))
    except wire.WireError as error:
        if "cannot be said in" in str(error) and not revision.covers("2025-11-25", None):
            return None
        raise


@pytest.mark.parametrize(("revision_name", "type_name", "kind"), _struct_pairs())
def test_full_values_of_every_type_are_valid_in_every_revision(
    revision_name: str, type_name: str, kind: type[Struct]
) -> None:
    if type_name in RENAMED or issubclass(kind, t.Result):  # results are stamped: see below
        return
    found = [_encoded(value, _revision(revision_name)) for value in struct_variants(kind)]
    written = [value for value in found if value is not None]
    assert written
    for value in written:
        assert spec.errors_of(revision_name, type_name, value) == []


@pytest.mark.parametrize("revision", REVISIONS, ids=str)
@pytest.mark.parametrize("method", METHODS.values(), ids=lambda method: method.name)
def test_full_messages_are_valid_in_every_revision_that_has_them(method: Method, revision: Revision) -> None:
    for sender in ("client", "server"):
        if not method.sent_by(sender, revision):
            continue
        for params in variants(method.params):
            encoded = _encoded(params, revision)
            if encoded is None:
                continue
            message = {"jsonrpc": "2.0", "method": method.name, "params": encoded}
            if not method.notification:
                message["id"] = 1
            assert spec.validate_message(revision.name, sender, message) == []


@pytest.mark.parametrize("revision", REVISIONS, ids=str)
@pytest.mark.parametrize("method", METHODS.values(), ids=lambda method: method.name)
def test_full_and_bare_results_are_valid_in_every_revision_that_has_them(method: Method, revision: Revision) -> None:
    if method.result is None or not (method.sent_by("client", revision) or method.sent_by("server", revision)):
        return
    for value in struct_variants(method.result):
        for info in (None, SERVER_INFO):
            for stamped in (True, False):
                if isinstance(value, t.Result):
                    value.result_type = "complete" if stamped else None
                result = json.loads(wire.encode_result(value, method, revision, info))
                if method.name == "subscriptions/listen":
                    result["_meta"][meta.SUBSCRIPTION_ID] = 1
                message = {"jsonrpc": "2.0", "id": 1, "result": result}
                assert spec.validate_message(revision.name, "server", message, method.name) == []


def test_questions_are_valid_inside_an_input_required_result() -> None:
    revision = _revision("2026-07-28")
    for value in struct_variants(t.InputRequiredResult):
        value.result_type = None
        for name in ("tools/call", "prompts/get", "resources/read"):
            result = json.loads(wire.encode_result(value, METHODS[name], revision, SERVER_INFO))
            message = {"jsonrpc": "2.0", "id": 1, "result": result}
            assert spec.validate_message("2026-07-28", "server", message, name) == []
            assert "ttlMs" not in result
            assert "cacheScope" not in result


# ------------------------------------------------------------------------------------------------- what is demanded

SUPPLIED_ELSEWHERE = {
    ("CancelledNotificationParams", "requestId"): "2025-11-25 lets it be absent; a reader must cope",
}


@pytest.mark.parametrize(("revision_name", "type_name", "kind"), _struct_pairs())
def test_what_the_schema_demands_cannot_be_left_out_by_accident(
    revision_name: str, type_name: str, kind: type[Struct]
) -> None:
    if type_name in RENAMED:
        return
    demanded = set(spec.definitions(revision_name)[type_name].get("required", ()))
    demanded -= {"_meta", "resultType", "ttlMs", "cacheScope"}  # added by with_meta and encode_result
    demanded -= {field for owner, field in SUPPLIED_ELSEWHERE if owner == type_name}
    fields = wire_fields(kind, _revision(revision_name))
    required = {name for name, annotation in fields.items() if _is_required(kind, name, annotation)}
    assert demanded <= required


def _is_required(kind: type[Struct], wire_name: str, annotation: Any) -> bool:
    marks = getattr(annotation, "__metadata__", ())
    if any(getattr(mark, "required", False) for mark in marks) or wire_name == kind.__struct_config__.tag_field:
        return True
    names = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    try:
        kind(**{name: None for encoded, name in names.items() if encoded != wire_name})
    except TypeError:
        return True
    return False
