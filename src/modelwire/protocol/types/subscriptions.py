"""Subscriptions: one request that stays open and tells what changed (2026-07-28)."""

from __future__ import annotations

from modelwire.protocol.types.base import Model, NotificationParams, RequestParams, Result


class SubscriptionFilter(Model, kw_only=True):
    """What the client wants to be told of, or what the server agreed to tell."""

    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None
    """URIs."""


class SubscriptionsListenRequestParams(RequestParams):
    """The parameters of ``subscriptions/listen``."""

    notifications: SubscriptionFilter


class SubscriptionsListenResult(Result, kw_only=True):
    """The end of a subscription; ``_meta`` names it."""


class SubscriptionsAcknowledgedNotificationParams(NotificationParams):
    """The parameters of ``notifications/subscriptions/acknowledged``."""

    notifications: SubscriptionFilter
