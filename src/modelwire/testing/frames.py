"""Every frame that crossed a connection, kept in order, and questions about them. It sends nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, cast, overload

from modelwire.rpc.observer import Direction, Observer
from modelwire.testing.patterns import Absent, differences, of_message

SHOWN = 2000
"""Characters of a frame that a transcript shows."""


class Frame(NamedTuple):
    """One frame.

    Attributes:
        direction: ``"out"`` was sent by the side that keeps the record, ``"in"`` was received by it.
        data: Its bytes.
    """

    direction: Direction
    data: bytes

    @property
    def messages(self) -> list[Any]:
        """The JSON-RPC messages in it: one, or those of a batch; none when it is no JSON."""
        try:
            decoded = json.loads(self.data)
        except (ValueError, RecursionError):
            return []
        return cast("list[Any]", decoded) if isinstance(decoded, list) else [decoded]


class Frames(Observer):
    """A record of frames. Give it to a client or server as one of its ``observers``.

    A sequence of `Frame`. What is asked for by a pattern (see `modelwire.testing.patterns`) may also be asked for by
    the name of its method.

    Example:
        ```
        frames = Frames()
        async with Client(server, observers=[frames]) as client:
            await client.call("add", {"a": 1, "b": 2})
        [call] = frames.sent("tools/call")
        assert call["params"]["arguments"] == {"a": 1, "b": 2}
        assert frames.answer_to(call)["result"]["structuredContent"] == {"result": 3}
        ```
    """

    def __init__(self) -> None:
        self._frames: list[Frame] = []

    def frame(self, direction: Direction, frame: bytes) -> None:
        """Keep a frame."""
        self._frames.append(Frame(direction, frame))

    def __len__(self) -> int:
        return len(self._frames)

    def __iter__(self) -> Iterator[Frame]:
        return iter(list(self._frames))

    @overload
    def __getitem__(self, at: int) -> Frame: ...
    @overload
    def __getitem__(self, at: slice) -> list[Frame]: ...
    def __getitem__(self, at: int | slice) -> Frame | list[Frame]:
        return self._frames[at]

    def sent(self, pattern: Any = ...) -> list[Any]:
        """Return the messages that were sent, decoded; of all, or those that fit a pattern."""
        return self._messages("out", pattern)

    def received(self, pattern: Any = ...) -> list[Any]:
        """Return the messages that were received, decoded; of all, or those that fit a pattern."""
        return self._messages("in", pattern)

    def _messages(self, direction: Direction, pattern: Any) -> list[Any]:
        wanted = of_message(pattern)
        found = [message for frame in self if frame.direction == direction for message in frame.messages]
        return [message for message in found if not differences(message, wanted)]

    def answer_to(self, request: Any) -> Any:
        """Return the response to a request, whole.

        Raises:
            AssertionError: There is none.
        """
        asked = next((frame.direction for frame in self if request in frame.messages), None)
        for message in self._messages("in" if asked == "out" else "out", {"id": ..., "method": Absent}):
            if json.dumps(message["id"]) == json.dumps(request["id"]):  # 1 and "1" are two
                return message
        raise AssertionError(f"there is no answer to {request['method']} {request['id']!r} in:\n{self.transcript()}")

    def clear(self) -> None:
        """Forget what was kept."""
        self._frames.clear()

    def transcript(self) -> str:
        """Return every frame as a line of text: ``out`` or ``in``, and the frame."""
        return "\n".join(f"{frame.direction:<3} {_shown(frame.data)}" for frame in self)


def _shown(data: bytes) -> str:
    text = data.decode("utf-8", "backslashreplace")
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(data)} bytes)"
