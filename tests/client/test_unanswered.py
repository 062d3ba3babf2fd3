"""What is said of a result that asks for what nobody answers."""

from __future__ import annotations

from modelwire import ConfigError, ProtocolViolation, types
from modelwire.client.unanswered import unanswered

FORM = types.ElicitRequest(params=types.ElicitRequestFormParams("Who?", types.RequestedSchema({})))
PAGE = types.ElicitRequest(params=types.ElicitRequestURLParams("Sign", "https://example.org"))
ROOTS = types.ListRootsRequest()


def test_what_was_not_declared_is_the_servers_fault_and_named() -> None:
    result = types.InputRequiredResult(input_requests={"who": FORM, "where": ROOTS, "sign": PAGE})
    error = unanswered("tools/call", "book", result, ["where", "sign"])
    words = str(error)
    assert type(error) is ProtocolViolation
    assert "tools/call of 'book' is not finished" in words
    assert "elicitation/create 'who': Who?; roots/list 'where'; elicitation/create 'sign': Sign" in words
    assert "must not ask for elicitation/create in URL mode, roots/list" in words
    assert "Client(..., on_elicit_url=, roots=...) would answer it" in words


def test_what_was_declared_is_ours_and_can_be_answered_by_hand() -> None:
    result = types.InputRequiredResult(input_requests={"who": FORM}, request_state="s")
    error = unanswered("prompts/get", "greet", result, [])
    assert type(error) is ConfigError
    assert "Client(..., on_elicit=...) would answer it" in str(error)
    assert "client.get_prompt(..., rounds=False)" in str(error)
    assert "input_responses={key: answer} and the request_state that came" in str(error)
