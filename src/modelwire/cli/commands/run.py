"""``mw run``: serve the `Server` object of a Python file, over stdio or where it is told to listen.

Standard input and output are taken over before the file is imported, so that nothing it prints reaches the client.
"""

from __future__ import annotations

import contextlib
from argparse import Namespace
from typing import TYPE_CHECKING

from modelwire.cli.failures import OK, USAGE, Failure, failure_of, usage
from modelwire.cli.parsing import Parser, count, host_and_port, seconds

if TYPE_CHECKING:
    from modelwire.server.endpoints import ServeOptions

USAGE_LINE = (
    "mw run [--http HOST:PORT | --listen ADDRESS] [--workers N] [--max-connections N] [--heartbeat SECONDS] "
    "[--wire] FILE[:OBJECT] [-- ARGUMENT ...]"
)
DESCRIPTION = """\
Serve the Server object of a Python file over standard input and output, over HTTP, or at an address.

The file is imported, so that what stands under `if __name__ == "__main__":` does not run. Its Server object is taken:
the only one; of several the one called server, mcp or app; or the one named after the colon. Over standard input and
output, what the file prints goes to stderr. What follows -- is what the file finds in sys.argv.
"""
EPILOG = (
    "Exit codes: 0 when the client has left, or after SIGTERM; 1 when the server could not be started; 130 after "
    "Ctrl-C."
)


def configure(parser: Parser, has_command: bool) -> None:
    """Add the arguments."""
    parser.add_argument("file", metavar="FILE[:OBJECT]", help="a Python file, and the name of the object in it")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--http",
        metavar="HOST:PORT",
        type=host_and_port,
        help="serve at http://HOST:PORT/mcp (port 0 takes a free one) until Ctrl-C; stderr shows where. What "
        "else there is to set, such as allowed_hosts= behind a proxy, the file sets itself with server.run()",
    )
    where.add_argument(
        "--listen",
        metavar="ADDRESS",
        help="the same at tcp://HOST:PORT, unix:///PATH, http://HOST:PORT/PATH, or ws://HOST:PORT/PATH",
    )
    parser.add_argument(
        "--workers",
        metavar="N",
        type=count,
        help="over HTTP: how many processes answer (1), each with an import of the file of its own",
    )
    parser.add_argument(
        "--max-connections",
        metavar="N",
        type=count,
        help="with --listen or --http: how many connections may be open at once (256; over HTTP 10,000)",
    )
    parser.add_argument(
        "--heartbeat",
        metavar="SECONDS",
        type=seconds,
        help="with --listen at tcp://, unix:// or ws://: silence after which a client is asked for a sign of life, "
        "and later given up",
    )
    parser.add_argument(
        "--wire",
        action="store_true",
        help="show every frame with direction and time on stderr; with --listen or --http with the number of its "
        "connection, too",
    )


def run(args: Namespace) -> int:
    """Serve until the client leaves, or Ctrl-C."""
    from modelwire.cli.loading import Served, load_server
    from modelwire.errors import ModelwireError
    from modelwire.server.server import Server
    from modelwire.transports.stdio import held_stdio

    def prepare(server: Server) -> None:
        if args.wire:
            from modelwire.cli.wire_view import WireView

            server.observers.append(WireView(side="server", numbered=args.listen is not None))

    if args.http is not None:
        args.listen = f"http://{args.http}/mcp"
    options = _options(args)
    if options.get("workers", 1) > 1 and not _is_worker():
        return _supervise(args.listen, options)
    try:
        with held_stdio() if args.listen is None else contextlib.nullcontext():
            load_server(args.file, args.command or [], prepare, args.listen, options).run(args.listen, **options)
    except Served as served:
        return served.exit_code
    except SystemExit as end:  # after Ctrl-C
        return end.code if isinstance(end.code, int) else OK
    except ModelwireError as error:
        raise Failure(USAGE, "start-failed", failure_of(error, "").message) from None
    return OK


def _is_worker() -> bool:
    from modelwire.server.http.worker import is_worker

    return is_worker()


def _supervise(listen: str, options: ServeOptions) -> int:
    """Have workers serve; they alone import the file: what it holds, this process need not hold, too."""
    from modelwire.errors import ModelwireError
    from modelwire.server.http.supervisor import supervise

    try:
        return supervise(listen, options)
    except ModelwireError as error:
        raise Failure(USAGE, "start-failed", failure_of(error, "").message) from None


def _options(args: Namespace) -> ServeOptions:
    """Return what is said about the address."""
    options: ServeOptions = {}
    if args.max_connections is not None:
        options["max_connections"] = args.max_connections
    if args.heartbeat is not None:
        options["heartbeat"] = args.heartbeat
    if args.workers is not None:
        from modelwire.server.endpoints import is_http

        if not is_http(args.listen):
            raise usage("--workers is for a server over HTTP: add --http HOST:PORT")
        options["workers"] = args.workers
    if options and args.listen is None:
        raise usage(f"--{min(options).replace('_', '-')} is for a server that listens at an address: add --listen")
    return options
