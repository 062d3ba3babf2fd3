"""What a handler may ask the client: the part of `Context` that waits for people and models.

The same lines work on every revision. How a question travels is `modelwire.server.asking`'s business.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

from modelwire.log import log as _log
from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.rpc.call import Call
from modelwire.server import questions
from modelwire.server.asking import exchange_of

T = TypeVar("T")

Messages = str | t.SamplingMessage | Sequence[Any]
"""A text for the user's part, a message, or a list of texts, content blocks and messages."""


class Asks:
    """The questions of a `Context`.

    Asking works in tools, prompts and resources, and from async functions. The code before a question runs once: on
    handshake revisions the client is sent a request, on 2026-07-28 the call is answered with the question, and goes on
    when the client brings the answer. A sync function takes `Ask` parameters instead.
    """

    __slots__ = ("_first",)

    _first: Call

    @overload
    async def elicit(
        self, message: str, form: type[T], *, key: str | None = None, timeout: float | None = None
    ) -> T: ...
    @overload
    async def elicit(
        self, message: str, *, schema: Mapping[str, Any], key: str | None = None, timeout: float | None = None
    ) -> dict[str, Any]: ...
    @overload
    async def elicit(self, message: str, *, key: str | None = None, timeout: float | None = None) -> None: ...
    async def elicit(
        self,
        message: str,
        form: type[Any] | None = None,
        *,
        schema: Mapping[str, Any] | None = None,
        key: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Ask the user something, by a form.

        "Servers MUST NOT use form mode elicitation to request sensitive information such as passwords" (2026-07-28,
        client/elicitation): see `elicit_url`.

        Args:
            message: What is asked, and why.
            form: A dataclass, TypedDict, NamedTuple, msgspec Struct or attrs class of plain fields; without one the
                user only agrees or not.
            schema: The form as JSON Schema instead, sent as it is.
            key: What the answer is told by, on 2026-07-28; by default made of the question. Give one where a question
                is made of something that changes, such as the time.
            timeout: Seconds to wait; None as long as the client does.

        Returns:
            An instance of ``form``; a dict where ``schema`` was given; None without either.

        Raises:
            Declined: The user said no. Uncaught, it becomes an error that the model reads.
            Dismissed: The user closed the question. Likewise.
            CapabilityRequired: The client did not declare ``elicitation``.
            ToolError: The client could not answer.
            ProtocolViolation: Its answer does not fit the form.
            SignatureError: ``form`` cannot be one.

        Example:
            ```
            @server.tool
            async def book(hotel: str, ctx: Context) -> str:
                guests = await ctx.elicit("How many guests?", Guests)
                return f"Booked {hotel} for {guests.count}"
            ```
        """
        return await self._ask(questions.form(message, form, schema), key, timeout)

    async def elicit_url(
        self, message: str, url: str, *, elicitation_id: str | None = None, key: str | None = None,
        timeout: float | None = None,
    ) -> str:  # fmt: skip
        """Ask the user to visit a URL, for what must not pass through the client, such as a password.

        That the user agreed "does not mean that the interaction is complete": look at your own records, or wait for
        them. Since 2025-11-25.

        Args:
            message: Why.
            url: Where.
            elicitation_id: What `elicitation_complete` is told; by default made up, anew where the handler is run
                again from the top: what your records go by comes from `once`.
            key: As for `elicit`. By default made of the message alone.
            timeout: As for `elicit`.

        Returns:
            The elicitation's id.

        Raises:
            Declined: The user said no. Likewise `Dismissed`.
            CapabilityRequired: The client did not declare ``elicitation.url``.
        """
        name = elicitation_id or secrets.token_urlsafe(16)
        await self._ask(questions.url(message, url, name), key, timeout)
        return name

    def elicitation_complete(self, elicitation_id: str) -> None:
        """Tell the client that what `elicit_url` asked for is done. 2025-11-25 only; other revisions have no such word.

        Args:
            elicitation_id: What `elicit_url` returned.
        """
        call = self._first if self._first.asking is None else self._first.asking.call
        if call.peer.revision.covers("2025-11-25", "2025-11-25"):
            params = wire.encode(t.ElicitationCompleteNotificationParams(elicitation_id), call.peer.revision)
            on_loop(call, _send_complete, params)

    async def sample(
        self,
        messages: Messages,
        *,
        max_tokens: int,
        system_prompt: str | None = None,
        model_preferences: t.ModelPreferences | Mapping[str, Any] | None = None,
        temperature: float | None = None,
        stop_sequences: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        include_context: Literal["none", "thisServer", "allServers"] | None = None,
        tools: Sequence[t.Tool | Mapping[str, Any]] | None = None,
        tool_choice: t.ToolChoice | Literal["auto", "required", "none"] | None = None,
        key: str | None = None,
        timeout: float | None = None,
    ) -> t.CreateMessageResult:
        """Have the client's model write a message.

        Args:
            messages: The conversation to go on with.
            max_tokens: The most tokens of the answer.
            system_prompt: What the model is told first.
            model_preferences: Which model would do.
            temperature: How varied the answer may be.
            stop_sequences: Texts that end the answer.
            metadata: For the provider of the model.
            include_context: Whose context the client adds to the conversation; discouraged by the specification. Needs
                the capability ``sampling.context``, since 2025-11-25.
            tools: What the model may call, since 2025-11-25; needs the capability ``sampling.tools``.
            tool_choice: Whether it may, must or must not.
            key: As for `elicit`.
            timeout: As for `elicit`.

        Raises:
            Declined: The user said no.
            CapabilityRequired: The client did not declare ``sampling``, or what of it this needs.
            ToolError: The client could not answer.
            ConfigError: A parameter is none, or the messages break a rule about tools.
        """
        params = {
            "max_tokens": max_tokens,
            "system_prompt": system_prompt,
            "model_preferences": model_preferences,
            "temperature": temperature,
            "stop_sequences": stop_sequences,
            "metadata": metadata,
            "include_context": include_context,
            "tools": tools,
            "tool_choice": tool_choice,
        }
        return await self._ask(questions.sampling(messages, params), key, timeout)

    async def roots(self, *, key: str | None = None, timeout: float | None = None) -> list[t.Root]:
        """Return where in the file system the user lets the server work.

        Args:
            key: As for `elicit`.
            timeout: As for `elicit`.

        Raises:
            CapabilityRequired: The client did not declare ``roots``.
            ToolError: The client could not answer.
        """
        return await self._ask(questions.roots(), key, timeout)

    async def once(self, name: str, function: Callable[[], Any], returns: Any = None) -> Any:
        """Call a function once per call of the tool, also where the tool is run again from the top.

        A tool that asks goes on from where it stood as long as it is in memory. With ``Server(state_keys=[...])`` it
        may also be run again, by another process or after a restart: what it did before a question, it would do twice.

        Args:
            name: What it is known by; the same in each run.
            function: Called with nothing; async, or a sync one, which runs in a thread.
            returns: The type of what it gives; without one, what JSON has for it. It must fit into JSON, since it is
                kept inside the state.

        Example:
            ```
            receipt = await ctx.once("charge", lambda: charge(card, amount), Receipt)
            ```
        """
        return await exchange_of(self._first).once(name, function, returns)

    async def _ask(self, question: questions.Question, key: str | None, timeout: float | None) -> Any:
        return await exchange_of(self._first).ask(question, key, timeout)


def on_loop(call: Call, send: Callable[..., None], *args: Any) -> None:
    """Have something sent for a call, from whatever thread. Does nothing once the event loop has ended."""
    connection = call.connection
    if connection.thread == threading.get_ident():
        send(call, *args)
        return
    try:
        connection.loop.call_soon_threadsafe(send, call, *args)
    except RuntimeError:
        _log.debug("a message for request %s came after the event loop had ended", call.key)


def _send_complete(call: Call, params: bytes) -> None:
    call.connection.notify("notifications/elicitation/complete", params)
