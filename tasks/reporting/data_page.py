"""Data page of a report: source, exclusions, model, checks, mitigations."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from schemas.questions import QUESTIONS, STATES
from schemas.sentences import filled, sentences
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
    PUBLISHED_AGREEMENT_PAIRS,
    PUBLISHED_COMPARED_MITIGATIONS,
    PUBLISHED_COMPARED_MODELS,
    PUBLISHED_MERGED,
    PUBLISHED_MISSINGNESS,
    PUBLISHED_WATERFALL,
    published,
)
from schemas.terms import EVERYBODY, Refusal, Theory
from tasks.metrics.algorithm.agreement import EXPLAINS, TWINS, TWINS_AS_INPUT, WORLDS, not_asked, pattern
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

_said = partial(filled, "data_page")

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
        *((_said("checks.failed", n=count(len(failed)), of=count(len(every))),) if failed else ()),
        *((_said("checks.set_aside", n=count(aside)),) if aside else ()),
        _said("checks.passed", n=held, where=table_found(run, published(VALIDATIONS).name)),
    )
    tables = (list_of_checks(_said("checks.table"), failed),) if failed else ()
    return Section(_said("checks.title"), "checks", words, tables=tables)


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
        return Section(_said("rows.title"), "rows", (_said("rows.not_published"),))
    words = [_said("rows.every_row"), _said("rows.lacking")]
    source = material.settings.source
    if source.kind == "hmda":
        fields = type(source.policy).model_fields
        policies = "; ".join(f"{field.description}: {getattr(source.policy, name)}" for name, field in fields.items())
        words.append(_said("rows.policy", policies=policies))
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
        tables.append(TableView(_said("rows.merged"), header, tuple(merged), _said("rows.merged_note")))
    return Section(_said("rows.title"), "rows", tuple(words), tables=tuple(tables))


def _tables(material: Material, attribute: str) -> Iterator[TableView]:
    """Numbers of rows, then approvals of those refused where any decision could be read."""
    rows = [
        {**row, "column": ", ".join(material.label(column) for column in (row["column"] or "").split(", "))}
        for row in material.tables[PUBLISHED_WATERFALL.name]
        if row["protected_attribute"] == attribute
    ]
    groups = list(dict.fromkeys(row["group"] for row in rows))
    first_groups = groups[: MOST_GROUPS + 1]
    note = "" if first_groups == groups else _said("rows.largest", n=MOST_GROUPS, of=len(groups) - 1)
    lines: dict[int, dict[str, Line]] = {}
    for row in rows:
        lines.setdefault(row["line"], {})[row["group"]] = row
    ordered = [lines[number] for number in sorted(lines)]
    yield _table(_said("rows.table", attribute=attribute), first_groups, ordered, _number, note)
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
        yield _table(_said("rows.approved", attribute=attribute), first_groups, decided, _approved, note)


def _table(title: str, groups: list[str], lines: list[dict[str, Line]], cell: Any, note: str) -> TableView:
    rows = []
    for line in lines:
        first = next(iter(line.values()))
        if first["kind"] == "refused":
            column = f" ({first['column']})" if first["column"] else ""
            head = _said("rows.refused", stage=first["stage"], reason=first["reason"].replace("_", " "), column=column)
        else:
            head = _said(f"rows.{first['kind']}", stage=first["stage"])
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
    title, note = _said("missing.table"), _said("missing.note")
    visible = any(row["missing"] or row["withheld"] for row in lacking)
    tables = (TableView.of(title, lacking, columns, note),) if visible else ()
    words = [_leak_words(material, lacking)]
    if any(row["missing"] for row in lacking):
        words.append(_said(f"missing.{material.settings.missing}"))
    return Section(_said("missing.title"), "missing", tuple(words), tables=tables)


def _share(row: Line, name: str, n: int | None = None) -> Cell:
    if row[name] is None:
        return EXCLUSIONS_WITHHELD if row["withheld"] else DASH
    return share_cell(row[name], n)


def _leak_words(material: Material, lacking: list[Line]) -> str:
    """How well missingness alone predicts the decision."""
    overall_line = next((row for row in lacking if row["reason"] == ANY), None)
    if overall_line is None:
        return _said("missing.not_published")
    if overall_line["missing"] is None:
        return _said("missing.withheld")
    if not overall_line["missing"]:
        return _said("missing.none")
    minimum = material.minimum
    if overall_line["missing"] < minimum or overall_line["auc"] is None:
        return _said("missing.few", n=minimum)
    sentence = _said("missing.auc", auc=significant(overall_line["auc"]))
    rows: Rows = material.tables.get(PUBLISHED_WATERFALL.name, ())
    used = next((row["n"] for row in rows if row["kind"] == "used" and row["group"] == EVERYBODY), None) or 0
    shares = ((overall_line["missing"], overall_line["approval_missing"]), (used, overall_line["approval_present"]))
    decisions_approved = sum(round(n * (share or 0.0)) for n, share in shares)
    approved, denied = decisions_approved, overall_line["missing"] + used - decisions_approved
    if abs(overall_line["auc"] - 0.5) < TELLING or not beyond_chance(overall_line["auc"], approved, denied):
        return _said("missing.by_chance", auc=sentence)
    return _said("missing.leak", auc=sentence)


# --------------------------------------------------------------------------------------------------------------------
# The audited model: how well it follows the lender's decisions, and how its columns were encoded.


TOO_GOOD = 0.98
"""AUC from which on a model of lending decisions is not believed."""
METRICS: Final[Mapping[str, str]] = sentences("data_page")["model"]["metrics"]
"""Metric of the model -> its header."""
_OF_ALL = ("accuracy", "predicted_denial_rate")
"""Shares of everybody in the group."""
MODEL_MOST_ROWS = 50
"""Rows of a table on the page."""
ModelRow = Mapping[str, Any]


def model(material: Material) -> Section:
    """How well the model's decisions follow the lender's, group by group."""
    of_group: dict[tuple[str, str], dict[str, ModelRow]] = {}
    for row in material.named(MODEL_METRICS.name):
        of_group.setdefault((row["protected_attribute"], row["group"]), {})[row["metric"]] = row
    if not of_group:
        return Section(_said("model.title"), "model", (_said("model.nothing"),))
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
    note = _said("model.first", n=len(rows), of=len(of_group)) if len(rows) < len(of_group) else ""
    header = ("Attribute", "Group", "n", *heads.values())
    table = TableView(_said("model.table"), header, tuple(rows), note)
    return Section(_said("model.title"), "model", (_said("model.words"),), tables=(table,))


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
        yield Notice(_said("model.too_good_title"), _said("model.too_good", auc=f"{TOO_GOOD:g}", groups=names))


def encodings(material: Material) -> Section:
    """How source columns were scaled, and how an applicant may change them."""
    rows_of: dict[str, list[ModelRow]] = {}
    for row in material.named(ENCODINGS.name):
        rows_of.setdefault(row["feature"], []).append(row)
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
        "May change": lambda name: Cell(_said(f"columns.change.{rows_of[name][0]['constraint']}")),
    }
    table = TableView.of(_said("columns.table"), rows_of, columns, folded=True)
    return Section(_said("columns.title"), "columns", (_said("columns.words"),), tables=(table,) if rows_of else ())


def _end(row: ModelRow, name: str) -> Cell:
    if row[name] is None:
        return Cell("withheld", "none") if row["kind"] == "continuous" else DASH
    return number_cell(significant(row[name]))


def _rows(row: ModelRow, name: str) -> Cell:
    return _count(row[name]) if row["kind"] == "continuous" else DASH


# --------------------------------------------------------------------------------------------------------------------
# The mitigations that the spec compares: what other models of the same rows could do, group by group.


FIGURES: Final[Mapping[str, str]] = sentences("data_page")["mitigations"]["figures"]
"""Figure of a mitigation -> its header."""
MITIGATIONS_MOST_ROWS: Final = 60
"""Rows of a table on the page."""


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
    notes = [_said("mitigations.none", names=", ".join(names), reason=reason) for reason, names in reasons.items()]
    if len(rows) < len(by_key):
        counts = {"of": len(by_key), "table": PUBLISHED_COMPARED_MITIGATIONS.name}
        notes.append(_said("mitigations.first", n=len(rows), **counts))
    header = ("Attribute", "Group", "Mitigation", *FIGURES.values())
    words = tuple(sentences("data_page")["mitigations"]["words"])
    table = TableView(_said("mitigations.table"), header, tuple(rows), " ".join(notes))
    return Section(_said("mitigations.title"), "mitigations", words, tables=(table, *paired_differences(material)))


def paired_differences(material: Material) -> Iterator[TableView]:
    """Each mitigation against the net without any: differences with paired intervals; nothing without such rows."""
    by_key: dict[tuple[str, str, str], dict[str, ModelRow]] = {}
    for row in material.named(PUBLISHED_COMPARED_MODELS.name):
        by_key.setdefault((row["protected_attribute"], row["group"], row["mitigation"]), {})[row["quantity"]] = row
    if not by_key:
        return
    words = sentences("data_page")["mitigations"]
    header = (
        "Attribute",
        "Group",
        "Mitigation",
        *words["differences"].values(),
        words["frontier"],
        words["performance"],
    )
    rows = []
    for key, of_model in list(by_key.items())[:MITIGATIONS_MOST_ROWS]:
        any_row = next(iter(of_model.values()))
        cells = [_difference(of_model.get(name)) for name in words["differences"]]
        states = (any_row["frontier"], any_row["performance"])
        rows.append((*map(Cell, key), *cells, *(Cell(words["states"][state]) for state in states)))
    notes = [words["paired_note"]]
    any_row = next(row for of_model in by_key.values() for row in of_model.values())
    by = {"accuracy": "accuracy", "auc": "AUC"}[any_row["comparable_by"]]
    notes.append(_said("mitigations.margin", by=by, margin=f"{any_row['margin']:g}"))
    drawing = {key[2]: row["drawn"] for key, of_model in by_key.items() for row in of_model.values() if row["drawn"]}
    if drawing:
        shares = listed([f"{100 * share:.0f} %" for share in drawing.values()])
        notes.append(_said("mitigations.drawn", names=listed([*drawing]), share=shares))
    yield TableView(words["paired"], header, tuple(rows), " ".join(notes))


def _difference(row: ModelRow | None) -> Cell:
    if row is None or row["difference"] is None:
        return Cell("none", "none")
    value, low, high = (f"{row[name]:+.3f}".replace("-", MINUS) for name in ("difference", "low", "high"))
    return number_cell(f"{value} [{low}, {high}]")


# --------------------------------------------------------------------------------------------------------------------
# The limits that the spec itself sets: their group, the measured value, and the state; those outside first.


OWN_LIMITS_MOST_ROWS = 25
HEADER = ("Group", "Measure", "Whose decisions", "Value", "Interval", "Limit", "State")
SIDES = {"at_least": "at least", "at_most": "at most"}


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
    rest = _said("own_limits.rest", n=OWN_LIMITS_MOST_ROWS, of=len(rows)) if len(rows) > OWN_LIMITS_MOST_ROWS else ""
    title = QUESTIONS[Theory.OWN_LIMITS].words
    return Section(title, "own-limits", tables=(TableView(title, HEADER, tuple(lines), whole=len(rows), rest=rest),))


# --------------------------------------------------------------------------------------------------------------------
# The data page: what the run is made of, which rows it left out, which checks it passed, and how to verify it.


def quality(material: Material) -> Section:
    """All parts of the page; warnings before them."""
    run, settings = run_of(material), material.settings
    said_by_methods = agreement(material.named(AGREEMENT.name), Groups(run), in_words)
    if said_by_methods is not None:
        said_by_methods = replace(said_by_methods, tables=(*signs_by_group(material), *flags_by_pair(material)))
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
        Section(_said("decision"), "decision", directions or (_said("decision_warned"),)),
        model(material),
        *(part for part in (mitigations(material), said_by_methods) if part),
        encodings(material),
        _identity(material),
        Section(
            _said("again.title"),
            "again",
            (_said("again.save"), _said("again.verify")),
            listings=(Listing("Commands", commands, folded=False),),
        ),
    )
    link = Link(_said("definitions"), "method.html")
    return Section(
        _said("title"),
        "quality",
        () if is_wrong else (_said("nothing_wrong"),),
        notices=notices,
        parts=parts,
        links=(link,),
    )


def signs_by_group(material: Material) -> Iterator[TableView]:
    """The pattern of every group, and how often its measures spoke where the truth is known."""
    rows, settings = material.named(AGREEMENT.name), material.settings
    signs: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        signs.setdefault((row["protected_attribute"], row["group"]), {}).setdefault(row["measure"], row["sign"])
    unasked = not_asked(settings.methods.running())
    patterns = [(GROUP.join(key), pattern(unasked | of_group)) for key, of_group in signs.items()]
    columns = {
        "Group": lambda row: Cell(row[0]),
        "Signs": lambda row: Cell(row[1].text),
        "Measures that could speak": lambda row: _count(row[1].able),
    }
    yield TableView.of(_said("agreement.signs"), patterns[:MOST_SIGNS], columns, note=_said("agreement.signs_note"))
    of_attribute = {name for p in settings.protected for name in p.columns}
    sees = any(name in settings.columns for name in of_attribute)
    twins = TWINS_AS_INPUT if sees else TWINS
    simulated = [name for name in twins if any(row["measure"] == name for row in rows)]
    if simulated:
        worlds = {
            capital(world): partial(lambda at, name: Cell(twins[name][at].words()), at)
            for at, world in enumerate(WORLDS)
        }
        note = _said("agreement.twins_note", input=_said("agreement.sees" if sees else "agreement.sees_not"))
        yield TableView.of(
            _said("agreement.twins"), simulated, {"Measure": lambda name: Cell(in_words(name)), **worlds}, note=note
        )


def flags_by_pair(material: Material) -> Iterator[TableView]:
    """Flags of two methods, a row a pair and group; nothing of a run without such pairs."""
    rows = material.tables.get(PUBLISHED_AGREEMENT_PAIRS.name, ())
    if not rows:
        return

    def chance(row: Mapping[str, Any], name: str, prefix: str = "") -> Cell:
        if row[name] is None:
            return Cell(WITHHELD, "none") if row["withheld"] else DASH
        value, *ends = (row.get(column) for column in (name, f"{prefix or name}_low", f"{prefix or name}_high"))
        words = f"{value:.2f}" + ("" if None in ends else f" [{ends[0]:.2f}, {ends[1]:.2f}]")
        return number_cell(words.replace("-", MINUS))

    def counts(row: Mapping[str, Any]) -> Cell:
        if row["withheld"]:
            return Cell(WITHHELD, "none")
        return number_cell(", ".join(count(row[name]) for name in ("both", "first_alone", "second_alone", "neither")))

    columns: Mapping[str, Callable[[Mapping[str, Any]], Cell]] = {
        "Group": lambda row: Cell(GROUP.join((row["protected_attribute"], row["group"]))),
        "Decisions of": lambda row: Cell(material.whose(row["decision_maker"])),
        "First and second": lambda row: Cell(f"{row['first'].upper()}, {row['second'].upper()}"),
        "Both, first, second, neither": counts,
        "Agreement [by chance]": partial(chance, name="agreement", prefix="null"),
        "Kappa": partial(chance, name="kappa"),
        "AC1": partial(chance, name="ac1"),
        "Why they may differ": lambda row: Cell(
            "; ".join(EXPLAINS[code] for code in row["may_differ"].split("; ") if code)
        ),
    }
    first_rows = rows[:MOST_SIGNS]
    rest = _said("agreement.pairs_rest", n=len(first_rows), of=len(rows)) if len(first_rows) < len(rows) else ""
    note = " ".join(filter(None, (_said("agreement.pairs_note"), rest)))
    yield TableView.of(_said("agreement.pairs"), first_rows, columns, note=note)


MOST_SIGNS = 40
"""Groups with a line of signs; `evenhand agreement` prints all."""


def intake(material: Material) -> Iterator[Section]:
    """What the recipe of the table changed, in counts; nothing of a run without a recipe."""
    rows = material.named(INTAKE_RULES.name)
    if not rows:
        return
    columns = {
        "Column": lambda row: Cell(row["column"] or "(rows)"),
        "What was read": lambda row: Cell(_said(f"intake.rules.{row['rule']}")),
        "Cells": lambda row: _count(row["cells"]) if row["column"] else DASH,
        "Rows": lambda row: _count(row["rows"]),
    }
    tables = (TableView.of(_said("intake.table"), rows, columns),)
    yield Section(_said("intake.title"), "intake", (_said("intake.words"),), tables=tables)


def warnings(material: Material) -> Iterator[Notice]:
    """What has to be known before any figure is read."""
    year, lacking = material.settings.year, material.settings.source.lacking
    columns = tuple(name for name in lacking if GROUP not in name)
    groups = tuple(name for name in lacking if GROUP in name)
    if columns:
        text = _said("warnings.year_columns", year=year, columns=listed(columns))
        yield Notice(_said("warnings.year_columns_title"), text)
    if groups:
        text = _said("warnings.year_groups", year=year, groups=listed(groups))
        yield Notice(_said("warnings.year_groups_title"), text)
    for row in material.named(DECISION_DIRECTION.name):
        if row["reversed"]:
            yield Notice(_said("warnings.exchanged_title"), _direction(material, row))
    texts = [
        preprocessing_checks.leakage_message(row, material.label(row["feature"]))
        for row in material.named(LEAKAGE.name)
    ]
    if texts:
        text = _said("warnings.telling", columns=" ".join(texts))
        yield Notice(_said("warnings.telling_title"), text)
    rows = material.named(VALIDATIONS.name)
    broken = [r for r in rows if not (r["success"] or r["quarantined"]) and r.get("severity") != "info"]
    if broken:
        tables = ", ".join(dict.fromkeys(row["table"] for row in broken))
        text = _said("warnings.failed", n=count(len(broken)), tables=tables)
        yield Notice(_said("warnings.failed_title"), text)
    yield from too_good(material)


def _direction(material: Material, row: Any) -> str:
    """The check of the decision column in words; without its numbers where they are withheld."""
    signed = (column.rpartition(" ") for column in row["columns"].split(", ") if column)
    row = {**row, "columns": ", ".join(f"{material.label(name)} {MINUS if s == '-' else s}" for name, _, s in signed)}
    if row["auc"] is None and row["decided_by"] == "columns":
        return _said("warnings.direction_withheld", columns=row["columns"])
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
    table = TableView(_said("run.table"), ("What", "Value"), tuple((Cell(k), Cell(v)) for k, v in strip.items()))
    spec = Listing(_said("run.spec"), settings.effective_spec)
    return Section(_said("run.title"), "run", tables=(table,), listings=(spec,))
