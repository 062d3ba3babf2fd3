"""In a forked child the descriptors of a connection lead nowhere, and their numbers stay taken."""

from __future__ import annotations

import os

import pytest

from modelwire.transports import forks


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of forks beside threads
def test_a_forked_child_holds_dev_null_in_their_place() -> None:
    reading, writing = os.pipe()
    forks.keep_from_forks(writing)
    child = os.fork()
    if child == 0:
        is_null = os.fstat(writing).st_rdev == os.stat(os.devnull).st_rdev
        os._exit(0 if is_null and not os.get_inheritable(writing) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert os.write(writing, b"x") == 1
    assert os.read(reading, 10) == b"x"
    forks.close(writing)
    assert os.read(reading, 10) == b""
    os.close(reading)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_was_closed_is_nobody_s_business_any_more() -> None:
    reading, writing = os.pipe()
    forks.keep_from_forks(writing)
    forks.close(writing)
    again = os.dup2(reading, writing)
    child = os.fork()
    if child == 0:
        os._exit(0 if os.fstat(again).st_ino == os.fstat(reading).st_ino else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(again)
    os.close(reading)
