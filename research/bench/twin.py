"""Measures which methods find planted discrimination in twins of HMDA, and which find it where none is planted.

Seeded twins are audited by all methods as plain function calls: without any discrimination, with a lower logit for
one race (direct), and with income, home, loan and debts moved (mediated). Every method is held against the truth by
the measures that it is judged by. ``found``: the measure speaks against the group, by the p of its own test where it
has one (at most 0.05), else by its 95 % interval (wholly on the harmful side of no effect); a measure with neither
is descriptive, and finds nothing. Whether an audit would call it a breach of the spec's limit is told beside.

Scope: runs, rates and targets. Twins: ``tasks.ingest.synthetic.algorithm.twin``.
"""

import json
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from statistics import mean, stdev
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.special import expit
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score

from research.benchmark import Bench, Expected, Held, Room, Row, at_least, at_most, row
from research.figures import shipped
from schemas.audit.spec import AuditSpec
from schemas.terms import DecisionMaker, State
from tasks.in_memory import call_plainly
from tasks.ingest.synthetic import source as synthetic
from tasks.ingest.synthetic.algorithm.twin import TwinSettings, flip_shares, generate, otherwise
from tasks.metrics.algorithm.agreement import World, necessity, pattern
from tasks.numerics.arrays import Floats
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
    signs: Mapping[str, str] = field(default_factory=dict)
    """Measure -> its sign, as ``evenhand agreement`` has it."""


def _lines(room: Room, *, as_input: bool = False) -> Iterator[Row]:
    size, seeds = room.rows or ROWS, SEEDS if room.rows is None else QUICK_SEEDS
    for planted, count in seeds.items():
        audits = [audit(planted, seed, size, as_input=as_input) for seed in range(count)]
        yield from _rates(planted, audits, size, as_input=as_input)


def audit(planted: str, seed: int, rows: int, *, as_input: bool = False) -> Said:
    """Draws one twin, audits it by all methods, and returns their results with the true share of flips."""
    clock = time.process_time()
    spec = spec_of(planted, seed, rows, as_input=as_input)
    tables = call_plainly([step for step in plan(spec).steps if step.name not in ("publish", "report")])
    aggregates = pa.concat_tables(tables["aggregates"]).to_pylist()
    breaches = {
        (verdict["measure"], verdict["decision_maker"])
        for verdict in pa.concat_tables(tables["verdicts"]).to_pylist()
        if verdict["group"] == GROUP and verdict["state"] == State.OUTSIDE
    }
    signs: dict[str, str] = {}
    for statement in pa.concat_tables(tables["agreement"]).to_pylist():
        if statement["group"] == GROUP:
            signs.setdefault(statement["measure"], statement["sign"])
    measure_names = [planted_measure.measure for expected in EXPECTED.values() for planted_measure in expected.measures]
    return Said(
        measured={measure: _measured(measure, aggregates, breaches) for measure in measure_names},
        flips=_true_flips(spec),
        seconds=time.process_time() - clock,
        signs=signs,
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


def spec_of(
    planted: str, seed: int, rows: int, overrides: Mapping[str, str] | None = None, *, as_input: bool = False
) -> AuditSpec:
    """Returns the audit spec of one twin: the smaller example spec with ``overrides``, the group an input or not."""
    file = shipped("audits/hmda-twin.yaml")
    twin_parameters = {"rows": str(rows), "discrimination": planted}
    parameters = {f"source.synthetic.parameters.{name}": value for name, value in twin_parameters.items()}
    smaller = {f"methods.{name}": expected_method.smaller for name, expected_method in EXPECTED.items()} | {
        "bootstrap.draws": DRAWS
    }
    overrides = {
        **smaller,
        **parameters,
        "source.synthetic.seed": str(seed),
        **(AS_INPUT if as_input else {}),
        **(overrides or {}),
    }
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


# --------------------------------------------------------------------------------------------------------------------
# How often each measure speaks, and which patterns there are, where the truth is known.


def _patterns(room: Room) -> Iterator[Row]:
    """Rates of signs and patterns, as `evenhand agreement` has them: with the race no input, and an input."""
    size, seeds = room.rows or ROWS, SEEDS if room.rows is None else QUICK_SEEDS
    seeds = dict.fromkeys(SEEDS, room.reps) if room.reps else seeds
    for as_input in (False, True):
        for planted, count in seeds.items():
            name, audits = f"pattern, {planted}{', group an input' if as_input else ''}", list[Said]()
            for seed in range(count):
                audits.append(audit(planted, seed, size, as_input=as_input))
                _tell(name, seed, count, audits[-1].seconds, pattern(audits[-1].signs).text)
            yield row(name, size, "twins", cpu_s=sum(of_twin.seconds for of_twin in audits), found=f"{count} twins")
            for measure in audits[0].signs:
                spoke = World(sum(of_twin.signs.get(measure) == "against" for of_twin in audits), count)
                yield row(name, size, measure, ratio=spoke.spoke / count, found=f"against the group in {spoke.words()}")
            texts = Counter(pattern(of_twin.signs).text for of_twin in audits)
            for text, times in texts.most_common():
                yield row(name, size, "pattern", ratio=times / count, found=f"{text}: {World(times, count).words()}")


def _tell(name: str, seed: int, count: int, seconds: float, words: str) -> None:
    """Prints the result of one twin to the error stream at once: all of them take minutes."""
    sys.stderr.write(f"{name}: twin {seed + 1} of {count}, {seconds:.0f} CPU s: {words}\n")
    sys.stderr.flush()


# --------------------------------------------------------------------------------------------------------------------
# What flags of single applicants are worth: how well each statistic orders the denied by whether they were harmed.
#
# Harmed: denied, and approved as white with the same noise. A twin knows it; no audit does. AUC 0.5 is chance. The
# ceiling orders by 1 - P(denied as white) / P(denied) with the true probabilities, which is all but the noise itself.
# The excess share of denials rests on CST alone: of many more twins, nothing else is computed.


WORTH_ROWS, WORTH_SEEDS, EXCESS_SEEDS = 4_000, 3, 40
"""Rows of a twin; twins of a world by all methods, and by CST alone: means of twenty differ by 0.1 between seeds."""
GAPS_ALIKE = "gaps alike"
"""Worlds in which cells of the denied are missing no more often than those of others."""
NEIGHBOURS = "{ks: [30], k: 30, taus: [0], null_permutations: 0, null_draws: 0, sensitivity: false}"
"""Settings of CST, with the neighbours that audits have by default."""
UNASKED = ("adjust", "abandoned", "detect adjusted", "measure", "publish", "report")
"""Steps whose results no statistic of an applicant needs."""
NEAR, NEAR_NONE, LEAST_AUC, LEAST_SEEN, MOST_SEEN = 0.07, 0.05, 0.58, 0.9, 0.1
"""How near the excess share is to the truth, and to 0 where nothing is planted; order of the harmed in direct twins;
shares of twins with an interval that excludes 0: at least, in direct ones, and at most, where nothing is planted."""
EXCESS = "excess share,"
JUDGED = f"{EXCESS} adjusted, cst"
"""The estimator that audits print."""
CEILING = "ceiling: 1 - P(denied as white) / P(denied), true"
STATISTICS: Mapping[str, tuple[str, DecisionMaker]] = {
    "CST: control - test, lender": ("cst", DecisionMaker.LENDER),
    "CST: (control - test) / control, lender": ("cst", DecisionMaker.LENDER),
    "CST: (control - test) / control, model": ("cst", DecisionMaker.MODEL),
    "GCFN: mean change of the score": ("gcfn", DecisionMaker.MODEL),
    "GCFN: change / own probability of denial": ("gcfn", DecisionMaker.MODEL),
    "FGCE: minus the cheapest cost, model": ("fgce", DecisionMaker.MODEL),
    "RAGUEL: minus the recourse cost, model": ("raguel", DecisionMaker.MODEL),
    "CEC: score": ("cec", DecisionMaker.MODEL),
}
"""Statistic -> its method, and whose decisions."""


class Denied(NamedTuple):
    """An audited twin, and its denied members of the group that CST looked at."""

    findings: pd.DataFrame
    """Of the group, without refusals."""
    tables: Mapping[str, list[pa.Table]]
    harmed: "pd.Series[bool]"
    """By row id of those denied."""
    chance: Mapping[str, Floats]
    """Of each of them: the true probability of a denial, as they are (``own``) and as ``white``."""

    @property
    def row_ids(self) -> list[str]:
        """Those denied."""
        return list(self.harmed.index)

    def of(self, method: str, maker: DecisionMaker) -> pd.DataFrame:
        """Findings of a method, by row id."""
        chosen = (self.findings["method"] == method) & (self.findings["decision_maker"] == maker)
        return self.findings[chosen].set_index("row_id")


def denied_members(spec: AuditSpec) -> Denied:
    """Audits a twin as far as its findings, and looks up who was harmed."""
    settings: TwinSettings = synthetic.coefficients(spec.source)
    seed = spec.source.synthetic.seed if spec.source.synthetic else 0
    twin = generate(settings, np.random.default_rng(seed))
    as_white = next(other for other in otherwise(twin) if other.attribute == "race")
    tables = call_plainly([step for step in plan(spec).steps if step.name not in UNASKED])
    applications = pa.concat_tables(tables["applications"]).to_pandas().set_index("row_id")
    at = applications["source_row"] - 1
    denied = ~applications["favourable"]
    findings = pa.concat_tables(tables["findings"]).to_pandas()
    findings = findings[(findings["group"] == GROUP) & findings["refusal"].isna()]
    complete = findings[(findings["method"] == "cst") & (findings["decision_maker"] == DecisionMaker.LENDER)]
    row_ids = [row_id for row_id in complete["row_id"] if denied[row_id]]
    places = at[row_ids].to_numpy()
    worlds = {"own": twin.world, "white": as_white.world}
    return Denied(
        findings,
        tables,
        pd.Series(as_white.flips[places], row_ids).astype(bool),
        {name: expit(-world.logit[places]) for name, world in worlds.items()},
    )


class Worth(NamedTuple):
    """How well each statistic orders the denied of one twin by whether they were harmed."""

    auc: Mapping[str, float]
    """By statistic; NaN where it is not defined."""
    seconds: float
    """CPU seconds."""


def worth(planted: str, seed: int, rows: int) -> Worth:
    """Audits a twin by all methods, and holds statistics of its denied members against whether they were harmed.

    The race is an input of the model: without it, GCFN and RAGUEL see nothing of what a lender does directly.
    """
    clock = time.process_time()
    twin = denied_members(spec_of(planted, seed, rows, {"methods.cst": NEIGHBOURS}, as_input=True))
    decisions = pa.concat_tables(twin.tables["decisions"]).to_pandas().set_index("row_id")
    scores = decisions.loc[decisions["decision_maker"] == DecisionMaker.MODEL, "score"]
    ceiling = pd.Series(1 - twin.chance["white"] / twin.chance["own"], twin.row_ids)
    auc = {CEILING: _auc(twin.harmed, ceiling)}
    for name, (method, maker) in STATISTICS.items():
        of = twin.of(method, maker)
        values = of["statistic"]
        if "/ control" in name:
            values = pd.Series(necessity(of["control"].to_numpy(), of["test"].to_numpy()), of.index)
        if "own probability" in name:
            values = values / (1 - scores.reindex(values.index))
        auc[name] = _auc(twin.harmed, (-values if "minus" in name else values).reindex(twin.row_ids))
    return Worth(auc, time.process_time() - clock)


def _auc(harmed: "pd.Series[bool]", values: "pd.Series[float]") -> float:
    """Area under the ROC curve over those with a value; NaN where all of them or none were harmed."""
    measured = values.dropna()
    labels = harmed[measured.index]
    return float(roc_auc_score(labels, measured)) if labels.nunique() == 2 else math.nan


class Excess(NamedTuple):
    """Estimates of the excess share of denials in one twin."""

    estimates: Mapping[str, float]
    """By name."""
    intervals: Mapping[str, tuple[float, float]]
    """Of those that have one: the 95 % interval."""
    denied: int
    harmed: float
    """True share of the denied who were harmed."""
    seconds: float
    """CPU seconds."""


def excess(world: str, seed: int, rows: int) -> Excess:
    """Audits a twin by CST alone, on the lender's decisions, and holds its excess share against the truth."""
    clock = time.process_time()
    planted, _, gaps = world.partition(", ")
    alone: dict[str, str] = dict.fromkeys((f"methods.{name}" for name in METHODS), "null")
    overrides = {**alone, "methods.cst": NEIGHBOURS, "model": "{kind: none}"}
    overrides |= {"source.synthetic.parameters.denied_missing": "1"} if gaps == GAPS_ALIKE else {}
    twin = denied_members(spec_of(planted, seed, rows, overrides))
    of = twin.of("cst", DecisionMaker.LENDER)
    shares = pd.Series(necessity(of["control"].to_numpy(), of["test"].to_numpy()), of.index)
    estimates = {
        "mean of clipped necessity over the denied": float(shares[twin.row_ids].mean()),
        "ratio of sums over all complainants": float(1 - of["test"].sum() / of["control"].sum()),
    }
    measured = {
        f"{EXCESS} {', '.join(json.loads(aggregate['parameters']).values())}": aggregate
        for aggregate in pa.concat_tables(twin.tables["aggregates"]).to_pylist()
        if (aggregate["measure"], aggregate["group"]) == ("excess_share_of_denials", GROUP)
    }
    estimates |= {name: of_name["value"] for name, of_name in measured.items() if of_name["value"] is not None}
    intervals = {n: (of_name["low"], of_name["high"]) for n, of_name in measured.items() if of_name["low"] is not None}
    return Excess(estimates, intervals, len(twin.harmed), float(twin.harmed.mean()), time.process_time() - clock)


def _individuals(room: Room) -> Iterator[Row]:
    """Order of the harmed in the worlds with any, then the excess share in all of them."""
    size = room.rows or WORTH_ROWS
    for planted in (world for world in SEEDS if world != "none"):
        twins, name, seeds = list[Worth](), f"worth, {planted}", room.reps or WORTH_SEEDS
        for seed in range(seeds):
            twins.append(worth(planted, seed, size))
            words = ", ".join(f"{what} {auc:.3f}" for what, auc in twins[-1].auc.items() if math.isfinite(auc))
            _tell(name, seed, seeds, twins[-1].seconds, f"AUC: {words}")
        yield row(name, size, "twins", cpu_s=sum(twin.seconds for twin in twins), found=f"{seeds} twins")
        for what in twins[0].auc:
            values = [twin.auc[what] for twin in twins if math.isfinite(twin.auc[what])]
            if values:
                spread = f"AUC {mean(values):.3f}, of single twins {min(values):.3f} to {max(values):.3f}"
                target = at_least(mean(values), LEAST_AUC) if (planted, "own" in what) == ("direct", True) else {}
                yield row(name, size, what, ratio=mean(values), found=spread, **target)
    for planted in (*SEEDS, f"direct, {GAPS_ALIKE}", f"mediated, {GAPS_ALIKE}"):
        of_world, name, seeds = list[Excess](), f"excess, {planted}", room.reps or EXCESS_SEEDS
        for seed in range(seeds):
            of_world.append(excess(planted, seed, size))
            estimate = of_world[-1].estimates.get(JUDGED, math.nan)
            _tell(name, seed, seeds, of_world[-1].seconds, f"{estimate:+.3f}, truth {of_world[-1].harmed:.3f}")
        yield from _near(planted, name, size, of_world)


def _near(planted: str, name: str, size: int, twins: list[Excess]) -> Iterator[Row]:
    """How near estimates of the excess share are to the truth; targets for the one that audits print."""
    truth = mean(twin.harmed for twin in twins)
    words = f"true share of denied who were harmed {truth:.3f}; {min(t.denied for t in twins)} to "
    words += f"{max(t.denied for t in twins)} denied, twins: {len(twins)}"
    yield row(name, size, "truth", cpu_s=sum(twin.seconds for twin in twins), found=words)
    for what in twins[0].estimates:
        values = [twin.estimates[what] for twin in twins if what in twin.estimates]
        spread = f"{mean(values):+.3f}, truth {truth:.3f}, single twins {min(values):+.3f} to {max(values):+.3f}"
        most = NEAR_NONE if planted == "none" else NEAR
        error = stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        spread += f", error of the mean {error:.3f}"
        target = at_most(abs(mean(values) - truth), most) if what == JUDGED else {}
        yield row(name, size, what, ratio=mean(values), found=spread, **target)
        intervals = [twin.intervals[what] for twin in twins if what in twin.intervals]
        if what == JUDGED and intervals:
            excluding = sum(not low <= 0 <= high for low, high in intervals)
            share = excluding / len(intervals)
            words = f"the interval excludes 0 in {World(excluding, len(intervals)).words()}"
            limit = {"none": at_most(share, MOST_SEEN), "direct": at_least(share, LEAST_SEEN)}.get(planted, {})
            yield row(name, size, f"{what}: interval", ratio=share, found=words, **limit)


BENCH = Bench(
    "twin",
    _lines,
    fewest=FEWEST_ROWS,
    why="so that either group fills a batch",
    disk=0,
    forms={"--group-as-input": partial(_lines, as_input=True), "--individuals": _individuals, "--patterns": _patterns},
    takes=("--reps",),
)
"""With the race no input of the model, as in the spec that is shipped; and with it, where that is asked for."""
