"""Audits a planted lender in memory: the ladder, situation testing, CST, and the states that rest on them.

The product's own code from arrays on: what is left out are files, tables, validation and everything that no state
rests on. ``file`` takes the same lender through all of it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from schemas.audit.causal import CausalGraph
from schemas.audit.limits import Verdicts
from schemas.audit.spec import Protected
from schemas.terms import DecisionMaker, Kind
from tasks.counterfactuals.scm import World
from tasks.ingest.synthetic.algorithm.planted_lenders import EDGES, NUMBERS, PURPOSES, Applied
from tasks.methods.adjusted.algorithm.detection import Step, Steps, detect
from tasks.methods.adjusted.algorithm.ladder.applications import Applications, Block, Control
from tasks.methods.adjusted.algorithm.ladder.effect import Effect
from tasks.methods.adjusted.algorithm.ladder.rungs import climb
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.methods.cst.algorithm.comparisons import compare, lay
from tasks.methods.cst.algorithm.effect.aggregates import aggregates
from tasks.methods.cst.algorithm.effect.groups import Frame, GroupEffects, of_group
from tasks.methods.cst.settings import CstSettings
from tasks.metrics.algorithm.measures import Family, Given
from tasks.metrics.algorithm.verdicts.judgement import Counts
from tasks.metrics.theories import Gathered
from tasks.metrics.verdict_tables import Judgement, judged
from tasks.numerics.columns import Columns
from tasks.numerics.problem import Applicants, FeasibilityGraph, Problem
from tasks.numerics.results import Aggregate
from tasks.preprocessing.groups import Grouped

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


def judge_measures(applied: Applied, given: Sequence[Given], verdicts: Verdicts) -> Judgement:
    """The states that rest on the effects.

    Args:
        applied: Applicants and decisions.
        given: Of ``measure_lender``.
        verdicts: Limits, and whether the file holds every column that was decided by.
    """
    own = {(g.family.method, g.family.measure, LENDER, ATTRIBUTE, g.group): g for g in given}
    gathered = Gathered(_counts(applied), own, (_protected(applied),), ("adjusted", "cst"), verdicts)
    return judged(gathered, (), verdicts)


def _protected(applied: Applied) -> Protected:
    groups = tuple(dict.fromkeys(applied.scenario.groups))
    return Protected(name=ATTRIBUTE, columns=(ATTRIBUTE,), groups={g: (g,) for g in groups}, reference=groups[0])


def columns(applied: Applied) -> Columns:
    """The applicants, without what the file lacks."""
    seen = [number for number, name in enumerate(NUMBERS) if name not in applied.scenario.without]
    names = (*(NUMBERS[number] for number in seen), "purpose")
    kinds = (*[Kind.CONTINUOUS] * len(seen), Kind.NOMINAL)
    values = np.column_stack([applied.values[:, seen], applied.purpose])
    return Columns(names, kinds, (*[()] * len(seen), PURPOSES), values, (LOGGED,))


def graph_of(applied: Applied) -> CausalGraph:
    """What is caused by what among the columns that the file has."""
    return CausalGraph(edges=tuple(edge for edge in EDGES if not set(edge) & set(applied.scenario.without)))


def _adjusted(applied: Applied, rng: np.random.Generator) -> Iterator[Given]:
    """The effect that is judged, of every group, and the one beside it."""
    found = columns(applied)
    controls = tuple(
        Control(name, "category" if known else "number", values, known, scale="log" if name == LOGGED else "linear")
        for name, known, values in zip(found.names, found.categories, found.values.T, strict=True)
    )
    groups = applied.scenario.groups
    applications = Applications(applied.denied, applied.group, groups, 0, (Block("all", controls),))
    last = [each for each in climb(applications, LADDER, 0.95, rng).effects if each.rung == 1]
    linear = {each.group: each for each in last if each.estimator == "lpm"}
    own = Steps(tuple(_step(each, linear[each.group], groups[each.group]) for each in last))
    problem = replace(_problem(applied, Applicants(found, ~applied.denied, ())), own=own)
    for each in detect(problem, LADDER, rng).aggregates:
        if not each.parameters:
            yield _given("adjusted", groups[each.group], each)


def _step(effect: Effect, linear: Effect, group: str) -> Step:
    """An estimate of the rung that is judged, with what the linear fit says of unseen columns."""
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
    found, groups, protected = columns(applied), applied.scenario.groups, _protected(applied)
    applicants = Applicants(found, ~applied.denied, ())
    if imagined:
        labels = {ATTRIBUTE: Grouped(applied.group, groups, 0)}
        world = World(found, (protected,), labels, graph_of(applied), int(rng.integers(2**31)))
        imagine = world.imagine(ATTRIBUTE, None)
        made = imagine(np.flatnonzero(applied.group != 0), applied.group, None)
        applicants = replace(applicants, counterfactuals=made, imagine=imagine)
    ground = lay(_problem(applied, applicants), SITUATIONS, applied.group, applicants.counterfactuals)
    frame, effects = Frame(ground), list[GroupEffects]()
    for number in range(1, len(groups)):
        compared = compare(ground, number, np.flatnonzero(applied.group == number))
        effects.append(of_group(frame, number, compared, effects))
    for each in aggregates(frame, effects, rng):
        if not each.parameters:
            yield _given("cst", groups[each.group], each)


def _given(method: str, group: str, found: Aggregate) -> Given:
    family = Family(method, LENDER, ATTRIBUTE, found.measure, "{}")
    none = np.zeros(0)
    return Given(family, group, found.value, found.n, none, False, False, found.reason, inference=found.inference)


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
    own = [(int(a), int(b)) for a, b in zip(n, denied, strict=True)]
    return {(LENDER, ATTRIBUTE, name): Counts(*own[number], *own[0]) for number, name in enumerate(groups)}
