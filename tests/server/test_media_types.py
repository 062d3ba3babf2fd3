"""Kinds of images and sounds: by first bytes and by suffix."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from modelwire.server.media_types import named, recognised, sniffed


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        (b"GIF87a\1\0", "image/gif"),
        (b"GIF89a\1\0", "image/gif"),
        (b"RIFF\n\n\n\nWEBPVP8 ", "image/webp"),
        (b"\0\0\0\x1cftypavif", "image/avif"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
        (b'\xef\xbb\xbf<?xml version="1.0"?>\n<!-- drawn -->\n<svg>', "image/svg+xml"),
        (b"RIFF$\0\0\0WAVEfmt ", "audio/wav"),
        (b"OggS\0\2", "audio/ogg"),
        (b"fLaC\0", "audio/flac"),
        (b"\0\0\0\x20ftypM4A ", "audio/mp4"),
        (b"ID3\4\0", "audio/mpeg"),
        (b"\xff\xfb\x90\x64", "audio/mpeg"),
        (b"\xff\xf3\x40\xc4", "audio/mpeg"),
        (b"\xff\xf1\x50\x80", "audio/aac"),
    ],
)
def test_the_first_bytes_tell_the_kind(data: bytes, kind: str) -> None:
    assert sniffed(data) == kind
    assert sniffed(b"x" + data) is None


@pytest.mark.parametrize("data", [b"", b"\x89PN", b"RIFF\0\0\0\0AVI ", b"<html><svg>", b"<svgs>", b"text"])
def test_other_bytes_are_of_no_kind(data: bytes) -> None:
    assert sniffed(data) is None


def test_only_the_beginning_is_looked_at() -> None:
    assert sniffed(b"<!--" + b"-" * 2000 + b"--><svg>") is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.PNG", "image/png"), ("b.tar.jpeg", "image/jpeg"), ("c.opus", "audio/ogg"), ("d", None), ("e.txt", None)],
)
def test_the_suffix_tells_the_kind(name: str, kind: str | None) -> None:
    assert named(PurePath(name)) == kind


def test_messages_can_list_the_kinds() -> None:
    assert recognised("image") == "avif, gif, jpeg, png, svg+xml, webp"
    assert recognised("audio") == "aac, flac, mp4, mpeg, ogg, wav"
