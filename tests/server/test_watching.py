"""Changes on the disk become notifications, while the server serves."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from modelwire import ConfigError, Server
from modelwire.server import watching
from tests.wire import MODERN, StreamTalk, every_revision, stream_talk

NEWEST_OF_EACH_ERA = pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
LIST = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("a")
    (folder / "sub" / "b.md").write_text("b")
    return folder


@contextlib.asynccontextmanager
async def following(server: Server, revision: str, *uris: str) -> AsyncIterator[StreamTalk]:
    """A conversation with a server that serves, whose client follows the list and these resources."""
    async with stream_talk(server, revision) as talk:
        if revision == MODERN:
            wanted = {"resourcesListChanged": True, "resourceSubscriptions": list(uris)}
            await talk.begin("subscriptions/listen", {"notifications": wanted})
            await talk.hear("notifications/subscriptions/acknowledged")
        for uri in uris if revision != MODERN else ():
            await talk.result("resources/subscribe", {"uri": uri})
        yield talk


def watched(folder: Path, **options: Any) -> Server:
    server = Server("s")
    server.add_directory("docs://", folder, watch=True, **options)
    return server


@every_revision
async def test_a_file_that_changes_is_told_to_whoever_follows_it(revision: str, docs: Path) -> None:
    async with following(watched(docs), revision, "docs://a.md", "docs://sub/b.md") as talk:
        (docs / "a.md").write_text("changed")
        await talk.hear(UPDATED, uri="docs://a.md")
        (docs / "sub" / "b.md").write_text("changed")
        await talk.hear(UPDATED, uri="docs://sub/b.md")
        assert talk.heard(LIST) == []


@every_revision
async def test_files_that_come_and_go_change_the_list(revision: str, docs: Path) -> None:
    async with following(watched(docs), revision) as talk:
        (docs / "sub" / "new file.md").write_text("n")
        await talk.hear(LIST)
        listed = (await talk.result("resources/list"))["resources"]
        assert [item["uri"] for item in listed] == ["docs://a.md", "docs://sub/b.md", "docs://sub/new%20file.md"]
        (docs / "a.md").unlink()
        await talk.hear(LIST)
        listed = (await talk.result("resources/list"))["resources"]
        assert [item["uri"] for item in listed] == ["docs://sub/b.md", "docs://sub/new%20file.md"]


@NEWEST_OF_EACH_ERA
async def test_whole_folders_come_and_go(revision: str, docs: Path, tmp_path: Path) -> None:
    (tmp_path / "other" / "deep").mkdir(parents=True)
    (tmp_path / "other" / "deep" / "c.md").write_text("c")
    gone, came = "docs://sub/b.md", "docs://new/deep/c.md"
    async with following(watched(docs), revision, gone, came) as talk:
        (tmp_path / "other").rename(docs / "new")
        await talk.hear(UPDATED, uri=came)
        shutil.rmtree(docs / "sub")
        await talk.hear(UPDATED, uri=gone)
        (docs / "new" / "deep" / "c.md").write_text("changed")
        await talk.hear(UPDATED, uri=came)
        (docs / "new").rename(tmp_path / "away")
        await talk.hear(UPDATED, uri=came)
        assert [item["uri"] for item in (await talk.result("resources/list"))["resources"]] == ["docs://a.md"]


@NEWEST_OF_EACH_ERA
async def test_a_file_that_is_replaced_as_editors_do_it_is_changed_and_nothing_else(revision: str, docs: Path) -> None:
    async with following(watched(docs), revision, "docs://a.md", "docs://.a.swp", "docs://z.md") as talk:
        (docs / ".a.swp").write_text("better")
        (docs / ".a.swp").rename(docs / "a.md")
        await talk.hear(UPDATED, uri="docs://a.md")
        (docs / "z.md").write_text("the end")
        await talk.hear(UPDATED, uri="docs://z.md")
        assert talk.heard(UPDATED) == []
        assert len(talk.heard(LIST)) == 1  # by the last one


@NEWEST_OF_EACH_ERA
async def test_a_file_that_was_not_there_may_be_followed(revision: str, docs: Path) -> None:
    async with following(watched(docs), revision, "docs://later.md") as talk:
        (docs / "later.md").write_text("x")
        await talk.hear(UPDATED, uri="docs://later.md")


@NEWEST_OF_EACH_ERA
async def test_what_is_not_served_is_no_news(revision: str, docs: Path) -> None:
    (docs / ".git").mkdir()
    uris = ["docs://.git/x", "docs://.hidden", "docs://a.txt", "docs://a.md", "docs://sub/.h.md"]
    async with following(watched(docs, pattern="**/*.md"), revision, *uris) as talk:
        for name in [".git/x", ".hidden", "a.txt", "sub/.h.md"]:
            (docs / name).write_text("x")
        await talk.result("resources/read", {"uri": "docs://a.md"})  # reading is no change
        await talk.result("resources/list")
        (docs / "sub" / "b.md").touch()
        (docs / "a.md").write_text("changed")
        await talk.hear(UPDATED, uri="docs://a.md")
        assert await talk.quiet()


@NEWEST_OF_EACH_ERA
async def test_many_changes_at_once_are_few_notifications(revision: str, docs: Path) -> None:
    async with following(watched(docs), revision, "docs://a.md", "docs://sub/299.md") as talk:
        for number in range(300):
            (docs / "sub" / f"{number}.md").write_text("x")
            with (docs / "a.md").open("a") as file:
                file.write("x")
        await talk.hear(UPDATED, uri="docs://sub/299.md")
        await talk.settle()
        assert len(talk.heard(UPDATED)) < 100
        assert len(talk.heard(LIST)) < 100


async def test_watching_ends_with_the_serving_and_begins_again(docs: Path) -> None:
    server = watched(docs)
    for text in ("one", "two"):
        async with following(server, "2025-11-25", "docs://a.md") as talk:
            (docs / "a.md").write_text(text)
            await talk.hear(UPDATED, uri="docs://a.md")


async def test_a_directory_that_was_removed_is_no_news(docs: Path, tmp_path: Path) -> None:
    server = watched(docs)
    (tmp_path / "other").mkdir()
    server.add_directory("other://", tmp_path / "other", watch=True)
    async with following(server, "2025-11-25", "docs://a.md", "other://b") as talk:
        server.remove_resource("docs://")
        await talk.hear(LIST)
        (docs / "a.md").write_text("changed")
        (tmp_path / "other" / "b").write_text("x")
        await talk.hear(UPDATED, uri="other://b")
        assert talk.heard(UPDATED) == []


async def test_a_directory_that_goes_away_empties_the_list(docs: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with following(watched(docs), "2025-11-25", "docs://a.md") as talk:
        shutil.rmtree(docs)
        await talk.hear(UPDATED, uri="docs://a.md")
        assert (await talk.result("resources/list"))["resources"] == []
    assert "nothing in it is listed" in caplog.text


async def test_names_that_are_no_utf_8_are_told_by_their_uri(docs: Path) -> None:
    async with following(watched(docs), "2025-11-25", "docs://caf%E9") as talk:
        (docs / os.fsdecode(b"caf\xe9")).write_text("x")
        await talk.hear(UPDATED, uri="docs://caf%E9")


async def test_a_look_that_fails_costs_only_that_piece_of_news(
    docs: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = watched(docs)
    failed = asyncio.Event()
    files = server.features.resources.files
    assert files is not None
    original = type(files)._look
    with monkeypatch.context() as broken:

        def fail(self: Any, known: int) -> Any:
            loop.call_soon_threadsafe(failed.set)
            return 1 / 0

        loop = asyncio.get_running_loop()
        async with following(server, "2025-11-25", "docs://a.md") as talk:
            broken.setattr(type(files), "_look", fail)
            (docs / "new.md").write_text("x")
            await failed.wait()
            broken.setattr(type(files), "_look", original)
            (docs / "a.md").write_text("changed")
            await talk.hear(UPDATED, uri="docs://a.md")
    assert "clients were not told of a change" in caplog.text


async def test_a_server_whose_system_can_watch_no_more_serves_and_says_so(
    docs: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(path: Path, hear: Any) -> Any:
        raise OSError(errno.ENOSPC, "inotify watch limit reached")

    monkeypatch.setattr(watching, "_observed", refuse)
    async with following(watched(docs), "2025-11-25") as talk:
        (docs / "new.md").write_text("x")
        assert len((await talk.result("resources/list"))["resources"]) == 3
    assert "inotify watch limit reached" in caplog.text
    assert "max_user_watches" in caplog.text


def test_a_missing_library_is_named_at_registration(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "watchdog"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "watchdog", None)
    server = Server("s")
    with pytest.raises(ConfigError, match=r'pip install "modelwire\[watch\]"'):
        server.add_directory("docs://", docs, watch=True)
    server.add_directory("docs://", docs)
