"""The pages of a report: definitions, evidence of each method, and all pages as files."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import yaml

from schemas.audit.limits import Disclosure, Limits, RecourseLimits, SimilarLimits
from schemas.questions import LENDING, QUESTIONS, STATES, DecisionWords
from schemas.terms import State, Theory
from tasks.pipeline.method import Judged
from tasks.pipeline.registry import METHODS, NAMES, OUTCOMES_METHOD
from tasks.reporting import evidence_tables
from tasks.reporting.charts.matrix import Cell as MatrixCell
from tasks.reporting.charts.matrix import Matrix, Row
from tasks.reporting.charts.rows import Forest, Steps
from tasks.reporting.charts.values import WITHHELD, Mark, Unit
from tasks.reporting.data_page import own_limits, quality
from tasks.reporting.declared import Block, Declared, Form, all_declared, declared, words
from tasks.reporting.declared import Unit as Written
from tasks.reporting.evidence_tables import (
    MOST_CHARTS,
    ByGroup,
    BySetting,
    BySettingOfGroup,
    FullTable,
    Line,
    evenly,
    method_found,
    plain,
    rows_allowed,
    words_header,
)
from tasks.reporting.exports.report_json import document
from tasks.reporting.exports.workbook import workbook
from tasks.reporting.first_page.facts import sentences
from tasks.reporting.first_page.page import decide, run_of
from tasks.reporting.first_page.result import Decision, forest
from tasks.reporting.frame import Frame, page
from tasks.reporting.material import DRAFT, Material, Measure, View, anchor, listed
from tasks.reporting.question_pages.page import question_pages
from tasks.reporting.text import SPACE, Cell, Figure, Link, Section, TableView, count, covers

# --------------------------------------------------------------------------------------------------------------------
# The page of definitions: what words, states and measures mean. It is the same for every run of one version.
#
# It is made of ``definitions.yaml`` and of what methods declare: ``report.yaml``, and by which measure each theory is
# judged.


def definitions() -> tuple[Section, ...]:
    """The sections of the page, in order; the anchor of a method's section is its name."""
    texts = _texts()["states"]
    rows = tuple((Cell(state.words, "state", key), Cell(state.meaning)) for key, state in STATES.items())
    table = TableView(texts["title"], ("Printed", "What it says"), rows)
    states = Section(texts["title"], "states", tuple(texts["words"]), tables=(table,))
    texts = _texts()["disclosure"]
    profiles = get_args(Disclosure.model_fields["profile"].annotation)
    profile_rows = tuple(
        (Cell(name), *map(Cell, texts["profiles"][name])) for name in texts["profiles"] if name in profiles
    )
    table = TableView(texts["title"], ("Profile", "Withheld", "Rounded", "For"), profile_rows)
    disclosure = Section(texts["title"], "disclosure", tuple(texts["words"]), tables=(table,))
    return (states, _questions(), _verdicts(), _methods(), _glossary(), disclosure)


@cache
def _texts() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("definitions.yaml").read_text(encoding="utf-8"))
    return content


def _questions() -> Section:
    texts = _texts()["questions"]
    rows = []
    for theory, method, measure in judged():
        wording, base = words().get(measure.measure), measure.measure.removesuffix("_ratio")
        limit = "–"
        if measure.role != "beside":
            # The default limit in the unit of the measure, with the side that is allowed.
            value = getattr(Limits(), measure.limit or str(theory))
            if isinstance(value, SimilarLimits):
                value = value.points
            elif isinstance(value, RecourseLimits):
                value = value.ratio if measure.role == "primary" else value.difference
            if value is None:
                limit = str(texts["none"])
            elif wording is None or wording.unit == "number":
                limit = f"at {'most' if measure.limit else 'least'} {value:g}"
            else:
                limit = f"at most {100 * value:g}{SPACE}pp"
        row = (
            Cell(QUESTIONS[theory].words),
            Cell(wording.words if wording else f"{words()[base].words}, ratio to the reference"),
            Cell(declared(method).short),
            Cell(texts["roles"][measure.role]),
            Cell(limit),
        )
        rows.append(row)
    table = TableView(texts["title"], ("Question", "Measure", "Method", "It", "Limit by default"), tuple(rows))
    return Section(texts["title"], "questions", tuple(texts["words"]), tables=(table,))


def judged() -> Iterator[tuple[Theory, str, Judged]]:
    """Each measure by which a question is judged, with its method, by question: first what decides."""
    measures = [(OUTCOMES_METHOD, Judged(Theory.APPROVAL_RATES, "approval_rate_ratio"))]
    measures += [(name, measure) for name, method in METHODS.items() for measure in method.verdict_measures]
    for theory in QUESTIONS:
        of_theory = [(theory, name, measure) for name, measure in measures if measure.theory is theory]
        yield from sorted(of_theory, key=lambda row: row[2].role != "primary")


def _verdicts() -> Section:
    texts = _texts()["verdicts"]
    measures = listed(words()[name].words for method in METHODS.values() for name in sorted(method.covering))
    parts = tuple(
        Section(part["title"], f"verdicts-{i}", tuple(text.format(covering=measures) for text in part["words"]))
        for i, part in enumerate(texts["parts"], 1)
    )
    return Section(texts["title"], "verdicts", parts=parts)


def _methods() -> Section:
    """Of each method: question, how it works, measures with their meaning, and what it cannot show."""
    texts, parts = _texts()["methods"], []
    for name, method in all_declared().items():
        rows = tuple((Cell(measure.words), Cell(measure.meaning)) for measure in method.measures.values())
        table = TableView(f"{texts['measures']}: {method.short}", ("Measure", "Meaning"), rows)
        cannot = Section(texts["cannot"], f"{name}-cannot", points=method.cannot)
        text = (method.question, *method.method)
        parts.append(Section(method.title, name, text, tables=(table,), parts=(cannot,)))
    return Section(texts["title"], "methods", parts=tuple(parts))


def _glossary() -> Section:
    texts = _texts()["glossary"]
    terms = {
        **texts["terms"],
        **{term: text for declaration in all_declared().values() for term, text in declaration.glossary.items()},
    }
    rows = tuple((Cell(term), Cell(terms[term])) for term in sorted(terms, key=lambda term: (term.casefold(), term)))
    return Section(texts["title"], "glossary", tables=(TableView(texts["title"], ("Term", "Meaning"), rows),))


# --------------------------------------------------------------------------------------------------------------------
# Charts of evidence pages: groups with their intervals, or groups by settings, of the rows that the table prints.


_MOST_SETTINGS = 10
"""Columns of a matrix."""
_JUDGED = (State.OUTSIDE, State.WITHIN, State.INCONCLUSIVE)
"""States that charts draw: all others mean no verdict."""


def drawn(
    content: ByGroup | BySetting | BySettingOfGroup, lines: Sequence[Line], *, title: str, level: float
) -> Figure | None:
    """The chart of a block; None without any number, and for settings of each group.

    Args:
        content: the measures of the block.
        lines: rows of the table.
        title: the groups and decisions that it shows.
        level: of the intervals.
    """
    if isinstance(content, ByGroup):
        return of_groups(content, lines, title, level)
    return of_settings(content, lines, f"{content.block.title}, {title}") if isinstance(content, BySetting) else None


def of_groups(content: ByGroup, lines: Sequence[Line], title: str, level: float) -> Figure | None:
    """The first measure by group; as bars from zero where none of its rows has an interval that may be printed.

    Args:
        content: the measures of the block.
        lines: rows of the table; parts of groups are not drawn.
        title: what the chart shows.
        level: of the intervals.
    """
    column, at = content.columns[0]
    unit = content.declaration.measures[column.measure].unit
    rows = [(line.key, content.get(line.key, column, at)) for line in lines if line.key[1] == 0]
    measured = [(key[0], m) for key, m in rows if m is not None]
    if not any(m.value is not None for _, m in measured):
        return None
    drawn_values = [value for _, m in measured for value in (m.value, *((m.low, m.high) if _ends(m) else ()))]
    factor, chart_unit = _drawn(unit, column.form, words_header(content.declaration, column), drawn_values)
    marks = tuple(_mark(group, m, factor, group == content.view.reference) for group, m in measured)
    ranges = any(m.of_draws for _, m in measured)
    interval = "range of draws" if ranges else f"{100 * level:g} % interval"
    build: Callable[..., Forest] = Forest
    caption = ""
    # Which intervals are drawn, where readers could take them for others.
    if all(mark.low is None for mark in marks):
        build = partial(Steps, bars=True)
        caption = "Bars without intervals: none here is known to cover as often as it says."
    elif not ranges and any(mark.state for mark in marks):
        caption = f"Two-sided {interval}s; a state is that of the verdict interval, on the page of the question."
    chart_title = f"{words_header(content.declaration, column)}, {title}"
    return Figure(build(title=chart_title, unit=chart_unit, rows=marks, head="Group", interval=interval), caption)


def of_settings(content: BySetting, lines: Sequence[Line], title: str) -> Figure | None:
    """A row for each group, a column for each setting, of the measure itself."""
    form = content.block.forms[0]
    unit = content.declaration.measures[content.block.measure].unit
    keys = [line.key for line in lines]
    if len(keys) > _MOST_SETTINGS:
        keys = [keys[i] for i in evenly(len(keys), _MOST_SETTINGS)]
    cells = {group: [content.found.get((form, group, key)) for key in keys] for group in content.groups}
    values = [m.value for row in cells.values() for m in row if m is not None]
    if all(value is None for value in values):
        return None
    factor, chart_unit = _drawn(unit, form, content.declaration.measures[content.block.measure].words, values)
    columns = tuple(", ".join(content.setting(v) for v in key if v is not None) for key in keys)
    rows = tuple(
        Row(
            label=group,
            cells=tuple(
                None if m is None else MatrixCell(value=_value(m, factor), note="undefined" if m.value is None else "")
                for m in row
            ),
            reference=group == content.view.reference,
        )
        for group, row in cells.items()
    )
    return Figure(Matrix(title=title, columns=columns, rows=rows, unit=chart_unit))


def _drawn(unit: Written, form: Form, words: str, values: Sequence[float | None]) -> tuple[float, Unit]:
    """By how much values are multiplied, and the unit of the axis with decimals for three significant digits."""
    share, compared = unit in ("rate", "points") and form != "ratio", form.endswith("difference") or unit == "points"
    factor = 100.0 if share else 1.0
    largest = max((abs(value) * factor for value in values if value is not None), default=0.0)
    places = 1 if largest <= 0 else min(4, max(0, 2 - math.floor(math.log10(largest))))
    if unit == "count" and not form:
        places = 0
    if share and compared:
        return factor, Unit("percentage points", signed=True, places=places)
    if share:
        return factor, Unit("percent", signed=False, places=places)
    return factor, Unit("ratio to the reference" if form == "ratio" else words, signed=compared, places=places)


def _ends(m: Measure) -> bool:
    return m.value is not None and m.low is not None and m.high is not None and (m.of_draws or covers(m.measure))


def _mark(group: str, m: Measure, factor: float, reference: bool) -> Mark:
    low, high = (m.low, m.high) if _ends(m) else (None, None)
    note = ""
    if m.of_few:
        note = f"{m.reason}, too few people for a percentage."
    elif m.value is None and not m.withheld:  # why it is undefined, in the words of the table
        reason = plain(m.bound or m.reason) if m.bound or m.reason else "no reason was recorded."
        note = f"Undefined: {reason[:1].lower()}{reason[1:]}"
    return Mark(
        label=group,
        reference=reference,
        value=_value(m, factor),
        low=None if low is None else low * factor,
        high=None if high is None else high * factor,
        n=WITHHELD if m.n is None and m.withheld else m.n,
        state=m.state if m.state in _JUDGED and m.value is not None else "",
        note=note,
    )


def _value(m: Measure, factor: float) -> Any:
    """As drawn; the word where it is withheld, nothing where it is undefined."""
    if m.value is None:
        return WITHHELD if m.withheld else None
    return m.value * factor


# --------------------------------------------------------------------------------------------------------------------
# The evidence page of a method: its question, then a section for each block that the run has any row of.


_QUESTIONS = {question.file: question.words for question in QUESTIONS.values()}
"""Page of a question -> its title."""


@dataclass(frozen=True)
class Made:
    """A table of a block, and the chart of the rows that are printed of it."""

    full: FullTable
    draw: Callable[[Sequence[Line]], Figure | None] = lambda _: None


def evidence(material: Material, name: str) -> Section:
    """Every table and chart of a method, or of ``outcomes``; a table beyond its budget links to its full data."""
    declaration = declared(name)
    views = tuple(view for maker in reversed(material.makers(name)) for view in material.views(name, maker))
    blocks = [(block, tuple(_block_tables(block, declaration, views, material))) for block in declaration.evidence]
    most, room = rows_allowed([table.full for _, tables in blocks for table in tables]), MOST_CHARTS
    parts = []
    for block, tables in blocks:
        charts = (table.draw(table.full.printed(most)) for table in tables)
        figures = tuple(islice((chart for chart in charts if chart is not None), room))
        room -= len(figures)
        if tables:
            views_of_tables = tuple(table.full.view(most) for table in tables)
            parts.append(
                Section(block.title, anchor(block.title), (block.says,), figures=figures, tables=views_of_tables)
            )
    text = [declaration.question, *declaration.method[:2]]
    rows = sum(m.method == name for m in material.measures)
    if not parts:
        text.append("Nothing of this could be computed in this run.")
    elif rows:
        text.append(method_found(material.settings.run, name, rows))
    how = "How it works, and what it cannot tell" if name != OUTCOMES_METHOD else "What rates are, and cannot tell"
    links = (
        Link(_QUESTIONS[declaration.page], f"pages/{declaration.page}.html"),
        Link(how, f"method.html#{name}"),
    )
    return Section(declaration.title, name, tuple(text), parts=tuple(parts), links=links)


def _block_tables(block: Block, declaration: Declared, views: Sequence[View], material: Material) -> Iterator[Made]:
    """The tables of a block: one for each decision maker and protected attribute that has any row of it."""
    if block.table:
        name, rows = evidence_tables.rows_of(block, material)
        for (maker, attribute), scope_rows in evidence_tables.scopes(rows).items():
            title = ", ".join(part for part in (block.title, _scope_words(material, maker, attribute)) if part)
            scope_table = evidence_tables.table(block, declaration, material, title, scope_rows, name)
            if scope_table is not None:
                yield Made(scope_table)
        return
    run, level = material.settings.run, material.settings.bootstrap.level
    for view in views:
        content, about = (
            _KINDS[bool(block.along), bool(block.measure)](block, declaration, view),
            _scope_words(material, view.maker, view.attribute),
        )
        view_table = content.table(f"{block.title}, {about}", run)
        if view_table is not None:
            draw = partial(drawn, content, title=about, level=level)
            yield Made(view_table, draw) if block.chart != "none" else Made(view_table)


Found = ByGroup | BySetting | BySettingOfGroup
_KINDS: Mapping[tuple[bool, bool], type[Found]] = {
    (False, False): ByGroup,
    (True, True): BySetting,
    (True, False): BySettingOfGroup,
}
"""Whether a block runs along settings, and is of one measure -> what finds its rows."""


def _scope_words(material: Material, maker: str, attribute: str) -> str:
    """The people a table is about."""
    parts = (f"by {attribute}" if attribute else "", material.whose(maker) if maker else "")
    return ": ".join(part for part in parts if part)


# --------------------------------------------------------------------------------------------------------------------
# The files of a report, and the content of each.
#
# One of many lenders gets a short report: its first page and ``report.json``. All other files are made on demand.


FIRST, METHOD, DOCUMENT, WORKBOOK = "report.html", "method.html", "report.json", "measures.xlsx"
WORDS = {question.file: question.short for question in QUESTIONS.values()} | {"quality": "Data quality"}
"""Pages of a report in words of the navigation, in the order of their links."""
WHY = "quality"
"""Page of the rows that were left out."""
DIGESTS = "Checksums: report.json."
UNMADE = (
    "The questions at length, evidence, definitions and workbook are made by `evenhand report {run}`; curves and "
    "lifted rules are computed for a partition where the spec has by.full: true."
)


def files(material: Material) -> dict[str, bytes]:
    """Path below the folder of the run -> content, in the order in which a reader meets them."""
    decision = material.rephrase_all(decide(run_of(material)))
    page_sections = sections(material, decision)
    frame = _frame(material, links(page_sections))
    pages = {path: page("page.html.j2", path, frame=frame, section=section) for path, section in page_sections.items()}
    return {
        FIRST: first_page(material, decision, frame),
        **pages,
        METHOD: method_page(material.settings.version, material.settings.decision.wording),
        DOCUMENT: document(material, decision, (FIRST, *pages, METHOD, WORKBOOK)),
        WORKBOOK: workbook(material, decision),
    }


def sections(material: Material, decision: Decision) -> dict[str, Section]:
    """Path -> content of each page but the first and the definitions: questions, data, evidence."""
    named_sections = {**question_pages(material, decision), "quality": quality(material)}
    if limits := own_limits(material, run_of(material)):
        named_sections[QUESTIONS[Theory.OWN_LIMITS].file] = limits
    paths = {f"pages/{name}.html": section for name, section in named_sections.items()}
    paths |= {evidence_path(name): evidence(material, name) for name in measured(material)}
    return {path: material.rephrase_all(section) for path, section in paths.items()}


def short(material: Material) -> dict[str, bytes]:
    """The files of a short report, as ``files``: its first page describes how to make what it leaves out."""
    decision, run = material.rephrase_all(decide(run_of(material))), material.settings.run
    frame = replace(_frame(material, [(FIRST, "First page"), (DOCUMENT, DOCUMENT)]), unmade=UNMADE.format(run=run))
    return {FIRST: first_page(material, decision, frame), DOCUMENT: document(material, decision, (FIRST,))}


def _frame(material: Material, linked: Iterable[tuple[str, str]]) -> Frame:
    """The frame around every page of the run."""
    s = material.settings
    named = tuple((path, material.rephrase(words)) for path, words in linked)
    return Frame(material.title, s.run, named, DIGESTS, restricted=material.restricted)


def measured(material: Material) -> tuple[str, ...]:
    """The approvals themselves and the methods with measures in the run."""
    method_names = {m.method for m in material.measures}
    return tuple(name for name in (OUTCOMES_METHOD, *NAMES) if name in method_names)


def evidence_path(name: str) -> str:
    """Where the evidence of a method is."""
    return f"evidence/{name}.html"


def links(paths: Collection[str]) -> Iterator[tuple[str, str]]:
    """Every file that a reader opens, with its words in the navigation."""
    yield FIRST, "First page"
    yield from ((path, words) for name, words in WORDS.items() if (path := f"pages/{name}.html") in paths)
    yield from ((path, declared(n).short) for n in (OUTCOMES_METHOD, *NAMES) if (path := evidence_path(n)) in paths)
    yield from ((METHOD, "Definitions"), (WORKBOOK, WORKBOOK), (DOCUMENT, DOCUMENT))


def first_page(material: Material, decision: Decision, frame: Frame) -> bytes:
    """Decide: one screen, one sheet. It names no method, and so links to no evidence."""
    frame = replace(frame, links=tuple(link for link in frame.links if not link[0].startswith("evidence/")))
    return page("decide.html.j2", FIRST, frame=frame, **shown_first(material, decision))


def shown_first(material: Material, decision: Decision) -> dict[str, object]:
    """What the template of the first page shows in addition to its frame."""
    guesses = len(material.settings.unconfirmed)
    open_ = (f"{guesses} {'guess' if guesses == 1 else 'guesses'} of the spec not confirmed",) if guesses else ()
    texts, about = sentences()["about"], decision.about
    who = about.who if str(material.settings.year) in about.who else f"{about.who}, {material.settings.year}"
    decisions = ""
    if about.used is not None:
        with_rows = "decisions_all" if about.rows == about.used else "decisions"
        form = texts["decisions_alone" if about.rows is None else with_rows]
        decisions = form.format(used=count(about.used), rows="" if about.rows is None else count(about.rows))
    state = material.signed.short if material.signed.state != DRAFT else texts["not_signed"]
    return {
        "who": who,
        "decisions": decisions,
        "why": "" if about.used == about.rows else f"pages/{WHY}.html",  # nothing is left out
        "when": (texts["audited"].format(day=about.day), state, *open_),
        "decision": decision,
        "forest": forest(decision.figures),
        "columns": sentences()["about"]["columns"],
        "terms_title": sentences()["terms"]["title"],
        "signed": "" if material.signed.state == DRAFT and not material.signed.before else material.signed.words,
    }


def method_page(version: str, words: DecisionWords = LENDING) -> bytes:
    """Definitions: the same bytes for every run of one version whose decision has these words."""
    frame = Frame("", links=((FIRST, "First page"), (METHOD, "Definitions")), note=f"Evenhand {version}.")
    section = words.rephrase_all(Section("Definitions", "definitions", parts=definitions()))
    return page("page.html.j2", METHOD, frame=frame, section=section)
