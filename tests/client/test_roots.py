"""Roots: what people give for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from modelwire import ConfigError, types
from modelwire.client.roots import listed, root_list


def test_paths_become_uris_and_uris_stay() -> None:
    given = ["/home/ada/a b", Path("/srv"), "file:///x", types.Root("file:///y", name="Y")]
    assert root_list(given) == [
        types.Root("file:///home/ada/a%20b", name="a b"),
        types.Root("file:///srv", name="srv"),
        types.Root("file:///x"),
        types.Root("file:///y", name="Y"),
    ]


def test_one_root_needs_no_list() -> None:
    assert [root.uri for root in root_list("/srv")] == ["file:///srv"]


def test_a_relative_path_is_made_absolute() -> None:
    assert root_list(".")[0].uri == Path.cwd().as_uri()


@pytest.mark.parametrize("given", [7, [7], "https://example.org", [types.Root("http://x")]])
def test_what_is_no_root_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError):
        root_list(given)


async def test_a_function_is_asked_each_time_and_may_be_async() -> None:
    places = ["/a"]

    async def later() -> list[str]:
        return places

    assert len((await listed(lambda: places)).roots) == 1
    places.append("/b")
    assert [root.uri for root in (await listed(later)).roots] == ["file:///a", "file:///b"]
