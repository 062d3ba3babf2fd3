"""Frames that break the rules, and the server's own requests: each costs at most its own call."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from modelwire import (
    ProtocolViolation,
)
from tests.fake_server import HANDSHAKE, MODERN, REVISIONS, alive, talking, text

# --------------------------------------------------------------------------------------------------- odd frames


async def test_a_result_and_an_error_fail_the_call_at_once() -> None:
    async with talking(timeout=None) as (client, fake):
        call = asyncio.create_task(client.call("t"))
        request = await fake.expect("tools/call")
        await fake.send({"jsonrpc": "2.0", "id": request["id"], "result": {}, "error": {"code": 1, "message": "x"}})
        with pytest.raises(ProtocolViolation, match="never both") as caught:
            await call
        assert caught.value.frame is not None
        assert json.loads(caught.value.frame)["id"] == request["id"]
        await alive(client, fake)


async def test_a_method_and_a_result_fail_the_call_at_once_and_are_not_answered() -> None:
    async with talking(timeout=None) as (client, fake):
        call = asyncio.create_task(client.list_resources())
        request = await fake.expect("resources/list")
        await fake.send({"jsonrpc": "2.0", "id": request["id"], "method": "resources/list", "result": {}})
        with pytest.raises(ProtocolViolation, match='"method" must not have "result"'):
            await call
        await alive(client, fake)


BAD_ANSWERS: dict[str, bytes] = {
    "no jsonrpc": b'{"id":%d,"result":{"content":[]}}',
    "another jsonrpc": b'{"jsonrpc":"1.0","id":%d,"result":{"content":[]}}',
    "NaN": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"a":NaN}}}',
    "infinity": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"a":-Infinity}}}',
    "invalid UTF-8": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"caf\xe9"}]}}',
    "an error that is a string": b'{"jsonrpc":"2.0","id":%d,"error":"broken"}',
    "an error without a message": b'{"jsonrpc":"2.0","id":%d,"error":{"code":1}}',
    "too deep": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"a":' + b"[" * 3000 + b"]" * 3000 + b"}}",
}


@pytest.mark.parametrize("bad", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
async def test_an_answer_that_cannot_be_read_fails_its_call_at_once(bad: bytes) -> None:
    async with talking(timeout=None) as (client, fake):
        call = asyncio.create_task(client.call("t"))
        request = await fake.expect("tools/call")
        await fake.send(bad.replace(b"%d", str(request["id"]).encode()))
        with pytest.raises(ProtocolViolation, match="the answer to tools/call is invalid"):
            await call
        await alive(client, fake)


@pytest.mark.parametrize(
    "noise",
    [
        b"Listening on port 3000", b"\xff\xfe bad", b"{", b"[]", b'"text"', b"42", b"null", b"{}", b"true",
        b'{"jsonrpc":"2.0"}', b'{"jsonrpc":"2.0","id":null,"method":"ping"}', b'{"jsonrpc":"2.0","id":1.5,"result":{}}',
        b'{"result":{"tools":[]}}', b'[{"jsonrpc":"2.0","method":"x"}]', b'{"jsonrpc":"2.0","method":5}',
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":NaN}}',
    ],
    ids=repr,
)  # fmt: skip
async def test_noise_is_dropped_and_never_answered(noise: bytes) -> None:
    async with talking() as (client, fake):
        await fake.send(noise)
        await alive(client, fake)
        assert fake.inbox == []


async def test_answers_to_nobody_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    async with talking() as (client, fake):
        for stranger in (4711, "1", "", -1, 10**30):
            await fake.send({"jsonrpc": "2.0", "id": stranger, "result": {}})
            await fake.send({"jsonrpc": "2.0", "id": stranger, "error": {"code": 1, "message": "x"}})
        await alive(client, fake)
        assert "no such request was sent" in caplog.text


async def test_an_id_as_a_string_is_another_id() -> None:
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call("t"))
        request = await fake.expect("tools/call")
        await fake.send({"jsonrpc": "2.0", "id": str(request["id"]), "result": text("wrong")})
        await fake.result(request, text("right"))
        assert await call == "right"


async def test_the_first_of_two_answers_counts() -> None:
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call("t"))
        request = await fake.expect("tools/call")
        await fake.result(request, text("first"))
        await fake.result(request, text("second"))
        await fake.error(request, -32603)
        assert await call == "first"
        await alive(client, fake)


async def test_half_a_surrogate_pair_comes_as_the_replacement_character() -> None:
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call("t"))
        request = await fake.expect("tools/call")
        frame = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"a\\ud83d-\\ud83d\\ude00"}]}}'
        await fake.send(frame % request["id"])
        assert await call == "a\ufffd-\N{GRINNING FACE}"


async def test_a_byte_order_mark_inside_a_text_is_kept() -> None:
    async with talking() as (client, fake):
        assert await fake.answer(client.call("t"), "tools/call", text("a\ufeffb")) == "a\ufeffb"


async def test_batches_are_taken_where_the_revision_has_them() -> None:
    async with talking("2025-03-26") as (client, fake):
        calls = [asyncio.create_task(client.call("t", {"n": n})) for n in range(2)]
        first, second = [await fake.expect("tools/call") for _ in calls]
        await fake.send(
            [
                {"jsonrpc": "2.0", "id": second["id"], "result": text("two")},
                {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}},
                {"jsonrpc": "2.0", "id": "s1", "method": "ping"},
                {"jsonrpc": "2.0", "id": first["id"], "result": text("one")},
                {"jsonrpc": "2.0", "id": "s2", "method": "roots/list"},
                5,
            ]
        )
        assert await asyncio.gather(*calls) == ["one", "two"]
        answers = {answer["id"]: answer for answer in await fake.next()}
        assert answers["s1"]["result"] == {}
        assert answers["s2"]["error"]["code"] == -32601
        assert len(answers) == 2


@pytest.mark.parametrize("revision", [revision for revision in REVISIONS if revision != "2025-03-26"])
async def test_an_answer_in_a_batch_elsewhere_fails_its_call_at_once(revision: str) -> None:
    async with talking(revision, timeout=None) as (client, fake):
        call = asyncio.create_task(client.call("t"))
        request = await fake.expect("tools/call")
        await fake.send([{"jsonrpc": "2.0", "id": request["id"], "result": text("x")}])
        with pytest.raises(ProtocolViolation, match="batches exist only in revision 2025-03-26"):
            await call
        await alive(client, fake)


# --------------------------------------------------------------------------------------------------- the server asks


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_ping_of_the_server_is_answered(revision: str) -> None:
    async with talking(revision) as (_, fake):
        for id_ in (1, "1", "a\u0000", -5, 0, 10**20):
            assert await fake.ask(id_, "ping") == {"jsonrpc": "2.0", "id": id_, "result": {}}


@pytest.mark.parametrize("method", ["initialize", "tools/list", "roots/list", "sampling/createMessage", "acme/x", ""])
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_request_that_nobody_handles_is_refused(revision: str, method: str) -> None:
    async with talking(revision) as (client, fake):
        answer = await fake.ask(1, method, {"protocolVersion": revision, "capabilities": {}, "clientInfo": {}})
        assert answer["error"]["code"] == -32601
        await alive(client, fake)


async def test_the_servers_requests_are_ignored_where_it_must_not_send_any(caplog: pytest.LogCaptureFixture) -> None:
    async with talking(MODERN, handlers={"roots/list": lambda params: {"roots": []}}) as (client, fake):
        for method in ("ping", "roots/list", "initialize", "tools/list"):
            await fake.send({"jsonrpc": "2.0", "id": method, "method": method})
        await alive(client, fake)
        assert fake.inbox == []
        assert "which its revision forbids" in caplog.text


async def test_a_handler_answers_and_may_be_async() -> None:
    async def sample(params: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        words = params["messages"][0]["content"]["text"].upper()
        return {"role": "assistant", "content": {"type": "text", "text": words}, "model": "m"}

    handlers = {"roots/list": lambda params: {"roots": [{"uri": "file:///a"}]}, "sampling/createMessage": sample}
    async with talking(handlers=handlers) as (_, fake):
        assert (await fake.ask(1, "roots/list"))["result"] == {"roots": [{"uri": "file:///a"}]}
        messages = [{"role": "user", "content": {"type": "text", "text": "hi"}}]
        answer = await fake.ask(2, "sampling/createMessage", {"messages": messages, "maxTokens": 5})
        assert answer["result"]["content"]["text"] == "HI"


async def test_a_handler_that_fails_costs_only_its_request() -> None:
    def fail(params: dict[str, Any]) -> Any:
        raise ZeroDivisionError

    async with talking(handlers={"roots/list": fail}) as (client, fake):
        assert (await fake.ask(1, "roots/list"))["error"]["code"] == -32603
        await alive(client, fake)


async def test_a_request_of_the_servers_that_it_cancels_is_not_answered() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def roots(params: dict[str, Any]) -> Any:
        started.set()
        try:
            await asyncio.sleep(1000)
        finally:
            cancelled.set()

    async with talking(handlers={"roots/list": roots}) as (client, fake):
        await fake.send({"jsonrpc": "2.0", "id": 9, "method": "roots/list"})
        await started.wait()
        await fake.notify("notifications/cancelled", {"requestId": 9, "reason": "no longer needed"})
        await cancelled.wait()
        await alive(client, fake)
        assert fake.inbox == []


# --------------------------------------------------------------------------------------------------- said once


FLOODS: dict[str, tuple[bytes, str]] = {
    "noise": (b"[INFO] still here", "a frame was dropped"),
    "answers to nobody": (b'{"jsonrpc":"2.0","id":4711,"result":{}}', "no such request was sent"),
    "errors that name no request": (b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"?"}}', "no request"),
    "progress that says nothing": (b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}', "progress"),
}


@pytest.mark.parametrize(("frame", "words"), FLOODS.values(), ids=FLOODS)
async def test_what_a_server_does_wrong_again_and_again_is_said_once_in_the_log(
    frame: bytes, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with talking() as (client, fake):
        for _ in range(100):
            await fake.send(frame)
        await alive(client, fake)
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert words in warnings[0]
    assert "more of this kind is logged for debugging only" in warnings[0]


async def test_different_mistakes_are_said_each(caplog: pytest.LogCaptureFixture) -> None:
    async with talking() as (client, fake):
        for frame, _ in FLOODS.values():
            await fake.send(frame)
        await alive(client, fake)
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == len(FLOODS)
