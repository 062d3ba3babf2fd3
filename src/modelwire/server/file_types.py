"""What media type a file has, by its name, and whether that is one of text.

The same on every machine: the system's own tables are not asked. Nothing here reads a file.
"""

from __future__ import annotations

import mimetypes
import os
from functools import cache
from pathlib import PurePath
from typing import Final

from modelwire.server import media_types

_SUFFIXES: Final = {
    suffix: kind
    for kind, suffixes in {
        "text/plain": (
            ".txt .text .log .ini .cfg .conf .env .properties .lock .rst .adoc .org .tex .bib .srt .po .diff .patch "
            ".sh .bash .zsh .fish .bat .ps1 .pl .rb .php .lua .r .jl .hs .ml .ex .exs .erl .clj .scala .kt .swift "
            ".dart .go .rs .java .c .h .cc .cpp .hpp .cs .m .mm .f90 .asm .vue .svelte .scss .less .ts .tsx .jsx "
            ".proto .graphql .tf .hcl .cmake .mk .gradle .nix .zig"
        ),
        "text/markdown": ".md .markdown .mdx",
        "text/html": ".html .htm",
        "text/css": ".css",
        "text/csv": ".csv",
        "text/tab-separated-values": ".tsv",
        "text/javascript": ".js .mjs .cjs",
        "text/x-python": ".py .pyi",
        "text/calendar": ".ics",
        "text/vtt": ".vtt",
        "application/json": ".json .jsonc .ipynb .geojson .webmanifest",
        "application/x-ndjson": ".jsonl .ndjson",
        "application/yaml": ".yaml .yml",
        "application/toml": ".toml",
        "application/sql": ".sql",
        "application/xml": ".xml .xsd .xsl .plist",
        "application/pdf": ".pdf",
        "application/zip": ".zip .whl",
        "application/gzip": ".gz .tgz",
        "application/x-xz": ".xz",
        "application/x-bzip2": ".bz2",
        "application/zstd": ".zst",
        "application/vnd.apache.parquet": ".parquet",
        "application/epub+zip": ".epub",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
        "font/woff2": ".woff2",
    }.items()
    for suffix in suffixes.split()
}
_NAMES: Final = frozenset(
    "readme license licence copying notice authors changelog changes contributing todo makefile dockerfile "
    "containerfile jenkinsfile vagrantfile gemfile rakefile procfile codeowners".split()
)
"""Files of text that have no suffix."""
_TEXTS: Final = frozenset(
    "application/json application/x-ndjson application/yaml application/toml application/sql application/xml "
    "application/javascript application/x-sh application/x-tex application/x-latex application/rtf "
    "image/svg+xml".split()
)


def media_type(name: str) -> str | None:
    """Return the media type of a file by its name; None when the name does not tell."""
    suffix = os.path.splitext(name)[1].lower()
    if not suffix:
        return "text/plain" if name.lower() in _NAMES else None
    found = _SUFFIXES.get(suffix) or media_types.named(PurePath(name))
    return found or _known().guess_type("file" + suffix)[0]


def is_text(kind: str) -> bool:
    """Say whether files of this media type are text."""
    essence = kind.partition(";")[0].strip().lower()
    return essence.startswith("text/") or essence in _TEXTS or essence.endswith(("+json", "+xml", "+yaml"))


@cache
def _known() -> mimetypes.MimeTypes:
    """The standard library's own table, without the files of the system that it is usually filled up from."""
    return mimetypes.MimeTypes()
