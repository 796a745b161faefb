"""The DuckDB statement of an audit: cells as text and numbers, groups, reasons for which a row is refused."""

# ruff: noqa: S608 names are ours, values are bound

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.audit.column import ColumnSpec
from schemas.audit.source import CellRule, Derived, Keep, Source
from schemas.audit.spec import Decision, Protected
from schemas.bounds import canonical
from schemas.terms import Kind, Refusal
from tasks.ingest.sources.raw import Laid

if TYPE_CHECKING:
    import duckdb


# --------------------------------------------------------------------------------------------------------------------
# Values of the audit spec, bound as variables of the connection: none of them is a part of a statement's text.
#
# Variables and not parameters: DuckDB holds the whole answer of a statement with parameters, and streams one without.


class BoundValues:
    """The variables of one connection."""

    def __init__(self, connection: "duckdb.DuckDBPyConnection") -> None:
        """None yet."""
        self._connection, self._bound = connection, 0

    def value(self, value: str | float | date) -> str:
        """SQL of one value."""
        return self._variable(value)

    def among(self, cell: str, texts: Iterable[str]) -> str:
        """SQL of whether a cell, which is not null, holds one of the texts."""
        listed = list(dict.fromkeys(texts))
        return f"{cell} IN {self._variable(listed)}" if listed else "false"

    def _variable(self, value: Any) -> str:
        name = f"said_{self._bound}"
        self._bound += 1
        self._connection.execute(f"SET VARIABLE {name} = $1", [value])
        return f"getvariable('{name}')"


# --------------------------------------------------------------------------------------------------------------------
# The view ``texts``: cells as text to be compared with codes, trimmed, and 5.0 as 5.
#
# SQL does it for ASCII. Other texts are few, and have other blanks and digits: Python maps each once.


BLANKS = "".join(chr(code) for code in range(128) if chr(code).isspace())
"""What Python trims of an ASCII text."""


def lay_texts(source_view: Laid, connection: "duckdb.DuckDBPyConnection", bound: BoundValues) -> None:
    """Make the view, with ``place``, ``t0``, ``t1``, ... for the columns, and ``q0``, ``q1``, ... as they are."""
    connection.execute(f"CREATE TEMP VIEW raw AS {source_view.rows}")
    blanks, joins = bound.value(BLANKS), []
    odd = _beyond_ascii(source_view, connection)
    chosen = ["place", *(f"q{i}" for i in range(len(source_view.quarantined)))]
    for i, name in enumerate(source_view.columns):
        mended = f"mended_{i}"
        text = f"c{i}"
        if name not in source_view.as_compared:
            cell = text if name in source_view.plain else f"trim({text}, {blanks})"
            # as ``schemas.bounds.canonical`` writes an ASCII text
            number = f"suffix({cell}, '0') AND contains({cell}, '.') AND regexp_full_match({cell}, '-*[0-9]+[.]0+')"
            text = f"CASE WHEN {number} THEN split_part({cell}, '.', 1) ELSE {cell} END"
        if i in odd and _map(i, mended, connection):
            joins.append(f"LEFT JOIN {mended} ON c{i} = {mended}.text")
            text = f"CASE WHEN {_ascii(f'c{i}')} THEN {text} ELSE coalesce({mended}.canonical, c{i}) END"
        elif i in odd:
            text = f"CASE WHEN {_ascii(f'c{i}')} THEN {text} ELSE c{i} END"
        chosen.append(f"{text} AS t{i}")
    connection.execute(f"CREATE TEMP VIEW texts AS SELECT {', '.join(chosen)} FROM raw {' '.join(joins)}")


def _ascii(cell: str) -> str:
    return f"strlen({cell}) = length({cell})"


def _beyond_ascii(source_view: Laid, connection: "duckdb.DuckDBPyConnection") -> set[int]:
    """Positions of the columns that have such a text."""
    positions = [
        i for i, name in enumerate(source_view.columns) if name not in source_view.plain | source_view.as_compared
    ]
    if not positions:
        return set()
    counts = ", ".join(f"count_if(NOT {_ascii(f'c{i}')})" for i in positions)
    (counted_rows,) = connection.sql(f"SELECT {counts} FROM raw").fetchall()
    return {i for i, n in zip(positions, counted_rows, strict=True) if n}


def _map(i: int, name: str, connection: "duckdb.DuckDBPyConnection") -> bool:
    """Register a table of the column's texts beyond ASCII that Python writes in another way; whether there are some."""
    query = f"SELECT DISTINCT c{i} FROM raw WHERE NOT {_ascii(f'c{i}')}"
    canonical_texts = {text: canonical(text) for (text,) in connection.sql(query).fetchall()}
    changed = {text: new for text, new in canonical_texts.items() if text != new}
    connection.register(name, pa.table({"text": list(changed), "canonical": list(changed.values())}))
    return bool(changed)


# --------------------------------------------------------------------------------------------------------------------
# The view ``cells``: texts with those of derived columns, and which of them mean missing or exempt.


@dataclass(frozen=True)
class Cells:
    """SQL of the cells of a column, by its name, over the view."""

    at: Mapping[str, int]
    derived: tuple[str, ...]

    def text(self, name: str) -> str:
        """The text."""
        return f"t{self.at[name]}"

    def missing(self, name: str) -> str:
        """Whether it means a missing value."""
        return f"m{self.at[name]}"

    def exempt(self, name: str) -> str:
        """Whether it means exempt from reporting, and not missing."""
        return f"x{self.at[name]}"

    def absent(self, name: str) -> str:
        """Whether it means either."""
        return f"(m{self.at[name]} OR x{self.at[name]})"

    def unlisted(self, name: str) -> str:
        """Whether the mapping of a derived column does not list the value that it is made from."""
        return f"u{self.at[name]}"


def lay_cells(
    names: Sequence[str],
    source: Source,
    columns: Mapping[str, ColumnSpec],
    connection: "duckdb.DuckDBPyConnection",
    bound: BoundValues,
) -> Cells:
    """Make the view over ``texts``, which has columns of these names."""
    cells = Cells({name: i for i, name in enumerate((*names, *source.derive))}, tuple(source.derive))
    derived_columns = "".join(f", {_derived(cells, name, source, bound)}" for name in source.derive)
    flags = "".join(f", {_flags(cells, name, source, columns.get(name), bound)}" for name in cells.at)
    connection.execute(f"CREATE TEMP VIEW cells AS SELECT *{flags} FROM (SELECT *{derived_columns} FROM texts)")
    return cells


def _derived(cells: Cells, name: str, source: Source, bound: BoundValues) -> str:
    """The value and whether it is unlisted; texts that mean missing or exempt are carried over if they are."""
    derived: Derived = source.derive[name]
    if derived.column is None:  # a new value where all its rules hold, and none where those of two do

        def holds(column: str, rule: CellRule) -> str:
            if not isinstance(rule, str):
                return bound.among(cells.text(column), rule)
            absent = bound.among(cells.text(column), ["", *source.missing, *source.exempt])
            return absent if rule == "absent" else f"NOT {absent}"

        conditions = {
            value: f"({' AND '.join(holds(column, rule) for column, rule in rules.items())})"
            for value, rules in derived.rows.items()
        }
        twice = f"({' + '.join(f'CAST({sql} AS INTEGER)' for sql in conditions.values())}) > 1"
        values = " ".join(f"WHEN {sql} THEN {bound.value(value)}" for value, sql in conditions.items())
        return (
            f"CASE WHEN {twice} THEN '' {values} ELSE '' END AS {cells.text(name)}, {twice} AS {cells.unlisted(name)}"
        )
    text = cells.text(derived.column)
    listed = [code for codes in derived.values.values() for code in codes]
    unlisted = f"NOT {bound.among(text, [*listed, '', *source.missing, *source.exempt])}"
    values = " ".join(
        f"WHEN {bound.among(text, codes)} THEN {bound.value(value)}" for value, codes in derived.values.items()
    )
    value = f"CASE WHEN {unlisted} THEN '' {values} ELSE {text} END"
    return f"{value} AS {cells.text(name)}, {unlisted} AS {cells.unlisted(name)}"


def _flags(cells: Cells, name: str, source: Source, column: ColumnSpec | None, bound: BoundValues) -> str:
    text, missing_codes = cells.text(name), column.missing if column else ()
    missing = bound.among(text, ["", *source.missing, *missing_codes])
    exempt = f"({bound.among(text, source.exempt)}) AND NOT ({missing})"
    return f"{missing} AS {cells.missing(name)}, {exempt} AS {cells.exempt(name)}"


# --------------------------------------------------------------------------------------------------------------------
# Cells as numbers, to the last bit those that pandas reads.
#
# A plain number, of at most 15 digits and without an exponent, is the nearest double for every reader. All other texts
# are read by pandas, each distinct one once: it reads digits beyond the 15th in its own way, and whole numbers exactly
# where the column has no others, so it is told what else the column holds.


_PLAIN = "[0-9]{1,15}|-[1-9][0-9]{0,14}|-?[0-9]+[.][0-9]+"
_FRACTION, _NEGATIVE = "contains({0}, '.')", "NOT contains({0}, '.') AND starts_with({0}, '-')"
_WORDS = ("nan", "inf", "infinity")


class Wanted(NamedTuple):
    """A column that is read as numbers."""

    name: str
    absent: str
    """SQL of whether a cell is left out; what it would read as does not matter then."""


@dataclass(frozen=True)
class Number:
    """SQL of the cells of one column as numbers."""

    value: str
    """The number; null of a cell that is left out or is none. It may be infinite."""
    unread: str = "false"
    """Whether the text is no number."""
    infinite: str = "false"
    """Whether it is not finite, by its value or its word."""
    join: str = ""
    """What the statement has to join for it."""


def numbers(
    cells: Cells,
    requests: Sequence[Wanted],
    connection: "duckdb.DuckDBPyConnection",
    plain_columns: Collection[str] = frozenset(),
) -> list[Number]:
    """How each of the columns is read, by what its texts are like in the view ``cells``.

    Columns that are known to hold plain numbers alone are not looked at before.
    """
    unknown = iter(
        _looked_at(cells, [request for request in requests if request.name not in plain_columns], connection)
    )
    return [_number(cells, r, None) if r.name in plain_columns else next(unknown) for r in requests]


def _looked_at(cells: Cells, requests: Sequence[Wanted], connection: "duckdb.DuckDBPyConnection") -> list[Number]:
    if not requests:
        return []
    (statistics,) = connection.sql(
        f"SELECT {', '.join(_profile(cells, request) for request in requests)} FROM cells"
    ).fetchall()
    profiles = [statistics[5 * i : 5 * i + 5] for i in range(len(requests))]
    odd = _odd_texts(
        cells,
        [request if profile[-1] else None for request, profile in zip(requests, profiles, strict=True)],
        connection,
    )
    for i, (texts, (*samples, absent, _)) in enumerate(zip(odd, profiles, strict=True)):
        if texts is not None:
            connection.register(
                f"odd_{i}", _read(texts, [sample for sample in samples if sample is not None], bool(absent))
            )
    return [_number(cells, request, None if odd[i] is None else f"odd_{i}") for i, request in enumerate(requests)]


def plain(text: str) -> str:
    """SQL of whether every reader takes a text for the same number."""
    return f"(strlen({text}) <= 16 AND regexp_full_match({text}, '{_PLAIN}'))"


def _profile(cells: Cells, request: Wanted) -> str:
    """A plain text with a fraction, a negative and another whole one; how many are left out, and how many are odd."""
    text, is_plain = cells.text(request.name), f"NOT {request.absent} AND {plain(cells.text(request.name))}"
    fraction, negative = _FRACTION.format(text), _NEGATIVE.format(text)
    kinds = (fraction, negative, f"NOT ({fraction}) AND NOT ({negative})")
    picked = ", ".join(f"any_value({text}) FILTER (WHERE {is_plain} AND {kind})" for kind in kinds)
    return f"{picked}, count_if({request.absent}), count_if(NOT {request.absent} AND NOT {plain(text)})"


def _odd_texts(
    cells: Cells, requests: Sequence[Wanted | None], connection: "duckdb.DuckDBPyConnection"
) -> list[pa.Array | None]:
    """The distinct texts of each column that are not plain; None for a column without a request."""
    odd_requests = [request for request in requests if request is not None]
    if not odd_requests:
        return [None] * len(requests)
    lists = [
        f"list(DISTINCT {cells.text(name)}) FILTER (WHERE NOT {absent} AND NOT {plain(cells.text(name))})"
        for name, absent in odd_requests
    ]
    text_lists = connection.sql(f"SELECT {', '.join(lists)} FROM cells").to_arrow_table()
    texts = iter([column.combine_chunks().flatten() for column in text_lists.columns])
    return [None if request is None else next(texts) for request in requests]


def _number(cells: Cells, request: Wanted, odd: str | None) -> Number:
    """How a column is read, with the table of its odd texts if it has some."""
    text = cells.text(request.name)
    direct = f"TRY_CAST({text} AS DOUBLE)"
    if odd is None:
        return Number(f"CASE WHEN {request.absent} THEN NULL ELSE {direct} END")
    fault = f"coalesce({odd}.fault, 0)"
    return Number(
        f"CASE WHEN {request.absent} THEN NULL WHEN {plain(text)} THEN {direct} ELSE {odd}.number END",
        f"({fault} = 1 AND NOT {request.absent})",
        f"({fault} = 2 AND NOT {request.absent})",
        f"LEFT JOIN {odd} ON {text} = {odd}.text",
    )


def _read(texts: pa.Array, samples: Sequence[str], absent: bool) -> pa.Table:
    """Each text with its number, and its fault: 1 of no number, 2 of one that is not finite."""
    import pandas as pd

    odd = texts.to_pandas()
    beside = pd.Series([*samples, *([None] if absent else [])], dtype=odd.dtype)
    parsed = pd.to_numeric(pd.concat([odd, beside]), errors="coerce").to_numpy(dtype=float)[: len(odd)]
    words = odd.str.lower().str.lstrip("+-").isin(_WORDS).to_numpy(dtype=bool)
    fault = np.where(np.isinf(parsed) | words, 2, np.where(np.isnan(parsed), 1, 0)).astype(np.int8)
    return pa.table({"text": texts, "number": pa.array(parsed, from_pandas=True), "fault": fault})


# --------------------------------------------------------------------------------------------------------------------
# Why a row is refused: the rules in their order, of which the first that holds counts.


Line = tuple[str, str | None]
"""Reason, and the column to blame."""


class Rule(NamedTuple):
    """SQL of whether a row is refused, with the reason and column for the refusal."""

    broken: str
    reason: Refusal
    column: str | None

    @property
    def line(self) -> Line:
        """Reason and column."""
        return self.reason.value, self.column


def of_policy(source_view: Laid) -> list[Rule]:
    """What the source's own policy refuses."""
    return [Rule(f"q{i}", reason, column) for i, (reason, column) in enumerate(source_view.quarantined)]


class RowIds(NamedTuple):
    """SQL of the ids of rows, and the rules for rows without a unique id."""

    sql: str
    rules: list[Rule]


def row_ids(column: str | None, source_view: Laid, cells: Cells, connection: "duckdb.DuckDBPyConnection") -> RowIds:
    """Unique identifiers. Rows that share one are all refused, since none of them can be called the right one.

    Rows that are refused as repeats of another one share no identifier with it.
    """
    if column is None:
        return RowIds("CAST(place AS VARCHAR)", [])
    text, missing = cells.text(column), cells.missing(column)
    again = [f"q{i}" for i, (reason, _) in enumerate(source_view.quarantined) if reason is Refusal.DUPLICATE]
    repeat = " OR ".join(again) or "false"
    connection.execute(
        f"CREATE TEMP TABLE shared_ids AS SELECT {text} AS text FROM cells WHERE NOT {missing} AND NOT ({repeat}) "
        f"GROUP BY {text} HAVING count(*) > 1"
    )
    ((shared,),) = connection.sql("SELECT count(*) FROM shared_ids").fetchall()
    twice = f"NOT {missing} AND {text} IN (SELECT text FROM shared_ids)" if shared else "false"
    rules = [Rule(missing, Refusal.MISSING_ROW_ID, column), Rule(twice, Refusal.DUPLICATE_ROW_ID, column)]
    alone = f"{missing} OR ({twice}) OR {repeat}" if again else f"{missing} OR ({twice})"
    sql = f"CASE WHEN {alone} THEN {text} || '#' || CAST(place AS VARCHAR) ELSE {text} END"
    return RowIds(sql, rules)


def not_kept(keep: Mapping[str, Keep], ranges: Mapping[str, Number], cells: Cells, bound: BoundValues) -> list[Rule]:
    """Rows that the spec does not keep; a range keeps no cell that is missing or no number."""
    return [
        Rule(f"NOT ({_kept(name, rule, ranges, cells, bound)})", Refusal.FILTERED, name) for name, rule in keep.items()
    ]


def _kept(name: str, rule: Keep, ranges: Mapping[str, Number], cells: Cells, bound: BoundValues) -> str:
    if rule.of_dates:
        day = f"TRY_CAST({cells.text(name)} AS DATE)"
        within = [f"{day} IS NOT NULL"]
        within += [f"{day} >= {bound.value(rule.minimum)}"] if rule.minimum is not None else []
        within += [f"{day} <= {bound.value(rule.maximum)}"] if rule.maximum is not None else []
        return f"coalesce({' AND '.join(within)}, false)"
    if rule.ranged:
        low, high = (None if end is None else bound.value(end) for end in (rule.minimum, rule.maximum))
        number = ranges[name].value
        within = [f"({number}) IS NOT NULL", f"NOT {cells.missing(name)}"]
        within += [f"({number}) >= {low}"] if low else []
        within += [f"({number}) <= {high}"] if high else []
        return f"coalesce({' AND '.join(within)}, false)"
    return f"NOT {cells.missing(name)}" if rule.present else bound.among(cells.text(name), rule.values)


def unlisted(cells: Cells) -> list[Rule]:
    """Values that the mapping of a derived column does not list."""
    return [Rule(cells.unlisted(name), Refusal.UNKNOWN_CATEGORY, name) for name in cells.derived]


def decided(decision: Decision, cells: Cells, bound: BoundValues) -> str:
    """SQL of a decision: true, false, or null where the value is neither."""
    text = cells.text(decision.column)
    no, yes = bound.among(text, decision.unfavourable), bound.among(text, decision.favourable)
    return f"CASE WHEN {no} THEN false WHEN {yes} THEN true END"


REASONS_UNDECIDED: Final = (Refusal.DECISION_NOT_AUDITED, Refusal.NOT_A_DECISION)
"""Reasons for which an application that ended without a decision is refused."""


def undecided(decision: Decision, sql: str, cells: Cells, bound: BoundValues) -> list[Rule]:
    """Rows without a decision, with a value that is none, and with one that the audit is not about."""
    unknown, missing = f"({sql}) IS NULL", cells.missing(decision.column)
    neither = bound.among(cells.text(decision.column), decision.neither)
    return [
        Rule(f"{unknown} AND {missing}", Refusal.MISSING_DECISION, decision.column),
        *([Rule(neither, Refusal.NOT_A_DECISION, decision.column)] if decision.neither else []),
        Rule(f"{unknown} AND NOT {missing}", Refusal.DECISION_NOT_AUDITED, decision.column),
    ]


def untyped(
    columns: Mapping[str, ColumnSpec], numbers: Mapping[str, Number], cells: Cells, bound: BoundValues
) -> list[Rule]:
    """Values that do not fit the type of their column."""
    rules: list[Rule] = []
    for name, column in columns.items():
        if column.type is Kind.CONTINUOUS:
            rules.append(Rule(numbers[name].unread, Refusal.NOT_A_NUMBER, name))
            rules.append(Rule(numbers[name].infinite, Refusal.NOT_FINITE, name))
        elif column.order:
            is_listed = bound.among(cells.text(name), column.order)
            rules.append(Rule(f"NOT ({is_listed}) AND NOT {cells.absent(name)}", Refusal.UNKNOWN_CATEGORY, name))
    return rules


def first_broken(rules: Sequence[Rule]) -> tuple[str, list[Line]]:
    """SQL of the number of a row's line, null of a row that is used; and the lines by their number."""
    lines = list(dict.fromkeys(rule.line for rule in rules))
    cases = " ".join(f"WHEN {rule.broken} THEN {lines.index(rule.line)}" for rule in rules if rule.broken != "false")
    return f"CAST(CASE {cases} ELSE NULL END AS INTEGER)" if cases else "CAST(NULL AS INTEGER)", lines


# --------------------------------------------------------------------------------------------------------------------
# SQL of the group of every row, for each protected attribute.


def groups(protected: Sequence[Protected], ages: Mapping[str, Number], cells: Cells, bound: BoundValues) -> list[str]:
    """The group of each attribute; a crossed one joins those of its columns, by the attributes over them alone.

    Args:
        protected: the attributes.
        ages: the columns that are cut into bands, as numbers.
        cells: the view.
        bound: where values are bound.
    """
    single = {p.columns[0]: p for p in reversed(protected) if len(p.columns) == 1}
    out = []
    for p in protected:
        crossed = len(p.columns) > 1
        labels = [_group(column, single.get(column, p) if crossed else p, ages, cells, bound) for column in p.columns]
        out.append(" || ' and ' || ".join(labels))
    return out


def _group(column: str, p: Protected, ages: Mapping[str, Number], cells: Cells, bound: BoundValues) -> str:
    """Of one column; of a crossed attribute that lists no groups, its value. What is no number is in no band."""
    text, missing = cells.text(column), f"WHEN {cells.absent(column)} THEN {bound.value(p.missing)}"
    if p.bands:
        number, names = f"({ages[column].value})", [bound.value(name) for name in p.band_names]
        below = [f"WHEN {number} < {bound.value(end)} THEN {name}" for end, name in zip(p.bands, names, strict=False)]
        unlisted = f"WHEN {number} IS NULL OR NOT isfinite({number}) THEN {bound.value(p.unlisted)}"
        return f"CASE {missing} {unlisted} {' '.join(below)} ELSE {names[-1]} END"
    if not p.groups:
        return f"CASE {missing} ELSE {text} END"
    listed = " ".join(f"WHEN {bound.among(text, values)} THEN {bound.value(name)}" for name, values in p.groups.items())
    return f"CASE {listed} {missing} ELSE {bound.value(p.unlisted)} END"


# --------------------------------------------------------------------------------------------------------------------
# The statement of an audit: of every row of the source what the audit says of it.
#
# In any order it gives ``place``, ``row_id``, ``refused`` (the number of its line of reason and column, null of a row
# that is used), ``favourable``, ``outcome``, ``exempt`` (the first feature that is), ``g0``, ``g1``, ... (its groups)
# and ``v0``, ``v1``, ... (its typed columns).


@dataclass(frozen=True)
class Question:
    """The parts of the audit spec about rows."""

    source: Source
    row_id: str | None
    decision: Decision
    outcome: Decision | None
    protected: tuple[Protected, ...]
    columns: Mapping[str, ColumnSpec]
    """Those that are kept."""


@dataclass(frozen=True)
class Statement:
    """SQL over the views of a connection."""

    sql: str
    """The rows in any order."""
    lines: Sequence[Line]
    """Reason and column by the number in ``refused``."""
    cells: Cells
    rows: str
    """The rows and what is joined to them, for another question."""
    kept: str
    """Whether ``source.keep`` keeps a row, whatever else is said of it."""
    groups: Sequence[str]
    """The group of each attribute."""
    values: Mapping[str, str]
    """The typed value of each column."""


def statement(question: Question, source_view: Laid, connection: "duckdb.DuckDBPyConnection") -> Statement:
    """Lay the views and look into the columns, for the statement over them."""
    bound = BoundValues(connection)
    lay_texts(source_view, connection, bound)
    cells = lay_cells(source_view.columns, question.source, question.columns, connection, bound)
    continuous = [name for name, column in question.columns.items() if column.type is Kind.CONTINUOUS]
    ranged = [name for name, rule in question.source.keep.items() if rule.ranged and not rule.of_dates]
    banded = list(dict.fromkeys(p.columns[0] for p in question.protected if p.bands))
    requests = [*(Wanted(n, cells.absent(n)) for n in (*continuous, *banded)), *(Wanted(n, "false") for n in ranged)]
    parsed = numbers(cells, requests, connection, source_view.numbers)
    typed = dict(zip(continuous, parsed, strict=False))
    ages = dict(zip(banded, parsed[len(continuous) :], strict=False))
    ranges = dict(zip(ranged, parsed[len(continuous) + len(banded) :], strict=True))
    joins = [number.join for number in parsed if number.join]
    ids = row_ids(question.row_id, source_view, cells, connection)
    filtered = not_kept(question.source.keep, ranges, cells, bound)
    favourable = decided(question.decision, cells, bound)
    outcome = decided(question.outcome, cells, bound) if question.outcome else favourable
    rules = [*of_policy(source_view), *ids.rules, *filtered, *unlisted(cells)]
    rules += undecided(question.decision, favourable, cells, bound)
    rules += undecided(question.outcome, outcome, cells, bound) if question.outcome else []
    rules += untyped(question.columns, typed, cells, bound)
    refused, lines = first_broken(rules)
    chosen = ["place", f"{ids.sql} AS row_id", f"{refused} AS refused", f"{favourable} AS favourable"]
    features = [name for name, column in question.columns.items() if column.used]
    cases = " ".join(f"WHEN {cells.exempt(name)} THEN {bound.value(name)}" for name in features)
    first_exempt = f"CASE {cases} ELSE NULL END" if cases else "NULL::VARCHAR"
    chosen += [f"{outcome} AS outcome", f"{first_exempt} AS exempt"]
    group_of = groups(question.protected, ages, cells, bound)
    values = {name: _value(name, column, typed, cells) for name, column in question.columns.items()}
    chosen += [f"{sql} AS g{i}" for i, sql in enumerate(group_of)]
    chosen += [f"{sql} AS v{i}" for i, sql in enumerate(values.values())]
    rows = f"cells {' '.join(joins)}"
    keep_condition = " AND ".join(f"NOT ({rule.broken})" for rule in filtered) or "true"
    return Statement(f"SELECT {', '.join(chosen)} FROM {rows}", lines, cells, rows, keep_condition, group_of, values)


def _value(name: str, column: ColumnSpec, typed: Mapping[str, Number], cells: Cells) -> str:
    """A finite number or a text; null where it is missing or exempt."""
    if column.type is Kind.CONTINUOUS:
        number = typed[name]
        return (
            number.value
            if number.infinite == "false"
            else f"CASE WHEN isfinite({number.value}) THEN {number.value} END"
        )
    return f"CASE WHEN {cells.absent(name)} THEN NULL ELSE {cells.text(name)} END"
