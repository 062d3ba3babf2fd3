"""The rounds of a request that a server answers with questions: ask, send it again with the answers, until it is done.

    what comes                         what is done, up to ``max_rounds`` times
    ---------------------------------  ------------------------------------------------------------------
    input_required with questions      all are answered at once; the same request with the answers
    input_required with a state alone  the same request after a pause, which grows
    error -32042 (2025-11-25)          consent for each page; the same request once all have been dealt with
    anything else                      it is the result

The answers themselves are `modelwire.client.answering`'s business, and the requests those of whoever calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import Raw, structs

from modelwire.client.answering import Answer, Answering
from modelwire.client.contacts import Contacts
from modelwire.client.declared import declares
from modelwire.client.failures import unanswered_by
from modelwire.client.pages import web_page
from modelwire.client.questions import Reply, UrlQuestion
from modelwire.client.unanswered import question, questions, unanswered
from modelwire.errors import (
    ConfigError,
    ConnectionLost,
    LocalError,
    ProtocolViolation,
    RpcError,
    Unanswered,
    UrlElicitationNeeded,
)
from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.protocol.methods import METHODS
from modelwire.protocol.revisions import Revision

MAX_ROUNDS = 10
PAUSE = 0.05
"""Seconds before the first request that is sent again with nothing but its state; each pause is twice the last."""
LONGEST_PAUSE = 5.0

Send: TypeAlias = Callable[[Any], Awaitable[Any]]
"""Sends a request with the params that it is given, and returns its result."""
Came: TypeAlias = t.InputRequiredResult | UrlElicitationNeeded
COMPLETE = METHODS["notifications/elicitation/complete"]


class Rounds:
    """Goes the rounds for one client.

    Args:
        answering: Who answers.
        contacts: Who is at the other end.
        max_rounds: How often one request may be sent again.
        patience: Seconds to wait for a page to be dealt with; None for ever.
    """

    def __init__(self, answering: Answering, contacts: Contacts, max_rounds: int, patience: float | None) -> None:
        if isinstance(max_rounds, bool) or not isinstance(max_rounds, int) or max_rounds < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"max_rounds must be a whole number from 0 on, not {max_rounds!r}")
        self._answering = answering
        self._contacts = contacts
        self._most = max_rounds
        self._patience = patience
        self._visits: dict[str, set[asyncio.Event]] = {}
        """What waits for each page to be dealt with."""
        self._asking: set[asyncio.Task[Any]] = set()
        """What has somebody asked, one for each call."""

    async def go(self, method: str, name: str, params: Any, came: Came, send: Send) -> Any:
        """Answer what came instead of a result, and what comes then; return the result.

        Args:
            method: The method that was called.
            name: What it was called for.
            params: Its params.
            came: What came.
            send: Sends it again.

        Raises:
            ProtocolViolation: The server asks what it must not.
            ConfigError: Nobody answers what it may ask.
            Unanswered: The answers were not to be had; or they were given ``max_rounds`` times, and never enough.
            UrlElicitationNeeded: A page has to be dealt with first, and nobody agreed to.
            ConnectionLost: The client was closed meanwhile.
        """
        pause = PAUSE
        for _ in range(self._most):
            params = await self._unless_closed(method, self._again(method, name, params, came, pause))
            pause = min(pause * 2, LONGEST_PAUSE) if not _asks(came) else pause
            try:
                result = await send(params)
            except UrlElicitationNeeded as error:
                came = error
                continue
            if not isinstance(result, t.InputRequiredResult):
                return result
            came = result
        raise self._too_many(method, name, came)

    async def _again(self, method: str, name: str, params: Any, came: Came, pause: float) -> Any:
        """Have done what has to be done before the request is sent again; return its params."""
        if isinstance(came, UrlElicitationNeeded):
            await self._visit_all(came)
            return params
        params = await self._next_params(method, name, params, came)
        if not _asks(came):
            await asyncio.sleep(pause)
        return params

    async def _unless_closed(self, method: str, job: Coroutine[Any, Any, Any]) -> Any:
        asking = asyncio.create_task(job)
        self._asking.add(asking)
        try:
            return await asking
        except asyncio.CancelledError:
            if asking in self._asking:
                raise
            raise ConnectionLost(f"the client was closed before what {method} asks was answered") from None
        finally:
            self._asking.discard(asking)

    def close(self) -> None:
        """End the calls for which somebody is being asked: their connection is closed."""
        while self._asking:
            self._asking.pop().cancel()

    def _too_many(self, method: str, name: str, came: Came) -> LocalError:
        asked = str(came) if isinstance(came, UrlElicitationNeeded) else questions(came)
        return Unanswered(
            f"{method} of {name!r} is not finished after {self._most} rounds of questions (max_rounds={self._most}); "
            f"the server asks: {asked}"
        )

    # ------------------------------------------------------------------ questions in a result

    async def _next_params(self, method: str, name: str, params: Any, came: t.InputRequiredResult) -> Any:
        if not came.input_requests and came.request_state is None:
            # "Servers MUST include at least one of inputRequests or requestState in every InputRequiredResult"
            raise ProtocolViolation(f"{method} of {name!r} asks for input, and neither says which nor gives a state")
        answers = await self._answers(method, name, came) if came.input_requests else None
        return structs.replace(params, input_responses=answers, request_state=came.request_state)

    async def _answers(self, method: str, name: str, came: t.InputRequiredResult) -> dict[str, Raw]:
        opened = self._contacts.opened
        asked = came.input_requests or {}
        answering, can, revision = self._answering, self._answering.capabilities, opened.revision
        undeclared = [key for key, one in asked.items() if not declares(can, one.method, one.params, revision)]
        if undeclared or not all(answering.answers(one.method, one.params) for one in asked.values()):
            raise unanswered(method, name, came, undeclared)
        raw = cast("dict[str, dict[str, Any]]", came.raw["inputRequests"])
        checked: dict[str, Answer] = {}
        for key, one in asked.items():
            try:
                given = Raw(msgspec.json.encode(raw[key].get("params") or {}))
                checked[key] = answering.asked(one.method, given, revision, opened.info, key)
            except RpcError as error:
                raise ProtocolViolation(f"{method} of {name!r} asks {question(key, one)}: {error.message}") from error
        return await all_of({key: self._answer(name, asked[key], ask, revision) for key, ask in checked.items()})

    async def _answer(self, name: str, asked: Any, ask: Answer, revision: Revision) -> Raw:
        try:
            answer = await ask()
            encoded = wire.encode(answer, revision)
            wire.decode_answer(encoded, METHODS[asked.method])  # a handler of dicts may return anything
        except Exception as error:
            raise unanswered_by(self._answering.failure(asked.method, asked.params, error), name) from error
        return Raw(encoded)

    # ------------------------------------------------------------------ pages that come first

    async def _visit_all(self, needed: UrlElicitationNeeded) -> None:
        """Have all pages dealt with that an error names.

        Raises:
            UrlElicitationNeeded: That is not to be.
        """
        pages = self._pages(needed)
        if not pages:
            raise needed
        # Before anybody is asked: the server may be told by the page before we are by the person.
        waits = {id_: asyncio.Event() for id_ in pages}
        for id_, wait in waits.items():
            self._visits.setdefault(id_, set()).add(wait)
        try:
            replies = await all_of({id_: self._consent(page) for id_, page in pages.items()})
            if not all(reply in (Reply.ACCEPT, Reply.DONE) for reply in replies.values()):
                raise needed
            await self._completed({id_: wait for id_, wait in waits.items() if replies[id_] is not Reply.DONE}, needed)
        finally:
            for id_, wait in waits.items():
                self._visits[id_].discard(wait)
                if not self._visits[id_]:
                    del self._visits[id_]

    def _pages(self, needed: UrlElicitationNeeded) -> dict[str, UrlQuestion]:
        """Return the pages by their ids; none where nobody can be asked, or the server named them badly."""
        opened = self._contacts.opened
        if self._answering.on_elicit_url is None or not COMPLETE.sent_by("server", opened.revision):
            return {}
        server = self._answering.named(opened.info)
        pages: dict[str, UrlQuestion] = {}
        for one in needed.elicitations:
            id_, url, message = (one.get(member) for member in ("elicitationId", "url", "message"))
            if not (isinstance(id_, str) and isinstance(url, str) and web_page(url)):
                return {}
            pages[id_] = UrlQuestion(str(message or needed.message), url, server, id_, needed=True)
        return pages

    async def _consent(self, page: UrlQuestion) -> Reply:
        answering = self._answering
        try:
            return await answering.consent(page)
        except Exception as error:
            params = t.ElicitRequestURLParams(page.message, page.url)
            raise unanswered_by(answering.failure("elicitation/create", params, error), page.url) from error

    async def _completed(self, waits: Mapping[str, asyncio.Event], needed: UrlElicitationNeeded) -> None:
        try:
            async with asyncio.timeout(self._patience):
                for wait in waits.values():
                    await wait.wait()
        except TimeoutError:
            raise Unanswered(
                f"the server did not say within {self._patience:g} s that the page was dealt with ({needed}); "
                "return Reply.DONE from on_elicit_url once the person says so"
            ) from None

    def completed(self, elicitation_id: str) -> None:
        """Note that the server says that a page was dealt with; ids that nobody waits for are ignored."""
        for wait in self._visits.get(elicitation_id, ()):
            wait.set()


def _asks(came: Came) -> bool:
    return isinstance(came, UrlElicitationNeeded) or bool(came.input_requests)


async def all_of(jobs: Mapping[str, Coroutine[Any, Any, Any]]) -> dict[str, Any]:
    """Run everything at once; return what came of each.

    The first that fails ends the others, and its exception is raised as it is.
    """
    tasks = {key: asyncio.create_task(job) for key, job in jobs.items()}
    try:
        await asyncio.wait(tasks.values(), return_when=asyncio.FIRST_EXCEPTION)
    finally:
        rest = [task for task in tasks.values() if not task.done()]
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest)
        failed = [task.exception() for task in tasks.values() if not task.cancelled()]
    if error := next((error for error in failed if error is not None), None):
        raise error
    if any(task.cancelled() for task in tasks.values()):
        raise Unanswered("what was to answer was cancelled from inside")
    return {key: task.result() for key, task in tasks.items()}
