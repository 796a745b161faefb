"""Builds the first page from the published tables of a run."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import takewhile
from shlex import quote
from typing import Any

from schemas.audit.column import HISTORY, LENDER, ORDER, OTHER, block_of
from schemas.audit.partition import asked_and_of
from schemas.audit.source import Source
from schemas.tables.applications import ANY, DECISION_DIRECTION, SOURCE_READ, VALIDATIONS
from schemas.tables.counterfactuals import GRAPH_TESTS
from schemas.tables.readings import VERDICT_FINDINGS
from schemas.tables.verdicts import PRICES, PUBLISHED_MISSINGNESS, PUBLISHED_WATERFALL, REPORTED, VERDICTS
from schemas.terms import EVERYBODY, DecisionMaker, Refusal, Theory
from schemas.vintages import place_of
from tasks.pipeline.registry import OUTCOMES_METHOD
from tasks.reporting.first_page.answers import questions
from tasks.reporting.first_page.facts import (
    About,
    Benchmark,
    Files,
    Finding,
    GraphTests,
    Group,
    Groups,
    Interval,
    Key,
    LeftOut,
    Lost,
    Row,
    Run,
    of_100,
    said,
    sentences,
    words,
)
from tasks.reporting.first_page.result import NEAREST, Decision, Line, figures
from tasks.reporting.first_page.rules import View, cannot_tell, files_of, headline, next_steps, remarks
from tasks.reporting.material import Material, Rows

# --------------------------------------------------------------------------------------------------------------------
# Facts of the first page, read from the published tables and the settings of a run.
#
# Scope: looking up. A fact that no table has stays at its default, and its rule prints nothing.


ADJUSTED, BENCHMARKS = "adjusted", "adjusted_benchmarks"
"""Tables of the denial ladder, which its method declares."""
APPROVAL, SATURATED_EFFECT = "approval_rate", "saturated_effect"
GROUP = ": "
"""In missing columns of a year: between an attribute and a group without applicants."""
LACKING = (Refusal.MISSING_COVARIATE, Refusal.EXEMPT_COVARIATE)
"""Reasons for which rows without every feature are refused."""
MANY = 2
"""Lenders of a file of a whole place."""
FILES_READ = 20
"""Files that one reviewer reads at a time: a choice of this project."""
_HISTORY = re.compile(
    r"\bscores?\b|\bhistory\b|credit (?:record|rating)|fico|delinquen|bankrupt|late pay", re.IGNORECASE
)
"""Names and labels of columns on earlier payments."""
_RANGE = re.compile(r"; (?P<side>more than|above|below) (?P<share>[\d.]+)(?P<percent> %)? denied$")
"""End of the reason of a measure with a published range."""
_SAMPLED = re.compile(r"(?<![a-z])sampled?(?![a-z])", re.IGNORECASE)
_PLACE = 1
"""Position of the geography in the words of a vintage."""


def run_of(material: Material) -> Run:
    """All that the first page is decided from."""
    settings = material.settings
    parts, part_limit = settings.verdicts.parts, settings.verdicts.limits.part
    every = material.rows(VERDICTS)
    rows = tuple(row for row in every if row["reason"] != REPORTED)
    small = (row for row in every if row["reason"] == REPORTED and row["measure"] not in PRICES)
    reported = {(row["protected_attribute"], row["group"]): None for row in small}
    judged_rows = [row for row in material.named(ADJUSTED) if row["primary"]]
    ordered = sorted(judged_rows, key=lambda row: row["decision_maker"] == DecisionMaker.LENDER)
    deciding_rows = {(row["protected_attribute"], row["group"]): row for row in ordered}
    warnings = []
    if any(row["reversed"] for row in material.rows(DECISION_DIRECTION)):
        warnings.append("columns_swapped")
    checks = material.rows(VALIDATIONS)
    if any(not (row["success"] or row["quarantined"]) and row["severity"] == "critical" for row in checks):
        warnings.append("checks_failed")
    tests = material.named(GRAPH_TESTS.name)
    reasons = {f"{row['measure']}_null" for row in rows if row["theory"] == Theory.MODEL_REASONS and row["measure"]}
    # Sampled and total number, where fewest were sampled; a withheld number has no digits.
    samplings = {m.sampled for m in material.measures if m.sampled and m.subgroup == 0}
    counts = [asked_and_of(sampling) for sampling in sorted(samplings) if any(c.isdigit() for c in sampling)]
    return Run(
        tuple(Row.of(row) for row in rows),
        tuple(group for group in _groups(material) if group.key not in reported),
        reported=tuple(group for _, group in reported),
        relabelled={
            (m.protected_attribute, m.group): m.high
            for m in material.measures
            if m.measure in reasons and m.subgroup == 0 and m.high is not None
        },
        warnings=tuple(warnings),
        minimum_n=settings.verdicts.minimum_n,
        # Columns that the judged rung of each group adjusts for; none of a group without benchmarks.
        columns=dict(Counter(key for key, _ in _benchmarks(material, deciding_rows))),
        matched=_matched(material, deciding_rows),
        lacks=_lacks(material),
        findings=tuple(
            Finding(
                kind=row["kind"],
                attribute=row["protected_attribute"],
                **{name: row[name] for name in ("group", "part", "value", "low", "high", "n", "sentence", "next")},
            )
            for row in material.named(VERDICT_FINDINGS.name)
        ),
        support={key: row["support"] for key, row in deciding_rows.items() if row["support"] is not None},
        unknown=_unknown(material),
        about=_about(material),
        run=settings.run,
        neighbours=_neighbours(material),
        credit_history=_credit_history(material),
        strongest=_strongest(material, deciding_rows),
        outlasts=_outlasts(material, deciding_rows),
        fitted=not settings.model.is_given,
        files=_files(rows, settings.run),
        graph_tests=GraphTests(tests[0]["tests"], tests[0]["rejected"]) if tests and tests[0]["tests"] else None,
        saturated=_saturated(material, rows),
        left_out=_left_out(material),
        lost=tuple(sorted(_lost(material), key=lambda group: (-group.n, group.attribute, group.name))),
        complete=settings.verdicts.complete,
        year=settings.year,
        parts=None if part_limit is None or not parts.by else (parts.minimum_n, part_limit),
        lacking=tuple(name for name in settings.source.lacking if GROUP not in name),
        public=settings.source.kind == "hmda",
        lenders=1 if _only_lender(material) else _lenders(settings.source),
        sampled=bool(_SAMPLED.search(settings.source.words.replace("_", " "))),
        sample=min(counts, key=lambda part: (part[0] / part[1], -part[1]), default=None),
        years_old=int(settings.run_day[:4]) - settings.year,
    )


def _about(material: Material) -> About:
    """Who is audited, by what, and when."""
    settings = material.settings
    source = next(iter(material.named(SOURCE_READ.name)), None)
    day, lender = date.fromisoformat(settings.run_day), _only_lender(material)
    who = (
        settings.lender_name or said("about", "lender", name=lender)[0]
        if lender or settings.lender_name
        else re.sub(rf"[,:]?\s*\b{settings.year}\b", "", material.title)
    )
    rows = None if source is None else source["rows"]
    return About(who.strip() or material.title, decisions_of(material), rows, f"{day.day} {day:%B %Y}")


def _only_lender(material: Material) -> str:
    """The lender of all rows, by its identifier; empty where they are of several or none is named."""
    part = material.part
    if part is not None and part.column in LENDER:
        return part.value
    return next((row.get("lender") or "" for row in material.named(SOURCE_READ.name)), "")


def _lacks(material: Material) -> tuple[str, ...]:
    """What the data are known to lack."""
    if material.settings.verdicts.complete or _credit_history(material):
        return ()
    return (sentences()["lacks"]["hmda" if material.settings.source.kind == "hmda" else "history"],)


def _saturated(material: Material, rows: Sequence[Mapping[str, Any]]) -> dict[Key, Interval]:
    """The effects under the saturated graph, of the decision makers whose effects are judged."""
    judged = {
        (row["protected_attribute"], row["group"], row["decision_maker"])
        for row in rows
        if row["theory"] == Theory.CAUSAL_MODEL and row["role"] == "primary"
    }
    return {
        (m.protected_attribute, m.group): (m.value, m.low, m.high)
        for m in material.measures
        if m.measure == SATURATED_EFFECT and m.value is not None
        if (m.protected_attribute, m.group, m.decision_maker) in judged
    }


def _matched(
    material: Material, deciding_rows: Mapping[Key, Mapping[str, Any]]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The columns that similar applicants share, by their blocks."""
    columns = material.settings.columns
    blocks = getattr(material.settings.methods.by_name.get(ADJUSTED), "blocks", {})
    declared = {column: block for block, names in blocks.items() for column in names}
    matched: dict[str, list[str]] = defaultdict(list)
    for name in dict.fromkeys(row["column"] for _, row in _benchmarks(material, deciding_rows)):
        column = columns.get(name)
        block = declared.get(name)
        if block is None and column is not None:
            block = column.block or block_of(name, column.role)
        matched[block or OTHER].append(material.label(name))
    order = {block: place for place, block in enumerate((*blocks, *ORDER))}
    return tuple((block, tuple(matched[block])) for block in sorted(matched, key=lambda b: order.get(b, len(order))))


def _unknown(material: Material) -> Mapping[str, float]:
    """Attribute -> share of the decisions on people whose group nobody knows."""
    maker, shares = maker_of(material), {}
    for protected in material.settings.protected:
        sizes = {
            m.group: m.n
            for m in material.measures
            if (m.method, m.measure, m.decision_maker, m.subgroup) == (OUTCOMES_METHOD, APPROVAL, maker, 0)
            and m.protected_attribute == protected.name
        }
        total = sum(n for n in sizes.values() if n is not None)
        unknown = sum(n or 0 for group, n in sizes.items() if protected.unknown(group))
        if unknown:
            shares[protected.name] = unknown / total
    return shares


def maker_of(material: Material) -> str:
    """The decision maker with the shown approvals: the one that decides the verdict; without a verdict the lender."""
    rows = material.rows(VERDICTS)
    named = [row["decision_maker"] for row in rows if row["theory"] == Theory.APPROVAL_RATES and row["group"]]
    makers = {m.decision_maker for m in material.measures if m.measure == APPROVAL}
    first = DecisionMaker.LENDER if DecisionMaker.LENDER in makers else DecisionMaker.MODEL
    return str(min(named, key=lambda maker: maker != DecisionMaker.LENDER, default=first))


def _groups(material: Material) -> Iterator[Group]:
    """Reference groups and judged groups with their approvals."""
    maker = maker_of(material)
    protected = {p.name: p for p in material.settings.protected}
    for m in material.measures:
        if (m.method, m.measure, m.decision_maker, m.subgroup) != (OUTCOMES_METHOD, APPROVAL, maker, 0):
            continue
        attribute = protected[m.protected_attribute]
        if m.group != attribute.reference and not attribute.judges(m.group):
            continue
        # A range of the denied that is published in place of a share becomes one of the approved.
        range_words = ""
        if match := _RANGE.search(m.reason):
            denied = float(match["share"]) / (100 if match["percent"] else 1)
            range_words = f"{'more' if match['side'] == 'below' else 'less'} than {of_100(1 - denied)}"
        elif m.of_few:
            range_words = m.reason
        yield Group(attribute.name, m.group, m.n, m.value, range_words, m.group == attribute.reference, maker)


def decisions_of(material: Material) -> int | None:
    """Number of decisions: the sum over groups of the first attribute; None where one of them is withheld."""
    maker, first = maker_of(material), material.settings.protected[0].name
    sizes = [
        m.n
        for m in material.measures
        if (m.method, m.measure, m.decision_maker, m.subgroup) == (OUTCOMES_METHOD, APPROVAL, maker, 0)
        and m.protected_attribute == first
    ]
    finite = [n for n in sizes if n is not None]
    return sum(finite) if finite and len(finite) == len(sizes) else None


def _benchmarks(
    material: Material, deciding_rows: Mapping[Key, Mapping[str, Any]], times: int | None = 1
) -> Iterator[tuple[Key, Mapping[str, Any]]]:
    """Each control of the judged rung of each group, taken as so many times as strong as it is; None: any of them."""
    for row in material.named(BENCHMARKS):
        key = row["protected_attribute"], row["group"]
        judged = deciding_rows.get(key, {})
        if times in (None, row["times"]) and all(row[name] == judged.get(name) for name in ("rung", "decision_maker")):
            yield key, row


def _strongest(material: Material, deciding_rows: Mapping[Key, Mapping[str, Any]]) -> dict[Key, Benchmark]:
    """The control that explains most of what is left of denial, by group."""
    strongest: dict[Key, Benchmark] = {}
    for key, row in _benchmarks(material, deciding_rows):
        of_group, of_denial = row["of_group"], row["of_denial"]
        if of_group is None or of_denial is None or (key in strongest and strongest[key].of_approval >= of_denial):
            continue
        column = material.settings.columns.get(row["column"])
        label = column.label if column is not None and column.label else row["column"]
        strongest[key] = Benchmark(label.partition(" (")[0], of_group, of_denial)
    return strongest


def _outlasts(material: Material, deciding_rows: Mapping[Key, Mapping[str, Any]]) -> dict[Key, int]:
    """How many times as strong as any control a missing column may be, and the interval still excludes no effect.

    A strength counts only if all below it do, and if the effect is known for every control at it. A group without a
    known effect for every control as strong as it is, is left out.
    """
    lows: dict[Key, dict[int, list[float | None]]] = defaultdict(lambda: defaultdict(list))
    for key, row in _benchmarks(material, deciding_rows, times=None):
        lows[key][row["times"]].append(row["low"])
    outlasts = {}
    for key, by_times in lows.items():
        held = (all(low is not None and low > 0 for low in by_times[times]) for times in sorted(by_times))
        if None not in by_times[1]:
            outlasts[key] = len(list(takewhile(bool, held)))
    return outlasts


def _neighbours(material: Material) -> int | None:
    """Number of nearest applicants in a comparison; None where none was made."""
    methods = {row["method"] for row in material.rows(VERDICTS) if row["measure"] == NEAREST}
    settings = [material.settings.methods.by_name.get(name) for name in sorted(methods)]
    return next(
        (int(k) for method_settings in settings if (k := getattr(method_settings, "k", None)) is not None), None
    )


def _credit_history(material: Material) -> bool:
    """Whether any column describes earlier payments, by itself or by its block of the ladder.

    Public HMDA has the type of a score, and no score.
    """
    settings = material.settings
    if settings.source.kind == "hmda":
        return False
    blocks = getattr(settings.methods.by_name.get(ADJUSTED), "blocks", {})
    return any(column in settings.columns for column in blocks.get(HISTORY, ())) or any(
        column.kept
        and (
            HISTORY in (column.block, block_of(name, column.role))
            or _HISTORY.search(f"{name} {column.label}".replace("_", " "))
        )
        for name, column in settings.columns.items()
    )


def _files(rows: Rows, run: str) -> dict[Key, Files]:
    """Denied applicants of each group that was compared with its nearest ones, and how their files are packed."""
    packs: dict[Key, Files] = {}
    for row in sorted(rows, key=lambda row: row["decision_maker"] == DecisionMaker.LENDER):  # the lender's last
        if row["measure"] != NEAREST or row["events"] is None or row["withheld"]:
            continue
        n, key = min(FILES_READ, row["events"]), (row["protected_attribute"], row["group"])
        chosen = f"{_option('--attribute', key[0])} {_option('--group', key[1])} --denied"
        packs[key] = Files(n or None, f"evenhand findings --run {run} --file-pack {n} {chosen}" if n else "")
    return packs


def _option(name: str, value: str) -> str:
    """An option of a command with its value, which may begin like an option itself."""
    return f"{name}{'=' if value.startswith('-') else ' '}{quote(value)}"


def _left_out(material: Material) -> LeftOut | None:
    """Applications without a column, as published; None where columns are imputed or a number is withheld."""
    if material.settings.missing == "impute":
        return None
    lacking = next((r for r in material.rows(PUBLISHED_MISSINGNESS) if r["feature"] == ANY), None)
    used = [r["n"] for r in material.rows(PUBLISHED_WATERFALL) if r["kind"] == "used" and r["group"] == EVERYBODY]
    if lacking is None or not lacking["missing"] or not used or used[0] is None:
        return None
    n = lacking["missing"]
    return LeftOut(n, n + used[0], _rest(lacking["approval_missing"]), _rest(lacking["approval_present"]))


def _lost(material: Material) -> Iterator[Lost]:
    """Groups with half or more of the applications without a feature, from the waterfall as it is published."""
    lines: dict[Key, list[Mapping[str, Any]]] = defaultdict(list)
    for row in material.rows(PUBLISHED_WATERFALL):
        lines[row["protected_attribute"], row["group"]].append(row)
    people = {p.name: p for p in material.settings.protected}
    for (attribute, group), rows in lines.items():
        lacking = [row for row in rows if row["reason"] in LACKING]
        if not lacking or not (group == people[attribute].reference or people[attribute].judges(group)):
            continue
        sizes = {row["stage"] or row["kind"]: row["n"] for row in rows if row["kind"] != "refused"}
        before, after = sizes.get("ingest", sizes["source"]), sizes.get("preprocess", sizes["used"])
        if before and after is not None and 2 * after <= before:
            named = sorted((row for row in lacking if row["n"]), key=lambda row: -row["n"])
            columns = (material.label(column) for row in named for column in row["column"].split(", "))
            yield Lost(attribute, group, before, after, tuple(dict.fromkeys(columns)))


def _rest(share: float | None) -> float | None:
    return None if share is None else 1 - share


def _lenders(source: Source) -> int | None:
    """Lenders in the data: many in HMDA, but for the file of one lender or rows kept by one.

    A file that is given by its path may be of one or of many: None.
    """
    is_one_lender = any(len(source.keep[name].values) == 1 for name in LENDER if name in source.keep)
    if source.kind != "hmda" or is_one_lender:
        return 1
    if source.vintage_file is None:
        return None
    geography = source.words.split(", ")[_PLACE]
    return 1 if place_of(geography)[0] == "lender" else MANY


# --------------------------------------------------------------------------------------------------------------------
# The first page of a run: its parts together, and their texts within the number of words that it has room for.


MOST_WORDS = 312
"""Of all texts; the page has 350, and the line above the headline, headings, signatures and axes need the rest."""
OF_A_RESULT = (45, 32, 24)
"""Words that a result may have: the first number with which the page keeps its own."""
LEAST_LINES = 2
"""Of what to do next, before results are shortened."""
Ruled = tuple[tuple[str, tuple[str, ...]], ...]


def decide(run: Run) -> Decision:
    """The first page of a run. Equal runs give equal pages, in any order of their rows and groups."""
    groups = Groups(run)
    chart = figures(groups)
    view = View(groups, chart.key)
    change, steps, cannot = remarks(view), next_steps(view), cannot_tell(view)
    group_files = files_of(view)
    command = "" if group_files is None else group_files[1].command
    labels = sentences()["matched"]
    n = sum(len(columns) for _, columns in run.matched)
    for most in OF_A_RESULT:
        rows = questions(groups, most)
        page = Decision(
            headline(groups, rows),
            rows,
            chart,
            _lines(change),
            tuple(replace(line, command=command if line.rule == "read_files" else "") for line in _lines(steps)),
            _lines(cannot),
            run.about,
            tuple((labels.get(block, block), columns) for block, columns in run.matched),
            groups.number("matched", "title", n) if n else "",
        )
        page = _fitted(page, change, steps, LEAST_LINES if most != OF_A_RESULT[-1] else 1)
        if length(page) <= MOST_WORDS:
            break
    return replace(page, terms=_terms(page))


def _terms(page: Decision) -> tuple[tuple[str, str], ...]:
    """Terms that stand on the page, each with its meaning; an interval stands wherever a figure has one."""
    text = " ".join(page.texts()).casefold()
    intervals = any(comparison.shown_interval for comparison in page.figures.comparisons)
    meanings = {term: meaning for term, meaning in sentences()["terms"].items() if term != "title"}
    return tuple(
        (term, meaning)
        for term, meaning in meanings.items()
        if re.search(rf"\b{term}", text) or (term == "interval" and intervals)
    )


def _lines(ruled: Ruled) -> tuple[Line, ...]:
    return tuple(Line(rule, forms[0]) for rule, forms in ruled)


def _fitted(page: Decision, change: Ruled, steps: Ruled, least: int) -> Decision:
    """The page with its lines shortened, and then left out from the last on, until it keeps its words.

    The three lines of what the page cannot show stay, and so do ``least`` steps.
    """
    while length(page) > MOST_WORDS:
        at, form = _shorter(page.change, change)
        if form:
            page = replace(page, change=_exchanged(page.change, at, form))
        elif len(page.next) > max(least, LEAST_LINES):
            page = replace(page, next=page.next[:-1])
        elif page.change:
            page = replace(page, change=page.change[:-1])
        elif (shorter := _shorter(page.next, steps))[1]:
            page = replace(page, next=_exchanged(page.next, *shorter))
        elif len(page.next) > least:
            page = replace(page, next=page.next[:-1])
        elif extra := [line for line in page.cannot if line.rule in ("lost", "asked")]:
            page = replace(page, cannot=tuple(line for line in page.cannot if line is not extra[-1]))
        else:
            break
    return page


def length(page: Decision) -> int:
    """Words of all texts, and of who is audited."""
    return words(page.about.who, *page.texts())


def _shorter(lines: Sequence[Line], ruled: Ruled) -> tuple[int, str]:
    """Which line becomes shortest by its next form, and that form; empty where none has one."""
    forms = dict(ruled)
    saved: list[tuple[int, int, str]] = []
    for at, line in enumerate(lines):
        of_line = forms[line.rule]
        rest = of_line[of_line.index(line.words) + 1 :]
        if rest and words(rest[0]) < words(line.words):
            saved.append((words(line.words) - words(rest[0]), -at, rest[0]))
    gain = max(saved, default=(0, 0, ""))
    return -gain[1], gain[2]


def _exchanged(lines: tuple[Line, ...], at: int, form: str) -> tuple[Line, ...]:
    return tuple(replace(line, words=form) if number == at else line for number, line in enumerate(lines))
