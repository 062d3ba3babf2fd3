"""JSON-RPC 2.0 exactly: ids, envelopes, parse errors, duplicates, batches."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from modelwire import Context, Server
from tests.wire import (
    HANDSHAKE,
    MODERN,
    REVISIONS,
    Talk,
    dumps,
    every_handshake,
    every_revision,
    modern_meta,
    opening,
    session_talk,
    stream_talk,
)


def make_server() -> Server:
    server = Server("json-rpc")
    server.gates = {}  # type: ignore[attr-defined]

    @server.tool
    async def echo(value: str) -> str:
        return value

    @server.tool
    async def wait(gate: str, ctx: Context) -> str:
        event = server.gates.setdefault(gate, asyncio.Event())  # type: ignore[attr-defined]
        await event.wait()
        return f"{gate} {ctx.request_id!r}"

    @server.prompt
    def ask(n: int) -> str:
        return str(n)

    @server.resource("c://q/{n}")
    async def quarter(n: int) -> str:
        return str(n)

    return server


def release(server: Server, gate: str) -> None:
    server.gates.setdefault(gate, asyncio.Event()).set()  # type: ignore[attr-defined]


def request(id: Any, method: str = "tools/list", revision: str = "2025-11-25", **params: Any) -> dict[str, Any]:
    if revision == MODERN:
        params["_meta"] = modern_meta()
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def bytes_of_id(id: bytes, revision: str, method: str = "tools/list") -> bytes:
    meta = b'{"_meta":' + dumps(modern_meta()) + b"}" if revision == MODERN else b"{}"
    return b'{"jsonrpc":"2.0","method":"' + method.encode() + b'","id":' + id + b',"params":' + meta + b"}"


async def still_works(talk: Talk) -> None:
    assert await talk.text("echo", {"value": "still here"}) == "still here"
    assert talk.inbox == []


def last_frame(talk: Talk) -> bytes:
    return next(frame for sender, frame in reversed(talk.ledger.frames) if sender == "server")


# --------------------------------------------------------------------------------------------------- ids


@pytest.mark.parametrize(
    "id",
    [
        b'"1"',
        b'""',
        b"0",
        b"-1",
        b"-0",
        b'"a\\u0000"',
        b'"\\u0061"',
        b'"\xe6\x97\xa5\xf0\x9f\x98\x80"',
        b'"\\u65e5\\uD83D\\uDE00"',
        b'"\\/"',
        b'"{\\"id\\":5}"',
        b"9007199254740993",
        b"18446744073709551616",
        b"-170141183460469231731687303715884105729",
        b"1" + b"0" * 400,
        b'"' + b"x" * 10_000 + b'"',
    ],
    ids=lambda id: id[:30].decode(errors="replace"),
)
@every_revision
async def test_an_id_is_echoed_byte_for_byte(revision: str, id: bytes) -> None:
    async with session_talk(make_server(), revision) as talk:
        answer = await talk.answer_to(bytes_of_id(id, revision))
        assert "result" in answer
        assert b'"id":' + id + b"," in last_frame(talk)
        refused = await talk.answer_to(bytes_of_id(id, revision, "no/such"))
        assert refused["error"]["code"] == -32601
        assert b'"id":' + id + b"," in last_frame(talk)


async def test_an_id_with_more_digits_than_python_converts_is_echoed() -> None:
    id = b"9" * 6000
    server = make_server()
    session = server.session()
    await session.handle(dumps(request(0, "initialize", **opening("2025-11-25"))))
    answer = await session.handle(bytes_of_id(id, "2025-11-25"))
    assert answer is not None
    assert b'"id":' + id + b"," in answer
    await session.aclose()


@pytest.mark.parametrize("id", [None, 1.0, 1.5, -0.5, True, False, [], [1], {}, {"id": 1}])
@pytest.mark.parametrize("method", ["tools/list", "no/such", "notifications/cancelled"])
@every_revision
async def test_an_id_that_is_no_string_or_integer_is_an_invalid_request_without_id(
    revision: str, id: Any, method: str
) -> None:
    async with session_talk(make_server(), revision) as talk:
        answer = await talk.answer_to(request(id, method, revision))
        assert answer["error"]["code"] == -32600
        assert answer.get("id") is None
        assert talk.inbox == []
        await still_works(talk)


@pytest.mark.parametrize("id", [b"1e2", b"1E0", b"10.0", b"-1e-3"])
async def test_a_number_written_as_no_integer_is_no_id(id: bytes) -> None:
    async with session_talk(make_server(), "2025-11-25") as talk:
        assert (await talk.answer_to(bytes_of_id(id, "2025-11-25")))["error"]["code"] == -32600


@pytest.mark.parametrize(
    "method",
    [
        "notifications/cancelled",
        "notifications/initialized",
        "notifications/progress",
        "notifications/roots/list_changed",
    ],
)
@every_revision
async def test_a_notification_method_with_an_id_is_not_found(revision: str, method: str) -> None:
    async with session_talk(make_server(), revision) as talk:
        answer = await talk.answer_to(request(7, method, revision, requestId=99))
        assert (answer["id"], answer["error"]["code"]) == (7, -32601)


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "ping", "no/such", "notifications/no-such"])
@every_revision
async def test_a_message_without_id_gets_no_answer(revision: str, method: str) -> None:
    async with session_talk(make_server(), revision) as talk:
        await talk.raw({"jsonrpc": "2.0", "method": method, "params": {"name": "echo", "arguments": {"value": "x"}}})
        assert await talk.quiet()


# --------------------------------------------------------------------------------------------------- in flight


@every_revision
async def test_an_id_in_flight_is_refused_and_the_first_request_keeps_its_answer(revision: str) -> None:
    server = make_server()
    async with session_talk(server, revision) as talk:
        first = await talk.begin_call("wait", {"gate": "a"}, id=41)
        await talk.raw(request(41, "tools/call", revision, name="echo", arguments={"value": "second"}))
        refused = await first.error()
        assert refused["code"] == -32600
        release(server, "a")
        answer = await talk.take(lambda message: message.get("id") == 41)
        assert answer["result"]["content"][0]["text"] == "a 41"
        # One after the other, an id may be used again.
        assert await talk.text("echo", {"value": "third"}, id=41) == "third"


@every_revision
async def test_a_refused_duplicate_does_not_free_the_id(revision: str) -> None:
    server = make_server()
    async with session_talk(server, revision) as talk:
        await talk.begin_call("wait", {"gate": "a"}, id=5)
        for _ in range(2):
            await talk.raw(request(5, "tools/list", revision))
        release(server, "a")
        await talk.settle()
        codes = [message["error"]["code"] for message in talk.inbox if "error" in message]
        results = [message for message in talk.inbox if "result" in message]
        assert len(codes) + len(results) == 2  # and one error came where the first answer was awaited
        assert set(codes) == {-32600}
        assert len(results) == 1


@every_revision
async def test_a_number_and_a_string_are_different_ids(revision: str) -> None:
    server = make_server()
    async with session_talk(server, revision) as talk:
        number = await talk.begin_call("wait", {"gate": "n"}, id=2)
        string = await talk.begin_call("wait", {"gate": "s"}, id="2")
        await talk.cancel(number)
        release(server, "n")
        release(server, "s")
        assert (await string.result())["content"][0]["text"] == "s '2'"
        await talk.settle()
        assert not number.done


async def test_spellings_of_one_id_are_one_id() -> None:
    server = make_server()
    async with session_talk(server, "2025-11-25") as talk:
        await talk.raw(dumps(request("a", "tools/call", name="wait", arguments={"gate": "g"})), valid=True)
        answer = await talk.answer_to(bytes_of_id(b'"\\u0061"', "2025-11-25"))
        assert answer["error"]["code"] == -32600
        release(server, "g")
        assert "result" in await talk.take(lambda message: message.get("id") == "a")


async def test_ids_of_both_eras_on_one_connection_share_one_table() -> None:
    server = make_server()
    async with stream_talk(server, "2025-06-18") as talk:
        first = await talk.begin_call("wait", {"gate": "a"}, id=8)
        await talk.raw(request(8, "tools/list", MODERN))
        assert (await first.error())["code"] == -32600
        release(server, "a")


async def test_two_clients_may_use_the_same_ids_at_once() -> None:
    server = make_server()
    async with session_talk(server, "2025-06-18") as one, session_talk(server, MODERN) as other:
        first = await one.begin_call("wait", {"gate": "one"}, id=1000)
        second = await other.begin_call("wait", {"gate": "other"}, id=1000)
        await one.cancel(first)
        release(server, "other")
        assert (await second.result())["content"][0]["text"] == "other 1000"


# --------------------------------------------------------------------------------------------------- envelopes


@pytest.mark.parametrize(
    ("frame", "id"),
    [
        ({"id": 3, "method": "ping"}, 3),
        ({"jsonrpc": "1.0", "id": "x", "method": "ping"}, "x"),
        ({"jsonrpc": 2.0, "id": 3, "method": "ping"}, 3),
        ({"jsonrpc": "2.0", "id": 3}, 3),
        ({"jsonrpc": "2.0", "id": 3, "method": None}, 3),
        ({"jsonrpc": "2.0", "id": 3, "method": 5}, 3),
        ({"jsonrpc": "2.0", "id": 3, "method": ["ping"]}, 3),
        ({"jsonrpc": "2.0", "id": 3, "method": "ping", "result": {}}, 3),
        ({"jsonrpc": "2.0", "id": 3, "method": "ping", "result": None}, 3),
        ({"jsonrpc": "2.0", "id": 3, "method": "ping", "error": {"code": 1, "message": "m"}}, 3),
        ({"jsonrpc": "2.0", "id": "unique", "method": "tools/call", "params": {}, "result": {}, "error": {}}, "unique"),
        ({"jsonrpc": "2.0", "method": "notifications/initialized", "result": {}}, None),
        ({"method": "tools/call", "params": {}}, None),
        ({"jsonrpc": "2.0"}, None),
        ({}, None),
        ({"jsonrpc": "2.0", "id": None, "method": "ping", "result": {}}, None),
        (5, None),
        ("ping", None),
        (None, None),
        (True, None),
    ],
    ids=lambda value: json.dumps(value)[:60],
)
@every_revision
async def test_an_invalid_request_is_answered_with_the_id_that_could_be_read(
    revision: str, frame: Any, id: Any
) -> None:
    async with session_talk(make_server(), revision) as talk:
        answer = await talk.answer_to(dumps(frame))
        assert answer["error"]["code"] == -32600
        assert answer.get("id") == id
        await still_works(talk)


@pytest.mark.parametrize("params", [5, "x", True, []])
@every_revision
async def test_params_that_are_no_object_are_refused(revision: str, params: Any) -> None:
    async with session_talk(make_server(), revision) as talk:
        answer = await talk.answer_to({"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": params})
        assert answer["id"] == 9
        assert answer["error"]["code"] in (-32600, -32602)
        await still_works(talk)


@pytest.mark.parametrize(
    "frame",
    [
        {"jsonrpc": "2.0", "id": 77, "result": {}},
        {"jsonrpc": "2.0", "id": "never asked", "error": {"code": -32601, "message": "m"}},
        {"jsonrpc": "2.0", "error": {"code": -32700, "message": "m"}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "m"}},
    ],
)
@every_revision
async def test_an_answer_to_nothing_is_ignored(revision: str, frame: Any) -> None:
    async with session_talk(make_server(), revision) as talk:
        await talk.raw(frame)
        assert await talk.quiet()


@pytest.mark.parametrize(
    "frame",
    [
        {"jsonrpc": "2.0", "id": 77, "result": {}, "error": {"code": 1, "message": "m"}},
        {"jsonrpc": "2.0", "id": 77, "error": {"code": "x", "message": "m"}},
        {"jsonrpc": "2.0", "id": 77, "error": None},
        {"id": 77, "result": {}},
    ],
)
@every_revision
async def test_a_malformed_answer_costs_nothing_but_itself(revision: str, frame: Any) -> None:
    async with session_talk(make_server(), revision) as talk:
        await talk.raw(frame)
        await talk.settle()
        talk.inbox.clear()  # whether it is told that the frame was wrong is left open
        await still_works(talk)


@every_revision
async def test_members_beyond_the_envelope_are_ignored(revision: str) -> None:
    async with session_talk(make_server(), revision) as talk:
        answer = await talk.answer_to(request(1, revision=revision) | {"extra": {"id": 2}, "auth": "x"})
        assert (answer["id"], "result" in answer) == (1, True)


# --------------------------------------------------------------------------------------------------- parse errors

DEEP = b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"x":' + b"[" * 2000 + b"]" * 2000 + b"}}"


@pytest.mark.parametrize(
    ("frame", "readable"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":', None),
        (b"nope", None),
        (b"{", None),
        (b"[1,", None),
        (b"\xff\xfe", None),
        (b"\x00", None),
        (b"{'jsonrpc':'2.0'}", None),
        (b'{"jsonrpc":"2.0","id":4,"method":"ping"} trailing', 4),
        (b'{"jsonrpc":"2.0","id":4,"method":"ping",}', 4),
        (b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","arguments":{"value":NaN}}}', 4),
        (b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","arguments":{"value":Infinity}}}', 4),
        (b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","arguments":{"value":"caf\xe9"}}}', 4),
        (b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","arguments":{"value":"a\tb"}}}', 4),
        (b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","arguments":{"value":01}}}', 4),
        (DEEP, 4),
        (b"[" * 5000, None),
        (b'{"a":' * 100_000, None),
    ],
    ids=lambda value: repr(value)[:70],
)
@every_revision
async def test_what_is_no_json_is_a_parse_error_and_costs_only_itself(
    revision: str, frame: bytes, readable: int | None
) -> None:
    async with session_talk(make_server(), revision) as talk:
        answer = await talk.answer_to(frame)
        assert answer["error"]["code"] in (-32700, -32600)
        if frame is not DEEP:
            assert answer["error"]["code"] == -32700
        assert answer.get("id") in (None, readable)
        await still_works(talk)


@pytest.mark.parametrize(
    "value",
    [b"NaN", b"-Infinity", b'"caf\xe9"', b'"\xed\xa0\x80"', b"[" * 2000 + b"]" * 2000],
    ids=lambda v: repr(v)[:30],
)
@every_revision
async def test_a_frame_that_fails_deep_inside_is_answered_with_its_id(revision: str, value: bytes) -> None:
    async with session_talk(make_server(), revision) as talk:
        head = b'{"jsonrpc":"2.0","id":"find me","method":"tools/call","params":{"name":"echo","arguments":{"value":'
        answer = await talk.answer_to(head + value + b"}}}")
        assert "error" in answer
        assert answer["id"] == "find me"
        await still_works(talk)


@pytest.mark.parametrize("value", [b'"\\ud800"', b'"\\udc00\\ud800"', b'"a\\uD83Db"'])
@every_revision
async def test_a_lone_surrogate_costs_at_most_its_own_request(revision: str, value: bytes) -> None:
    meta = b',"_meta":' + dumps(modern_meta()) if revision == MODERN else b""
    async with session_talk(make_server(), revision) as talk:
        head = b'{"jsonrpc":"2.0","id":"find me","method":"tools/call","params":{"name":"echo","arguments":{"value":'
        answer = await talk.answer_to(head + value + b"}" + meta + b"}}")
        assert answer["id"] == "find me"
        await still_works(talk)


# --------------------------------------------------------------------------------------------------- bad parameters


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("prompts/get", {"name": "nobody"}),
        ("prompts/get", {"name": "ask"}),
        ("prompts/get", {"name": "ask", "arguments": {}}),
        ("prompts/get", {"name": "ask", "arguments": {"n": "x"}}),
        ("prompts/get", {"name": "ask", "arguments": {"n": "1", "surplus": "2"}}),
        ("prompts/get", {}),
        ("prompts/get", {"name": 5}),
        ("tools/call", {"name": "nobody"}),
        ("tools/call", {}),
        ("tools/call", {"name": None}),
        ("tools/call", {"name": "echo", "arguments": []}),
        ("tools/call", {"name": "echo", "arguments": "x"}),
        ("resources/read", {}),
        ("resources/read", {"uri": 5}),
        ("resources/read", {"uri": "c://q/abc"}),
        ("completion/complete", {}),
        ("completion/complete", {"ref": {"type": "ref/nothing"}, "argument": {"name": "n", "value": ""}}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "nobody"}, "argument": {"name": "n", "value": ""}},
        ),
        ("tools/list", {"cursor": 5}),
        ("tools/list", {"cursor": "not ours"}),
        ("resources/list", {"cursor": "not ours"}),
        ("resources/templates/list", {"cursor": "not ours"}),
        ("prompts/list", {"cursor": ""}),
    ],
    ids=str,
)
@every_revision
async def test_bad_parameters_are_invalid_params(revision: str, method: str, params: dict[str, Any]) -> None:
    server = make_server()
    server.complete("ask", "n")(lambda value: [])
    async with session_talk(server, revision) as talk:
        answer = await talk.answer_to(request(1, method, revision, **params))
        assert (answer["id"], answer["error"]["code"]) == (1, -32602)
        await still_works(talk)


@every_revision
async def test_an_unknown_resource_has_the_code_of_the_revision_and_names_the_uri(revision: str) -> None:
    async with session_talk(make_server(), revision) as talk:
        error = await talk.error("resources/read", {"uri": "file:///nowhere"})
        assert error["code"] == (-32602 if revision == MODERN else -32002)
        assert error["data"]["uri"] == "file:///nowhere"


@pytest.mark.parametrize("level", ["loud", "", None, 5, "INFO"])
@every_handshake
async def test_an_unknown_log_level_is_invalid_params(revision: str, level: Any) -> None:
    async with session_talk(make_server(), revision) as talk:
        answer = await talk.answer_to(request(1, "logging/setLevel", revision, level=level))
        assert answer["error"]["code"] == -32602


# --------------------------------------------------------------------------------------------------- batches

CALL = request(1, "tools/call", name="echo", arguments={"value": "one"})
NOTE = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}


@pytest.mark.parametrize("over", [session_talk, stream_talk])
async def test_a_batch_is_answered_with_one_array(over: Any) -> None:
    async with over(make_server(), "2025-03-26") as talk:
        batch = [
            CALL,
            NOTE,
            request("two", "tools/list"),
            request(3, "no/such"),
            request(4, "tools/call", name="nobody"),
            {"jsonrpc": "2.0", "id": 5, "method": "ping"},
        ]
        answers = await talk.answer_to(batch, valid=False)
        assert isinstance(answers, list)
        by_id = {answer["id"]: answer for answer in answers}
        assert by_id.keys() == {1, "two", 3, 4, 5}
        assert len(answers) == 5
        assert by_id[1]["result"]["content"][0]["text"] == "one"
        assert by_id[3]["error"]["code"] == -32601
        assert by_id[4]["error"]["code"] == -32602
        await still_works(talk)


async def test_every_invalid_item_of_a_batch_has_its_own_answer() -> None:
    async with session_talk(make_server(), "2025-03-26") as talk:
        answers = await talk.answer_to([1, "x", {}, [], [CALL], CALL, {"jsonrpc": "2.0", "id": 9, "method": 5}])
        codes = sorted(answer["error"]["code"] for answer in answers if "error" in answer)
        assert codes == [-32600] * 6
        assert [answer["id"] for answer in answers if "result" in answer] == [1]
        assert 9 in [answer.get("id") for answer in answers]


@pytest.mark.parametrize("batch", [[NOTE], [NOTE, NOTE], [{"jsonrpc": "2.0", "id": 99, "result": {}}]])
async def test_a_batch_of_notifications_and_answers_only_gets_silence(batch: list[Any]) -> None:
    async with session_talk(make_server(), "2025-03-26") as talk:
        await talk.raw(batch)
        assert await talk.quiet()


@every_revision
async def test_an_empty_batch_is_one_invalid_request(revision: str) -> None:
    async with session_talk(make_server(), revision) as talk:
        answer = await talk.answer_to([])
        assert isinstance(answer, dict)
        assert answer["error"]["code"] == -32600
        assert answer.get("id") is None
        await still_works(talk)


async def test_initialize_inside_a_batch_is_refused_and_the_rest_is_answered() -> None:
    async with session_talk(make_server(), "2025-03-26") as talk:
        answers = await talk.answer_to([request("i", "initialize", **opening("2024-11-05")), CALL])
        by_id = {answer["id"]: answer for answer in answers}
        assert by_id["i"]["error"]["code"] == -32600
        assert by_id[1]["result"]["content"][0]["text"] == "one"
        answers = await talk.answer_to([CALL])
        assert isinstance(answers, list)  # the revision is still 2025-03-26


@pytest.mark.parametrize("revision", [revision for revision in REVISIONS if revision != "2025-03-26"])
async def test_elsewhere_a_batch_is_refused_as_a_whole(revision: str) -> None:
    async with session_talk(make_server(), revision) as talk:
        answer = await talk.answer_to([CALL, request(2)])
        assert isinstance(answer, dict)
        assert answer["error"]["code"] == -32600
        await still_works(talk)


async def test_before_opening_a_batch_is_refused() -> None:
    async with session_talk(make_server(), "2025-03-26", opened=False) as talk:
        answer = await talk.answer_to([request(1, "initialize", **opening("2025-03-26"))])
        assert answer["error"]["code"] == -32600
        await talk.open()


async def test_an_id_twice_in_a_batch_is_refused_the_second_time() -> None:
    server = make_server()
    release(server, "a")
    async with session_talk(server, "2025-03-26") as talk:
        slow = request(1, "tools/call", name="wait", arguments={"gate": "a"})
        answers = await talk.answer_to([slow, CALL])
        assert sorted("error" in answer for answer in answers) == [False, True]
        assert [answer["error"]["code"] for answer in answers if "error" in answer] == [-32600]


async def test_a_request_of_a_batch_may_be_cancelled_alone() -> None:
    server = make_server()
    async with session_talk(server, "2025-03-26") as talk:
        await talk.raw([request(1, "tools/call", name="wait", arguments={"gate": "never"}), request(2)])
        await talk.notify("notifications/cancelled", {"requestId": 1})
        answers = await talk.take(lambda message: isinstance(message, list))
        assert [answer["id"] for answer in answers] == [2]


async def test_a_batch_is_one_frame_of_any_length() -> None:
    async with session_talk(make_server(), "2025-03-26") as talk:
        batch = [request(id, "tools/call", name="echo", arguments={"value": str(id)}) for id in range(200)]
        answers = await talk.answer_to(batch)
        texts = {answer["id"]: answer["result"]["content"][0]["text"] for answer in answers}
        assert texts == {id: str(id) for id in range(200)}


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_requests_are_answered_as_they_are_ready_not_in_order(revision: str) -> None:
    server = make_server()
    async with stream_talk(server, revision) as talk:
        slow = await talk.begin_call("wait", {"gate": "slow"})
        assert await talk.text("echo", {"value": "quick"}) == "quick"
        assert not slow.done
        release(server, "slow")
        await slow.result()
