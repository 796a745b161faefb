"""What a reviewer checks last: data quality, encodings, and the full page of expectations."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasks.reporting.chapters.waterfall import count_cell
from tasks.reporting.material import Material
from tasks.reporting.numbers import count, number_cell, significant
from tasks.reporting.section import Cell, Row, Section, TableView

_QUALITY = ("Stage", "Table", "Expectations", "Held", "Failed", "Rows set aside for it")
_EXPECTATIONS = ("Table", "Result", "Expectation", "Column", "Expected", "Values looked at", "Broken by")


def quality(material: Material, validations: Sequence[Mapping[str, Any]]) -> Section:
    """Expectations by stage and table, and how they ended."""
    tables = dict.fromkeys((v["stage"], v["table"]) for v in validations)
    rows = [_summary(material, validations, stage, table) for stage, table in tables]
    failed = sum(not v["success"] for v in validations)
    words = (
        f"{count(len(validations))} expectations were held against the tables of this run; {count(failed)} failed. "
        "Where a failed expectation could be blamed on rows, these rows were set aside and stand in the waterfall.",
        *_departures(material),
    )
    view = TableView("Expectations by stage and table", _QUALITY, tuple(rows))
    return Section("Data quality", "quality", words, tables=(view,))


def _departures(material: Material) -> Iterator[str]:
    """What the audit did where a file of HMDA departs from its layout; nothing of other sources."""
    source = material.settings.source
    if source.kind == "hmda":
        fields = type(source.policy).model_fields
        said = (f"{field.description}: {getattr(source.policy, name)}" for name, field in fields.items())
        yield (
            f"What was done where the file departs from its layout, by the policy of the spec: {'; '.join(said)}. Rows "
            "that were refused for it stand in the waterfall by reason. `evenhand data describe FILE` lists every "
            "departure of a delivered file; beside a vintage they are in schema_report.json."
        )


def _summary(material: Material, validations: Sequence[Mapping[str, Any]], stage: str, table: str) -> Row:
    mine = [v for v in validations if (v["stage"], v["table"]) == (stage, table)]
    held = sum(v["success"] for v in mine)
    aside = sum(v["unexpected"] for v in mine if v["quarantined"])
    numbers = (number_cell(count(n)) for n in (len(mine), held, len(mine) - held))
    return (Cell(stage), Cell(table), *numbers, count_cell(aside, material.policy))


def expectations(material: Material, validations: Sequence[Mapping[str, Any]]) -> tuple[TableView, ...]:
    """Every expectation, one table per stage."""
    stages = dict.fromkeys(v["stage"] for v in validations)
    return tuple(
        TableView(
            stage,
            _EXPECTATIONS,
            tuple(_expectation(material, v) for v in validations if v["stage"] == stage),
        )
        for stage in stages
    )


def _expectation(material: Material, v: Mapping[str, Any]) -> Row:
    ended = (
        ("set aside", "quarantined") if v["quarantined"] else ("held", "held") if v["success"] else ("failed", "failed")
    )
    return (
        Cell(v["table"]),
        Cell(ended[0], "state", ended[1]),
        Cell(v["expectation"].removeprefix("expect_").replace("_", " ")),
        Cell(v["column"] or "–"),
        Cell(_expected(v["expected"])),
        count_cell(v["elements"], material.policy),
        count_cell(v["unexpected"], material.policy),
    )


def _expected(text: str) -> str:
    """The arguments of an expectation as words, without the engine's own."""
    quiet = ("strict_min", "strict_max")
    said = {k: v for k, v in json.loads(text or "{}").items() if v is not None and k not in quiet}
    words = {k.replace("_", " "): ", ".join(map(str, v)) if isinstance(v, list) else str(v) for k, v in said.items()}
    return "; ".join(f"{key}: {value}" for key, value in words.items())


def encodings(material: Material, rows: Sequence[Mapping[str, Any]]) -> Section:
    """How source columns were scaled, and how an applicant may change them."""
    features: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        features.setdefault(row["feature"], []).append(row)
    words = (
        "Features are scaled to between 0 and 1. Continuous columns are clipped at their 1st and 99th percentile "
        "before they are cut into bins, so that a few extreme entries do not push all others into one bin.",
    )
    header = (
        "Feature",
        "Type",
        "Encoded as 0",
        "Encoded as 1",
        "Bins",
        "Rows clipped",
        "Rows implausible",
        "Categories",
        "May change",
        "Moves listed",
    )
    view = TableView("Encodings", header, tuple(_encoding(material, name, found) for name, found in features.items()))
    return Section("Encodings and constraints", "encodings", words, tables=(view,))


def _encoding(material: Material, name: str, rows: Sequence[Mapping[str, Any]]) -> Row:
    row = rows[0]
    spec = material.settings.columns.get(name)
    categories = json.loads(row["categories"]) if row["categories"] else [r["category"] for r in rows if r["category"]]
    # without clipping, the ends are the values of two applicants
    strict = material.settings.disclosure.profile != "public"
    personal = strict and row["kind"] == "continuous" and spec is not None and not spec.clip
    moves = json.loads(row["transitions"]) if row["transitions"] else {}
    return (
        Cell(f"{spec.label} ({name})" if spec and spec.label else name),
        Cell(row["kind"]),
        *(_end(row[end], personal) for end in ("low", "high")),
        Cell("–", "none") if row["bins"] is None else number_cell(count(row["bins"])),
        *(
            count_cell(row[name], material.policy) if row["kind"] == "continuous" else Cell("–", "none")
            for name in ("clipped", "implausible")
        ),
        Cell(", ".join(map(str, categories)) or "–"),
        Cell({"up": "only up", "down": "only down", "free": "freely", "immutable": "not at all"}[row["constraint"]]),
        Cell(_moves(moves) if moves else "–"),
    )


def _end(value: float | None, personal: bool) -> Cell:
    if value is None:
        return Cell("–", "none")
    return Cell("withheld", "none") if personal else number_cell(significant(value))


def _moves(moves: Any) -> str:
    if isinstance(moves, dict):
        return "; ".join(f"{a} → {', '.join(b) or 'none'}" for a, b in moves.items())
    return "; ".join(" → ".join(map(str, pair)) for pair in moves)
