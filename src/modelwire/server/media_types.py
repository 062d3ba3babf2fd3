"""What kind of image or sound some bytes are: by how they begin, or by the name of their file.

Only kinds that models and clients are known to take. Nothing here reads a file.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Final

_MAGIC: Final = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"....ftypavi[fs]", re.DOTALL), "image/avif"),
    # Its root may follow a declaration, a document type and comments.
    (re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<[?!][^<]*)*<svg[\s>]"), "image/svg+xml"),
    (re.compile(rb"RIFF....WAVE", re.DOTALL), "audio/wav"),
    (re.compile(rb"OggS"), "audio/ogg"),
    (re.compile(rb"fLaC"), "audio/flac"),
    (re.compile(rb"....ftypM4[AB]", re.DOTALL), "audio/mp4"),
    (re.compile(rb"\xff[\xf0\xf1\xf8\xf9]"), "audio/aac"),
    # A tag, or the head of a frame: 11 bits of synchronisation, a version and a layer that exist.
    (re.compile(rb"ID3|\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff]"), "audio/mpeg"),
)
_TYPE: Final = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+*-]+ *(?:;[^\r\n]*)?", re.ASCII)
_HEAD: Final = 1024
"""How many bytes are looked at."""
_SUFFIXES: Final = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".svg": "image/svg+xml",
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".oga": "audio/ogg",
    ".opus": "audio/ogg",
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
    ".aac": "audio/aac",
}


def sniffed(data: bytes) -> str | None:
    """Return the media type of an image or a sound by its first bytes; None for anything else."""
    head = data[:_HEAD]
    return next((found for pattern, found in _MAGIC if pattern.match(head)), None)


def named(path: PurePath) -> str | None:
    """Return the media type of an image or a sound by its file's suffix; None for anything else."""
    return _SUFFIXES.get(path.suffix.lower())


def recognised(family: str) -> str:
    """Return the kinds of a family, ``image`` or ``audio``, for messages."""
    kinds = {kind.partition("/")[2] for _, kind in _MAGIC if kind.startswith(family + "/")}
    return ", ".join(sorted(kinds))


def is_type(text: str) -> bool:
    """Whether this is written as media types are: ``image/png``, ``text/plain; charset=utf-8``."""
    return _TYPE.fullmatch(text) is not None


def is_another(mime_type: str, found: str) -> bool:
    """Whether a type that was given is one that `sniffed` knows, and not the one that it found."""
    plain = mime_type.partition(";")[0].strip().lower()
    plain = "image/jpeg" if plain == "image/jpg" else plain
    return plain != found and any(plain == kind for _, kind in _MAGIC)
