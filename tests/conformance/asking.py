"""The tools of the suite that ask: the user, the client's model, and where they may work. And the one prompt."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta

from modelwire import Context, types


@dataclass
class User:
    username: Annotated[str, Meta(description="User's response")]
    email: Annotated[str, Meta(description="User's email address")]


@dataclass
class Profile:
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


@dataclass
class Name:
    name: str


@dataclass
class Agreement:
    ok: bool


@dataclass
class Color:
    color: str


@dataclass
class UserContext:
    context: str


CHOICES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {
            "type": "string",
            "oneOf": [{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}],
        },
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {
            "type": "array",
            "items": {
                "anyOf": [{"const": "value1", "title": "First Choice"}, {"const": "value2", "title": "Second Choice"}]
            },
        },
    },
}


def _text(written: types.CreateMessageResult) -> str:
    return written.content.text if isinstance(written.content, types.TextContent) else repr(written.content)


async def test_sampling(prompt: str, ctx: Context) -> str:
    """Have the client's model answer."""
    return f"LLM response: {_text(await ctx.sample(prompt, max_tokens=100))}"


async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the user."""
    user = await ctx.elicit(message, User)
    return f"User response: {user.username}, {user.email}"


async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask the user by a form that is filled already."""
    return f"Elicitation completed: {await ctx.elicit('Please check your profile', Profile)}"


async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Ask the user to choose, in every way that there is."""
    return f"Elicitation completed: {await ctx.elicit('Please choose', schema=CHOICES)}"


async def test_missing_capability(ctx: Context) -> str:
    """Need the client's model."""
    return _text(await ctx.sample("Say something.", max_tokens=100))


async def test_streaming_elicitation(ctx: Context) -> str:
    """Ask the user in the middle of work that tells how far it is."""
    ctx.progress(1, 2)
    return f"Hello, {(await ctx.elicit('What is your name?', Name)).name}!"


async def test_input_required_result_elicitation(ctx: Context) -> str:
    """Ask the user for a name."""
    return f"Hello, {(await ctx.elicit('What is your name?', Name, key='user_name')).name}!"


async def test_input_required_result_sampling(ctx: Context) -> str:
    """Ask the client's model for a capital."""
    question = "What is the capital of France?"
    return _text(await ctx.sample(question, max_tokens=100, key="capital_question"))


async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Ask where it may work."""
    return f"Roots: {[root.uri for root in await ctx.roots(key='client_roots')]}"


async def test_input_required_result_request_state(ctx: Context) -> str:
    """Ask the user to confirm, and go on where it was."""
    agreed = await ctx.elicit("Please confirm", Agreement, key="confirm")
    return f"state-ok: {agreed.ok}"


async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Ask user, model and roots side by side."""
    name, greeting, roots = await asyncio.gather(
        ctx.elicit("What is your name?", Name, key="user_name"),
        ctx.sample("Generate a greeting", max_tokens=50, key="greeting"),
        ctx.roots(key="client_roots"),
    )
    return f"{_text(greeting)}, {name.name}, in {[root.uri for root in roots]}"


async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Ask one thing after the other."""
    name = await ctx.elicit("Step 1: What is your name?", Name, key="step1")
    color = await ctx.elicit("Step 2: What is your favorite color?", Color, key="step2")
    return f"{name.name} likes {color.color}"


async def test_input_required_result_tampered_state(ctx: Context) -> str:
    """Ask the user to confirm, and see that the state is the one that was sent."""
    return f"Confirmed: {(await ctx.elicit('Please confirm', Agreement, key='confirm')).ok}"


async def test_input_required_result_capabilities(ctx: Context) -> str:
    """Ask what the client can answer."""
    answers: list[str] = []
    if ctx.peer.supports("elicitation"):
        answers.append((await ctx.elicit("What is your name?", Name, key="user_name")).name)
    if ctx.peer.supports("sampling"):
        answers.append(_text(await ctx.sample("Say hello.", max_tokens=50, key="greeting")))
    return f"Answers: {answers}"


async def test_input_required_result_prompt(ctx: Context) -> str:
    """A prompt that asks the user."""
    context = await ctx.elicit("What context should the prompt use?", UserContext, key="user_context")
    return f"Use this context: {context.context}"


TOOLS = (
    test_sampling,
    test_elicitation,
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
    test_missing_capability,
    test_streaming_elicitation,
    test_input_required_result_elicitation,
    test_input_required_result_sampling,
    test_input_required_result_list_roots,
    test_input_required_result_request_state,
    test_input_required_result_multiple_inputs,
    test_input_required_result_multi_round,
    test_input_required_result_tampered_state,
    test_input_required_result_capabilities,
)
