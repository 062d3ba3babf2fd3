"""Results that ask for input, near the border of what is right: the call goes on with every answer, or fails."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from modelwire import ModelwireError
from tests.robustness.malformed import PER_REQUEST, broken, fitting
from tests.robustness.opening import connect
from tests.robustness.turning import TurnedLoop
from tests.spec import definitions, needs_spec, validate_message

pytestmark = needs_spec


def as_unicode(text: str | None) -> str | None:
    """Half a surrogate pair is no character: what JSON spells so cannot be sent back."""
    return text and "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)


@given(data=st.data())
def test_questions_are_all_answered_or_the_call_fails(data: st.DataObject) -> None:
    types = definitions(PER_REQUEST)
    result: Any = {**fitting(data.draw, types["InputRequiredResult"], types, "result"), "resultType": "input_required"}
    for _ in range(data.draw(st.integers(0, 3), label="faults")):
        result = broken(data.draw, result)
    with TurnedLoop() as loop:
        client, stream = connect(loop, PER_REQUEST)
        call = loop.start(client.call_tool("t"))
        [asked] = stream.sent()
        stream.say({"jsonrpc": "2.0", "id": asked["id"], "result": result})
        loop.idle()
        loop.advance(1)  # where there is nothing to answer, there is a pause
        again = stream.sent()
        if again:
            [request] = again
            assert validate_message(PER_REQUEST, "client", request) == []
            assert request["id"] != asked["id"]
            assert request["params"].get("requestState") == as_unicode(result.get("requestState"))
            answered = request["params"].get("inputResponses") or {}
            assert set(answered) == set(map(as_unicode, result.get("inputRequests") or {}))
            stream.say({"jsonrpc": "2.0", "id": request["id"], "result": {"content": [], "resultType": "complete"}})
            loop.finish(call)
        else:
            assert call.done()
            assert call.exception() is None or isinstance(call.exception(), ModelwireError)
        loop.finish(client.close())
