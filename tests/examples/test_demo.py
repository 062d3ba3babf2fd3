"""`examples/demo.py`, that is `make demo`: it tells its story, is plain when piped, and fails when a step does."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Sequence

import pytest

from tests.examples.programs import EXAMPLES, ROOT, fresh_module

DEMO = [sys.executable, str(EXAMPLES / "demo.py")]
SHOWN = ["2024-11-05", "2025-11-25", "2026-07-28"]
HEADINGS = [
    "Opening", "Capabilities", "Listening", "Lists", "A call that succeeds", "A call that fails: isError",
    "An unknown tool", "A resource", "A prompt", "A subscription", "A tool that appears", "Progress", "Cancellation",
    "Log messages", "The end",
]  # fmt: skip
ESCAPE = "\x1b"


def run_on_a_terminal(command: Sequence[str], env: dict[str, str]) -> tuple[int, str]:
    """Run a command whose standard streams are a terminal; return its status and what the terminal showed."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        shown = bytearray()
        try:
            while chunk := os.read(ours, 65536):
                shown += chunk
        except OSError:
            pass  # a terminal's word for its end
        os.close(ours)
    return process.returncode, shown.decode()


FRAMES_OF_A_STEP = [
    ("2024-11-05", "Opening", ['"initialize"', '"2024-11-05"', "notifications/initialized"]),
    ("2024-11-05", "Lists", ['"method":"notifications/root"', "notifications/root are in no revision"]),
    ("2024-11-05", "A call that succeeds", ["The answer says: the current system time is 20"]),
    ("2024-11-05", "A prompt", ["prompts/get", "#42", "please review pull request #42"]),
    ("2024-11-05", "A tool that appears", ["notifications/tools/list_changed", '"method":"tools/list"', "echo"]),
    ("2024-11-05", "A tool that appears", ["only tutorials teach"]),
    ("2024-11-05", "A subscription", ["resources/subscribe", "notifications/resources/updated"]),
    ("2024-11-05", "The end", ['"shutdown"', '"exit"', "status 0", "MCP 时间服务器已启动，通过 STDIO 通信。"]),
    ("2024-11-05", "The end", ["shutdown and exit are in no revision"]),
    ("2025-11-25", "A subscription", ["whenever the server writes into its log"]),
    ("2026-07-28", "Opening", ["server/discover", "supportedVersions"]),
    ("2026-07-28", "A subscription", ["subscriptions/listen", "acknowledged", "notifications/resources/updated"]),
    ("2026-07-28", "A tool that appears", ["notifications/tools/list_changed", "subscriptionId", "echo"]),
    ("2026-07-28", "A call that fails", ['"isError":true']),
    ("2026-07-28", "An unknown tool", ["-32602"]),
    ("2026-07-28", "Progress", ["notifications/progress", '"progress":4']),
    ("2026-07-28", "Cancellation", ["notifications/cancelled"]),
    ("2026-07-28", "Log messages", ["logLevel", "notifications/message"]),
]


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_it_shows_every_step_under_three_revisions_with_its_frames_and_is_plain_when_piped() -> None:
    ran = subprocess.run(DEMO, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, timeout=100)
    said = ran.stdout.decode()
    assert ran.returncode == 0, said
    assert ran.stderr == b""
    assert ESCAPE not in said
    assert "bytes)" not in said
    standard = said.partition("\n2025-11-25:")[2]
    assert [word for word in ("no revision", "only tutorials", "只见于教程") if word in standard] == []
    for revision in SHOWN:
        headings = re.findall(rf"^{revision} · \d+\. (.*)$", said, re.MULTILINE)
        assert len(headings) == len(HEADINGS)
        assert [found for found, wanted in zip(headings, HEADINGS) if not found.startswith(wanted)] == []
    for revision, heading, wanted in FRAMES_OF_A_STEP:
        [step] = re.findall(rf"^{revision} · \d+\. {heading}.*\n((?:.+\n)+)", said, re.MULTILINE)
        assert [text for text in wanted if text not in step] == [], (revision, heading)


@pytest.mark.slow
def test_on_a_terminal_it_is_coloured_and_very_long_frames_are_shortened() -> None:
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "CI")}
    status, shown = run_on_a_terminal([*DEMO, "2025-11-25"], env | {"TERM": "xterm-256color"})
    assert (status, ESCAPE in shown) == (0, True)
    assert re.search(r"… \(\+\d+ bytes\)", shown)


async def test_a_step_that_does_not_show_what_it_should_fails_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    demo = fresh_module("demo")
    demo.THE_TIME = re.compile("half past nine")
    assert await demo.main(["2025-11-25"]) == 1
    assert "5. A call that succeeds" in capsys.readouterr().out


async def test_a_step_that_does_not_end_fails_the_demo() -> None:
    demo = fresh_module("demo")
    demo.SECONDS_PER_REVISION = 1
    demo.ECHO_AFTER = "600"
    assert await demo.main(["2025-11-25"]) == 1


def test_a_revision_that_it_does_not_show_is_refused_by_name() -> None:
    ran = subprocess.run([*DEMO, "2025-06-18"], capture_output=True, timeout=30)
    assert ran.returncode == 1
    assert b"2025-06-18" in ran.stderr


def test_make_demo_runs_it() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^demo:.*\n\t@?\$\(PY\) examples/demo\.py$", makefile, re.MULTILINE)
