"""Judges planted lenders again and again: how often the state is right, and the interval holds the truth.

From arrays on it is the product's own code: the examination, its tables, evidence, findings and state. Coverage is
that of the plain interval; of lenders whose file misleads, of the hull of all readings.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from research.bench.lenders import OPEN, OUTSIDE, SHAPES, WITHIN, Lender, Shape
from research.benchmark import Bench, Room, Row, against, row
from schemas.audit.limits import Verdicts
from schemas.tables.readings import WRITTEN_BY_ADJUST
from schemas.terms import DecisionMaker, State, Theory
from tasks.methods.adjusted.adjust.examination import tables_of
from tasks.methods.adjusted.adjust.rows import table_of
from tasks.methods.adjusted.algorithm.examined import Files, Rules, examine
from tasks.methods.adjusted.algorithm.expected import LimitRule
from tasks.metrics.algorithm.verdicts import Case, Limit, Verdict, judge
from tasks.metrics.algorithm.verdicts import Rules as StateRules
from tasks.metrics.readings import Facts, facts_of, findings_of, judged_case
from tasks.numerics.arrays import Longs
from tasks.preprocessing.algorithm import copies

REPS = 10
"""Lenders of each shape where nobody says how many."""
RIGHT, QUIET = 0.95, 0.05
"""Share of lenders with a right state and each finding that must be made; most with one that must not."""
KINDS = ("part", "place", "through", "missing", "undecided", "copies", "ratio")
STATES = {State.OUTSIDE: OUTSIDE, State.WITHIN: WITHIN, State.INCONCLUSIVE: OPEN, State.UNRELIABLE: OPEN}
SETTINGS = Verdicts(columns_complete=True)


@dataclass(frozen=True)
class Answer:
    """State and findings of one lender."""

    state: str
    kinds: tuple[str, ...]
    part: str
    """The first part that is named."""
    covered: bool
    verdict: Verdict
    facts: Facts


def answer_to(lender: Lender, seed: int) -> Answer:
    """The state and the findings of a planted lender."""
    files, copied_rows = _once(lender.files)
    limits = SETTINGS.limits.similar_applicants
    if limits is None:
        raise ValueError("the bench needs a limit of similar applicants")
    rules = Rules(LimitRule(limits.points, limits.times, limits.fifth, limits.least))
    results = examine(files, rules, np.random.default_rng(seed))
    attribute, group, reference = "race", files.groups[1], files.groups[0]
    identity = {"decision_maker": str(DecisionMaker.LENDER), "protected_attribute": attribute}
    cluster = None if files.cluster is None else "officer"
    rows = tables_of(identity, files, results, cluster, limits.points)
    tables: dict[str, pa.Table] = {table.name: table_of(table, rows[table.name]) for table in WRITTEN_BY_ADJUST}
    facts = facts_of(tables)
    whose = identity["decision_maker"], attribute, group
    of_group = (
        Theory.SIMILAR_APPLICANTS,
        "adjusted",
        "adjusted_effect",
        attribute,
        group,
        reference,
        whose[0],
        "primary",
    )
    case = Case(*of_group, float("nan"), None, Limit(limits.points), None)  # type: ignore[arg-type]
    case = judged_case(case, facts[whose], 0.0, float("nan"), SETTINGS)
    (verdict,) = judge([case], StateRules(SETTINGS.alpha, SETTINGS.minimum_n, SETTINGS.minimum_events))
    findings = list(findings_of(facts, copied_rows, SETTINGS))
    part = next((finding["part"] for finding in findings if finding["kind"] == "part"), "")
    evidence = case.evidence
    covered = evidence is not None and (
        evidence.bound(0.025, upper=False) <= lender.effect <= evidence.bound(0.025, upper=True)
    )
    kinds = tuple(dict.fromkeys(finding["kind"] for finding in findings))
    return Answer(STATES[verdict.state], kinds, part, covered, verdict, facts[whose])


def _once(files: Files) -> tuple[Files, dict[str, object] | None]:
    """The files without copies, and the row of copies where there are some beyond chance."""
    cells = [files.denied, files.undecided, files.group, *(split.code for split in files.splits)]
    codes: list[Longs] = [column.astype(np.int64) for column in cells]
    codes += [np.unique(control.values, return_inverse=True)[1].astype(np.int64) for control in files.controls]
    result = copies(codes)
    if not result.beyond_chance:
        return files, None
    rows, copied = len(files.denied), int(result.later.sum())
    copied_rows: dict[str, object] = {"rows": rows, "sets": result.sets, "copied": copied, "left_out": True}
    return files.taken(~result.later), copied_rows


def answers(shape: Shape, reps: int, first: int = 0, rows: int | None = None) -> list[Answer]:
    """The answers to several lenders of a shape, by seed."""
    n, number = min(shape.rows, rows or shape.rows), SHAPES.index(shape)
    return [
        answer_to(shape.draw(np.random.default_rng([seed, number]), n), seed) for seed in range(first, first + reps)
    ]


def line_of(shape: Shape, seen_answers: Sequence[Answer]) -> Row:
    """The row of a shape: how often it was right, and what was found."""
    reps = len(seen_answers)
    states = Counter(answer.state for answer in seen_answers)
    kinds = Counter(kind for answer in seen_answers for kind in answer.kinds)
    right = sum(states[state] for state in shape.states) / reps
    finds = {kind: kinds[kind] / reps for kind in shape.finds}
    loud = {k: kinds[k] / reps for k in KINDS if k not in (*shape.finds, *shape.may_find) and kinds[k]}
    named = sum(shape.part in answer.part for answer in seen_answers) / reps if shape.part else 1.0
    met = right >= RIGHT and min([named, *finds.values()]) >= RIGHT and max([*loud.values(), 0.0]) <= QUIET
    share = states[OUTSIDE] / reps
    words = [f"{'power' if shape.harms else 'outside'} {share:.2f}", f"within {states[WITHIN] / reps:.2f}"]
    words += [f"coverage {sum(answer.covered for answer in seen_answers) / reps:.2f}"]
    words += [f"{kind} {value:.2f}" for kind, value in (*finds.items(), *loud.items())]
    words += [f"named {named:.2f}"] if shape.part else []
    target = against(f"{' or '.join(shape.states)}, finds {', '.join(shape.finds) or 'nothing'}", met)
    return row(shape.name, reps, "state right", ratio=right, **target, found=", ".join(words))


def _lines(room: Room) -> Iterator[Row]:
    for shape in SHAPES:
        yield line_of(shape, answers(shape, room.reps or REPS, rows=room.rows))


BENCH = Bench("verdicts", _lines, repeats=True)
