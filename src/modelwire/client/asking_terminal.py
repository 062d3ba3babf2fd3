"""Asks the person at the terminal, line by line: forms, pages, and whether a model may write.

What a server says is shown with its control characters spelt out, so that it cannot pretend to be somebody else. One
question at a time is asked, and one that is taken back stops reading. Nothing is sent before it has been reviewed.
"""

from __future__ import annotations

import asyncio
import os
import sys
import webbrowser
from collections.abc import Callable
from typing import Any, TextIO, TypeAlias

import msgspec
from msgspec import UNSET

from modelwire.client.forms import FieldChoice, FormField
from modelwire.client.pages import is_protected, warnings_of, web_page
from modelwire.client.questions import FormQuestion, Reply, SampleQuestion, UrlQuestion
from modelwire.log import log as _log
from modelwire.protocol import types as t

OpenPage: TypeAlias = Callable[[str], Any]
_HELP = "Enter takes what is in [ ]; !none leaves a field out, !decline says no, !cancel (or Ctrl-D) goes away."
_YES, _NO = ("y", "yes"), ("n", "no")


class Answered(Exception):
    """The person has answered the question as a whole."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.value)
        self.reply = reply


class Unreadable(ValueError):
    """What was typed is no value of the field; the message says what is."""


class Terminal:
    """A person at a terminal, as ``on_elicit=``, ``on_elicit_url=`` and ``approve=``. See `answers.terminal`."""

    def __init__(self, reads: TextIO | None, writes: TextIO | None, open_page: OpenPage | None) -> None:
        self._reads = reads
        self._writes = writes
        self._open_page = open_page
        self._turn: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    async def __call__(self, question: FormQuestion | UrlQuestion | SampleQuestion) -> Any:
        """Ask; return what a client takes as the answer. Where there is no terminal, nobody has made a choice."""
        lines = self._lines()
        if lines is None:
            _log.warning("%s asks, and nobody can answer: stdin is no terminal", question.server)
            return Reply.CANCEL
        async with self._one_at_a_time():
            try:
                if isinstance(question, FormQuestion):
                    return await _Form(question, lines).ask()
                if isinstance(question, UrlQuestion):
                    return await _page(question, lines, self._open_page)
                return await _approval(question, lines)
            except Answered as answered:
                return answered.reply

    def _lines(self) -> Lines | None:
        reads = sys.stdin if self._reads is None else self._reads
        # A program may have closed its stdin, or have none.
        if reads is None or reads.closed or not reads.isatty():
            return None
        return Lines(reads.fileno(), sys.stderr if self._writes is None else self._writes)

    def _one_at_a_time(self) -> asyncio.Lock:
        loop = asyncio.get_running_loop()
        if self._turn is None or self._turn[0] is not loop:
            self._turn = loop, asyncio.Lock()
        return self._turn[1]


class Lines:
    """Lines that a person types, and what is shown to them.

    Args:
        source: The descriptor of the terminal.
        writes: Where to show.
    """

    def __init__(self, source: int, writes: TextIO) -> None:
        self._source = source
        self._writes = writes

    def show(self, text: str = "") -> None:
        """Show a line."""
        self._write(text + "\n")

    def _write(self, text: str) -> None:
        encoding = getattr(self._writes, "encoding", None) or "utf-8"
        self._writes.write(text.encode(encoding, "backslashreplace").decode(encoding))
        self._writes.flush()

    async def read(self, prompt: str) -> str:
        """Return what the person types in answer to a prompt. Cancelling it stops reading, and loses nothing.

        Raises:
            Answered: They declined, or went away.
        """
        self._write(prompt)
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        loop.add_reader(self._source, lambda: ready.done() or ready.set_result(None))
        try:
            await ready
        finally:
            loop.remove_reader(self._source)
        # A terminal hands over whole lines, so that this never waits.
        typed = os.read(self._source, 65536)
        if not typed:
            self.show()
            raise Answered(Reply.CANCEL)
        line = typed.decode(errors="replace").strip()
        for word, reply in (("!decline", Reply.DECLINE), ("!cancel", Reply.CANCEL)):
            if line.lower() == word:
                raise Answered(reply)
        return line

    async def choose(self, prompt: str, *ways: str) -> str:
        """Return which of several letters the person types, the first for nothing; asks until it is one."""
        while True:
            typed = (await self.read(prompt)).lower()
            if not typed:
                return ways[0]
            if typed[0] in ways:
                return typed[0]
            self.show(f"  Type one of {', '.join(ways)}.")


def shown(text: str, indent: str = "") -> str:
    """Return what a server said, with everything spelt out that a terminal would act on instead of showing it."""
    plain = "".join(
        character if character.isprintable() or character == "\n" else character.encode("unicode_escape").decode()
        for character in text
    )
    return plain.replace("\n", "\n" + indent)


# --------------------------------------------------------------------------------------------------- forms


class _Form:
    """One form, being filled in."""

    def __init__(self, question: FormQuestion, lines: Lines) -> None:
        self._question = question
        self._lines = lines
        self._content: dict[str, Any] = dict(question.defaults)

    async def ask(self) -> dict[str, Any] | Reply:
        """Have the form filled in, reviewed, and perhaps filled in again."""
        lines = self._lines
        lines.show(f"\n{shown(self._question.server)} asks:\n  {shown(self._question.message, '  ')}")
        lines.show(f"  What you fill in is sent to it; give it no password.\n  {_HELP}")
        while True:
            for field in self._question.fields.values():
                await self._fill(field)
            problems = self._question.problems({k: v for k, v in self._content.items() if v is not None})
            self._review(problems)
            if problems:
                continue
            way = await lines.choose("Send this? (y)es, (e)dit, (d)ecline, (c)ancel [y]: ", "y", "e", "d", "c")
            if way == "y":
                return self._content
            if way != "e":
                return Reply.DECLINE if way == "d" else Reply.CANCEL

    async def _fill(self, field: FormField) -> None:
        lines = self._lines
        lines.show("\n" + _described(field))
        for number, choice in enumerate(field.choices, 1):
            lines.show(f"    {number}. {_choice(choice)}")
        before = self._content.get(field.name, UNSET)
        prompt = "> " if before in (UNSET, None) else f"[{_value(field, before)}] > "
        while True:
            typed = await lines.read(prompt)
            if typed.lower() == "!none" or (not typed and before in (UNSET, None)):
                if not field.required:
                    self._content[field.name] = None
                    return
                lines.show("  It must be filled in.")
            elif not typed or self._taken(field, typed):
                return

    def _taken(self, field: FormField, typed: str) -> bool:
        try:
            value = parsed(field, typed)
        except Unreadable as error:
            self._lines.show(f"  {error}")
            return False
        problems = self._question.form.field_problems(field, value)
        for problem in problems:
            self._lines.show(f"  {shown(problem)}")
        if not problems:
            self._content[field.name] = value
        return not problems

    def _review(self, problems: list[str]) -> None:
        self._lines.show("\nYour answer:")
        for field in self._question.fields.values():
            value = self._content.get(field.name)
            said = "(left out)" if value is None else _value(field, value)
            self._lines.show(f"  {shown(field.title)}: {said}")
        for problem in problems:
            self._lines.show(f"  It does not fit: {shown(problem)}")


_WORDS = {
    "text": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "yes or no",
    "choice": "one of these, by number or name",
    "choices": "any of these, by numbers or names with commas between",
    "other": "JSON",
}
_FORMATS = {
    "email": "an e-mail address",
    "uri": "a URL",
    "date": "a date such as 2026-01-31",
    "date-time": "a date and time such as 2026-01-31T09:30:00Z",
}
_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {}",
    "maxItems": "at most {}",
}


def _described(field: FormField) -> str:
    """Return what a field wants, in a line, and what it is for in another."""
    wants = [_FORMATS[field.format] if field.format else _WORDS[field.kind]]
    wants += [words.format(field.schema[limit]) for limit, words in _LIMITS.items() if _number(field.schema.get(limit))]
    wants.append("required" if field.required else "may be left out")
    head = f"{shown(field.title)} ({', '.join(wants)})"
    return head if field.description is None else f"{head}\n  {shown(field.description, '  ')}"


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _choice(choice: FieldChoice) -> str:
    title, value = shown(choice.title), shown(choice.value)
    return title if title == value else f"{title} ({value})"


def _value(field: FormField, value: Any) -> str:
    """Return a value as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    titles = {choice.value: shown(choice.title) for choice in field.choices}
    if isinstance(value, list):
        return ", ".join(titles.get(one, shown(str(one))) for one in value) or "none of them"  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, str):
        return titles.get(value, shown(value))
    return msgspec.json.encode(value).decode()


def parsed(field: FormField, typed: str) -> Any:
    """Return what a person means by what they typed for a field.

    Raises:
        Unreadable: They mean nothing that the field could be.
    """
    if field.kind == "text":
        return typed
    if field.kind == "boolean":
        return _yes_or_no(typed)
    if field.kind == "choice":
        return _chosen(field, typed)
    if field.kind == "choices":
        return list(dict.fromkeys(_chosen(field, part.strip()) for part in typed.split(",") if part.strip()))
    return _json(field, typed)


def _yes_or_no(typed: str) -> bool:
    word = typed.lower()
    if word in (*_YES, "true"):
        return True
    if word in (*_NO, "false"):
        return False
    raise Unreadable("Type yes or no.")


def _chosen(field: FormField, typed: str) -> str:
    named = [c.value for c in field.choices if typed == c.value] or [
        c.value for c in field.choices if typed.lower() in (c.value.lower(), c.title.lower())
    ]
    if named:
        return named[0]
    if typed.isdecimal() and 0 < int(typed) <= len(field.choices):
        return field.choices[int(typed) - 1].value
    raise Unreadable(f"{typed!r} is none of them; type a number from 1 to {len(field.choices)}, or a name.")


def _json(field: FormField, typed: str) -> Any:
    try:
        value: Any = msgspec.json.decode(typed)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        value = None
    if field.kind == "other" and value is not None:
        return value
    if _number(value):
        return value
    raise Unreadable(f"{typed!r} is not {_WORDS[field.kind]}.")


# --------------------------------------------------------------------------------------------------- pages


async def _page(question: UrlQuestion, lines: Lines, open_page: OpenPage | None) -> Reply:
    lines.show(f"\n{shown(question.server)} asks you to open a page:\n  {shown(question.message, '  ')}")
    address = web_page(question.url)
    if address is None:
        lines.show(f"  {shown(question.url)}\nThat is no address of a web page; it was declined.")
        return Reply.DECLINE
    lines.show(f"\n  Host:  {shown(address.hostname or '')}\n  Page:  {shown(question.url)}")
    for warning in warnings_of(address):
        lines.show(f"  Careful: {warning}.")
    opens = open_page is not None and is_protected(address)
    how = "(o)pen it here, (m) I open it myself" if opens else "(m) I open it myself; it is not opened from here"
    way = await lines.choose(f"{how}, (d)ecline, (c)ancel [c]: ", *("comd" if opens else "cmd"))
    if way in ("c", "d"):
        return Reply.DECLINE if way == "d" else Reply.CANCEL
    if way == "o" and open_page is not None:
        await asyncio.to_thread(open_page, question.url)
    if not question.needed:
        return Reply.ACCEPT
    await lines.read("Press Enter once you have done there what it wants: ")
    return Reply.DONE


def open_in_browser(url: str) -> None:
    """Open a page in the person's own browser, where this program cannot look inside."""
    if not webbrowser.open(url):
        _log.warning("no browser was found; the page was not opened")


# --------------------------------------------------------------------------------------------------- messages


async def _approval(question: SampleQuestion, lines: Lines) -> bool:
    lines.show(
        f"\n{shown(question.server)} asks your model to go on with this, in {question.max_tokens} tokens at most:"
    )
    if question.system_prompt:
        lines.show(f"  system: {shown(question.system_prompt, '    ')}")
    for message in question.messages:
        content: Any = message.content
        for block in content if isinstance(content, list) else [content]:  # pyright: ignore[reportUnknownVariableType]
            lines.show(f"  {message.role}: {shown(_block(block), '    ')}")
    if question.tools:
        lines.show(f"  tools: {shown(', '.join(tool.name for tool in question.tools))}")
    return await lines.choose("Let it? (y)es, (n)o [n]: ", "n", "y") == "y"


def _block(block: Any) -> str:
    if isinstance(block, t.TextContent):
        return block.text
    if isinstance(block, t.ToolUseContent):
        return f"[calls {block.name} with {msgspec.json.encode(block.input).decode()}]"
    if isinstance(block, t.ToolResultContent):
        return "[is told] " + " ".join(one.text for one in block.content if isinstance(one, t.TextContent))
    return f"[{block.type}]"
