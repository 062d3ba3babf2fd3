"""Every method and notification of every revision, one row each.

`lookup` is the gate that a message passes before anything else looks at it: a method that the revision does not have,
or that the other side may not send, is not found. What some programs send although no revision has it is not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from modelwire.protocol import types as t
from modelwire.protocol.revisions import Revision

Sender: TypeAlias = Literal["client", "server"]


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """One method or notification."""

    name: str
    params: type[Any]
    """The type that its parameters decode to; absent parameters count as ``{}``."""
    result: type[t.Received] | None
    """The type of its result; None for a notification."""
    sender: Literal["client", "server", "both"]
    since: str | None = None
    until: str | None = None
    """The last revision that has it as a message of its own; see also `question`."""
    cacheable: bool = False
    """Its result says for how long it may be kept."""
    asks: bool = False
    """Its result may be ``input_required``."""
    question: bool = False
    """Revisions without server requests carry it inside ``inputRequests`` instead."""
    name_field: str | None = None
    """The parameter that names what the request is for, on the wire and in Python."""
    capability: str | None = None
    """What must be declared, as a dotted path of wire names: for a request by its receiver, for a notification by its
    sender."""
    effects: bool = False
    """Answering it may change something: a request that was lost on the way is not simply sent again."""
    client_until: str | None = None
    """The last revision in which a client may send it, when servers may do so longer."""

    @property
    def notification(self) -> bool:
        """No answer is expected."""
        return self.result is None

    def sent_by(self, sender: Sender, revision: Revision) -> bool:
        """Say whether ``sender`` may send it in ``revision``."""
        if self.sender not in ("both", sender) or not revision.covers(self.since, self.until):
            return False
        return sender == "server" or revision.covers(None, self.client_until)


_HANDSHAKE = "2025-11-25"
_TASKS: dict[str, Any] = {"since": "2025-11-25", "until": "2025-11-25"}

_LIFECYCLE = (
    Method("initialize", t.InitializeRequestParams, t.InitializeResult, "client", until=_HANDSHAKE),
    Method("notifications/initialized", t.NotificationParams, None, "client", until=_HANDSHAKE),
    Method("server/discover", t.RequestParams, t.DiscoverResult, "client", since="2026-07-28", cacheable=True),
    Method("ping", t.RequestParams, t.Result, "both", until=_HANDSHAKE),
    Method("notifications/cancelled", t.CancelledNotificationParams, None, "both"),
    Method("notifications/progress", t.ProgressNotificationParams, None, "both", client_until=_HANDSHAKE),
)

_TOOLS = (
    Method("tools/list", t.PaginatedRequestParams, t.ListToolsResult, "client", cacheable=True, capability="tools"),
    Method(
        "tools/call",
        t.CallToolRequestParams,
        t.CallToolResult,
        "client",
        asks=True,
        effects=True,
        name_field="name",
        capability="tools",
    ),
    Method(
        "notifications/tools/list_changed",
        t.NotificationParams,
        None,
        "server",
        capability="tools.listChanged",
    ),
)

_RESOURCES = (
    Method(
        "resources/list",
        t.PaginatedRequestParams,
        t.ListResourcesResult,
        "client",
        cacheable=True,
        capability="resources",
    ),
    Method(
        "resources/templates/list",
        t.PaginatedRequestParams,
        t.ListResourceTemplatesResult,
        "client",
        cacheable=True,
        capability="resources",
    ),
    Method(
        "resources/read",
        t.ReadResourceRequestParams,
        t.ReadResourceResult,
        "client",
        cacheable=True,
        asks=True,
        name_field="uri",
        capability="resources",
    ),
    Method(
        "resources/subscribe",
        t.SubscribeRequestParams,
        t.Result,
        "client",
        until=_HANDSHAKE,
        capability="resources.subscribe",
    ),
    Method(
        "resources/unsubscribe",
        t.UnsubscribeRequestParams,
        t.Result,
        "client",
        until=_HANDSHAKE,
        capability="resources.subscribe",
    ),
    Method(
        "notifications/resources/updated",
        t.ResourceUpdatedNotificationParams,
        None,
        "server",
        capability="resources.subscribe",
    ),
    Method(
        "notifications/resources/list_changed",
        t.NotificationParams,
        None,
        "server",
        capability="resources.listChanged",
    ),
)

_PROMPTS = (
    Method(
        "prompts/list",
        t.PaginatedRequestParams,
        t.ListPromptsResult,
        "client",
        cacheable=True,
        capability="prompts",
    ),
    Method(
        "prompts/get",
        t.GetPromptRequestParams,
        t.GetPromptResult,
        "client",
        asks=True,
        name_field="name",
        capability="prompts",
    ),
    Method(
        "notifications/prompts/list_changed",
        t.NotificationParams,
        None,
        "server",
        capability="prompts.listChanged",
    ),
    Method("completion/complete", t.CompleteRequestParams, t.CompleteResult, "client", capability="completions"),
)

_TELLING = (
    Method("logging/setLevel", t.SetLevelRequestParams, t.Result, "client", until=_HANDSHAKE, capability="logging"),
    Method("notifications/message", t.LoggingMessageNotificationParams, None, "server", capability="logging"),
    Method(
        "subscriptions/listen",
        t.SubscriptionsListenRequestParams,
        t.SubscriptionsListenResult,
        "client",
        since="2026-07-28",
    ),
    Method(
        "notifications/subscriptions/acknowledged",
        t.SubscriptionsAcknowledgedNotificationParams,
        None,
        "server",
        since="2026-07-28",
    ),
)

_ASKING = (
    Method(
        "sampling/createMessage",
        t.CreateMessageRequestParams,
        t.CreateMessageResult,
        "server",
        until=_HANDSHAKE,
        question=True,
        capability="sampling",
    ),
    Method(
        "elicitation/create",
        t.ElicitRequestParams,
        t.ElicitResult,
        "server",
        since="2025-06-18",
        until=_HANDSHAKE,
        question=True,
        capability="elicitation",
    ),
    Method(
        "notifications/elicitation/complete",
        t.ElicitationCompleteNotificationParams,
        None,
        "server",
        since="2025-11-25",
        until=_HANDSHAKE,
    ),
    Method(
        "roots/list", t.RequestParams, t.ListRootsResult, "server", until=_HANDSHAKE, question=True, capability="roots"
    ),
    Method(
        "notifications/roots/list_changed",
        t.NotificationParams,
        None,
        "client",
        until=_HANDSHAKE,
        capability="roots.listChanged",
    ),
)

_TASK_METHODS = (
    Method("tasks/get", t.GetTaskRequestParams, t.GetTaskResult, "both", capability="tasks", **_TASKS),
    Method("tasks/result", t.GetTaskPayloadRequestParams, t.GetTaskPayloadResult, "both", capability="tasks", **_TASKS),
    Method(
        "tasks/cancel",
        t.CancelTaskRequestParams,
        t.CancelTaskResult,
        "both",
        effects=True,
        capability="tasks.cancel",
        **_TASKS,
    ),
    Method("tasks/list", t.PaginatedRequestParams, t.ListTasksResult, "both", capability="tasks.list", **_TASKS),
    Method("notifications/tasks/status", t.TaskStatusNotificationParams, None, "both", capability="tasks", **_TASKS),
)

METHODS: Final[dict[str, Method]] = {
    method.name: method
    for method in (*_LIFECYCLE, *_TOOLS, *_RESOURCES, *_PROMPTS, *_TELLING, *_ASKING, *_TASK_METHODS)
}
"""The rows by name."""


def lookup(name: str, revision: Revision, sender: Sender) -> Method | None:
    """Return the row of a message that arrived, or None when its sender may not send that in ``revision``.

    Args:
        name: The message's ``method``.
        revision: The revision that both sides speak.
        sender: Who sent it.
    """
    method = METHODS.get(name)
    return method if method is not None and method.sent_by(sender, revision) else None
