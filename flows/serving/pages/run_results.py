"""Published measures and findings of a run."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import Response

from flows.runs.review import Note, note_view
from flows.serving.pages.lists import (
    STATE_WORDS,
    Column,
    in_order,
    number,
    number_cell,
    question_short,
    run_state,
    sorted_by,
    steps,
    table,
)
from flows.serving.site import Field, Page, Site, Tables, made, missing, run_path
from schemas.artifact import Artifact
from schemas.questions import rephrase_of, rephrase_rows
from schemas.tables.verdicts import PRICES, columns_in_approval, effect_words, limit_words, subject_words
from tasks.metrics.algorithm.measures import base_name
from tasks.metrics.curves import is_curve, rows_of
from tasks.reporting.text import Cell, Link, Section, guarded

# --------------------------------------------------------------------------------------------------------------------
# Measures of a run as published: first the figures of the questions in words; behind a link all measures, filtered,
# sorted, 100 a page; the same as CSV and JSON at the same address. Points of a curve where it is asked for by name.


PER_PAGE: Final = 100
_TABLE: Final = "measures"
CURVES: Final = ("fgce_curves", "method_curves")
"""Tables of measures that have many points."""
_KEYS: Final = ("method", "group", "measure", "state")
_WHERE = """
    ($method = '' OR method = $method) AND ($group = '' OR "group" = $group)
    AND ($measure = '' OR measure = $measure) AND ($state = '' OR state = $state)
    AND ($measure <> '' OR NOT (method = 'fgce' AND regexp_matches(parameters, '"(d|epsilon|c)":')))
"""
_NUMBERS_OF = "list_transform(regexp_extract_all({}, '-?[0-9]+[.]?[0-9]*'), lambda text: CAST(text AS DOUBLE))"
"""Sorts settings by their numbers: k 2 comes before k 10."""
_SHOWN = (
    *("method", "decision_maker", "protected_attribute", "group", "measure", "parameters"),
    *("value", "low", "high", "n", "state", "reason"),
)
COLUMNS: Final = (
    *(Column("Method", "method"), Column("Decisions of", "decision_maker"), Column("Attribute", "protected_attribute")),
    *(Column("Group", "group"), Column("Measure", "measure"), Column("Parameters", "parameters")),
    *(Column("Value", "value", falls=True), Column("95 % interval"), Column("n", "n", falls=True)),
    Column("State", "state"),
)
Query = Mapping[str, str]


def routes(site: Site) -> APIRouter:
    """Their routes."""
    router = APIRouter()

    @router.get("/runs/{run}/measures")
    def measures(
        run: str,
        every: int = 0,
        method: str = "",
        group: str = "",
        measure: str = "",
        state: str = "",
        sort: str = "",
        page: int = 1,
    ) -> Response:
        if not (every or method or group or measure or state or sort or page > 1):
            return made(_answers(site, run))
        query = {"method": method, "group": group, "measure": measure, "state": state, "sort": in_order(sort, COLUMNS)}
        return made(_page(site, run, query, max(page, 1)))

    @router.get("/runs/{run}/measures.csv")
    def as_csv(run: str, method: str = "", group: str = "", measure: str = "", state: str = "") -> Response:
        query = {"method": method, "group": group, "measure": measure, "state": state, "sort": ""}
        matches = _found(site, _measures(site, run, measure), query)
        sink = io.StringIO()
        writer = csv.writer(sink, lineterminator="\n")
        writer.writerow(matches.column_names)  # a spreadsheet takes unguarded text for a formula
        writer.writerows([guarded(value) for value in row.values()] for row in matches.to_pylist())
        return Response(sink.getvalue().encode(), media_type="text/csv; charset=utf-8")

    @router.get("/runs/{run}/measures.json")
    def as_json(run: str, method: str = "", group: str = "", measure: str = "", state: str = "") -> Response:
        query = {"method": method, "group": group, "measure": measure, "state": state, "sort": ""}
        rows = _found(site, _measures(site, run, measure), query).to_pylist()
        return Response(json.dumps({"run": run, "measures": rows}, allow_nan=False), media_type="application/json")

    return router


def _measures(site: Site, run: str, measure: str) -> pa.Table | None:
    """The table of measures; with the points of a curve if that is the measure in the address."""
    measures = site.table(run, _TABLE)
    if measures is None or not is_curve(measure):
        return measures
    references = {
        row["protected_attribute"]: row["reference_group"]
        for row in measures.select(["protected_attribute", "reference_group"]).to_pylist()
        if row["reference_group"]
    }
    curves = [site.table(run, name) for name in CURVES]
    rows_of_curves = [
        row for table in curves if table is not None for row in table.to_pylist() if row["curve"] == base_name(measure)
    ]
    points = pa.Table.from_pylist(list(rows_of(rows_of_curves, references)), measures.schema)
    return pa.concat_tables([measures, points])


def _found(site: Site, all_measures: pa.Table | None, filters: Query) -> pa.Table:
    """The rows that fit, in order."""
    if all_measures is None:
        return pa.table({name: [] for name in _SHOWN})
    column, falling = filters["sort"].removeprefix("-"), filters["sort"].startswith("-")
    way = f"{'DESC' if falling else 'ASC'} NULLS LAST"
    numbers = f"{_NUMBERS_OF.format(column)} {way}, " if column == "parameters" else ""
    order = f' ORDER BY {numbers}"{column}" {way}' if column else ""  # of COLUMNS alone
    turned = columns_in_approval()
    names = ", ".join(turned.get(name, f'"{name}"') for name in _SHOWN)
    query = f"SELECT {names} FROM measures WHERE {_WHERE}{order}"  # noqa: S608 words of ours; values are bound
    return site.tables.ask({"measures": all_measures}, query, {name: filters[name] for name in _KEYS})


def _answers(site: Site, run: str) -> Page:
    """The figures of the questions: a row for each judged group, in words."""
    verdicts = site.table(run, "verdicts")
    rows = []
    records = [] if verdicts is None else rephrase_rows(verdicts.to_pylist(), rephrase_of(site.run(run).spec))
    for row in records:
        if row["role"] not in ("primary", "adds"):
            continue
        effect = "withheld" if row["withheld"] else effect_words(row) or row["reason"]
        question = subject_words(row) if row["measure"] in PRICES else question_short(row["theory"])
        names = question, f"{row['protected_attribute']}: {row['group']}", row["decision_maker"]
        n = number_cell(row["n"], row["reason"])
        rows.append((*map(Cell, names), Cell(effect), Cell(limit_words(row) or "–"), n, run_state(row["state"])))
    header = ("Question", "Group", "Decisions of", "Result and verdict interval", "Limit", "n", "State")
    note = (
        "A difference is group less reference group in points of approval: negative is approved less often. Verdict "
        "intervals allow for all groups judged together; the first page has two-sided 95 % intervals."
    )
    if any(row["measure"] in PRICES for row in records):
        note += " A price is in percentage points above the benchmark rate: positive is paid more."
    links = (Link("All measures", run_path(run, "measures", every=1)),)
    tables = (table("Figures of the questions", header, rows, note),) if rows else ()
    return site.page(
        run, "Measures", ("measures",), section=Section("Measures", "measures", links=links, tables=tables)
    )


def _page(site: Site, run: str, query: Query, page: int) -> Page:
    all_measures = _measures(site, run, query["measure"])
    options: dict[str, tuple[str, ...]] = {"state": tuple(STATE_WORDS)}
    for name in ("method", "group", "measure"):
        values = [] if all_measures is None else all_measures[name].unique().to_pylist()
        options[name] = tuple(sorted(filter(None, values)))
    curves = [published for name in CURVES if (published := site.table(run, name)) is not None]
    named = {name for published in curves for name in published["curve"].unique().to_pylist()}
    options["measure"] = tuple(sorted({*options["measure"], *named}))
    words = {"state": STATE_WORDS}
    form = tuple(Field(name, name.capitalize(), query[name], options[name], words.get(name, {})) for name in _KEYS)
    matches = _found(site, all_measures, query)
    filters = {name: query[name] for name in _KEYS}
    files = [Link(f"As {kind.upper()}", run_path(run, f"measures.{kind}", **filters)) for kind in ("csv", "json")]
    section = Section(
        "Measures", "measures", (f"{matches.num_rows:,} measures fit, as published.",), links=tuple(files)
    )
    rows = []
    for row in matches.slice((page - 1) * PER_PAGE, PER_PAGE).to_pylist():
        names = [row[name] for name in ("method", "decision_maker", "protected_attribute", "group", "measure")]
        settings = row["parameters"] if row["parameters"] not in (None, "{}") else "–"
        ends = "–" if None in (row["low"], row["high"]) else f"[{number(row['low'])}, {number(row['high'])}]"
        value, n = (number_cell(row[name], row["reason"]) for name in ("value", "n"))
        rows.append((*map(Cell, (*names, settings)), value, Cell(ends), n, run_state(row["state"])))
    view = table("Measures", [column.words for column in COLUMNS], rows)
    listed = sorted_by(view, COLUMNS, run_path(run, "measures"), filters, query["sort"])
    parameters = {"every": "1", **{name: word for name, word in query.items() if word}}
    page_links = steps(run_path(run, "measures"), parameters, page, matches.num_rows, PER_PAGE)
    contents = {"section": section, "sorted": listed if rows else None, "form": form, "more": page_links}
    return site.page(run, "Measures", ("measures",), **contents)


# --------------------------------------------------------------------------------------------------------------------
# One complainant next to the nearest own and nearest reference applicants: columns as rows, differences marked.


NEAREST: Final = 3
"""Applicants of each side that are shown."""
DIFFERS: Final = "\N{NOT EQUAL TO} differs: "
"""A sign and a word, as colour alone must not carry meaning."""
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
    tables_by_name: Mapping[str, Sequence[pa.Table]],
    case: Mapping[str, Any],
    place: tuple[int, int],
    *,
    ids: bool,
) -> Section:
    """The page of one complainant.

    Args:
        tables: runs the queries.
        tables_by_name: evidence, applicants and decisions of the run, as its stages wrote them.
        case: the finding.
        place: its number, and how many there are.
        ids: whether identifiers of rows are shown.
    """
    n, of = place
    near = _near(tables, tables_by_name["evidence"], case)
    rows = [case["row_id"], *(applicant["row_id"] for applicant in near)]
    people = _by_row(tables.ask({"applicants": tables_by_name["applicants"][0]}, _ROWS, {"rows": rows}))
    parameters = {"rows": rows, "maker": case["decision_maker"]}
    decided = _by_row(tables.ask({"decisions": tables_by_name["decisions"][0]}, _DECIDED, parameters))
    roles = {"control": "Own group", "test": "Reference group"}
    heads = ["Complainant"]
    for applicant in near:
        role = applicant["role"]
        heads.append(f"{roles.get(role, role.replace('_', ' ').capitalize())} {applicant['rank']}")
    decision_words = {True: "favourable", False: "unfavourable", None: "unknown"}
    decisions = [decision_words[decided.get(row, {}).get("favourable")] for row in rows]
    distances = [number_cell(applicant["distance"], "–") for applicant in near]
    body = [
        *([(Cell("application"), *map(Cell, rows))] if ids else []),
        (Cell("decision"), *_marked(decisions)),
        (Cell("distance"), Cell("–", "none"), *distances),
    ]
    names = [name for name in next(iter(people.values()), {}) if name not in _OWN]
    body += [(Cell(name), *_marked([people.get(row, {}).get(name) for row in rows])) for name in names]
    words = (
        f"Number {n:,} of {of:,}: {case['group']}, decisions of the {case['decision_maker']}, by {case['method']}: "
        f"{case['verdict'].replace('_', ' ')}.",
        "A finding is a reason to look, and not the end of a review.",
    )
    comparison = replace(table("Complainant and nearest applicants", ("Column", *heads), body), rest="")
    return Section(f"Complainant {n}", "complainant", words, tables=(comparison,))


def _near(tables: Tables, evidence: Sequence[pa.Table], case: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The nearest applicants of each side; none where the method keeps none."""
    of_method = [part for part in evidence if case["method"] in part["method"].unique().to_pylist()]
    if not of_method:
        return []
    parameters = {"method": case["method"], "row": case["row_id"], "attribute": case["protected_attribute"]}
    parameters |= {"maker": case["decision_maker"], "most": NEAREST}
    applicants: list[dict[str, Any]] = tables.ask({"evidence": of_method[0]}, _NEAR, parameters).to_pylist()
    return applicants


def _by_row(applicants: pa.Table) -> dict[str, dict[str, Any]]:
    return {row["row_id"]: row for row in applicants.to_pylist()}


def _marked(values: Sequence[object]) -> list[Cell]:
    """A row of values; what differs from the complainant's is marked by a sign and a word."""
    texts = ["–" if value is None else f"{value:,.6g}" if isinstance(value, float) else str(value) for value in values]
    return [Cell(texts[0]), *(Cell(text if text == texts[0] else f"{DIFFERS}{text}") for text in texts[1:])]


# --------------------------------------------------------------------------------------------------------------------
# Findings of a run: counts as published; with ``--restricted`` the complainants, and one next to the nearest others.
#
# Each page with rows of persons is an entry of the log. It shows no name, and a row id only on request: the entry then
# says so.


FINDINGS_PER_PAGE: Final = 50
ROWS_OF_PERSONS: Final = "Restricted: rows of persons. This page is entered in the log, and is not to be passed on."
_REFUSED: Final = (
    "Rows of persons are not shown here: start a server of your own with --restricted and --as NAME. Every such page "
    "is then an entry of the log."
)
_TWINS: Final = "cst"
_COUNTS = ("Method", "Decisions of", "Attribute", "Group", "Verdict", "Why not", "Findings", "Mean statistic")
_LIST = ("Number", "Group", "Decisions of", "Verdict", "Statistic", "Interval", "q")
_COLUMNS = 'row_id, method, decision_maker, protected_attribute, "group", verdict, statistic, low, high, q'
_STRONGEST = f"""
    SELECT {_COLUMNS} FROM findings
    WHERE method = $method AND refusal IS NULL AND ($group = '' OR "group" = $group)
    ORDER BY verdict <> 'detected', q NULLS LAST, statistic DESC NULLS LAST, row_id, decision_maker, protected_attribute
"""  # noqa: S608 words of ours; values are bound


def findings_routes(site: Site) -> APIRouter:
    """Their routes."""
    router = APIRouter()

    @router.get("/runs/{run}/findings")
    def findings(run: str, method: str = "", group: str = "", page: int = 1) -> Response:
        if not site.settings.restricted:
            artifact = site.run(run).published("findings")
            is_published = artifact is not None and artifact.table.startswith("published_")
            counts = site.table(run, "findings") if is_published else None
            section = Section("Findings", "findings", ("This run has no published counts of findings.",))
            if counts is not None:
                rows = []
                for row in counts.to_pylist():
                    names = ("method", "decision_maker", "protected_attribute", "group", "verdict", "refusal")
                    count, mean = number_cell(row["findings"], "withheld"), number_cell(row["mean_statistic"], "–")
                    rows.append((*(Cell(str(row[name] or "–")) for name in names), count, mean))
                words = "Counts of what was found, as published; a group with one small count is withheld whole."
                link = Link("Rows of persons", run_path(run, "findings", "1"))
                tables = (table("Findings", _COUNTS, rows),) if rows else ()
                section = Section("Findings", "findings", (words, _REFUSED), links=(link,), tables=tables)
            return made(site.page(run, "Findings", ("findings",), section=section))
        chosen, page = method or first_method(site, run), max(page, 1)
        require_rows(site, run, ((page - 1) * FINDINGS_PER_PAGE + 1, chosen, group))
        note_reading(site, run, f"findings of {chosen}, page {page}" + _of(group))
        return _list(site, run, {"method": chosen, "group": group}, page)

    @router.get("/runs/{run}/findings/{n}")
    def finding(run: str, n: int, method: str = "", group: str = "", ids: bool = False) -> Response:
        site.summary(run)
        if not site.settings.restricted:
            raise HTTPException(403, _REFUSED)
        chosen = method or first_method(site, run)
        require_rows(site, run, (n, chosen, group))
        ids_note = ", with ids" if ids else ""
        note_reading(site, run, f"findings, number {n} of {chosen}" + _of(group) + ids_note)
        complainants = strongest(site, run, chosen, group)
        case = complainants.slice(n - 1, 1).to_pylist()[0]
        names = ("evidence", "applicants", "decisions")
        tables = {name: [site.read(artifact) for artifact in raw(site, run, name)] for name in names}
        query = {"method": chosen, "group": group}
        section = twins(site.tables, tables, case, (n, complainants.num_rows), ids=ids)
        page_links = [
            (run_path(run, "findings", str(number), **query), words)
            for number, words in ((n - 1, "Before"), (n + 1, "Next"))
            if 1 <= number <= complainants.num_rows
        ]
        own_path = run_path(run, "findings", str(n), **query, ids=None if ids else 1)
        page_links.append((own_path, "Hide identifiers of rows" if ids else "Show identifiers of rows"))
        contents = {"section": section, "more": tuple(page_links), "restricted": ROWS_OF_PERSONS}
        return made(site.page(run, f"Complainant {n}", ("findings", str(n)), **contents))

    return router


def _of(group: str) -> str:
    return f", {group}" if group else ""


def require_rows(site: Site, run: str, which: tuple[int, str, str]) -> None:
    """Check that a complainant exists before the log entry, so that a forged address adds no text to the log.

    Raises:
        HTTPException: the run has no such complainant, of that method and group.
    """
    n, method, group = which
    complainants = strongest(site, run, method, group)
    if not 1 <= n <= complainants.num_rows:
        missing(f"There are {complainants.num_rows:,} complainants of {method}.")


def note_reading(site: Site, run: str, what: str) -> None:
    """Log that a person was shown rows of persons, before they are shown.

    Raises:
        InfrastructureError: the log cannot be written: then nothing is shown.
    """
    site.summary(run)
    note_view(site.known().lake, run, Note(site.settings.by, what))


def first_method(site: Site, run: str) -> str:
    """The default method of the findings page: CST, which has twins, else the first of the run."""
    methods = [
        name for artifact in raw(site, run, "findings") for name in set(site.read(artifact)["method"].to_pylist())
    ]
    return _TWINS if _TWINS in methods or not methods else methods[0]


def strongest(site: Site, run: str, method: str, group: str) -> pa.Table:
    """Complainants of a method, the strongest findings first.

    Raises:
        HTTPException: the run has no findings of that method.
    """
    tables = [site.read(artifact) for artifact in raw(site, run, "findings")]
    method_tables = [method_table for method_table in tables if method in method_table["method"].unique().to_pylist()]
    if not method_tables:
        missing(f"This run has no findings of {method!r}.")
    evidence = pa.concat_tables(method_tables)
    return site.tables.ask({"findings": evidence}, _STRONGEST, {"method": method, "group": group})


def raw(site: Site, run: str, name: str) -> list[Artifact]:
    """A table with rows of persons, of each stage that wrote one."""
    return [
        artifact for partition in site.run(run).partitions for artifact in partition.tables if artifact.table == name
    ]


def _list(site: Site, run: str, query: Mapping[str, str], page: int) -> Response:
    complainants = strongest(site, run, **query)
    first = (page - 1) * FINDINGS_PER_PAGE
    rows = []
    for n, row in enumerate(complainants.slice(first, FINDINGS_PER_PAGE).to_pylist(), first + 1):
        ends = "–" if row["low"] is None or row["high"] is None else f"[{row['low']:.3f}, {row['high']:.3f}]"
        rows.append(
            (
                Cell(f"number {n}", address=run_path(run, "findings", str(n), **query)),
                Cell(row["group"]),
                Cell(row["decision_maker"]),
                Cell(row["verdict"].replace("_", " ")),
                number_cell(row["statistic"], "–"),
                Cell(ends),
                number_cell(row["q"], "–"),
            )
        )
    words = f"{complainants.num_rows:,} complainants of {query['method']}, the strongest findings first."
    links = (Link("Complainants", run_path(run, "findings", **query)),)
    tables = (table("Findings", _LIST, rows),) if rows else ()
    section = Section("Findings", "findings", (words,), links=links, tables=tables)
    groups = tuple(sorted(set(strongest(site, run, query["method"], "")["group"].to_pylist())))
    form = (Field("method", "Method", query["method"]), Field("group", "Group", query["group"], groups))
    page_links = steps(run_path(run, "findings"), dict(query), page, complainants.num_rows, FINDINGS_PER_PAGE)
    contents = {"section": section, "form": form, "more": page_links, "restricted": ROWS_OF_PERSONS}
    return made(site.page(run, "Findings", ("findings",), **contents))
