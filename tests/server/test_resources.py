"""Resources and templates over the wire: listed, read, refused."""

from __future__ import annotations

import base64
import json
import math
import threading
import time
from typing import Any

import pytest

from modelwire import ConfigError, Context, NotFound, RpcError, Server, SignatureError, types
from tests.wire import MODERN, every_revision, session_talk


async def contents(talk: Any, uri: str) -> list[dict[str, Any]]:
    return (await talk.result("resources/read", {"uri": uri}))["contents"]


# --------------------------------------------------------------------------------------------------- what is returned


@pytest.mark.parametrize(
    ("value", "expected", "mime_type"),
    [
        ("text 日本", {"text": "text 日本"}, "text/plain"),
        ("", {"text": ""}, "text/plain"),
        (b"\x00\xff", {"blob": base64.b64encode(b"\x00\xff").decode()}, "application/octet-stream"),
        (b"", {"blob": ""}, "application/octet-stream"),
        (bytearray(b"ab"), {"blob": "YWI="}, "application/octet-stream"),
        ({"a": [1, None]}, {"text": '{"a":[1,null]}'}, "application/json"),
        ([1, "x"], {"text": '[1,"x"]'}, "application/json"),
        ([], {"text": "[]"}, "application/json"),
        (5, {"text": "5"}, "application/json"),
    ],
    ids=repr,
)
@every_revision
async def test_a_string_is_text_bytes_a_blob_and_the_rest_json(
    revision: str, value: Any, expected: dict[str, str], mime_type: str
) -> None:
    server = Server("s")
    server.add_resource("x://r", lambda: value, name="r")
    async with session_talk(server, revision) as talk:
        (item,) = await contents(talk, "x://r")
        assert item == {"uri": "x://r", "mimeType": mime_type, **expected}


async def test_a_declared_type_is_sent() -> None:
    server = Server("s")
    server.add_resource("x://r", lambda: "<p>", name="r", mime_type="text/html")
    async with session_talk(server, "2025-11-25") as talk:
        assert (await contents(talk, "x://r"))[0]["mimeType"] == "text/html"
        assert (await talk.result("resources/list"))["resources"][0]["mimeType"] == "text/html"


@every_revision
async def test_what_is_said_of_a_resource_is_listed_where_the_revision_has_it(revision: str) -> None:
    server = Server("s")
    about: dict[str, Any] = {
        "title": "T",
        "description": "D",
        "mime_type": "text/plain",
        "annotations": types.Annotations(audience=["user"], priority=0.5),
        "icons": [types.Icon("https://example.com/i.png")],
        "meta": {"com.example/k": 1},
    }
    server.add_resource("x://r", lambda: "r", name="r", size=3, **about)
    server.add_resource("x://t/{id}", lambda id: id, name="t", **about)
    async with session_talk(server, revision) as talk:
        (resource,) = (await talk.result("resources/list"))["resources"]
        (template,) = (await talk.result("resources/templates/list"))["resourceTemplates"]
    assert (resource["uri"], template["uriTemplate"]) == ("x://r", "x://t/{id}")
    assert resource.get("size") == (3 if revision >= "2025-03-26" or "size" in resource else None)
    for item in (resource, template):
        assert item["description"] == "D"
        assert item["annotations"] == {"audience": ["user"], "priority": 0.5}
        assert item.get("title") == ("T" if revision >= "2025-06-18" else None)
        assert item.get("_meta") == ({"com.example/k": 1} if revision >= "2025-06-18" else None)
        assert ("icons" in item) is (revision >= "2025-11-25")


@every_revision
async def test_every_kind_of_function_may_be_read(revision: str) -> None:
    server = Server("s")

    @server.resource("x://async")
    async def asynchronous(ctx: Context) -> str:
        """Said in the docstring."""
        return f"{ctx.method} {ctx.peer.revision}"

    @server.resource("x://sync")
    def sync() -> str:
        return str(threading.get_ident())

    @server.resource("x://inline", inline=True)
    def inline() -> str:
        return str(threading.get_ident())

    class Log:
        def read(self) -> list[str]:
            return ["line"]

    server.add_resource("x://bound", Log().read)
    async with session_talk(server, revision) as talk:
        assert (await contents(talk, "x://async"))[0]["text"] == f"resources/read {revision}"
        assert (await contents(talk, "x://sync"))[0]["text"] != str(threading.get_ident())
        assert (await contents(talk, "x://inline"))[0]["text"] == str(threading.get_ident())
        assert (await contents(talk, "x://bound"))[0]["text"] == '["line"]'
        listed = (await talk.result("resources/list"))["resources"]
        assert [item["name"] for item in listed] == ["asynchronous", "sync", "inline", "read"]
        assert listed[0]["description"] == "Said in the docstring."


@pytest.mark.parametrize(
    "uri", ["file:///a b", "relative", "x:", "urn:isbn:1", "file:///日本", "HTTP://Example.COM/%7e/../x"]
)
async def test_a_uri_is_kept_verbatim(uri: str) -> None:
    server = Server("s")
    server.add_resource(uri, lambda: "r", name="r")
    async with session_talk(server, "2025-11-25") as talk:
        assert (await talk.result("resources/list"))["resources"][0]["uri"] == uri
        assert (await contents(talk, uri))[0]["uri"] == uri


# --------------------------------------------------------------------------------------------------- templates


@pytest.mark.parametrize(
    ("template", "uri", "expected"),
    [
        ("x://{a}", "x://one", {"a": "one"}),
        ("x://{a}/now", "x://S%C3%A3o%20Paulo/now", {"a": "São Paulo"}),
        ("x://{a}/{b}", "x://1/2", {"a": "1", "b": "2"}),
        ("file:///{+a}", "file:///deep/er/x.txt", {"a": "deep/er/x.txt"}),
        ("x://q{?a,b}", "x://q?a=1&b=2", {"a": "1", "b": "2"}),
        ("x://日本/{a}", "x://日本/東京", {"a": "東京"}),
    ],
)
@every_revision
async def test_a_template_reads_every_uri_that_it_expands_to(
    revision: str, template: str, uri: str, expected: dict[str, str]
) -> None:
    server = Server("s")
    if "b" in expected:
        server.add_resource(template, lambda a, b: {"a": a, "b": b}, name="t")
    else:
        server.add_resource(template, lambda a: {"a": a}, name="t")
    async with session_talk(server, revision) as talk:
        (item,) = await contents(talk, uri)
        assert item["uri"] == uri
        assert json.loads(item["text"]) == expected
        assert (await talk.result("resources/list"))["resources"] == []


@every_revision
async def test_variables_are_converted_to_the_parameters_types(revision: str) -> None:
    server = Server("s")

    @server.resource("c://q/{n}/{on}")
    async def quarter(n: int, on: bool) -> Any:
        return [n + 1, not on]

    async with session_talk(server, revision) as talk:
        assert (await contents(talk, "c://q/41/false"))[0]["text"] == "[42,true]"
        assert (await talk.error("resources/read", {"uri": "c://q/abc/true"}))["code"] == -32602


async def test_a_fixed_uri_goes_before_a_template_and_an_earlier_template_before_a_later_one() -> None:
    server = Server("s")
    server.add_resource("x://{a}", lambda a: f"first {a}", name="first")
    server.add_resource("x://{b}", lambda b: f"second {b}", name="second")
    server.add_resource("x://fixed", lambda: "fixed", name="fixed")
    server.add_resource("x://{+rest}", lambda rest: f"rest {rest}", name="rest")
    async with session_talk(server, "2025-11-25") as talk:
        assert (await contents(talk, "x://fixed"))[0]["text"] == "fixed"
        assert (await contents(talk, "x://other"))[0]["text"] == "first other"
        assert (await contents(talk, "x://a/b"))[0]["text"] == "rest a/b"


@pytest.mark.parametrize(
    "uri",
    [
        "file:///../etc/passwd",
        "file:///a/../../b",
        "file:///%2e%2e/etc",
        "file:///%2E%2E%2Fetc",
        "file:///a%2Fb",
        "file:///..",
        "file:///%252e%252e",
    ],
)
@pytest.mark.parametrize("template", ["file:///{name}", "file:///{+name}"])
async def test_a_variable_cannot_traverse_and_is_decoded_once(template: str, uri: str) -> None:
    server = Server("s")
    seen: list[str] = []
    server.add_resource(template, lambda name: seen.append(name) or name, name="t")
    async with session_talk(server, "2025-11-25") as talk:
        await talk.request("resources/read", {"uri": uri})
    for value in seen:
        assert ".." not in value.replace("\\", "/").split("/")
    if "%252e" in uri:
        assert seen in ([], ["%2e%2e"])
    if "a%2Fb" in uri and template == "file:///{name}":
        assert seen in ([], ["a/b"])


WILD = {
    "reserved": "docs://{version}/{+path}",
    "exploded": "docs://{version}{/path*}",
    "fragment": "docs://{version}/x{#path}",
}


@pytest.mark.parametrize(
    ("template", "uri", "version", "path"),
    [
        (WILD["reserved"], "docs://2/a", 2, "a"),
        (WILD["reserved"], "docs://2/a/b/c%20d.md", 2, "a/b/c d.md"),
        (WILD["reserved"], "docs://2/caf%C3%A9/日本", 2, "café/日本"),
        (WILD["reserved"], "docs://2/100%25/%2541", 2, "100%/%41"),
        (WILD["reserved"], "docs://2/a%2Fb", 2, "a/b"),
        (WILD["exploded"], "docs://2/a/b/c", 2, ["a", "b", "c"]),
        (WILD["exploded"], "docs://2/a%20b/100%25", 2, ["a b", "100%"]),
        (WILD["fragment"], "docs://2/x#a/b?c", 2, "a/b?c"),
    ],
)
@every_revision
async def test_a_wildcard_takes_folders_too_decoded_once_and_beside_typed_variables(
    revision: str, template: str, uri: str, version: int, path: Any
) -> None:
    server = Server("s")
    kind = list[str] if "*" in template else str

    def read(version, path):  # type: ignore[no-untyped-def]
        return {"version": version, "path": path}

    read.__annotations__.update(version=int, path=kind)
    server.add_resource(template, read)
    async with session_talk(server, revision) as talk:
        assert json.loads((await contents(talk, uri))[0]["text"]) == {"version": version, "path": path}
        error = await talk.error("resources/read", {"uri": uri.replace("//2", "//two")})
        assert error["code"] == -32602
        assert "version" in error["message"]


async def test_the_members_of_a_wildcard_are_typed_too() -> None:
    server = Server("s")

    @server.resource("sum:{/numbers*}")
    def total(numbers: list[int]) -> Any:
        return sum(numbers)

    async with session_talk(server, "2025-11-25") as talk:
        assert (await contents(talk, "sum:/1/2/39"))[0]["text"] == "42"
        assert (await talk.error("resources/read", {"uri": "sum:/1/x"}))["code"] == -32602


@pytest.mark.parametrize(
    "path",
    [
        "..", "../x", "a/..", "a/../b", "a/../../b", ".", "./a", "a/./b", "/etc/passwd", "//x", "%2Fetc%2Fpasswd",
        "%2e%2e", "%2E%2E/x", ".%2e/x", "%2e%2e%2fx", "..%2fx", "a%2f..%2fb", "..%5cx", "..%5Cx", "a%5C..%5Cb", "..\\x",
        "%5Cx", "a%00", "%00", "a%00/../b", "%c0%ae%c0%ae/x", "%c0%af", "..%c0%afx", "%e0%80%ae", "%ff", "%zz", "%",
    ],
)  # fmt: skip
@pytest.mark.parametrize("template", WILD.values(), ids=WILD)
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_no_wildcard_climbs_in_any_encoding(revision: str, template: str, path: str) -> None:
    server = Server("s")
    seen: list[str] = []

    def read(version, path) -> str:  # type: ignore[no-untyped-def]
        seen.append(path if isinstance(path, str) else "/".join(path))
        return "read"

    read.__annotations__["path"] = list[str] if "*" in template else str
    server.add_resource(template, read)
    async with session_talk(server, revision) as talk:
        await talk.request("resources/read", {"uri": template.partition("{version}")[0] + "1/" + path})
        await talk.request("resources/read", {"uri": f"docs://1/x#{path}"})
    for value in seen:
        assert not {"..", "."} & set(value.replace("\\", "/").split("/"))
        assert "\0" not in value
        if "#" not in template:  # a fragment stands behind no slash
            assert not value.startswith(("/", "\\"))


@pytest.mark.parametrize("template", ["w:{+a}/{+b}", "w:{/a*}/end", "w:{+a}{/b*}{?c*}", "w:{a}{b}{c}"])
async def test_wildcards_match_in_time_linear_in_the_length_of_the_uri(template: str) -> None:
    server = Server("s")

    names = {name for name in "abc" if "{" + name in template or any(f"{{{op}{name}" in template for op in "+/?")}
    scope: dict[str, Any] = {}
    exec(f"def read({', '.join(f'{name}=None' for name in sorted(names))}): return 'read'", scope)
    server.add_resource(template, scope["read"])

    async def took(talk: Any, length: int) -> float:
        best = math.inf
        for _ in range(5):
            begun = time.perf_counter()
            await talk.request("resources/read", {"uri": "w:" + "a/" * length + "\x7f"})
            best = min(best, time.perf_counter() - begun)
        return best

    async with session_talk(server, "2025-11-25") as talk:
        await took(talk, 100)
        assert await took(talk, 20_000) < 100 * await took(talk, 1_000) + 0.05


async def test_matching_takes_time_linear_in_the_length_of_the_uri() -> None:
    server = Server("s")
    server.add_resource("x://{a}-{b}-{c}-{d}-{e}/end", lambda a, b, c, d, e: a, name="t")
    server.add_resource("y://{+a}/{+b}/{+c}/end", lambda a, b, c: a, name="u")

    async def took(talk: Any, length: int) -> float:
        best = math.inf
        for _ in range(3):
            start = time.process_time()
            for uri in ("x://" + "-" * length, "y://" + "/" * length):
                await talk.request("resources/read", {"uri": uri})
            best = min(best, time.process_time() - start)
        return best

    async with session_talk(server, "2025-11-25") as talk:
        assert await took(talk, 20_000) < 40 * await took(talk, 2_000) + 0.05  # 10 times the length; 1000 if cubic


# --------------------------------------------------------------------------------------------------- refused


@every_revision
async def test_what_does_not_exist_has_the_code_of_the_revision_and_names_the_uri(revision: str) -> None:
    server = Server("s")
    server.add_resource("x://r", lambda: "r", name="r")

    @server.resource("x://gone/{id}")
    async def gone(id: str) -> str:
        raise NotFound(f"nothing at {id}", uri=f"x://gone/{id}")

    @server.resource("x://plain/{id}")
    async def plain(id: str) -> str:
        raise NotFound("nothing there")

    code = -32602 if revision == MODERN else -32002
    async with session_talk(server, revision) as talk:
        for uri in ("x://nowhere", "x://R", "x://r/", "", "x://gone/5", "x://plain/5"):
            error = await talk.error("resources/read", {"uri": uri})
            assert error["code"] == code, uri
            assert error["data"] == {"uri": uri}


@pytest.mark.parametrize(
    "fault", [ValueError("secret"), SystemExit(1), KeyError("secret"), RecursionError(), BaseException("secret")]
)
@pytest.mark.parametrize("kind", ["async", "sync", "inline"])
@every_revision
async def test_a_crash_is_an_internal_error_without_internals(
    revision: str, kind: str, fault: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("s")

    async def asynchronous() -> str:
        raise fault

    def sync() -> str:
        raise fault

    server.add_resource("x://r", asynchronous if kind == "async" else sync, inline=kind == "inline")
    async with session_talk(server, revision) as talk:
        error = await talk.error("resources/read", {"uri": "x://r"})
        assert error["code"] == -32603
        assert "secret" not in json.dumps(error)
        assert (await talk.error("resources/read", {"uri": "x://no"}))["code"] != -32603
    assert caplog.records


@pytest.mark.parametrize(
    "value", [object(), {"n": math.nan}, "\ud800", {1: {2}}], ids=lambda value: type(value).__name__
)
@every_revision
async def test_what_cannot_be_sent_costs_at_most_its_own_read(revision: str, value: Any) -> None:
    server = Server("s")
    server.add_resource("x://bad", lambda: value, name="bad")
    server.add_resource("x://good", lambda: "good", name="good")
    async with session_talk(server, revision) as talk:
        answer = await talk.request("resources/read", {"uri": "x://bad"})
        assert "result" in answer or answer["error"]["code"] == -32603
        assert (await contents(talk, "x://good"))[0]["text"] == "good"


@every_revision
async def test_a_read_that_takes_too_long_is_ended(revision: str) -> None:
    server = Server("s")

    def blocked(ctx: Context) -> str:
        while not ctx.cancelled:
            time.sleep(0.001)
        return ""

    server.add_resource("x://slow", blocked, timeout=0.02)
    async with session_talk(server, revision) as talk:
        error = await talk.error("resources/read", {"uri": "x://slow"})
        assert error["code"] not in (-32602, -32002)


async def test_a_handler_may_answer_with_an_error_of_the_protocol() -> None:
    server = Server("s")

    @server.resource("x://r")
    async def refuse() -> str:
        raise RpcError(-31000, "closed", {"until": "monday"})

    async with session_talk(server, "2025-11-25") as talk:
        error = await talk.error("resources/read", {"uri": "x://r"})
        assert error == {"code": -31000, "message": "closed", "data": {"until": "monday"}}


# --------------------------------------------------------------------------------------------------- registering


def test_what_cannot_be_read_is_refused_at_registration() -> None:
    server = Server("s")
    server.add_resource("x://r", lambda: "r", name="r")
    with pytest.raises(ConfigError, match="x://r"):
        server.add_resource("x://r", lambda: "r", name="again")
    with pytest.raises(SignatureError, match="id"):
        server.add_resource("x://{id}", lambda: "no such parameter", name="t")
    with pytest.raises(SignatureError, match="surplus"):
        server.add_resource("x://{id}", lambda id, surplus: "no such variable", name="t")
    with pytest.raises(SignatureError, match="needed"):
        server.add_resource("x://s", lambda needed: "no variable at all", name="s")
    with pytest.raises(ConfigError):
        server.add_resource("x://{unclosed", lambda unclosed: "", name="t")
    with pytest.raises(ConfigError, match="nowhere"):
        server.remove_resource("x://nowhere")


async def test_a_parameter_with_a_default_needs_no_variable() -> None:
    server = Server("s")
    server.add_resource("x://{id}", lambda id, unit="c": id + unit, name="t")
    async with session_talk(server, "2025-11-25") as talk:
        assert (await contents(talk, "x://5"))[0]["text"] == "5c"


async def test_resources_and_templates_come_and_go_at_run_time() -> None:
    server = Server("s", declare=["resources"])
    async with session_talk(server, "2025-11-25") as talk:
        server.add_resource("x://r", lambda: "r", name="r")
        server.add_resource("y://{id}", lambda id: id, name="t")
        assert (await contents(talk, "x://r"))[0]["text"] == "r"
        assert (await contents(talk, "y://5"))[0]["text"] == "5"
        server.remove_resource("x://r")
        server.remove_resource("y://{id}")
        for uri in ("x://r", "y://5"):
            assert (await talk.error("resources/read", {"uri": uri}))["code"] == -32002
