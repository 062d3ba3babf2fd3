"""`modelwire.protocol.meta`."""

from __future__ import annotations

import pytest
from msgspec import UNSET, Raw

from modelwire.errors import RpcError
from modelwire.protocol.meta import NO_META, decode_request_meta, valid_meta_key

VERSION = b'"io.modelcontextprotocol/protocolVersion":"2026-07-28"'
CAPABILITIES = b'"io.modelcontextprotocol/clientCapabilities":{"sampling":{"tools":{}}}'


def test_all_reserved_keys_are_read_in_one_pass() -> None:
    meta = decode_request_meta(
        b"{" + VERSION + b"," + CAPABILITIES + b',"io.modelcontextprotocol/logLevel":"notice","progressToken":"t",'
        b'"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"com.example/other":[1]}'
    )
    assert meta.protocol_version == "2026-07-28"
    assert meta.client_capabilities is not None
    assert meta.client_capabilities.sampling is not None
    assert meta.client_capabilities.sampling.tools == {}
    assert meta.client_info is not None
    assert meta.client_info.name == "c"
    assert meta.log_level == "notice"


@pytest.mark.parametrize("raw", [UNSET, b"null", b"{}", Raw(b'{"com.example/x":1}')])
def test_a_request_that_says_nothing_has_no_meta(raw: bytes | Raw) -> None:
    assert decode_request_meta(raw) == NO_META


@pytest.mark.parametrize("token", [b'"a\\u0062"', b"1", b"-7", b"0", b"12345678901234567890123456789", b'""'])
def test_a_progress_token_keeps_its_bytes(token: bytes) -> None:
    meta = decode_request_meta(
        b'{"progressToken":' + token + b',"io.modelcontextprotocol/subscriptionId":' + token + b"}"
    )
    assert (meta.progress_token, meta.subscription_id) == (token, token)


@pytest.mark.parametrize("token", [b"1.0", b"1e3", b"true", b"{}", b"[1]", b"null"])
def test_a_progress_token_that_is_neither_string_nor_integer_is_refused(token: bytes) -> None:
    with pytest.raises(RpcError, match="progressToken must be a string or an integer") as caught:
        decode_request_meta(b'{"progressToken":' + token + b"}")
    assert caught.value.code == -32602


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"{" + VERSION + b"}", r'missing "io\.modelcontextprotocol/clientCapabilities" in params\._meta'),
        (b'{"io.modelcontextprotocol/protocolVersion":20260728}', "protocolVersion must be a string, not an integer"),
        (b'{"io.modelcontextprotocol/logLevel":"loud"}', 'logLevel must be "debug" or .* "emergency", not "loud"'),
        (b'{"io.modelcontextprotocol/clientCapabilities":[]}', "clientCapabilities must be an object, not a list"),
        (b'{"io.modelcontextprotocol/clientInfo":{"name":"x"}}', 'missing "version" in .*clientInfo'),
        (b"[]", r"params\._meta must be an object, not a list"),
    ],
)
def test_what_a_reserved_key_must_not_hold_is_refused_in_clear_words(raw: bytes, words: str) -> None:
    with pytest.raises(RpcError, match=words) as caught:
        decode_request_meta(raw)
    assert caught.value.code == -32602


@pytest.mark.parametrize(
    "key",
    ["a", "a-b_c.d", "com.example/x", "a/b", "x9.y-z/1", "com.example/", "", "io.modelcontextprotocol/related-task"],
)
def test_keys_that_the_specification_allows(key: str) -> None:
    assert valid_meta_key(key)


@pytest.mark.parametrize(
    "key", ["-a", "a-", "_x", "9com/x", "com./x", "/x", "a/b/c", "com.ex ample/x", "é", "a\n", "a-/x"]
)
def test_keys_that_the_specification_forbids(key: str) -> None:
    assert not valid_meta_key(key)
