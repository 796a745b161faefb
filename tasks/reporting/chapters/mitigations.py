"""The mitigations that the spec compares: what other models of the same rows could do, group by group."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from schemas.tables.published import PUBLISHED_COMPARED_MITIGATIONS
from tasks.reporting.material import Material
from tasks.reporting.numbers import number_cell, significant
from tasks.reporting.section import Cell, Section, TableView

Row = Mapping[str, Any]

FIGURES: Final = {
    "auc": "AUC",
    "f1": "F1",
    "balanced_accuracy": "Balanced accuracy",
    "positive_rate": "Approved",
    "eo_gap": "Larger gap in error rates",
    "sp_gap": "Gap in approvals",
}
MOST_ROWS: Final = 60
"""Rows of a table on the page."""

WORDS: Final = (
    "Each is trained on the outcomes of a group and the reference group, on the same five folds: means over the folds, "
    "on held-out rows. None is the audited model, or in use.",
    "A model that approves nearly everybody, or nobody, has small gaps and a balanced accuracy near 0.5.",
)


def mitigations(material: Material) -> Section | None:
    """A table of the means; None where the spec compares nothing."""
    of: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in material.named(PUBLISHED_COMPARED_MITIGATIONS.name):
        of.setdefault((row["protected_attribute"], row["group"], row["mitigation"]), {})[row["figure"]] = row
    if not of:
        return None
    keys = list(of)[:MOST_ROWS]
    columns = {
        "Attribute": lambda key: Cell(key[0]),
        "Group": lambda key: Cell(key[1]),
        "Mitigation": lambda key: Cell(key[2]),
        **{title: _mean(of, figure) for figure, title in FIGURES.items()},
    }
    table = TableView.of("Mitigations on the same folds", keys, columns, _note(of, keys))
    return Section("Mitigations compared", "mitigations", WORDS, tables=(table,))


def _mean(of: Mapping[tuple[str, str, str], Mapping[str, Row]], figure: str) -> Any:
    """What makes the cell of a figure."""

    def cell(key: tuple[str, str, str]) -> Cell:
        row = of[key].get(figure)
        value = None if row is None else row["value"]
        return Cell("none", "none") if value is None else number_cell(significant(value))

    return cell


def _note(of: Mapping[tuple[str, str, str], Mapping[str, Row]], keys: Sequence[tuple[str, str, str]]) -> str:
    """Why figures are missing, and how many rows are left out."""
    reasons: dict[str, list[str]] = {}
    for key in keys:
        for row in of[key].values():
            if row["value"] is None:
                names = reasons.setdefault(row["reason"] or "withheld", [])
                names += [] if key[2] in names else [key[2]]
    said = [f"None for {', '.join(names)}: {reason}." for reason, names in reasons.items()]
    if len(keys) < len(of):
        said.append(
            f"The first {len(keys)} of {len(of)} rows; the table {PUBLISHED_COMPARED_MITIGATIONS.name} has all."
        )
    return " ".join(said)
