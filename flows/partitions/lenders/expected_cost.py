"""Expected CPU time and memory of the audit of a partition, before it is run.

By the stages of the run of the same audit that is nearest in usable rows, each scaled by how it was measured to grow;
where the lake has no run yet, by a table measured on another machine. Both are a guide, and no promise.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from flows.concurrency.memory import IMPORTS_MB
from flows.runs.index import Run
from flows.runs.manifest import read_manifest
from schemas.audit.spec import AuditSpec
from tasks.lake.stage_runs import stage_runs
from tasks.lake.store import Lake

BEND: Final = 20_000
"""Usable rows at which growth was measured to change."""
GROWTH: Final[Mapping[str, tuple[float, float]]] = {
    "connect": (0.6, 1.1),
    "generate": (0.3, 1.0),
    "ablate": (1.1, 1.5),
    "rerank": (0.3, 1.0),
    "detect fgce": (0.0, 1.0),
    "detect cst": (0.5, 1.0),
    "detect cec": (0.4, 1.0),
    "detect raguel": (0.1, 1.0),
}
"""Step -> exponents of rows below and above ``BEND``: Texas 2022, 10,000 to 20,000 and 20,000 to 418,000 rows."""
_OTHERS: Final = (0.6, 1.0)
_MEASURED: Final[Mapping[str, float]] = {
    **{"ingest": 0.6, "preprocess": 1.0, "score": 3.9, "connect": 1.0, "generate": 2.7, "ablate": 2.9, "rerank": 9.6},
    **{"detect fgce": 51.8, "detect cst": 28.9, "detect cec": 3.5, "detect raguel": 1.2},
    **{"mediate": 60.0, "adjust": 5.0, "measure": 3.0, "publish": 3.0, "report": 4.0},
}
"""CPU seconds of a step at ``_MEASURED_ROWS``: the first three lines measured, the last about; others are not told."""
_MEASURED_ROWS: Final = 8_805
_MEASURED_MB, _GROWTH_MB = 870.0, 0.55
"""Peak beyond the imports at those rows, and the exponent with which it grew up to 418,000 usable rows."""
_OF_GRAPH: Final = ("ablate", "detect fgce")
"""Steps that look at ``sampling.graph_rows`` rows at most, and where there are more, five times."""
_DRAWS: Final = 5


@dataclass(frozen=True)
class Past:
    """An earlier run of the same audit: what its steps took."""

    usable: int
    cpu_seconds: Mapping[str, float]
    peak_mb: Mapping[str, float]


@dataclass(frozen=True)
class Cost:
    """Expected cost of one audit."""

    cpu_seconds: float
    peak_mb: float
    measured_here: bool
    """Whether a run of this lake tells, and not a table."""


def past_runs(lake: Lake, runs: Sequence[Run]) -> list[Past]:
    """What the steps of runs took, a run for each power of two of usable rows: the newest.

    Raises:
        IntegrityError: a manifest is not the one that was written.
    """
    sizes = {round(math.log2(_usable(run))): run for run in runs if _usable(run)}  # the oldest first, by the index
    return [_past(lake, run) for run in sizes.values()]


def expected_cost(spec: AuditSpec, steps: Sequence[str], usable: int, past: Sequence[Past]) -> Cost:
    """Expected cost of the steps of an audit.

    Args:
        spec: of the audit, whose sampling bounds what some steps look at.
        steps: names, as in a plan.
        usable: rows.
        past: earlier runs of the same audit; the one nearest in rows that has a step tells of it.
    """
    near = sorted(past, key=lambda run: abs(math.log(run.usable / max(usable, 1))))
    seconds = sum(_seconds(step, usable, near, spec) for step in steps)
    peaks = list(_peaks(steps, usable, near))
    table = IMPORTS_MB + _MEASURED_MB * (usable / _MEASURED_ROWS) ** _GROWTH_MB
    return Cost(round(seconds, 1), round(max(peaks, default=table), 1), bool(near))


def grown(step: str, of: int, to: int) -> float:
    """How many times as long a step takes of ``to`` usable rows as of ``of``."""
    below, above = GROWTH.get(step, _OTHERS)
    of, to = max(of, 1), max(to, 1)
    return float((min(to, BEND) / min(of, BEND)) ** below * (max(to, BEND) / max(of, BEND)) ** above)


def _seconds(step: str, usable: int, near: Sequence[Past], spec: AuditSpec) -> float:
    rows = _looked_at(step, usable, spec)
    run = next((run for run in near if step in run.cpu_seconds), None)
    if run is not None:
        again = _draws(step, usable, spec) / _draws(step, run.usable, spec)
        return again * run.cpu_seconds[step] * grown(step, _looked_at(step, run.usable, spec), rows)
    return _draws(step, usable, spec) * _MEASURED.get(step, 0.0) * grown(step, _MEASURED_ROWS, rows)


def _looked_at(step: str, usable: int, spec: AuditSpec) -> int:
    return min(usable, spec.sampling.graph_rows) if spec.sampling and step in _OF_GRAPH else usable


def _draws(step: str, usable: int, spec: AuditSpec) -> int:
    return _DRAWS if _looked_at(step, usable, spec) < usable else 1


def _peaks(steps: Sequence[str], usable: int, near: Sequence[Past]) -> Iterator[float]:
    """MB of each step by the nearest run: in proportion to rows beyond what a process holds before it reads a row."""
    for step in steps:
        run = next((run for run in near if step in run.peak_mb), None)
        if run is not None:
            yield IMPORTS_MB + max(run.peak_mb[step] - IMPORTS_MB, 0.0) * (usable / run.usable) ** _GROWTH_MB


def _usable(run: Run) -> int:
    return int(run.lineage[0]["rows"]["out"])


def _past(lake: Lake, run: Run) -> Past:
    rows = list(stage_runs(read_manifest(lake, run.run)))
    cpu = {row["stage"]: float(row["cpu_seconds"]) for row in rows if row["cpu_seconds"] is not None}
    peak = {row["stage"]: float(row["peak_memory_mb"]) for row in rows if row["peak_memory_mb"] is not None}
    return Past(_usable(run), cpu, peak)
