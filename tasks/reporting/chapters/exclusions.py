"""Rows in and out of an audit, and missing values: what was left out, by reason and group, and how that was decided.

Every number is one that was published; a number that is not there is withheld.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from schemas.audit.source import Source
from schemas.tables.applications import ANY
from schemas.tables.publication import PUBLISHED_MERGED, PUBLISHED_MISSINGNESS, PUBLISHED_WATERFALL
from schemas.terms import EVERYBODY, Refusal
from tasks.preprocessing.algorithm.missingness_tests import beyond_chance
from tasks.reporting.material import Material, Rows
from tasks.reporting.numbers import DASH, count, number_cell, percent, significant
from tasks.reporting.section import Cell, Section, TableView

MOST_GROUPS = 12
"""Groups that have a column; the workbook has all."""
TELLING = 0.02
"""An AUC of missingness nearer to 0.5 than this tells nothing of note, however many applications there are."""
WITHHELD = Cell("withheld", "none")
Line = Mapping[str, Any]
_REASONS = {Refusal.MISSING_COVARIATE: "missing", Refusal.EXEMPT_COVARIATE: "exempt", ANY: "either"}


_MERGED = {
    "Groups": lambda row: Cell(row["groups"]),
    "Of": lambda row: Cell(_whose(row)),
    "Applications": lambda row: number_cell(count(row["n"])),
    "Denied": lambda row: DASH if row["denied"] is None else number_cell(count(row["denied"])),
}
_MERGED_NOTE = "Groups that are withheld one by one, counted together where that tells nothing of each."


def _whose(row: Line) -> str:
    """Whom a row of groups as one is about, in words."""
    rows = "rows in the source" if row["base"] == "source" else "rows used"
    return f"{rows}, decisions of the {row['decision_maker']}" if row["decision_maker"] else rows


def exclusions(material: Material) -> Section:
    """The waterfall of each protected attribute: rows in, refused by reason, and out."""
    rows = material.tables.get(PUBLISHED_WATERFALL.name, ())
    words = (
        "Every row of the source is either used or refused with a reason.",
        "Applications that lack a feature count in the lender's approval rates; all other results hold for the rows "
        "used only.",
        *_departures(material.settings.source),
    )
    if not rows:
        return Section("Rows in and out", "rows", ("The number of rows by stage was not published.",))
    attributes = dict.fromkeys(row["protected_attribute"] for row in rows)
    tables = [view for name in attributes for view in _tables(material, name)]
    if together := material.tables.get(PUBLISHED_MERGED.name, ()):
        tables.append(TableView.of("Withheld groups as one", list(together), _MERGED, _MERGED_NOTE))
    return Section("Rows in and out", "rows", words, tables=tuple(tables))


def _departures(source: Source) -> Iterator[str]:
    """What the run did where a file of HMDA departs from its layout; nothing of other sources."""
    if source.kind == "hmda":
        fields = type(source.policy).model_fields
        said = "; ".join(f"{field.description}: {getattr(source.policy, name)}" for name, field in fields.items())
        yield f"Where the file departs from its layout, by the policy of the spec: {said}."


def _tables(material: Material, attribute: str) -> Iterator[TableView]:
    """Numbers of rows, then approvals of those refused where any decision could be read."""
    rows = [
        {**row, "column": ", ".join(material.label(each) for each in (row["column"] or "").split(", "))}
        for row in material.tables[PUBLISHED_WATERFALL.name]
        if row["protected_attribute"] == attribute
    ]
    groups = list(dict.fromkeys(row["group"] for row in rows))
    shown = groups[: MOST_GROUPS + 1]
    note = "" if shown == groups else f"The {MOST_GROUPS} largest of {len(groups) - 1} groups; measures.xlsx has all."
    lines: dict[int, dict[str, Line]] = {}
    for row in rows:
        lines.setdefault(row["line"], {})[row["group"]] = row
    ordered = [lines[number] for number in sorted(lines)]
    yield _table(f"Rows by {attribute}", shown, ordered, _number, note)
    decided = [each for each in ordered if any(row["kind"] == "refused" and _decided(row) for row in each.values())]
    if decided:
        yield _table(f"Approved of refused rows, by {attribute}", shown, decided, _approved, note)


def _table(title: str, groups: list[str], lines: list[dict[str, Line]], cell: Any, note: str) -> TableView:
    rows = tuple((Cell(_words(next(iter(of.values())))), *(cell(of.get(group)) for group in groups)) for of in lines)
    return TableView(title, ("Rows", *groups), rows, note)


def _words(line: Line) -> str:
    if line["kind"] == "refused":
        column = f" ({line['column']})" if line["column"] else ""
        return f"Refused by {line['stage']}: {line['reason'].replace('_', ' ')}{column}"
    return {"source": "Rows in the source", "left": f"Rows out of {line['stage']}", "used": "Rows used"}[line["kind"]]


def _number(line: Line | None) -> Cell:
    if line is None:
        return DASH
    return WITHHELD if line["n"] is None else number_cell(count(line["n"]))


def _decided(line: Line) -> bool:
    """Whether something is known, or withheld, of decisions on refused rows."""
    return line["approval"] is not None or (line["withheld"] and line["n"] is not None)


def _approved(line: Line | None) -> Cell:
    if line is None or (line["approval"] is None and not line["withheld"]):
        return DASH
    return WITHHELD if line["approval"] is None else number_cell(percent(line["approval"]))


def missing(material: Material) -> Section:
    """Whether missing values tell the decision, feature by feature."""
    lacks = sorted(_lacks(material), key=lambda r: (r["reason"] == ANY, -(r["missing"] or 0), r["feature"]))
    columns = {
        "Feature": lambda row: Cell(_feature(material, row)),
        "Why": lambda row: Cell(_REASONS[row["reason"]]),
        "Applications": lambda row: _number({"n": row["missing"]}),
        "Approved, of those who lack it": lambda row: _share(row, "approval_missing"),
        "Approved, of those who have it": lambda row: _share(row, "approval_present"),
    }
    note = "Of applications with a readable decision. An application may lack several. Exempt: need not be reported."
    found = lacks if any(row["missing"] or row["withheld"] for row in lacks) else []
    tables = (TableView.of("Approval by what is missing", found, columns, note),) if found else ()
    words = (_said(material, lacks), *_dealt_with(material, lacks))
    return Section("Missing values", "missing", words, tables=tables)


def _lacks(material: Material) -> list[Line]:
    return list(material.tables.get(PUBLISHED_MISSINGNESS.name, ()))


def _feature(material: Material, row: Line) -> str:
    return "Any feature" if row["reason"] == ANY else material.label(row["feature"])


def _share(row: Line, name: str) -> Cell:
    if row[name] is None:
        return WITHHELD if row["withheld"] else DASH
    return number_cell(percent(row[name]))


def _said(material: Material, lacks: list[Line]) -> str:
    """How much of the decision can be told from missingness alone."""
    whole = next((row for row in lacks if row["reason"] == ANY), None)
    if whole is None:
        return "What is missing was not published."
    if whole["missing"] is None:
        return "What missing values tell of the decision is withheld: too few applications lack any."
    if not whole["missing"]:
        return "No application lacks a feature."
    minimum = material.minimum
    if whole["missing"] < minimum or whole["auc"] is None:
        return f"Fewer than {minimum} applications lack a feature: whether missing values tell the decision is open."
    said = f"Which values are missing ranks the decision with an AUC of {significant(whole['auc'])}; 0.5 is chance."
    approved, denied = _decisions(material, whole)
    chance = abs(whole["auc"] - 0.5) < TELLING or not beyond_chance(whole["auc"], approved, denied)
    if chance:
        return f"{said} That is no more than chance gives; a leak is not ruled out."
    return f"{said} Missing values leak the decision: a model could read it off them."


def _decisions(material: Material, whole: Line) -> tuple[int, int]:
    """About how many applications were approved and denied, from published shares."""
    rows: Rows = material.tables.get(PUBLISHED_WATERFALL.name, ())
    used = next((row["n"] for row in rows if row["kind"] == "used" and row["group"] == EVERYBODY), None) or 0
    shares = ((whole["missing"], whole["approval_missing"]), (used, whole["approval_present"]))
    approved = sum(round(n * (share or 0.0)) for n, share in shares)
    return approved, whole["missing"] + used - approved


def _dealt_with(material: Material, lacks: list[Line]) -> Iterator[str]:
    """What the run did with missing values, and what that cannot mend."""
    if any(row["missing"] for row in lacks):
        yield {
            "exclude": "Applications that lack a feature count in the lender's approval rates; all else holds for "
            "complete applications.",
            "impute": "Missing values were filled in: a sensitivity analysis, to be held against a run that refuses "
            "such applications.",
        }[material.settings.missing]
