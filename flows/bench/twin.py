"""Measures which methods find planted discrimination in twins of HMDA, and which find it where none is planted.

Seeded twins are audited by all methods as plain function calls: without any discrimination, with a lower logit for
one race (direct), and with income, home, loan and debts moved (mediated). Found is what an audit calls a breach: the
whole interval of a method's measure lies beyond the limit that ``data/audits/hmda-twin.yaml`` fixes. What lies on both
sides, or has no interval, is not found.

Scope: runs, rates and targets. Twins: ``tasks.ingest.synthetic.twin.algorithm``.
"""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import mean

import numpy as np
from scipy.stats import binomtest

from schemas.audit.spec import AuditSpec
from schemas.terms import State
from tasks.ingest.synthetic import source as synthetic
from tasks.ingest.synthetic.twin.algorithm.drawing import generate
from tasks.ingest.synthetic.twin.algorithm.settings import TwinSettings
from tasks.ingest.synthetic.twin.algorithm.truth import flip_shares
from tasks.pipeline.registry import METHODS
from tasks.pipeline.specs import read_spec
from tasks.plan import plan
from tasks.proof.benches import Bench, Expected, Room, Row, at_least, at_most, row
from tasks.proof.plain import call_plainly
from tasks.proof.specs import shipped

ROWS, FEWEST_ROWS = 2_000, 1_200
"""With fewer, a group would not fill a batch of GCFN."""
SEEDS = {"none": 40, "direct": 10, "mediated": 10}
QUICK_SEEDS = {"none": 3, "direct": 1, "mediated": 1}
MOST_FALSE, LEAST_FOUND = 0.1, 0.8
"""Shares of the seeds: at most so many found where nothing is planted, at least so many where something is."""
GROUP = "Black"

DRAWS = "500"
"""Resamples: fewer than an audit has, and enough for a limit."""
EXPECTED: Mapping[str, Expected] = {name: method.module("bench.bench").TWIN for name, method in METHODS.items()}
"""What each method can find, and how it is run, from its folder."""


@dataclass(frozen=True)
class Said:
    """Results of one audit of one twin."""

    found: Mapping[str, bool]
    """By method: whether its measure breaches its limit."""
    values: Mapping[str, float]
    """By method: the measure; NaN where there is none."""
    flips: float
    """The true share of decisions on the group that would be others without its disadvantage."""
    seconds: float
    """CPU seconds."""


def _lines(room: Room) -> Iterator[Row]:
    size, seeds = room.rows or ROWS, SEEDS if room.rows is None else QUICK_SEEDS
    for planted, count in seeds.items():
        yield from _rates(planted, [audit(planted, seed, size) for seed in range(count)], size)


def audit(planted: str, seed: int, rows: int) -> Said:
    """Draws one twin, audits it by all methods, and returns their results with the true share of flips."""
    clock = time.process_time()
    spec = spec_of(planted, seed, rows)
    steps = [step for step in plan(spec).steps if step.name != "report"]
    (measures,) = call_plainly(steps)["measures"]
    headlines = [m for m in measures.to_pylist() if not m["subgroup"] and m["parameters"] == "{}"]
    by = {(m["measure"], m["decision_maker"]): m for m in headlines if m["group"] == GROUP}
    judged = {t.method: by.get((t.measure, t.decision_maker), {}) for t in spec.thresholds if t.method}
    return Said(
        found={method: m.get("state") == State.BREACH for method, m in judged.items()},
        values={method: math.nan if m.get("value") is None else m["value"] for method, m in judged.items()},
        flips=_true_flips(spec),
        seconds=time.process_time() - clock,
    )


def spec_of(planted: str, seed: int, rows: int) -> AuditSpec:
    """Returns the audit spec of one twin: the example spec, smaller."""
    file = shipped("audits/hmda-twin.yaml")
    drawn = {"rows": str(rows), "discrimination": planted}
    parameters = {f"source.synthetic.parameters.{name}": value for name, value in drawn.items()}
    smaller = {f"methods.{name}": each.smaller for name, each in EXPECTED.items()} | {"bootstrap.draws": DRAWS}
    asked = {**smaller, **parameters, "source.synthetic.seed": str(seed)}
    return read_spec(file.read_text(encoding="utf-8"), file.name, asked).spec


def _true_flips(spec: AuditSpec) -> float:
    """The same rows once more, with what the audit is not shown."""
    asked: TwinSettings = synthetic.coefficients(spec.source)
    seed = spec.source.synthetic.seed if spec.source.synthetic else 0
    known = flip_shares(generate(asked, np.random.default_rng(seed)))
    return next(each.share for each in known if (each.attribute, each.group) == ("race", GROUP))


def _rates(planted: str, audits: list[Said], size: int) -> Iterator[Row]:
    shares = [said.flips for said in audits]
    found = f"true share of decisions on the group that would be others: {mean(shares):.3f}, in twins: {len(audits)}"
    yield row(f"twin, {planted}", size, "truth", cpu_s=sum(said.seconds for said in audits), found=found)
    asked = spec_of(planted, 0, size)
    limits = {t.method: t for t in asked.thresholds}
    for method in EXPECTED:
        limit = limits[method]
        measure = f"{limit.measure} ({limit.decision_maker})"
        what = f"{method}: {measure}, {asked.bootstrap.level:.0%} interval beyond {limit.maximum:g}"
        yield row(f"twin, {planted}", size, what, **_rate(planted, method, audits))


def _rate(planted: str, method: str, audits: list[Said]) -> Row:
    """How often a method found something, and whether that is what is aimed at."""
    events, n = sum(said.found[method] for said in audits), len(audits)
    exact = binomtest(events, n).proportion_ci(0.95, method="exact")
    values = [said.values[method] for said in audits if math.isfinite(said.values[method])]
    found = f"{events} of {n} [{exact.low:.3f}, {exact.high:.3f}]"
    found += f", mean of the measure {mean(values):.3f}" if values else ""
    found += f", too few to say in {n - len(values)}" if len(values) < n else ""
    if planted == "none":
        return {"ratio": events / n, "found": found, **at_most(events / n, MOST_FALSE)}
    if planted in EXPECTED[method].finds:
        return {"ratio": events / n, "found": found, **at_least(events / n, LEAST_FOUND)}
    return {"ratio": events / n, "found": f"{found}; by its nature: {EXPECTED[method].why_not[planted]}"}


BENCH = Bench("twin", _lines, fewest=FEWEST_ROWS, why="so that either group fills a batch", disk=0)
