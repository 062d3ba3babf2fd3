"""Elicitation: a server asks the client's user something, by a form or at a URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, cast

from msgspec import field

from modelwire.protocol.revisions import only, since
from modelwire.protocol.types.base import BareInputResponse, Choice, Model, NotificationParams
from modelwire.protocol.types.sampling import QuestionParams


class _Primitive(Model, kw_only=True):
    """What every kind of form field has."""

    title: str | None = None
    description: str | None = None


class StringSchema(_Primitive, tag_field="type", tag="string", kw_only=True):
    """A line of text."""

    type: ClassVar[Literal["string"]] = "string"

    format: Literal["email", "uri", "date", "date-time"] | None = None
    min_length: int | None = None
    max_length: int | None = None
    default: Annotated[str | None, since("2025-11-25")] = None


class NumberSchema(_Primitive):
    """A number, or a whole number."""

    type: Literal["number", "integer"]
    minimum: float | int | None = None
    maximum: float | int | None = None
    default: Annotated[float | int | None, since("2025-11-25")] = None


class BooleanSchema(_Primitive, tag_field="type", tag="boolean", kw_only=True):
    """A yes or a no."""

    type: ClassVar[Literal["boolean"]] = "boolean"

    default: bool | None = None


class UntitledSingleSelectEnumSchema(_Primitive, tag_field="type", tag="string"):
    """One of several values."""

    type: ClassVar[Literal["string"]] = "string"

    enum: list[str]
    default: Annotated[str | None, since("2025-11-25")] = None


class LegacyTitledEnumSchema(_Primitive, tag_field="type", tag="string"):
    """One of several values that have names; the form that 2025-06-18 knows."""

    type: ClassVar[Literal["string"]] = "string"

    enum: list[str]
    enum_names: list[str]
    default: Annotated[str | None, since("2025-11-25")] = None


class TitledOption(Model):
    """A value and its name."""

    const: str
    title: str


class TitledSingleSelectEnumSchema(_Primitive, tag_field="type", tag="string"):
    """One of several values that have names. Since 2025-11-25."""

    type: ClassVar[Literal["string"]] = "string"

    one_of: list[TitledOption]
    default: str | None = None


class UntitledOptions(Model, tag_field="type", tag="string"):
    """The values to choose from."""

    type: ClassVar[Literal["string"]] = "string"

    enum: list[str]


class TitledOptions(Model):
    """The values to choose from, with their names."""

    any_of: list[TitledOption]


class _MultiSelect(_Primitive, kw_only=True):
    """What both kinds of multiple choice have."""

    min_items: int | None = None
    max_items: int | None = None
    default: list[str] | None = None


class UntitledMultiSelectEnumSchema(_MultiSelect, tag_field="type", tag="array"):
    """Any of several values. Since 2025-11-25."""

    type: ClassVar[Literal["array"]] = "array"

    items: UntitledOptions


class TitledMultiSelectEnumSchema(_MultiSelect, tag_field="type", tag="array"):
    """Any of several values that have names. Since 2025-11-25."""

    type: ClassVar[Literal["array"]] = "array"

    items: TitledOptions


class PrimitiveSchemaDefinition(Choice):
    """One field of a form. What says more than the specification foresees stays a plain dict."""

    @classmethod
    def pick(cls, value: Any) -> type:
        """Look at ``type`` and at the keys that hold the choices."""
        if not isinstance(value, dict):
            raise ValueError("expected an object")
        keys = cast("dict[str, Any]", value).keys()
        kind = _KINDS.get((value.get("type"), _choices(keys, value)))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        return kind if kind is not None and keys <= _KEYS[kind] else dict


def _choices(keys: Any, value: Any) -> str:
    if "items" in keys:
        items = value["items"]
        return "anyOf" if isinstance(items, dict) and "anyOf" in items else "items"
    for key in ("oneOf", "enumNames", "enum"):
        if key in keys:
            return key
    return ""


_KINDS: dict[tuple[Any, str], type[_Primitive]] = {
    ("string", ""): StringSchema,
    ("number", ""): NumberSchema,
    ("integer", ""): NumberSchema,
    ("boolean", ""): BooleanSchema,
    ("string", "enum"): UntitledSingleSelectEnumSchema,
    ("string", "enumNames"): LegacyTitledEnumSchema,
    ("string", "oneOf"): TitledSingleSelectEnumSchema,
    ("array", "items"): UntitledMultiSelectEnumSchema,
    ("array", "anyOf"): TitledMultiSelectEnumSchema,
}
PrimitiveSchemaDefinition.members = tuple(dict.fromkeys(_KINDS.values()))
_KEYS = {kind: {"type", *kind.__struct_encode_fields__} for kind in PrimitiveSchemaDefinition.members}  # pyright: ignore
for _kind in (*PrimitiveSchemaDefinition.members, dict):
    PrimitiveSchemaDefinition.register(_kind)

if TYPE_CHECKING:
    AnySchema: TypeAlias = (
        StringSchema
        | NumberSchema
        | BooleanSchema
        | UntitledSingleSelectEnumSchema
        | LegacyTitledEnumSchema
        | TitledSingleSelectEnumSchema
        | UntitledMultiSelectEnumSchema
        | TitledMultiSelectEnumSchema
        | dict[str, Any]
    )
else:
    AnySchema = PrimitiveSchemaDefinition


class RequestedSchema(Model, tag_field="type", tag="object"):
    """The form: its fields, and which of them must be filled in."""

    type: ClassVar[Literal["object"]] = "object"

    properties: dict[str, AnySchema]
    required: list[str] | None = None
    schema: Annotated[str | None, since("2025-11-25")] = field(default=None, name="$schema")


class ElicitRequestFormParams(QuestionParams):
    """The parameters of ``elicitation/create``, for a form."""

    message: str
    requested_schema: RequestedSchema
    mode: Annotated[Literal["form"] | None, since("2025-11-25")] = None


class ElicitRequestURLParams(QuestionParams, tag_field="mode", tag="url"):
    """The parameters of ``elicitation/create``, for a URL. Since 2025-11-25."""

    mode: ClassVar[Literal["url"]] = "url"

    message: str
    url: str
    elicitation_id: Annotated[str | None, only("2025-11-25", required=True)] = None


class ElicitRequestParams(Choice):
    """The parameters of ``elicitation/create``: `ElicitRequestFormParams` or `ElicitRequestURLParams`."""

    members = (ElicitRequestFormParams, ElicitRequestURLParams)

    @classmethod
    def pick(cls, value: Any) -> type:
        """``mode`` decides; absent, it is a form."""
        if not isinstance(value, dict):
            raise ValueError("expected an object")
        mode = cast("dict[str, Any]", value).get("mode")
        if mode == "url":
            return ElicitRequestURLParams
        if mode is None or mode == "form":
            return ElicitRequestFormParams
        raise ValueError(f'"mode" must be "form" or "url", not {mode!r}')


for _kind in ElicitRequestParams.members:
    ElicitRequestParams.register(_kind)

if TYPE_CHECKING:
    AnyElicitRequestParams: TypeAlias = ElicitRequestFormParams | ElicitRequestURLParams
else:
    AnyElicitRequestParams = ElicitRequestParams


class ElicitRequest(Model, tag_field="method", tag="elicitation/create"):
    """The question for a form or a visit to a URL, as an entry of ``inputRequests``."""

    method: ClassVar[Literal["elicitation/create"]] = "elicitation/create"

    params: AnyElicitRequestParams


class ElicitResult(BareInputResponse):
    """The answer to ``elicitation/create``."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None
    """What the user filled in; only with ``accept``."""


class ElicitationCompleteNotificationParams(NotificationParams):
    """The parameters of ``notifications/elicitation/complete`` (2025-11-25)."""

    elicitation_id: str


class URLElicitationRequiredErrorData(Model):
    """The ``data`` of error -32042 (2025-11-25): what must be done at a URL before the request can succeed."""

    elicitations: list[ElicitRequestURLParams]
