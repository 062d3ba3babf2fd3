"""Debian's nginx as a reverse proxy before servers: with the buffering that it has where nobody has told it otherwise.

Its files are in a folder of the test, its ports are taken before it starts, and it ends with the block that needs it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.wire import PATIENCE

_MAIN = """
{user}daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
  access_log off;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  {servers}
}}
"""
_SERVER = """
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://{target}; {more} }}
  }}
"""
WEBSOCKET = 'proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade";'
"""What nginx's documents say that a WebSocket needs."""
DEAF = "proxy_ignore_headers X-Accel-Buffering;"
"""Makes every server one that does not ask nginx to hand on at once what it streams."""


class Nginx:
    """A running one.

    Attributes:
        urls: The servers behind it as they are reached through it, in their order.
        errors: Its log of errors.
    """

    def __init__(self, urls: list[str], errors: Path) -> None:
        self.urls = urls
        self.errors = errors


@contextlib.asynccontextmanager
async def nginx(folder: Path, servers: Iterable[tuple[str, str]]) -> AsyncIterator[Nginx]:
    """Run it; where there is none, the tests are skipped.

    Args:
        folder: Where its files are.
        servers: The URL of each server, and what else is to be said about it to nginx.
    """
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("there is no nginx here; on Debian: sudo apt-get install nginx-light")
    given = list(servers)
    with contextlib.ExitStack() as stack:
        ports = [stack.enter_context(_port()) for _ in given]
        numbers = [port.getsockname()[1] for port in ports]
        said = [
            _SERVER.format(port=number, target=urlsplit(url).netloc, more=more)
            for number, (url, more) in zip(numbers, given, strict=True)
        ]
        user = "user root; " if os.geteuid() == 0 else ""  # its own could not write into the folder of a test
        (folder / "nginx.conf").write_text(_MAIN.format(folder=folder, user=user, servers="".join(said)))
        # It takes over open ports by this variable, as it does from the one that it replaces.
        env = {**os.environ, "NGINX": "".join(f"{port.fileno()};" for port in ports)}
        process = await asyncio.create_subprocess_exec(
            *(program, "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "error.log"),
            env=env,
            pass_fds=[port.fileno() for port in ports],
            stderr=sys.stderr,
        )
    urls = [
        urlunsplit(urlsplit(url)._replace(netloc=f"127.0.0.1:{number}"))
        for number, (url, _) in zip(numbers, given, strict=True)
    ]
    try:
        yield Nginx(urls, folder / "error.log")
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        async with asyncio.timeout(PATIENCE):
            await process.wait()


def _port() -> socket.socket:
    found = socket.socket()
    found.bind(("127.0.0.1", 0))
    found.listen(128)
    return found
