"""Ready-made functions that answer servers: a person at the terminal, and models behind HTTP endpoints.

    from modelwire import Client, answers

    person = answers.terminal()
    model = answers.anthropic("some-model", approve=person)
    client = Client("server.py", on_elicit=person, on_elicit_url=person, on_sample=model)

They need nothing but the standard library. Nothing is asked or sent before a server asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

from modelwire.client.asking_models import Approve, ChatCompletions, Endpoint, Messages, Model, key_of
from modelwire.client.asking_terminal import OpenPage, Terminal, open_in_browser

__all__ = ["anthropic", "openai", "terminal"]

OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com"


def terminal(
    reads: TextIO | None = None, writes: TextIO | None = None, *, open_page: OpenPage | None = open_in_browser
) -> Terminal:
    """Return what asks the person at the terminal, for ``on_elicit=``, ``on_elicit_url=`` and ``approve=``.

    It shows which server asks, takes a form field by field with its defaults and choices, and has the whole reviewed
    before it is sent. Of a page it shows the host and the whole URL, and opens it only on consent, and only https (or
    this machine's own). Where stdin is no terminal, questions are dismissed, and the log says so.

    Args:
        reads: Where the person types; by default stdin.
        writes: Where questions are shown; by default stderr, so that stdout stays the program's.
        open_page: Opens a page; by default in the person's browser; None for never.
    """
    return Terminal(reads, writes, open_page)


def openai(
    model: Model,
    *,
    base_url: str = OPENAI,
    api_key: str | None = None,
    approve: Approve | None = None,
    max_tokens: int | None = None,
    timeout: float = 120.0,
    extra: Mapping[str, Any] | None = None,
) -> Endpoint:
    """Return what has a model of an OpenAI-compatible endpoint write messages, for ``on_sample=``.

    Args:
        model: The model's name, or a function that is called with the `SampleQuestion` and returns it.
        base_url: The endpoint, without ``/chat/completions``.
        api_key: Its key; by default that of the environment, ``OPENAI_API_KEY``, which only OpenAI's own is sent.
        approve: Called with the `SampleQuestion` before anything is sent, may be async; unless it returns True, the
            server is told that the user rejected it. `terminal` does. Servers may ask what they like: have somebody
            look.
        max_tokens: How long an answer may be, whatever the server asks for.
        timeout: Seconds that an answer may take.
        extra: Further members of each request, such as ``{"max_completion_tokens": 1000}`` for models that want that.

    Raises:
        ConfigError: There is no key for OpenAI, or ``base_url`` is no URL of HTTP.
    """
    key = key_of(api_key, "OPENAI_API_KEY", needed=True) if base_url == OPENAI else api_key
    url = f"{base_url.rstrip('/')}/chat/completions"
    return ChatCompletions(url, model, key, approve, max_tokens, timeout, extra)


def anthropic(
    model: Model,
    *,
    base_url: str = ANTHROPIC,
    api_key: str | None = None,
    approve: Approve | None = None,
    max_tokens: int | None = None,
    timeout: float = 120.0,
    extra: Mapping[str, Any] | None = None,
) -> Endpoint:
    """Return what has a model of Anthropic's interface write messages, for ``on_sample=``.

    Args:
        model: As for `openai`.
        base_url: The endpoint, without ``/v1/messages``.
        api_key: Its key; by default that of the environment, ``ANTHROPIC_API_KEY``, which only Anthropic's own is sent.
        approve: As for `openai`.
        max_tokens: As for `openai`.
        timeout: As for `openai`.
        extra: As for `openai`.

    Raises:
        ConfigError: There is no key for Anthropic, or ``base_url`` is no URL of HTTP.
    """
    key = key_of(api_key, "ANTHROPIC_API_KEY", needed=True) if base_url == ANTHROPIC else api_key
    return Messages(f"{base_url.rstrip('/')}/v1/messages", model, key, approve, max_tokens, timeout, extra)
