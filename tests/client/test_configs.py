"""Configuration files of applications: what is read, what is filled in, and that no message shows a value."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from modelwire import Client, ConfigError, ConnectionFailed
from modelwire.client.configs import Entry, find, read
from tests.fake_server import child

SECRET = "tell-nobody"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UNSET", raising=False)
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.setenv("TOKEN", SECRET)


def write(section: str = "mcpServers", /, **servers: Any) -> None:
    Path("mcp.json").write_text(json.dumps({section: servers}), encoding="utf-8")


def opened(**entry: Any) -> Entry:
    write(weather=entry)
    found = find("mcp.json#weather")
    assert found is not None
    return found


def refusal(**entry: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        opened(**entry)
    assert SECRET not in str(raised.value)
    return str(raised.value)


# --------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("section", ["mcpServers", "servers"])
def test_servers_come_in_the_order_of_the_file(section: str) -> None:
    write(section, z={"command": "a"}, a={"command": "b"}, m={"url": "https://x"})
    assert list(read("mcp.json")) == ["z", "a", "m"]


def test_what_applications_keep_beside_the_servers_is_left_alone() -> None:
    text = '{"inputs": [{"id": "key"}], "theme": 1, "servers": {"w": {"command": "c", "autoApprove": ["x"]}}}'
    Path("mcp.json").write_text(text, encoding="utf-8")
    assert find("mcp.json#w") == Entry("mcp.json, server 'w'", ["c"])


def test_comments_trailing_commas_and_a_byte_order_mark_are_taken() -> None:
    text = """\ufeff{
        // the weather
        "servers": { /* two
        lines */ "w": {
            "command": "c", // not a comment: "//"
            "args": ["http://x/*y*/", "a,]", "\\"//",],
        }, },
    }"""
    Path("mcp.json").write_text(text, encoding="utf-8")
    assert find("mcp.json#w") == Entry("mcp.json, server 'w'", ["c", "http://x/*y*/", "a,]", '"//'])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"mcpServers": {\n  "w": {"command": tell-nobody}}}', "no JSON at line 2, column 20"),
        (b'{/* a\ncomment */ "mcpServers": tell-nobody', "no JSON at line 2, column 26"),
        (b"", "no JSON at line 1, column 1"),
        (b"[]", 'it must be an object with "mcpServers"'),
        (b'{"mcpServer": {}}', 'there is no "mcpServers" in it'),
        (b'{"mcpServers": []}', 'there is no "mcpServers" in it'),
        (b"\xff\xfe", "it is not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_file_that_is_none_says_where_and_shows_nothing(content: bytes, message: str) -> None:
    Path("mcp.json").write_bytes(content)
    with pytest.raises(ConfigError) as raised:
        read("mcp.json")
    assert message in str(raised.value)
    assert "mcp.json" in str(raised.value)
    assert SECRET not in str(raised.value)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"cannot read 'nowhere\.json': No such file"):
        find("nowhere.json#weather")


def test_a_server_that_the_file_lacks_is_told_with_the_nearest() -> None:
    write(weather={"command": "a"}, files={"command": "b"})
    with pytest.raises(ConfigError, match=r"no server 'wether'; did you mean 'mcp\.json#weather'\? .*weather, files"):
        find("mcp.json#wether")


def test_a_file_alone_is_no_target_of_one_client() -> None:
    write(weather={"command": "a"})
    with pytest.raises(ConfigError, match=r"say which of its servers; name one as in 'mcp\.json#weather'\..*Group"):
        Client("mcp.json")


@pytest.mark.parametrize("target", ["server.py", ["python", "a.json#b"], "http://x/mcp#fragment", 5, None, object()])
def test_other_targets_are_not_looked_up(target: Any) -> None:
    assert find(target) is None


@pytest.mark.parametrize("name", ["a#b", "a b", "日本", ""])
def test_a_server_may_have_any_name(name: str) -> None:
    write(**{name: {"command": "a"}, "other": {"command": "b"}})
    found = find(f"mcp.json#{name}")
    assert found is not None
    assert found.target == ["a"]


# --------------------------------------------------------------------------------------------------- entries


def test_a_command_has_arguments_environment_and_folder() -> None:
    entry = opened(type="stdio", command="node", args=["s.js", 8080], env={"A": "b", "PORT": 1, "N": None}, cwd="/x")
    assert entry == Entry("mcp.json, server 'weather'", ["node", "s.js", "8080"], env={"A": "b", "PORT": "1"}, cwd="/x")


def test_an_address_has_headers() -> None:
    entry = opened(type="http", url="https://x/mcp", headers={"Authorization": "Bearer ${TOKEN}"})
    assert entry.target == "https://x/mcp"
    assert entry.headers == {"Authorization": f"Bearer {SECRET}"}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, 'needs "command" (a program) or "url" (an address), and not both'),
        ({"command": "a", "url": "http://x"}, "and not both"),
        ({"command": ["node"]}, '"command" must be a string, not list'),
        ({"command": None}, '"command" must be a string, not NoneType'),
        ({"command": "a", "args": SECRET}, '"args" must be a list of strings, not str'),
        ({"command": "a", "args": ["b", [SECRET]]}, '"args[1]" must be a string, not list'),
        ({"command": "a", "args": [True]}, '"args[0]" must be a string, not bool'),
        ({"command": "a", "env": [SECRET]}, '"env" must be an object of strings, not list'),
        ({"command": "a", "env": {"K": {"x": SECRET}}}, '"env.K" must be a string, not dict'),
        ({"command": "a", "cwd": []}, '"cwd" must be a string, not list'),
        ({"url": 5}, '"url" is no address'),
        ({"url": "server.py"}, '"url" is no address such as http://HOST/PATH; a program goes into "command"'),
        ({"url": "http://x", "headers": SECRET}, '"headers" must be an object of strings, not str'),
    ],
)
def test_an_entry_that_makes_no_sense_names_file_server_and_member(entry: dict[str, Any], message: str) -> None:
    said = refusal(**entry)
    assert message in said
    assert said.startswith("mcp.json, server 'weather': ")


def test_an_entry_must_be_an_object() -> None:
    write(weather="node server.js")
    with pytest.raises(ConfigError, match='server \'weather\': it must be an object with "command" or "url"'):
        find("mcp.json#weather")


def test_a_file_of_variables_is_not_read_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    opened(command="a", envFile=".env")
    assert '"envFile" is not read' in caplog.text


# --------------------------------------------------------------------------------------------------- variables


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${TOKEN}", SECRET),
        ("${env:TOKEN}", SECRET),
        ("a${TOKEN}b${TOKEN}", f"a{SECRET}b{SECRET}"),
        ("${EMPTY}", ""),
        ("${EMPTY:-x}", "x"),
        ("${UNSET:-x}", "x"),
        ("${UNSET:-}", ""),
        ("${UNSET:-a:-b}", "a:-b"),
        ("${env:UNSET:-http://x}", "http://x"),
        ("${TOKEN:-x}", SECRET),
        ("$TOKEN", "$TOKEN"),
        ("$", "$"),
        ("${TOKEN", "${TOKEN"),
    ],
)
def test_variables_are_filled_in_everywhere(text: str, filled: str) -> None:
    entry = opened(command=f"c{text}", args=[text], env={"K": text}, cwd=text)
    assert entry == Entry("mcp.json, server 'weather'", [f"c{filled}", filled], env={"K": filled}, cwd=filled)
    address = opened(url=f"http://x/{text}", headers={"K": text})
    assert (address.target, address.headers) == (f"http://x/{filled}", {"K": filled})


def test_what_is_filled_in_is_not_filled_in_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWICE", "${TOKEN}")
    assert opened(command="${TWICE}").target == ["${TOKEN}"]


@pytest.mark.parametrize(
    ("entry", "member"),
    [
        ({"command": "${UNSET}"}, "command"),
        ({"command": "a", "args": ["x", f"--key={SECRET}${{UNSET}}"]}, "args[1]"),
        ({"command": "a", "env": {"KEY": "${env:UNSET}"}}, "env.KEY"),
        ({"command": "a", "cwd": "${UNSET}"}, "cwd"),
        ({"url": f"https://{SECRET}/${{UNSET}}"}, "url"),
        ({"url": "https://x", "headers": {"Authorization": "Bearer ${UNSET}"}}, "headers.Authorization"),
    ],
)
def test_an_unset_variable_names_file_server_member_and_variable(entry: dict[str, Any], member: str) -> None:
    assert refusal(**entry) == (
        f"mcp.json, server 'weather': \"{member}\" needs the environment variable UNSET, which is not set; "
        "set it, or write a default: ${UNSET:-...}"
    )


@pytest.mark.parametrize("spelt", ["input:key", "a b", "", "1A", "env:", "config:x:-tell-nobody"])
def test_what_is_no_environment_variable_is_refused(spelt: str) -> None:
    assert "is no environment variable; write ${NAME}" in refusal(command="a", env={"K": f"${{{spelt}}}"})


def test_only_files_have_variables_not_entries_of_a_program() -> None:
    found = find({"command": "a", "args": ["${TOKEN}"]})
    assert found is not None
    assert found.target == ["a", "${TOKEN}"]


# --------------------------------------------------------------------------------------------------- with a client


SAYING = """
opened(); request = read()
found = {"argv": sys.argv[1:], "cwd": os.getcwd()} | {name.lower(): os.environ.get(name) for name in ("KEY", "MORE")}
text(request, json.dumps(found))
serve()
"""


async def test_a_client_opens_a_server_of_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    command, *args = child(SAYING, "${TOKEN}")
    write(weather={"command": command, "args": args, "env": {"KEY": "${TOKEN}", "MORE": "a"}, "cwd": "folder"})
    async with Client("mcp.json#weather", env={"MORE": "b"}) as client:
        found = await client.call("x", returns=dict[str, Any])
    assert found == {"argv": [SECRET], "cwd": str(folder), "key": SECRET, "more": "b"}


async def test_a_client_opens_an_entry() -> None:
    command, *args = child(SAYING)
    async with Client({"command": command, "args": args, "env": {"KEY": "k"}}) as client:
        assert (await client.call("x", returns=dict[str, Any]))["key"] == "k"


async def test_secrets_that_were_filled_in_are_in_no_message(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    write(
        weather={"url": "http://127.0.0.1:1/${TOKEN}/mcp"},
        asked={"url": "http://127.0.0.1:1/mcp?key=${TOKEN}"},
        headed={"url": "https://x", "headers": {"K": "\n${TOKEN}"}},
        strange={"url": "https://${TOKEN}:port/mcp"},
        wired={"url": "gopher://${TOKEN}"},
    )
    for name in ("weather", "asked", "headed", "strange", "wired"):
        with pytest.raises((ConfigError, ConnectionFailed)) as raised:
            await Client(f"mcp.json#{name}").connect()
        assert SECRET not in str(raised.value)
        assert name == "headed" or f"server {name!r}" in str(raised.value)
    assert SECRET not in caplog.text


async def test_a_program_that_cannot_be_started_does_not_show_its_arguments() -> None:
    write(weather={"command": "no-such-program", "args": ["${TOKEN}"]})
    client = Client("mcp.json#weather")
    with pytest.raises(Exception, match="no-such-program") as raised:
        await client.connect()
    assert SECRET not in str(raised.value)
