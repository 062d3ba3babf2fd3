"""`Depends`, and what else fills a function's parameters besides arguments: the context, what the lifespan yields.

All of it is found when a function is registered, so that what cannot work is refused then. Nothing is called here:
`modelwire.server.resolving` does that, by the plan that this file makes.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from modelwire.errors import SignatureError
from modelwire.server import ask
from modelwire.server.annotations import Scope, is_simple, is_union, unwrap, without_annotated

CONTEXT = 0
"""Which of a plan's values is the context; the values of the lifespan come after it, then those of the steps."""

MAX_CHAIN = 100
"""How many dependencies may each need the next."""


class Dependency:
    """What `Depends` returns: the mark of a parameter that a function of the user's own fills."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __repr__(self) -> str:
        return f"Depends({name_of(self.function)})"


def Depends(function: Callable[..., Any]) -> Any:
    """Have a parameter filled with what a function gives, anew for each call.

    Stands where the default does, or inside ``Annotated``; in tools, prompts, resources, completers and dependencies
    themselves. The parameter is in no schema. A dependency is called once per call, however many parameters ask for it,
    and before the function. It may take dependencies, a `Context` and what the server's lifespan yields.

    An ``async def`` runs on the event loop, a plain function in a worker thread. What stands behind the one ``yield``
    of a generator (or of a function with ``@contextmanager`` or ``@asynccontextmanager``) is its clean-up. It runs when
    the function has ended and before the answer goes out, the last one set up first. What the function has raised, its
    timeout (a ``TimeoutError``) or its cancellation is raised at the ``yield``; it remains the outcome of the call even
    where the dependency catches it or raises another error. A clean-up that fails is logged; where everything before it
    went well, the call fails with its error. A plain function cannot be stopped: after a timeout it may still run while
    its dependencies are cleaned up.

    Args:
        function: A function, generator function, partial, method, class or any other callable; not called yet.

    Raises:
        SignatureError: It is no callable.

    Example:
        ```
        async def transaction(pool: Pool) -> AsyncIterator[Connection]:
            async with pool.acquire() as connection, connection.transaction():
                yield connection

        @server.tool
        async def rename(id: int, name: str, db: Annotated[Connection, Depends(transaction)]) -> None:
            await db.execute("update things set name = ? where id = ?", name, id)
        ```
    """
    if not callable(function):
        raise SignatureError(
            f"Depends takes a function, not a {type(function).__name__}; "
            "give the function itself, without calling it: Depends(get_db)"
        )
    return Dependency(function)


@dataclass(frozen=True, slots=True)
class Step:
    """One dependency of a plan.

    Attributes:
        function: What to call.
        name: What to call it in messages.
        takes: Which of the plan's values goes into which of its parameters, all by keyword.
        yields: Whether it is a generator function, within whatever decorators.
    """

    function: Callable[..., Any]
    name: str
    takes: dict[str, int]
    yields: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """What has to be made, and in which order, before a function can be called.

    Attributes:
        takes: Which value goes into which of the function's parameters, all by keyword.
        steps: The dependencies, each after those that it needs.
    """

    takes: dict[str, int]
    steps: Sequence[Step]

    @property
    def more_than_context(self) -> bool:
        """Whether anything but the context is filled in."""
        return any(source != CONTEXT for source in self.takes.values())


class Injection:
    """Collects the parameters of one function that are no arguments.

    Args:
        name: The tool, prompt or resource, for messages.
        context_type: The class whose parameters take the context; None without.
        shared: The types by which parameters take what the lifespan yields.
    """

    def __init__(self, name: str, context_type: type | None, shared: Sequence[Any] = ()) -> None:
        self._name = name
        self._context_type = context_type
        self._shared = shared
        self._takes: dict[str, int] = {}
        self._steps: list[Step] = []
        self._known: dict[Any, int] = {}
        self.names: Collection[str] = ()
        """The function's parameters, of which the questions of `Ask` may be made."""

    def __bool__(self) -> bool:
        """Whether there is such a parameter."""
        return bool(self._takes)

    @property
    def context(self) -> str | None:
        """The parameter that takes the context."""
        return next((name for name, source in self._takes.items() if source == CONTEXT), None)

    @property
    def plan(self) -> Plan:
        """What fills the parameters."""
        return Plan(self._takes, self._steps)

    def read(self, function: Callable[..., Any]) -> list[inspect.Parameter]:
        """Take all parameters of a function whose arguments have no schema; return the ordinary ones.

        ``ctx`` is the context also without an annotation.

        Raises:
            SignatureError: One cannot be filled, or its annotation cannot be evaluated.
        """
        scope, ordinary = _scope(function), list[inspect.Parameter]()
        for parameter in _parameters(function):
            annotation = _evaluated(parameter, scope, f"{self._name}: parameter {parameter.name!r}")
            if parameter.name == "ctx" and annotation is Any:
                annotation = self._context_type
            if not self.take(parameter, annotation):
                ordinary.append(parameter)
        return ordinary

    def take(self, parameter: inspect.Parameter, annotation: Any) -> bool:
        """Note a parameter of the function and return True, or return False when it is an ordinary one.

        Args:
            parameter: The parameter.
            annotation: Its annotation, evaluated.

        Raises:
            SignatureError: It cannot be filled so.
        """
        source = self._source(parameter, annotation, ())
        if source is None:
            self._refuse_bare_context(parameter)
            return False
        if source == CONTEXT and self.context is not None:
            raise SignatureError(
                f"{self._name}: parameters {self.context!r} and {parameter.name!r} both take the context"
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            what = "the context" if source == CONTEXT else "no argument but a value of the server's"
            raise SignatureError(
                f"{self._name}: parameter {parameter.name!r} takes {what}, which is passed by keyword; "
                "move it behind the `/`"
            )
        self._takes[parameter.name] = source
        return True

    def _refuse_bare_context(self, parameter: inspect.Parameter) -> None:
        kind = self._context_type
        if parameter.name == "ctx" and parameter.annotation is parameter.empty and kind is not None:
            raise SignatureError(f"{self._name}: parameter 'ctx' has no annotation; write ctx: {kind.__name__}")

    def _source(self, parameter: inspect.Parameter, annotation: Any, chain: tuple[Step, ...]) -> int | None:
        depends = isinstance(parameter.default, Dependency)
        if not depends and not self._shared and (is_simple(annotation) or isinstance(annotation, type)):
            return CONTEXT if self._is_context(annotation) else None
        found = [parameter.default] if depends else list(_marks(annotation))
        if len(found) > 1:
            raise SignatureError(f"{self._name}: parameter {parameter.name!r} has more than one Depends")
        if found:
            return self._dependency(found[0].function, chain)
        if asks := list(ask.marks(annotation)):
            return self._asked(parameter, annotation, asks[0])
        return CONTEXT if self._is_context(annotation) else self._of_the_lifespan(annotation)

    def _is_context(self, annotation: Any) -> bool:
        if self._context_type is None:
            return False
        if isinstance(annotation, type):
            return issubclass(annotation, self._context_type)
        plain = without_annotated(annotation)
        options = get_args(plain) if is_union(plain) else (plain,)
        classes = [get_origin(option) or option for option in options]
        return any(isinstance(cls, type) and issubclass(cls, self._context_type) for cls in classes)

    def _of_the_lifespan(self, annotation: Any) -> int | None:
        plain = without_annotated(annotation)
        return next((CONTEXT + 1 + index for index, kind in enumerate(self._shared) if kind == plain), None)

    def _asked(self, parameter: inspect.Parameter, annotation: Any, mark: ask.Ask) -> int:
        others = [name for name in self.names if name != parameter.name]
        asked = ask.asker(self._name, parameter, annotation, mark, others)
        self._steps.append(Step(asked, asked.__qualname__, {"ctx": CONTEXT}, False))
        return CONTEXT + len(self._shared) + len(self._steps)

    # ------------------------------------------------------------------ dependencies of dependencies

    def _dependency(self, function: Callable[..., Any], chain: tuple[Step, ...]) -> int:
        key = _key(function)
        step = Step(function, name_of(function), {}, _yields(function))
        self._refuse_circle(step, chain)
        self._refuse_depth(step, chain)
        if key not in self._known:
            self._fill(step, (*chain, step))
            self._steps.append(step)
            self._known[key] = CONTEXT + len(self._shared) + len(self._steps)
        return self._known[key]

    def _fill(self, step: Step, chain: tuple[Step, ...]) -> None:
        scope = _scope(step.function)
        for parameter in _parameters(step.function):
            where = f"{self._name}: dependency {step.name}: parameter {parameter.name!r}"
            source = self._source(parameter, _evaluated(parameter, scope, where), chain)
            if source is None and parameter.default is parameter.empty:
                raise SignatureError(
                    f"{where} has no default and nothing that fills it; what fills a dependency's parameters is "
                    "Depends(...), and the annotation Context or a type that the lifespan yields"
                )
            if source is None:
                continue
            if parameter.kind is parameter.POSITIONAL_ONLY:
                raise SignatureError(f"{where} is passed by keyword; move it behind the `/`")
            step.takes[parameter.name] = source

    def _refuse_circle(self, step: Step, chain: tuple[Step, ...]) -> None:
        before = [_key(one.function) for one in chain]
        if _key(step.function) not in before:
            return
        circle = [one.name for one in chain[before.index(_key(step.function)) :]] + [step.name]
        words = ", ".join(f"{one} needs {other}" for one, other in itertools.pairwise(circle))
        raise SignatureError(f"{self._name}: its dependencies go round in a circle: {words}")

    def _refuse_depth(self, step: Step, chain: tuple[Step, ...]) -> None:
        if len(chain) >= MAX_CHAIN:
            names = [one.name for one in (*chain, step)[:3]]
            words = ", ".join(f"{one} needs {other}" for one, other in itertools.pairwise(names))
            raise SignatureError(
                f"{self._name}: its dependencies are more than {MAX_CHAIN} deep: {words}, ...; "
                "have one of them call the next function itself"
            )


def name_of(function: Callable[..., Any]) -> str:
    """Return what to call a function in messages."""
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    return str(getattr(inner, "__qualname__", type(inner).__qualname__)).rpartition("<locals>.")[2]


def _key(function: Callable[..., Any]) -> Any:
    """What makes two dependencies the same: a method is made anew at each look at it, anything else is itself."""
    return function if inspect.isroutine(function) else id(function)


def _yields(function: Callable[..., Any]) -> bool:
    plain = unwrap(function)
    return inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain)


def _marks(annotation: Any) -> Iterator[Dependency]:
    """The marks beside a type; also where a name of its own, or a None, is put around both."""
    while hasattr(annotation, "__value__"):  # type DB = Annotated[...]
        annotation = annotation.__value__
    for option in get_args(annotation) if is_union(annotation) else (annotation,):
        yield from (item for item in getattr(option, "__metadata__", ()) if isinstance(item, Dependency))


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """What a dependency takes, without what a partial has bound and without stars, which need nothing."""
    try:
        found = inspect.signature(function).parameters.values()
    except ValueError:  # some functions written in C do not say
        return []
    bound: set[str] = set(function.keywords) if isinstance(function, functools.partial) else set()
    stars = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [parameter for parameter in found if parameter.kind not in stars and parameter.name not in bound]


def _scope(function: Callable[..., Any]) -> Scope:
    plain = unwrap(function)
    return Scope(plain.__init__ if isinstance(plain, type) else function)


def _evaluated(parameter: inspect.Parameter, scope: Scope, where: str) -> Any:
    if parameter.annotation is parameter.empty or isinstance(parameter.default, Dependency):
        return Any
    try:
        return scope.evaluate(parameter.annotation)
    except Exception as error:
        raise SignatureError(
            f"{where} has an annotation that cannot be evaluated: {error}; "
            "define or import its names at module level, outside `if TYPE_CHECKING`"
        ) from error
