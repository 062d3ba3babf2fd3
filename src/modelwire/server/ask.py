"""`Ask`: a parameter that the user fills, asked before the function runs.

What is asked, and into what the answer is made, is settled when the function is registered. The asking itself is done
by `Context.elicit`, on every revision.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, get_args

from modelwire.errors import Declined, Dismissed, SignatureError
from modelwire.server.annotations import is_union, without_annotated
from modelwire.server.fields import has_fields
from modelwire.server.forms import form_schema

if TYPE_CHECKING:
    from modelwire.server.context import Context

_MISSING: Any = inspect.Parameter.empty


class Ask:
    """Have a parameter filled by the user, who is asked before the function runs.

    Stands inside ``Annotated``, beside a class of plain fields (see `form_schema`) or one plain type. The parameter is
    in no schema. If the user declines, or closes the question, the parameter's default is taken; without one the call
    ends with an error that the model reads. Works for sync functions, too.

    Args:
        message: What to ask; or a function that says so, called with those of the call's arguments, and of what was
            asked before, that it has parameters for.
        key: What the answer is told by, on 2026-07-28; by default the parameter's name.

    Raises:
        SignatureError: ``message`` is neither.

    Example:
        ```
        @server.tool
        def book(hotel: str, guests: Annotated[Guests, Ask(lambda hotel: f"How many guests at {hotel}?")]) -> str:
            return f"Booked {hotel} for {guests.count}"
        ```
    """

    __slots__ = ("key", "message")

    def __init__(self, message: str | Callable[..., str], *, key: str | None = None) -> None:
        if not callable(message) and not (isinstance(message, str) and message.strip()):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SignatureError(f"Ask takes a question, or a function that returns one, not {message!r}")
        self.message = message
        self.key = key

    def __repr__(self) -> str:
        return f"Ask({self.message!r})"


def marks(annotation: Any) -> Iterator[Ask]:
    """Return the `Ask` marks beside a type; also where a name of its own, or a None, is put around both."""
    while hasattr(annotation, "__value__"):
        annotation = annotation.__value__
    for option in get_args(annotation) if is_union(annotation) else (annotation,):
        yield from (item for item in getattr(option, "__metadata__", ()) if isinstance(item, Ask))


def asker(
    name: str, parameter: inspect.Parameter, annotation: Any, ask: Ask, known: Collection[str]
) -> Callable[..., Any]:
    """Return the async function that asks for a parameter: called with the context, it returns the value.

    Args:
        name: The tool, prompt or resource, for messages.
        parameter: The parameter.
        annotation: Its annotation.
        ask: The mark.
        known: The names of the other parameters of the function.

    Raises:
        SignatureError: A form cannot ask for its type, or the question needs what is no argument.
    """
    where = f"{name}: parameter {parameter.name!r}"
    form, alone = _form(where, parameter.name, annotation)
    question = _question(where, ask, known)

    async def asked(ctx: Context) -> Any:
        arguments = ctx.arguments
        try:
            filled = await ctx.elicit(question(arguments), form, key=ask.key or parameter.name)
            value = getattr(filled, parameter.name) if alone else filled
        except (Declined, Dismissed):
            if parameter.default is _MISSING:
                raise
            value = parameter.default
        arguments[parameter.name] = value
        return value

    asked.__qualname__ = f"Ask for {parameter.name}"
    return asked


def _form(where: str, name: str, annotation: Any) -> tuple[type[Any], bool]:
    """Return the class of the form, and whether it was made around one plain type."""
    plain = without_annotated(annotation)
    if is_union(plain):  # None is what the parameter is when nobody answers
        options = [option for option in get_args(plain) if option is not type(None)]
        plain = without_annotated(options[0]) if len(options) == 1 else plain
    alone = not (isinstance(plain, type) and has_fields(plain))
    try:
        # What stands beside the type, such as limits and descriptions, belongs to the field.
        form = dataclasses.make_dataclass(name.title(), [(name, annotation)]) if alone else plain
        form_schema(form)
    except SignatureError as error:
        raise SignatureError(f"{where} cannot be asked for: {error}") from None
    return form, alone


def _question(where: str, ask: Ask, known: Collection[str]) -> Callable[[Mapping[str, Any]], str]:
    message = ask.message
    if isinstance(message, str):
        return lambda arguments: message
    try:
        wanted = list(inspect.signature(message).parameters)
    except (TypeError, ValueError):
        wanted = []
    for name in wanted:
        if name not in known:
            raise SignatureError(
                f"{where}: the function of its question takes {name!r}, which is no other parameter; it may take "
                f"{', '.join(sorted(known)) or 'none'}"
            )
    return lambda arguments: message(**{name: arguments[name] for name in wanted})
