"""``mw run``: which object is served, over which streams, and what happens when the file is no good."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cli.programs import CTRL_C, INITIALIZE, PATIENCE, PROGRAM, WORKSHOP, Ran, Terminal, mw

pytestmark = pytest.mark.slow  # programs are started, or thousands of frames sent; `make test` does it

SERVER = 'from modelwire import Server\nserver = Server("it", version="1")\n'


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(source: str, name: str = "it.py") -> str:
        path = tmp_path / name
        path.write_text(source, encoding="utf-8")
        return str(path)

    return write


def serve(*words: str, given: bytes = INITIALIZE, **options: Any) -> Ran:
    return mw("run", *words, given=given, **options)


def name_of(ran: Ran) -> str:
    """The name of the server that answered, and nothing else on stdout."""
    assert ran.code == 0, ran.err
    assert ran.out.count("\n") == 1
    return ran.value["result"]["serverInfo"]["name"]


# ------------------------------------------------------------------ streams


def test_a_frame_from_a_pipe_is_answered_and_the_end_of_input_ends_it() -> None:
    assert name_of(serve(WORKSHOP)) == "workshop"


def test_a_frame_from_a_file_is_answered(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(INITIALIZE)
    with (tmp_path / "in").open("rb") as frames:
        ran = subprocess.run([*PROGRAM, "run", WORKSHOP], stdin=frames, capture_output=True, timeout=PATIENCE)
    assert json.loads(ran.stdout)["result"]["serverInfo"]["name"] == "workshop"


def test_frames_from_a_fifo_that_tail_feeds_are_answered_while_it_stays_open(tmp_path: Path, stack: ExitStack) -> None:
    log, fifo = tmp_path / "frames", tmp_path / "fifo"
    log.write_bytes(INITIALIZE)
    os.mkfifo(fifo)
    keep_open = os.open(fifo, os.O_RDWR)
    stack.callback(os.close, keep_open)
    tail = stack.enter_context(subprocess.Popen(["tail", "-n", "+1", "-f", log], stdout=keep_open))
    stack.callback(tail.kill)
    reading = os.open(fifo, os.O_RDONLY)
    with subprocess.Popen([*PROGRAM, "run", WORKSHOP], stdin=reading, stdout=subprocess.PIPE) as child:
        os.close(reading)
        stack.callback(child.kill)
        assert child.stdout is not None
        assert json.loads(child.stdout.readline())["id"] == 1
        with log.open("ab") as more:
            more.write(b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
        assert json.loads(child.stdout.readline()) == {"jsonrpc": "2.0", "id": 2, "result": {}}
        child.terminate()


def test_stdout_and_stderr_may_be_the_same_file(tmp_path: Path) -> None:
    with (tmp_path / "out.log").open("wb") as log:
        subprocess.run(
            [*PROGRAM, "run", "--wire", WORKSHOP],
            input=INITIALIZE,
            stdout=log,
            stderr=log,
            timeout=PATIENCE,
            check=True,
        )
    lines = (tmp_path / "out.log").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines if line.startswith("{")] == [1]
    assert len(lines) == 3


def test_on_a_terminal_it_says_what_is_awaited_and_ctrl_c_ends_it_with_130() -> None:
    with Terminal("run", WORKSHOP) as terminal:
        terminal.read_until("Ctrl-C the server")
        terminal.press(CTRL_C)
        assert terminal.finish() == 130
    assert "Traceback" not in terminal.shown


def test_the_wire_is_shown_on_stderr_from_the_servers_side() -> None:
    ran = serve("--wire", WORKSHOP)
    received, sent = ran.err.splitlines()
    assert 'in  → {"jsonrpc":"2.0","id":1,"method":"initialize"' in received
    assert f"out ← {ran.out.strip()}" in sent


# ------------------------------------------------------------------ which object


def test_the_only_server_of_a_file_is_served_whatever_its_name(file: Any) -> None:
    assert name_of(serve(file('from modelwire import Server\nthing = Server("thing")\n'))) == "thing"


def test_one_server_under_two_names_is_one_server(file: Any) -> None:
    assert name_of(serve(file(f"{SERVER}other = server\n"))) == "it"


@pytest.mark.parametrize("preferred", ["server", "mcp", "app"])
def test_of_several_the_one_with_a_usual_name_is_served(preferred: str, file: Any) -> None:
    source = f'from modelwire import Server\nzoo = Server("zoo")\n{preferred} = Server("usual")\n'
    assert name_of(serve(file(source))) == "usual"


def test_the_object_after_the_colon_is_served(file: Any) -> None:
    source = f'{SERVER}class Box:\n    inner = Server("inner")\n'
    assert name_of(serve(file(source) + ":Box.inner")) == "inner"


def test_a_file_without_a_server_says_what_to_do(file: Any) -> None:
    ran = serve(file("x = 1\n"))
    assert (ran.code, ran.out) == (1, "")
    assert "no Server object at its top level" in ran.err


def test_several_servers_without_a_usual_name_are_listed(file: Any) -> None:
    ran = serve(file('from modelwire import Server\na = Server("a")\nb = Server("b")\n'))
    assert (ran.code, ran.out) == (1, "")
    assert "it.py:a, " in ran.err
    assert "it.py:b." in ran.err


@pytest.mark.parametrize(("name", "message"), [("nope", "has no 'nope'"), ("Server", "is of type type, no Server")])
def test_a_wrong_object_is_named(name: str, message: str, file: Any) -> None:
    ran = serve(f"{file(SERVER)}:{name}")
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err
    assert "It has: " in ran.err


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    ran = serve("nowhere.py", cwd=tmp_path)
    assert (ran.code, ran.out) == (1, "")
    assert f"there is no file 'nowhere.py' in {str(tmp_path)!r}" in ran.err


# ------------------------------------------------------------------ importing


def test_the_main_part_does_not_run(file: Any) -> None:
    assert name_of(serve(file(f'{SERVER}if __name__ == "__main__":\n    raise SystemExit("main ran")\n'))) == "it"


@pytest.mark.parametrize("call", ["server.run()", "import asyncio\nasyncio.run(server.serve())"])
def test_a_file_that_serves_while_it_is_imported_is_served_once_and_watched(call: str, file: Any) -> None:
    ran = serve("--wire", file(f'{SERVER}print("before")\n{call}\nprint("behind")\n'))
    assert ran.out.partition("\n")[0] == ran.out.partition("\n")[0].strip()
    assert json.loads(ran.out.splitlines()[0])["result"]["serverInfo"]["name"] == "it"
    assert "in  → " in ran.err
    assert "out ← " in ran.err
    assert ran.code == 0


def test_what_is_printed_while_importing_never_reaches_stdout(file: Any) -> None:
    noise = 'import os, subprocess\nprint("a")\nos.write(1, b"b\\n")\nsubprocess.run(["echo", "c"])\n'
    ran = serve(file(noise + SERVER))
    assert name_of(ran) == "it"
    assert set(ran.err.split()) == {"a", "b", "c"}


def test_input_that_is_read_while_importing_is_empty_and_the_frames_stay(file: Any) -> None:
    assert name_of(serve(file(f"import sys\nassert sys.stdin.read() == ''\n{SERVER}"))) == "it"


def test_modules_beside_the_file_can_be_imported(file: Any) -> None:
    file('NAME = "beside"\n', "neighbour.py")
    source = "from modelwire import Server\nfrom neighbour import NAME\nserver = Server(NAME)\n"
    assert name_of(serve(file(source))) == "beside"


@pytest.mark.parametrize("name", ["json.py", "asyncio.py", "my-server.py", "modelwire.py", "server"])
def test_a_file_may_have_any_name(name: str, file: Any) -> None:
    if name in ("json.py", "asyncio.py", "modelwire.py"):
        # Only its own import must not disturb; what imports a module of that name later is the file's business.
        source = "import sys\nsys.path.pop(0)\n" + SERVER
    else:
        source = SERVER
    assert name_of(serve(file(source, name))) == "it"


def test_annotations_as_strings_are_understood(file: Any) -> None:
    source = (
        f"from __future__ import annotations\nfrom dataclasses import dataclass\n{SERVER}"
        "@dataclass\nclass Point:\n    x: int\n"
        "@server.tool\ndef of(point: Point) -> int:\n    return point.x\n"
    )
    assert name_of(serve(file(source))) == "it"


def test_words_after_the_dashes_are_the_files_argv(file: Any) -> None:
    source = "import sys\nfrom modelwire import Server\nserver = Server(repr(sys.argv[1:]))\n"
    assert name_of(serve(file(source), "--", "--port", "", "a b", "--", "ü")) == repr(["--port", "", "a b", "--", "ü"])


def test_a_file_that_fails_ends_with_1_and_the_part_of_the_traceback_that_is_its_own(file: Any) -> None:
    ran = serve(file("def connect():\n    return 1 / 0\nconnect()\n"))
    assert (ran.code, ran.out) == (1, "")
    assert "ZeroDivisionError: division by zero" in ran.err
    assert ran.err.count('File "') == 2
    assert "importlib" not in ran.err


def test_a_failing_import_of_a_neighbour_shows_both_files(file: Any) -> None:
    file("raise RuntimeError('bad neighbour')\n", "neighbour.py")
    ran = serve(file("import neighbour\n"))
    assert (ran.code, ran.out) == (1, "")
    assert 'neighbour.py", line 1' in ran.err
    assert "bad neighbour" in ran.err
    assert "frozen importlib" not in ran.err


def test_a_syntax_error_shows_its_line(file: Any) -> None:
    ran = serve(file("server = = 1\n"))
    assert (ran.code, ran.out) == (1, "")
    assert 'it.py", line 1' in ran.err
    assert "SyntaxError" in ran.err
    assert "loading.py" not in ran.err


@pytest.mark.parametrize(("end", "said"), [("'no key set'", "no key set"), ("0", "status 0"), ("3", "status 3")])
def test_a_file_that_exits_while_it_is_imported_ends_with_1(end: str, said: str, file: Any) -> None:
    ran = serve(file(f"import sys\nsys.exit({end})\n"))
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err
    assert "Traceback" not in ran.err
