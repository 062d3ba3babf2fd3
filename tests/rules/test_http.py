"""What HTTP says and what it means: headers against the body, who may ask, what is accepted, which status answers."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwire.errors import ConfigError
from modelwire.rules.http import (
    EVENTS,
    JSON,
    LOOPBACK,
    Allowed,
    Headers,
    Refusal,
    accepts,
    is_json,
    is_loopback,
    mirrored,
    mismatch,
    named_hosts,
    named_origins,
    revision_named,
    status_of,
)

VERSION = "2026-07-28"
PLAIN = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E))


def headers(*pairs: tuple[str, str]) -> Headers:
    return Headers((name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs)


def encoded(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def as_a_client_writes(value: str) -> str:
    """The specification's rules for clients: plain where that is safe, else base64."""
    plain = all(0x20 <= ord(char) <= 0x7E for char in value) and value == value.strip()
    return encoded(value) if not plain or (value.startswith("=?base64?") and value.endswith("?=")) else value


def tool_call(*pairs: tuple[str, str], name: str = "add", **params: Any) -> str | None:
    """The contradiction in a call of a tool whose headers are right but for those that are given."""
    given_names = {key.lower() for key, _ in pairs}
    right = [("MCP-Protocol-Version", VERSION), ("Mcp-Method", "tools/call"), ("Mcp-Name", name)]
    found = headers(*(pair for pair in right if pair[0].lower() not in given_names), *pairs)
    return mismatch(found, VERSION, "tools/call", name, params)


# ------------------------------------------------------------------ headers and body


def test_headers_that_agree_are_no_mismatch() -> None:
    assert tool_call() is None


@pytest.mark.parametrize("header", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
def test_a_routing_header_that_is_missing_wrong_or_there_twice_is_named(header: str) -> None:
    right = {"MCP-Protocol-Version": VERSION, "Mcp-Method": "tools/call", "Mcp-Name": "add"}
    missing = mismatch(headers(*((k, v) for k, v in right.items() if k != header)), VERSION, "tools/call", "add", {})
    wrong = tool_call((header, "x"))
    doubled = tool_call((header, right[header]), (header, right[header]))
    for found in (missing, wrong, doubled):
        assert found is not None
        assert header in found


def test_names_of_headers_have_no_case_and_values_do() -> None:
    assert tool_call(("mCP-mETHOD", "tools/call"), ("MCP-NAME", "add")) is None
    assert tool_call(("Mcp-Method", "Tools/Call")) is not None
    assert tool_call(("Mcp-Name", "Add")) is not None


def test_white_space_around_a_value_is_not_part_of_it() -> None:
    assert tool_call(("Mcp-Name", " \tadd\t ")) is None


@pytest.mark.parametrize(
    ("original", "header"),
    [
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("ascii", "=?base64?YXNjaWk=?="),
        ("", ""),
        ("", "=?base64??="),
    ],
)
def test_values_are_decoded_before_they_are_compared(original: str, header: str) -> None:
    assert tool_call(("Mcp-Param-Value", header), Value=original) is None
    assert tool_call(("Mcp-Name", header), name=original) is None


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_whatever_a_client_encodes_by_the_rules_agrees(value: str) -> None:
    assert tool_call(("Mcp-Param-Value", as_a_client_writes(value)), Value=value) is None


@given(PLAIN, PLAIN)
def test_two_different_values_never_agree(said: str, meant: str) -> None:
    if said.strip(" ") != meant and not said.strip().startswith("=?base64?"):
        assert tool_call(("Mcp-Param-Value", said), Value=meant) is not None


@pytest.mark.parametrize(
    "header",
    [
        "=?base64?YWRk",  # no end: taken as it stands
        "=?BASE64?YWRk?=",
        "=?base64?YWR?=",  # no padding
        "=?base64?YW Rk?=",
        "=?base64?Y*Rk?=",
        "=?base64?YWRk?=?=",
        "=?base64?/w==?=",  # no UTF-8
        " =?base64?YWRk?= x",
        "=?base64?=",
    ],
)
def test_what_is_no_well_formed_base64_is_a_mismatch(header: str) -> None:
    assert tool_call(("Mcp-Name", header)) is not None


@pytest.mark.parametrize("header", ["MCP-Protocol-Version", "Mcp-Method"])
def test_only_names_and_parameters_may_be_base64(header: str) -> None:
    right = {"MCP-Protocol-Version": VERSION, "Mcp-Method": "tools/call"}
    assert tool_call((header, encoded(right[header]))) is not None


@pytest.mark.parametrize("value", ["ad\x00d", "ad\x7fd", "ad\x1bd", "add\x0b", "ädd", "add\xff"])
def test_a_character_that_no_header_may_have_is_refused_even_where_it_agrees(value: str) -> None:
    assert tool_call(("Mcp-Name", value), name=value) is not None
    assert tool_call(("Mcp-Param-Value", value), Value=value) is not None


def test_bytes_of_utf8_in_a_header_are_no_agreement_with_the_text() -> None:
    assert tool_call(("Mcp-Name", "wörk".encode().decode("latin-1")), name="wörk") is not None


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("42", 42),
        ("42.0", 42),
        ("4.2e1", 42),
        ("-7", -7),
        ("0", 0),
        ("-0", 0),
        ("42", 42.0),
        ("42.0", 42.0),
        (str(2**53 - 1), 2**53 - 1),
        (encoded("42"), 42),
    ],
)
def test_integers_are_compared_as_numbers(header: str, value: float) -> None:
    assert tool_call(("Mcp-Param-Value", header), Value=value) is None


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("43", 42),
        ("42.5", 42),
        ("", 42),
        ("x", 42),
        ("4_2", 42),
        ("0x2a", 42),
        ("inf", 42),
        ("nan", 42),
        ("1e999", 42),
        (encoded("٤٢"), 42),
        (encoded(" 42 "), 42),
        ("9" * 5000, 42),
        ("9007199254740993.0", 2**53),
        ("1", True),
        ("0", False),
        ("1.0", True),
        ("true", 1),
        ("42.0", "42"),
    ],
)
def test_what_is_another_number_or_none_is_a_mismatch(header: str, value: Any) -> None:
    assert tool_call(("Mcp-Param-Value", header), Value=value) is not None


def test_booleans_are_words_in_lower_case() -> None:
    assert tool_call(("Mcp-Param-Value", "true"), Value=True) is None
    assert tool_call(("Mcp-Param-Value", "false"), Value=False) is None
    for wrong in ("True", "false", "TRUE", ""):
        assert tool_call(("Mcp-Param-Value", wrong), Value=True) is not None


def test_null_and_what_is_not_given_have_no_header() -> None:
    assert tool_call(Value=None) is None
    for there in ("", "null", "x"):
        assert tool_call(("Mcp-Param-Value", there), Value=None) is not None


def test_a_parameter_without_its_header_or_with_two_is_a_mismatch() -> None:
    assert tool_call(Value="x") is not None
    assert tool_call(("Mcp-Param-Value", "x"), ("mcp-param-value", "x"), Value="x") is not None


def test_a_header_that_nothing_recognises_is_ignored() -> None:
    other = headers(
        ("MCP-Protocol-Version", VERSION), ("Mcp-Method", "tasks/get"), ("Mcp-Name", "x"), ("Mcp-Name", "y")
    )
    assert mismatch(other, VERSION, "tasks/get", None, {}) is None
    assert tool_call(("Mcp-Param-Other", "x\xff")) is None


def test_arguments_are_read_at_their_path() -> None:
    paths = {"Zone": ("place", "zone"), "Region": ("region",)}
    assert mirrored(paths, {"place": {"zone": 5}, "region": None}) == {"Zone": 5, "Region": None}
    for arguments in (None, {}, {"place": 5}, [], "x"):
        assert mirrored(paths, arguments) == {"Zone": None, "Region": None}


def test_a_mismatch_shows_no_more_than_a_piece_of_what_it_compares() -> None:
    found = tool_call(("Mcp-Name", "x" * 5000), name="y" * 5000)
    assert found is not None
    assert len(found) < 500


def test_the_version_that_is_named() -> None:
    assert revision_named(headers()) is None
    assert revision_named(headers(("MCP-Protocol-Version", "1999-01-01"))) == "1999-01-01"
    known = revision_named(headers(("mcp-protocol-version", VERSION)))
    assert known is not None
    assert not isinstance(known, str)
    assert known.name == VERSION
    assert isinstance(revision_named(headers(("mcp-protocol-version", VERSION), ("mcp-protocol-version", "x"))), str)


# ------------------------------------------------------------------ Accept and Content-Type


@pytest.mark.parametrize(
    "accept",
    [
        "application/json, text/event-stream",
        "APPLICATION/JSON,Text/Event-Stream",
        "*/*",
        "application/*, text/*;q=0.1",
        "application/json;charset=utf-8, text/event-stream; q=0.001",
        "text/html, application/json ;q=1.000 , text/event-stream",
        "*/*;q=0, application/json, text/event-stream",  # the most specific range decides
        "application/*;q=0, application/json, text/event-stream",
        ", application/json,, text/event-stream,",
        'text/plain;a="x, y", application/json, text/event-stream',
    ],
)
def test_an_accept_that_takes_both(accept: str) -> None:
    assert accepts(headers(("Accept", accept)), JSON)
    assert accepts(headers(("Accept", accept)), EVENTS)


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "text/html",
        "application/json",
        "text/event-stream;q=0, application/json",
        "text/event-stream; Q=0.000, */*",
        "text/*;q=0, */*",
        "text/event-streams",
        "text/event",
        "event-stream",
        "text/event-stream;q=x",
        "text/event-stream;q=nan",
        'application/json;a=", text/event-stream, "',
    ],
)
def test_an_accept_that_takes_no_stream(accept: str) -> None:
    assert not accepts(headers(("Accept", accept)), EVENTS)


def test_no_accept_takes_anything_and_several_are_one_list() -> None:
    assert accepts(headers(), EVENTS)
    several = headers(("Accept", "application/json"), ("accept", "text/event-stream"))
    assert accepts(several, JSON)
    assert accepts(several, EVENTS)


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("application/json", True),
        ("Application/JSON", True),
        ("application/json;", True),
        ("application/json ; charset=utf-8", True),
        ("text/plain", False),
        ("text/plain; a=application/json", False),
        ("application/json-patch+json", False),
        ("application/jsonx", False),
        ("", False),
        ("application/json, text/plain", False),
    ],
)
def test_the_type_of_the_body(given: str, right: bool) -> None:
    assert is_json(headers(("Content-Type", given))) is right


def test_a_body_without_a_type_is_not_json() -> None:
    assert not is_json(headers())


# ------------------------------------------------------------------ Host and Origin

LOCAL = Allowed(LOOPBACK)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:8000",
        "LOCALHOST:80",
        "LocalHost.",
        "localhost.:8000",
        "127.0.0.1",
        "127.0.0.1:65535",
        "[::1]",
        "[::1]:8000",
        "[0:0:0:0:0:0:0:1]:8000",
    ],
)
def test_a_name_of_this_machine_is_served_on_loopback(host: str) -> None:
    assert LOCAL.refusal(headers(("Host", host))) is None
    assert LOCAL.refusal(headers(("Host", host), ("Origin", f"http://{host}"))) is None


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "localhost@evil.example",
        "localhost:80:80",
        "evil.example#localhost",
        "localhost/",
        "localhost:x",
        "localhost:",
        "::1",
        "[::1",
        "[::1].evil.example",
        "[]",
        "127.0.0.1.evil.example",
        "localhost, evil.example",
        "localhost evil.example",
        "..",
        "localhost:123456",
        "127.0.0.1.nip.io",
        "localhost%00",
        "localhost\x00",
        "localhost\xad",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0.0.0.0",
        "[::1%25lo]",
        "[fe80::1%lo]",
        "[::ffff:127.0.0.1]",
        "[::]",
        "user@localhost",
        "user:pass@localhost:80",
        "localhost?",
        "localhost\\.evil.example",
        "\tlocalhost x",
    ],
)
def test_any_other_host_is_refused_and_the_setting_is_named(host: str) -> None:
    found = LOCAL.refusal(headers(("Host", host)))
    assert found is not None
    assert found.status == 403
    assert "allowed_hosts" in found.reason


def test_no_host_and_several_hosts_are_refused() -> None:
    assert LOCAL.refusal(headers()) is not None
    assert LOCAL.refusal(headers(("Host", "localhost"), ("host", "localhost"))) is not None
    assert LOCAL.refusal(headers(("Host", "localhost"), ("host", "evil.example"))) is not None


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://evil.example",
        "https://localhost.evil.example",
        "http://localhost@evil.example",
        "localhost",
        "http://user@localhost",
        "http://localhost/path",
        "file://",
        "file://localhost",
        "http:localhost",
        "ftp://localhost",
        "http://localhost, http://evil.example",
        "http://[::1]evil",
        "*",
        "http://",
        "chrome-extension://localhost",
    ],
)
def test_any_other_origin_is_refused_and_the_setting_is_named(origin: str) -> None:
    found = LOCAL.refusal(headers(("Host", "localhost"), ("Origin", origin)))
    assert found is not None
    assert found.status == 403
    assert "allowed_origins" in found.reason


def test_each_of_several_origins_must_be_allowed() -> None:
    one, two = ("Origin", "http://localhost"), ("Origin", "http://evil.example")
    assert LOCAL.refusal(headers(("Host", "localhost"), one, one)) is None
    for pair in ((one, two), (two, one)):
        assert LOCAL.refusal(headers(("Host", "localhost"), *pair)) is not None


@pytest.mark.parametrize(
    ("allowed", "origin", "right"),
    [
        ("https://app.example", "https://app.example", True),
        ("https://app.example", "HTTPS://App.Example", True),
        ("https://App.example/", "https://app.example", True),
        ("https://app.example:443", "https://app.example", True),
        ("http://app.example", "http://app.example:80", True),
        ("http://[::1]:5173", "http://[::1]:5173", True),
        ("https://app.example", "http://app.example", False),
        ("https://app.example", "https://app.example:8443", False),
        ("https://app.example", "https://app.example.evil", False),
        ("https://app.example", "https://sub.app.example", False),
        ("null", "null", True),
        ("vscode-webview://abc", "vscode-webview://abc", True),
        ("*", "https://evil.example", True),
        ("*", "null", True),
        ("*", "", False),
        ("*", "https://evil.example\x1f", False),
        ("*", "https://evil.example x", False),
        ("*", "https://\xe9vil.example", False),
    ],
)
def test_an_origin_that_was_allowed(allowed: str, origin: str, right: bool) -> None:
    found = Allowed({"api.example"}, [allowed]).refusal(headers(("Host", "api.example"), ("Origin", origin)))
    assert (found is None) is right


def test_an_allowed_host_with_a_port_is_that_port_only() -> None:
    named = Allowed({"API.example:8000", "::1", "[fe80::1]:80"})
    for host in ("api.example:8000", "[::1]", "[::1]:9", "[FE80::1]:80"):
        assert named.refusal(headers(("Host", host))) is None
    for host in ("api.example", "api.example:80", "[fe80::1]:81"):
        assert named.refusal(headers(("Host", host))) is not None


@pytest.mark.parametrize("allowed", ["api.example", ["https://api.example"], ["a b"], [5], [""], 5, ["api.example/x"]])
def test_hosts_that_are_no_list_of_names_are_refused_when_they_are_given(allowed: Any) -> None:
    with pytest.raises(ConfigError, match="allowed_hosts="):
        named_hosts(allowed)


@pytest.mark.parametrize(
    "allowed", ["https://a.example", ["a.example"], ["https://*.a.example"], ["https://a.example/x"], [""], [5], 5]
)
def test_origins_that_are_none_are_refused_when_they_are_given(allowed: Any) -> None:
    with pytest.raises(ConfigError, match="allowed_origins="):
        named_origins(allowed)


def test_origins_as_browsers_name_them_may_be_given() -> None:
    given = ["*", "null", "https://A.example/", "http://[::1]:5173", "vscode-webview://abc", "chrome-extension://x"]
    assert list(named_origins(given)) == given


def test_hosts_in_every_spelling() -> None:
    names = named_hosts(["API.example.", "::1", "[fe80::1]:80", "localhost:8000", "*"])
    assert len(names) == 5
    assert Allowed(["API.example."]).refusal(headers(("Host", "api.EXAMPLE"))) is None
    assert Allowed(["*"]).refusal(headers(("Host", "whatever"))) is None
    assert Allowed(["*"]).refusal(headers()) is not None


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("127.0.0.1", True),
        ("127.255.0.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost", True),
        ("10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("::", False),
        ("localhost.evil.example", False),
        ("", False),
    ],
)
def test_what_only_this_machine_reaches(address: str, local: bool) -> None:
    assert is_loopback(address) is local


def test_where_any_host_is_served_a_page_of_loopback_is_a_stranger() -> None:
    for anywhere in (Allowed(None), Allowed(["*"])):
        assert anywhere.refusal(headers(("Host", "whatever"))) is None
        assert anywhere.refusal(headers(("Host", "localhost"), ("Origin", "http://localhost"))) is not None


# ------------------------------------------------------------------ statuses


def test_the_status_of_every_error() -> None:
    def failed(code: int) -> int:
        return status_of(b'{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":"no"}}' % code, b"1")

    for code in (-32700, -32600, -32602, -32020, -32021, -32022):
        assert failed(code) == 400
    assert failed(-32601) == 404
    for code in (-32603, -32002, -32000, 1, 0):
        assert failed(code) == 200


def test_a_result_is_a_success_whatever_it_says() -> None:
    assert status_of(b'{"jsonrpc":"2.0","id":1,"result":{}}', b"1") == 200
    assert status_of(b'{"jsonrpc":"2.0","id":1,"result":{"error":{"code":-32700}}}', b"1") == 200
    text = b'{"jsonrpc":"2.0","id":"error","result":{"content":[{"type":"text","text":"error"}]}}'
    assert status_of(text, b'"error"') == 200


def test_a_refusal_is_a_json_rpc_error_that_has_no_id() -> None:
    body = json.loads(Refusal(403, "no").body())
    assert body["error"]["message"] == "no"
    assert body.get("id") is None
    assert json.loads(Refusal(400, "no", -32020).body(b"5"))["id"] == 5
