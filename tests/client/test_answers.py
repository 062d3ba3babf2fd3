"""What is said of a result that asks for input."""

from __future__ import annotations

import pytest

from modelwire import ConfigError, ProtocolViolation, types
from modelwire.client.answers import unanswered

FORM = types.ElicitRequest(params=types.ElicitRequestFormParams("Who?", types.RequestedSchema({})))
ROOTS = types.ListRootsRequest()


def test_each_question_is_named_with_its_key() -> None:
    result = types.InputRequiredResult(input_requests={"who": FORM, "where": ROOTS})
    words = str(unanswered("tools/call", "book", result, types.ClientCapabilities()))
    assert "tools/call of 'book' is not finished" in words
    assert "elicitation/create 'who': Who?; roots/list 'where'" in words
    assert "must not ask for elicitation/create, roots/list" in words
    assert "requestState" not in words


@pytest.mark.parametrize(
    ("capabilities", "kind"),
    [
        (types.ClientCapabilities(), ProtocolViolation),
        (types.ClientCapabilities(roots=types.RootsCapability()), ProtocolViolation),
        (types.ClientCapabilities(elicitation=types.ElicitationCapability()), ConfigError),
    ],
)
def test_only_what_was_not_declared_is_the_servers_fault(
    capabilities: types.ClientCapabilities, kind: type[Exception]
) -> None:
    result = types.InputRequiredResult(input_requests={"who": FORM})
    assert type(unanswered("tools/call", "book", result, capabilities)) is kind


def test_a_state_alone_is_to_be_sent_back() -> None:
    error = unanswered("tools/call", "book", types.InputRequiredResult(request_state="s"), types.ClientCapabilities())
    assert isinstance(error, ConfigError)
    assert 'the "requestState" that came' in str(error)
