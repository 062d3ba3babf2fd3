"""What the types of every topic stand on: the bases, names used everywhere, and unions that JSON leaves untagged.

A struct here is shaped like the newest revision plus everything that older revisions have. A field that some
revision lacks is annotated with `since`, `until` or `only`; `modelwire.protocol.wire` reads those marks. The types
hold data only: they never check, prune or convert anything themselves.
"""

from __future__ import annotations

import collections
import pathlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeAlias, TypeGuard, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType, field

from modelwire.protocol.revisions import only, since, until

Role: TypeAlias = Literal["user", "assistant"]
Cursor: TypeAlias = str
"""An opaque position in a list."""
RequestId: TypeAlias = int | str
ProgressToken: TypeAlias = int | str
if TYPE_CHECKING:
    EchoedId: TypeAlias = int | str | Raw
    """An id or token that is only ever sent back: as `msgspec.Raw` it keeps its bytes. Read, it is never Raw."""
else:
    EchoedId = int | str
JSONObject: TypeAlias = dict[str, Any]
MetaObject: TypeAlias = dict[str, Any]


class Model(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    """Base of every type: snake_case in Python, camelCase on the wire, unset optional fields are left out."""


@dataclass(frozen=True, slots=True)
class Presumed:
    """Marks a required field that peers are known to leave out, and what is then presumed."""

    value: Any


@dataclass(frozen=True, slots=True)
class Hint:
    """Marks an optional field that is a mere hint, so that a bad value costs only itself."""


hint: Final = Hint()


@dataclass(frozen=True, slots=True)
class Singly:
    """Marks a list whose items are read one by one, so that a bad item costs only itself."""


singly: Final = Singly()


class Choice(ABC):
    """Base of unions whose members carry no common tag; `pick` looks at the object instead."""

    members: ClassVar[tuple[type, ...]] = ()

    @classmethod
    @abstractmethod
    def pick(cls, value: Any) -> type[Any]:
        """Return the member that ``value``, decoded JSON, should become.

        Raises:
            ValueError: None of the members fits; the message says what was expected.
        """


def is_choice(kind: type[Any]) -> TypeGuard[type[Choice]]:
    """Say whether ``kind`` is itself a `Choice`; ``issubclass`` would also say so of its members."""
    return Choice in kind.__mro__


class RequestParams(Model, kw_only=True):
    """Parameters of a request. ``_meta`` stays raw until somebody asks for it."""

    raw_meta: Raw | UnsetType = field(default=UNSET, name="_meta")

    @property
    def meta(self) -> dict[str, Any]:
        """``_meta``, decoded; empty when absent."""
        raw = self.raw_meta
        if raw is UNSET:
            return {}
        found = msgspec.json.decode(raw)
        return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]


class PaginatedRequestParams(RequestParams, kw_only=True):
    """Parameters of a request for one page of a list."""

    cursor: Cursor | None = None


class TaskMetadata(Model, kw_only=True):
    """Asks for a request to be run as a task."""

    ttl: int | None = None
    """How long to keep the task, in milliseconds."""


class TaskAugmentedRequestParams(RequestParams, kw_only=True):
    """Parameters of a request that may be run as a task."""

    task: Annotated[TaskMetadata | None, only("2025-11-25")] = None


class InputResponseRequestParams(RequestParams, kw_only=True):
    """Parameters of a request that may be retried with the answers to the server's questions."""

    input_responses: Annotated[dict[str, Raw] | None, since("2026-07-28")] = None
    """The answers by key, raw: each is decoded as the answer to the question of that key."""
    request_state: Annotated[str | None, since("2026-07-28")] = None


class NotificationParams(Model, kw_only=True):
    """Parameters of a notification."""

    meta: MetaObject | None = field(default=None, name="_meta")


class Received(Model, dict=True, kw_only=True):
    """Base of everything that answers a request."""

    meta: MetaObject | None = field(default=None, name="_meta")

    @property
    def raw(self) -> dict[str, Any]:
        """The object exactly as it was received, unknown fields included.

        A result that was made here is shown as its own fields instead.
        """
        kept: Any = getattr(self, _RECEIVED, None)
        if kept is None:
            return msgspec.json.decode(msgspec.json.encode(self, enc_hook=encode_hook), type=dict[str, Any])
        if not isinstance(kept, dict):
            kept = msgspec.json.decode(kept, type=dict[str, Any])
            setattr(self, _RECEIVED, kept)
        return cast("dict[str, Any]", kept)


_RECEIVED: Final = "_received"


def keep_received(result: Received, data: bytes | Raw) -> None:
    """Let ``result`` remember the bytes that it was decoded from, for `Received.raw`."""
    setattr(result, _RECEIVED, data)


class InputResponse(Received, kw_only=True):
    """Base of what a client answers to a server's question: no ``Result``, in the newest revision."""


class BareInputResponse(InputResponse, kw_only=True):
    """Base of those answers that lost their ``_meta``."""

    meta: Annotated[MetaObject | None, until("2025-11-25")] = field(default=None, name="_meta")


class Result(Received, kw_only=True):
    """A result. Its type says which fields it has; `raw` has everything that came."""

    result_type: Annotated[str | None, since("2026-07-28")] = None


EmptyResult: TypeAlias = Result


class CacheableResult(Result, kw_only=True):
    """A result that may be kept for a while."""

    ttl_ms: Annotated[int | None, since("2026-07-28"), hint] = None
    """How long the result stays fresh, in milliseconds."""
    cache_scope: Annotated[Literal["public", "private"] | None, since("2026-07-28"), hint] = None
    """Who may keep it: anybody, or only whom it was made for."""


class PaginatedResult(Result, kw_only=True):
    """One page of a list."""

    next_cursor: Cursor | None = None


class CacheablePaginatedResult(CacheableResult, kw_only=True):
    """One page of a list that may be kept for a while."""

    next_cursor: Cursor | None = None


class Error(Model):
    """The ``error`` member of an error response."""

    code: int
    message: str
    data: Any | UnsetType = UNSET


class Annotations(Model, kw_only=True):
    """For whom something is, how much it matters, and when it last changed."""

    audience: list[Role] | None = None
    priority: float | None = None
    """From 0, entirely optional, to 1, effectively required."""
    last_modified: Annotated[str | None, since("2025-06-18")] = None


class Icon(Model):
    """An image that may stand for something in a user interface."""

    src: str
    mime_type: str | None = None
    sizes: list[str] | None = None
    theme: Literal["light", "dark"] | None = None


class Implementation(Model):
    """Name and version of a program that speaks the protocol."""

    name: str
    version: str
    title: Annotated[str | None, since("2025-06-18")] = None
    description: Annotated[str | None, since("2025-11-25")] = None
    icons: Annotated[list[Icon] | None, since("2025-11-25")] = None
    website_url: Annotated[str | None, since("2025-11-25")] = None


class UnknownContent:
    """A content block of a kind that modelwire does not know; it is sent on as it came.

    No dataclass: msgspec would encode that field by field instead of asking `encode_hook`.

    Args:
        raw: The block as it was received.
    """

    __slots__ = ("raw",)
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw

    @property
    def type(self) -> str:
        """The kind that the block claims to be."""
        return str(self.raw.get("type"))

    def __eq__(self, other: object) -> bool:
        return self.raw == other.raw if isinstance(other, UnknownContent) else NotImplemented

    def __repr__(self) -> str:
        return f"UnknownContent({self.raw!r})"


_FORMS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (float, float.__float__),
    (int, int.__int__),
    (pathlib.PurePath, str),
    (collections.deque, list),
)


def standard_form(value: Any) -> Any:
    """Return the JSON form of what the standard library has and msgspec does not know, or the value itself.

    A class that inherits from ``str``, ``int`` or ``float`` is what it inherits from: text of an HTML parser is text.
    """
    return next((make(value) for kind, make in _FORMS if isinstance(value, kind)), value)


def encode_hook(value: Any) -> Any:
    """Turn what msgspec cannot encode by itself into something that it can.

    Raises:
        NotImplementedError: Nobody knows how to write ``value`` as JSON.
    """
    if isinstance(value, UnknownContent):
        return value.raw
    dump: Any = getattr(value, "model_dump", None)
    if dump is not None:  # pydantic's models say themselves how they are written
        return dump(mode="json", by_alias=True)
    found = standard_form(value)
    if found is not value:
        return found
    raise NotImplementedError(f"a {type(value).__name__} cannot be written as JSON")


def decode_hook(kind: type, value: Any) -> Any:
    """Turn decoded JSON into the member of a `Choice` that fits it.

    Raises:
        ValueError: No member fits.
    """
    if not is_choice(kind):
        raise ValueError(f"{kind.__name__} is not a type of the protocol")
    member = kind.pick(value)
    if member is dict:
        return value
    return msgspec.convert(value, member, dec_hook=decode_hook)
