"""How the addresses of sockets are written, and what is said of those that are not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwire.errors import ConfigError
from modelwire.transports.socket_address import MAX_PATH, TcpAddress, UnixAddress, is_socket_url, parse_address

TCP_FORM = "write tcp://HOST:PORT, such as tcp://127.0.0.1:9000, or tcp://[::1]:9000 with an IPv6 address"
UNIX_FORM = "write unix:// and a path from the root, with three slashes in all"


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("tcp://127.0.0.1:9000", TcpAddress("127.0.0.1", 9000)),
        ("tcp://localhost:1", TcpAddress("localhost", 1)),
        ("tcp://my-host.example.org:65535", TcpAddress("my-host.example.org", 65535)),
        ("tcp://0.0.0.0:0", TcpAddress("0.0.0.0", 0)),
        ("tcp://[::1]:9000", TcpAddress("::1", 9000)),
        ("tcp://[::]:80", TcpAddress("::", 80)),
        ("tcp://[fe80::1%eth0]:80", TcpAddress("fe80::1%eth0", 80)),
        ("tcp://münchen.example:80", TcpAddress("münchen.example", 80)),
        ("tcp://127.0.0.1:9000/", TcpAddress("127.0.0.1", 9000)),
        ("unix:///run/mcp.sock", UnixAddress("/run/mcp.sock")),
        ("unix:///a b/100%/c?d#e@f:1", UnixAddress("/a b/100%/c?d#e@f:1")),
        ("unix:///tmp/%41", UnixAddress("/tmp/%41")),
        ("unix:////x", UnixAddress("//x")),
        ("unix:///" + "x" * (MAX_PATH - 1), UnixAddress("/" + "x" * (MAX_PATH - 1))),
    ],
)
def test_an_address_is_read_and_written_back(url: str, address: TcpAddress | UnixAddress) -> None:
    assert is_socket_url(url)
    assert parse_address(url) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("tcp://127.0.0.1", f"the port is missing; {TCP_FORM}"),
        ("tcp://127.0.0.1:", "the port is missing"),
        ("tcp://[::1]", "the port is missing"),
        ("tcp://:9000", "the host is missing"),
        ("tcp://", "the host is missing"),
        ("tcp://h:65536", "ports are numbers up to 65535"),
        ("tcp://h:" + "9" * 5000, "ports are numbers up to 65535"),
        ("tcp://[x]:1", "'x' is no IPv6 address"),
        ("tcp://[127.0.0.1]:1", "'127.0.0.1' is no IPv6 address"),
        ("tcp://[]:1", "'' is no IPv6 address"),
        ("tcp://::1:9000", TCP_FORM),
        ("tcp://h:-1", TCP_FORM),
        ("tcp://h:1.0", TCP_FORM),
        ("tcp://h:٣", TCP_FORM),
        ("tcp://h:1/mcp", TCP_FORM),
        ("tcp://h:1?x=1", TCP_FORM),
        ("tcp://a b:1", TCP_FORM),
        ("tcp:127.0.0.1:9000", TCP_FORM),
        ("tcp:/127.0.0.1:9000", TCP_FORM),
        ("tcp:///h:1", TCP_FORM),
        ("unix://run/mcp.sock", UNIX_FORM),
        ("unix://localhost:1", UNIX_FORM),
        ("unix:/run/mcp.sock", "is unix:///run/mcp.sock meant?"),
        ("unix:mcp.sock", "/mcp.sock meant?"),
        ("unix:@abstract", UNIX_FORM),
        ("unix://", "is unix:///run/mcp.sock meant?"),
        ("unix://\0abstract", UNIX_FORM),
        ("unix:///a\0b", UNIX_FORM),
        ("unix:///", "can be no file"),
        ("unix:///run/", "can be no file"),
        ("unix:///a\ud800", "can be no file"),
        ("unix:///" + "x" * MAX_PATH, f"its path has {MAX_PATH + 1} bytes, and the system takes {MAX_PATH}"),
        ("unix:///" + "é" * (MAX_PATH // 2 + 1), f"the system takes {MAX_PATH}"),
        ("http://h:1", "write tcp://HOST:PORT or unix:///PATH"),
    ],
)
def test_what_is_no_address_is_told_with_the_right_form(url: str, why: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(why)):
        parse_address(url)


def test_a_relative_path_is_shown_as_it_may_be_meant(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.chdir(str(tmp_path))
    with pytest.raises(ConfigError, match=re.escape(f"is unix://{tmp_path}/run/x.sock meant?")):
        parse_address("unix://run/x.sock")


def test_a_password_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as refused:
        parse_address("tcp://user:s3cret@host:9000")
    assert "s3cret" not in str(refused.value)


@given(st.text(st.characters(codec=None)))
def test_whatever_follows_the_scheme_is_an_address_or_a_config_error(rest: str) -> None:
    for scheme in ("tcp:", "tcp://", "tcp://[", "unix:", "unix:///"):
        try:
            address = parse_address(scheme + rest)
        except ConfigError:
            continue
        assert parse_address(str(address)) == address


@pytest.mark.parametrize("text", ["server.py", "tcp", "unix", "./tcp:x", "http://h", "tcpx://h:1", "", ":tcp"])
def test_other_targets_are_not_taken_for_sockets(text: str) -> None:
    assert not is_socket_url(text)
