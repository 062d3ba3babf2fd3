"""`Text`, `Image`, `Audio`, `ResourceLink` and `EmbeddedResource`: made from anything, returned from anywhere."""

from __future__ import annotations

import base64
import inspect
from pathlib import Path
from typing import Any

import pytest

from modelwire import Audio, Client, ConfigError, EmbeddedResource, Image, ResourceLink, Server, Text, ToolError, types
from tests.wire import every_revision, session_talk

PNG = b"\x89PNG\r\n\x1a\n\0picture"
JPEG = b"\xff\xd8\xff\xe0picture"
WAV = b"RIFF$\0\0\0WAVEfmt "


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


class Picture:
    """What Pillow's images look like from outside."""

    def __init__(self, format: str | None = None, refuses: str = "") -> None:
        self.format = format
        self._refuses = refuses

    def save(self, fp: Any, format: str | None = None) -> None:
        if format == self._refuses:
            raise OSError(f"cannot write mode RGBA as {format}")
        fp.write({"png": PNG, "jpeg": JPEG, "gif": b"GIF89a", "webp": b"RIFF\0\0\0\0WEBP"}[str(format)])


class Figure:
    """What matplotlib's figures look like from outside."""

    def savefig(self, fname: Any, *, format: str | None = None) -> None:
        fname.write(b"<svg/>" if format == "svg" else PNG)


# --------------------------------------------------------------------------------------------------- making them


@pytest.mark.parametrize(
    "data",
    [
        PNG, bytearray(PNG), memoryview(PNG), b64(PNG), f"data:image/png;base64,{b64(PNG)}",
        f" {b64(PNG)[:8]}\n{b64(PNG)[8:]}\n", Picture(), Picture("PNG"), Picture("TIFF"), Figure(),
    ],
)  # fmt: skip
def test_an_image_is_made_from_bytes_base64_and_other_libraries_pictures(data: Any) -> None:
    image = Image(data)
    assert (image.data, image.mime_type) == (b64(PNG), "image/png")
    assert isinstance(image, Image)
    assert isinstance(image, types.ImageContent)
    assert not isinstance(image, Audio)


def test_a_picture_keeps_its_own_format_or_takes_the_one_asked_for() -> None:
    assert Image(Picture("JPEG")).mime_type == "image/jpeg"
    assert Image(Picture("JPEG"), "image/png").data == b64(PNG)
    assert Image(Figure(), mime_type="image/svg+xml").data == b64(b"<svg/>")
    with pytest.raises(ConfigError, match="this Picture cannot be written as jpeg: cannot write mode RGBA.*mime_type"):
        Image(Picture(refuses="jpeg"), mime_type="image/jpeg")


def test_the_source_of_an_svg_is_an_image() -> None:
    image = Image("<?xml version='1.0'?><svg>ø</svg>")
    assert image.mime_type == "image/svg+xml"
    assert base64.b64decode(image.data).decode() == "<?xml version='1.0'?><svg>ø</svg>"


def test_a_given_type_is_kept_whatever_the_bytes_are() -> None:
    assert Image(b"raw", "image/x-raw").mime_type == "image/x-raw"
    assert Audio(b"raw", "audio/L16; rate=8000").mime_type == "audio/L16; rate=8000"
    assert Image("data:image/x-raw;charset=utf-8;base64,cmF3").mime_type == "image/x-raw"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Image(b"text"), r'begin like no known image \(.*png.*\); pass mime_type="image/...'),
        (lambda: Image(b""), "there are no bytes"),
        (lambda: Image(WAV), r"audio/wav, no image; use Audio\(...\)"),
        (lambda: Audio(PNG), r"image/png, no audio; use Image\(...\)"),
        (lambda: Image(PNG, "png"), "a mime_type of image data is like \"image/png\", not 'png'"),
        (lambda: Audio(WAV, "image/png"), "like \"audio/wav\", not 'image/png'"),
        (lambda: Image(f"data:text/plain;base64,{b64(PNG)}"), "not 'text/plain'"),
        (lambda: Image("chart.png"), r"'chart.png' is no base64; Image.from_path\(...\) reads a file"),
        (lambda: Audio("grå.wav"), r"no base64; Audio.from_path"),
        (lambda: Image(Path("chart.png")), r"no image data; Image.from_path\(...\) reads a file"),  # type: ignore[arg-type]
        (lambda: Image(7), "this int is no image data; pass its bytes"),  # type: ignore[arg-type]
        (lambda: EmbeddedResource("x://y"), "'x://y' holds either text or data"),
        (lambda: EmbeddedResource("x://y", "a", data=b"b"), "'x://y' holds either text or data"),
        (lambda: Image(None), "this NoneType is no image data; pass its bytes"),  # type: ignore[arg-type]
        (lambda: Image(), "Image: missing a required argument: 'data'; it takes data, mime_type, annotations"),  # type: ignore[call-arg]
        (lambda: Image(path="a.png"), r"missing a required argument: 'data'; Image.from_path\(...\) reads a file"),  # type: ignore[call-arg]
        (lambda: Image(PNG, path="a.png"), r"unexpected keyword argument 'path'"),  # type: ignore[call-arg]
        (lambda: Image(PNG, "image/"), "a mime_type of image data is like \"image/png\", not 'image/'"),
        (lambda: Image(PNG, "image/png\n"), "like \"image/png\", not 'image/png.n'"),
        (lambda: Image(PNG, "image/jpeg"), "the bytes are image/png, not image/jpeg; leave mime_type out"),
        (lambda: Image(WAV, "image/png"), "the bytes are audio/wav, no image"),
        (lambda: Audio(PNG, "audio/wav"), "the bytes are image/png, no audio"),
        (lambda: Image(PNG, 5), "Image: mime_type must be a string or null, not an integer"),  # type: ignore[arg-type]
        (lambda: Image(PNG, meta=[]), "Image: meta must be an object or null, not a list"),  # type: ignore[arg-type]
        (lambda: Audio(WAV, annotations={"audience": "me"}), "Audio: annotations.audience must be a list or null"),  # type: ignore[arg-type]
        (lambda: Text(None), "Text: text must be a string, not null"),  # type: ignore[arg-type]
        (lambda: Text(5), "Text: text must be a string, not an integer"),  # type: ignore[arg-type]
        (lambda: Text(), "Text: missing a required argument: 'text'"),  # type: ignore[call-arg]
        (lambda: ResourceLink(Path("/a"), "a"), "ResourceLink: uri must be a string, not PosixPath"),  # type: ignore[arg-type]
        (lambda: ResourceLink("notes", "a"), "ResourceLink: uri must be a URI such as \"docs://a\", not 'notes'"),
        (lambda: ResourceLink("x://y", ""), "ResourceLink: name must not be empty"),
        (lambda: ResourceLink("x://y"), "missing a required argument: 'name'"),  # type: ignore[call-arg]
        (lambda: ResourceLink("x://y", "y", size="3"), "ResourceLink: size must be an integer or null, not a string"),  # type: ignore[arg-type]
        (lambda: ResourceLink("x://y", "y", size=-1), "ResourceLink: size must not be negative"),
        (lambda: ResourceLink("x://y", "y", mime_type="text"), "mime_type must be like \"text/plain\", not 'text'"),
        (lambda: EmbeddedResource("", "a"), "EmbeddedResource: uri must be a URI such as"),
        (lambda: EmbeddedResource("x://y", b"a"), "EmbeddedResource: text must be a string or null, not"),  # type: ignore[arg-type]
        (lambda: EmbeddedResource("x://y", data="a"), "data of 'x://y' must be bytes, not a str"),  # type: ignore[arg-type]
        (lambda: EmbeddedResource("x://y", "a", mime_type="text"), "mime_type must be like"),
        (lambda: EmbeddedResource(resource=None), "'uri'; it takes uri, text, data"),  # type: ignore[call-arg]
    ],
)
def test_what_is_no_such_content_is_refused_with_words(make: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make()


def test_files_are_read_and_known_by_their_bytes_or_else_their_suffix(tmp_path: Path) -> None:
    for name, data in {"a.png": JPEG, "b.png": b"odd", "c.wav": WAV, "d.bin": b"odd", "e.txt": PNG}.items():
        (tmp_path / name).write_bytes(data)
    assert Image.from_path(tmp_path / "a.png").mime_type == "image/jpeg"
    assert Image.from_path(str(tmp_path / "b.png")).mime_type == "image/png"
    assert Image.from_path(tmp_path / "e.txt").data == b64(PNG)
    assert Audio.from_path(tmp_path / "c.wav") == types.AudioContent(b64(WAV), "audio/wav")
    assert Image.from_path(tmp_path / "d.bin", "image/x-odd").mime_type == "image/x-odd"
    with pytest.raises(ConfigError, match="'d.bin' is no known image .*suffix; pass mime_type"):
        Image.from_path(tmp_path / "d.bin")
    with pytest.raises(ConfigError, match="'c.wav' is audio/wav, no image"):
        Image.from_path(tmp_path / "c.wav")
    with pytest.raises(FileNotFoundError):
        Audio.from_path(tmp_path / "none.wav")


def test_an_embedded_resource_holds_text_or_bytes_with_their_type() -> None:
    assert EmbeddedResource("x://y", "a").resource == types.TextResourceContents("x://y", "a", mime_type="text/plain")
    assert EmbeddedResource("x://y", text="{}", mime_type="application/json").resource.mime_type == "application/json"
    blob = EmbeddedResource("x://y", data=PNG)
    assert blob.resource == types.BlobResourceContents("x://y", b64(PNG), mime_type="image/png")
    assert EmbeddedResource("x://y", data=b"").resource.mime_type == "application/octet-stream"
    assert isinstance(blob, EmbeddedResource)
    assert isinstance(blob, types.EmbeddedResource)


def test_annotations_and_meta_are_kept() -> None:
    notes = types.Annotations(audience=["user"], priority=0.5)
    made = [
        Text("a", annotations=notes, meta={"k": 1}),
        Image(PNG, annotations=notes, meta={"k": 1}),
        Audio(WAV, annotations=notes, meta={"k": 1}),
        ResourceLink("x://y", "y", annotations=notes, meta={"k": 1}),
        EmbeddedResource("x://y", "a", annotations=notes, meta={"k": 1}),
    ]
    assert [(block.annotations, block.meta) for block in made] == [(notes, {"k": 1})] * 5


def test_what_is_made_is_of_the_protocol_and_of_the_name() -> None:
    link = ResourceLink("x://y", "y", "Y", "what it is", "text/plain", 3)
    assert link == types.ResourceLink("x://y", "y", "Y", "what it is", "text/plain", 3)
    assert isinstance(link, ResourceLink)
    assert Text("a") == types.TextContent("a")
    assert isinstance(types.TextContent("a"), Text)
    assert not isinstance(link, Text)
    assert Image(JPEG, "image/jpg").mime_type == "image/jpg"
    assert Text("a", {"audience": ["user"]}).annotations == types.Annotations(audience=["user"])  # type: ignore[arg-type]


def test_a_path_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Image.from_path\(...\) takes a path, not None"):
        Image.from_path(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Image, Audio, EmbeddedResource, ResourceLink])
def test_the_signature_is_shown_to_people(kind: Any) -> None:
    assert "mime_type" in inspect.signature(kind).parameters


# --------------------------------------------------------------------------------------------------- returning them


def tool_server() -> Server:
    server = Server("s")

    @server.tool
    def chart() -> Image:
        return Image(PNG)

    @server.tool
    def charts() -> list[Image | str | dict[str, int]]:
        return ["first", Image(PNG), {"n": 1}, Image(JPEG)]

    @server.tool
    async def sound(loud: bool = False) -> Audio | None:
        return Audio(WAV) if loud else None

    @server.tool
    def broken() -> str:
        raise ToolError("see the picture", content=[Text("see"), Image(PNG)])

    return server


def page_server() -> Server:
    server = Server("s")

    @server.prompt
    def look() -> list[Any]:
        return ["look", Image(PNG), {"role": "assistant", "content": Image(JPEG)}]

    @server.resource("pic://a")
    def pic() -> Image:
        return Image(PNG)

    @server.resource("pic://typed", mime_type="image/x-own")
    def typed() -> Image:
        return Image(PNG)

    @server.resource("pic://many")
    def many() -> list[Any]:
        return [Image(PNG), "words", Text("more"), Audio(WAV), EmbeddedResource("x://y", "held"), b"raw"]

    @server.resource("pic://link")
    def link() -> ResourceLink:
        return ResourceLink("x://y", "y")

    return server


IMAGE = {"type": "image", "data": b64(PNG), "mimeType": "image/png"}
SECOND = {"type": "image", "data": b64(JPEG), "mimeType": "image/jpeg"}


@every_revision
async def test_tools_return_images_alone_and_in_mixed_lists(revision: str) -> None:
    async with session_talk(tool_server(), revision) as talk:
        assert (await talk.result("tools/call", {"name": "chart"}))["content"] == [IMAGE]
        result = await talk.result("tools/call", {"name": "charts"})
        texts = [{"type": "text", "text": text} for text in ("first", '{"n":1}')]
        assert result["content"] == [texts[0], IMAGE, texts[1], SECOND]
        assert "structuredContent" not in result
        listed = {tool["name"]: tool for tool in (await talk.result("tools/list"))["tools"]}
        assert "outputSchema" not in listed["chart"]
        assert "outputSchema" not in listed["charts"]
        failed = await talk.result("tools/call", {"name": "broken"})
        assert failed["isError"] is True
        assert failed["content"][1] == IMAGE


@every_revision
async def test_a_sound_is_content_or_words_about_it(revision: str) -> None:
    async with session_talk(tool_server(), revision) as talk:
        assert (await talk.result("tools/call", {"name": "sound"}))["content"] == []
        (block,) = (await talk.result("tools/call", {"name": "sound", "arguments": {"loud": True}}))["content"]
        if revision >= "2025-03-26":
            assert block == {"type": "audio", "data": b64(WAV), "mimeType": "audio/wav"}
        else:
            assert "audio/wav" in block["text"]


@every_revision
async def test_prompts_hold_images(revision: str) -> None:
    async with session_talk(page_server(), revision) as talk:
        messages = (await talk.result("prompts/get", {"name": "look"}))["messages"]
        assert [message["role"] for message in messages] == ["user", "user", "assistant"]
        assert [message["content"] for message in messages[1:]] == [IMAGE, SECOND]


@every_revision
async def test_an_image_is_a_resources_blob(revision: str) -> None:
    async with session_talk(page_server(), revision) as talk:
        assert (await talk.result("resources/read", {"uri": "pic://a"}))["contents"] == [
            {"uri": "pic://a", "blob": b64(PNG), "mimeType": "image/png"}
        ]
        (typed,) = (await talk.result("resources/read", {"uri": "pic://typed"}))["contents"]
        assert typed["mimeType"] == "image/x-own"
        many = (await talk.result("resources/read", {"uri": "pic://many"}))["contents"]
        assert [item["mimeType"] for item in many] == [
            "image/png", "text/plain", "text/plain", "audio/wav", "text/plain", "application/octet-stream",
        ]  # fmt: skip
        assert many[4] == {"uri": "x://y", "text": "held", "mimeType": "text/plain"}
        assert (await talk.error("resources/read", {"uri": "pic://link"}))["code"] == -32603


async def test_a_client_receives_the_image_that_was_returned() -> None:
    async with Client(tool_server()) as client:
        result = await client.call_tool("chart")
        assert result.content == [Image(PNG)]
        assert isinstance(result.content[0], Image)


async def test_what_a_tool_cannot_make_an_image_of_is_an_error_of_that_tool(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("s")

    @server.tool
    def chart() -> Image:
        return Image("chart.png")

    async with session_talk(server, "2025-11-25") as talk:
        assert (await talk.result("tools/call", {"name": "chart"}))["isError"] is True
    assert "Image.from_path" in caplog.text


@pytest.mark.parametrize("maker", [Image, Audio])
def test_a_file_that_is_not_there_is_named_with_the_folder_that_it_was_looked_for_in(
    maker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=rf"{maker.__name__}.from_path: .*{tmp_path.name}'\): 'nope.png'"):
        maker.from_path("nope.png")
    with pytest.raises(IsADirectoryError, match=f"{maker.__name__}.from_path: Is a directory: "):
        maker.from_path(tmp_path)
