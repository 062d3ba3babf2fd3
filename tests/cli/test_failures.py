"""What a failure shows of the server's stderr, and what it advises."""

from __future__ import annotations

import ssl

import pytest

from modelwire.cli.failures import FAILED, STDERR_LINES, TRACEBACK, Failure, failure_of, stderr_end
from modelwire.errors import ConnectionFailed
from modelwire.transports import websocket_connect
from modelwire.transports.http.endpoint import HttpOptions, endpoint
from modelwire.transports.http.trouble import broken_by, failed, refused


def lines(count: int, word: str = "line") -> list[str]:
    return [f"{word} {number}" for number in range(count)]


def test_a_short_stderr_is_shown_whole() -> None:
    assert stderr_end("\n".join(lines(STDERR_LINES)) + "\n\n") == lines(STDERR_LINES)
    assert stderr_end("") == []


def test_of_a_long_one_the_last_lines_are_shown_and_the_others_counted() -> None:
    assert stderr_end("\n".join(lines(STDERR_LINES + 1))) == ["… (1 line above)", *lines(STDERR_LINES + 1)[1:]]
    assert stderr_end("\n".join(lines(STDERR_LINES + 7)))[0] == "… (7 lines above)"


def test_of_a_long_traceback_the_line_that_says_what_failed_stays() -> None:
    deep = lines(100, "  frame")
    shown = stderr_end("\n".join([*lines(3), "tool 'crash' failed", TRACEBACK, *deep, "KeyError: 'boom'"]))
    assert shown[:4] == ["… (3 lines above)", "tool 'crash' failed", TRACEBACK, "… (83 lines left out)"]
    assert shown[4:] == [*deep[83:], "KeyError: 'boom'"]


def test_an_error_that_followed_from_another_begins_with_the_other() -> None:
    said = ["tool 'crash' failed", TRACEBACK, *lines(30), "KeyError: 1", "", "During handling", "", TRACEBACK, "end"]
    assert stderr_end("\n".join(said))[:2] == ["tool 'crash' failed", TRACEBACK]


def test_a_traceback_that_fits_is_shown_with_what_came_before_it() -> None:
    said = [*lines(STDERR_LINES), "tool 'crash' failed", TRACEBACK, "KeyError: 1"]
    assert stderr_end("\n".join(said)) == ["… (3 lines above)", *said[3:]]


def test_both_forms_of_a_failure_show_the_same_of_it() -> None:
    failure = Failure(FAILED, "tool-error", "no", stderr="\n".join(lines(30)))
    assert "\n  … (10 lines above)\n  line 10\n" in failure.as_text()
    assert "line 10\\nline 11" in failure.as_json()
    assert "line 9" not in failure.as_json()


_SITE = endpoint("https://example.com/mcp", HttpOptions())
_UNTRUSTED = ssl.SSLCertVerificationError(1, "self-signed certificate")
_UNTRUSTED.verify_message = "self-signed certificate"


@pytest.mark.parametrize(
    ("why", "advised"),
    [
        (refused(_SITE, "x", 401, None, b""), 'put "headers" with it beside the "url" in FILE.json'),
        (failed(_SITE, "x", broken_by(_UNTRUSTED, connecting=True)), "set SSL_CERT_FILE=ca.pem"),
        (websocket_connect.HINTS[401], 'put "headers" with it beside the "url" in FILE.json'),
        (websocket_connect.no_tls(_UNTRUSTED), "Set SSL_CERT_FILE to a file"),
    ],
)
def test_what_is_advised_can_be_done_on_a_command_line(why: object, advised: str) -> None:
    told = failure_of(ConnectionFailed(str(why))).message
    assert advised in told
    assert "headers=" not in told
    assert "verify=" not in told
