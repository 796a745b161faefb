"""Audits of planted lenders whose true effects are known, repeated."""

import math
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pandas as pd
import yaml
from benches.planted_lenders import (
    EDGES,
    NUMBERS,
    PURPOSES,
    Applied,
    Lender,
    Scenario,
    Truth,
    draw,
    overlap_weighted,
    population,
)
from threadpoolctl import threadpool_limits

from schemas.audit.causal import CausalGraph
from schemas.audit.limits import Verdicts
from schemas.audit.spec import AuditSpec, Protected
from schemas.terms import DecisionMaker, Kind, State, Theory
from tasks.counterfactuals.generators import World
from tasks.in_memory import call_plainly
from tasks.methods.adjusted.algorithm.design import Applications, Block, Control
from tasks.methods.adjusted.algorithm.detection import NORMAL_95, Step, Steps, detect
from tasks.methods.adjusted.algorithm.estimators import Effect
from tasks.methods.adjusted.algorithm.ladder import climb
from tasks.methods.adjusted.settings import OVERLAP, AdjustedSettings
from tasks.methods.cst.algorithm.effects import Frame, GroupEffects, aggregates, of_group
from tasks.methods.cst.algorithm.situations import compare, lay
from tasks.methods.cst.settings import CstSettings
from tasks.metrics.algorithm.measures import Family, Given
from tasks.metrics.algorithm.verdicts import Counts, Estimated, Limit, Verdict
from tasks.metrics.verdicts import Gathered, Judgement, judged
from tasks.numerics.encoding import Columns
from tasks.numerics.problem import Applicants, FeasibilityGraph, Problem
from tasks.numerics.results import Aggregate
from tasks.pipeline.registry import read_spec
from tasks.plan import plan
from tasks.preprocessing.columns import Grouped

# --------------------------------------------------------------------------------------------------------------------
# Audits a planted lender in memory: the ladder, situation testing, CST, and the states that rest on them.
#
# The product's own code from arrays on: what is left out are files, tables, validation and everything that no state
# rests on. ``file`` takes the same lender through all of it.


ATTRIBUTE, LENDER = "race", str(DecisionMaker.LENDER)
LOGGED = "amount"
LADDER = AdjustedSettings(estimators=("logit", "lpm", "overlap"))
"""The linear fit is what tells how far unseen columns may move the effect."""
SITUATIONS = CstSettings(ks=(30,), k=30, null_permutations=0, null_draws=0, sensitivity=False)


def judge_lender(applied: Applied, verdicts: Verdicts, rng: np.random.Generator, *, imagined: bool = True) -> Judgement:
    """The states of a planted lender; as ``measure_lender`` and ``judge_measures``."""
    return judge_measures(applied, measure_lender(applied, rng, imagined=imagined), verdicts)


def measure_lender(applied: Applied, rng: np.random.Generator, *, imagined: bool = True) -> tuple[Given, ...]:
    """All effects on the groups of a planted lender.

    Args:
        applied: Applicants and decisions.
        rng: Seeds the causal model and its resamples.
        imagined: Whether CST runs beside situation testing, which takes two thirds of the time.
    """
    return (*_adjusted(applied, rng), *_situations(applied, rng, imagined=imagined))


def judge_measures(applied: Applied, measures: Sequence[Given], verdicts: Verdicts) -> Judgement:
    """The states that rest on the effects.

    Args:
        applied: Applicants and decisions.
        measures: Of ``measure_lender``.
        verdicts: Limits, and whether the file holds every column that was decided by.
    """
    measure_by_key = {(g.family.method, g.family.measure, LENDER, ATTRIBUTE, g.group): g for g in measures}
    gathered = Gathered(_counts(applied), measure_by_key, (_protected(applied),), ("adjusted", "cst"), verdicts)
    return judged(gathered, (), verdicts)


def _protected(applied: Applied) -> Protected:
    groups = tuple(dict.fromkeys(applied.scenario.groups))
    return Protected(name=ATTRIBUTE, columns=(ATTRIBUTE,), groups={g: (g,) for g in groups}, reference=groups[0])


def columns(applied: Applied) -> Columns:
    """The applicants, without the columns that the file does not have."""
    seen = [number for number, name in enumerate(NUMBERS) if name not in applied.scenario.without]
    names = (*(NUMBERS[number] for number in seen), "purpose")
    kinds = (*[Kind.CONTINUOUS] * len(seen), Kind.NOMINAL)
    values = np.column_stack([applied.values[:, seen], applied.purpose])
    return Columns(names, kinds, (*[()] * len(seen), PURPOSES), values, (LOGGED,))


def graph_of(applied: Applied) -> CausalGraph:
    """What is caused by what among the columns that the file has."""
    return CausalGraph(edges=tuple(edge for edge in EDGES if not set(edge) & set(applied.scenario.without)))


def _adjusted(applied: Applied, rng: np.random.Generator) -> Iterator[Given]:
    """The judged effect of every group, and the second estimate of it."""
    applicant_columns = columns(applied)
    controls = tuple(
        Control(
            name,
            "category" if categories else "number",
            values,
            categories,
            scale="log" if name == LOGGED else "linear",
        )
        for name, categories, values in zip(
            applicant_columns.names, applicant_columns.categories, applicant_columns.values.T, strict=True
        )
    )
    groups = applied.scenario.groups
    applications = Applications(applied.denied, applied.group, groups, 0, (Block("all", controls),))
    last = [effect for effect in climb(applications, LADDER, 0.95, rng).effects if effect.rung == 1]
    linear = {effect.group: effect for effect in last if effect.estimator == "lpm"}
    own_steps = Steps(tuple(_step(effect, linear[effect.group], groups[effect.group]) for effect in last))
    problem = replace(_problem(applied, Applicants(applicant_columns, ~applied.denied, ())), method_data=own_steps)
    for aggregate in detect(problem, LADDER, rng).aggregates:
        if not aggregate.parameters:
            yield _given("adjusted", groups[aggregate.group], aggregate)


def _step(effect: Effect, linear: Effect, group: str) -> Step:
    """An estimate of the judged rung, with the linear fit's allowance for unseen columns."""
    unseen = linear.unseen.estimate if linear.unseen is not None else None
    return Step(
        block=effect.blocks[-1],
        group=group,
        estimator=effect.estimator,
        over=effect.average_over,
        primary=(effect.estimator, effect.average_over) == ("logit", "own"),
        judged_rung=True,
        robustness=linear.rv,
        unseen=0.0 if unseen is None else unseen.se * math.sqrt(unseen.df),
        **{name: getattr(effect, name) for name in ("value", "low", "high", "n", "support", "reason", "se", "df")},
    )


def _situations(applied: Applied, rng: np.random.Generator, *, imagined: bool) -> Iterator[Given]:
    """The effects of situation testing, and of CST if it runs, on every group."""
    applicant_columns, groups, protected = columns(applied), applied.scenario.groups, _protected(applied)
    applicants = Applicants(applicant_columns, ~applied.denied, ())
    if imagined:
        labels = {ATTRIBUTE: Grouped(applied.group, groups, 0)}
        world = World(applicant_columns, (protected,), labels, graph_of(applied), int(rng.integers(2**31)))
        imagine = world.imagine(ATTRIBUTE, None)
        counterfactuals = imagine(np.flatnonzero(applied.group != 0), applied.group, None)
        applicants = replace(applicants, counterfactuals=counterfactuals, imagine=imagine)
    ground = lay(_problem(applied, applicants), SITUATIONS, applied.group, applicants.counterfactuals)
    frame, effects = Frame(ground), list[GroupEffects]()
    for number in range(1, len(groups)):
        compared = compare(ground, number, np.flatnonzero(applied.group == number))
        effects.append(of_group(frame, number, compared, effects))
    for aggregate in aggregates(frame, effects, rng):
        if not aggregate.parameters:
            yield _given("cst", groups[aggregate.group], aggregate)


def _given(method: str, group: str, aggregate: Aggregate) -> Given:
    family = Family(method, LENDER, ATTRIBUTE, aggregate.measure, "{}")
    none = np.zeros(0)
    return Given(
        family, group, aggregate.value, aggregate.n, none, False, False, aggregate.reason, inference=aggregate.inference
    )


def _problem(applied: Applied, applicants: Applicants) -> Problem:
    """Without encoded features and without a feasibility graph, at which situation testing does not look."""
    n, none = len(applied.group), np.zeros(0, np.int32)
    no_graph = FeasibilityGraph(np.zeros(1, np.int64), none, np.zeros(0))
    labels = (applied.group, applied.scenario.groups, 0)
    decided = (applied.denied, ~applied.denied)
    return Problem(np.zeros((n, 0)), none, (), *labels, *decided, np.zeros(n, np.int32), no_graph, 0, applicants)


def _counts(applied: Applied) -> dict[tuple[str, str, str], Counts]:
    """Applications and denials of every group."""
    groups = applied.scenario.groups
    n = np.bincount(applied.group, minlength=len(groups))
    denied = np.bincount(applied.group[applied.denied], minlength=len(groups))
    group_counts = [(int(a), int(b)) for a, b in zip(n, denied, strict=True)]
    return {
        (LENDER, ATTRIBUTE, name): Counts(*group_counts[number], *group_counts[0]) for number, name in enumerate(groups)
    }


# --------------------------------------------------------------------------------------------------------------------
# Takes a planted lender through the whole product: a file and a spec in, the table ``verdicts`` out.
#
# Held against ``audit``, which starts from arrays: both must say the same of every group.


BLOCKS = {"terms": ("amount", "ltv", "purpose"), "finances": ("income", "dti", "years"), "history": ("score",)}
"""Of the ladder; the columns of the last rung are all of them."""
FILE = "planted.csv"


def verdict_rows(applied: Applied, place: Path, seed: int = 0) -> dict[tuple[str, str], Mapping[str, Any]]:
    """The rows of the table ``verdicts`` by measure and group, those of whole theories by theory and an empty group.

    Args:
        applied: Applicants and decisions; they are written to a file.
        place: The folder of the file.
        seed: Of the audit.
    """
    frame(applied).to_csv(place / FILE, index=False)
    steps = [step for step in plan(spec_of(applied, place, seed)).steps if step.name != "report"]
    (table,) = call_plainly(steps)["verdicts"]
    decisive = (row for row in table.to_pylist() if row["role"] != "watch")
    return {(row["measure"] or row["theory"], row["group"]): row for row in decisive}


def frame(applied: Applied) -> pd.DataFrame:
    """The file: every number to its last digit, so that nothing differs from the arrays."""
    applicant_columns = columns(applied)
    out = pd.DataFrame(dict(zip(applicant_columns.names, applicant_columns.values.T, strict=True)))
    out["purpose"] = [PURPOSES[code] for code in applied.purpose]
    out["race"] = [applied.scenario.groups[code] for code in applied.group]
    out["decision"] = ["denied" if is_denied else "approved" for is_denied in applied.denied]
    return out


def spec_of(applied: Applied, place: Path, seed: int) -> AuditSpec:
    """The audit spec: the ladder and CST with what their states rest on, and nothing else."""
    groups, names = applied.scenario.groups, columns(applied).names
    graph = graph_of(applied)
    blocks = {block: [name for name in block_names if name in names] for block, block_names in BLOCKS.items()}
    spec = {
        "name": "planted",
        "title": "A planted lender",
        "year": 2026,
        "source": {"kind": "csv", "path": str(place / FILE)},
        "decision": {"column": "decision", "favourable": ["approved"], "unfavourable": ["denied"]},
        "protected": [
            {"name": "race", "columns": ["race"], "groups": {g: [g] for g in groups}, "reference": groups[0]}
        ],
        "columns": {name: _column(name) for name in names},
        "causal_graph": {"edges": [list(edge) for edge in graph.edges]},
        "methods": {
            "adjusted": {
                "blocks": {block: block_names for block, block_names in blocks.items() if block_names},
                "splits": 1,
                "folds": 2,
            },
            "cst": {"ks": [30], "k": 30, "null_permutations": 0, "null_draws": 0, "sensitivity": False},
            "fgce": None,
        },
        "verdicts": {"columns_complete": not applied.scenario.without},
        "explain": {"decision_makers": ["lender"]},
        "disclosure": {"profile": "public"},
        "seed": seed,
    }
    return read_spec(yaml.safe_dump(spec, sort_keys=False), "planted.yaml", {}).spec


def _column(name: str) -> dict[str, Any]:
    if name == "purpose":
        return {"type": "nominal"}
    return {"type": "continuous", "scale": "log"} if name == LOGGED else {"type": "continuous"}


# --------------------------------------------------------------------------------------------------------------------
# Repeats audits of planted lenders, and counts states that are wrong and intervals that miss the truth.
#
# Scope: repetitions and shares. One audit: ``audit``. Scenarios and targets: ``verdicts``.


THEORIES = (Theory.SIMILAR_APPLICANTS, Theory.CAUSAL_MODEL, Theory.APPROVAL_RATES)
"""Theories whose truth is planted."""
TRUE = {Theory.SIMILAR_APPLICANTS: "direct", Theory.CAUSAL_MODEL: "total", Theory.APPROVAL_RATES: "ratio"}
"""What a theory is about, by name in ``Truth``."""
MEDIATED = "mediated_effect"
"""The measure of what is total and not direct."""
HARMED = 1
"""The group whose intervals are held against the truth."""
_NEAR = 2e-4
"""So near to a limit the truth counts as at it: a planted effect is known to four digits."""


@dataclass(frozen=True)
class Plan:
    """Audits of one scenario with one number of rows."""

    lender: Lender
    scenario: Scenario
    rows: int
    repetitions: int
    seed: int
    total: bool = True
    """Whether CST runs, too."""

    @property
    def complete(self) -> bool:
        """Whether the file holds every column that the lender decided by."""
        return not self.scenario.without


@dataclass(frozen=True)
class Once:
    """What one audit got right and wrong."""

    states: Mapping[Theory, State]
    harmed: Mapping[Theory, State]
    """Of the harmed group's own row."""
    false_breach: Mapping[Theory, bool]
    """Whether a group breaches whose truth keeps the limit, or lies exactly at it."""
    beyond: Mapping[Theory, tuple[bool, ...]]
    """For each group whose truth lies beyond the limit, or exactly at it, whether it is within."""
    covered: Mapping[str, bool]
    """By measure, whether the 95 % interval of the harmed group holds the truth."""
    without_width: int
    """Rows whose interval is a point."""


@dataclass(frozen=True)
class Shares:
    """What all repetitions of a plan say."""

    plan: Plan
    every: tuple[Once, ...]

    @property
    def theories(self) -> tuple[Theory, ...]:
        """Those that were judged."""
        return tuple(theory for theory in THEORIES if theory is not Theory.CAUSAL_MODEL or self.plan.total)

    @property
    def measures(self) -> tuple[str, ...]:
        """Measures with intervals that are compared with the truth."""
        return tuple(dict.fromkeys(name for repetition in self.every for name in repetition.covered))

    def of(self, theory: Theory, state: State) -> float:
        """How often the theory ended in a state."""
        return mean(repetition.states[theory] is state for repetition in self.every)

    def of_harmed(self, theory: Theory, state: State) -> float:
        """How often the harmed group's own row did."""
        return mean(repetition.harmed[theory] is state for repetition in self.every)

    def false_breach(self, theory: Theory) -> float:
        """How often a group that keeps its limit got the state breach: the familywise rate."""
        return mean(repetition.false_breach[theory] for repetition in self.every)

    def false_within(self, theory: Theory) -> float:
        """How often a group beyond the limit got the state within; NaN where no group is beyond it.

        It is a share of groups: no correction is made for many, as a theory is within only if all of them are.
        """
        wrong_flags = [wrong for repetition in self.every for wrong in repetition.beyond[theory]]
        return mean(wrong_flags) if wrong_flags else math.nan

    def covered(self, measure: str) -> tuple[float, int]:
        """How often an interval held the truth, and of how many."""
        covered_flags = [repetition.covered[measure] for repetition in self.every if measure in repetition.covered]
        return mean(covered_flags), len(covered_flags)


Spread = Callable[[Callable[[int], Once], Iterable[int]], Iterable[Once]]
"""Calls a function with each number: ``map``, or that of several processes."""


@contextmanager
def processes() -> Iterator[Spread]:
    """As many processes as there are cores; what they find does not depend on how many."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), mp_context=context) as pool:
        yield partial(pool.map, chunksize=5)


def repeat(plan: Plan, spread: Spread = map) -> Shares:
    """All repetitions of a plan."""
    return Shares(plan, tuple(spread(partial(once, plan), range(plan.repetitions))))


def once(plan: Plan, number: int) -> Once:
    """One repetition. It does not depend on earlier repetitions."""
    rng = np.random.default_rng([plan.seed, plan.rows, number])
    with threadpool_limits(1):
        applied = draw(plan.lender, plan.scenario, plan.rows, rng)
        given = measure_lender(applied, rng, imagined=plan.total)
        found = judge_measures(applied, given, Verdicts(columns_complete=plan.complete))
    primary = [row for row in found.rows if row.case.role == "primary" and row.case.theory in THEORIES]
    true = dict(zip(plan.scenario.groups, population(plan.lender, plan.scenario), strict=True))
    return Once(
        {theory: found.theories[theory].state for theory in THEORIES},
        {row.case.theory: row.state for row in primary if row.case.group == plan.scenario.groups[HARMED]},
        {theory: any(row.state is State.OUTSIDE for row in of) for theory, of in _where(primary, true, inside=True)},
        {theory: tuple(row.state is State.WITHIN for row in of) for theory, of in _where(primary, true, inside=False)},
        {**_covered(found.rows, applied, plan), **_mediated(given, applied)} if plan.complete else {},
        sum(row.low == row.high for row in found.rows),
    )


def _where(
    rows: Sequence[Verdict], true: Mapping[str, Truth], *, inside: bool
) -> Iterator[tuple[Theory, list[Verdict]]]:
    """By theory, the rows of groups with a true effect within or beyond the limit; a row at the limit is in both."""
    for theory in THEORIES:
        rows_with_limit = [(row, row.case.limit) for row in rows if row.case.theory is theory]
        over = [
            (row, _beyond(getattr(true[row.case.group], TRUE[theory]), limit))
            for row, limit in rows_with_limit
            if limit
        ]
        yield theory, [row for row, by in over if (by <= _NEAR if inside else by >= -_NEAR)]


def _beyond(value: float, limit: Limit) -> float:
    """By how much the truth lies beyond the limit; below 0 where it keeps it."""
    return value - limit.value if limit.side == "at_most" else limit.value - value


def _covered(rows: Iterable[Verdict], applied: Applied, plan: Plan) -> dict[str, bool]:
    """Effects are those on the applicants drawn; the ratio, and the effect where groups overlap, the population's."""
    effects = applied.truth(HARMED)
    out = {}
    for row in rows:
        case = row.case
        if case.group != applied.scenario.groups[HARMED] or case.evidence is None:
            continue
        if case.theory is Theory.APPROVAL_RATES:
            truth = population(plan.lender, plan.scenario)[HARMED].ratio
        elif case.measure == OVERLAP:
            truth = overlap_weighted(plan.lender, plan.scenario)[HARMED]
        else:
            truth = getattr(effects, TRUE[case.theory])
        evidence = replace(case.evidence, bias=0.0) if isinstance(case.evidence, Estimated) else case.evidence
        out[case.measure] = evidence.bound(0.025, upper=False) <= truth <= evidence.bound(0.025, upper=True)
    return out


def _mediated(measures: Iterable[Given], applied: Applied) -> dict[str, bool]:
    """Whether the intervals of mediated effects cover the truth: the verdicts have no row for these effects."""
    effects, harmed_group = applied.truth(HARMED), applied.scenario.groups[HARMED]
    return {
        measure.family.measure: abs(measure.value - (effects.total - effects.direct))
        <= NORMAL_95 * measure.inference.se
        for measure in measures
        if measure.family.measure == MEDIATED and measure.group == harmed_group and measure.inference is not None
    }
