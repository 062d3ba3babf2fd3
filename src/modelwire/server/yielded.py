"""What a lifespan says that it yields, and which parameters that is meant for.

Annotations are only read here; nothing is called and nothing converted.
"""

from __future__ import annotations

import sys
from collections import abc
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, NewType, get_args, get_origin

from modelwire.errors import SignatureError
from modelwire.server.annotations import Scope, without_annotated
from modelwire.server.converters import Unsupported, converter
from modelwire.server.signature import called

_ITERATORS = (abc.AsyncIterator, abc.AsyncGenerator, abc.AsyncIterable, abc.Iterator, abc.Generator, abc.Iterable)


def yielded_type(function: Callable[..., Any], name: str) -> Any:
    """Return the type of what a lifespan yields; None where it does not say.

    Args:
        function: The lifespan.
        name: What to call it in messages.

    Raises:
        SignatureError: Its annotation cannot be evaluated.
    """
    inner = called(function)
    annotation: Any = getattr(inner, "__annotations__", {}).get("return")
    if annotation is None:
        return None
    try:
        annotation = Scope(function).evaluate(annotation)
    except Exception as error:
        raise SignatureError(
            f"the annotation of what {name} yields cannot be evaluated: {error}; "
            "define or import its names at module level, outside `if TYPE_CHECKING`"
        ) from error
    origin, args = get_origin(annotation), get_args(annotation)
    managers = (AbstractAsyncContextManager, AbstractContextManager)
    return args[0] if origin in (*_ITERATORS, *managers) and args else None


def goes_by_type(kind: Any) -> bool:
    """Whether parameters of a type are meant for the lifespan.

    Not where arguments commonly have that type: a lifespan that yields a dict must not take every dict away from them.
    """
    plain = without_annotated(kind)
    if plain in (None, Any, object):
        return False
    cls = get_origin(plain) or plain
    own = isinstance(cls, type) and cls.__module__.partition(".")[0] not in sys.stdlib_module_names
    if own or isinstance(plain, NewType):
        return True
    try:
        converter(plain, Scope(goes_by_type))
    except Unsupported:
        return True
    return False
