"""Whom a client trusts over TLS."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from modelwire import ConfigError
from modelwire.transports.tls import tls_context
from tests import certificates


def test_a_context_of_one_s_own_is_used_as_it_is() -> None:
    own = ssl.create_default_context()
    assert tls_context(own) is own


def test_by_default_names_and_certificates_are_checked_and_with_false_they_are_not() -> None:
    assert tls_context(True).verify_mode is ssl.CERT_REQUIRED
    assert tls_context(True).check_hostname
    assert tls_context(False).verify_mode is ssl.CERT_NONE


def test_a_file_or_a_folder_is_all_that_is_trusted(tmp_path: Path) -> None:
    made = certificates.make(tmp_path)
    context = tls_context(made.authority)
    assert [dict(item[0] for item in found["subject"]) for found in context.get_ca_certs()] == [  # type: ignore[misc]
        {"commonName": "a test's authority"}
    ]
    assert context.verify_mode is tls_context(tmp_path).verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


@pytest.mark.parametrize("wrong", [None, 1, b"x", "/no/such/file", __file__], ids=repr)
def test_what_cannot_be_used_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="verify="):
        tls_context(wrong)
