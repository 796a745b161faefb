"""Data page of a report: source, exclusions, model, checks, mitigations."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from schemas.questions import QUESTIONS, STATES
from schemas.tables.applications import (
    ANY,
    DECISION_DIRECTION,
    ENCODINGS,
    INTAKE_RULES,
    LEAKAGE,
    MODEL_METRICS,
    SOURCE_READ,
    VALIDATIONS,
)
from schemas.tables.verdicts import (
    AGREEMENT,
    BEARS_ON,
    PUBLISHED_COMPARED_MITIGATIONS,
    PUBLISHED_MERGED,
    PUBLISHED_MISSINGNESS,
    PUBLISHED_WATERFALL,
    published,
)
from schemas.terms import EVERYBODY, Refusal, Theory
from tasks.preprocessing import checks as preprocessing_checks
from tasks.preprocessing.algorithm import beyond_chance
from tasks.reporting.charts.values import MINUS, WITHHELD
from tasks.reporting.declared import names
from tasks.reporting.evidence_tables import table_found
from tasks.reporting.first_page.facts import WORST, Groups, Run
from tasks.reporting.first_page.page import GROUP, run_of
from tasks.reporting.material import Material, Rows, capital, listed
from tasks.reporting.question_pages.charts import agreement
from tasks.reporting.question_pages.data import in_words
from tasks.reporting.text import (
    AS_COUNTS,
    DASH,
    Cell,
    Link,
    Listing,
    Notice,
    Section,
    TableView,
    count,
    covers,
    number_cell,
    share_cell,
    significant,
    state_cell,
)

# --------------------------------------------------------------------------------------------------------------------
# Expectations that the tables of a run were held against: a summary, every failure, and the rest folded.


MOST_ROWS = 250
"""Expectations that held and are printed; the query gives all."""
_QUIET = ("strict_min", "strict_max")
Check = Mapping[str, Any]
_FAILED = {"critical": "failed", "warning": "failed (warning)", "info": "failed (info)"}


def checks(outcomes: Iterable[Check], run: str) -> Section:
    """The expectations of a run that failed; those that held are one line."""
    every = list(outcomes)
    failed = [outcome for outcome in every if not outcome["success"]]
    aside = sum(outcome["quarantined"] for outcome in failed)
    held = count(len(every) - len(failed))
    words = (
        *((f"{count(len(failed))} of {count(len(every))} checks failed.",) if failed else ()),
        *((f"For {count(aside)} of these the rows were set aside; they stand among the rows out.",) if aside else ()),
        f"{held} checks passed. All: {table_found(run, published(VALIDATIONS).name)}.",
    )
    tables = (list_of_checks("Checks that failed", failed),) if failed else ()
    return Section("Checks of every table", "checks", words, tables=tables)


def list_of_checks(title: str, outcomes: list[Check]) -> TableView:
    """A row for each check."""
    columns = {
        "Table": lambda outcome: Cell(f"{outcome['stage']}: {outcome['table']}"),
        "Result": lambda outcome: (
            Cell("set aside", "state", "quarantined")
            if outcome["quarantined"]
            else Cell("held", "state", "held")
            if outcome["success"]
            else Cell(_FAILED[outcome.get("severity") or "critical"], "state", "failed")
        ),
        "Expectation": lambda outcome: Cell(outcome["expectation"].removeprefix("expect_").replace("_", " ")),
        "Column": lambda outcome: Cell(_cut(outcome["column"] or "–")),
        "Expected": lambda outcome: Cell(_cut(expected(outcome["expected"]))),
        "Values looked at": lambda outcome: _count(outcome["elements"]),
        "Broken by": lambda outcome: _count(outcome["unexpected"]),
    }
    return TableView.of(title, outcomes, columns)


def _count(n: int | None) -> Cell:
    return Cell("withheld", "none") if n is None else number_cell(count(n))


def expected(text: str) -> str:
    """The arguments of an expectation as words, without the engine's own."""
    settings = {k: v for k, v in json.loads(text or "{}").items() if v is not None and k not in _QUIET}
    words = {
        k.replace("_", " "): ", ".join(map(str, v)) if isinstance(v, list) else str(v) for k, v in settings.items()
    }
    return "; ".join(f"{key}: {value}" for key, value in words.items())


def _cut(text: str, most: int = 120) -> str:
    return text if len(text) <= most else text[:most].rstrip(" ,;") + "\N{HORIZONTAL ELLIPSIS}"


# --------------------------------------------------------------------------------------------------------------------
# Rows in and out of an audit, and missing values: what was left out, by reason and group, and how that was decided.
#
# All numbers are published ones; a missing number is withheld.


MOST_GROUPS = 12
"""Groups that have a column; the workbook has all."""
TELLING = 0.02
"""Least distance of the AUC of missingness from 0.5 that counts as a leak, whatever the number of applications."""
EXCLUSIONS_WITHHELD = Cell("withheld", "none")
Line = Mapping[str, Any]
_REASONS = {Refusal.MISSING_COVARIATE: "missing", Refusal.EXEMPT_COVARIATE: "exempt", ANY: "either"}


def exclusions(material: Material) -> Section:
    """The waterfall of each protected attribute: rows in, refused by reason, and out."""
    rows = material.tables.get(PUBLISHED_WATERFALL.name, ())
    if not rows:
        return Section("Rows in and out", "rows", ("The number of rows by stage was not published.",))
    words = [
        "Every row of the source is either used or refused with a reason.",
        "Applications that lack a feature count in the lender's approval rates; all other results hold for the rows "
        "used only.",
    ]
    source = material.settings.source
    if source.kind == "hmda":
        fields = type(source.policy).model_fields
        policies = "; ".join(f"{field.description}: {getattr(source.policy, name)}" for name, field in fields.items())
        words.append(f"Where the file departs from its layout, by the policy of the spec: {policies}.")
    attributes = dict.fromkeys(row["protected_attribute"] for row in rows)
    tables = [view for name in attributes for view in _tables(material, name)]
    if together := material.tables.get(PUBLISHED_MERGED.name, ()):
        merged = []
        for row in together:
            base = "rows in the source" if row["base"] == "source" else "rows used"
            people = f"{base}, decisions of the {row['decision_maker']}" if row["decision_maker"] else base
            denied = DASH if row["denied"] is None else number_cell(count(row["denied"]))
            merged.append((Cell(row["groups"]), Cell(people), number_cell(count(row["n"])), denied))
        header = ("Groups", "Of", "Applications", "Denied")
        note = "Groups that are withheld one by one, counted together where that tells nothing of each."
        tables.append(TableView("Withheld groups as one", header, tuple(merged), note))
    return Section("Rows in and out", "rows", tuple(words), tables=tuple(tables))


def _tables(material: Material, attribute: str) -> Iterator[TableView]:
    """Numbers of rows, then approvals of those refused where any decision could be read."""
    rows = [
        {**row, "column": ", ".join(material.label(column) for column in (row["column"] or "").split(", "))}
        for row in material.tables[PUBLISHED_WATERFALL.name]
        if row["protected_attribute"] == attribute
    ]
    groups = list(dict.fromkeys(row["group"] for row in rows))
    first_groups = groups[: MOST_GROUPS + 1]
    note = (
        ""
        if first_groups == groups
        else f"The {MOST_GROUPS} largest of {len(groups) - 1} groups; measures.xlsx has all."
    )
    lines: dict[int, dict[str, Line]] = {}
    for row in rows:
        lines.setdefault(row["line"], {})[row["group"]] = row
    ordered = [lines[number] for number in sorted(lines)]
    yield _table(f"Rows by {attribute}", first_groups, ordered, _number, note)
    # Refused rows with a share of approvals, published or withheld.
    decided = [
        line
        for line in ordered
        if any(
            row["kind"] == "refused" and (row["approval"] is not None or (row["withheld"] and row["n"] is not None))
            for row in line.values()
        )
    ]
    if decided:
        yield _table(f"Approved of refused rows, by {attribute}", first_groups, decided, _approved, note)


def _table(title: str, groups: list[str], lines: list[dict[str, Line]], cell: Any, note: str) -> TableView:
    rows = []
    for line in lines:
        first = next(iter(line.values()))
        if first["kind"] == "refused":
            column = f" ({first['column']})" if first["column"] else ""
            head = f"Refused by {first['stage']}: {first['reason'].replace('_', ' ')}{column}"
        else:
            heads = {"source": "Rows in the source", "left": f"Rows out of {first['stage']}", "used": "Rows used"}
            head = heads[first["kind"]]
        rows.append((Cell(head), *(cell(line.get(group)) for group in groups)))
    return TableView(title, ("Rows", *groups), tuple(rows), note)


def _number(line: Line | None) -> Cell:
    return DASH if line is None else _count(line["n"])


def _approved(line: Line | None) -> Cell:
    if line is None or (line["approval"] is None and not line["withheld"]):
        return DASH
    return EXCLUSIONS_WITHHELD if line["approval"] is None else share_cell(line["approval"], line["n"])


def missing(material: Material) -> Section:
    """Whether missing values predict the decision, feature by feature."""
    rows = material.tables.get(PUBLISHED_MISSINGNESS.name, ())
    lacking = sorted(rows, key=lambda r: (r["reason"] == ANY, -(r["missing"] or 0), r["feature"]))
    columns = {
        "Feature": lambda row: Cell("Any feature" if row["reason"] == ANY else material.label(row["feature"])),
        "Why": lambda row: Cell(_REASONS[row["reason"]]),
        "Applications": lambda row: _count(row["missing"]),
        "Approved, of those who lack it": lambda row: _share(row, "approval_missing", row["missing"]),
        "Approved, of those who have it": lambda row: _share(row, "approval_present"),
    }
    note = "Of applications with a readable decision. An application may lack several. Exempt: need not be reported."
    visible = any(row["missing"] or row["withheld"] for row in lacking)
    tables = (TableView.of("Approval by what is missing", lacking, columns, note),) if visible else ()
    words = [_leak_words(material, lacking)]
    if any(row["missing"] for row in lacking):
        treatments = {
            "exclude": "Applications that lack a feature count in the lender's approval rates; all else holds for "
            "complete applications.",
            "impute": "Missing values were filled in: a sensitivity analysis, to be held against a run that refuses "
            "such applications.",
        }
        words.append(treatments[material.settings.missing])
    return Section("Missing values", "missing", tuple(words), tables=tables)


def _share(row: Line, name: str, n: int | None = None) -> Cell:
    if row[name] is None:
        return EXCLUSIONS_WITHHELD if row["withheld"] else DASH
    return share_cell(row[name], n)


def _leak_words(material: Material, lacking: list[Line]) -> str:
    """How well missingness alone predicts the decision."""
    overall_line = next((row for row in lacking if row["reason"] == ANY), None)
    if overall_line is None:
        return "What is missing was not published."
    if overall_line["missing"] is None:
        return "What missing values tell of the decision is withheld: too few applications lack any."
    if not overall_line["missing"]:
        return "No application lacks a feature."
    minimum = material.minimum
    if overall_line["missing"] < minimum or overall_line["auc"] is None:
        return f"Fewer than {minimum} applications lack a feature: whether missing values tell the decision is open."
    sentence = (
        f"Which values are missing ranks the decision with an AUC of {significant(overall_line['auc'])}; 0.5 is chance."
    )
    rows: Rows = material.tables.get(PUBLISHED_WATERFALL.name, ())
    used = next((row["n"] for row in rows if row["kind"] == "used" and row["group"] == EVERYBODY), None) or 0
    shares = ((overall_line["missing"], overall_line["approval_missing"]), (used, overall_line["approval_present"]))
    decisions_approved = sum(round(n * (share or 0.0)) for n, share in shares)
    approved, denied = decisions_approved, overall_line["missing"] + used - decisions_approved
    if abs(overall_line["auc"] - 0.5) < TELLING or not beyond_chance(overall_line["auc"], approved, denied):
        return f"{sentence} That is no more than chance gives; a leak is not ruled out."
    return f"{sentence} Missing values leak the decision: a model could read it off them."


# --------------------------------------------------------------------------------------------------------------------
# The audited model: how well it follows the lender's decisions, and how its columns were encoded.


TOO_GOOD = 0.98
"""AUC from which on a model of lending decisions is not believed."""
METRICS = {
    "auc": "AUC",
    "accuracy": "Same decision",
    "predicted_denial_rate": "Denied by the model",
    "true_positive_rate": "Approved, of those the lender approved",
    "false_positive_rate": "Approved, of those the lender denied",
}
_OF_ALL = ("accuracy", "predicted_denial_rate")
"""Shares of everybody in the group."""
MODEL_MOST_ROWS = 50
"""Rows of a table on the page."""
_CHANGE = {"up": "only up", "down": "only down", "free": "freely", "immutable": "not at all"}
ModelRow = Mapping[str, Any]


def model(material: Material) -> Section:
    """How well the model's decisions follow the lender's, group by group."""
    of_group: dict[tuple[str, str], dict[str, ModelRow]] = {}
    for row in material.named(MODEL_METRICS.name):
        of_group.setdefault((row["protected_attribute"], row["group"]), {})[row["metric"]] = row
    words = "What the pages say of the model holds for the lender only as far as the model follows the lender."
    if not of_group:
        nothing = ("No model was held against the lender's decisions.",)
        return Section("The model compared with the lender", "model", nothing)
    heads = {n: head for n, head in METRICS.items() if any(n in metrics for metrics in of_group.values())}
    rows = []
    for (attribute, group), metrics in list(of_group.items())[:MODEL_MOST_ROWS]:
        cells = [Cell(attribute), Cell(group), _count(next(iter(metrics.values()))["n"])]
        for name in heads:
            metric = metrics.get(name)
            if metric is None:
                cells.append(DASH)
            elif metric["value"] is None:
                cells.append(Cell("withheld or undefined", "none"))
            else:
                cells.append(_metric(name, metric))
        rows.append(tuple(cells))
    note = (
        f"The first {len(rows)} of {len(of_group)} groups; measures.xlsx has the measures of all."
        if len(rows) < len(of_group)
        else ""
    )
    header = ("Attribute", "Group", "n", *heads.values())
    table = TableView("Decisions of the model and of the lender", header, tuple(rows), note)
    return Section("The model compared with the lender", "model", (words,), tables=(table,))


def _metric(name: str, metric: ModelRow) -> Cell:
    """A figure of the model in a group; of few people the counts alone, and nothing that compares parts of them."""
    if name == "auc" and (metric["n"] is None or metric["n"] >= AS_COUNTS):
        return number_cell(significant(metric["value"]))
    if name in _OF_ALL or metric["n"] is None or metric["n"] >= AS_COUNTS:
        return share_cell(metric["value"], metric["n"])
    return Cell("too few people", "none")


def too_good(material: Material) -> Iterator[Notice]:
    """A warning where a model that was fitted here follows the decisions better than is to be believed."""
    if material.settings.model.kind == "rule":
        return
    largest: dict[str, ModelRow] = {}
    for row in material.named(MODEL_METRICS.name):
        first = largest.get(row["protected_attribute"])
        if row["metric"] == "auc" and row["n"] is not None and row["n"] >= material.minimum:
            largest[row["protected_attribute"]] = row if first is None or row["n"] > first["n"] else first
    high_rows = [row for row in largest.values() if row["value"] is not None and row["value"] >= TOO_GOOD]
    if high_rows:
        names = listed(f"{row['group']} ({row['protected_attribute']})" for row in high_rows)
        yield Notice(
            "The model knows too much",
            f"AUC of {TOO_GOOD:g} or more for the largest group: {names}. Lending decisions are hardly ever told so "
            "well from an application. Look for a column that is known only after the decision.",
        )


def encodings(material: Material) -> Section:
    """How source columns were scaled, and how an applicant may change them."""
    rows_of: dict[str, list[ModelRow]] = {}
    for row in material.named(ENCODINGS.name):
        rows_of.setdefault(row["feature"], []).append(row)
    words = "Columns are scaled to between 0 and 1. Continuous ones are cut off at both ends, then put into bins."
    labels = {name: f"{spec.label} ({name})" for name, spec in material.settings.columns.items() if spec.label}
    categories = {
        name: json.loads(rows[0]["categories"])
        if rows[0]["categories"]
        else [row["category"] for row in rows if row["category"]]
        for name, rows in rows_of.items()
    }
    columns: dict[str, Callable[[str], Cell]] = {
        "Feature": lambda name: Cell(labels.get(name, name)),
        "Type": lambda name: Cell(rows_of[name][0]["kind"]),
        "Encoded as 0": lambda name: _end(rows_of[name][0], "low"),
        "Encoded as 1": lambda name: _end(rows_of[name][0], "high"),
        "Bins": lambda name: DASH if rows_of[name][0]["bins"] is None else number_cell(count(rows_of[name][0]["bins"])),
        "Rows cut off": lambda name: _rows(rows_of[name][0], "clipped"),
        "Implausible rows": lambda name: _rows(rows_of[name][0], "implausible"),
        "Categories": lambda name: Cell(", ".join(map(str, categories[name])) or "–"),
        "May change": lambda name: Cell(_CHANGE[rows_of[name][0]["constraint"]]),
    }
    table = TableView.of("Columns and their encoding", rows_of, columns, folded=True)
    return Section("Columns", "columns", (words,), tables=(table,) if rows_of else ())


def _end(row: ModelRow, name: str) -> Cell:
    if row[name] is None:
        return Cell("withheld", "none") if row["kind"] == "continuous" else DASH
    return number_cell(significant(row[name]))


def _rows(row: ModelRow, name: str) -> Cell:
    return _count(row[name]) if row["kind"] == "continuous" else DASH


# --------------------------------------------------------------------------------------------------------------------
# The mitigations that the spec compares: what other models of the same rows could do, group by group.


FIGURES: Final = {
    "auc": "AUC",
    "f1": "F1",
    "balanced_accuracy": "Balanced accuracy",
    "positive_rate": "Approved",
    "eo_gap": "Larger gap in error rates",
    "sp_gap": "Gap in approvals",
}
MITIGATIONS_MOST_ROWS: Final = 60
"""Rows of a table on the page."""

WORDS: Final = (
    "Each is trained on the outcomes of a group and the reference group, on the same five folds: means over the folds, "
    "on held-out rows. None is the audited model, or in use.",
    "A model that approves nearly everybody, or nobody, has small gaps and a balanced accuracy near 0.5.",
)


def mitigations(material: Material) -> Section | None:
    """A table of the means; None where the spec compares nothing."""
    by_key: dict[tuple[str, str, str], dict[str, ModelRow]] = {}
    for row in material.named(PUBLISHED_COMPARED_MITIGATIONS.name):
        by_key.setdefault((row["protected_attribute"], row["group"], row["mitigation"]), {})[row["figure"]] = row
    if not by_key:
        return None
    rows, reasons = [], dict[str, list[str]]()
    for key, figures in list(by_key.items())[:MITIGATIONS_MOST_ROWS]:
        means = [figures[name]["value"] if name in figures else None for name in FIGURES]
        cells = (Cell("none", "none") if mean is None else number_cell(significant(mean)) for mean in means)
        rows.append((*map(Cell, key), *cells))
        for figure in figures.values():
            if figure["value"] is None:
                without = reasons.setdefault(figure["reason"] or "withheld", [])
                without += [] if key[2] in without else [key[2]]
    notes = [f"None for {', '.join(names)}: {reason}." for reason, names in reasons.items()]
    if len(rows) < len(by_key):
        notes.append(
            f"The first {len(rows)} of {len(by_key)} rows; the table {PUBLISHED_COMPARED_MITIGATIONS.name} has all."
        )
    header = ("Attribute", "Group", "Mitigation", *FIGURES.values())
    table = TableView("Mitigations on the same folds", header, tuple(rows), " ".join(notes))
    return Section("Mitigations compared", "mitigations", WORDS, tables=(table,))


# --------------------------------------------------------------------------------------------------------------------
# The limits that the spec itself sets: their group, the measured value, and the state; those outside first.


OWN_LIMITS_MOST_ROWS = 25
HEADER = ("Group", "Measure", "Whose decisions", "Value", "Interval", "Limit", "State")
SIDES = {"at_least": "at least", "at_most": "at most"}
REST = "The first {n} of {of} limits; report.json and the table of verdicts have all of them."


def own_limits(material: Material, run: Run) -> Section | None:
    """The page of the limits of the spec: a row a limit and group, in the unit of the measure; None without any."""
    rows = [row for row in run.rows if row.theory is Theory.OWN_LIMITS and row.role != "theory"]
    if not rows:
        return None
    groups, lines = Groups(run), []
    ordered = sorted(rows, key=lambda row: (row.withheld, WORST.index(row.state)))
    for row in ordered[:OWN_LIMITS_MOST_ROWS]:
        measure, _, parameters = row.measure.partition(" ")
        limit = "–" if row.limit is None else f"{SIDES.get(row.side or '', '')} {significant(row.limit)}".strip()
        value = WITHHELD if row.withheld else "not computed" if row.value is None else significant(row.value)
        ends = f"[{', '.join(map(significant, row.ends))}]" if row.ends and covers(measure) else ""
        state = (
            Cell(f"{STATES[row.state].words} ({WITHHELD})", "state", row.state)
            if row.withheld
            else state_cell(row.state)
        )
        line = (
            Cell(groups.label(row.key) if row.key in groups.order else row.group),
            Cell(f"{capital(names(measure)[0])} {parameters}".strip()),
            Cell(material.whose(row.decision_maker)),
            Cell(value, "number" if row.value is not None else "none"),
            Cell(ends or "–", "number" if ends else "none"),
            Cell(limit),
            state,
        )
        lines.append(line)
    rest = REST.format(n=OWN_LIMITS_MOST_ROWS, of=len(rows)) if len(rows) > OWN_LIMITS_MOST_ROWS else ""
    title = QUESTIONS[Theory.OWN_LIMITS].words
    return Section(title, "own-limits", tables=(TableView(title, HEADER, tuple(lines), whole=len(rows), rest=rest),))


# --------------------------------------------------------------------------------------------------------------------
# The data page: what the run is made of, which rows it left out, which checks it passed, and how to verify it.


def quality(material: Material) -> Section:
    """All parts of the page; warnings before them."""
    run, settings = run_of(material), material.settings
    said_by_methods = agreement(material.named(AGREEMENT.name), Groups(run), in_words)
    directions = tuple(
        _direction(material, row) for row in material.named(DECISION_DIRECTION.name) if not row["reversed"]
    )
    commands = f"evenhand audit spec.yaml\nevenhand verify {settings.run}"
    validations = material.named(VALIDATIONS.name)
    checked, notices = checks(validations, settings.run), tuple(warnings(material))
    is_wrong = bool(notices) or not all(row["success"] for row in validations)
    parts = (
        checked,
        exclusions(material),
        missing(material),
        *intake(material),
        Section("The decision column", "decision", directions or ("See the warning at the top.",)),
        model(material),
        *(part for part in (mitigations(material), said_by_methods) if part),
        encodings(material),
        _identity(material),
        Section(
            "Make it again, and verify it",
            "again",
            (
                "Save the spec above as spec.yaml. The same source, code and spec give the same bytes.",
                "The second command compares every file of the run with its recorded digest.",
            ),
            listings=(Listing("Commands", commands, folded=False),),
        ),
    )
    link = Link("Definitions of all words and measures", "method.html")
    return Section(
        "Can these data carry an answer?",
        "quality",
        () if is_wrong else ("Nothing wrong was found.",),
        notices=notices,
        parts=parts,
        links=(link,),
    )


_RULES: Final = {
    "encoding": "decoded from another encoding than UTF-8",
    "skip": "lines above the header left out",
    "foot": "records below the rows left out",
    "fold": "spellings joined",
    "number": "numbers written in another form",
    "currency": "currency taken off",
    "percent": "% taken off",
    "scale": "thousands, millions or exponents written out",
    "sign": "negative in parentheses, or with the sign behind",
    "unit": "unit taken off",
    "missing_word": "words that mean missing",
    "code": "codes that mean missing",
    "date": "dates written as year-month-day",
    "band": "ordered bands",
    "repeat": "repeated rows left out",
    "join": "rows joined with the second file",
}


def intake(material: Material) -> Iterator[Section]:
    """What the recipe of the table changed, in counts; nothing of a run without a recipe."""
    rows = material.named(INTAKE_RULES.name)
    if not rows:
        return
    columns = {
        "Column": lambda row: Cell(row["column"] or "(rows)"),
        "What was read": lambda row: Cell(_RULES[row["rule"]]),
        "Cells": lambda row: _count(row["cells"]) if row["column"] else DASH,
        "Rows": lambda row: _count(row["rows"]),
    }
    words = "Cells were read by the recipe of the spec (source.intake). Rows that could not be read are refused, below."
    yield Section("How cells were read", "intake", (words,), tables=(TableView.of("Rules of intake", rows, columns),))


def warnings(material: Material) -> Iterator[Notice]:
    """What has to be known before any figure is read."""
    year, lacking = material.settings.year, material.settings.source.lacking
    columns = tuple(name for name in lacking if GROUP not in name)
    groups = tuple(name for name in lacking if GROUP in name)
    if columns:
        text = f"The data of {year} do not have {listed(columns)}, which the audit asks for. "
        yield Notice("The year lacks columns", text + "No part of this audit uses them; years that have them say more.")
    if groups:
        yield Notice("The year lacks groups", f"In the data of {year} nobody belongs to {listed(groups)}.")
    for row in material.named(DECISION_DIRECTION.name):
        if row["reversed"]:
            yield Notice("Approved and denied may be exchanged", _direction(material, row))
    texts = [
        preprocessing_checks.leakage_message(row, material.label(row["feature"]))
        for row in material.named(LEAKAGE.name)
    ]
    if texts:
        ask = "Make sure that applicants, and not the decision, gave these values."
        yield Notice("Columns that tell the decision", " ".join((*texts, ask)))
    rows = material.named(VALIDATIONS.name)
    broken = [r for r in rows if not (r["success"] or r["quarantined"]) and r.get("severity") != "info"]
    if broken:
        tables = ", ".join(dict.fromkeys(row["table"] for row in broken))
        yield Notice("Checks of tables failed", f"{count(len(broken))} expectations failed, of: {tables}.")
    yield from too_good(material)


def _direction(material: Material, row: Any) -> str:
    """The check of the decision column in words; without its numbers where they are withheld."""
    signed = (column.rpartition(" ") for column in row["columns"].split(", ") if column)
    row = {**row, "columns": ", ".join(f"{material.label(name)} {MINUS if s == '-' else s}" for name, _, s in signed)}
    if row["auc"] is None and row["decided_by"] == "columns":
        return f"Columns with a direction ({row['columns']}) rank the decision; how well is withheld."
    if row["reversed"] and row["auc"] is not None and row["high"] is not None:
        return " ".join(preprocessing_checks.warnings(row, material.settings.decision)).removeprefix(
            "columns_swapped: "
        )
    return preprocessing_checks.said(row)


def _identity(material: Material) -> Section:
    """What identifies the run: data, code, settings and seed."""
    settings = material.settings
    source_row = next(iter(material.named(SOURCE_READ.name)), None)
    rows = None if source_row is None else source_row["rows"]
    frame = settings.verdicts.frame
    # The claim that each theory can be evidence for by the legal frame, as far as we read it.
    claims = "; ".join(f"{QUESTIONS[theory].short}: {claim}" for theory, claim in BEARS_ON.get(frame, {}).items())
    strip = {
        "Run": settings.run,
        "Audit": f"{settings.name}, {settings.year}",
        "Source": settings.source.words if source_row is None else source_row["source"],
        "Rows of the source": "withheld" if rows is None else count(rows),
        "Source, sha256": settings.source_sha256,
        "Code, digest": settings.code,
        "Version": f"evenhand {settings.version}",
        "Profile": settings.profile,
        "Methods": ", ".join(settings.methods.running()),
        "Seed": str(settings.seed),
        "Resamples": f"{count(settings.bootstrap.draws)}, level {settings.bootstrap.level:g}",
        "Missing values": settings.missing,
        "Disclosure profile": settings.disclosure.profile,
        "Legal frame named": f"{frame} ({claims})" if claims else frame,
    }
    table = TableView("What identifies the run", ("What", "Value"), tuple((Cell(k), Cell(v)) for k, v in strip.items()))
    spec = Listing("The spec as it was run", settings.effective_spec)
    return Section("The run", "run", tables=(table,), listings=(spec,))
