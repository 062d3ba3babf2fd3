"""``mw call``: call a tool, waiting for it to appear if asked to."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from modelwire.cli.failures import OK, failure_of
from modelwire.cli.parsing import EXIT_CODES, TARGET_HELP, Parser, add_client_options, add_target, seconds

if TYPE_CHECKING:
    from modelwire.client.client import Client

USAGE_LINE = "mw call TARGET TOOL [NAME=VALUE ...] [NAME:=JSON ...] [--wait SECONDS] [options]"
DESCRIPTION = """\
Call a tool and print its result.

NAME=VALUE is read by the tool's schema: id=007 stays text where text is wanted, and is a number where a number is.
NAME:=JSON says exactly what is sent. A NAME may come several times where a list is wanted.
"""
EPILOG = f"{TARGET_HELP.format(name='call', more='TOOL a=1 ')}\n{EXIT_CODES}"


def configure(parser: Parser, has_command: bool) -> None:
    """Add the arguments."""
    if not has_command:
        add_target(parser)
    parser.add_argument("tool", metavar="TOOL", help="the tool's name")
    parser.add_argument("arguments", metavar="NAME=VALUE", nargs="*", default=[], help="its arguments")
    parser.add_argument("--wait", metavar="SECONDS", type=seconds, help="wait for a tool that appears later")
    add_client_options(parser)


def run(args: Namespace) -> int:
    """Call, and print the result."""
    from modelwire.cli.arguments import parse_word, typed_arguments
    from modelwire.cli.output import Output
    from modelwire.cli.progress import ProgressLine
    from modelwire.cli.refusals import blamed, tool_failure, tool_faults
    from modelwire.cli.rendering import result_text
    from modelwire.cli.session import converse
    from modelwire.cli.waiting import find_tool
    from modelwire.errors import RpcError

    words = [parse_word(word) for word in args.arguments]
    output = Output(as_json=args.json)

    async def work(client: Client) -> int:
        tool = await find_tool(client, args.tool, args.wait)
        arguments = typed_arguments(words, tool.input_schema)
        try:
            with ProgressLine(plain=args.verbose, silent=args.wire) as line:
                result = await client.call_tool(args.tool, arguments, on_progress=line.show)
        except RpcError as error:
            raise blamed(failure_of(error), tool_faults(tool, arguments)) from None
        if output.is_json:
            output.value(result)
        elif not result.is_error:
            output.text(result_text(result))
        if result.is_error:
            raise blamed(tool_failure(args.tool, result_text(result)), tool_faults(tool, arguments))
        return OK

    return converse(args, work)
