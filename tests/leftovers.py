"""What should not be there once a client was closed: tasks, open files, processes, failures that nobody heard of."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.clock import Clock


def open_files() -> set[str]:
    """The open descriptors of this process."""
    return set(os.listdir("/proc/self/fd"))


def children() -> set[str]:
    """The children of this process."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


@asynccontextmanager
async def nothing_left(caplog: pytest.LogCaptureFixture) -> AsyncIterator[None]:
    """See that a block leaves no task, no open file, no process and no failure that nobody heard of."""
    tasks, files, before = asyncio.all_tasks(), open_files(), children()
    yield
    await Clock().turn()
    gc.collect()
    await Clock().turn()
    assert asyncio.all_tasks() - tasks == set()
    assert open_files() - files == set()
    assert children() - before == set()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
