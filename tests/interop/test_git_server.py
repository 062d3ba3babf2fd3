"""A modelwire client of `mcp-server-git`, on a repository that each run makes: twelve tools, text in and text out."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from modelwire import Client, InvalidParams, ToolError
from tests.interop.peers import LEGACY, clients_of, connected, needs_python_peers, python_server, shared_loop

pytestmark = [needs_python_peers, shared_loop]
IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}
client = clients_of(python_server("git"), None, LEGACY, env=IDENTITY)


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Path]:
    """A repository with one commit, on the branch `main`."""
    folder = tmp_path / "a repository"
    folder.mkdir()
    (folder / "poem.txt").write_text("roses are red\n")
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "a line"]):
        subprocess.run(["git", *arguments], cwd=folder, env={**os.environ, **IDENTITY}, check=True)
    return folder


async def test_every_tool_says_whether_it_changes_anything(client: Client) -> None:
    tools = await client.list_tools()
    changing = {"git_add", "git_commit", "git_reset", "git_create_branch", "git_checkout"}
    assert len(tools) == 12
    assert {tool.name for tool in tools if tool.annotations and not tool.annotations.read_only_hint} == changing


async def test_a_change_is_seen_staged_committed_and_shown(client: Client, repository: Path) -> None:
    repo = {"repo_path": str(repository)}

    async def git(tool: str, **arguments: object) -> str:
        return await client.call(f"git_{tool}", {**repo, **arguments}, returns=str)

    (repository / "poem.txt").write_text("roses are red\nviolets are blue\n")
    assert "modified:   poem.txt" in await git("status")
    assert "+violets are blue" in await git("diff_unstaged")
    assert "+violets are blue" in await git("diff", target="main", context_lines=0)
    assert await git("add", files=["poem.txt"]) == "Files staged successfully"
    assert "+violets are blue" in await git("diff_staged")
    assert await git("reset") == "All staged changes reset"
    assert await git("diff_staged") == "Staged changes:\n"
    await git("add", files=["."])
    assert "committed successfully" in await git("commit", message="日本 and violets")
    log = await git("log", max_count=1)
    assert "日本 and violets" in log
    assert "Ada" in log
    assert "a line" not in log
    assert "+violets are blue" in await git("show", revision="HEAD")
    assert await git("create_branch", branch_name="draft") == "Created branch 'draft' from 'main'"
    assert await git("checkout", branch_name="draft") == "Switched to branch 'draft'"
    assert "* draft" in await git("branch", branch_type="local")


async def test_what_git_refuses_is_a_tool_error_in_its_words(client: Client, repository: Path) -> None:
    repo = {"repo_path": str(repository)}
    with pytest.raises(ToolError, match="No changes staged for commit"):
        await client.call("git_commit", {**repo, "message": "nothing"})
    with pytest.raises(ToolError, match="cannot start with '-'"):
        await client.call("git_checkout", {**repo, "branch_name": "--force"})
    with pytest.raises(ToolError, match="max_count"):
        await client.call("git_log", {**repo, "max_count": "many"})
    with pytest.raises(ToolError):
        await client.call("git_status", {"repo_path": str(repository / "nowhere")})
    with pytest.raises(InvalidParams, match="Unknown tool: git_push"):
        await client.call("git_push", repo)


async def test_a_server_that_serves_one_repository_refuses_others(repository: Path) -> None:
    async with connected(python_server("git", "--repository", str(repository)), env=IDENTITY) as client:
        assert "nothing to commit" in await client.call("git_status", {"repo_path": str(repository)})
        with pytest.raises(ToolError, match="outside the allowed repository"):
            await client.call("git_status", {"repo_path": str(repository.parent)})
