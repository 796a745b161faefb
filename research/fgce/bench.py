"""Times FGCE on the paper's data and measures its memory, growth, and ratio to plain loops.

Rows are read, encoded and scored once by the stages of an audit, which is timed apart. Each size then runs in a process
of its own (``work``), so that its peak memory is its own.

Scope: runs and targets. The timed work: ``work``. The plain loops: ``plain``.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from research import benchmark
from research.fgce.experiments import EXPERIMENTS
from research.fgce.timed_work import GRAPH, OPTIMA, Scored
from schemas.terms import DecisionMaker
from tasks.detection.problems import explained_and_candidates
from tasks.feasibility_graph.rows import rules_of, strata_of
from tasks.in_memory import tables_through
from tasks.methods.fgce.settings import FgceSettings

ADULT, COMPAS = "adult", "compas"
MOST_SECONDS = {ADULT: 60.0, COMPAS: 10.0}
MOST_MB = FREE_MB = 2_000
MOST_GROWTH = 1.5
LEAST_RATIO = 100.0

GROWTH_ROWS = 8_000
PLAIN_ROWS = (1_000, 2_000)
SEED = 0


@dataclass(frozen=True)
class Prepared:
    """Scored rows, and the settings of their spec."""

    name: str
    scored: benchmark.Piped
    settings: str
    seconds: float

    def run(self, what: str, rows: int) -> Mapping[str, Any]:
        """Runs ``what`` on so many rows in a separate process."""
        return benchmark.apart("research.fgce.timed_work", what, self.scored, self.settings, rows, SEED)


def _lines(room: benchmark.Room) -> Iterator[benchmark.Row]:
    adult, compas = (_prepared(name, room, {}) for name in (ADULT, COMPAS))
    # false negatives are so few in 1,000 rows that there would be little to compare
    everyone = _prepared(ADULT, room, {"explain__factuals": "unfavourable"})
    start = time.perf_counter()
    adult.run("measure", 1)  # compiles, so that no process below spends time or memory on it
    yield benchmark.row(
        ADULT, 1, "apart: start Python, compile what is not cached", seconds=time.perf_counter() - start
    )
    full_measurement, part = (adult.run("measure", min(room.limit, size)) for size in (benchmark.ALL, GROWTH_ROWS))
    yield from _of_size(adult, full_measurement)
    yield from _of_size(compas, compas.run("measure", room.limit))
    per_edge = [m["seconds"][GRAPH] / max(m["edges"], 1) for m in (full_measurement, part)]
    ratio, text = per_edge[0] / per_edge[1], " against ".join(f"{seconds * 1e6:.3f} µs" for seconds in per_edge)
    what = f"graph, seconds per edge: against {part['rows']:,} rows"
    yield benchmark.row(
        ADULT, full_measurement["rows"], what, ratio=ratio, **benchmark.at_most(ratio, MOST_GROWTH), found=text
    )
    for size in dict.fromkeys(min(room.limit, row_limit) for row_limit in PLAIN_ROWS):
        # the arrays against plain loops and networkx on the same rows, with the same results
        timing = everyone.run("compare", size)
        at, what = (ADULT, timing["rows"]), "graph, reach, selection at every limit d"
        ratio = timing["plain_s"] / timing["arrays_s"]
        yield benchmark.row(*at, f"{what}: plain loops, networkx", seconds=timing["plain_s"], ratio=1.0)
        text = f"same {timing['edges_of_rows']:,} edges, same components, same {timing['cells']:,} cells of coverage "
        text += f"({timing['factuals']} factuals, {timing['covered']} covered)"
        met = benchmark.at_least(ratio, LEAST_RATIO)
        yield benchmark.row(*at, f"{what}: arrays", seconds=timing["arrays_s"], ratio=ratio, **met, found=text)


def _prepared(name: str, room: benchmark.Room, overrides: Mapping[str, str]) -> Prepared:
    """The rows of an experiment after the stages before the graph."""
    start = time.perf_counter()
    spec = EXPERIMENTS[name].read(room.data, **overrides)
    tables = tables_through(spec, "score")
    features, encodings = tables["features"], tables["encodings"]
    encoded = np.column_stack([features[name].to_numpy() for name in features.column_names[1:]])
    ids = features["row_id"].to_pylist()
    decisions = tables["decisions"].to_pandas()
    decided = decisions[decisions["decision_maker"] == DecisionMaker.MODEL].set_index("row_id").loc[ids]
    factual, candidate = explained_and_candidates(decided, DecisionMaker.MODEL, spec.explain)
    rules, _ = rules_of(encoded, encodings)
    scored = benchmark.Piped(
        Scored(
            encoded=encoded,
            group=strata_of(ids, tables["memberships"])[:, 0],
            factual=factual,
            candidate=candidate,
            direction=rules.direction,
            feature=encodings["feature_index"].to_numpy(),
        )
    )
    settings = (spec.methods.of(FgceSettings) or FgceSettings()).model_dump_json()
    return Prepared(name, scored, settings, time.perf_counter() - start)


def _of_size(prepared: Prepared, measurement: Mapping[str, Any]) -> Iterator[benchmark.Row]:
    """The stages on one data set, their total, and the memory they took."""
    at, seconds = (prepared.name, measurement["rows"]), measurement["seconds"]
    yield benchmark.row(*at, "apart: ingest, preprocess, score", seconds=prepared.seconds)
    for stage, took in seconds.items():
        fields: benchmark.Row = {}
        if stage == GRAPH:
            nodes, edges = measurement["nodes"], measurement["edges"]
            text = f"{edges:,} edges of {nodes:,} distinct rows, {measurement['edges_of_rows']:,} of all rows"
            fields = {"per_s": round(edges / took), "found": f"{text}; a second: edges"}
        elif stage == OPTIMA:
            fields = {"found": "; ".join(measurement["optima"])}
        yield benchmark.row(*at, stage, seconds=took, **fields)
    total, most = sum(seconds.values()), MOST_SECONDS[prepared.name]
    yield benchmark.row(*at, "all stages", seconds=total, **benchmark.at_most(total, most, " s"))
    peak = measurement["peak_mb"]
    yield benchmark.row(*at, "peak memory", peak_mb=peak, **benchmark.at_most(peak, MOST_MB, " MB"))


BENCH = benchmark.Bench(
    "fgce",
    _lines,
    tuple(source for name in (ADULT, COMPAS) for source in EXPERIMENTS[name].sources),
    memory_mb=FREE_MB,
)
TWIN = benchmark.Expected(
    "{ablations: false, size_matched_draws: 0, resolves: 0}",
    (
        benchmark.Held(
            "infeasible_share_relabelled",
            (),
            (),
            "as many of the group are without a path as of relabelled groups, whatever was planted",
        ),
    ),
)
