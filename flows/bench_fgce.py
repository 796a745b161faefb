"""``evenhand bench fgce``: how long FGCE takes on the paper's data, how it grows, and how that compares with plain loops.

Rows are read, encoded and scored once by the stages of an audit, which is told apart. Each size then runs in a process
of its own (``fgce_stages``), so that its peak memory is its own.

Here belong what is run and the targets. What is timed is in ``fgce_stages``, the plain loops are
``tasks.algorithms.plain``.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from flows.bench import call_plainly
from flows.fgce_stages import GRAPH, Scored
from flows.plan import plan
from schemas.errors import InfrastructureError
from schemas.settings import AuditSpec
from schemas.spec_file import read_spec
from schemas.terms import DecisionMaker
from tasks._store import Lake
from tasks.connect import rules_of, strata_of
from tasks.detect import explained_and_candidates

Row = dict[str, Any]

ADULT, COMPAS = "adult-integer-coded", "compas"
FILES = {
    ADULT: "data/fgce/adult_integer_coded.csv.gz",
    COMPAS: "data/compas/compas_two_years_no_names.csv.gz",
}
"""Inside the directory that ``--data`` gives."""

_HERE = Path(__file__).parent
_SPECS = (_HERE.parent / "data" / "audits" / "paper", _HERE / "bundled" / "paper")

MOST_SECONDS = {ADULT: 60.0, COMPAS: 10.0}
MOST_MB = 2_000.0
MOST_GROWTH = 1.5
LEAST_RATIO = 100.0

GROWTH_ROWS = 8_000
PLAIN_ROWS = (1_000, 2_000)
ALL = 2**31 - 1
SEED = 0
SCORED_STEPS = 3
"""Ingest, preprocess, score."""


@dataclass(frozen=True)
class Prepared:
    """Scored rows in a file, and the settings of their spec."""

    name: str
    file: Path
    settings: str
    seconds: float

    def run(self, what: str, rows: int) -> Mapping[str, Any]:
        """What a process of its own says of ``what`` on so many rows."""
        words = [what, str(self.file), self.settings, str(rows), str(SEED)]
        command = [sys.executable, "-m", "flows.fgce_stages", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 our own
        if done.returncode:
            raise RuntimeError(f"{what} of {self.name} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        said: Mapping[str, Any] = json.loads(done.stdout)
        return said


def fgce(data: Path, rows: int | None = None) -> list[Row]:
    """Times, memory, growth and the ratio to plain loops, each beside its target.

    Args:
        data: Directory with ``data/fgce`` and ``data/compas`` in it.
        rows: At most so many rows of each data set, for a quick look; the targets, which are for all rows and for the
            sizes said, are then not held against it.

    Raises:
        InfrastructureError: A file is missing, or the disk is too full.
    """
    limit = rows or ALL
    with tempfile.TemporaryDirectory() as place:
        Lake(Path(place)).require_space(2**30, "the benchmark")
        adult, compas = (_prepared(name, data, Path(place), {}) for name in (ADULT, COMPAS))
        # false negatives are so few in 1,000 rows that there would be little to compare
        everyone = _prepared(ADULT, data, Path(place), {"explain.factuals": "unfavourable"})
        whole = adult.run("measure", limit)
        part = adult.run("measure", min(limit, GROWTH_ROWS))
        said = [*_of_size(adult, whole), *_of_size(compas, compas.run("measure", limit)), _growth(whole, part)]
        for size in dict.fromkeys(min(limit, each) for each in PLAIN_ROWS):
            said += _against_plain(everyone.run("compare", size))
    return said if rows is None else [{**row, "target": None, "met": None} for row in said]


def _prepared(name: str, data: Path, place: Path, overrides: Mapping[str, str]) -> Prepared:
    start = time.perf_counter()
    spec = _spec(name, data, overrides)
    assert spec.methods.fgce is not None
    scored = _scored(spec)
    file = place / f"{name}{len(overrides)}.npz"
    scored.write(file)
    return Prepared(name, file, spec.methods.fgce.model_dump_json(), time.perf_counter() - start)


def _spec(name: str, data: Path, overrides: Mapping[str, str]) -> AuditSpec:
    """The spec under data/audits/paper, reading its file from ``data``."""
    file = data / FILES[name]
    spec = next((place / f"{name}.yaml" for place in _SPECS if place.is_dir()), _SPECS[0] / f"{name}.yaml")
    for needed in (file, spec):
        if not needed.is_file():
            raise InfrastructureError(
                f"{str(needed)!r} is not there; --data must give the directory that holds {FILES[name]}"
            )
    return read_spec(spec.read_text(encoding="utf-8"), str(spec), {**overrides, "source.path": str(file)}).spec


def _scored(spec: AuditSpec) -> Scored:
    """The rows after the stages before the graph."""
    tables = {
        name: pa.concat_tables(parts) for name, parts in call_plainly(plan(spec).steps[:SCORED_STEPS]).items()
    }
    features, encodings = tables["features"], tables["encodings"]
    encoded = np.column_stack([features[name].to_numpy() for name in features.column_names[1:]])
    ids = features["row_id"].to_pylist()
    decisions = tables["decisions"].to_pandas()
    decided = decisions[decisions["decision_maker"] == DecisionMaker.MODEL].set_index("row_id").loc[ids]
    factual, candidate = explained_and_candidates(decided, DecisionMaker.MODEL, spec.explain)
    rules, _ = rules_of(encoded, encodings)
    return Scored(
        encoded=encoded,
        group=strata_of(ids, tables["memberships"])[:, 0],
        factual=factual,
        candidate=candidate,
        direction=rules.direction,
        feature=encodings["feature_index"].to_numpy(),
    )


def _row(what: str, seconds: float | None = None, **more: Any) -> Row:
    """A line of the table; what it does not say is empty."""
    empty: Row = {"edges_per_s": None, "peak_mb": None, "ratio": None, "target": None, "met": None, "found": None}
    return {"what": what, "seconds": seconds, **empty, **more}


def _of_size(prepared: Prepared, said: Mapping[str, Any]) -> Iterator[Row]:
    """The stages on one data set, their total, and the memory they took."""
    name, seconds = f"{prepared.name}, {said['rows']:,} rows", said["seconds"]
    yield _row(f"{name}: ingest, preprocess, score (apart)", prepared.seconds)
    yield _row(f"{name}: compile or load kernels (apart)", said["compile_s"])
    for stage, took in seconds.items():
        yield _row(f"{name}: {stage}", took, **_of_stage(stage, took, said))
    total, most = sum(seconds.values()), MOST_SECONDS[prepared.name]
    met = total <= most and said["peak_mb"] <= MOST_MB
    target = f"at most {most:g} s and {MOST_MB:,.0f} MB"
    yield _row(f"{name}: all of it", total, peak_mb=said["peak_mb"], target=target, met=_word(met))


def _of_stage(stage: str, took: float, said: Mapping[str, Any]) -> Row:
    if stage == GRAPH:
        found = f"{said['edges']:,} edges of {said['nodes']:,} nodes: {said['edges_of_rows']:,} between rows"
        return {"edges_per_s": round(said["edges"] / took), "found": found}
    if stage.startswith("exact"):
        return {"found": "; ".join(f"{n} coverable: k0 {k0:g}, d0 {d0:.4f}, {at:.4f}" for n, k0, d0, at in said["full"])}
    return {}


def _growth(whole: Mapping[str, Any], part: Mapping[str, Any]) -> Row:
    """Seconds per edge of the graph on all rows, against those on some."""
    per_edge = [each["seconds"][GRAPH] / max(each["edges"], 1) for each in (whole, part)]
    return _row(
        f"{ADULT}: seconds per edge of the graph, {whole['rows']:,} rows against {part['rows']:,}",
        ratio=per_edge[0] / per_edge[1],
        target=f"at most {MOST_GROWTH:g}",
        met=_word(per_edge[0] / per_edge[1] <= MOST_GROWTH),
        found=" and ".join(f"{each * 1e6:.3f} µs" for each in per_edge),
    )


def _against_plain(said: Mapping[str, Any]) -> Iterator[Row]:
    """The arrays against plain loops and networkx on the same rows, which found the same."""
    name = f"{ADULT}, {said['rows']:,} rows: graph, components, reach, (k, d) tables"
    ratio = said["plain_s"] / said["arrays_s"]
    same = f"the same {said['edges_of_rows']:,} edges, components and {said['cells']:,} cells of coverage"
    yield _row(f"{name}, plain loops and networkx", said["plain_s"], ratio=1.0)
    yield _row(
        f"{name}, arrays",
        said["arrays_s"],
        ratio=ratio,
        target=f"at least {LEAST_RATIO:g}",
        met=_word(ratio >= LEAST_RATIO),
        found=f"{same}; {said['factuals']} factuals, {sum(said['covered'])} covered",
    )


def _word(met: bool) -> str:
    return "met" if met else "missed"
