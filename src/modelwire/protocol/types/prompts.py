"""Prompts: listing them and having one written out."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from modelwire.protocol.revisions import since
from modelwire.protocol.types.base import (
    CacheablePaginatedResult,
    Icon,
    InputResponseRequestParams,
    MetaObject,
    Model,
    Result,
    Role,
    singly,
)
from modelwire.protocol.types.content import ContentBlock


class PromptArgument(Model):
    """One argument of a prompt; its value is always a string."""

    name: str
    title: Annotated[str | None, since("2025-06-18")] = None
    description: str | None = None
    required: bool | None = None


class Prompt(Model):
    """A message, or several, that a user can ask for by name."""

    name: str
    title: Annotated[str | None, since("2025-06-18")] = None
    description: str | None = None
    arguments: list[PromptArgument] | None = None
    icons: Annotated[list[Icon] | None, since("2025-11-25")] = None
    meta: Annotated[MetaObject | None, since("2025-06-18")] = field(default=None, name="_meta")


class ListPromptsResult(CacheablePaginatedResult):
    """The answer to ``prompts/list``."""

    prompts: Annotated[list[Prompt], singly]


class GetPromptRequestParams(InputResponseRequestParams):
    """The parameters of ``prompts/get``."""

    name: str
    arguments: dict[str, str] | None = None


class PromptMessage(Model):
    """One message of a prompt."""

    role: Role
    content: ContentBlock


class GetPromptResult(Result):
    """The answer to ``prompts/get``."""

    messages: list[PromptMessage]
    description: str | None = None
