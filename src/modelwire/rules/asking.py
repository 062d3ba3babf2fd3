"""Questions inside results (`input_required`): their keys, what a request is bound to, and what its state says.

    question asked -> key -> answer by that key, now or in a later request
    state          =  who may go on, with which request, until when, and all that was answered so far

Plain values. Nothing here waits, sends, seals or reads a clock.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from msgspec import Struct

from modelwire.protocol.types.base import InputResponseRequestParams

_NOT_BOUND = ("_meta", "inputResponses", "requestState")
_digest_json = msgspec.json.Encoder(order="sorted", decimal_format="string").encode


class Binding(Struct, frozen=True, array_like=True):
    """What a state belongs to; one that is brought with anything else is refused.

    "servers SHOULD include [...] the authenticated principal, [...] an identifier for the originating request, e.g. the
    method name and a digest of its salient parameters" (2026-07-28, basic/patterns/mrtr).

    Attributes:
        server: The server's name.
        principal: Who asks; None where nobody says so.
        method: The request's method.
        digest: A digest of its parameters but ``_meta`` and what `InputResponseRequestParams` adds.
    """

    server: str
    principal: str | None
    method: str
    digest: bytes


class Journal(Struct, array_like=True):
    """What a sealed state holds: enough to run a handler again from the top, on whatever machine.

    Attributes:
        name: What the parked call is found by, where it is still in memory.
        binding: What the state belongs to.
        expires: When it ends, in seconds since the epoch.
        answers: What was answered so far, as JSON by key.
        done: What `Context.once` has done so far, as JSON by name.
    """

    name: str
    binding: Binding
    expires: float
    answers: dict[str, bytes]
    done: dict[str, bytes]


encode_journal = msgspec.msgpack.Encoder().encode
decode_journal = msgspec.msgpack.Decoder(Journal).decode


def written(params: InputResponseRequestParams) -> bytes:
    """Return a request's parameters as JSON, the same however they were spelled."""
    return _digest_json(params)


def digest(params: bytes) -> bytes:
    """Return what tells a request's parameters from others.

    Args:
        params: What `written` returned.
    """
    plain: dict[str, Any] = msgspec.json.decode(params)
    salient = {key: value for key, value in plain.items() if key not in _NOT_BOUND and value is not None}
    return hashlib.sha256(_digest_json(salient)).digest()


def question_key(kind: str, method: str, params: bytes) -> str:
    """Return the key of a question that was given none: the same whenever a handler is run again.

    It is made of what is asked, and not of how much was asked before: of questions asked side by side now one comes
    first, now another.

    Args:
        kind: What the key begins with, for people.
        method: The method of the question.
        params: Its parameters, as JSON.
    """
    return f"{kind}-{hashlib.sha256(method.encode() + b' ' + params).hexdigest()[:10]}"
