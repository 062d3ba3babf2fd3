"""What is known in this process of servers goes by their ports, which tests use again."""

from __future__ import annotations

import pytest

from modelwire.transports.http import endpoint


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "_KNOWN", {})
