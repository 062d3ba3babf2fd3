"""Who answers what a server asks: the functions that were handed to the client, for forms, pages, messages and roots.

It decides what is declared, refuses what was not, calls the functions, and checks what they return before it is sent.
How a question comes and how its answer goes is not its business: handshake revisions send requests (`routes`),
2026-07-28 puts questions into results (`modelwire.client.rounds`).
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import UNSET, Raw

from modelwire.client.declared import declared, declares, in_revision
from modelwire.client.failures import USER_REJECTED, Failure, Failures, WrongAnswer
from modelwire.client.forms import BadForm, Form, Misfit
from modelwire.client.pages import web_page
from modelwire.client.questions import FormQuestion, Reply, SampleQuestion, UrlQuestion
from modelwire.client.roots import Roots, listed, root_list
from modelwire.client.sampling import message_of
from modelwire.errors import INVALID_PARAMS, METHOD_NOT_FOUND, ConfigError, RpcError
from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.protocol.methods import METHODS, Method
from modelwire.protocol.revisions import Revision
from modelwire.rpc.call import Call
from modelwire.rpc.dispatcher import Route
from modelwire.rules.conversation import conversation_fault
from modelwire.rules.settings import function, table

OnElicit: TypeAlias = Callable[[FormQuestion], Any]
OnElicitUrl: TypeAlias = Callable[[UrlQuestion], Any]
OnSample: TypeAlias = Callable[[SampleQuestion], Any]
Handler: TypeAlias = Callable[[dict[str, Any]], Any]
"""Answers one of the server's requests; may be async."""
Answer: TypeAlias = Callable[[], Coroutine[Any, Any, Any]]
"""Has a question answered that may be asked; returns the answer."""

ELICIT, SAMPLE, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"


class Answering:
    """What one client answers.

    Args:
        on_elicit: Fills in forms.
        on_elicit_url: Asks whether a page may be opened.
        on_sample: Has a model write a message.
        roots: The roots, or a function that returns them.
        handlers: Functions for methods, which take the params and return the result as dicts.
        capabilities: What is to be declared besides.

    Raises:
        ConfigError: Something is no function, or no root; or two are to answer the same.
    """

    def __init__(
        self,
        *,
        on_elicit: OnElicit | None = None,
        on_elicit_url: OnElicitUrl | None = None,
        on_sample: OnSample | None = None,
        roots: Roots | None = None,
        handlers: Mapping[str, Handler] | None = None,
        capabilities: t.ClientCapabilities | None = None,
    ) -> None:
        self.on_elicit = function(on_elicit, "on_elicit", "the question")
        self.on_elicit_url = function(on_elicit_url, "on_elicit_url", "the question")
        self.on_sample = function(on_sample, "on_sample", "the question")
        self.roots = roots if roots is None or callable(roots) else _kept(roots)
        self.handlers = dict(table(handlers, "handlers", _HANDLERS, lambda key, one: callable(one)) or {})
        _check_capabilities(capabilities)
        self._typed: dict[str, tuple[str, Callable[..., Answer]]] = {}
        if on_elicit is not None or on_elicit_url is not None:
            self._typed[ELICIT] = "on_elicit= and on_elicit_url=", self._elicitation
        if on_sample is not None:
            self._typed[SAMPLE] = "on_sample=", self._sampling
        if roots is not None:
            self._typed[ROOTS] = "roots=", self._roots
        for method, (setting, _) in self._typed.items():
            if method in self.handlers:
                raise ConfigError(f"{setting} and handlers={{{method!r}: ...}} would both answer {method}; give one")
        self.capabilities = declared(
            capabilities or t.ClientCapabilities(),
            forms=on_elicit is not None,
            pages=on_elicit_url is not None,
            messages=on_sample is not None,
            roots=roots is not None,
        )
        """What the client can do, on revisions that have it."""
        self.target = ""
        """What the client is connected to, for people."""
        self.failures = Failures()
        """What could not be answered, where questions are requests."""

    # ------------------------------------------------------------------ what may be asked

    def answers(self, method: str, params: Any) -> bool:
        """Whether there is somebody to answer a question."""
        if method in self.handlers:
            return True
        if method == ELICIT:
            page = isinstance(params, t.ElicitRequestURLParams)
            return (self.on_elicit_url if page else self.on_elicit) is not None
        return method in self._typed

    def asked(self, method: str, raw: Raw, revision: Revision, who: t.Implementation | None, key: str | None) -> Answer:
        """Take a question in; nobody is asked yet.

        Args:
            method: What is asked.
            raw: Its params.
            revision: The revision that is spoken.
            who: Who the server says it is.
            key: The question's key.

        Raises:
            RpcError: It may not be asked, or not so.
        """
        if method in self.handlers:
            return self._by_hand(method, raw)
        try:
            params = wire.decode(raw, METHODS[method].params, "params")
        except wire.WireError as error:
            raise RpcError(INVALID_PARAMS, f"Invalid params for {method}: {error}") from error
        if not declares(self.capabilities, method, params, revision):
            if method == ELICIT and in_revision(self.capabilities, revision).elicitation is not None:
                mode = "url" if isinstance(params, t.ElicitRequestURLParams) else "form"
                raise RpcError(INVALID_PARAMS, f"Invalid params for {method}: the mode {mode!r} was not declared")
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method} was not declared")
        if not self.answers(method, params):
            raise RpcError(INVALID_PARAMS, f"Invalid params for {method}: nobody answers this kind of it")
        return self._typed[method][1](params, raw, self.named(who), key)

    # ------------------------------------------------------------------ each kind

    def _by_hand(self, method: str, raw: Raw) -> Answer:
        async def answer() -> Any:
            return await _called(self.handlers[method], msgspec.json.decode(raw))

        return answer

    def _elicitation(self, params: Any, raw: Raw, server: str, key: str | None) -> Answer:
        if isinstance(params, t.ElicitRequestURLParams):
            if web_page(params.url) is None:
                raise RpcError(INVALID_PARAMS, f"Invalid params for {ELICIT}: {params.url!r} is no address of a page")
            return lambda: self._visit(UrlQuestion(params.message, params.url, server, params.elicitation_id, key))
        members = cast("dict[str, Any]", msgspec.json.decode(raw))
        try:
            form = Form(members["requestedSchema"])
        except BadForm as error:
            raise RpcError(INVALID_PARAMS, f"Invalid params for {ELICIT}: {error}") from error
        return lambda: self._fill_in(FormQuestion(params.message, server, form, key))

    async def _fill_in(self, question: FormQuestion) -> t.ElicitResult:
        answer = await _called(self.on_elicit, question)
        action = _action(answer)
        if action in ("decline", "cancel"):
            return t.ElicitResult(action)
        if isinstance(answer, t.ElicitResult):
            answer = answer.content or {}
        try:
            content = question.form.content({} if action == "accept" else answer)
        except Misfit as misfit:
            raise WrongAnswer(f"the answer is not as the form wants it: {misfit}") from None
        return t.ElicitResult("accept", content)

    async def consent(self, question: UrlQuestion) -> Reply:
        """Ask whether a page may be opened."""
        answer = await _called(self.on_elicit_url, question)
        if isinstance(answer, t.ElicitResult):
            return Reply(answer.action)
        action = _action(answer)
        if action is None:
            raise WrongAnswer(f"it returned {answer!r}; True is consent, False and None are not; see Reply")
        return answer if isinstance(answer, Reply) else Reply(action)

    async def _visit(self, question: UrlQuestion) -> t.ElicitResult:
        reply = await self.consent(question)
        return t.ElicitResult("accept" if reply in (Reply.ACCEPT, Reply.DONE) else reply.value)

    def _sampling(self, params: Any, raw: Raw, server: str, key: str | None) -> Answer:
        assert isinstance(params, t.CreateMessageRequestParams)
        sampling = self.capabilities.sampling
        if (params.tools or params.tool_choice) and (sampling is None or sampling.tools is None):
            # "The client MUST return an error if this field is provided but ClientCapabilities.sampling.tools is not
            # declared." (schema, 2025-11-25)
            raise RpcError(INVALID_PARAMS, f"Invalid params for {SAMPLE}: sampling.tools was not declared")
        fault = conversation_fault(params.messages)
        if fault is not None:
            raise RpcError(INVALID_PARAMS, f"Invalid params for {SAMPLE}: {fault}")
        return lambda: self._sample(SampleQuestion(params, server, key))

    async def _sample(self, question: SampleQuestion) -> t.CreateMessageResult:
        answer = await _called(self.on_sample, question)
        if answer is None or answer is False or answer in (Reply.DECLINE, Reply.CANCEL):
            raise RpcError(USER_REJECTED, "User rejected sampling request")
        try:
            return message_of(answer)
        except TypeError as error:
            raise WrongAnswer(f"it returned no message: {error}") from None

    def _roots(self, params: Any, raw: Raw, server: str, key: str | None) -> Answer:
        assert self.roots is not None
        roots = self.roots
        return lambda: listed(roots)

    def who_answers(self, method: str, params: Any) -> str:
        """Return what to call the function that answers a question."""
        if method in self.handlers:
            return f"the handler {words(self.handlers[method])}"
        if method == ELICIT:
            return words(self.on_elicit_url if isinstance(params, t.ElicitRequestURLParams) else self.on_elicit)
        return words(self.on_sample if method == SAMPLE else self.roots)

    def named(self, who: t.Implementation | None) -> str:
        """Return who asks, for people.

        The server's own name for itself may be anything, so what is connected to stands beside it.
        """
        said = None if who is None else who.title or who.name
        if not said or not self.target or self.target in (said, f"the server {said!r}"):
            return self.target or said or "the server"
        return f"{said} ({self.target})"

    # ------------------------------------------------------------------ as requests

    def routes(self) -> dict[str, Route]:
        """Return the routes for what servers of handshake revisions send as requests."""
        routes = {"ping": Route(METHODS["ping"], lambda call: {}, t.RequestParams, immediate=True)}
        for method in (*self.handlers, *self._typed):
            row = METHODS.get(method) or Method(method, t.RequestParams, t.Result, "server")
            routes[method] = Route(row, self._answer, None)
        return routes

    async def _answer(self, call: Call) -> bytes:
        method = call.method.name
        raw = Raw(b"{}") if call.params is UNSET else call.params
        ask = self.asked(method, raw, call.peer.revision, call.peer.info, None)
        # A person may have to think about it; the server waits, so nothing that we wait for can be late.
        with call.connection.deadlines_stopped():
            try:
                return wire.encode_result(await ask(), call.method, call.peer.revision, None)
            except RpcError:
                raise  # the function's own word to the server
            except Exception as error:
                raise self.failures.note(self.failure(method, _read(method, raw), error)) from error

    def failure(self, method: str, params: Any, error: Exception) -> Failure:
        """Return what is to be said of a question that was not answered."""
        message = getattr(params, "message", None)
        return Failure(self.who_answers(method, params), method, message if isinstance(message, str) else None, error)


def _read(method: str, raw: Raw) -> Any:
    """Return a question's params, typed, where they can be; for messages."""
    row = METHODS.get(method)
    with contextlib.suppress(wire.WireError):
        return None if row is None else wire.decode(raw, row.params, "params")
    return None


async def _called(function: Any, given: Any) -> Any:
    answer = function(given)
    return await answer if inspect.isawaitable(answer) else answer


def _action(answer: Any) -> Any:
    """Return what an answer says of the question as a whole; None when it is content."""
    if isinstance(answer, t.ElicitResult):
        return None if answer.action == "accept" and answer.content is not None else answer.action
    if isinstance(answer, Reply):
        return "accept" if answer is Reply.DONE else answer.value
    return _PLAIN.get(answer) if answer is None or isinstance(answer, bool) else None


_PLAIN: dict[Any, str] = {True: "accept", False: "decline", None: "cancel"}


_HANDLERS = "a dict of functions by method, such as {'sampling/createMessage': answer}"


def _check_capabilities(given: Any) -> None:
    if given is not None and not isinstance(given, t.ClientCapabilities):
        raise ConfigError(f"capabilities= is a types.ClientCapabilities, not {given!r}")


def _kept(roots: Any) -> Any:
    """Return roots that can be listed again and again; a list stays itself, so that it can be changed."""
    kept: Any = list(roots) if hasattr(roots, "__next__") else roots
    root_list(kept)
    return kept


def words(function: Any) -> str:
    """Return what to call a function in a message."""
    return str(getattr(function, "__qualname__", None) or type(function).__name__)
