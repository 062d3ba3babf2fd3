"""Patterns of paths."""

from __future__ import annotations

import time

import pytest

from modelwire import ConfigError
from modelwire.server.globs import Glob


@pytest.mark.parametrize(
    ("pattern", "fits", "does_not"),
    [
        ("**/*", ["a", "a/b", "a/b/c.md"], []),
        ("**", ["a", "a/b"], []),
        ("*", ["a", "a.md"], ["a/b"]),
        ("*.md", ["a.md", ".md"], ["a.txt", "sub/a.md", "a.MD"]),
        ("**/*.md", ["a.md", "sub/a.md", "x/y/a.md"], ["a.txt", "a.md/x"]),
        ("docs/**", ["docs/a", "docs/x/y"], ["a", "other/docs/a"]),
        ("docs/**/*.md", ["docs/a.md", "docs/x/y/a.md"], ["a.md", "docs/a.txt"]),
        ("**/docs/*", ["docs/a", "x/docs/a", "x/y/docs/a", "docs/docs/a"], ["docs/x/a", "docs"]),
        ("**/x/**/y/*", ["x/y/a", "a/x/b/y/c", "x/x/y/y/z"], ["x/a", "y/x/a"]),
        ("?.md", ["a.md", "é.md"], ["ab.md", ".md"]),
        ("[ab].md", ["a.md", "b.md"], ["c.md"]),
        ("[!a].md", ["b.md"], ["a.md"]),
        ("a+b (1).md", ["a+b (1).md"], ["aab (1)xmd"]),
        ("*/*", ["a/b"], ["a", "a/b/c"]),
        ("a**b", ["ab", "axxb"], ["a/b"]),
    ],
)
def test_a_path_fits_or_does_not(pattern: str, fits: list[str], does_not: list[str]) -> None:
    glob = Glob(pattern)
    assert [path for path in fits + does_not if glob.matches(path.split("/"))] == fits


def test_a_pattern_without_two_stars_says_how_deep_it_goes() -> None:
    assert [Glob(pattern).depth for pattern in ("*.md", "a/*/b", "**/*.md")] == [1, 3, None]


@pytest.mark.parametrize("pattern", ["", "/", "/etc/*", "../*", "a/../b", "./a", "a//b", "a/", "**/..", "."])
def test_a_pattern_that_fits_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="fits no file"):
        Glob(pattern)


def test_many_stars_take_no_longer_than_their_number_times_the_path() -> None:
    glob = Glob("/".join(["**", "a"] * 12 + ["b"]))

    def took(length: int) -> float:
        names = ["a"] * length + ["c"]
        begun = time.perf_counter()
        for _ in range(5):
            assert not glob.matches(names)
        return time.perf_counter() - begun

    took(50)
    assert min(took(800) for _ in range(3)) < 60 * max(min(took(100) for _ in range(3)), 1e-6)
