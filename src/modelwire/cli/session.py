"""One conversation with a server, for one command: opened as the options say, and always closed.

What is said in it is the command's business; how it fails is told here once for all commands.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable, Generator

from modelwire.cli.failures import FAILED, Failure, failure_of, usage
from modelwire.cli.output import safe_text
from modelwire.cli.targets import resolve
from modelwire.client.client import Client
from modelwire.errors import ConfigError, ModelwireError
from modelwire.protocol import types as t
from modelwire.rpc.observer import Observer

Work = Callable[[Client], Awaitable[int]]

_BY_DEFAULT = (60.0, 600.0, 30.0)
"""Seconds: without a sign of life, in all, and to connect."""


def converse(args: Namespace, work: Work) -> int:
    """Connect to the server that the command line names, do the work, close, and return the exit code.

    Args:
        args: The options of `modelwire.cli.parsing.add_client_options`, ``target`` and ``command``.
        work: What to do with the open client.

    Raises:
        Failure: It could not be done.
        KeyboardInterrupt: Ctrl-C; the request that was open has been cancelled on the server.
    """
    client = _client(args)
    try:
        with _warnings_shown(quiet=args.json and not args.verbose):
            return asyncio.run(_with(client, args, work))
    except ModelwireError as error:
        raise failure_of(error, _stderr(client, args)) from None
    except Failure as failure:
        if failure.exit_code == FAILED:
            failure.stderr = _stderr(client, args)
        raise


async def _with(client: Client, args: Namespace, work: Work) -> int:
    async with client:
        if args.verbose and client.revision.log_level_per_request:
            await client.set_log_level("info")
        return await work(client)


def _client(args: Namespace) -> Client:
    target = resolve(getattr(args, "target", None), args.command)
    if args.env and isinstance(target.server, str) and not target.starts:
        raise usage(f"--env is for servers that mw starts; the one at {target.server} runs already")
    given = [entry.partition("=") for entry in args.env]
    limit = args.timeout
    quiet, total, connect = _BY_DEFAULT if limit is None else (limit, limit, limit)
    try:
        return Client(
            target.server,
            revision=args.revision,
            timeout=quiet,
            max_timeout=total,
            connect_timeout=connect,
            env={name: value for name, equals, value in given if equals},
            pass_env=(*target.pass_env, *(name for name, equals, _ in given if not equals)),
            stderr=_show_line if args.verbose else None,
            on_log=_show_log if args.verbose else None,
            observers=_observers(args),
            reconnect=False,  # who looks at a server wants to see that it ended
        )
    except ConfigError as error:
        raise usage(str(error)) from None


def _observers(args: Namespace) -> list[Observer]:
    if not args.wire:
        return []
    from modelwire.cli.wire_view import WireView

    return [WireView()]


def _stderr(client: Client, args: Namespace) -> str:
    """What to show of the server's stderr on failure: nothing when it was forwarded already."""
    return "" if args.verbose else client.stderr


def _show_line(line: str) -> None:
    print(safe_text(line), file=sys.stderr, flush=True)


def _show_log(message: t.LoggingMessageNotificationParams) -> None:
    from modelwire.cli.output import one_line

    where = f" {message.logger}:" if message.logger else ""
    _show_line(f"[{message.level}]{where} {one_line(message.data)}")


@contextlib.contextmanager
def _warnings_shown(*, quiet: bool) -> Generator[None]:
    """Show the library's warnings as lines of this program's; under ``--json`` stderr has errors only."""
    log = logging.getLogger("modelwire")
    handler = _LogHandler(logging.CRITICAL if quiet else logging.WARNING)
    propagated, log.propagate = log.propagate, False
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = propagated


class _LogHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _show_line(f"mw: {record.levelname.lower()}: {record.getMessage()}")
