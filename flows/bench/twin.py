"""``evenhand bench twin``: which methods find planted discrimination in an HMDA twin, and which find it where none is.

Seeded twins are audited by all methods as plain function calls: without any discrimination, with a lower logit for
one race (direct), and with income, home, loan and debts moved (mediated). Found is what an audit calls a breach: the
whole interval of a method's measure lies beyond the limit that ``data/audits/hmda-twin.yaml`` fixes. What lies on both
sides, or has no interval, is not found.

Here belong the order of the runs and what is expected of whom. What is drawn is in
``tasks.ingest.synthetic.twin.algorithm``.
"""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
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
from tasks.proof.benches import Row, at_least, at_most, held_to, require_rows, row
from tasks.proof.plain import call_plainly
from tasks.proof.planted import Expected

ROWS, FEWEST_ROWS = 2_000, 1_200
"""With fewer, a group would not fill a batch of GCFN."""
SEEDS = {"none": 40, "direct": 10, "mediated": 10}
QUICK_SEEDS = {"none": 3, "direct": 1, "mediated": 1}
MOST_FALSE, LEAST_FOUND = 0.1, 0.8
"""Shares of the seeds: at most so many found where nothing is planted, at least so many where something is."""
GROUP = "Black"

_HERE = Path(__file__).parents[1]
_PLACES = (_HERE.parent / "data" / "audits" / "hmda-twin.yaml", _HERE / "bundled" / "hmda-twin.yaml")
DRAWS = "500"
"""Resamples: fewer than an audit has, and enough for a limit."""
EXPECTED: Mapping[str, Expected] = {name: method.module("bench.twin").TWIN for name, method in METHODS.items()}
"""What each method can find, and how it is run: said in its folder."""


@dataclass(frozen=True)
class Said:
    """What one audit of one twin said."""

    found: Mapping[str, bool]
    """By method: whether its measure breaches its limit."""
    values: Mapping[str, float]
    """By method: the measure; NaN where there is none."""
    flips: float
    """The true share of decisions on the group that would be others without its disadvantage."""
    seconds: float
    """CPU seconds."""


def twin(rows: int | None = None) -> list[Row]:
    """Rates of findings by method and by what is planted, with exact intervals (Clopper and Pearson).

    Args:
        rows: Size of each twin and few seeds, for a quick look; targets, which are for the sizes said, are then left
            out.

    Raises:
        SpecError: With so few rows a method has nobody to learn from.
    """
    require_rows("twin", rows, FEWEST_ROWS, "so that either group fills a batch")
    size, seeds = rows or ROWS, SEEDS if rows is None else QUICK_SEEDS
    audited = {planted: [audit(planted, seed, size) for seed in range(count)] for planted, count in seeds.items()}
    return held_to([line for planted, each in audited.items() for line in _lines(planted, each, size)], rows)


def audit(planted: str, seed: int, rows: int) -> Said:
    """Draw one twin, audit it by all methods, and hold what they say beside the truth."""
    clock = time.process_time()
    spec = spec_of(planted, seed, rows)
    steps = [step for step in plan(spec).steps if step.name != "report"]
    (measures,) = call_plainly(steps)["measures"]
    by = {(m["measure"], m["decision_maker"]): m for m in measures.to_pylist() if _of_group(m)}
    judged = {t.method: by.get((t.measure, t.decision_maker), {}) for t in spec.thresholds if t.method}
    return Said(
        found={method: m.get("state") == State.BREACH for method, m in judged.items()},
        values={method: _number(m.get("value")) for method, m in judged.items()},
        flips=_true_flips(spec),
        seconds=time.process_time() - clock,
    )


def _of_group(measure: Row) -> bool:
    """Whether it is the headline of the group that is discriminated against."""
    return measure["group"] == GROUP and not measure["subgroup"] and measure["parameters"] == "{}"


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def spec_of(planted: str, seed: int, rows: int) -> AuditSpec:
    """The audit of one twin: the example spec, smaller."""
    file = next((place for place in _PLACES if place.is_file()), _PLACES[0])
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


def _lines(planted: str, audits: list[Said], size: int) -> Iterator[Row]:
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
