"""Which era a server speaks: every way to answer the probe, and what comes of it."""

from __future__ import annotations

import asyncio
import gc
import logging
from pathlib import Path
from typing import Any

import pytest

from modelwire import Client, ConnectionFailed, ConnectionLost, RequestTimeout, ServerExited, types
from modelwire.client.connect import PROBE_WAIT
from modelwire.transports import process
from tests.clock import Clock
from tests.fake_server import HANDSHAKE, INFO, MODERN, REVISIONS, child, fake_server, talking

LONG = 1000.0
"""A test that needs such a wait to end runs into its time limit."""


async def connecting(client: Client) -> asyncio.Task[Client]:
    return asyncio.create_task(client.connect())


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_client_finds_the_revision_of_any_server(revision: str) -> None:
    async with talking(revision) as (client, _):
        assert client.revision.name == revision
        assert client.capabilities.tools is not None
        assert client.server_info is not None
        assert client.server_info.name == "fake"
        assert client.connected


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_pinned_revision_is_the_only_one_asked_for(revision: str) -> None:
    async with talking(revision, revision=revision) as (client, fake):
        assert client.revision.name == revision
        opening = ["server/discover"] if revision == MODERN else ["initialize", "notifications/initialized"]
        assert fake.methods == opening


async def test_after_a_discovery_initialize_is_never_sent() -> None:
    async with talking(MODERN) as (client, fake):
        asking = asyncio.create_task(client.ping())
        await fake.discovered(await fake.expect("server/discover"))
        await asking
        assert "initialize" not in fake.methods


async def test_the_instructions_of_both_eras_are_kept() -> None:
    for revision in ("2025-11-25", MODERN):
        async with fake_server() as fake, asyncio.TaskGroup() as tasks:
            client = Client(fake.stream)
            tasks.create_task(client.connect())
            await fake.open(revision, instructions="be kind")
            await asyncio.sleep(0)
            await client.connect()
            assert client.instructions == "be kind"
            await client.close()


@pytest.mark.parametrize("code", [-32601, -32602, -32600, -32603, -32000, -32700, 0, 1, -32099])
async def test_any_other_error_to_the_probe_means_initialize_on_the_same_connection(code: int) -> None:
    async with fake_server() as fake:
        client = Client(fake.stream, probe_wait=LONG)
        opening = await connecting(client)
        await fake.error(await fake.expect("server/discover"), code)
        await fake.initialized(await fake.expect("initialize"), "2025-06-18")
        await opening
        assert client.revision.name == "2025-06-18"
        await client.close()


ODD_ANSWERS: dict[str, Any] = {
    "a result that is no discovery": {"result": {}},
    "a result that is no object": {"result": 5},
    "versions that are no list": {"result": {"supportedVersions": "2026-07-28", "capabilities": {}}},
    "an unknown result type": {"result": {"resultType": "odd", "supportedVersions": [MODERN], "capabilities": {}}},
    "a result that asks for input": {"result": {"resultType": "input_required", "inputRequests": {}}},
    "a result and an error": {"result": {}, "error": {"code": 1, "message": "x"}},
    "a method and a result": {"method": "server/discover", "result": {}},
    "an error that is no object": {"error": "no such method"},
    "an error without a code": {"error": {"message": "no such method"}},
    "-32022 without versions": {"error": {"code": -32022, "message": "x"}},
    "-32022 with odd versions": {"error": {"code": -32022, "message": "x", "data": {"supported": 7}}},
    "-32022 with handshake revisions only": {
        "error": {"code": -32022, "message": "x", "data": {"supported": ["2024-11-05", "2025-06-18"]}}
    },
    "-32022 with a revision to come and one of the handshake": {
        "error": {"code": -32022, "message": "x", "data": {"supported": ["2031-01-01", "2025-11-25"]}}
    },
}


@pytest.mark.parametrize("odd", ODD_ANSWERS.values(), ids=ODD_ANSWERS)
async def test_an_odd_answer_to_the_probe_means_initialize(odd: dict[str, Any]) -> None:
    async with fake_server() as fake:
        client = Client(fake.stream, probe_wait=LONG)
        opening = await connecting(client)
        request = await fake.expect("server/discover")
        await fake.send({"jsonrpc": "2.0", "id": request["id"], **odd})
        await fake.initialized(await fake.expect("initialize"), "2025-11-25")
        await opening
        assert client.revision.name == "2025-11-25"
        await client.close()


async def test_a_supported_list_with_a_common_revision_opens_without_initialize() -> None:
    async with fake_server() as fake:
        client = Client(fake.stream)
        opening = await connecting(client)
        fake.revision = MODERN
        data = {"supported": ["2031-01-01", MODERN, "2025-11-25"], "requested": MODERN}
        await fake.error(await fake.expect("server/discover"), -32022, "odd", data)
        await opening
        assert client.revision.name == MODERN
        # Nothing was said of capabilities: a list is asked for, and -32601 is an empty one.
        listing = asyncio.create_task(client.list_tools())
        await fake.error(await fake.expect("tools/list"), -32601)
        assert await listing == []
        await client.close()


async def test_no_common_revision_is_said_with_both_lists() -> None:
    async with fake_server() as fake:
        opening = await connecting(Client(fake.stream))
        await fake.error(
            await fake.expect("server/discover"), -32022, "x", {"supported": ["2031-01-01"], "requested": MODERN}
        )
        with pytest.raises(ConnectionFailed, match=r"offers 2031-01-01; this client speaks 2024-11-05, .*2026-07-28"):
            await opening
        assert fake.methods == ["server/discover"]
        await fake.closed()


async def test_a_discovery_of_handshake_revisions_only_says_how_to_open_them() -> None:
    async with fake_server() as fake:
        opening = await connecting(Client(fake.stream))
        await fake.discovered(await fake.expect("server/discover"), supportedVersions=["2025-06-18", "2025-11-25"])
        with pytest.raises(ConnectionFailed, match="pin revision='2025-11-25'"):
            await opening
        assert fake.methods == ["server/discover"]


@pytest.mark.parametrize("code", [-32020, -32021])
async def test_other_errors_of_the_per_request_era_are_final(code: int) -> None:
    async with fake_server() as fake:
        opening = await connecting(Client(fake.stream))
        await fake.error(await fake.expect("server/discover"), code, "sampling is needed")
        with pytest.raises(ConnectionFailed, match="sampling is needed"):
            await opening
        assert fake.methods == ["server/discover"]


@pytest.mark.parametrize("error", [{"id": None}, {}], ids=["id null", "no id"])
async def test_an_error_that_names_no_request_means_initialize_too(error: dict[str, Any]) -> None:
    async with fake_server() as fake:
        client = Client(fake.stream, probe_wait=LONG)
        opening = await connecting(client)
        await fake.expect("server/discover")
        await fake.send({"jsonrpc": "2.0", **error, "error": {"code": -32700, "message": "what?"}})
        await fake.initialized(await fake.expect("initialize"), "2025-03-26")
        await opening
        assert client.revision.name == "2025-03-26"
        await client.close()


async def test_an_error_that_names_no_request_does_not_outvote_the_answer_to_the_probe() -> None:
    async with fake_server() as fake:
        client = Client(fake.stream, probe_wait=LONG)
        opening = await connecting(client)
        probe = await fake.expect("server/discover")
        await fake.send({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "what?"}})
        await fake.expect("initialize")
        await fake.discovered(probe)
        await opening
        assert client.revision.name == MODERN
        await client.close()


async def test_silence_after_the_probe_means_initialize_too() -> None:
    async with fake_server() as fake:
        client = Client(fake.stream, probe_wait=0.01)
        opening = await connecting(client)
        await fake.expect("server/discover")
        await fake.initialized(await fake.expect("initialize"), "2024-11-05")
        await opening
        assert client.revision.name == "2024-11-05"
        await client.close()
        assert fake.methods == ["server/discover", "initialize", "notifications/initialized"]


async def test_a_late_answer_to_the_probe_still_wins() -> None:
    async with fake_server() as fake:
        client = Client(fake.stream, probe_wait=0.01)
        opening = await connecting(client)
        probe = await fake.expect("server/discover")
        await fake.expect("initialize")
        await fake.discovered(probe)
        await opening
        assert client.revision.name == MODERN
        await client.close()
        assert fake.methods == ["server/discover", "initialize"]


async def test_a_slow_starter_that_then_answers_everything_is_spoken_to_in_the_newest_way() -> None:
    async with fake_server() as fake:
        client = Client(fake.stream, probe_wait=0.01)
        opening = await connecting(client)
        probe, handshake = await fake.expect("server/discover"), await fake.expect("initialize")
        fake.revision = MODERN
        versions = {"supportedVersions": [MODERN], "capabilities": {}, "resultType": "complete"}
        await fake.send({"jsonrpc": "2.0", "id": probe["id"], "result": versions})
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": INFO}
        await fake.send({"jsonrpc": "2.0", "id": handshake["id"], "result": hello})
        await opening
        assert client.revision.name == MODERN
        await client.close()
        assert fake.methods == ["server/discover", "initialize"]


async def test_an_answer_to_the_probe_after_the_handshake_changes_nothing() -> None:
    async with fake_server() as fake:
        client = Client(fake.stream, probe_wait=0.01)
        opening = await connecting(client)
        probe = await fake.expect("server/discover")
        await fake.initialized(await fake.expect("initialize"), "2025-11-25")
        await opening
        await fake.send({"jsonrpc": "2.0", "id": probe["id"], "result": {"supportedVersions": [MODERN]}})
        pinging = asyncio.create_task(client.ping())
        await fake.result(await fake.expect("ping"), {})
        await pinging
        assert client.revision.name == "2025-11-25"
        await client.close()


async def test_a_late_error_to_the_probe_leaves_it_to_the_handshake() -> None:
    async with fake_server() as fake:
        client = Client(fake.stream, probe_wait=0.01)
        opening = await connecting(client)
        probe = await fake.expect("server/discover")
        handshake = await fake.expect("initialize")
        await fake.error(probe, -32601)
        await fake.initialized(handshake, "2025-11-25")
        await opening
        assert client.revision.name == "2025-11-25"
        await client.close()


async def test_a_refused_handshake_leaves_it_to_the_late_probe() -> None:
    clock = Clock()
    async with fake_server() as fake:
        client = Client(fake.stream)
        opening = await connecting(client)
        probe = await fake.expect("server/discover")
        await clock.advance(PROBE_WAIT)
        await fake.error(await fake.expect("initialize"), -32601)
        await clock.advance(PROBE_WAIT - 1)
        await fake.discovered(probe)
        await opening
        assert client.revision.name == MODERN
        await client.close()


async def test_the_probe_is_waited_for_before_anything_else_is_sent() -> None:
    clock = Clock()
    async with fake_server() as fake:
        client = Client(fake.stream)
        opening = await connecting(client)
        probe = await fake.expect("server/discover")
        await clock.advance(PROBE_WAIT - 1)
        assert fake.inbox == []
        await fake.discovered(probe)
        await opening
        await client.close()
        assert fake.methods == ["server/discover"]


async def test_silence_to_the_probe_and_a_refused_handshake_fail_without_waiting_for_the_deadline() -> None:
    async with fake_server() as fake:
        opening = await connecting(Client(fake.stream, probe_wait=0.01, connect_timeout=LONG))
        await fake.expect("server/discover")
        await fake.error(await fake.expect("initialize"), -32601, "nothing is known")
        with pytest.raises(ConnectionFailed, match="nothing is known"):
            await opening


# --------------------------------------------------------------------------------------------------- initialize


@pytest.mark.parametrize("offered", ["1900-01-01", MODERN, "", "2025-13-01"])
async def test_a_revision_that_cannot_be_opened_is_named_with_those_that_can(offered: str) -> None:
    async with fake_server() as fake:
        opening = await connecting(Client(fake.stream))
        await fake.error(await fake.expect("server/discover"), -32601)
        request = await fake.expect("initialize")
        await fake.result(request, {"protocolVersion": offered, "capabilities": {}, "serverInfo": INFO})
        with pytest.raises(ConnectionFailed, match=f"offers revision '{offered}'.*2025-11-25"):
            await opening
        await fake.closed()
        assert fake.methods[-1] == "initialize"


@pytest.mark.parametrize("older", HANDSHAKE[:-1])
async def test_an_older_revision_that_the_server_offers_is_taken(older: str) -> None:
    async with fake_server() as fake:
        client = Client(fake.stream)
        opening = await connecting(client)
        await fake.error(await fake.expect("server/discover"), -32601)
        request = await fake.expect("initialize")
        assert request["params"]["protocolVersion"] == "2025-11-25"
        await fake.initialized(request, older)
        await opening
        assert client.revision.name == older
        await client.close()


async def test_a_server_that_refuses_an_unknown_version_is_asked_for_one_that_it_lists() -> None:
    async with fake_server() as fake:
        client = Client(fake.stream)
        opening = await connecting(client)
        await fake.error(await fake.expect("server/discover"), -32601)
        data = {"supported": ["2024-11-05", "2025-03-26"], "requested": "2025-11-25"}
        await fake.error(await fake.expect("initialize"), -32602, "Unsupported protocol version", data)
        request = await fake.expect("initialize")
        assert request["params"]["protocolVersion"] == "2025-03-26"
        await fake.initialized(request, "2025-03-26")
        await opening
        assert client.revision.name == "2025-03-26"
        await client.close()


async def test_a_server_that_refuses_every_version_is_asked_twice_at_most() -> None:
    async with fake_server() as fake:
        opening = await connecting(Client(fake.stream))
        await fake.error(await fake.expect("server/discover"), -32601)
        for _ in range(2):
            await fake.error(await fake.expect("initialize"), -32602, "no", {"supported": ["2024-11-05"]})
        with pytest.raises(ConnectionFailed, match="it offers 2024-11-05"):
            await opening


async def test_an_error_to_initialize_is_what_the_user_reads() -> None:
    async with fake_server() as fake:
        opening = await connecting(Client(fake.stream, revision="2025-11-25"))
        await fake.error(await fake.expect("initialize"), -32603, "the licence has expired")
        with pytest.raises(ConnectionFailed, match="the licence has expired"):
            await opening
        await fake.closed()


GARBAGE: dict[str, Any] = {
    "nothing": {},
    "no object": 5,
    "null": None,
    "a number as version": {"protocolVersion": 20250618, "capabilities": {}, "serverInfo": INFO},
    "no server info": {"protocolVersion": "2025-11-25", "capabilities": {}},
    "capabilities that are a list": {"protocolVersion": "2025-11-25", "capabilities": [], "serverInfo": INFO},
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
async def test_garbage_as_the_answer_to_initialize_fails_with_words(garbage: Any) -> None:
    async with fake_server() as fake:
        opening = await connecting(Client(fake.stream, revision="2025-11-25"))
        await fake.result(await fake.expect("initialize"), garbage)
        with pytest.raises(ConnectionFailed, match="answer to initialize is invalid"):
            await opening
        await fake.closed()


async def test_a_result_and_an_error_to_initialize_fail_at_once() -> None:
    async with fake_server() as fake:
        opening = await connecting(Client(fake.stream, revision="2025-11-25", connect_timeout=LONG))
        request = await fake.expect("initialize")
        await fake.send({"jsonrpc": "2.0", "id": request["id"], "result": {}, "error": {"code": 1, "message": "x"}})
        with pytest.raises(ConnectionFailed, match="never both"):
            await opening


@pytest.mark.parametrize("pinned", HANDSHAKE)
async def test_another_revision_than_the_pinned_one_is_refused(pinned: str) -> None:
    offered = "2024-11-05" if pinned != "2024-11-05" else "2025-03-26"
    async with fake_server() as fake:
        opening = await connecting(Client(fake.stream, revision=pinned))
        request = await fake.expect("initialize")
        assert request["params"]["protocolVersion"] == pinned
        await fake.result(request, {"protocolVersion": offered, "capabilities": {}, "serverInfo": INFO})
        with pytest.raises(ConnectionFailed, match=f"offers revision '{offered}'; .* asked for {pinned}"):
            await opening


@pytest.mark.parametrize("code", [-32601, -32602, -32000])
async def test_a_pinned_per_request_revision_does_not_fall_back(code: int) -> None:
    async with fake_server() as fake:
        opening = await connecting(Client(fake.stream, revision=MODERN))
        await fake.error(await fake.expect("server/discover"), code, "what?")
        with pytest.raises(ConnectionFailed, match=f"does not speak {MODERN}: what"):
            await opening
        assert fake.methods == ["server/discover"]


async def test_a_server_of_the_per_request_era_tells_a_pinned_client_what_it_offers() -> None:
    async with fake_server() as fake:
        opening = await connecting(Client(fake.stream, revision="2025-11-25"))
        await fake.error(await fake.expect("initialize"), -32022, "no handshake here", {"supported": [MODERN]})
        with pytest.raises(ConnectionFailed, match=f"no handshake here.*it offers {MODERN}"):
            await opening


async def test_what_a_client_can_do_and_is_called_is_told_in_both_eras() -> None:
    declared = types.ClientCapabilities(roots=types.RootsCapability(list_changed=True))
    for revision in ("2025-11-25", MODERN):
        async with fake_server() as fake:
            client = Client(fake.stream, revision=revision, capabilities=declared, name="me", version="3", title="Me")
            opening = await connecting(client)
            request = await fake.next()
            if revision == MODERN:
                meta = request["params"]["_meta"]
                assert meta["io.modelcontextprotocol/clientInfo"] == {"name": "me", "version": "3", "title": "Me"}
                assert meta["io.modelcontextprotocol/clientCapabilities"] == {"roots": {}}
                await fake.discovered(request)
            else:
                assert request["params"]["clientInfo"] == {"name": "me", "version": "3", "title": "Me"}
                assert request["params"]["capabilities"] == {"roots": {"listChanged": True}}
                await fake.initialized(request, revision)
            await opening
            await client.close()


# --------------------------------------------------------------------------------------------------- deadlines, ends


async def test_a_server_that_says_nothing_is_given_up_and_the_setting_named() -> None:
    async with fake_server() as fake:
        client = Client(fake.stream, probe_wait=0.01, connect_timeout=0.05)
        with pytest.raises(RequestTimeout, match="server/discover.*nothing was heard.*connect_timeout=") as late:
            await client.connect()
        assert late.value.setting == "connect_timeout"
        await fake.closed()
        # "The initialize request MUST NOT be cancelled by clients."
        assert fake.methods == ["server/discover", "initialize"]


async def test_the_error_of_a_late_opening_tells_what_was_heard() -> None:
    clock = Clock()
    async with fake_server() as fake:
        opening = await connecting(Client(fake.stream, revision="2025-11-25"))
        await fake.expect("initialize")
        await fake.send(b"Server listening on port 3000")
        await fake.send({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "bad handshake"}})
        await fake.notify("notifications/message", {"level": "info", "data": "warming up"})
        await clock.advance(31)
        with pytest.raises(RequestTimeout) as late:
            await opening
        text = str(late.value)
        assert "bad handshake (-32600)" in text
        assert "1 notification (notifications/message)" in text
        assert "Server listening on port 3000" in text


@pytest.mark.parametrize("after", ["server/discover", "initialize"])
async def test_a_server_that_leaves_while_it_is_opened_is_lost(after: str) -> None:
    async with fake_server() as fake:
        opening = await connecting(Client(fake.stream))
        request = await fake.expect("server/discover")
        if after == "initialize":
            await fake.error(request, -32601)
            await fake.expect("initialize")
        await fake.hang_up()
        with pytest.raises(
            ConnectionLost, match=f"while the conversation was being opened, .* before {after} was answered"
        ):
            await opening


@pytest.mark.parametrize("stray", [True, False])
async def test_a_server_that_leaves_during_both_attempts_leaves_no_unheard_failure(
    stray: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with fake_server() as fake:
        opening = await connecting(Client(fake.stream, probe_wait=LONG if stray else 0.01))
        await fake.expect("server/discover")
        if stray:
            await fake.send({"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "x"}})
        await fake.expect("initialize")
        await fake.hang_up()
        with pytest.raises(ConnectionLost):
            await opening
    gc.collect()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_client_that_was_not_connected_says_how_to_connect() -> None:
    async with fake_server() as fake:
        client = Client(fake.stream)
        with pytest.raises(ConnectionFailed, match="async with client"):
            await client.list_tools()
        assert not client.connected
        assert client.stderr == ""
        assert client.exit_code is None
        await client.close()


# --------------------------------------------------------------------------------------------------- processes


async def test_a_server_that_dies_of_the_probe_is_started_again_for_the_handshake() -> None:
    script = """
request = read()
if request["method"] != "initialize":
    sys.exit(f"unknown method {request['method']}")
opened(request)
serve()
"""
    async with Client(child(script)) as client:
        assert client.revision.name == "2025-11-25"
        assert await client.call("anything") == "done"


async def test_a_server_that_exits_at_start_gives_its_exit_code_and_stderr() -> None:
    client = Client(child('complain("no such database"); sys.exit(3)'))
    with pytest.raises(ServerExited, match="exited with code 3[^$]*no such database") as exited:
        await client.connect()
    assert exited.value.exit_code == 3
    assert "no such database" in exited.value.stderr
    assert client.exit_code == 3
    assert "no such database" in client.stderr


async def test_a_server_that_exits_before_it_reads_anything_is_an_exit_too() -> None:
    for _ in range(5):
        with pytest.raises(ServerExited, match="code 1"):
            await Client(["false"], revision="2025-11-25").connect()


async def test_a_server_that_is_killed_names_the_signal() -> None:
    with pytest.raises(ServerExited, match="signal 9") as exited:
        await Client(child("os.kill(os.getpid(), 9)"), revision=MODERN).connect()
    assert exited.value.exit_code == -9


async def test_a_pinned_per_request_server_that_dies_is_not_started_again(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    script = f'open({str(starts)!r}, "a").write("x"); sys.exit(4)'
    with pytest.raises(ServerExited):
        await Client(child(script), revision=MODERN).connect()
    assert starts.read_text() == "x"


async def test_a_failed_start_is_no_proof_of_the_era(tmp_path: Path) -> None:
    script = """
if not os.path.exists(sys.argv[1]):
    sys.exit(1)
request = read()
assert request["method"] == "server/discover", request
result(request, resultType="complete", supportedVersions=["2026-07-28"], capabilities={}, ttlMs=0, cacheScope="private")
read()
"""
    licence = tmp_path / "licence"
    client = Client(child(script, str(licence)))
    with pytest.raises(ServerExited):
        await client.connect()
    licence.touch()
    await client.connect()
    assert client.revision.name == MODERN
    await client.close()


async def test_a_process_that_never_answers_is_ended_and_its_stderr_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "EOF_SECONDS", 0.05)
    clock = Clock()
    complained = asyncio.Event()
    command = child('complain("waiting for a licence"); read(); wait()')
    client = Client(command, revision="2025-11-25", stderr=lambda line: complained.set())
    opening = await connecting(client)
    await complained.wait()
    await clock.advance(31)
    with pytest.raises(RequestTimeout, match="waiting for a licence"):
        await opening
    assert client.exit_code is not None


async def test_banners_and_noise_on_stdout_do_not_keep_a_client_from_opening() -> None:
    script = r"""
write(b"Welcome to my server v1.2\n\n[INFO] ready {\n\xff\xfe bad\n{}\n[]\n\"text\"\n42\nnull\n")
opened()
write(b"  \r\n> ")
write(b"\n")
serve()
"""
    async with Client(child(script)) as client:
        assert await client.call("x") == "done"
