"""Runs measurements: rounds that take turns, medians, ratios and whether they keep their bounds. Prints nothing."""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction

from benchmarks.measurements import OURS, Measurement

WARM_UP = 0.2
"""The share of a round that is run first and not counted."""


@dataclass(frozen=True)
class Effort:
    """How much is done: the part of the usual rounds and requests."""

    rounds: float = 1
    requests: float = 1


@dataclass(frozen=True)
class Ratio:
    """modelwire over another contestant, and what is promised of it."""

    against: str
    value: float
    at_most: Fraction | None

    @property
    def kept(self) -> bool:
        """Whether the promise holds; there may be none."""
        return self.at_most is None or self.value <= self.at_most


@dataclass(frozen=True)
class Outcome:
    """The samples of one measurement, by contestant."""

    measurement: Measurement
    samples: dict[str, list[float]]

    def median(self, contestant: str) -> float:
        return statistics.median(self.samples[contestant])

    def least(self, contestant: str) -> float:
        return min(self.samples[contestant])

    @property
    def ratios(self) -> list[Ratio]:
        """modelwire over each of the others, by their medians."""
        at_most = {bound.against: bound.at_most for bound in self.measurement.bounds}
        return [
            Ratio(other, self.median(OURS) / self.median(other), at_most.get(other))
            for other in self.samples
            if other != OURS
        ]

    @property
    def kept(self) -> bool:
        """Whether every promise holds."""
        return all(ratio.kept for ratio in self.ratios)


def run(measurement: Measurement, effort: Effort) -> Outcome:
    """Run one measurement.

    Every other round goes through the contestants backwards, so that none is always the one after a busy neighbour.

    Raises:
        BenchError: A contestant fails or answers wrongly.
    """
    with ExitStack() as stack:
        started = {}
        for name, start in measurement.contestants.items():
            started[name] = start()
            stack.callback(started[name].close)
        for contestant in started.values():
            contestant.measure(WARM_UP * effort.requests)
        samples: dict[str, list[float]] = {name: [] for name in started}
        turn = list(started.items())
        for _ in range(max(3, round(measurement.rounds * effort.rounds))):
            for name, contestant in turn:
                samples[name].append(contestant.measure(effort.requests))
            turn.reverse()
    return Outcome(measurement, samples)
