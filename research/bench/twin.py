"""Measures which methods find planted discrimination in twins of HMDA, and which find it where none is planted.

Seeded twins are audited by all methods as plain function calls: without any discrimination, with a lower logit for
one race (direct), and with income, home, loan and debts moved (mediated). Every method is held against the truth by
the measures that it is judged by. ``found``: the measure speaks against the group, by the p of its own test where it
has one (at most 0.05), else by its 95 % interval (wholly on the harmful side of no effect); a measure with neither
is descriptive, and finds nothing. Whether an audit would call it a breach of the spec's limit is told beside.

Scope: runs, rates and targets. Twins: ``tasks.ingest.synthetic.algorithm.twin``.
"""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from statistics import mean
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from scipy.stats import binomtest

from research.benchmark import Bench, Expected, Held, Room, Row, at_least, at_most, row
from research.figures import shipped
from schemas.audit.spec import AuditSpec
from schemas.terms import DecisionMaker, State
from tasks.in_memory import call_plainly
from tasks.ingest.synthetic import source as synthetic
from tasks.ingest.synthetic.algorithm.twin import TwinSettings, flip_shares, generate
from tasks.pipeline.registry import METHODS, read_spec
from tasks.plan import plan

ROWS, FEWEST_ROWS = 2_000, 1_200
"""With fewer, a group would not fill a batch of GCFN."""
SEEDS = {"none": 10, "direct": 5, "mediated": 5}
QUICK_SEEDS = {"none": 3, "direct": 1, "mediated": 1}
MOST_FALSE, LEAST_FOUND = 0.1, 0.8
"""Shares of the seeds: at most so many found where nothing is planted, at least so many where something is."""
GROUP = "Black"
LEVEL = 0.05
"""Of a test without an interval."""
AS_INPUT = {"columns.derived_race": "{type: nominal, constraint: immutable, label: race}"}
"""The group as an input of the model: no lender should have it, and a model that has it can follow one who does."""

DRAWS = "500"
"""Resamples: fewer than an audit has, for measures that are not looked at here."""
EXPECTED: Mapping[str, Expected] = {name: import_module(f"research.{name}.bench").TWIN for name in METHODS}
"""How each method is run and held against the truth, from its folder."""
By = Literal["test", "interval", "value alone"]


@dataclass(frozen=True)
class Measured:
    """One measure of one twin."""

    value: float
    """NaN where there is none."""
    by: By
    """What it says rests on."""
    detected: bool
    """Whether it speaks against the group."""
    breach: bool
    """Whether an audit calls it beyond the spec's limit."""


@dataclass(frozen=True)
class Said:
    """Results of one audit of one twin."""

    measured: Mapping[str, Measured]
    """By measure."""
    flips: float
    """The true share of decisions on the group that would be others without its disadvantage."""
    seconds: float
    """CPU seconds."""


def _lines(room: Room, *, as_input: bool = False) -> Iterator[Row]:
    size, seeds = room.rows or ROWS, SEEDS if room.rows is None else QUICK_SEEDS
    for planted, count in seeds.items():
        audits = [audit(planted, seed, size, as_input=as_input) for seed in range(count)]
        yield from _rates(planted, audits, size, as_input=as_input)


def audit(planted: str, seed: int, rows: int, *, as_input: bool = False) -> Said:
    """Draws one twin, audits it by all methods, and returns their results with the true share of flips."""
    clock = time.process_time()
    spec = spec_of(planted, seed, rows, as_input=as_input)
    tables = call_plainly([step for step in plan(spec).steps if step.name != "report"])
    aggregates = pa.concat_tables(tables["aggregates"]).to_pylist()
    breaches = {
        (verdict["measure"], verdict["decision_maker"])
        for verdict in pa.concat_tables(tables["verdicts"]).to_pylist()
        if verdict["group"] == GROUP and verdict["state"] == State.OUTSIDE
    }
    measure_names = [planted_measure.measure for expected in EXPECTED.values() for planted_measure in expected.measures]
    return Said(
        measured={measure: _measured(measure, aggregates, breaches) for measure in measure_names},
        flips=_true_flips(spec),
        seconds=time.process_time() - clock,
    )


def _measured(measure: str, aggregates: list[Mapping[str, Any]], breaches: set[tuple[str, str]]) -> Measured:
    """A measure of the group: on the lender's decisions if it has a test or interval there, else on the model's."""
    of = {
        aggregate["decision_maker"]: aggregate
        for aggregate in aggregates
        if (aggregate["measure"], aggregate["group"], aggregate["subgroup"], aggregate["parameters"])
        == (measure, GROUP, 0, "{}")
        and aggregate["value"] is not None
    }
    makers = [maker for maker in (DecisionMaker.LENDER, DecisionMaker.MODEL) if maker in of]
    if not makers:
        return Measured(math.nan, "value alone", detected=False, breach=False)
    maker = next((candidate for candidate in makers if _against(of[candidate])[0] != "value alone"), makers[0])
    return Measured(of[maker]["value"], *_against(of[maker]), breach=(measure, maker) in breaches)


def _against(row: Mapping[str, Any]) -> tuple[By, bool]:
    """Whether a measure speaks against the group, and by what: differences above 0 do, and ratios below 1."""
    if row["p"] is not None:
        return "test", bool(row["p"] <= LEVEL)
    if row["se"] is None or row["low"] is None:
        return "value alone", False
    return "interval", bool(row["high"] < 1 if row["scale"] == "log" else row["low"] > 0)


def spec_of(planted: str, seed: int, rows: int, *, as_input: bool = False) -> AuditSpec:
    """Returns the audit spec of one twin: the smaller example spec, with the group as an input on request."""
    file = shipped("audits/hmda-twin.yaml")
    twin_parameters = {"rows": str(rows), "discrimination": planted}
    parameters = {f"source.synthetic.parameters.{name}": value for name, value in twin_parameters.items()}
    smaller = {f"methods.{name}": expected_method.smaller for name, expected_method in EXPECTED.items()} | {
        "bootstrap.draws": DRAWS
    }
    overrides = {**smaller, **parameters, "source.synthetic.seed": str(seed), **(AS_INPUT if as_input else {})}
    return read_spec(file.read_text(encoding="utf-8"), file.name, overrides).spec


def _true_flips(spec: AuditSpec) -> float:
    """The same rows once more, with what the audit is not shown."""
    twin_settings: TwinSettings = synthetic.coefficients(spec.source)
    seed = spec.source.synthetic.seed if spec.source.synthetic else 0
    shares = flip_shares(generate(twin_settings, np.random.default_rng(seed)))
    return next(share.share for share in shares if (share.attribute, share.group) == ("race", GROUP))


def _rates(planted: str, audits: list[Said], size: int, *, as_input: bool = False) -> Iterator[Row]:
    shares = [twin_audit.flips for twin_audit in audits]
    summary = f"true share of decisions on the group that would be others: {mean(shares):.3f}, in twins: {len(audits)}"
    name = f"twin, {planted}{', group an input' if as_input else ''}"
    yield row(name, size, "truth", cpu_s=sum(twin_audit.seconds for twin_audit in audits), found=summary)
    for method, expected in EXPECTED.items():
        for expected_measure in expected.measures:
            figures = _rate(
                planted,
                expected_measure,
                [twin_audit.measured[expected_measure.measure] for twin_audit in audits],
                as_input=as_input,
            )
            yield row(name, size, f"{method}: {expected_measure.measure}", **figures)


def _rate(planted: str, expected_measure: Held, audits: list[Measured], *, as_input: bool = False) -> Row:
    """How often a measure found something, and whether that is what is aimed at."""
    events, n = sum(measured.detected for measured in audits), len(audits)
    exact = binomtest(events, n).proportion_ci(0.95, method="exact")
    values = [measured.value for measured in audits if math.isfinite(measured.value)]
    by = sorted({measured.by for measured in audits if math.isfinite(measured.value)})
    phrases = [f"{events} of {n} [{exact.low:.3f}, {exact.high:.3f}] by its {' or '.join(by) or 'value'}"]
    phrases += [f"mean of the measure {mean(values):.3f}"] if values else []
    phrases += [f"beyond the spec's limit in {sum(measured.breach for measured in audits)}"]
    phrases += [f"too few to say in {n - len(values)}"] if len(values) < n else []
    summary = ", ".join(phrases)
    if planted == "none":
        return {"ratio": events / n, "found": summary, **at_most(events / n, MOST_FALSE)}
    if planted in (expected_measure.finds_by_input if as_input else expected_measure.finds):
        return {"ratio": events / n, "found": summary, **at_least(events / n, LEAST_FOUND)}
    return {"ratio": events / n, "found": f"{summary}; by its nature: {expected_measure.why_not}"}


BENCH = Bench(
    "twin",
    _lines,
    fewest=FEWEST_ROWS,
    why="so that either group fills a batch",
    disk=0,
    forms={"--group-as-input": partial(_lines, as_input=True)},
)
"""With the race no input of the model, as in the spec that is shipped; and with it, where that is asked for."""
