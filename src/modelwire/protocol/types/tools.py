"""Tools: listing and calling them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Raw, UnsetType, field

from modelwire.protocol.revisions import only, since
from modelwire.protocol.types.base import (
    CacheablePaginatedResult,
    Icon,
    InputResponseRequestParams,
    MetaObject,
    Model,
    Result,
    TaskMetadata,
    singly,
)
from modelwire.protocol.types.content import ContentBlock


class ToolAnnotations(Model, kw_only=True):
    """Hints about what a tool does. A client must not trust them unless it trusts the server."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class ToolExecution(Model, kw_only=True):
    """How a tool may be run (2025-11-25)."""

    task_support: Literal["forbidden", "optional", "required"] | None = None


class Tool(Model):
    """Something that a model can call."""

    name: str
    input_schema: dict[str, Any]
    """JSON Schema of the arguments; ``type`` is ``"object"``."""
    description: str | None = None
    title: Annotated[str | None, since("2025-06-18")] = None
    output_schema: Annotated[dict[str, Any] | None, since("2025-06-18")] = None
    annotations: Annotated[ToolAnnotations | None, since("2025-03-26")] = None
    execution: Annotated[ToolExecution | None, only("2025-11-25")] = None
    icons: Annotated[list[Icon] | None, since("2025-11-25")] = None
    meta: Annotated[MetaObject | None, since("2025-06-18")] = field(default=None, name="_meta")


class ListToolsResult(CacheablePaginatedResult):
    """The answer to ``tools/list``."""

    tools: Annotated[list[Tool], singly]


class CallToolRequestParams(InputResponseRequestParams):
    """The parameters of ``tools/call``. ``arguments`` are decoded straight into the tool's own parameters."""

    name: str
    arguments: Raw | UnsetType = UNSET
    task: Annotated[TaskMetadata | None, only("2025-11-25")] = None


class CallToolResult(Result):
    """The answer to ``tools/call``."""

    content: list[ContentBlock]
    structured_content: Annotated[Any | UnsetType, since("2025-06-18")] = UNSET
    """Anything that can be written as JSON; None is JSON's ``null``, UNSET is nothing at all."""
    is_error: bool | None = None
