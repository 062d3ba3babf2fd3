"""What a server asks, as the functions that answer get it, and the words that they may answer with.

Data only: `modelwire.client.answering` makes it and acts on it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelwire.client.forms import Form, FormField
from modelwire.client.pages import warnings_of, web_page
from modelwire.protocol import types as t


class Reply(enum.Enum):
    """What a person did with a question, where there is nothing more to say."""

    ACCEPT = "accept"
    """A form: as it stands, with its defaults. A URL: they agree to open it, which is all that this means."""
    DECLINE = "decline"
    """They said no."""
    CANCEL = "cancel"
    """They went away without a choice."""
    DONE = "done"
    """A URL: they agreed, and have done already what had to be done there; nobody waits for the server to say so."""


@dataclass(frozen=True, slots=True)
class FormQuestion:
    """The server asks the user to fill in a form.

    Attributes:
        message: What it wants, in its words.
        server: Who asks: the name that the server gives itself, and what the client is connected to. Show it.
        form: The form.
        key: The server's name for the question, where the revision has one (2026-07-28).
    """

    message: str
    server: str
    form: Form
    key: str | None = None

    @property
    def schema(self) -> dict[str, Any]:
        """The form's JSON Schema, as it came."""
        return self.form.schema

    @property
    def fields(self) -> dict[str, FormField]:
        """The form's fields by name, in the server's order."""
        return self.form.fields

    @property
    def defaults(self) -> dict[str, Any]:
        """What the form says when nobody changes anything."""
        return self.form.defaults

    def problems(self, content: Mapping[str, Any]) -> list[str]:
        """Return what is wrong with an answer, one clause each; nothing when it fits."""
        return self.form.problems(content)


@dataclass(frozen=True, slots=True)
class UrlQuestion:
    """The server asks the user to open a page, outside the protocol.

    Show the whole URL, ask before it is opened, and open it where this program cannot look inside; never fetch it
    (client/elicitation, Safe URL Handling).

    Attributes:
        message: Why, in its words.
        url: The page, an address of https or http; others are refused.
        server: Who asks; see `FormQuestion`.
        elicitation_id: The server's name for the visit (2025-11-25).
        key: The server's name for the question (2026-07-28).
        needed: The call was refused until the page has been dealt with, and is sent again then (2025-11-25). It waits
            for the server to say that this is so, unless the answer is `Reply.DONE`.
    """

    message: str
    url: str
    server: str
    elicitation_id: str | None = None
    key: str | None = None
    needed: bool = False

    @property
    def host(self) -> str:
        """Where the page is. Show it apart from the rest of the URL, so that nobody takes one for another."""
        address = web_page(self.url)
        return "" if address is None else address.hostname or ""

    @property
    def warnings(self) -> list[str]:
        """What is suspicious about the URL, one clause each."""
        address = web_page(self.url)
        return ["it is no address of a web page"] if address is None else warnings_of(address)


@dataclass(frozen=True, slots=True)
class SampleQuestion:
    """The server asks for a message of the client's model.

    Attributes:
        params: Everything that the server said.
        server: Who asks; see `FormQuestion`.
        key: The server's name for the question (2026-07-28).
    """

    params: t.CreateMessageRequestParams
    server: str
    key: str | None = None

    @property
    def messages(self) -> list[t.SamplingMessage]:
        """The conversation to go on with."""
        return self.params.messages

    @property
    def max_tokens(self) -> int:
        """How long the answer may be."""
        return self.params.max_tokens

    @property
    def system_prompt(self) -> str | None:
        """What the model should be told first; the client may leave it out."""
        return self.params.system_prompt

    @property
    def temperature(self) -> float | None:
        """How much may be left to chance."""
        return self.params.temperature

    @property
    def stop_sequences(self) -> list[str]:
        """Where to stop."""
        return self.params.stop_sequences or []

    @property
    def model_hints(self) -> list[str]:
        """Parts of the names of models that would do, the best first."""
        preferences = self.params.model_preferences
        hints = None if preferences is None else preferences.hints
        return [hint.name for hint in hints or () if hint.name]

    @property
    def tools(self) -> list[t.Tool]:
        """What the model may call; only where the client declared ``sampling.tools``."""
        return self.params.tools or []

    @property
    def tool_choice(self) -> t.ToolChoice | None:
        """Whether it may, must or must not."""
        return self.params.tool_choice
