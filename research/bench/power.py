"""Holds the power that ``evenhand power`` prints against that of new lenders drawn from the same law.

A lender without harm is drawn once, and its power is printed from its table alone. Then new lenders of the same kind
are drawn, the same harm is planted in each, and each is judged. Both shares have to agree within ten points.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from research.bench.lenders import SHAPES, Shape, equal_files
from research.benchmark import Bench, Room, Row, against, row
from schemas.audit.limits import SimilarLimits, Verdicts
from schemas.audit.spec import Protected
from schemas.terms import State, Theory
from tasks.methods.adjusted.adjust.examination import Examination
from tasks.methods.adjusted.adjust.power import LENDER, QUESTIONS, Judge, Planting, Target, power_of, rows_of_part
from tasks.methods.adjusted.adjust.rows import Case
from tasks.methods.adjusted.adjust.settings import AdjustSettings
from tasks.methods.adjusted.algorithm.examined import Files, Rules
from tasks.methods.adjusted.algorithm.expected import LimitRule
from tasks.methods.adjusted.algorithm.planting import harmed
from tasks.methods.adjusted.method import METHOD
from tasks.metrics.algorithm.measures import Family, Given
from tasks.metrics.verdicts import JUDGED_MEASURE
from tasks.numerics.results import Inference

REPS = 200
"""Copies, and new lenders, where nobody says how many."""
NEAR = 0.10
ATTRIBUTE, NUMBER = "race", 1
_BY_NAME = {shape.name: shape for shape in SHAPES}
_EQUAL = Shape("equal", 6000, equal_files, ())


@dataclass(frozen=True)
class Law:
    """A kind of lender without harm, and the harm that is planted."""

    shape: Shape
    points: tuple[float, ...] = (0.02, 0.05, 0.10)
    part: str = ""
    rows: int | None = None


LAWS = (
    Law(_EQUAL),
    Law(_BY_NAME["honest"]),
    Law(_BY_NAME["honest"], rows=1500),
    Law(_BY_NAME["unlike officers"]),
    Law(_EQUAL, (0.10, 0.20), part="purpose: refinancing"),
)


def judge_of(files: Files) -> Judge:
    """The judge of a planted lender with complete columns."""
    limits, verdicts = SimilarLimits(), Verdicts(columns_complete=True)
    construct: Any = AdjustSettings.model_construct  # the judge reads two settings alone
    settings: AdjustSettings = construct(limits=limits, seed=0)
    rules = Rules(LimitRule(limits.points, limits.times, limits.fifth, limits.least))
    cluster = None if files.cluster is None else "officer"
    case = Case(LENDER, ATTRIBUTE, files.applications())
    group = files.groups[NUMBER]
    family = Family(METHOD.name, LENDER, ATTRIBUTE, JUDGED_MEASURE, "{}")
    measured = Given(
        family, group, 0.0, 0, np.zeros(0), headline=False, compared=False, note="", inference=Inference(se=1.0)
    )
    return Judge(
        {ATTRIBUTE: Examination(case, settings, 1, files, cluster, rules)},
        {(LENDER, ATTRIBUTE, group): measured},
        (Protected(name=ATTRIBUTE, columns=(ATTRIBUTE,), reference=files.groups[files.reference]),),
        verdicts,
    )


def printed(law: Law, reps: int, seed: int = 0, size: int | None = None) -> list[float]:
    """Share outside among honest copies, and at each size of harm, from one lender's table."""
    files = law.shape.draw(np.random.default_rng([seed, 1]), _size(law, size)).files
    judge = judge_of(files)
    members = (files.group == NUMBER) & ~files.undecided
    if law.part:
        members &= rows_of_part(files, law.part)
    n, approved = int(members.sum()), int((members & ~files.denied).sum())
    planting = Planting.of(judge, Target(ATTRIBUTE, files.groups[NUMBER], law.part, n, approved), seed, law.points)
    rows = power_of(planting, planting.drawn(range(reps)))
    similar = [row for row in rows if row.question == QUESTIONS[Theory.SIMILAR_APPLICANTS]]
    return [row.outside for row in similar if row.outside is not None]


def simulated(law: Law, reps: int, seed: int = 0, size: int | None = None) -> list[float]:
    """The same shares among new lenders."""
    outside: Counter[int] = Counter()
    for number in range(reps):
        rng = np.random.default_rng([seed, 2, number])
        files = law.shape.draw(rng, _size(law, size)).files
        part, draw = rows_of_part(files, law.part) if law.part else None, rng.random(len(files.denied))
        for place, points in enumerate((0.0, *law.points)):
            lender = harmed(files, NUMBER, points, draw, part)
            states = judge_of(lender).states({ATTRIBUTE: lender}, ATTRIBUTE)
            outside[place] += states[Theory.SIMILAR_APPLICANTS, ATTRIBUTE, files.groups[NUMBER]] is State.OUTSIDE
    return [outside[place] / reps for place in range(1 + len(law.points))]


def _size(law: Law, rows: int | None) -> int:
    size = law.rows or law.shape.rows
    return min(size, rows or size)


def _lines(room: Room) -> Iterator[Row]:
    reps = room.reps or REPS
    for law in LAWS:
        shares, truth = printed(law, reps, size=room.rows), simulated(law, reps, size=room.rows)
        for points, share, true in zip((0.0, *law.points), shares, truth, strict=True):
            what = f"{100 * points:g} points in {law.part or 'all'}" if points else "false alarms"
            words = f"printed {share:.2f}, simulated {true:.2f}"
            target = against(f"within {100 * NEAR:.0f} points", abs(share - true) <= NEAR)
            yield row(law.shape.name, _size(law, room.rows), what, ratio=share - true, **target, found=words)


BENCH = Bench("power", _lines, repeats=True)
