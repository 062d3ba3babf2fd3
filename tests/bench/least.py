"""Costs as ratios, where noise only ever adds: each side is given by its least round, and rounds take turns."""

from __future__ import annotations

from benchmarks.contestants import Contestant

MOST_ROUNDS = 40
FEWEST_ROUNDS = 3


def least_ratio(one: Contestant, other: Contestant, at_most: float, most_rounds: int = MOST_ROUNDS) -> float:
    """Return what ``one`` costs over what ``other`` does, as soon as it is at most so much."""
    ones: list[float] = []
    others: list[float] = []
    for round_ in range(1, most_rounds + 1):
        ones.append(one.measure(1))
        others.append(other.measure(1))
        if round_ >= FEWEST_ROUNDS and min(ones) <= at_most * min(others):
            break
    return min(ones) / min(others)
