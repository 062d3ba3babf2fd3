"""Resources: listing, reading and following them."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from modelwire.protocol.revisions import since
from modelwire.protocol.types.base import (
    Annotations,
    CacheablePaginatedResult,
    CacheableResult,
    Icon,
    InputResponseRequestParams,
    MetaObject,
    Model,
    NotificationParams,
    RequestParams,
    singly,
)
from modelwire.protocol.types.content import AnyResourceContents


class Resource(Model):
    """Something that can be read, by a fixed URI."""

    uri: str
    name: str
    title: Annotated[str | None, since("2025-06-18")] = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    """In bytes, before any encoding."""
    annotations: Annotations | None = None
    icons: Annotated[list[Icon] | None, since("2025-11-25")] = None
    meta: Annotated[MetaObject | None, since("2025-06-18")] = field(default=None, name="_meta")


class ResourceTemplate(Model):
    """A family of resources, by an RFC 6570 template."""

    uri_template: str
    name: str
    title: Annotated[str | None, since("2025-06-18")] = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    icons: Annotated[list[Icon] | None, since("2025-11-25")] = None
    meta: Annotated[MetaObject | None, since("2025-06-18")] = field(default=None, name="_meta")


class ListResourcesResult(CacheablePaginatedResult):
    """The answer to ``resources/list``."""

    resources: Annotated[list[Resource], singly]


class ListResourceTemplatesResult(CacheablePaginatedResult):
    """The answer to ``resources/templates/list``."""

    resource_templates: Annotated[list[ResourceTemplate], singly]


class ResourceRequestParams(RequestParams):
    """The parameters of a request about one resource."""

    uri: str


class ReadResourceRequestParams(InputResponseRequestParams):
    """The parameters of ``resources/read``."""

    uri: str


class ReadResourceResult(CacheableResult):
    """The answer to ``resources/read``."""

    contents: list[AnyResourceContents]


class SubscribeRequestParams(ResourceRequestParams):
    """The parameters of ``resources/subscribe``."""


class UnsubscribeRequestParams(ResourceRequestParams):
    """The parameters of ``resources/unsubscribe``."""


class ResourceUpdatedNotificationParams(NotificationParams):
    """The parameters of ``notifications/resources/updated``."""

    uri: str
