"""A template's variable that gives a list, and the parameter that is to take it."""

from __future__ import annotations

import enum
import uuid
from typing import Any, Literal

import pytest

from modelwire import Client, Server, SignatureError


class Colour(enum.Enum):
    RED = "red"


def registered(template: str, annotation: Any) -> Server:
    def read(path: Any) -> str:
        return repr(path)

    read.__annotations__["path"] = annotation
    server = Server("s")
    server.resource(template)(read)
    return server


@pytest.mark.parametrize("annotation", [str, int, str | None, Colour, Literal["a"], uuid.UUID, float | bool])
@pytest.mark.parametrize("template", ["files://{path*}", "files://x{/path*}", "files://x{?path*}"])
def test_a_parameter_that_takes_no_list_is_refused_when_it_is_registered(template: str, annotation: Any) -> None:
    words = (
        r"\{path\*\} gives a list, which parameter 'path' cannot take; annotate it as list\[str\], or write \{\+path\}"
    )
    with pytest.raises(SignatureError, match=words):
        registered(template, annotation)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (list[str], "['a', 'b']"),
        (tuple[str, ...], "('a', 'b')"),
        (list[str] | None, "['a', 'b']"),
        (str | list[str], "['a', 'b']"),
        (Any, "['a', 'b']"),
    ],
)
async def test_one_that_takes_a_list_has_it(annotation: Any, value: str) -> None:
    async with Client(registered("files://{path*}", annotation)) as client:
        assert (await client.read_resource("files://a,b")).contents[0].text == value  # type: ignore[union-attr]


async def test_an_object_may_come_of_names_in_a_query() -> None:
    async with Client(registered("files://x{?path*}", dict[str, str])) as client:
        assert (await client.read_resource("files://x?a=b")).contents[0].text == "{'a': 'b'}"  # type: ignore[union-attr]


async def test_text_with_slashes_is_written_with_a_plus() -> None:
    async with Client(registered("files://{+path}", str)) as client:
        assert (await client.read_resource("files://a/b")).contents[0].text == "'a/b'"  # type: ignore[union-attr]
