"""Opening a conversation, what each side can do, progress, cancellation, and questions inside a result."""

from __future__ import annotations

from typing import Annotated, Any

from modelwire.protocol.revisions import only, since, until
from modelwire.protocol.types.base import (
    CacheableResult,
    EchoedId,
    Implementation,
    Model,
    NotificationParams,
    RequestParams,
    Result,
)
from modelwire.protocol.types.elicitation import ElicitRequest
from modelwire.protocol.types.roots import ListRootsRequest
from modelwire.protocol.types.sampling import CreateMessageRequest
from modelwire.protocol.types.tasks import ClientTasksCapability, ServerTasksCapability


class RootsCapability(Model, kw_only=True):
    """The client can list roots."""

    list_changed: Annotated[bool | None, until("2025-11-25")] = None


class SamplingCapability(Model, kw_only=True):
    """The client can have its model write something."""

    context: Annotated[dict[str, Any] | None, since("2025-11-25")] = None
    tools: Annotated[dict[str, Any] | None, since("2025-11-25")] = None


class ElicitationCapability(Model, kw_only=True):
    """The client can ask its user. An empty object means forms only."""

    form: Annotated[dict[str, Any] | None, since("2025-11-25")] = None
    url: Annotated[dict[str, Any] | None, since("2025-11-25")] = None


class ClientCapabilities(Model, kw_only=True):
    """What a client can do."""

    experimental: dict[str, dict[str, Any]] | None = None
    roots: RootsCapability | None = None
    sampling: SamplingCapability | None = None
    elicitation: Annotated[ElicitationCapability | None, since("2025-06-18")] = None
    tasks: Annotated[ClientTasksCapability | None, only("2025-11-25")] = None
    extensions: Annotated[dict[str, dict[str, Any]] | None, since("2026-07-28")] = None


class ListChangedCapability(Model, kw_only=True):
    """The server has such things, and may tell when their list changes."""

    list_changed: bool | None = None


class ResourcesCapability(Model, kw_only=True):
    """The server has resources, and may tell when one, or their list, changes."""

    subscribe: bool | None = None
    list_changed: bool | None = None


class ServerCapabilities(Model, kw_only=True):
    """What a server can do."""

    experimental: dict[str, dict[str, Any]] | None = None
    logging: dict[str, Any] | None = None
    completions: Annotated[dict[str, Any] | None, since("2025-03-26")] = None
    prompts: ListChangedCapability | None = None
    resources: ResourcesCapability | None = None
    tools: ListChangedCapability | None = None
    tasks: Annotated[ServerTasksCapability | None, only("2025-11-25")] = None
    extensions: Annotated[dict[str, dict[str, Any]] | None, since("2026-07-28")] = None


class InitializeRequestParams(RequestParams):
    """The parameters of ``initialize``."""

    protocol_version: str
    capabilities: ClientCapabilities
    client_info: Implementation


class InitializeResult(Result):
    """The answer to ``initialize``."""

    protocol_version: str
    capabilities: ServerCapabilities
    server_info: Implementation
    instructions: str | None = None


class DiscoverResult(CacheableResult):
    """The answer to ``server/discover``. Who the server is stands in ``_meta``."""

    supported_versions: list[str]
    capabilities: ServerCapabilities
    instructions: str | None = None


class InputRequiredResult(Result, kw_only=True):
    """The server needs answers before it can finish the request; the client sends it again with them."""

    input_requests: dict[str, CreateMessageRequest | ListRootsRequest | ElicitRequest] | None = None
    request_state: str | None = None


class ProgressNotificationParams(NotificationParams):
    """The parameters of ``notifications/progress``."""

    progress_token: EchoedId
    progress: float | int
    total: float | int | None = None
    message: Annotated[str | None, since("2025-03-26")] = None


class CancelledNotificationParams(NotificationParams, kw_only=True):
    """The parameters of ``notifications/cancelled``. Only 2025-11-25 lets ``requestId`` be absent."""

    request_id: EchoedId | None = None
    reason: str | None = None


class UnsupportedProtocolVersionErrorData(Model):
    """The ``data`` of error -32022: what the server would have understood."""

    supported: list[str]
    requested: str


class MissingRequiredClientCapabilityErrorData(Model):
    """The ``data`` of error -32021: what the client would have to be able to do."""

    required_capabilities: ClientCapabilities
