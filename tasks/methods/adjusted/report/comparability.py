"""Whether groups can be compared at all, and whether the difference depends on a control."""

from tasks.methods.adjusted.report.lookups import Ladder
from tasks.methods.adjusted.report.words import plain
from tasks.reporting.numbers import p_cell, percent, significant
from tasks.reporting.section import Cell, TableView

GLOSSARY = {
    "support": "share of a group whose propensity, the chance to be of the group given the controls, lies from 0.05 to "
    "0.95: there applicants of both groups are found",
    "overlap weights": "weights by which both groups have the same mean of each control; those count most who might as "
    "well be of the other group",
}
_DIFFERS = 0.05
"""A p after Holm below this is told as a difference that depends on the control."""


def readings(found: Ladder) -> tuple[str, ...]:
    """Controls on which the difference depends."""
    tested = {(r["group"], r["column"]): r["p_holm"] for r in found.interactions if r["p_holm"] is not None}
    return tuple(
        f"{group}: the difference is not the same at every {found.view.label(column)} (p after Holm {p:.3f}); that is "
        "a finding of its own, and corrects nothing."
        for (group, column), p in tested.items()
        if p < _DIFFERS
    )


def tables(found: Ladder) -> tuple[TableView, ...]:
    """Support by rung, and differences by control."""
    return _support(found), _interactions(found)


def _support(found: Ladder) -> TableView:
    rows = tuple(
        (
            Cell(row["group"]),
            Cell(found.rungs[row["rung"]]),
            _share(row["inside"]),
            _number(row["difference_raw"], row["column_raw"]),
            _number(row["difference_weighted"], row["column_weighted"]),
            _share(row["unmatched"]),
            Cell(plain(row["reason"])),
        )
        for row in found.support
        if row["rung"]
    )
    header = (
        *("Group", "Adjusted for", "Support", "Largest standardised difference", "After overlap weights"),
        *("Without a like reference applicant", "Remarks"),
    )
    note = "Below a support of 80 % only a limit on the overlap-weighted difference is judged; it is read first."
    return TableView("Are there comparable applicants?", header, rows, note)


def _interactions(found: Ladder) -> TableView:
    rows = tuple(
        (
            Cell(row["group"]),
            Cell(found.view.label(row["column"])),
            p_cell(row["p"]),
            p_cell(row["p_holm"]),
            Cell(_where(row["percentile"], row["at"])),
            found.cell(row),
        )
        for row in found.interactions
    )
    header = ("Group", "Control", "p", "p after Holm", "At percentile, or level", "Adjusted difference there")
    note = "Joint Wald test of group times control, one block at a time; Holm over the controls of a group."
    return TableView("Does the difference depend on a control?", header, rows, note, folded=True)


def _where(percentile: int | None, at: str | None) -> str:
    """Where a difference is told: at a value of a number, with its percentile, or at a level of a category."""
    if at is None:
        return "–"
    return at if percentile is None else f"{percentile} %: {at}"


def _share(value: float | None) -> Cell:
    return Cell("–", "none") if value is None else Cell(percent(value), "number")


def _number(value: float | None, column: str | None) -> Cell:
    if value is None:
        return Cell("–", "none")
    return Cell(significant(value) if value > 1e-4 else "0", "number", detail=f"({column})" if column else "")
