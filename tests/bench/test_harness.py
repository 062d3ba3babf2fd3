"""The measurements' own honesty: a wrong answer, or none, is never counted."""

from __future__ import annotations

import re
import sys

import pytest

from benchmarks import requests
from benchmarks.child import ROOT, BenchError, Child
from benchmarks.contestants import ServerCalls

ANSWERING = """
import sys, json
for line in sys.stdin:
    id_ = json.loads(line)["id"]
    {body}
    sys.stdout.flush()
"""
SUM = '{"content": [{"type": "text", "text": str(id_ + 2)}], "structuredContent": id_ + 2}'
WRITE = "sys.stdout.write(json.dumps({{'id': {id}, 'result': {result}}}) + chr(10))"


def server(body: str) -> ServerCalls:
    """Return a server whose answers are written by some lines of Python."""
    return ServerCalls([sys.executable, "-c", ANSWERING.format(body=body)], requests.ADD, 4, depth=2, revision=None)


def test_right_answers_are_counted() -> None:
    contestant = server(WRITE.format(id="id_", result=SUM))
    try:
        assert contestant.measure(1) > 0
    finally:
        contestant.close()


@pytest.mark.parametrize(
    "body",
    [
        WRITE.format(id="id_", result=SUM.replace("+ 2", "+ 3")),
        WRITE.format(id="2", result=SUM),
        WRITE.format(id="id_", result=SUM).replace("'result'", "'error'"),
        f"{WRITE.format(id='id_', result=SUM)}; {WRITE.format(id='id_', result=SUM)}",
        "sys.stdout.write('no JSON' + chr(10))",
    ],
    ids=["another sum", "another's id", "an error", "an answer twice", "no JSON"],
)
def test_a_wrong_answer_ends_the_measurement(body: str) -> None:
    contestant = server(body)
    with pytest.raises(BenchError):
        contestant.measure(1)
    contestant.close()


def test_a_child_that_ends_is_reported_with_what_it_said() -> None:
    child = Child([sys.executable, "-c", "import sys; input(); sys.exit('out of order')"])
    with pytest.raises(BenchError, match=r"ended with code 1(.|\n)*out of order"):
        child.exchange([b"{}\n"])


def test_cpu_of_threads_that_have_ended_counts() -> None:
    busy = (
        "import threading, time\n"
        "def burn():\n"
        "    while time.process_time() < 0.3: pass\n"
        "input(); burner = threading.Thread(target=burn); burner.start(); burner.join(); print(); input()\n"
    )
    child = Child([sys.executable, "-c", busy])
    child.exchange([b"\n"])
    assert child.cpu >= 0.3
    child.close()


def test_the_peers_are_pinned_to_exact_versions_without_addresses_or_hashes() -> None:
    lines = (ROOT / "benchmarks" / "constraints-peers.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line[:1] != "#"]
    assert any(pin.startswith("mcp==2.3") for pin in pins)
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", pin)] == []
