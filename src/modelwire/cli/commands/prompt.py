"""``mw prompt``: have a prompt written out."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from modelwire.cli.failures import OK, failure_of, missing
from modelwire.cli.parsing import EXIT_CODES, TARGET_HELP, Parser, add_client_options, add_target

if TYPE_CHECKING:
    from modelwire.client.client import Client

USAGE_LINE = "mw prompt TARGET NAME [ARGUMENT=VALUE ...] [options]"
DESCRIPTION = """\
Have a prompt written out and print its messages.

Values are text, as the protocol has it; ARGUMENT:=JSON sends the JSON as text.
"""
EPILOG = f"{TARGET_HELP.format(name='prompt', more='NAME a=1 ')}\n{EXIT_CODES}"


def configure(parser: Parser, has_command: bool) -> None:
    """Add the arguments."""
    if not has_command:
        add_target(parser)
    parser.add_argument("name", metavar="NAME", help="the prompt's name")
    parser.add_argument("arguments", metavar="ARGUMENT=VALUE", nargs="*", default=[], help="its arguments")
    add_client_options(parser)


def run(args: Namespace) -> int:
    """Get the prompt, and print it."""
    from modelwire.cli.arguments import parse_word, text_arguments
    from modelwire.cli.output import Output
    from modelwire.cli.refusals import blamed, prompt_faults
    from modelwire.cli.rendering import prompt_text
    from modelwire.cli.session import converse
    from modelwire.errors import RpcError

    arguments = text_arguments([parse_word(word) for word in args.arguments])
    output = Output(as_json=args.json)

    async def work(client: Client) -> int:
        known = {prompt.name: prompt for prompt in await client.list_prompts()}
        if args.name not in known:
            raise missing("prompt", args.name, list(known))
        try:
            result = await client.get_prompt(args.name, arguments)
        except RpcError as error:
            raise blamed(failure_of(error), prompt_faults(known[args.name], arguments)) from None
        if output.is_json:
            output.value(result)
        else:
            output.text(prompt_text(result))
        return OK

    return converse(args, work)
