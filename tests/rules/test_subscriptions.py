"""What changed, who wants to know, and what was agreed."""

from __future__ import annotations

from itertools import product

import pytest

from modelwire.protocol.types import SubscriptionFilter
from modelwire.rules.subscriptions import LISTS, News, agreed, wants

ALL = SubscriptionFilter(
    tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True, resource_subscriptions=["a:b"]
)


def test_news_are_told_once_in_the_order_in_which_they_happened() -> None:
    news = News()
    assert not news
    for kind, name in [("list", "tools"), ("resource", "a:b"), ("list", "tools"), ("list", "prompts")] * 3:
        news.add(kind, name)
    assert news
    assert news.take() == [("list", "tools"), ("resource", "a:b"), ("list", "prompts")]
    assert not news
    assert news.take() == []


def test_what_is_taken_may_happen_again() -> None:
    news = News()
    news.add("list", "tools")
    news.take()
    news.add("list", "tools")
    assert news.take() == [("list", "tools")]


def test_a_resource_and_a_list_of_one_name_are_two_things() -> None:
    news = News()
    news.add("list", "tools")
    news.add("resource", "tools")
    assert len(news.take()) == 2


@pytest.mark.parametrize("declared", [frozenset(LISTS), *({name} for name in LISTS), frozenset[str]()], ids=sorted)
def test_the_part_that_the_server_has_is_agreed(declared: frozenset[str]) -> None:
    given = agreed(ALL, frozenset(declared))
    for name in LISTS:
        assert wants(given, "list", name) is (name in declared)
    assert wants(given, "resource", "a:b") is ("resources" in declared)


@pytest.mark.parametrize("wanted", list(product([True, False, None], repeat=3)))
def test_nothing_is_agreed_that_was_not_asked_for(wanted: tuple[bool | None, ...]) -> None:
    filter_ = SubscriptionFilter(**{f"{name}_list_changed": value for name, value in zip(LISTS, wanted, strict=True)})
    given = agreed(filter_, frozenset(LISTS))
    assert [wants(given, "list", name) for name in LISTS] == [bool(value) for value in wanted]
    assert given.resource_subscriptions is None
    assert not wants(given, "resource", "a:b")


def test_an_empty_list_of_resources_stays_one() -> None:
    assert agreed(SubscriptionFilter(resource_subscriptions=[]), frozenset(LISTS)).resource_subscriptions == []


def test_what_was_asked_for_is_not_changed() -> None:
    uris = ["a:b"]
    given = agreed(SubscriptionFilter(resource_subscriptions=uris), frozenset(LISTS))
    assert given.resource_subscriptions == uris
    assert given.resource_subscriptions is not uris
