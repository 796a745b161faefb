"""The model beside the lender: how well it follows the decisions, and how columns were made numbers for it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from schemas.tables.applications import ENCODINGS, MODEL_METRICS
from tasks.reporting.material import Material, listed
from tasks.reporting.numbers import DASH, count, number_cell, percent, significant
from tasks.reporting.section import Cell, Notice, Section, TableView

TOO_GOOD = 0.98
"""AUC from which on a model of lending decisions is not believed."""
METRICS = {
    "auc": "AUC",
    "accuracy": "Same decision",
    "predicted_denial_rate": "Denied by the model",
    "true_positive_rate": "Approved, of those the lender approved",
    "false_positive_rate": "Approved, of those the lender denied",
}
MOST_ROWS = 50
"""Rows of a table on the page."""
_CHANGE = {"up": "only up", "down": "only down", "free": "freely", "immutable": "not at all"}
Row = Mapping[str, Any]


def model(material: Material) -> Section:
    """How well the model's decisions follow the lender's, group by group."""
    of: dict[tuple[str, str], dict[str, Row]] = {}
    for row in material.named(MODEL_METRICS.name):
        of.setdefault((row["protected_attribute"], row["group"]), {})[row["metric"]] = row
    words = "What the pages say of the model holds for the lender only as far as the model follows the lender."
    if not of:
        return Section("The model beside the lender", "model", ("No model was held against the lender's decisions.",))
    keys = list(of)[:MOST_ROWS]
    columns = {
        "Attribute": lambda key: Cell(key[0]),
        "Group": lambda key: Cell(key[1]),
        "n": lambda key: _n(next(iter(of[key].values()))["n"]),
        **{head: _metric(of, name) for name, head in METRICS.items() if any(name in found for found in of.values())},
    }
    note = (
        f"The first {len(keys)} of {len(of)} groups; measures.xlsx has the measures of all."
        if len(keys) < len(of)
        else ""
    )
    table = TableView.of("The model's decisions beside the lender's", keys, columns, note)
    return Section("The model beside the lender", "model", (words,), tables=(table,))


def _metric(of: Mapping[tuple[str, str], Mapping[str, Row]], name: str) -> Any:
    """What makes the cell of a metric."""

    def cell(key: tuple[str, str]) -> Cell:
        row = of[key].get(name)
        if row is None or row["value"] is None:
            return DASH if row is None else Cell("withheld or undefined", "none")
        return number_cell(significant(row["value"]) if name == "auc" else percent(row["value"]))

    return cell


def _n(n: int | None) -> Cell:
    return Cell("withheld", "none") if n is None else number_cell(count(n))


def too_good(material: Material) -> Iterator[Notice]:
    """A warning where a model that was fitted here follows the decisions better than is to be believed."""
    if material.settings.model.kind == "rule":
        return
    largest: dict[str, Row] = {}
    for row in material.named(MODEL_METRICS.name):
        first = largest.get(row["protected_attribute"])
        if row["metric"] == "auc" and row["n"] is not None and row["n"] >= material.minimum:
            largest[row["protected_attribute"]] = row if first is None or row["n"] > first["n"] else first
    found = [row for row in largest.values() if row["value"] is not None and row["value"] >= TOO_GOOD]
    if found:
        names = listed(f"{row['group']} ({row['protected_attribute']})" for row in found)
        yield Notice(
            "The model knows too much",
            f"AUC of {TOO_GOOD:g} or more for the largest group: {names}. Lending decisions are hardly ever told so "
            "well from an application. Look for a column that is known only after the decision.",
        )


def encodings(material: Material) -> Section:
    """How source columns were scaled, and how an applicant may change them."""
    of: dict[str, list[Row]] = {}
    for row in material.named(ENCODINGS.name):
        of.setdefault(row["feature"], []).append(row)
    words = "Columns are scaled to between 0 and 1. Continuous ones are cut off at both ends, then put into bins."
    columns = {
        "Feature": lambda name: Cell(_label(material, name)),
        "Type": lambda name: Cell(of[name][0]["kind"]),
        "Encoded as 0": lambda name: _end(of[name][0], "low"),
        "Encoded as 1": lambda name: _end(of[name][0], "high"),
        "Bins": lambda name: DASH if of[name][0]["bins"] is None else number_cell(count(of[name][0]["bins"])),
        "Rows cut off": lambda name: _rows(of[name][0], "clipped"),
        "Implausible rows": lambda name: _rows(of[name][0], "implausible"),
        "Categories": lambda name: Cell(_categories(of[name])),
        "May change": lambda name: Cell(_CHANGE[of[name][0]["constraint"]]),
    }
    table = TableView.of("Columns and their encoding", of, columns, folded=True)
    return Section("Columns", "columns", (words,), tables=(table,) if of else ())


def _label(material: Material, name: str) -> str:
    column = material.settings.columns.get(name)
    return f"{column.label} ({name})" if column is not None and column.label else name


def _end(row: Row, name: str) -> Cell:
    if row[name] is None:
        return Cell("withheld", "none") if row["kind"] == "continuous" else DASH
    return number_cell(significant(row[name]))


def _rows(row: Row, name: str) -> Cell:
    return _n(row[name]) if row["kind"] == "continuous" else DASH


def _categories(rows: list[Row]) -> str:
    said = (
        json.loads(rows[0]["categories"]) if rows[0]["categories"] else [r["category"] for r in rows if r["category"]]
    )
    return ", ".join(map(str, said)) or "–"
