"""A modelwire client of the npm server "filesystem", on a folder that each test makes."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from modelwire import Client, ServerExited, ToolError
from modelwire.protocol import types as t
from tests.interop.peers import PATIENCE, connected, needs_node_peers, node_server

pytestmark = needs_node_peers
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPj/HwADAgH/p9tHIAAAAABJRU5ErkJggg=="
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "shared folder"
    (root / "notes").mkdir(parents=True)
    (root / "poem.txt").write_text("roses\nviolets\nsugar\n")
    (root / "notes" / "todo.md").write_text("- tea\n")
    (root / "dot.png").write_bytes(PIXEL)
    (root / "sound.ogg").write_bytes(b"OggS")
    (root / "raw.bin").write_bytes(b"\x00\xff")
    return root


@pytest_asyncio.fixture
async def client(folder: Path) -> AsyncIterator[Client]:
    async with connected(node_server("filesystem", str(folder))) as client:
        yield client


async def content(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool and return what nearly all of them return: a text, as structured content."""
    return (await client.call(tool, arguments, returns=dict[str, str]))["content"]


async def test_files_are_read_whole_in_part_and_together(client: Client, folder: Path) -> None:
    poem = str(folder / "poem.txt")
    assert await content(client, "read_text_file", path=poem) == "roses\nviolets\nsugar\n"
    assert await content(client, "read_text_file", path=poem, head=1) == "roses"
    assert "sugar" in await content(client, "read_file", path=poem, tail=2)
    both = await content(client, "read_multiple_files", paths=[poem, str(folder / "none.txt")])
    assert "violets" in both
    assert "none.txt: Error" in both


async def test_pictures_sounds_and_other_files_come_as_their_kind_of_content(client: Client, folder: Path) -> None:
    async def read(name: str) -> Any:
        [block] = (await client.call_tool("read_media_file", {"path": str(folder / name)})).content
        return block

    image, audio, other = await read("dot.png"), await read("sound.ogg"), await read("raw.bin")
    assert isinstance(image, t.ImageContent)
    assert base64.b64decode(image.data) == PIXEL
    assert isinstance(audio, t.AudioContent)
    assert audio.mime_type == "audio/ogg"
    assert isinstance(other, t.EmbeddedResource)
    assert other.resource.uri == (folder / "raw.bin").as_uri()


async def test_files_are_written_edited_and_moved(client: Client, folder: Path) -> None:
    new = str(folder / "new" / "letter.txt")
    await content(client, "create_directory", path=str(folder / "new"))
    assert "Successfully wrote" in await content(client, "write_file", path=new, content="Dear 日本,\n")
    edits = [{"oldText": "Dear", "newText": "Hello"}]
    assert "+Hello 日本," in await content(client, "edit_file", path=new, edits=edits, dryRun=True)
    assert Path(new).read_text() == "Dear 日本,\n"
    await content(client, "edit_file", path=new, edits=edits)
    await content(client, "move_file", source=new, destination=str(folder / "sent.txt"))
    assert (folder / "sent.txt").read_text() == "Hello 日本,\n"


async def test_folders_are_listed_searched_and_described(client: Client, folder: Path) -> None:
    root = str(folder)
    assert "[DIR] notes" in await content(client, "list_directory", path=root)
    assert "Total: 4 files, 1 directories" in await content(client, "list_directory_with_sizes", path=root)
    tree = json.loads(await content(client, "directory_tree", path=root))
    assert [one["children"][0]["name"] for one in tree if one["type"] == "directory"] == ["todo.md"]
    assert await content(client, "search_files", path=root, pattern="**/*.md") == str(folder / "notes" / "todo.md")
    assert "size: 20" in await content(client, "get_file_info", path=str(folder / "poem.txt"))
    assert await content(client, "list_allowed_directories") == f"Allowed directories:\n{root}"


async def test_what_lies_outside_is_refused(client: Client, folder: Path) -> None:
    with pytest.raises(ToolError, match="Access denied"):
        await client.call("read_text_file", {"path": str(folder.parent / "secret.txt")})
    with pytest.raises(ToolError, match="ENOENT"):
        await client.call("read_text_file", {"path": str(folder / "none.txt")})
    with pytest.raises(ToolError, match="at paths"):
        await client.call("read_multiple_files", {"paths": []})


async def test_the_clients_roots_take_the_place_of_the_folders_it_was_started_with(folder: Path) -> None:
    asked = asyncio.Event()

    def roots(params: dict[str, Any]) -> dict[str, Any]:
        asked.set()
        return {"roots": [{"uri": (folder / "notes").as_uri()}]}

    async with connected(
        node_server("filesystem", str(folder)),
        capabilities=t.ClientCapabilities(roots=t.RootsCapability()),
        handlers={"roots/list": roots},
    ) as client:
        async with asyncio.timeout(PATIENCE):
            await asked.wait()
            # It takes the answer in while it answers other requests.
            while "notes" not in await content(client, "list_allowed_directories"):
                pass
        with pytest.raises(ToolError, match="Access denied"):
            await client.call("read_text_file", {"path": str(folder / "poem.txt")})


async def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(ServerExited, match="None of the specified directories are accessible") as caught:
        async with Client(node_server("filesystem", str(tmp_path / "nowhere"))):
            pass
    assert caught.value.exit_code == 1
