"""``mw run``: serve the `Server` object of a Python file, over stdio or where it is told to listen.

Standard input and output are taken over before the file is imported, so that nothing it prints reaches the client.
"""

from __future__ import annotations

import contextlib
from argparse import Namespace

from modelwire.cli.failures import OK, USAGE, Failure, failure_of
from modelwire.cli.parsing import Parser

USAGE_LINE = "mw run [--listen ADDRESS] [--wire] FILE[:OBJECT] [-- ARGUMENT ...]"
DESCRIPTION = """\
Serve the Server object of a Python file over standard input and output, or at an address.

The file is imported, so that what stands under `if __name__ == "__main__":` does not run. Its Server object is taken:
the only one; of several the one called server, mcp or app; or the one named after the colon. Without --listen, what the
file prints goes to stderr. What follows -- is what the file finds in sys.argv.
"""
EPILOG = "Exit codes: 0 when the client has left; 1 when the server could not be started; 130 after Ctrl-C."


def configure(parser: Parser, has_command: bool) -> None:
    """Add the arguments."""
    parser.add_argument("file", metavar="FILE[:OBJECT]", help="a Python file, and the name of the object in it")
    parser.add_argument(
        "--listen",
        metavar="ADDRESS",
        help="serve at tcp://HOST:PORT (port 0 takes a free one) or unix:///PATH until Ctrl-C; stderr shows where",
    )
    parser.add_argument("--wire", action="store_true", help="show every frame with direction and time on stderr")


def run(args: Namespace) -> int:
    """Serve until the client leaves, or Ctrl-C."""
    from modelwire.cli.loading import Served, load_server
    from modelwire.errors import ModelwireError
    from modelwire.server.server import Server
    from modelwire.transports.stdio import held_stdio

    def prepare(server: Server) -> None:
        if args.wire:
            from modelwire.cli.wire_view import WireView

            server.observers.append(WireView(side="server"))

    try:
        with held_stdio() if args.listen is None else contextlib.nullcontext():
            load_server(args.file, args.command or [], prepare, args.listen).run(args.listen)
    except Served as served:
        return served.exit_code
    except SystemExit as end:  # after Ctrl-C
        return end.code if isinstance(end.code, int) else OK
    except ModelwireError as error:
        raise Failure(USAGE, "start-failed", failure_of(error, "").message) from None
    return OK
