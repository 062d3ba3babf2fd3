"""``mw list``: what a server has."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from modelwire.cli.failures import OK
from modelwire.cli.parsing import EXIT_CODES, TARGET_HELP, Parser, add_client_options, add_target

if TYPE_CHECKING:
    from modelwire.client.client import Client
    from modelwire.protocol.types import Prompt, Tool

KINDS = ("tools", "resources", "prompts")

USAGE_LINE = "mw list TARGET [tools|resources|prompts] [options]"
DESCRIPTION = "List what a server has: everything, or only its tools, resources or prompts."
EPILOG = f"{TARGET_HELP.format(name='list', more='tools ')}\n{EXIT_CODES}"


def configure(parser: Parser, has_command: bool) -> None:
    """Add the arguments."""
    if not has_command:
        add_target(parser)
    parser.add_argument("kind", nargs="?", choices=KINDS, help="what to list; by default everything")
    add_client_options(parser)


def run(args: Namespace) -> int:
    """List, and print the lists."""
    from modelwire.cli import tables
    from modelwire.cli.output import Output
    from modelwire.cli.session import converse

    output = Output(as_json=args.json)
    if not output.is_json:
        tables.check_available()

    async def work(client: Client) -> int:
        lists = await _lists(client, args.kind)
        if output.is_json:
            output.value(lists)
        else:
            nothing = "" if any(lists.values()) else f"; it has no {args.kind or 'tools, resources or prompts'}"
            output.text(_heading(client) + nothing)
            for name, items in lists.items():
                if items:
                    title, columns, row = _TABLES[name]
                    tables.draw(title, columns, [row(item) for item in items])
        return OK

    return converse(args, work)


async def _lists(client: Client, kind: str | None) -> dict[str, list[Any]]:
    """Return the lists by their names on the wire."""
    lists: dict[str, list[Any]] = {}
    if kind in (None, "tools"):
        lists["tools"] = await client.list_tools()
    if kind in (None, "resources"):
        lists["resources"] = await client.list_resources()
        lists["resourceTemplates"] = await client.list_resource_templates()
    if kind in (None, "prompts"):
        lists["prompts"] = await client.list_prompts()
    return lists


def _heading(client: Client) -> str:
    info = client.server_info
    who = "a server that does not say its name" if info is None else f"{info.name} {info.version}"
    return f"{who}, revision {client.revision.name}"


def _tool_row(tool: Tool) -> list[str]:
    from modelwire.cli.rendering import parameters_text

    return [tool.name, parameters_text(tool.input_schema), tool.description or tool.title or ""]


def _prompt_row(prompt: Prompt) -> list[str]:
    arguments = ", ".join(f"{item.name}{'' if item.required else '?'}" for item in prompt.arguments or [])
    return [prompt.name, arguments, prompt.description or prompt.title or ""]


_TABLES: dict[str, tuple[str, tuple[str, ...], Callable[[Any], list[str]]]] = {
    "tools": ("Tools", ("Name", "Arguments", "Description"), _tool_row),
    "resources": (
        "Resources",
        ("URI", "Name", "Description"),
        lambda item: [item.uri, item.title or item.name, item.description or ""],
    ),
    "resourceTemplates": (
        "Resource templates",
        ("URI template", "Name", "Description"),
        lambda item: [item.uri_template, item.title or item.name, item.description or ""],
    ),
    "prompts": ("Prompts", ("Name", "Arguments", "Description"), _prompt_row),
}
