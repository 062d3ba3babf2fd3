"""Secrets are not shown; everything else is shown as it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwire.cli.masking import is_secret_name, masked


@pytest.mark.parametrize(
    "name",
    ["password", "userPassword", "token", "access_token", "X-Auth-Token", "client_secret", "Authorization", "api_key",
     "apiKey", "API-KEY", "passphrase", "credentials", "private_key"],
)  # fmt: skip
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret_name(name)
    assert masked(json.dumps({"a": {name: "s3cr3t"}}).encode()) == b'{"a":{"%b":"***"}}' % name.encode()


@pytest.mark.parametrize("name", ["progressToken", "key", "name", "tool", "author", "passage", "uri"])
def test_other_names_are_not(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0", "id":1.50, "x":1E5, "y":[ 1 ]}',
        b'{"_meta":{"progressToken":"abc"}}',
        b'{"maxTokens":100,"token":null,"usage":{"inputTokens":5}}',
        b'{"text":"the token is in the text"}',
        b"not json at all",
    ],
)
def test_a_frame_without_secrets_stays_byte_for_byte(frame: bytes) -> None:
    assert masked(frame).replace(b" ", b"") == frame.replace(b" ", b"")


def test_numbers_beside_a_secret_are_not_rewritten() -> None:
    assert masked(b'{"n":1.50,"big":1E400,"token":"x"}') == b'{"n":1.50,"big":1E400,"token":"***"}'


@pytest.mark.parametrize(
    ("frame", "shown"),
    [
        (b'{"token":{"value":"x"},"secrets":["x"]}', b'{"token":"***","secrets":"***"}'),
        (b'{"password":1234}', b'{"password":"***"}'),
        (rb'{"text":"{\"token\": \"x\"}"}', rb'{"text":"{\"token\":\"***\"}"}'),
        (rb'{"to\u006ben":"x"}', b'{"token":"***"}'),
        (b'{"header":"Bearer abc.def"}', b'{"header":"Bearer ***"}'),
        (b'[{"name":"Authorization","value":"x"}]', b'[{"name":"Authorization","value":"***"}]'),
        (b'{"password":"x', b'{"password":"***"'),
        (b'{"token": "x", broken', b'{"token":"***", broken'),
    ],
)
def test_secrets_are_masked_wherever_they_stand(frame: bytes, shown: bytes) -> None:
    assert masked(frame) == shown


def test_the_schema_of_a_secret_is_shown_but_not_its_values() -> None:
    schema = {
        "properties": {"token": {"type": "string", "description": "a key", "default": "x"}, "n": {"type": "null"}}
    }
    shown = json.loads(masked(json.dumps(schema).encode()))
    assert shown["properties"]["token"] == {"type": "string", "description": "a key", "default": "***"}
    assert shown["properties"]["n"] == {"type": "null"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "token", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON)
def test_whatever_the_shape_no_text_under_a_secret_name_is_left(value: object) -> None:
    def texts(value: object, under: bool) -> None:
        if isinstance(value, dict):
            for name, item in value.items():
                texts(item, under or name == "token")
        elif isinstance(value, list):
            for item in value:
                texts(item, under)
        else:
            assert not under or value in ("***", None, True, False)

    texts(json.loads(masked(json.dumps(value).encode())), under=False)


@given(st.binary(max_size=60))
def test_no_bytes_make_it_fail(frame: bytes) -> None:
    masked(b'{"token":' + frame)
