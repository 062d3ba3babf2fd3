"""The public names of `modelwire.testing`, which are loaded one by one."""

from __future__ import annotations

import pytest

from modelwire import testing


@pytest.mark.parametrize("name", testing.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    found = getattr(testing, name)
    assert name in ("REVISIONS", "Absent") or found.__doc__


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match=r"module 'modelwire\.testing' has no attribute 'Nothing'"):
        testing.Nothing  # noqa: B018


def test_the_names_are_listed_before_they_are_loaded() -> None:
    assert set(testing.__all__) <= set(dir(testing))
