"""``evenhand bench fgce``: time and memory of FGCE on the paper's data, its growth, and its ratio to plain loops.

Rows are read, encoded and scored once by the stages of an audit, which is told apart. Each size then runs in a process
of its own (``work``), so that its peak memory is its own.

Here belong what is run and the targets. What is timed is in ``work``, the plain loops are
``tasks.methods.fgce.bench.plain``.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.audit.spec import AuditSpec
from schemas.terms import DecisionMaker
from tasks.detection.problems import explained_and_candidates
from tasks.feasibility_graph.rows import rules_of, strata_of
from tasks.methods.fgce.bench.work import GRAPH, OPTIMA, Scored
from tasks.methods.fgce.settings import FgceSettings
from tasks.plan import plan
from tasks.proof.benches import ALL, Row, apart, at_least, at_most, measured, row
from tasks.proof.plain import call_plainly
from tasks.proof.specs import paper_spec, require

ADULT, COMPAS = "adult", "compas"
SOURCES = {
    ADULT: ("adult-integer-coded.yaml", "data/fgce/adult_integer_coded.csv.gz"),
    COMPAS: ("compas.yaml", "data/compas/compas_two_years_no_names.csv.gz"),
}
"""The audit spec, and its file inside the directory that ``--data`` gives."""

MOST_SECONDS = {ADULT: 60.0, COMPAS: 10.0}
MOST_MB = FREE_MB = 2_000
MOST_GROWTH = 1.5
LEAST_RATIO = 100.0

GROWTH_ROWS = 8_000
PLAIN_ROWS = (1_000, 2_000)
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
        return apart("tasks.methods.fgce.bench.work", what, self.file, self.settings, rows, SEED)


def fgce(data: Path, rows: int | None = None) -> list[Row]:
    """Times, memory, growth and the ratio to plain loops, each beside its target.

    Args:
        data: Directory with ``data/fgce`` and ``data/compas`` in it.
        rows: At most so many rows of each data set, for a quick look; the targets, which are for all rows and for the
            sizes said, are then not held against it.

    Raises:
        InfrastructureError: A file is missing, memory is short, or the disk is too full.
    """
    require(data, [data / file for _, file in SOURCES.values()])
    return measured(lambda place: _lines(data, place, rows or ALL), rows, FREE_MB)


def _lines(data: Path, place: Path, limit: int) -> Iterator[Row]:
    adult, compas = (_prepared(name, data, place, {}) for name in (ADULT, COMPAS))
    # false negatives are so few in 1,000 rows that there would be little to compare
    everyone = _prepared(ADULT, data, place, {"explain.factuals": "unfavourable"})
    start = time.perf_counter()
    adult.run("measure", 1)  # compiles, so that no process below spends time or memory on it
    yield row(ADULT, 1, "apart: start Python, compile what is not cached", seconds=time.perf_counter() - start)
    whole, part = (adult.run("measure", min(limit, size)) for size in (ALL, GROWTH_ROWS))
    yield from _of_size(adult, whole)
    yield from _of_size(compas, compas.run("measure", limit))
    yield _growth(whole, part)
    for size in dict.fromkeys(min(limit, each) for each in PLAIN_ROWS):
        yield from _against_plain(everyone.run("compare", size))


def _prepared(name: str, data: Path, place: Path, overrides: Mapping[str, str]) -> Prepared:
    start = time.perf_counter()
    spec_name, source = SOURCES[name]
    spec = paper_spec(spec_name, {**overrides, "source.path": str(data / source)})
    file = place / f"{name}{len(overrides)}.npz"
    _scored(spec).write(file)
    settings = (spec.methods.of(FgceSettings) or FgceSettings()).model_dump_json()
    return Prepared(name, file, settings, time.perf_counter() - start)


def _scored(spec: AuditSpec) -> Scored:
    """The rows after the stages before the graph."""
    tables = {name: pa.concat_tables(parts) for name, parts in call_plainly(plan(spec).steps[:SCORED_STEPS]).items()}
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


def _of_size(prepared: Prepared, said: Mapping[str, Any]) -> Iterator[Row]:
    """The stages on one data set, their total, and the memory they took."""
    at, seconds = (prepared.name, said["rows"]), said["seconds"]
    yield row(*at, "apart: ingest, preprocess, score", seconds=prepared.seconds)
    for stage, took in seconds.items():
        yield row(*at, stage, seconds=took, **_of_stage(stage, took, said))
    total, most = sum(seconds.values()), MOST_SECONDS[prepared.name]
    yield row(*at, "all stages", seconds=total, **at_most(total, most, " s"))
    peak = said["peak_mb"]
    yield row(*at, "peak memory", peak_mb=peak, **at_most(peak, MOST_MB, " MB"))


def _of_stage(stage: str, took: float, said: Mapping[str, Any]) -> Row:
    """What a stage found."""
    if stage == GRAPH:
        nodes, edges = said["nodes"], said["edges"]
        found = f"{edges:,} edges of {nodes:,} distinct rows, {said['edges_of_rows']:,} of all rows"
        return {"per_s": round(edges / took), "found": f"{found}; a second: edges"}
    return {"found": "; ".join(said["optima"])} if stage == OPTIMA else {}


def _growth(whole: Mapping[str, Any], part: Mapping[str, Any]) -> Row:
    """Seconds per edge of the graph on all rows, against those on some."""
    per_edge = [each["seconds"][GRAPH] / max(each["edges"], 1) for each in (whole, part)]
    ratio = per_edge[0] / per_edge[1]
    return row(
        ADULT,
        whole["rows"],
        f"graph, seconds per edge: against {part['rows']:,} rows",
        ratio=ratio,
        **at_most(ratio, MOST_GROWTH),
        found=" against ".join(f"{each * 1e6:.3f} µs" for each in per_edge),
    )


def _against_plain(said: Mapping[str, Any]) -> Iterator[Row]:
    """The arrays against plain loops and networkx on the same rows, which found the same."""
    at, what = (ADULT, said["rows"]), "graph, reach, selection at every limit d"
    ratio = said["plain_s"] / said["arrays_s"]
    yield row(*at, f"{what}: plain loops, networkx", seconds=said["plain_s"], ratio=1.0)
    yield row(
        *at,
        f"{what}: arrays",
        seconds=said["arrays_s"],
        ratio=ratio,
        **at_least(ratio, LEAST_RATIO),
        found=f"same {said['edges_of_rows']:,} edges, same components, same {said['cells']:,} cells of coverage "
        f"({said['factuals']} factuals, {said['covered']} covered)",
    )
