"""A tool whose work takes longer than anybody wants to wait: it answers at once, and tells when the result is there.

The answer is a link to a resource. Whoever follows it (`resources/subscribe`, or `subscriptions/listen` on 2026-07-28)
is told when there is something new to be read. Nothing here depends on the revision.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from modelwire import NotFound, ResourceLink, Server


class Jobs:
    """What is being worked on, and what came of it."""

    def __init__(self) -> None:
        self.states: list[str] = []
        self.tasks: set[asyncio.Task[None]] = set()

    def start(self, text: str) -> int:
        """Begin a job and return its number."""
        self.states.append("still counting")
        number = len(self.states)
        task = asyncio.create_task(self._count(number, text))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return number

    async def _count(self, number: int, text: str) -> None:
        words = 0
        for _ in text.split():
            await asyncio.sleep(0.01)
            words += 1
        self.states[number - 1] = f"{words} words"
        server.changed(f"job://{number}")


@asynccontextmanager
async def jobs() -> AsyncIterator[Jobs]:
    """Let jobs run as long as the server does."""
    found = Jobs()
    yield found
    for task in found.tasks:
        task.cancel()
    await asyncio.gather(*found.tasks, return_exceptions=True)


server = Server("long-job", version="1.0.0", lifespan=jobs)


@server.tool
async def count_words(text: str, jobs: Jobs) -> ResourceLink:
    """Count the words of a text, slowly. Read the linked resource for the result.

    Args:
        text: The text.
    """
    number = jobs.start(text)
    return ResourceLink(f"job://{number}", name=f"job {number}", mime_type="text/plain")


@server.resource("job://{number}", mime_type="text/plain")
async def job(number: int, jobs: Jobs) -> str:
    """How far a job is, or what came of it."""
    if not 0 < number <= len(jobs.states):
        raise NotFound(f"there is no job {number}")
    return jobs.states[number - 1]


if __name__ == "__main__":
    server.run()
