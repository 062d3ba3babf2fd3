"""A server's stdout with everything that real servers put on it, as a client meets it."""

from __future__ import annotations

import asyncio
import os
import select
import signal
from pathlib import Path

import pytest

from modelwire import Client, FrameTooLarge, ProtocolViolation
from modelwire.transports import process
from tests.fake_server import child

HELLO = r"""
opened()
def reply(request, raw):
    write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % request["id"] + raw + b'"}]}}\n')
"""


async def test_a_line_that_is_no_utf8_costs_only_itself() -> None:
    script = HELLO + r"write(b'\xff\xfe bad\n'); reply(read(), b'fine'); read()"
    async with Client(child(script)) as client:
        assert await client.call("x") == "fine"


async def test_a_byte_that_is_no_utf8_inside_an_answer_fails_that_call_at_once() -> None:
    script = HELLO + r"reply(read(), b'caf\xe9'); reply(read(), b'fine'); read()"
    async with Client(child(script), timeout=None) as client:
        with pytest.raises(ProtocolViolation, match="not UTF-8: byte 0xe9"):
            await client.call("x")
        assert await client.call("x") == "fine"


async def test_a_character_split_over_many_writes_arrives_whole() -> None:
    script = r"""
opened()
request = read()
words = request["params"]["arguments"]["words"]
frame = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"content": [{"type": "text", "text": words}]}},
                   ensure_ascii=False).encode() + b"\n"
for byte in frame:
    write(bytes([byte]))
read()
"""
    words = "日本😀 Ünïcode"
    async with Client(child(script)) as client:
        assert await client.call("x", {"words": words}) == words


@pytest.mark.parametrize("mark", [r"\xef\xbb\xbf", r"\xef\xbb\xbf "], ids=["a mark", "a mark and a blank"])
async def test_a_byte_order_mark_before_a_message_is_ignored(mark: str) -> None:
    script = rf"""
say_plainly = write
def write(data):
    say_plainly(b"{mark}" + data)
opened()
request = read()
text(request, "one\ufefftwo")
read()
"""
    async with Client(child(script)) as client:
        assert await client.call("x") == "one\ufefftwo"


async def test_carriage_returns_and_blank_lines_are_ignored() -> None:
    script = (
        HELLO
        + r"""
write(b"\r\n\n \t\n")
request = read()
write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"content": []}}).encode() + b"\r\n\r\n")
reply(read(), b"next")
read()
"""
    )
    async with Client(child(script)) as client:
        assert await client.call("x") is None
        assert await client.call("x") == "next"


async def test_a_line_of_five_mebibytes_is_delivered_and_the_next_one_too() -> None:
    script = HELLO + "reply(read(), b'x' * (5 << 20)); reply(read(), b'fine'); read()"
    async with Client(child(script)) as client:
        assert await client.call("x") == "x" * (5 << 20)
        assert await client.call("x") == "fine"


async def test_a_request_of_many_pages_is_delivered() -> None:
    script = "opened(); request = read(); text(request, str(len(request['params']['arguments']['t']))); read()"
    async with Client(child(script)) as client:
        assert await client.call("x", {"t": "y" * 3_000_000}) == "3000000"


async def test_an_answer_above_max_message_fails_its_call_at_once_and_costs_only_itself() -> None:
    script = (
        HELLO
        + r"""
first, second = read(), read()
reply(second, b"x" * 200_000)
reply(first, b"first")
reply(read(), b"y" * 60_000)
read()
"""
    )
    async with Client(child(script), timeout=None, max_message=100_000) as client:
        small, large = asyncio.create_task(client.call("small")), asyncio.create_task(client.call("large"))
        with pytest.raises(FrameTooLarge, match="max_message=100000 bytes; raise max_message"):
            await large
        assert await small == "first"
        assert await client.call("x") == "y" * 60_000


async def test_noise_above_max_message_costs_nothing_else() -> None:
    script = HELLO + r"write(b'#' * 300_000 + b'\n'); reply(read(), b'fine'); read()"
    async with Client(child(script), max_message=100_000) as client:
        assert await client.call("x") == "fine"


async def test_banners_logs_and_pretty_printed_json_do_no_harm() -> None:
    script = (
        HELLO
        + r"""
write(b"[INFO] tools loaded\n{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1\n}\n\x1b[32mready\x1b[0m\n")
reply(read(), b"fine")
read()
"""
    )
    async with Client(child(script)) as client:
        assert await client.call("x") == "fine"


async def test_a_chatty_stderr_never_blocks_the_server() -> None:
    script = (
        HELLO
        + r"""
for number in range(3000):
    sys.stderr.write("x" * 500 + "\n")
complain("the end")
reply(read(), b"fine")
read()
"""
    )
    async with Client(child(script)) as client:
        assert await client.call("x") == "fine"
    assert client.stderr.endswith("the end\n")
    assert len(client.stderr) <= 64 * 1024


async def test_answers_that_were_written_before_the_server_left_are_delivered() -> None:
    script = HELLO + "requests = [read() for _ in range(3)]\nfor request in requests: reply(request, b'x' * 20_000)"
    async with Client(child(script), reconnect=False) as client:
        calls = [asyncio.create_task(client.call("x")) for _ in range(3)]
        assert await asyncio.gather(*calls) == ["x" * 20_000] * 3
    assert client.exit_code == 0


# --------------------------------------------------------------------------------------------------- shutdown

STUBBORN = r"""
import subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
grandchild = subprocess.Popen(["sleep", "1000"])
opened()
text(read(), f"{os.getpid()} {grandchild.pid}")
wait()
"""


async def test_a_stubborn_server_and_what_it_started_are_both_gone_after_close(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("DRAIN_SECONDS", "EOF_SECONDS", "TERM_SECONDS"):
        monkeypatch.setattr(process, name, 0.05)
    async with Client(child(STUBBORN)) as client:
        watched = [os.pidfd_open(int(pid)) for pid in (await client.call("pids")).split()]
    try:
        for pidfd in watched:
            assert select.select([pidfd], [], [], 5)[0], "the process still runs"
    finally:
        for pidfd in watched:
            os.close(pidfd)
    assert client.exit_code == -signal.SIGKILL


async def test_a_server_that_ends_when_its_input_ends_is_not_signalled() -> None:
    script = "opened(); sys.stdin.read(); complain('goodbye'); sys.exit(5)"
    async with Client(child(script)) as client:
        pass
    assert client.exit_code == 5
    assert client.stderr == "goodbye\n"


async def test_a_server_that_ends_on_sigterm_may_clean_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(process, "EOF_SECONDS", 0.05)
    cleaned = tmp_path / "cleaned"
    script = f"""
def clean(*_):
    open({str(cleaned)!r}, "w").close()
    os._exit(0)
signal.signal(signal.SIGTERM, clean)
opened()
wait()
"""
    async with Client(child(script)):
        pass
    assert cleaned.exists()
