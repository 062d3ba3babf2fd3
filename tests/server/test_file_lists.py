"""The list of resources where there are files: true whenever it is asked for, and paged like any other."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from modelwire import ConfigError, Server
from modelwire.server.directories import Directory
from tests.wire import MODERN, PATIENCE, Talk, every_revision, session_talk


def serving(*folders: Path, **options: Any) -> Server:
    server = Server("s", **options)
    for folder in folders:
        server.add_directory(f"{folder.name}:", folder)
    return server


def fill(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text(name)
    return folder


async def page(talk: Talk, cursor: str | None = None) -> tuple[list[str], str | None]:
    result = await talk.result("resources/list", {} if cursor is None else {"cursor": cursor})
    return [item["uri"] for item in result["resources"]], result.get("nextCursor")


async def uris(talk: Talk) -> list[str]:
    return (await page(talk))[0]


async def text(talk: Talk, uri: str) -> str:
    return (await talk.result("resources/read", {"uri": uri}))["contents"][0]["text"]


# --------------------------------------------------------------------------------------------------- truth


@every_revision
async def test_a_list_is_that_of_the_disk_each_time_it_is_asked_for(revision: str, tmp_path: Path) -> None:
    folder = fill(tmp_path / "d", "a", "b", "c")
    async with session_talk(serving(folder), revision) as talk:
        assert await uris(talk) == ["d:a", "d:b", "d:c"]
        (folder / "b").unlink()
        fill(folder, "0", "z")
        assert await uris(talk) == ["d:a", "d:c", "d:0", "d:z"]  # what is there already keeps its place
        fill(folder / "sub", "x")
        (folder / "a").rename(folder / "sub" / "a")
        assert await uris(talk) == ["d:c", "d:0", "d:z", "d:sub/a", "d:sub/x"]


@pytest.mark.parametrize("revision", ["2025-06-18", MODERN])
async def test_sizes_and_times_are_those_of_the_disk_and_are_no_news_to_a_list(revision: str, tmp_path: Path) -> None:
    folder = fill(tmp_path / "d", "a", "b")
    async with session_talk(serving(folder), revision) as talk:
        await uris(talk)
        (folder / "a").write_text("longer")
        listed = (await talk.result("resources/list"))["resources"]
        assert [(item["uri"], item["size"]) for item in listed] == [("d:a", 6), ("d:b", 1)]
        await talk.settle()
        assert talk.heard("notifications/resources/list_changed") == []


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25"])
async def test_what_a_look_finds_is_told_to_whoever_follows_the_list(revision: str, tmp_path: Path) -> None:
    folder = fill(tmp_path / "d", "a")
    server = serving(folder)
    async with session_talk(server, revision) as one, session_talk(server, revision) as other:
        await uris(one)
        assert await other.quiet()
        fill(folder, "b")
        await uris(one)
        await other.hear("notifications/resources/list_changed")


async def test_a_directory_that_goes_and_comes_back_empties_and_fills_the_list(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = fill(tmp_path / "d", "a")
    server = serving(folder, fill(tmp_path / "e", "x"))
    async with session_talk(server, "2025-11-25") as talk:
        folder.rename(tmp_path / "gone")
        for _ in range(2):
            assert await uris(talk) == ["e:x"]
        assert (await talk.error("resources/read", {"uri": "d:a"}))["code"] == -32002
        (tmp_path / "gone").rename(folder)
        assert await uris(talk) == ["e:x", "d:a"]
    assert caplog.text.count("cannot be read, and nothing in it is listed") == 1


# --------------------------------------------------------------------------------------------------- pages


@every_revision
async def test_pages_are_followed_while_files_come_and_go(revision: str, tmp_path: Path) -> None:
    folder = fill(tmp_path / "d", *"abcdef")
    async with session_talk(serving(folder, page_size=2), revision) as talk:
        first, cursor = await page(talk)
        assert first == ["d:a", "d:b"]
        (folder / "b").unlink()
        (folder / "c").unlink()
        fill(folder, "A")
        # The walk goes on in the list that it began with; another client has begun a later one meanwhile.
        assert (await page(talk, cursor))[0] == ["d:c", "d:d"]
        assert (await page(talk))[0] == ["d:a", "d:d"]
        rest, cursor = await page(talk, cursor)
        assert rest == ["d:d", "d:e"]
        assert await page(talk, cursor) == (["d:f", "d:A"], None)


@every_revision
async def test_files_and_registered_resources_are_one_list(revision: str, tmp_path: Path) -> None:
    folder = fill(tmp_path / "d", "a", "b")
    server = Server("s", page_size=2)
    server.add_resource("x:first", lambda: "first", name="first")
    server.add_directory("d:", folder)
    server.add_resource("x:last", lambda: "last", name="last")
    async with session_talk(server, revision) as talk:
        first, cursor = await page(talk)
        assert (first, (await page(talk, cursor))[0]) == (["x:first", "d:a"], ["d:b", "x:last"])
        assert (await talk.error("resources/list", {"cursor": "garbage"}))["code"] == -32602


async def test_a_page_is_encoded_anew_only_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serving(fill(tmp_path / "d", "a"))
    async with session_talk(server, "2025-11-25") as talk:
        await uris(talk)
        calls: list[Any] = []
        original = server.features.resources.fixed._result
        monkeypatch.setattr(
            server.features.resources.fixed, "_result", lambda *given: calls.append(given) or original(*given)
        )
        await uris(talk)
        assert calls == []
        fill(tmp_path / "d", "b")
        await uris(talk)
        assert len(calls) == 1


# --------------------------------------------------------------------------------------------------- one look for many


@pytest.fixture
def slow_looks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Looks at the disk that wait until they may go on."""

    class Looks:
        def __init__(self) -> None:
            self.count = 0
            self.begun = threading.Semaphore(0)
            self.go = threading.Semaphore(0)
            self.armed = False

    looks = Looks()
    original = Directory.scan

    def scan(self: Directory) -> Any:
        if not looks.armed:
            return original(self)
        looks.count += 1
        found = original(self)
        looks.begun.release()
        assert looks.go.acquire(timeout=PATIENCE)
        return found

    monkeypatch.setattr(Directory, "scan", scan)
    return looks


async def test_lists_that_are_asked_for_during_a_look_share_the_next_one(tmp_path: Path, slow_looks: Any) -> None:
    folder = fill(tmp_path / "d", "a")
    server = serving(folder)
    async with session_talk(server, "2025-11-25") as talk:
        slow_looks.armed = True
        early = await talk.begin("resources/list")
        await asyncio.to_thread(slow_looks.begun.acquire)
        fill(folder, "b")  # too late for the look that runs
        late = [await talk.begin("resources/list") for _ in range(20)]
        await talk.settle()
        slow_looks.go.release()
        await asyncio.to_thread(slow_looks.begun.acquire)
        slow_looks.go.release()
        assert [item["uri"] for item in (await early.result())["resources"]] in (["d:a"], ["d:a", "d:b"])
        for request in late:
            assert [item["uri"] for item in (await request.result())["resources"]] == ["d:a", "d:b"]
        assert slow_looks.count == 2


async def test_a_look_that_fails_costs_only_who_asked_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = fill(tmp_path / "d", "a")
    async with session_talk(serving(folder), "2025-11-25") as talk:
        with monkeypatch.context() as broken:
            broken.setattr(Directory, "scan", lambda self: 1 / 0)
            assert (await talk.error("resources/list"))["code"] == -32603
        fill(folder, "b")
        assert await uris(talk) == ["d:a", "d:b"]
    assert "ZeroDivisionError" in caplog.text


async def test_a_look_that_takes_long_holds_up_nobody_else(tmp_path: Path, slow_looks: Any) -> None:
    server = serving(fill(tmp_path / "d", "a"))

    @server.tool
    async def quick() -> str:
        return "quick"

    async with session_talk(server, "2025-11-25") as talk:
        slow_looks.armed = True
        listing = await talk.begin("resources/list")
        await asyncio.to_thread(slow_looks.begun.acquire)
        assert await talk.text("quick") == "quick"
        assert await text(talk, "d:a") == "a"
        slow_looks.go.release()
        await listing.result()


# --------------------------------------------------------------------------------------------------- who has a URI


async def test_registered_resources_go_before_files_and_files_before_templates(tmp_path: Path) -> None:
    server = Server("s")
    server.add_resource("d:a", lambda: "registered", name="a")
    server.add_directory("d:", fill(tmp_path / "d", "a", "b"))
    server.add_resource("d:{+rest}", lambda rest: f"template {rest}", name="t")
    async with session_talk(server, "2025-11-25") as talk:
        assert await uris(talk) == ["d:a", "d:b"]
        assert [await text(talk, uri) for uri in ("d:a", "d:b", "d:c")] == ["registered", "b", "template c"]


async def test_of_two_directories_the_first_that_has_a_file_gives_it(tmp_path: Path) -> None:
    server = Server("s")
    server.add_directory("d://", fill(tmp_path / "one", "a"))
    server.add_directory("d://sub/", fill(tmp_path / "two", "a", "b"))
    (tmp_path / "one" / "sub").mkdir()
    (tmp_path / "one" / "sub" / "a").write_text("of the first")
    async with session_talk(server, "2025-11-25") as talk:
        assert sorted(await uris(talk)) == ["d://a", "d://sub/a", "d://sub/b"]
        assert await text(talk, "d://sub/a") == "of the first"
        assert await text(talk, "d://sub/b") == "b"


def test_what_is_taken_is_refused(tmp_path: Path) -> None:
    folder = fill(tmp_path / "d", "a")
    server = serving(folder)
    server.add_file("x:file", folder / "a")
    for register in [
        lambda: server.add_directory("d:", folder),
        lambda: server.add_file("d:a", folder / "a"),
        lambda: server.add_file("x:file", folder / "a"),
        lambda: server.add_resource("d:a", lambda: "", name="n"),
        lambda: server.add_resource("x:file", lambda: "", name="n"),
    ]:
        with pytest.raises(ConfigError, match="there is already a resource"):
            register()


@every_revision
async def test_directories_and_files_come_and_go_at_run_time(revision: str, tmp_path: Path) -> None:
    server = Server("s", declare=["resources"])
    folder = fill(tmp_path / "d", "a")
    async with session_talk(server, revision) as talk:
        assert await uris(talk) == []
        server.add_directory("d:", folder)
        server.add_file("x:a", folder / "a")
        assert await uris(talk) == ["d:a", "x:a"]
        if revision != MODERN:
            await talk.hear("notifications/resources/list_changed")
        with pytest.raises(ConfigError, match="remove the directory"):
            server.remove_resource("d:a")
        server.remove_resource("d:")
        assert await uris(talk) == ["x:a"]
        assert "error" in await talk.request("resources/read", {"uri": "d:a"})
        server.remove_resource("x:a")
        assert await uris(talk) == []
        with pytest.raises(ConfigError):
            server.remove_resource("d:")


async def test_a_server_whose_files_are_gone_has_no_resources(tmp_path: Path) -> None:
    server = serving(fill(tmp_path / "d", "a"))
    server.remove_resource("d:")
    async with session_talk(server, "2025-11-25", opened=False) as talk:
        assert "resources" not in (await talk.open())["capabilities"]


async def test_a_method_of_the_users_own_stays_in_place(tmp_path: Path) -> None:
    server = Server("s")
    server.method("resources/list")(lambda: {"resources": []})
    server.add_directory("d:", fill(tmp_path / "d", "a"))
    async with session_talk(server, "2025-11-25") as talk:
        assert await uris(talk) == []


async def test_the_tutorials_announcement_has_the_files_too(tmp_path: Path) -> None:
    folder = fill(tmp_path / "d", "a")
    async with session_talk(serving(folder, announce_lists=True), "2025-06-18") as talk:
        assert [item["uri"] for item in (await talk.hear("resources/list"))["resources"]] == ["d:a"]


async def test_a_walk_over_many_pages_finds_every_file_once(tmp_path: Path) -> None:
    folder = fill(tmp_path / "d", *(f"{number:03}" for number in range(600)))
    async with session_talk(serving(folder, page_size=50), "2025-11-25") as talk:
        found, cursor = await page(talk)
        while cursor is not None:
            more, cursor = await page(talk, cursor)
            found += more
        assert found == [f"d:{number:03}" for number in range(600)]
        assert "error" in await talk.request("resources/read", {"uri": "d:600"})
