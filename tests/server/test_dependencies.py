"""`Depends` at registration: which parameters are no arguments, what is refused, and in which words."""

from __future__ import annotations

import contextlib
import functools
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, NewType, Optional

import pytest
import typing_extensions

import modelwire
from modelwire import Context, Depends, Server, SignatureError, types
from modelwire.server.dependencies import CONTEXT, Injection
from modelwire.server.signature import Signature, compile_signature


class Database:
    pass


class Cache:
    pass


Secret = NewType("Secret", str)


def get_db() -> Database:
    return Database()


def get_cache() -> Cache:
    return Cache()


async def get_later() -> int:
    return 1


def compiled(function: Callable[..., Any], **options: Any) -> Signature:
    return compile_signature(function, name="f", context_type=Context, shared=[Database, Secret], **options)


def names(signature: Signature) -> list[str]:
    return list(signature.input_schema["properties"])


def filled(signature: Signature) -> dict[str, int]:
    assert signature.plan is not None
    return signature.plan.takes


def steps(signature: Signature) -> list[str]:
    assert signature.plan is not None
    return [step.name for step in signature.plan.steps]


# --------------------------------------------------------------------------------------------------- what is found


def test_depends_is_public() -> None:
    assert modelwire.Depends is Depends
    assert repr(Depends(get_db)) == "Depends(get_db)"
    assert repr(Depends(functools.partial(get_db))) == "Depends(get_db)"


Alias = Annotated[Cache, Depends(get_cache)]
Named = typing_extensions.TypeAliasType("Named", Annotated[Cache, Depends(get_cache)])


def as_default(a: int, cache: Cache = Depends(get_cache)) -> None: ...
def without_annotation(a: int, cache=Depends(get_cache)) -> None: ...  # type: ignore[no-untyped-def]
def annotated(a: int, cache: Annotated[Cache, Depends(get_cache)]) -> None: ...
def annotated_with_more(a: int, cache: Annotated[Cache, "the cache", Depends(get_cache)]) -> None: ...
def annotated_and_none(a: int, cache: Annotated[Cache, Depends(get_cache)] = None) -> None: ...  # type: ignore[assignment]
def optional(a: int, cache: Optional[Annotated[Cache, Depends(get_cache)]] = None) -> None: ...
def alias(a: int, cache: Alias) -> None: ...
def named_alias(a: int, cache: Named) -> None: ...
def in_quotes(a: int, cache: "Annotated[Cache, Depends(get_cache)]") -> None: ...  # noqa: UP037
def keyword_only(a: int, *, cache: Cache = Depends(get_cache)) -> None: ...
def before_others(cache: Annotated[Cache, Depends(get_cache)], a: int) -> None: ...
def of_unknown_type(a: int, cache: OnlyForTypeCheckers = Depends(get_cache)) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    "function",
    [
        as_default,
        without_annotation,
        annotated,
        annotated_with_more,
        annotated_and_none,
        optional,
        alias,
        named_alias,
        in_quotes,
        keyword_only,
        before_others,
        of_unknown_type,
    ],
)
def test_a_dependency_is_no_argument(function: Callable[..., Any]) -> None:
    signature = compiled(function)
    assert names(signature) == ["a"]
    assert signature.input_schema["required"] == ["a"]
    assert list(filled(signature)) == ["cache"]
    assert steps(signature) == ["get_cache"]
    args, kwargs = signature.bind(b'{"a":5}')
    assert [*args, *kwargs.values()] == [5]


def test_a_dependency_is_described_in_no_schema_and_cannot_be_given() -> None:
    def function(a: int, cache: Cache = Depends(get_cache)) -> None:
        """Do.

        Args:
            a: A number.
            cache: Nobody's business.
        """

    signature = compiled(function)
    assert "business" not in str(signature.input_schema)
    with pytest.raises(modelwire.ToolError, match="cache"):
        signature.bind(b'{"a":5,"cache":{}}')


def test_what_stands_behind_it_is_passed_by_name() -> None:
    def function(a: int, cache: Annotated[Cache, Depends(get_cache)], b: int, c: int = 3) -> list[Any]:
        return [a, cache, b, c]

    args, kwargs = compiled(function).bind(b'{"a":1,"b":2}')
    assert function(*args, **kwargs, cache="cache") == [1, "cache", 2, 3]  # type: ignore[arg-type]


def test_dependencies_stand_in_the_order_of_the_parameters_each_after_what_it_needs() -> None:
    def deep(later: int = Depends(get_later)) -> None: ...
    def wide(one: None = Depends(deep), cache: Cache = Depends(get_cache)) -> None: ...

    def function(
        ctx: Context, db: Database, first: Cache = Depends(get_cache), second: None = Depends(wide)
    ) -> None: ...

    signature = compiled(function)
    assert steps(signature) == ["get_cache", "get_later", "deep", "wide"]
    assert names(signature) == []
    assert signature.context_parameter == "ctx"
    taken = filled(signature)
    assert taken["ctx"] == CONTEXT
    assert len(set(taken.values())) == 4


def test_the_same_function_is_one_dependency_however_it_is_named() -> None:
    class Pool:
        def get(self) -> int:
            return 1

    pool, other, part = Pool(), Pool(), functools.partial(get_db)

    def function(
        a: int = Depends(pool.get),
        b: int = Depends(pool.get),  # another bound method of the same pool
        c: int = Depends(other.get),
        d: int = Depends(part),
        e: int = Depends(part),
        f: int = Depends(functools.partial(get_db)),
    ) -> None: ...

    taken = filled(compiled(function))
    assert taken["a"] == taken["b"]
    assert taken["d"] == taken["e"]
    assert len(set(taken.values())) == 4


def test_callables_that_cannot_be_hashed_are_dependencies_as_well() -> None:
    class Getter:
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            return True

        def __call__(self) -> int:
            return 1

    def function(a: int = Depends(Getter()), b: int = Depends(Getter())) -> None: ...

    assert len(set(filled(compiled(function)).values())) == 2


def test_a_dependency_has_defaults_stars_and_what_a_partial_has_bound() -> None:
    def free(size: int = 3, *args: int, name: str = "x", **kwargs: Any) -> None: ...
    def bound(dsn: str, ctx: Context) -> None: ...

    def function(a: None = Depends(free), b: None = Depends(functools.partial(bound, dsn="x"))) -> None: ...

    signature = compiled(function)
    assert signature.plan is not None
    assert [list(step.takes) for step in signature.plan.steps] == [[], ["ctx"]]


def test_functions_that_do_not_say_what_they_take_are_called_with_nothing() -> None:
    def function(a: dict[str, int] = Depends(dict)) -> None: ...

    assert steps(compiled(function)) == ["dict"]


def test_generators_are_known_inside_decorators_methods_and_partials() -> None:
    def plain() -> Iterator[int]:
        yield 1

    async def later() -> AsyncIterator[int]:
        yield 1

    class Held:
        def method(self) -> Iterator[int]:
            yield 1

        def __call__(self) -> Iterator[int]:
            yield 1

    functions = [
        plain,
        later,
        contextlib.contextmanager(plain),
        contextlib.asynccontextmanager(later),
        functools.partial(plain),
        Held().method,
        Held(),
    ]

    def count() -> int:
        return 1

    for function in functions:
        injection = Injection("f", Context)
        injection.read(lambda value=Depends(function): None)
        assert [step.yields for step in injection.plan.steps] == [True]
    injection = Injection("f", Context)
    injection.read(lambda one=Depends(count), two=Depends(get_later), three=Depends(Cache): None)
    assert [step.yields for step in injection.plan.steps] == [False, False, False]


# --------------------------------------------------------------------------------------------------- the lifespan's


def test_a_parameter_of_a_type_that_the_lifespan_yields_is_no_argument() -> None:
    def function(db: Database, secret: Secret, described: Annotated[Database, "the database"], a: int) -> None: ...

    signature = compiled(function)
    assert names(signature) == ["a"]
    taken = filled(signature)
    assert taken["db"] == taken["described"] != taken["secret"]
    assert steps(signature) == []


def test_only_exactly_that_type_is_the_lifespans() -> None:
    class Special(Database):
        pass

    for kind in (Special, Optional[Database], list[Database]):

        def function(value: Any) -> None: ...

        function.__annotations__["value"] = kind
        with pytest.raises(SignatureError, match="parameter 'value'"):
            compiled(function)

    def text(value: str) -> None: ...

    assert names(compiled(text)) == ["value"]  # Secret is a name for text, and text is no Secret


def test_depends_goes_before_the_type() -> None:
    def function(db: Database = Depends(get_db), other: Annotated[Database, Depends(get_db)] = None) -> None: ...  # type: ignore[assignment]

    assert set(filled(compiled(function)).values()) == {3}  # the context, two types, then the first step


def test_a_dependency_takes_the_context_and_the_lifespans_values() -> None:
    def inner(context: Context, db: Database, maybe: Context | None = None) -> None: ...
    def function(value: None = Depends(inner)) -> None: ...

    signature = compiled(function)
    assert signature.plan is not None
    (step,) = signature.plan.steps
    assert step.takes == {"context": CONTEXT, "db": 1, "maybe": CONTEXT}
    assert signature.context_parameter is None


def test_with_nothing_but_the_context_there_is_no_plan() -> None:
    def function(ctx: Context, a: int) -> None: ...

    assert compiled(function).plan is None
    assert compiled(function).context_parameter == "ctx"


# --------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("given", [None, 5, "get_db", Database()])
def test_depends_takes_a_function_and_not_its_result(given: Any) -> None:
    with pytest.raises(SignatureError, match="without calling it"):
        Depends(given)


def test_a_parameter_of_a_dependency_that_nothing_fills_is_refused_with_all_names() -> None:
    def get_session(user: str) -> None: ...
    def get_user(session: None = Depends(get_session)) -> None: ...

    server = Server("s")
    with pytest.raises(SignatureError, match="order.*dependency get_session.*parameter 'user'.*no default"):

        @server.tool
        def order(user: None = Depends(get_user)) -> None: ...

    assert server.features.tools.registry.keys() == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def f(cache=Depends(get_cache), /): ...", "'cache'.*behind the `/`"),
        ("def f(db: Database, /): ...", "'db'.*behind the `/`"),
        ("def f(ctx: Context, /): ...", "'ctx'.*the context.*behind the `/`"),
        ("def f(a: Context, b: Context): ...", "'a' and 'b' both take the context"),
        ("def f(a: Annotated[int, Depends(get_db), Depends(get_cache)]): ...", "'a' has more than one Depends"),
        ("def g(a=Depends(get_db), /): ...\ndef f(g=Depends(g)): ...", "dependency g: parameter 'a'.*behind the `/`"),
        ("def g(a: Nowhere = 1): ...\ndef f(g=Depends(g)): ...", "dependency g: parameter 'a'.*Nowhere"),
        ("def g(self): ...\ndef f(g=Depends(g)): ...", "dependency g: parameter 'self'"),
        ("def g(ctx): ...\ndef f(g=Depends(g)): ...", "dependency g: parameter 'ctx'.*annotation Context"),
    ],
)
def test_what_cannot_be_filled_is_refused(source: str, words: str) -> None:
    scope = {**globals()}
    exec(f"from __future__ import annotations\n{source}", scope)
    with pytest.raises(SignatureError, match=f"^f: .*{words}"):
        compiled(scope["f"])


@pytest.mark.parametrize("first", ["cache=Depends(get_cache)", "ctx: Context", "db: Database"])
def test_nothing_that_goes_by_name_may_stand_before_stars(first: str) -> None:
    scope = {**globals()}
    exec(f"from __future__ import annotations\ndef f({first}, *rest: int): ...", scope)
    schema = {"type": "object", "properties": {"rest": {"type": "array"}}}
    with pytest.raises(SignatureError, match=r"parameter 'rest' \(\*rest\).*behind it"):
        compiled(scope["f"], input_schema=schema)
    exec(f"from __future__ import annotations\ndef f(*rest: int, {first}): return [rest, *locals()]", scope)
    args, kwargs = compiled(scope["f"], input_schema=schema).bind(b'{"rest":[1,2]}')
    assert (args, kwargs) == ([1, 2], {})


def test_dependencies_that_need_each_other_are_refused_with_the_chain() -> None:
    def first(a: Annotated[int, Depends(lambda: 1)], b: "Annotated[int, Depends(second)]") -> int: ...  # noqa: UP037
    def second(c: "Annotated[int, Depends(third)]") -> int: ...  # noqa: UP037
    def third(d: "Annotated[int, Depends(second)]") -> int: ...  # noqa: UP037
    def itself(e: "Annotated[int, Depends(itself)]") -> int: ...  # noqa: UP037

    def f(value: int = Depends(first)) -> None: ...
    def g(value: int = Depends(itself)) -> None: ...

    with pytest.raises(SignatureError, match="^f: .*circle: second needs third, third needs second$"):
        compiled(f)
    with pytest.raises(SignatureError, match="^f: .*circle: itself needs itself$"):
        compiled(g)


@pytest.mark.parametrize(("count", "refused"), [(100, False), (101, True), (3000, True)])
def test_dependencies_may_need_each_other_a_hundred_deep_and_no_deeper(count: int, refused: bool) -> None:
    def link(before: Any, name: str) -> Any:
        def needs(value: int = Depends(before)) -> int: ...

        needs.__qualname__ = name
        return needs

    last: Any = lambda: 1  # noqa: E731
    for number in range(count - 1, 0, -1):
        last = link(last, f"d{number}")

    def function(value: int = Depends(last)) -> None: ...

    if refused:
        words = "^f: its dependencies are more than 100 deep: d1 needs d2, d2 needs d3, ...; have one of them call"
        with pytest.raises(SignatureError, match=words):
            compiled(function)
    else:
        assert len(steps(compiled(function))) == count


def test_a_dependency_that_is_asked_for_twice_is_no_circle() -> None:
    def left(cache: Cache = Depends(get_cache)) -> None: ...
    def right(cache: Cache = Depends(get_cache), other: None = Depends(left)) -> None: ...
    def function(a: None = Depends(left), b: None = Depends(right)) -> None: ...

    assert steps(compiled(function)) == ["get_cache", "left", "right"]


def test_handlers_of_the_low_level_refuse_what_nobody_would_fill() -> None:
    server = Server("s")
    tool = types.Tool("t", {"type": "object"})
    with pytest.raises(SignatureError, match=r"'db'.*Depends\(get_db\)"):
        server.add_tool(tool, lambda arguments, db=Depends(get_db): "")
    with pytest.raises(SignatureError, match=r"'db'.*Depends\(get_db\)"):
        server.method("com.example/m")(lambda params, db=Depends(get_db): {})
    with pytest.raises(SignatureError, match=r"'db'.*Depends\(get_db\)"):
        Server("s", lifespan=contextlib.asynccontextmanager(_lifespan))


async def _lifespan(db: Database = Depends(get_db)) -> AsyncIterator[None]:
    yield


def test_a_completer_has_no_parameter_that_nothing_fills() -> None:
    server = Server("s")
    with pytest.raises(SignatureError, match="'tone'.*parameter 'size'.*typed text"):
        server.complete("p", "tone")(lambda typed, size: [])


# --------------------------------------------------------------------------------------------------- types


@pytest.mark.slow
def test_both_forms_please_a_strict_type_checker(tmp_path: Path) -> None:
    program = tmp_path / "typed.py"
    program.write_text(
        textwrap.dedent("""
            from collections.abc import AsyncIterator
            from contextlib import asynccontextmanager
            from typing import Annotated

            from modelwire import Context, Depends, Server

            class Database: ...

            @asynccontextmanager
            async def lifespan(server: Server) -> AsyncIterator[Database]:
                yield Database()

            async def plain(server: Server) -> AsyncIterator[Database]:
                yield Database()

            async def transaction(db: Database, ctx: Context) -> AsyncIterator[int]:
                yield 1

            server = Server("typed", lifespan=lifespan)
            other = Server("other", lifespan=plain)

            @server.tool
            async def one(a: int, value: int = Depends(transaction)) -> int:
                return a + value

            @server.tool
            async def two(a: int, value: Annotated[int, Depends(transaction)]) -> int:
                return a + value

            @server.tool
            async def count(ctx: Context) -> int:
                ctx.state["count"] = ctx.state.get("count", 0) + 1
                return ctx.state["count"]
        """)
    )
    settings = tmp_path / "pyrightconfig.json"
    settings.write_text(
        '{"typeCheckingMode": "strict", "reportUnusedFunction": false, "reportDeprecated": false,'
        ' "reportCallInDefaultInitializer": false}'
    )
    checked = subprocess.run(
        [sys.executable, "-m", "pyright", "-p", str(tmp_path), "--pythonpath", sys.executable],
        capture_output=True,
        timeout=50,
    )
    assert checked.returncode == 0, checked.stdout.decode()
