"""The verdicts of a report: a state for each theory of harm, then the groups that it rests on.

A theory that was not judged is no pass; nor is one with too little evidence.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from schemas.audit.limits import Verdicts
from schemas.tables.verdicts import BEARS_ON, QUESTIONS, STATES, effect_words, limit_words, published
from schemas.terms import State, Theory
from tasks.metrics.verdict_tables import state_of
from tasks.reporting.chapters.measure_names import names
from tasks.reporting.material import Material, Shown
from tasks.reporting.numbers import p_cell, state_cell
from tasks.reporting.section import Cell, Row, TableView

__all__ = ["overall", "published", "rows_table", "summary", "theories_table"]

Rows = Sequence[Mapping[str, Any]]


def overall(rows: Rows, settings: Verdicts) -> State:
    """The state that decides the exit code."""
    return state_of({Theory(row["theory"]): State(row["state"]) for row in rows if row["role"] == "theory"}, settings)


def summary(rows: Rows, settings: Verdicts) -> str:
    """One sentence on the theories that decide."""
    return {
        State.BREACH: "A figure lies beyond a limit that was fixed before the run, with its whole interval.",
        State.INSUFFICIENT_EVIDENCE: "Too little evidence to say of a question that counts. That is not a pass.",
        State.WITHIN: "Every question that counts lies within its limit, with the whole interval of each group.",
    }.get(overall(rows, settings), "No question that counts was judged. That is not a pass.")


def theories_table(rows: Rows, settings: Verdicts) -> TableView:
    """The theories side by side, each with its question and its state."""
    frame = BEARS_ON.get(settings.frame, {})
    shown = [
        (
            Cell(QUESTIONS[Theory(row["theory"])]),
            Cell(row["theory"]),
            state_cell(row["state"]),
            Cell(row["reason"]),
            Cell(frame.get(Theory(row["theory"]), "–")),
        )
        for row in rows
        if row["role"] == "theory"
    ]
    note = "Each question is a kind of harm of its own, and none answers another. Limits were fixed before the run."
    return TableView(
        "The questions of this audit",
        ("Question", "Theory", "State", "Why", f"Bears on ({settings.frame})"),
        tuple(shown),
        note,
    )


def rows_table(rows: Rows, material: Material, shown: Mapping[str, Shown]) -> TableView:
    """Every judged group: effect with its verdict interval, limit, state and reason."""
    header = ("Theory", "Group", "Decisions of", "Measure", "Effect", "Limit", "State", "p, Holm", "Why")
    note = (
        "Verdict interval: on the side of a breach its end counts all groups judged together (Holm), on the other it "
        "is a one-sided 95 % bound. Beside: a second method, which decides nothing."
    )
    return TableView("By group", header, tuple(_cells(rows, material, shown)), note)


def _cells(rows: Rows, material: Material, shown: Mapping[str, Shown]) -> Iterator[Row]:
    for row in rows:
        if row["role"] == "theory":
            continue
        words, _ = names(row["measure"], shown)
        said = "" if row["role"] == "primary" else f" ({row['role']})"
        yield (
            Cell(row["theory"]),
            Cell(f"{row['group']} ({row['protected_attribute']})"),
            Cell(material.maker(row["decision_maker"])),
            Cell(words + said),
            Cell(effect_words(row) or "–", "number" if row["value"] is not None else "none"),
            Cell(limit_words(row) or "–"),
            Cell(f"{STATES[State.INSUFFICIENT_EVIDENCE]} (withheld)", "state", State.INSUFFICIENT_EVIDENCE)
            if row["withheld"]
            else state_cell(row["state"]),
            p_cell(row["p_breach_holm"]),
            Cell(row["reason"]),
        )
