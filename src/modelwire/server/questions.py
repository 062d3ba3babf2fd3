"""Questions to a client, as plain values: what is sent on which revision, what must be declared, what an answer means.

A `Question` is what `Context.elicit` and its like make; `modelwire.server.asking` brings it to the client, as a request
or inside a result. Nothing here sends or waits.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from modelwire.errors import CapabilityRequired, ConfigError, Declined, Dismissed, ProtocolViolation
from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.protocol.methods import METHODS
from modelwire.protocol.revisions import LATEST, Revision
from modelwire.rules.conversation import conversation_fault
from modelwire.rules.session import Peer
from modelwire.server.contents import blocks
from modelwire.server.forms import form_schema, read_form
from modelwire.server.given_schema import GivenSchema

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+")
"""A scheme and the characters of RFC 3986."""
_NOTHING_KEPT = (
    f"and this server keeps nothing of its clients (stateless=True), so it can ask those of {LATEST.name} only"
)
_NOTHING_ASKED: dict[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class Question:
    """Something to be asked of a client.

    Attributes:
        kind: A word for it, for keys and people.
        method: The method that asks it.
        capability: What the client must have declared.
        write: Returns its parameters as JSON for a revision; raises WireError where the revision has no such thing.
        read: Returns what an answer means, or the exception that it stands for; raises ProtocolViolation for an answer
            that does not fit.
        identity: What its key is made of; None for its parameters.
        declared: What the client must have declared besides, where its revision lets it.
    """

    kind: str
    method: str
    capability: str
    write: Callable[[Revision], bytes]
    read: Callable[[Any], Any]
    identity: bytes | None = None
    declared: str | None = None

    def params(self, peer: Peer) -> bytes:
        """Return the parameters for a peer.

        Raises:
            CapabilityRequired: It did not declare what it takes to answer.
            ConfigError: Its revision cannot carry the question.
        """
        if not peer.supports(self.capability):
            if peer.unknown:
                raise CapabilityRequired(self.capability, _NOTHING_KEPT)
            raise CapabilityRequired(self.capability)
        if self.declared and peer.revision.covers("2025-11-25", None) and not peer.supports(self.declared):
            raise CapabilityRequired(self.declared)
        try:
            return self.write(peer.revision)
        except wire.WireError as error:
            raise ConfigError(f"{self.method} was not sent: {error}") from None

    def answer(self, raw: bytes | msgspec.Raw, revision: Revision) -> Any:
        """Return what an answer means, or the exception that it stands for.

        Args:
            raw: The answer as JSON.
            revision: The peer's revision.

        Raises:
            ProtocolViolation: It is no answer to this question.
        """
        row = METHODS[self.method]
        try:
            found = wire.decode_result(raw, row, revision) if revision.server_requests else wire.decode_answer(raw, row)
        except wire.WireError as error:
            raise ProtocolViolation(f"the answer to {self.method} is invalid: {error}", bytes(raw)) from None
        return self.read(found)


def form(message: str, fields: type[Any] | None, schema: Mapping[str, Any] | None) -> Question:
    """Return the question of `Context.elicit`.

    Args:
        message: What to ask.
        fields: The class that an answer becomes.
        schema: The form by hand, sent as it is.

    Raises:
        ConfigError: Both are given, or the schema is none.
        SignatureError: The class cannot be a form.
    """
    if fields is not None and schema is not None:
        raise ConfigError("a form is a class or schema=, not both")
    _refuse_no_text(message, "the message of a form")
    if schema is not None:
        return _given_form(message, dict(schema))
    made = _NOTHING_ASKED if fields is None else form_schema(fields)
    params = wire.decode(
        wire.encode({"message": message, "requestedSchema": made}, LATEST), t.ElicitRequestParams, "the form"
    )

    def read(content: dict[str, Any]) -> Any:
        return None if fields is None else read_form(fields, content)

    return _elicitation("elicitation.form", lambda revision: wire.encode(params, revision), message, read)


def _given_form(message: str, schema: dict[str, Any]) -> Question:
    checked = GivenSchema(schema, "schema=")
    if schema.get("type") != "object":
        raise ConfigError('the schema of a form is an object\'s: it has "type": "object"')
    written = wire.encode({"message": message, "requestedSchema": schema}, LATEST)

    def read(content: dict[str, Any]) -> dict[str, Any]:
        if problems := checked.problems(content, "content"):
            raise ProtocolViolation(f"the answer does not fit the form: {'; '.join(problems)}")
        return content

    return _elicitation("elicitation.form", lambda revision: written, message, read)


def url(message: str, address: str, elicitation_id: str) -> Question:
    """Return the question of `Context.elicit_url`."""
    _refuse_no_text(message, "the message of a visit to a URL")
    if not isinstance(address, str) or not _URL.fullmatch(address):  # pyright: ignore[reportUnnecessaryIsInstance]
        # "The url parameter MUST contain a valid URL." (client/elicitation)
        raise ConfigError(f"a URL to be visited is one like https://example.com/login, not {address!r}")
    params = t.ElicitRequestURLParams(message, address, elicitation_id=elicitation_id)
    asked = _elicitation(
        "elicitation.url", lambda revision: wire.encode(params, revision), message, lambda content: None
    )
    # Not of the URL, which often holds something made up for this one visit.
    return dataclasses.replace(asked, kind="url", identity=message.encode())


def _elicitation(
    capability: str, write: Callable[[Revision], bytes], message: str, read: Callable[[dict[str, Any]], Any]
) -> Question:
    def meaning(answer: t.ElicitResult) -> Any:
        if answer.action == "decline":
            return Declined(f"The user declined to answer: {message}")
        if answer.action == "cancel":
            return Dismissed(f"The user closed the question without an answer: {message}")
        return read(answer.content or {})

    return Question("elicit", "elicitation/create", capability, write, meaning)


def sampling(messages: Any, params: Mapping[str, Any]) -> Question:
    """Return the question of `Context.sample`.

    Args:
        messages: A text, or a list of texts, content blocks and `types.SamplingMessage`.
        params: The other parameters, by their names in Python.

    Raises:
        ConfigError: There are no messages, they break a rule about tools, or a parameter is none.
    """
    given = {name: value for name, value in params.items() if value is not None}
    capability = "sampling.tools" if "tools" in given or "tool_choice" in given else "sampling"
    choice = given.get("tool_choice")
    if isinstance(choice, str):
        given["tool_choice"] = {"mode": choice}
    try:
        asked = t.CreateMessageRequestParams(messages=_messages(messages), **given)
        # Once there and back: what was given as dicts becomes typed, and what is wrong is told before it is sent.
        asked = wire.decode(wire.encode(asked, LATEST), t.CreateMessageRequestParams, "sample")
    except (wire.WireError, TypeError) as error:
        raise ConfigError(f"ctx.sample: {error}") from None
    if fault := conversation_fault(asked.messages):
        raise ConfigError(f"ctx.sample: {fault}")
    # "SHOULD NOT use them unless the client declares sampling.context capability" (client/sampling, includeContext)
    context = "sampling.context" if asked.include_context not in (None, "none") else None
    return Question(
        "sample",
        "sampling/createMessage",
        capability,
        lambda revision: wire.encode(asked, revision),
        lambda found: found,
        declared=context,
    )


def _messages(given: Any) -> list[Any]:
    items = cast("Sequence[Any]", given if isinstance(given, list | tuple) else [given])
    if not items:
        raise ConfigError("ctx.sample needs a message")
    return [
        cast("Any", item) if isinstance(item, t.SamplingMessage | dict) else t.SamplingMessage("user", _content(item))
        for item in items
    ]


def _content(item: Any) -> Any:
    made = blocks(item)
    return made[0] if len(made) == 1 else made


def roots() -> Question:
    """Return the question of `Context.roots`."""
    return Question("roots", "roots/list", "roots", lambda revision: b"{}", lambda found: found.roots)


def _refuse_no_text(value: Any, what: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{what} is a sentence for the user, not {value!r}")
