"""One complainant beside the nearest own and nearest reference applicants: columns as rows, differences marked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from flows.serving.pages.cells import number_cell, table
from flows.serving.tables import Tables
from tasks.reporting.section import Cell, Section

NEAREST: Final = 3
"""Applicants of each side that are shown."""
DIFFERS: Final = "\N{NOT EQUAL TO} differs: "
"""A sign and a word: no colour tells what nothing else does."""
_NEAR = """
    SELECT role, rank, value AS distance, other_row_id AS row_id FROM evidence
    WHERE method = $method AND row_id = $row AND protected_attribute = $attribute AND decision_maker = $maker
      AND rank <= $most AND other_row_id <> row_id
    ORDER BY role, rank
"""
_ROWS = "SELECT * FROM applicants WHERE row_id IN (SELECT unnest($rows))"
_DECIDED = """
    SELECT row_id, favourable FROM decisions WHERE decision_maker = $maker AND row_id IN (SELECT unnest($rows))
"""
_OWN: Final = ("row_id", "run")


def twins(
    tables: Tables,
    given: Mapping[str, Sequence[pa.Table]],
    case: Mapping[str, Any],
    place: tuple[int, int],
    *,
    ids: bool,
) -> Section:
    """The page of one complainant.

    Args:
        tables: that are asked.
        given: evidence, applicants and decisions of the run, as its stages wrote them.
        case: the finding.
        place: its number, and how many there are.
        ids: whether identifiers of rows are shown.
    """
    n, of = place
    near = _near(tables, given["evidence"], case)
    rows = [case["row_id"], *(each["row_id"] for each in near)]
    people = _by_row(tables.ask({"applicants": given["applicants"][0]}, _ROWS, {"rows": rows}))
    asked = {"rows": rows, "maker": case["decision_maker"]}
    decided = _by_row(tables.ask({"decisions": given["decisions"][0]}, _DECIDED, asked))
    heads = ["Complainant", *(f"{_role(each['role'])} {each['rank']}" for each in near)]
    body = [*_facts(near, decided, rows, ids=ids), *_values(people, rows)]
    words = (
        f"Number {n:,} of {of:,}: {case['group']}, decisions of the {case['decision_maker']}, by {case['method']}: "
        f"{case['verdict'].replace('_', ' ')}.",
        "A finding is a reason to look, and not the end of a review.",
    )
    shown = replace(table("Complainant and nearest applicants", ("Column", *heads), body), rest="")
    return Section(f"Complainant {n}", "complainant", words, tables=(shown,))


def _near(tables: Tables, evidence: Sequence[pa.Table], case: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The nearest applicants of each side; none where the method keeps none."""
    mine = [each for each in evidence if case["method"] in each["method"].unique().to_pylist()]
    if not mine:
        return []
    asked = {"method": case["method"], "row": case["row_id"], "attribute": case["protected_attribute"]}
    more = {"maker": case["decision_maker"], "most": NEAREST}
    found: list[dict[str, Any]] = tables.ask({"evidence": mine[0]}, _NEAR, {**asked, **more}).to_pylist()
    return found


def _by_row(found: pa.Table) -> dict[str, dict[str, Any]]:
    return {row["row_id"]: row for row in found.to_pylist()}


def _role(role: str) -> str:
    return {"control": "Own group", "test": "Reference group"}.get(role, role.replace("_", " ").capitalize())


def _facts(
    near: Sequence[Mapping[str, Any]], decided: Mapping[str, Mapping[str, Any]], rows: Sequence[str], *, ids: bool
) -> list[tuple[Cell, ...]]:
    """Identifiers if asked for, decisions, distances."""
    words = {True: "favourable", False: "unfavourable", None: "unknown"}
    decisions = [words[decided.get(row, {}).get("favourable")] for row in rows]
    told = [(Cell("application"), *map(Cell, rows))] if ids else []
    distances = (Cell("distance"), Cell("–", "none"), *(number_cell(each["distance"], "–") for each in near))
    return [*told, (Cell("decision"), *_marked(decisions)), distances]


def _values(people: Mapping[str, Mapping[str, Any]], rows: Sequence[str]) -> list[tuple[Cell, ...]]:
    """A row a column of the applications; what differs from the complainant is marked by a sign and a word."""
    names = [name for name in next(iter(people.values()), {}) if name not in _OWN]
    return [(Cell(name), *_marked([_text(people.get(row, {}).get(name)) for row in rows])) for name in names]


def _marked(values: Sequence[str]) -> list[Cell]:
    return [Cell(values[0]), *(Cell(each if each == values[0] else f"{DIFFERS}{each}") for each in values[1:])]


def _text(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
