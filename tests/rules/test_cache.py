"""Which answers of a server may be used again: 2026-07-28, server/utilities/caching."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from modelwire.rules.cache import Asked, Key, Store

TOOLS: Key = ("tools/list", None)
SECOND: Key = ("tools/list", "c")
PROMPTS: Key = ("prompts/list", None)
RESOURCES: Key = ("resources/list", None)
TEMPLATES: Key = ("resources/templates/list", None)


def read(uri: str) -> Key:
    return ("resources/read", uri)


def store(**options: Any) -> Store:
    return Store(**{"entries": 100, "size": 10_000, "max_ttl": 86_400.0, **options})


def put(kept: Store, key: Key, data: bytes = b"{}", ttl_ms: int | None = 1000, now: float = 0.0) -> None:
    asked = kept.ask(key)
    kept.keep(asked, data, ttl_ms, now)
    kept.done(asked)


# ------------------------------------------------------------------ freshness


def test_an_answer_is_fresh_while_now_is_before_its_receipt_and_its_ttl() -> None:
    kept = store()
    put(kept, TOOLS, b"tools", 1500, now=10.0)
    assert [kept.fresh(TOOLS, now) for now in (10.0, 11.499)] == [b"tools", b"tools"]
    assert kept.fresh(TOOLS, 11.5) is None
    assert (len(kept), kept.size) == (0, 0)


@pytest.mark.parametrize("ttl", [0, -1, -(10**30), None])
def test_an_answer_without_a_positive_ttl_is_stale_at_once(ttl: int | None) -> None:
    kept = store()
    put(kept, TOOLS, ttl_ms=ttl)
    assert kept.fresh(TOOLS, 0.0) is None
    assert len(kept) == 0


def test_a_ttl_without_measure_is_cut() -> None:
    kept = store(max_ttl=60.0)
    put(kept, TOOLS, ttl_ms=10**400, now=5.0)
    assert kept.fresh(TOOLS, 64.9) == b"{}"
    assert kept.fresh(TOOLS, 65.0) is None


def test_an_answer_serves_no_request_of_another_method_or_parameter() -> None:
    kept = store()
    put(kept, TOOLS, b"first")
    put(kept, SECOND, b"second")
    put(kept, ("tools/list", ""), b"empty cursor")
    assert kept.fresh(TOOLS, 0) == b"first"
    assert kept.fresh(SECOND, 0) == b"second"
    assert kept.fresh(("tools/list", ""), 0) == b"empty cursor"
    assert kept.fresh(("tools/list", "d"), 0) is None
    assert kept.fresh(PROMPTS, 0) is None


def test_each_page_has_its_own_clock() -> None:
    kept = store()
    put(kept, TOOLS, ttl_ms=1000, now=0)
    put(kept, SECOND, ttl_ms=5000, now=0.5)
    assert kept.fresh(TOOLS, 2) is None
    assert kept.fresh(SECOND, 2) is not None


def test_an_answer_without_a_ttl_takes_the_place_of_the_one_before() -> None:
    kept = store()
    put(kept, TOOLS)
    put(kept, TOOLS, ttl_ms=0)
    assert kept.fresh(TOOLS, 0) is None


# ------------------------------------------------------------------ notifications


@pytest.mark.parametrize(
    ("method", "gone"),
    [
        ("notifications/tools/list_changed", {TOOLS, SECOND}),
        ("notifications/prompts/list_changed", {PROMPTS}),
        ("notifications/resources/list_changed", {RESOURCES, TEMPLATES}),
        ("notifications/message", set[Key]()),
    ],
)
def test_a_changed_list_takes_back_every_page_of_it_and_nothing_else(method: str, gone: set[Key]) -> None:
    kept = store()
    every = {TOOLS, SECOND, PROMPTS, RESOURCES, TEMPLATES, read("a:b")}
    for key in every:
        put(kept, key)
    kept.heard(method, b"{}")
    assert {key for key in every if kept.fresh(key, 0) is None} == gone


@pytest.mark.parametrize(
    ("params", "gone"),
    [
        (b'{"uri":"f:///a/b"}', {"f:///a/b", "f:///a/b/c", "f:///a/b?x", "f:///a", "f:///"}),
        (b'{"uri":"f:///"}', {"f:///a/b", "f:///a/b/c", "f:///a/b?x", "f:///a", "f:///", "f:///a/bc"}),
        (b'{"uri":"g:///a/b"}', set[str]()),
        (b'{"uri":7}', {"f:///a/b", "f:///a/b/c", "f:///a/b?x", "f:///a", "f:///", "f:///a/bc"}),
    ],
    ids=["in the middle", "the top", "elsewhere", "nobody knows"],
)
def test_an_updated_resource_takes_back_what_lies_below_and_above(params: bytes, gone: set[str]) -> None:
    kept = store()
    uris = {"f:///", "f:///a", "f:///a/b", "f:///a/bc", "f:///a/b/c", "f:///a/b?x"}
    for uri in uris:
        put(kept, read(uri))
    put(kept, RESOURCES)
    kept.heard("notifications/resources/updated", params)
    assert {uri for uri in uris if kept.fresh(read(uri), 0) is None} == gone
    assert kept.fresh(RESOURCES, 0) is not None


def test_an_answer_to_a_request_that_began_before_the_news_is_not_kept() -> None:
    kept = store()
    asked = kept.ask(TOOLS)
    kept.heard("notifications/tools/list_changed", b"{}")
    kept.keep(asked, b"old", 1000, 0)
    kept.done(asked)
    assert kept.fresh(TOOLS, 0) is None
    put(kept, TOOLS, b"new")
    assert kept.fresh(TOOLS, 0) == b"new"


def test_an_answer_that_was_asked_for_earlier_does_not_take_the_place_of_a_later_one() -> None:
    kept = store()
    early, late = kept.ask(TOOLS), kept.ask(TOOLS)
    kept.keep(late, b"late", 1000, 0)
    kept.keep(early, b"early", 1000, 1)
    assert kept.fresh(TOOLS, 0.5) == b"late"


@pytest.mark.parametrize("later", [0, None, "an error"])
def test_nor_where_the_later_one_said_that_there_is_nothing_to_keep(later: Any) -> None:
    kept = store()
    early, late = kept.ask(TOOLS), kept.ask(TOOLS)
    if later == "an error":
        kept.refused(late)
    else:
        kept.keep(late, b"late", later, 0)
    kept.keep(early, b"early", 1000, 0)
    assert kept.fresh(TOOLS, 0) is None


def test_what_is_under_way_is_forgotten_when_it_is_over() -> None:
    kept = store()
    first, second = kept.ask(TOOLS), kept.ask(TOOLS)
    kept.done(first)
    kept.heard("notifications/tools/list_changed", b"{}")
    kept.keep(second, b"old", 1000, 0)
    kept.done(second)
    assert len(kept) == 0
    assert not kept._open  # or a long life would fill the memory


# ------------------------------------------------------------------ errors


def test_a_refusal_is_the_answer_now_and_takes_back_the_one_before() -> None:
    kept = store()
    put(kept, read("a:b"))
    put(kept, read("a:c"))
    kept.refused(kept.ask(read("a:b")))
    assert kept.fresh(read("a:b"), 0) is None
    assert kept.fresh(read("a:c"), 0) is not None


@pytest.mark.parametrize(
    ("method", "gone"),
    [
        ("tools/call", {TOOLS, SECOND}),
        ("prompts/get", {PROMPTS}),
        ("resources/read", {RESOURCES, TEMPLATES}),
        ("completion/complete", set[Key]()),
    ],
)
def test_a_refused_request_gives_reason_to_doubt_the_list(method: str, gone: set[Key]) -> None:
    kept = store()
    every = {TOOLS, SECOND, PROMPTS, RESOURCES, TEMPLATES, read("a:b")}
    for key in every:
        put(kept, key)
    kept.doubt(method)
    assert {key for key in every if kept.fresh(key, 0) is None} == gone


def test_what_is_stale_is_kept_on_for_the_grace_and_no_longer() -> None:
    kept = store(grace=10.0)
    put(kept, TOOLS, b"tools", 1000, now=5.0)
    assert kept.fresh(TOOLS, 6.0) is None
    assert kept.stale(TOOLS, 15.9) == (b"tools", pytest.approx(10.9))
    assert kept.stale(TOOLS, 16.0) is None
    put(kept, PROMPTS, b"prompts", 0, now=5.0)
    assert kept.fresh(PROMPTS, 5.0) is None
    assert kept.stale(PROMPTS, 14.9) is not None


def test_what_was_taken_back_is_not_even_stale() -> None:
    kept = store(grace=10.0)
    put(kept, TOOLS)
    kept.heard("notifications/tools/list_changed", b"{}")
    assert kept.stale(TOOLS, 0) is None


# ------------------------------------------------------------------ bounds


def test_what_was_not_used_for_longest_gives_way() -> None:
    kept = store(entries=2)
    put(kept, read("a"))
    put(kept, read("b"))
    assert kept.fresh(read("a"), 0) is not None
    put(kept, read("c"))
    assert [uri for uri in "abc" if kept.fresh(read(uri), 0)] == ["a", "c"]


def test_bytes_are_bounded_and_what_alone_is_too_large_drives_nobody_out() -> None:
    kept = store(size=100)
    put(kept, read("a"), b"x" * 40)
    put(kept, read("b"), b"x" * 40)
    put(kept, read("c"), b"x" * 100)
    assert len(kept) == 2
    put(kept, read("d"), b"x" * 40)
    assert [uri for uri in "abcd" if kept.fresh(read(uri), 0)] == ["b", "d"]
    assert kept.size == 82
    kept.clear()
    assert kept.size == 0


# ------------------------------------------------------------------ everything at once

KEYS = [TOOLS, SECOND, RESOURCES, read("a:/x"), read("a:/x/y")]
NEWS: dict[str, Any] = {
    "notifications/tools/list_changed": lambda key: key[0] == "tools/list",
    "notifications/resources/list_changed": lambda key: key[0] in ("resources/list", "resources/templates/list"),
    "notifications/resources/updated": lambda key: key[0] == "resources/read",  # of a:/x: of both
}


class Model(RuleBasedStateMachine):
    """Against a model that remembers every answer with all that came after it, and forgets nothing."""

    @initialize(grace=st.sampled_from([0.0, 4.0]))
    def begin(self, grace: float) -> None:
        self.grace = grace
        self.store = store(grace=grace, max_ttl=6.0)
        self.now = 0.0
        self.steps = 0
        self.open: list[tuple[Asked, int]] = []
        self.answers: list[tuple[Key, int, bytes, float, float]] = []  # key, began, data, received, fresh for
        self.news: list[tuple[int, Any]] = []

    def step(self) -> int:
        self.steps += 1
        return self.steps

    @rule(key=st.sampled_from(KEYS))
    def ask(self, key: Key) -> None:
        self.open.append((self.store.ask(key), self.step()))

    @precondition(lambda self: self.open)
    @rule(data=st.data(), ttl=st.sampled_from([None, -5, 0, 1000, 3000, 10**20]))
    def answer(self, data: Any, ttl: int | None) -> None:
        asked, began = self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))
        body = str(self.step()).encode()
        self.store.keep(asked, body, ttl, self.now)
        self.store.done(asked)
        self.answers.append((asked.key, began, body, self.now, min(max(ttl or 0, 0) / 1000, 6.0)))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def fail(self, data: Any) -> None:
        self.store.done(self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))[0])

    @rule(method=st.sampled_from(sorted(NEWS)))
    def hear(self, method: str) -> None:
        self.store.heard(method, b'{"uri":"a:/x"}')
        self.news.append((self.step(), NEWS[method]))

    @rule(seconds=st.sampled_from([0.5, 1.0, 3.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def agrees(self) -> None:
        for key in KEYS if hasattr(self, "store") else ():
            self.look(key)
        assert not hasattr(self, "store") or (self.store.size > 0) == (len(self.store) > 0)

    def look(self, key: Key) -> None:
        last = self.last(key)
        expected = last[2] if last is not None and self.now < last[3] + last[4] else None
        assert self.store.fresh(key, self.now) == expected
        usable = self.grace and last is not None and self.now < last[3] + last[4] + self.grace
        found = self.store.stale(key, self.now)
        assert (None if found is None else found[0]) == (last[2] if usable and last is not None else None)

    def last(self, key: Key) -> Any:
        """Of the answers that no news has overtaken, the one that was asked for last."""
        told = max((step for step, concerns in self.news if concerns(key)), default=0)
        found = [answer for answer in self.answers if answer[0] == key and answer[1] > told]
        return max(found, key=lambda answer: answer[1], default=None)


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
