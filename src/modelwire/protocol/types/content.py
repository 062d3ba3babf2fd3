"""Content blocks: what tools return, prompts say and models are sent.

`ContentBlock` is what tools and prompts use, `SamplingMessageContentBlock` what sampling uses. Blocks of a kind that
is in neither decode as `UnknownContent`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import UNSET, UnsetType, field

from modelwire.protocol.revisions import since
from modelwire.protocol.types.base import Annotations, Choice, Icon, MetaObject, Model, UnknownContent


class ResourceContents(Choice):
    """What a resource holds: `TextResourceContents` or `BlobResourceContents`."""

    if TYPE_CHECKING:
        uri: str
        mime_type: str | None
        meta: MetaObject | None

    @classmethod
    def pick(cls, value: Any) -> type:
        """A ``blob`` makes it binary; anything else must be text."""
        if not isinstance(value, dict):
            raise ValueError("expected an object")
        return BlobResourceContents if "blob" in value else TextResourceContents


class TextResourceContents(Model):
    """What a resource holds, as text."""

    uri: str
    text: str
    mime_type: str | None = None
    meta: Annotated[MetaObject | None, since("2025-06-18")] = field(default=None, name="_meta")


class BlobResourceContents(Model):
    """What a resource holds, as bytes in base64."""

    uri: str
    blob: str
    mime_type: str | None = None
    meta: Annotated[MetaObject | None, since("2025-06-18")] = field(default=None, name="_meta")


ResourceContents.members = (TextResourceContents, BlobResourceContents)
ResourceContents.register(TextResourceContents)
ResourceContents.register(BlobResourceContents)

if TYPE_CHECKING:
    AnyResourceContents: TypeAlias = TextResourceContents | BlobResourceContents
else:
    AnyResourceContents = ResourceContents


class _Block(Model, tag_field="type", kw_only=True):
    """Base of every content block."""

    meta: Annotated[MetaObject | None, since("2025-06-18")] = field(default=None, name="_meta")


class TextContent(_Block, tag="text"):
    """Text."""

    type: ClassVar[Literal["text"]] = "text"

    text: str
    annotations: Annotations | None = None


class ImageContent(_Block, tag="image"):
    """An image; ``data`` is base64."""

    type: ClassVar[Literal["image"]] = "image"

    data: str
    mime_type: str
    annotations: Annotations | None = None


class AudioContent(_Block, tag="audio"):
    """A sound; ``data`` is base64. Since 2025-03-26."""

    type: ClassVar[Literal["audio"]] = "audio"

    data: str
    mime_type: str
    annotations: Annotations | None = None


class ResourceLink(_Block, tag="resource_link"):
    """A pointer to a resource that the reader may want. Since 2025-06-18."""

    type: ClassVar[Literal["resource_link"]] = "resource_link"

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    """In bytes."""
    annotations: Annotations | None = None
    icons: Annotated[list[Icon] | None, since("2025-11-25")] = None


class EmbeddedResource(_Block, tag="resource"):
    """A resource's contents, put into a message."""

    type: ClassVar[Literal["resource"]] = "resource"

    resource: AnyResourceContents
    annotations: Annotations | None = None


class ToolUseContent(_Block, tag="tool_use"):
    """A model's wish to call a tool; sampling only. Since 2025-11-25."""

    type: ClassVar[Literal["tool_use"]] = "tool_use"

    id: str
    name: str
    input: dict[str, Any]


class ToolResultContent(_Block, tag="tool_result"):
    """What a tool answered to a `ToolUseContent`; sampling only. Since 2025-11-25."""

    type: ClassVar[Literal["tool_result"]] = "tool_result"

    tool_use_id: str
    content: list[ContentBlock]
    is_error: bool | None = None
    structured_content: Any | UnsetType = UNSET


if TYPE_CHECKING:
    ContentBlock: TypeAlias = (
        TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource | UnknownContent
    )
    SamplingMessageContentBlock: TypeAlias = (
        TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent | UnknownContent
    )
else:
    # UnknownContent is no struct: msgspec would refuse the union. The careful decoder makes it.
    ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
    SamplingMessageContentBlock = TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent
