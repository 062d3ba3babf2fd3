"""What a client tells its server again once a lost connection is back: the log level, subscriptions, who listens."""

from __future__ import annotations

import asyncio
from typing import Any

from modelwire.client.conversation import Conversation
from modelwire.client.hearing import Hearing
from modelwire.errors import ModelwireError
from modelwire.log import log as _log
from modelwire.protocol import types as t
from modelwire.protocol.methods import METHODS


async def restore(
    conversation: Conversation, hearing: Hearing, level: t.LoggingLevel | None, timeout: float | None
) -> None:
    """Tell it, all at once. What the server refuses is logged, and costs nothing else.

    Args:
        conversation: Open again.
        hearing: Knows who listens and what was subscribed to.
        level: The log level that was chosen, where the revision wants it told.
        timeout: Seconds that each answer may take.
    """
    contact = conversation.contacts.here()

    async def tell(method: str, params: Any) -> None:
        try:
            if METHODS[method].sent_by("client", conversation.contacts.opened.revision):
                await conversation.request(method, params, timeout=timeout, on=contact)
        except ModelwireError as error:
            _log.warning("%s could not be repeated over the new connection: %s", method, error)

    told = [tell("resources/subscribe", t.SubscribeRequestParams(uri)) for uri in sorted(hearing.subscribed)]
    if level is not None:
        told.insert(0, tell("logging/setLevel", t.SetLevelRequestParams(level)))
    await asyncio.gather(*told, *(listening.resume() for listening in list(hearing.listenings)))
