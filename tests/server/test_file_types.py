"""Media types by the names of files."""

from __future__ import annotations

import mimetypes

import pytest

from modelwire.server import file_types
from modelwire.server.file_types import is_text, media_type


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.md", "text/markdown"), ("A.MD", "text/markdown"), ("a.txt", "text/plain"), ("a.html", "text/html"),
        ("a.json", "application/json"), ("a.yaml", "application/yaml"), ("a.toml", "application/toml"),
        ("a.py", "text/x-python"), ("a.ts", "text/plain"), ("a.js", "text/javascript"), ("a.csv", "text/csv"),
        ("a.png", "image/png"), ("a.svg", "image/svg+xml"), ("a.mp3", "audio/mpeg"), ("a.pdf", "application/pdf"),
        ("a.mp4", "video/mp4"), ("a.gz", "application/gzip"), ("a.tar.gz", "application/gzip"),
        ("日本.csv", "text/csv"), ("a.b.md", "text/markdown"), ("README", "text/plain"), ("Makefile", "text/plain"),
        ("unknown", None), ("a.unknown", None), (".md", None), ("a.", None), ("", None),
    ],
)  # fmt: skip
def test_a_name_tells_the_type(name: str, kind: str | None) -> None:
    assert media_type(name) == kind


def test_the_systems_own_tables_change_nothing() -> None:
    mimetypes.add_type("text/x-surprise", ".unknown")
    try:
        file_types._known.cache_clear()
        assert media_type("a.unknown") is None
    finally:
        del mimetypes.types_map[".unknown"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("text/plain", True), ("text/x-anything", True), ("application/json", True), ("application/ld+json", True),
        ("image/svg+xml", True), ("TEXT/HTML; charset=utf-8", True), ("application/vnd.oai.openapi+yaml", True),
        ("image/png", False), ("application/octet-stream", False), ("application/pdf", False), ("texture/x", False),
    ],
)  # fmt: skip
def test_some_types_are_text(kind: str, text: bool) -> None:
    assert is_text(kind) is text
