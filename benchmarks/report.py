"""What was measured, for people and for programs."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import modelwire
from benchmarks.measurements import OURS
from benchmarks.rounds import Outcome, Ratio

HEAD = f"{'':13}{'median':>9}    {'least':>9}      {'modelwire over it':<19}promised"


def times(ratio: float | Fraction) -> str:
    """Return a ratio in words: ``2.53 times`` or ``1/46``."""
    if isinstance(ratio, Fraction):
        return f"{ratio} times" if ratio >= 1 else str(ratio)
    return f"{ratio:.2f} times" if ratio > 0.95 else f"1/{1 / ratio:.1f}"


def block(outcome: Outcome) -> str:
    """Return the lines of one measurement."""
    measurement = outcome.measurement
    ratios = {ratio.against: ratio for ratio in outcome.ratios}
    lines = [f"{measurement.name}: {measurement.title}"]
    for name in outcome.samples:
        figures = [_figure(value, measurement.unit) for value in (outcome.median(name), outcome.least(name))]
        verdict = "" if name == OURS else _verdict(ratios[name])
        lines.append(f"  {name:11}{''.join(figures)}  {verdict}".rstrip())
    return "\n".join(lines)


def _figure(value: float, unit: str) -> str:
    return f"{value:>9,.1f} {unit:3}"


def _verdict(ratio: Ratio) -> str:
    found = f"{times(ratio.value):<19}"
    if ratio.at_most is None:
        return found
    return f"{found}{'at most ' + times(ratio.at_most):<19}{'ok' if ratio.kept else 'NOT KEPT'}"


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return the last line: which promises hold."""
    promised = [(outcome, ratio) for outcome in outcomes for ratio in outcome.ratios if ratio.at_most is not None]
    broken = [f"{outcome.measurement.name} against {ratio.against}" for outcome, ratio in promised if not ratio.kept]
    if broken:
        return f"{len(broken)} of {len(promised)} promises are not kept: {', '.join(broken)}"
    return f"All {len(promised)} promises are kept." if promised else "Nothing was promised of what was measured."


def write_json(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write every sample to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_report(outcomes), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _report(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "modelwire": modelwire.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "measurements": [
            {
                "name": outcome.measurement.name,
                "title": outcome.measurement.title,
                "unit": outcome.measurement.unit,
                "samples": outcome.samples,
                "ratios": [
                    {
                        "against": ratio.against,
                        "ratio": ratio.value,
                        "at_most": None if ratio.at_most is None else float(ratio.at_most),
                        "kept": ratio.kept,
                    }
                    for ratio in outcome.ratios
                ],
            }
            for outcome in outcomes
        ],
    }
