"""Completion: suggestions for the arguments of prompts and resource templates."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from modelwire.protocol.revisions import since
from modelwire.protocol.types.base import Model, RequestParams, Result


class PromptReference(Model, tag_field="type", tag="ref/prompt"):
    """Points at a prompt."""

    type: ClassVar[Literal["ref/prompt"]] = "ref/prompt"

    name: str
    title: Annotated[str | None, since("2025-06-18")] = None


class ResourceTemplateReference(Model, tag_field="type", tag="ref/resource"):
    """Points at a resource or a resource template; ``ResourceReference`` up to 2025-03-26."""

    type: ClassVar[Literal["ref/resource"]] = "ref/resource"

    uri: str


class CompletionArgument(Model):
    """The argument that is being typed, and what was typed so far."""

    name: str
    value: str


class CompletionContext(Model, kw_only=True):
    """The arguments that already have a value."""

    arguments: dict[str, str] | None = None


class CompleteRequestParams(RequestParams):
    """The parameters of ``completion/complete``."""

    ref: PromptReference | ResourceTemplateReference
    argument: CompletionArgument
    context: Annotated[CompletionContext | None, since("2025-06-18")] = None


class Completion(Model):
    """Suggested values, at most 100."""

    values: list[str]
    total: int | None = None
    has_more: bool | None = None


class CompleteResult(Result):
    """The answer to ``completion/complete``."""

    completion: Completion
