"""One line per frame, with time and direction."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from modelwire import Client, Server
from modelwire.cli.wire_view import WireView, shortened


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def ticking(*times: float) -> Iterator[float]:
    yield from times


def view(stream: io.StringIO, *times: float, **options: object) -> WireView:
    clock = ticking(0.0, *times)
    return WireView(stream, clock=lambda: next(clock), **options)  # pyright: ignore[reportArgumentType]


def test_a_line_has_time_direction_and_the_frame() -> None:
    stream = io.StringIO()
    watcher = view(stream, 0.0124, 61.5)
    watcher.frame("out", b'{"id":1}')
    watcher.frame("in", b'{"id":1,"result":{}}')
    assert stream.getvalue() == '   0.012 out → {"id":1}\n  61.500 in  ← {"id":1,"result":{}}\n'


def test_on_a_server_the_arrows_still_point_to_the_server_and_to_the_client() -> None:
    stream = io.StringIO()
    watcher = view(stream, 0, 0, side="server")
    watcher.frame("in", b"{}")
    watcher.frame("out", b"{}")
    assert [line.split()[1:3] for line in stream.getvalue().splitlines()] == [["in", "→"], ["out", "←"]]


def test_a_frame_is_one_line_whatever_is_in_it() -> None:
    stream = io.StringIO()
    view(stream, 0).frame("in", b'{\r\n  "a": 1\n}\xff')
    assert stream.getvalue().count("\n") == 1
    assert "\\xff" in stream.getvalue()


def test_long_frames_are_whole_elsewhere_and_shortened_on_a_terminal() -> None:
    frame = b'{"a":"' + "ü".encode() * 500 + b'"}'
    plain, terminal = io.StringIO(), FakeTerminal()
    view(plain, 0).frame("in", frame)
    view(terminal, 0, colour=False).frame("in", frame)
    assert frame.decode() in plain.getvalue()
    assert terminal.getvalue().endswith(f"ü… (+{2 * (500 - 234) + 2} bytes)\n")


def test_the_count_of_what_is_left_out_is_in_bytes() -> None:
    assert shortened("abü", 2) == "ab… (+2 bytes)"
    assert shortened("abü", 3) == "abü"
    assert shortened("abü", None) == "abü"


@pytest.mark.parametrize(
    ("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)]
)
def test_colours_are_for_terminals_that_want_them(
    environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = FakeTerminal()
    view(stream, 0).frame("in", b"{}")
    assert ("\x1b[" in stream.getvalue()) is coloured


def test_a_terminal_gets_no_control_characters_of_a_frame() -> None:
    stream = FakeTerminal()
    view(stream, 0, colour=False).frame("in", "noise \x1b[2J \x9b".encode())
    assert "\x1b" not in stream.getvalue()
    assert "\x9b" not in stream.getvalue()


async def test_a_client_shows_its_frames_and_sends_secrets_unmasked() -> None:
    server, stream = Server("s"), io.StringIO()
    server.add_tool(lambda token: f"got {token}", name="login")
    async with Client(server, observers=[WireView(stream)]) as client:
        assert await client.call("login", {"token": "hunter2"}) == "got hunter2"
    assert '"token":"***"' in stream.getvalue()
