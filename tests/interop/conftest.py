"""More time for the tests of this folder: programs of others take seconds to start, and more on a busy machine."""

from __future__ import annotations

from pathlib import Path

import pytest

SECONDS = 180


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(SECONDS))
