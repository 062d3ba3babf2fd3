"""A process that serves over its own stdin and stdout, one behaviour per name, for the tests of stdio.

Run as ``python stdio_child.py BEHAVIOUR``; what it has to tell, it tells on stderr.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys

from modelwire.errors import ConfigError, ConnectionLost, FrameTooLarge
from modelwire.transports import stdio
from modelwire.transports.stdio import StdioStream, open_stdio

MAX_MESSAGE = 8 * 1024 * 1024


def tell(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


async def send_back(stream: StdioStream) -> None:
    while True:
        try:
            frame = await stream.receive()
        except FrameTooLarge as error:
            frame = b'{"limit":%d}' % error.limit
        if frame is None:
            return
        await stream.send(frame)


async def echo() -> None:
    stream = await open_stdio(max_message=MAX_MESSAGE)
    await send_back(stream)
    await stream.aclose()


async def terminal() -> None:
    stream = await open_stdio()
    tell(f"terminal {stream.is_terminal}")
    await stream.aclose()


async def small() -> None:
    stream = await open_stdio(max_message=100)
    await send_back(stream)
    await stream.aclose()


async def wait() -> None:
    stream = await open_stdio()
    try:
        receiving = asyncio.create_task(stream.receive())
        await asyncio.sleep(0)
        tell("ready")
        await receiving
    finally:
        await stream.aclose()


async def after_end() -> None:
    stream = await open_stdio()
    while await stream.receive() is not None:
        pass
    await asyncio.sleep(0)
    await stream.send(b'{"after":"the end"}')
    await stream.aclose()


def work(number: int) -> int:
    print("from a worker", number)
    return number


async def stray() -> None:
    print("before")
    stream = await open_stdio()
    print("printed")
    os.write(1, b"raw\n")
    subprocess.run(["echo", "from a child"], check=True)
    reading = subprocess.run([sys.executable, "-c", "import sys; print('read', repr(sys.stdin.read()))"], check=True)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.map(work, [1])
    tell(f"stdin {sys.stdin.read()!r} {reading.returncode}")
    await send_back(stream)
    print("last")
    await stream.aclose()
    print("after")


async def restore() -> None:
    before = [(os.fstat(fd).st_dev, os.fstat(fd).st_ino) for fd in (0, 1)]
    open_before = len(os.listdir("/proc/self/fd"))
    first = sys.stdin.readline()
    for _ in range(3):
        stream = await open_stdio()
        assert [(os.fstat(fd).st_dev, os.fstat(fd).st_ino) for fd in (0, 1)] != before
        try:
            await open_stdio()
        except ConfigError:
            tell("refused")
        if first:
            await stream.send(first.encode().rstrip() + b" " + (await stream.receive() or b"nothing"))
            first = ""
        await stream.aclose()
        await stream.aclose()
        assert [(os.fstat(fd).st_dev, os.fstat(fd).st_ino) for fd in (0, 1)] == before
    assert len(os.listdir("/proc/self/fd")) == open_before
    assert not sys.stdout.line_buffering
    print("printed at the end")


async def flood() -> None:
    if sys.argv[2:] == ["cautious"]:
        stdio._open_again = lambda fd: None
    stream = await open_stdio()
    frames = 40
    sending = asyncio.gather(*(stream.send(b'"%d' % number + b"x" * 100_000 + b'"') for number in range(frames)))
    for _ in range(100):
        await asyncio.sleep(0)
    tell(f"loop runs {not sending.done()}")
    await sending
    await stream.receive()
    await stream.aclose()


async def shared() -> None:
    stream = await open_stdio()
    sending = [asyncio.create_task(stream.send(b'"%d' % number + b"x" * 50_000 + b'"')) for number in range(20)]
    await asyncio.sleep(0)
    for number in range(2000):
        assert os.get_blocking(2)
        os.write(2, b"<<%d>>" % number)
        if number % 100 == 0:
            await asyncio.sleep(0)
    await asyncio.gather(*sending)
    while await stream.receive() is not None:
        pass
    await stream.aclose()


async def fork() -> None:
    stream = await open_stdio()
    pid = os.fork()
    if pid == 0:
        os.closerange(0, 3)
        signal.pause()
    tell(str(pid))
    await send_back(stream)
    os._exit(0)


async def unheard() -> None:
    stream = await open_stdio()
    frame = await stream.receive()
    tell("told")
    await stream.receive()  # the test has closed its end of stdout by now
    receiving = asyncio.create_task(stream.receive())
    try:
        while True:
            await stream.send(frame or b"nothing")
            await asyncio.sleep(0)
    except ConnectionLost as error:
        tell(f"send: {error}")
    try:
        tell(f"received {await receiving!r}")
    except ConnectionLost as error:
        tell(f"receive: {error}")
    await stream.aclose()


BEHAVIOURS = {
    f.__name__: f for f in (echo, terminal, small, wait, after_end, stray, restore, flood, shared, unheard, fork)
}

if __name__ == "__main__":
    try:
        asyncio.run(BEHAVIOURS[sys.argv[1]]())
    except KeyboardInterrupt:
        sys.exit(130)
