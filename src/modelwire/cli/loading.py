"""A server from a Python file: the file is imported, and its `Server` object found.

Importing runs the file, but not what stands under ``if __name__ == "__main__":``. A file that calls ``server.run()``
while it is imported has served when the import ends. Nothing is written to stdout here.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Generator
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

from modelwire.cli.failures import USAGE, Failure
from modelwire.cli.targets import no_such_file, split_object
from modelwire.errors import ConfigError
from modelwire.server.endpoints import ServeOptions
from modelwire.server.server import Server

PREFERRED_NAMES = ("server", "mcp", "app")
"""Which of several objects is meant."""


class Served(Exception):
    """The file served by itself while it was imported.

    Args:
        exit_code: What it ended with.
    """

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


def load_server(
    target: str,
    arguments: list[str],
    prepare: Callable[[Server], None],
    listen: str | None = None,
    options: ServeOptions | None = None,
) -> Server:
    """Import a file and return its server.

    Args:
        target: ``FILE`` or ``FILE:OBJECT``.
        arguments: What the file finds in ``sys.argv`` after its own name.
        prepare: Called with each server before it serves, also if it does so while the file is imported.
        listen: Where a server serves that does so while the file is imported, in place of stdio.
        options: What is said about that address.

    Raises:
        Failure: The file cannot be read or imported, or it is not clear which object is meant.
        Served: It has served already.
    """
    path, object_name = split_object(target)
    if not os.path.isfile(path):
        raise _start_failed(f"{path!r} is no file" if os.path.exists(path) else no_such_file(path))
    sys.argv = [path, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    served: list[Server] = []

    def note(server: Server) -> None:
        prepare(server)
        served.append(server)

    with _told_of_serving(note, listen, options or {}):
        module = _import(path, served)
    if served:
        raise Served(0)
    server = _named(module, path, object_name) if object_name else _only(module, path)
    prepare(server)
    return server


def _import(path: str, served: list[Server]) -> ModuleType:
    full = os.path.abspath(path)
    name = module_name(full)
    loader = SourceFileLoader(name, full)
    spec = importlib.util.spec_from_file_location(name, full, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # Annotations are looked up through it, and a module of the file's own may import the file in turn.
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except SystemExit as end:
        if served:
            raise Served(_status(end)) from None
        said = end.code if isinstance(end.code, str) else f"it ended with status {_status(end)}"
        raise _start_failed(f"{path} ended while it was imported: {said}") from None
    except Exception as error:
        raise _start_failed(f"{path} failed while it was imported:\n{useful_traceback(error, full)}") from None
    return module


def module_name(path: str) -> str:
    """Return the name under which a file is imported: its own, unless that belongs to another module."""
    stem = os.path.splitext(os.path.basename(path))[0]
    taken = stem in sys.modules or stem in sys.stdlib_module_names or not stem.isidentifier()
    return f"served_{''.join(c if c.isalnum() else '_' for c in stem)}" if taken else stem


def _status(end: SystemExit) -> int:
    if end.code is None:
        return 0
    return end.code if isinstance(end.code, int) else 1


@contextlib.contextmanager
def _told_of_serving(note: Callable[[Server], None], listen: str | None, options: ServeOptions) -> Generator[None]:
    """Have every server that starts to serve inside the block announced before it does.

    Args:
        note: Told of it; not of one that serves a message stream, which is the file's own affair.
        listen: Where it serves what would have been stdio.
        options: What is said about that, beside what the file says.
    """
    originals: dict[str, Any] = {name: getattr(Server, name) for name in ("run", "serve", "serving")}

    def announced(original: Any) -> Any:
        def serve(self: Server, endpoint: Any = None, **own: Any) -> Any:
            if isinstance(endpoint, str) and "workers" in options:
                raise ConfigError(
                    f"the file serves by itself, at {endpoint}, where --workers has no say: give it workers= there and "
                    "run it with python, or take that line out"
                )
            if endpoint is None or isinstance(endpoint, str):
                note(self)
            return original(self, listen, **own, **options) if endpoint is None else original(self, endpoint, **own)

        return serve

    for name, original in originals.items():
        setattr(Server, name, announced(original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(Server, name, original)


def _named(module: ModuleType, path: str, object_name: str) -> Server:
    found: Any = module
    for part in object_name.split("."):
        if not hasattr(found, part):
            raise _start_failed(f"{path} has no {object_name!r}. {_choices(module, path)}")
        found = getattr(found, part)
    if not isinstance(found, Server):
        raise _start_failed(f"{object_name!r} of {path} is {_described(found)}, no Server. {_choices(module, path)}")
    return found


def _only(module: ModuleType, path: str) -> Server:
    servers = _servers(module)
    if len({id(server) for server in servers.values()}) == 1:
        return next(iter(servers.values()))
    for name in PREFERRED_NAMES:
        if name in servers:
            return servers[name]
    raise _start_failed(f"which server of {path}? {_choices(module, path)}")


def _servers(module: ModuleType) -> dict[str, Server]:
    return {name: value for name, value in vars(module).items() if isinstance(value, Server)}


def _choices(module: ModuleType, path: str) -> str:
    servers = _servers(module)
    if servers:
        return "It has: " + ", ".join(f"{path}:{name}" for name in servers) + "."
    return (
        "It has no Server object at its top level. Make one there (server = Server(...)); a file that makes its server "
        f"inside a function is run as a program: python {path}"
    )


def _described(value: Any) -> str:
    return f"of type {type(value).__name__}"


def _start_failed(message: str) -> Failure:
    return Failure(USAGE, "start-failed", message)


def useful_traceback(error: BaseException, path: str) -> str:
    """Return a traceback from where the file itself begins, without the machinery that imported it.

    Args:
        error: What it raised.
        path: The file, as an absolute path.
    """
    shown = traceback.TracebackException.from_exception(error)
    frames = list(shown.stack)
    first = next((at for at, frame in enumerate(frames) if frame.filename == path), len(frames))
    shown.stack[:] = [frame for frame in frames[first:] if not frame.filename.startswith("<frozen importlib")]
    return "".join(shown.format()).rstrip()
