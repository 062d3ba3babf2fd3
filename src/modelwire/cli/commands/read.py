"""``mw read``: read a resource."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from modelwire.cli.failures import OK, Failure, missing
from modelwire.cli.parsing import EXIT_CODES, TARGET_HELP, Parser, add_client_options, add_target

if TYPE_CHECKING:
    from modelwire.client.client import Client

USAGE_LINE = "mw read TARGET URI [options]"
DESCRIPTION = "Read a resource and print what it holds."
EPILOG = f"{TARGET_HELP.format(name='read', more='URI ')}\n{EXIT_CODES}"


def configure(parser: Parser, has_command: bool) -> None:
    """Add the arguments."""
    if not has_command:
        add_target(parser)
    parser.add_argument("uri", metavar="URI", help="the resource's URI")
    add_client_options(parser)


def run(args: Namespace) -> int:
    """Read, and print."""
    from modelwire.cli.output import Output
    from modelwire.cli.rendering import contents_text
    from modelwire.cli.session import converse
    from modelwire.errors import InvalidParams, MethodNotFound

    output = Output(as_json=args.json)

    async def work(client: Client) -> int:
        try:
            result = await client.read_resource(args.uri)
        except (InvalidParams, MethodNotFound) as error:
            # A URI is all that was sent, so that is what was refused.
            raise await _missing(client, args.uri, error) from None
        if output.is_json:
            output.value(result)
        else:
            output.text("\n".join(contents_text(contents) for contents in result.contents))
        return OK

    return converse(args, work)


async def _missing(client: Client, uri: str, error: Exception) -> Failure:
    known = [resource.uri for resource in await client.list_resources()]
    return missing("resource", uri, known, f"It answered: {error}")
