"""Whose fault a failure is: of the arguments on the command line, where the server's own list shows it.

Asked only after something failed: whether arguments are good is the server's decision, so that whatever is typed can
be sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from modelwire.cli.failures import FAILED, USAGE, Failure
from modelwire.protocol.types import Prompt, Tool

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Fault:
    """What is wrong with one argument.

    Attributes:
        name: The argument.
        text: What is wrong with it, in a few words.
        sure: Whether the schema leaves no doubt. Of a format it does: what a server takes for a date is its decision.
    """

    name: str
    text: str
    sure: bool = True


def tool_faults(tool: Tool, arguments: Mapping[str, Any]) -> list[Fault]:
    """Return what a tool's ``inputSchema`` has against the arguments; nothing where the schema cannot be used."""
    import jsonschema_rs

    try:
        validator = jsonschema_rs.Draft202012Validator(tool.input_schema, validate_formats=True, offline=True)
        errors = list(validator.iter_errors(dict(arguments)))
    except ValueError:
        return []
    properties: Any = tool.input_schema.get("properties")
    known: list[str] = list(cast("dict[str, Any]", properties)) if isinstance(properties, dict) else []
    required: Any = tool.input_schema.get("required")
    missing = [name for name in cast("list[str]", required or []) if name not in arguments]
    found = _names(missing, [name for name in arguments if name not in known] if _is_closed(tool) else [])
    return found + [
        Fault(str(error.instance_path[0]), error.message, sure="format" not in error.schema_path)
        for error in errors
        if error.instance_path
    ]


def _is_closed(tool: Tool) -> bool:
    return tool.input_schema.get("additionalProperties") is False and "patternProperties" not in tool.input_schema


def prompt_faults(prompt: Prompt, arguments: Mapping[str, Any]) -> list[Fault]:
    """Return which arguments a prompt lacks or does not know, as the server's list has it."""
    known = prompt.arguments or []
    missing = [argument.name for argument in known if argument.required and argument.name not in arguments]
    return _names(missing, [name for name in arguments if name not in {argument.name for argument in known}])


def _names(missing: list[str], unknown: list[str]) -> list[Fault]:
    return [Fault(name, "missing") for name in missing] + [Fault(name, "unknown argument") for name in unknown]


def blamed(failure: Failure, faults: list[Fault]) -> Failure:
    """Return the failure of a call as wrong use, if its arguments were wrong; otherwise as it is.

    Args:
        failure: The failure.
        faults: What is wrong with the arguments; those that the message does not name are added to it, unless they are
            in doubt: then it is the message that shows whether they were the reason.
    """
    faults = [fault for fault in faults if fault.sure or fault.name in _WORD.findall(failure.message)]
    if failure.exit_code != FAILED or not faults:
        return failure
    unnamed = [f"- {fault.name}: {fault.text}" for fault in faults if fault.name not in failure.message]
    message = "\n".join([failure.message, *(["The arguments do not fit:"] if unnamed else []), *unnamed])
    return Failure(USAGE, "refused-arguments", message, **failure.details)


def tool_failure(name: str, text: str) -> Failure:
    """Return the failure of a tool that answered with ``isError``.

    Args:
        name: The tool.
        text: What it said; the tool is named before it, unless it begins with that.
    """
    opening = text[: len(name) + 20].lower()
    says_who = any(opening.startswith(start) for start in (f"the tool {name!r} ".lower(), f"the arguments of {name} "))
    message = text[:1].lower() + text[1:] if says_who else f"the tool {name!r} failed: {text}"
    if text.startswith(f"The arguments of {name} are wrong"):  # as servers of this library say it
        return Failure(USAGE, "refused-arguments", message)
    return Failure(FAILED, "tool-error", message)
