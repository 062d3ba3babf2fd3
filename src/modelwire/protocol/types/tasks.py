"""Tasks: requests that are answered later (2025-11-25 only)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import field

from modelwire.protocol.types.base import (
    MetaObject,
    Model,
    PaginatedResult,
    RequestParams,
    Result,
    singly,
)

TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]


class RelatedTaskMetadata(Model):
    """Says, in ``_meta``, to which task a message belongs."""

    task_id: str


class _TaskFields(Model, kw_only=True):
    """The optional fields of a task."""

    status_message: str | None = None
    poll_interval: int | None = None
    """How long to wait between two looks, in milliseconds."""


class Task(_TaskFields):
    """A request that is being worked on, or was."""

    task_id: str
    status: TaskStatus
    created_at: str
    last_updated_at: str
    ttl: int | None
    """How long the task is kept, in milliseconds; None for ever."""


class CreateTaskResult(Result):
    """The answer to a request that became a task."""

    task: Task


class _TaskResult(Result):
    task_id: str
    status: TaskStatus
    created_at: str
    last_updated_at: str
    ttl: int | None
    status_message: str | None = None
    poll_interval: int | None = None


class GetTaskResult(_TaskResult):
    """The answer to ``tasks/get``."""


class CancelTaskResult(_TaskResult):
    """The answer to ``tasks/cancel``."""


class GetTaskPayloadResult(Result, kw_only=True):
    """The answer to ``tasks/result``: whatever the request would have been answered with, in `raw`."""


class ListTasksResult(PaginatedResult):
    """The answer to ``tasks/list``."""

    tasks: Annotated[list[Task], singly]


class TaskRequestParams(RequestParams):
    """The parameters of a request about one task."""

    task_id: str


class GetTaskRequestParams(TaskRequestParams):
    """The parameters of ``tasks/get``."""


class GetTaskPayloadRequestParams(TaskRequestParams):
    """The parameters of ``tasks/result``."""


class CancelTaskRequestParams(TaskRequestParams):
    """The parameters of ``tasks/cancel``."""


class TaskStatusNotificationParams(_TaskFields):
    """The parameters of ``notifications/tasks/status``."""

    task_id: str
    status: TaskStatus
    created_at: str
    last_updated_at: str
    ttl: int | None
    meta: MetaObject | None = field(default=None, name="_meta")


class TaskRequestsCapability(Model, kw_only=True):
    """Which requests may become tasks, on a client."""

    sampling: SamplingTasks | None = None
    elicitation: ElicitationTasks | None = None


class SamplingTasks(Model, kw_only=True):
    """Sampling may become a task."""

    create_message: dict[str, Any] | None = None


class ElicitationTasks(Model, kw_only=True):
    """Elicitation may become a task."""

    create: dict[str, Any] | None = None


class ClientTasksCapability(Model, kw_only=True):
    """The client can run requests as tasks."""

    list: dict[str, Any] | None = None
    cancel: dict[str, Any] | None = None
    requests: TaskRequestsCapability | None = None


class ToolTasks(Model, kw_only=True):
    """Tool calls may become tasks."""

    call: dict[str, Any] | None = None


class ServerTaskRequestsCapability(Model, kw_only=True):
    """Which requests may become tasks, on a server."""

    tools: ToolTasks | None = None


class ServerTasksCapability(Model, kw_only=True):
    """The server can run requests as tasks."""

    list: dict[str, Any] | None = None
    cancel: dict[str, Any] | None = None
    requests: ServerTaskRequestsCapability | None = None
