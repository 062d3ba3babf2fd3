"""Sampling: a server has the client's model write something."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Raw, UnsetType, field

from modelwire.protocol.revisions import since, until
from modelwire.protocol.types.base import (
    InputResponse,
    MetaObject,
    Model,
    Presumed,
    Role,
    TaskAugmentedRequestParams,
)
from modelwire.protocol.types.content import SamplingMessageContentBlock
from modelwire.protocol.types.tools import Tool


class ModelHint(Model, kw_only=True):
    """A part of the name of a model that would do."""

    name: str | None = None


class ModelPreferences(Model, kw_only=True):
    """Which model to choose; priorities go from 0 to 1."""

    hints: list[ModelHint] | None = None
    cost_priority: float | None = None
    speed_priority: float | None = None
    intelligence_priority: float | None = None


class ToolChoice(Model, kw_only=True):
    """Whether the model may, must or must not call a tool."""

    mode: Literal["auto", "required", "none"] | None = None


class SamplingMessage(Model):
    """One message of the conversation to go on with. Several blocks are possible since 2025-11-25."""

    role: Role
    content: SamplingMessageContentBlock | list[SamplingMessageContentBlock]
    meta: Annotated[MetaObject | None, since("2025-11-25")] = field(default=None, name="_meta")


class QuestionParams(TaskAugmentedRequestParams, kw_only=True):
    """Base of the questions that are requests of their own in handshake revisions only."""

    raw_meta: Annotated[Raw | UnsetType, until("2025-11-25")] = field(default=UNSET, name="_meta")


class CreateMessageRequestParams(QuestionParams):
    """The parameters of ``sampling/createMessage``."""

    messages: list[SamplingMessage]
    max_tokens: int
    system_prompt: str | None = None
    model_preferences: ModelPreferences | None = None
    include_context: Literal["none", "thisServer", "allServers"] | None = None
    temperature: float | None = None
    stop_sequences: list[str] | None = None
    metadata: dict[str, Any] | None = None
    tools: Annotated[list[Tool] | None, since("2025-11-25")] = None
    tool_choice: Annotated[ToolChoice | None, since("2025-11-25")] = None


class CreateMessageRequest(Model, tag_field="method", tag="sampling/createMessage"):
    """The question for a message, as an entry of ``inputRequests``."""

    method: ClassVar[Literal["sampling/createMessage"]] = "sampling/createMessage"

    params: CreateMessageRequestParams


class CreateMessageResult(InputResponse):
    """The answer to ``sampling/createMessage``."""

    role: Role
    content: SamplingMessageContentBlock | list[SamplingMessageContentBlock]
    model: Annotated[str, Presumed("")]
    stop_reason: str | None = None
