"""Roots: where in the file system the client's user lets the server work."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import field

from modelwire.protocol.revisions import since
from modelwire.protocol.types.base import BareInputResponse, MetaObject, Model, RequestParams, singly


class Root(Model):
    """One directory or file."""

    uri: str
    """A ``file://`` URI."""
    name: str | None = None
    meta: Annotated[MetaObject | None, since("2025-06-18")] = field(default=None, name="_meta")


class ListRootsRequest(Model, tag_field="method", tag="roots/list", kw_only=True):
    """The question for roots, as an entry of ``inputRequests``."""

    method: ClassVar[Literal["roots/list"]] = "roots/list"

    params: RequestParams | None = None


class ListRootsResult(BareInputResponse):
    """The answer to ``roots/list``."""

    roots: Annotated[list[Root], singly]
