"""The client commands, driven as programs: results, failures and their exit codes, and how targets are started."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.programs import WORKSHOP, Ran, mw

pytestmark = pytest.mark.slow  # programs are started, or thousands of frames sent; `make test` does it


def error_of(ran: Ran) -> dict[str, object]:
    """The error under ``--json``: the last line of stderr, and the only one."""
    assert ran.err.count("\n") == 1
    return json.loads(ran.err)["error"]


# ------------------------------------------------------------------ results


def test_list_gives_everything_with_wire_names() -> None:
    ran = mw("list", WORKSHOP)
    assert (ran.code, ran.err) == (0, "")
    assert list(ran.value) == ["tools", "resources", "resourceTemplates", "prompts"]
    add = next(tool for tool in ran.value["tools"] if tool["name"] == "add")
    assert add["inputSchema"]["required"] == ["a"]
    assert [resource["uri"] for resource in ran.value["resources"]] == ["file:///notes.txt", "file:///blob"]


@pytest.mark.parametrize(
    ("kind", "keys"),
    [("tools", {"tools"}), ("resources", {"resources", "resourceTemplates"}), ("prompts", {"prompts"})],
)
def test_list_gives_one_kind(kind: str, keys: set[str]) -> None:
    assert set(mw("list", WORKSHOP, kind).value) == keys


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
def test_call_gives_the_result_on_every_revision(revision: str) -> None:
    ran = mw("call", WORKSHOP, "add", "a=40", "--revision", revision)
    assert (ran.code, ran.err) == (0, "")
    assert ran.value["content"] == [{"type": "text", "text": "42"}]


def test_arguments_are_read_by_the_schema() -> None:
    ran = mw("call", WORKSHOP, "show", "text=007", "number=007", "flag=true", "items=a", "items=1")
    assert ran.value["structuredContent"] == {"text": "007", "number": 7, "flag": True, "items": ["a", "1"]}


def test_arguments_may_be_json() -> None:
    ran = mw("call", WORKSHOP, "show", 'text:="ü = :="', "number:=1.5", 'items:=["x"]')
    assert ran.value["structuredContent"] == {"text": "ü = :=", "number": 1.5, "flag": False, "items": ["x"]}


def test_read_gives_the_contents() -> None:
    ran = mw("read", WORKSHOP, "file:///notes.txt")
    assert (ran.code, ran.value["contents"][0]["mimeType"]) == (0, "text/plain")


def test_prompt_gives_the_messages() -> None:
    ran = mw("prompt", WORKSHOP, "review", "pr=7", "focus=tests")
    assert ran.value["messages"][0]["content"]["text"] == "Review 7, mind tests."


# ------------------------------------------------------------------ failures


def test_an_unknown_tool_is_2_with_near_misses_and_a_word_of_wait() -> None:
    ran = mw("call", WORKSHOP, "ad", "--json")
    error = error_of(ran)
    assert (ran.code, ran.out) == (2, "")
    assert error["suggestions"] == ["add"]
    assert "--wait" in str(error["message"])


@pytest.mark.parametrize(
    ("words", "near"),
    [(("read", WORKSHOP, "file:///note.txt"), "file:///notes.txt"), (("prompt", WORKSHOP, "reviw"), "review")],
)
def test_an_unknown_resource_or_prompt_is_2_with_near_misses(words: tuple[str, ...], near: str) -> None:
    ran = mw(*words)
    assert (ran.code, ran.out) == (2, "")
    assert f"Did you mean '{near}'" in ran.err


def test_a_failed_tool_is_5_with_its_result_its_words_and_the_servers_stderr() -> None:
    ran = mw("call", WORKSHOP, "fail")
    assert (ran.code, ran.value["isError"]) == (5, True)
    assert ran.err.splitlines() == [
        "mw: the tool 'fail' failed: no luck today",
        "the server's stderr ended with:",
        "  the cause is on stderr",
    ]


def test_a_crash_is_told_once_with_the_line_of_the_servers_log_that_names_it() -> None:
    ran = mw("call", WORKSHOP, "crash")
    assert ran.code == 5
    told, heading, what, *_, last = ran.err.splitlines()
    assert told == "mw: the tool 'crash' failed unexpectedly; its log says more."
    assert (heading, what) == ("the server's stderr ended with:", "  tool 'crash' failed")
    assert last == "  KeyError: 'boom'"
    assert "lines left out)" in ran.err


@pytest.mark.slow
def test_a_call_without_answer_is_7_and_names_the_option() -> None:
    # Connecting has the same limit, so it must be one that starting Python never comes near.
    ran = mw("call", WORKSHOP, "hang", "--timeout", "5", "--json")
    error = error_of(ran)
    assert (ran.code, ran.out) == (7, "")
    assert "--timeout SECONDS" in str(error["message"])
    assert error["stderr"] == "hanging"


def test_a_server_that_ends_during_the_call_is_4() -> None:
    ran = mw("call", WORKSHOP, "leave")
    assert (ran.code, ran.out) == (4, "")
    assert "exited with code 3" in ran.err
    assert ran.err.count("leaving in a hurry") == 1


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["no-such-program"], "no such program on PATH"),
        ([sys.executable, "-c", "import sys; sys.exit('cannot start: no key')"], "cannot start: no key"),
        ([sys.executable, "-c", "pass"], "exited with code 0"),
    ],
)
def test_a_server_that_cannot_be_reached_is_4(command: list[str], said: str) -> None:
    ran = mw("list", "--", *command)
    assert (ran.code, ran.out) == (4, "")
    assert said in ran.err
    assert "mw: " in ran.err


def test_a_target_file_that_is_not_there_is_4() -> None:
    ran = mw("list", "nowhere.py")
    assert (ran.code, ran.out) == (4, "")
    assert "there is no file 'nowhere.py' in " in ran.err


def test_a_target_file_that_fails_to_import_shows_why(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module_anywhere\n")
    ran = mw("list", str(tmp_path / "broken.py"))
    assert (ran.code, ran.out) == (4, "")
    assert "No module named 'no_such_module_anywhere'" in ran.err


def test_arguments_that_the_schema_refuses_are_1_and_nothing_is_called() -> None:
    ran = mw("call", WORKSHOP, "add", "a=many")
    assert (ran.code, ran.out) == (1, "")
    assert "'a' to be an integer" in ran.err


@pytest.mark.parametrize("words", [("add",), ("add", "a=1", "c=3"), ("add", 'a:="x"')])
def test_arguments_that_the_server_refuses_and_its_schema_too_are_1(words: tuple[str, ...]) -> None:
    ran = mw("call", WORKSHOP, *words)
    assert (ran.code, ran.value["isError"]) == (1, True)
    assert ran.err.startswith("mw: the arguments of add are wrong:\n- ")
    assert mw("call", WORKSHOP, *words, "--json").err.count('"kind": "refused-arguments"') == 1


def test_prompt_arguments_that_the_server_refuses_are_1() -> None:
    ran = mw("prompt", WORKSHOP, "review", "--json")
    assert (ran.code, ran.out) == (1, "")
    assert error_of(ran)["code"] == -32602


# ------------------------------------------------------------------ waiting for a tool


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_wait_calls_a_tool_that_appears_later(revision: str, tmp_path: Path) -> None:
    source = Path(WORKSHOP).read_text(encoding="utf-8").partition("if __name__")[0] + (
        "import asyncio\n"
        "async def main():\n"
        "    async with server.serving() as serving:\n"
        "        await appear_later()\n"
        "        await serving.wait()\n"
        "if __name__ == '__main__':\n"
        "    asyncio.run(main())\n"
    )
    (tmp_path / "later.py").write_text(source, encoding="utf-8")
    ran = mw("call", str(tmp_path / "later.py"), "echo", "word=hi", "--wait", "30", "--revision", revision)
    assert ran.code == 0, ran.err
    assert ran.value["content"][0]["text"] == "hi"


def test_wait_ends_when_the_time_is_over() -> None:
    ran = mw("call", WORKSHOP, "echo", "--wait", "0.2")
    assert (ran.code, ran.out) == (2, "")
    assert "did not appear within 0.2 s" in ran.err


def test_wait_looks_again_where_the_server_does_not_tell(tmp_path: Path) -> None:
    silent = tmp_path / "silent.py"
    silent.write_text(
        "import json, sys\n"
        "lists = 0\n"
        "for line in sys.stdin:\n"
        "    frame = json.loads(line)\n"
        "    if frame.get('method') == 'initialize':\n"
        "        result = {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}},\n"
        "                  'serverInfo': {'name': 'silent', 'version': '1'}}\n"
        "    elif frame.get('method') == 'tools/list':\n"
        "        lists += 1\n"
        "        result = {'tools': [{'name': 'shy', 'inputSchema': {'type': 'object'}}] if lists > 2 else []}\n"
        "    elif frame.get('method') == 'tools/call':\n"
        "        result = {'content': [{'type': 'text', 'text': 'here'}]}\n"
        "    else:\n"
        "        continue\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': frame['id'], 'result': result}), flush=True)\n"
    )
    ran = mw("call", "shy", "--wait", "30", "--revision", "2025-06-18", "--", sys.executable, str(silent))
    assert ran.code == 0, ran.err
    assert ran.value["content"][0]["text"] == "here"


# ------------------------------------------------------------------ targets


def test_a_command_gets_its_arguments_exactly_as_given() -> None:
    words = ["--flag", "a b", '"q"', "", "-x", "--", "--wire", "日本", "it's", "$HOME", "*"]
    ran = mw("call", "arguments", "--", sys.executable, WORKSHOP, *words)
    assert ran.code == 0, ran.err
    assert json.loads(ran.value["content"][0]["text"]) == words


def test_a_file_without_main_part_is_served_too(tmp_path: Path) -> None:
    source = Path(WORKSHOP).read_text(encoding="utf-8").partition("if __name__")[0]
    (tmp_path / "bare.py").write_text(source, encoding="utf-8")
    assert mw("call", "bare.py", "add", "a=1", cwd=tmp_path).value["content"][0]["text"] == "3"


def test_an_object_of_a_file_is_served_although_there_is_a_main_part(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(
        "from modelwire import Server\none = Server('one')\ntwo = Server('two')\n"
        "two.add_tool(lambda: 'two', name='who')\n"
        "if __name__ == '__main__':\n    one.run()\n"
    )
    assert mw("call", "two.py:two", "who", cwd=tmp_path).value["content"][0]["text"] == "two"
    assert mw("call", "two.py", "who", cwd=tmp_path).code == 2


def test_a_file_that_makes_its_server_in_a_function_is_run_as_a_program(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "from modelwire import Server\n"
        "def main():\n    Server('made', declare=['tools']).run()\n"
        "if '__main__' == __name__:\n    main()\n"
    )
    assert mw("list", "program.py", "tools", cwd=tmp_path).value == {"tools": []}


def test_the_server_gets_a_minimal_environment_and_what_env_names() -> None:
    environment = {"SECRET_OF_OURS": "1", "PASSED": "passed"}

    def seen(name: str, *options: str) -> object:
        ran = mw("call", WORKSHOP, "variable", f"name={name}", *options, env=environment)
        return ran.value["structuredContent"]

    options = ("--env", "GIVEN=a=b", "--env", "PASSED")
    assert [seen(name, *options) for name in ("SECRET_OF_OURS", "PASSED", "GIVEN")] == [None, "passed", "a=b"]


# ------------------------------------------------------------------ stderr


def test_wire_shows_every_frame_on_stderr_and_leaves_stdout_alone() -> None:
    ran = mw("call", WORKSHOP, "add", "a=1", "--wire", "--revision", "2025-11-25")
    frames = [line.split(maxsplit=3) for line in ran.err.splitlines()]
    said = [json.loads(rest) for _, _, arrow, rest in frames if arrow == "→"]
    assert [frame["method"] for frame in said] == [
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
    ]
    assert ran.value["content"][0]["text"] == "3"
    assert "\x1b" not in ran.err


def test_verbose_shows_the_servers_stderr_and_its_log() -> None:
    ran = mw("call", WORKSHOP, "fail", "-v")
    assert ran.err.count("the cause is on stderr") == 1
    ran = mw("call", WORKSHOP, "steps", "count=1", "-v")
    assert "[info]" in ran.err
    assert "all steps are done" in ran.err


def test_progress_and_the_servers_stderr_are_silent_when_nothing_is_wrong() -> None:
    ran = mw("call", WORKSHOP, "steps", "count=3")
    assert (ran.code, ran.err) == (0, "")


def test_prints_of_a_server_are_warned_of_but_not_under_json(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(
        "print('hello', flush=True)\nfrom modelwire import Server\nserver = Server('noisy')\n"
        "if __name__ == '__main__':\n    server.run()\n"
    )
    ran = mw("list", "noisy.py", cwd=tmp_path)
    assert ran.code == 0
    assert "mw: warning: " in ran.err
    assert "hello" in ran.err
    assert mw("list", "noisy.py", "--json", cwd=tmp_path).err == ""
