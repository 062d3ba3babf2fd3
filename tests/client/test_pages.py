"""The addresses of pages that servers want opened."""

from __future__ import annotations

import pytest

from modelwire.client.pages import is_protected, warnings_of, web_page


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "file:///etc/passwd", "https://", "https://a b", "https://[", "x", "", "https://a\x00b",
     "https://a:b/", "https://good.example\\@evil.example", "data:text/html,x", "//a.example", "https://a\u202eb"],
)  # fmt: skip
def test_what_is_no_web_page(url: str) -> None:
    assert web_page(url) is None


@pytest.mark.parametrize(
    ("url", "protected"),
    [
        ("https://example.org:8443/a?b#c", True),
        ("HTTPS://EXAMPLE.ORG", True),
        ("http://localhost:8000", True),
        ("http://127.0.0.1", True),
        ("http://[::1]/x", True),
        ("http://example.org", False),
        ("http://localhost.evil.example", False),
    ],
)
def test_what_is_safe_from_others_on_the_way(url: str, protected: bool) -> None:
    address = web_page(url)
    assert address is not None
    assert is_protected(address) is protected


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://xn--80ak6aa92e.com", "Punycode"),
        ("https://\u0435xample.org", "Punycode"),
        ("https://bank.example@evil.example", "before the @"),
        ("https://203.0.113.7/x", "only a number"),
        ("http://example.org", "no https"),
    ],
)
def test_what_is_suspicious(url: str, words: str) -> None:
    address = web_page(url)
    assert address is not None
    [warning] = warnings_of(address)
    assert words in warning
