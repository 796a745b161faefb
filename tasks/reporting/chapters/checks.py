"""The checks against thresholds fixed before the run, and what they come to as a whole.

A measure without a threshold was not checked, which is no pass; nor is a check that had too few people to decide.
"""

from collections.abc import Mapping

from schemas.audit.spec import Threshold
from schemas.terms import State
from tasks.metrics.algorithm import verdicts
from tasks.metrics.algorithm.measures import SUFFIXES
from tasks.reporting.material import Material, Measure, Shown
from tasks.reporting.numbers import n_cell, p_cell, state_cell, value_cell
from tasks.reporting.section import Cell, Row, TableView

COMPARED = {
    "_size_matched_difference": "difference from the size-matched reference",
    "_size_matched": "size-matched reference",
    "_null_difference": "difference from permuted labels",
    "_null": "labels permuted",
    "_difference": "difference",
    "_ratio": "ratio",
}
"""What a comparison is called, by the suffix of its measure."""
_WORST_FIRST = (State.BREACH, State.INSUFFICIENT_EVIDENCE, State.WITHIN)
SUMMARIES = {
    State.BREACH: "At least one measure lies outside a limit that was fixed before the run, with its whole interval.",
    State.INSUFFICIENT_EVIDENCE: "At least one check has too little evidence to decide. That is not a pass.",
    State.WITHIN: "Every measure that was checked lies within its limits, with its whole interval. Measures without a "
    "limit were not checked.",
    State.NOT_RUN: "No measure was checked: no limit was set for this run, or none of its measures has the name of a "
    "limit. That is not a pass.",
}


def overall(material: Material) -> State:
    """The worst state of the checks."""
    return verdicts.overall([m.state for m in checked(material)])


def checked(material: Material) -> list[Measure]:
    """The measures that were held against a limit, worst first."""
    found = [m for m in material.measures if m.state != State.NOT_RUN]
    return sorted(found, key=lambda m: _WORST_FIRST.index(State(m.state)))


def names(measure: str, shown: Mapping[str, Shown]) -> tuple[str, Shown]:
    """A measure in words, and how its base is written; a method's own words where it gave some."""
    if measure in shown:  # a measure may end like a comparison: FACE's ratio
        return shown[measure].words, shown[measure]
    for suffix in SUFFIXES:
        base = measure.removesuffix(suffix)
        if base != measure:
            known = shown.get(base, Shown(base.replace("_", " "), "number"))
            return f"{known.words}, {COMPARED[suffix]}", known
    unknown = Shown(measure.replace("_", " "), "number")
    return unknown.words, unknown


def table(material: Material, shown: Mapping[str, Shown]) -> TableView:
    """Every check with its limit, its state and the reason for it."""
    rows = [_row(material, m, shown) for m in checked(material)]
    header = ("State", "Measure", "Decisions of", "Group", "Value", "n", "q", "Why")
    note = (
        "Differences and ratios are against the reference group. A verdict needs enough people and the whole "
        "interval on one side of the limit. q: p after Benjamini-Hochberg over all comparisons of this run."
    )
    return TableView("Checks against the limits of this audit", header, tuple(rows), note)


def _row(material: Material, m: Measure, shown: Mapping[str, Shown]) -> Row:
    words, known = names(m.measure, shown)
    said = "".join(f", {key} = {value}" for key, value in m.said.items())
    group = f"{m.group} ({m.protected_attribute})"
    limits = "; ".join(_limit(t) for t in material.settings.thresholds if _applies(t, m))
    return (
        state_cell(m.state),
        Cell(words + said),
        Cell(material.maker(m.decision_maker)),
        Cell(group),
        value_cell(m, known.unit),
        n_cell(m),
        p_cell(m.q),
        Cell(m.reason if limits and limits in m.reason else f"limit {limits}: {m.reason}"),
    )


def _applies(t: Threshold, m: Measure) -> bool:
    return t.measure == m.measure and t.method in (None, m.method) and t.decision_maker in (None, m.decision_maker)


def _limit(t: Threshold) -> str:
    low = None if t.minimum is None else f"at least {t.minimum:g}"
    high = None if t.maximum is None else f"at most {t.maximum:g}"
    return " and ".join(x for x in (low, high) if x)
