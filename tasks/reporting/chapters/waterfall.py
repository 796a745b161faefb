"""The exclusion waterfall: rows in, refused by reason and out, stage by stage and group by group.

Counts come from the refusals, which hold applicants; only what disclosure control lets through leaves this module.
Cells are withheld before anything is added up for print, and a line of subtotals that would give a withheld cell away
is withheld with it.
"""

from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tasks.metrics.algorithm.disclosure import Policy, complement, rounded, small, withhold_table
from tasks.reporting.material import Material, anchor
from tasks.reporting.numbers import count, percent
from tasks.reporting.section import Cell, Row, Section, TableView

Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]

_ORDER = ("ingest", "preprocess", "score", "connect")
_UNKNOWN = "(not readable)"
_ALL = "All"
# a row refused twice counts once, where it was refused first
_SQL = """
WITH once AS (
    SELECT *, coalesce(list_position($order, stage), 99) AS place FROM refusals
    QUALIFY row_number() OVER (PARTITION BY row_id ORDER BY place, stage) = 1
)
SELECT r.stage, r.reason, coalesce(r."column", '') AS "column", coalesce(m."group", $unknown) AS "group",
       count(*) AS n, count(r.favourable) AS readable, count(*) FILTER (WHERE r.favourable) AS favourable
FROM once AS r LEFT JOIN (FROM memberships WHERE protected_attribute = $attribute) AS m USING (row_id)
GROUP BY r.stage, r.reason, 3, 4, place ORDER BY place, r.stage, n DESC, r.reason, 3, 4
"""
_SIZES = """
SELECT coalesce(m."group", $unknown) AS "group", count(*) AS n
FROM (SELECT row_id FROM memberships UNION SELECT row_id FROM refusals) AS a
LEFT JOIN (FROM memberships WHERE protected_attribute = $attribute) AS m USING (row_id)
GROUP BY ALL ORDER BY n DESC, 1
"""


@dataclass(frozen=True)
class Waterfall:
    """Counts of one protected attribute, before disclosure control; never printed as they are."""

    attribute: str
    groups: tuple[str, ...]
    lines: tuple[tuple[str, str, str], ...]
    """(stage, reason, column) of every line of refusals."""
    refused: Longs
    """``(lines, groups)``."""
    readable: Longs
    """``(lines, groups)`` of those, rows whose decision could be read."""
    favourable: Longs
    """``(lines, groups)`` of those, favourable decisions."""
    source: Longs
    """``(groups,)`` rows of the source."""

    @property
    def used(self) -> Longs:
        """``(groups,)`` rows that no stage refused."""
        return np.asarray(self.source - self.refused.sum(axis=0), dtype=np.int64)


def waterfall(refusals: pa.Table, memberships: pa.Table, attribute: str) -> Waterfall:
    """Count the refusals of one protected attribute's groups."""
    with duckdb.connect() as connection:
        connection.register("refusals", refusals)
        connection.register("memberships", memberships)
        said = {"attribute": attribute, "unknown": _UNKNOWN}
        sizes = connection.execute(_SIZES, said).fetchall()
        cells = connection.execute(_SQL, said | {"order": list(_ORDER)}).fetchall()
    groups = tuple(group for group, _ in sizes)
    lines = tuple(dict.fromkeys((stage, reason, column) for stage, reason, column, *_ in cells))
    counts = np.zeros((3, len(lines), len(groups)), dtype=np.int64)
    for stage, reason, column, group, *found in cells:
        counts[:, lines.index((stage, reason, column)), groups.index(group)] = found
    source = np.array([n for _, n in sizes], dtype=np.int64)
    return Waterfall(attribute, groups, lines, counts[0], counts[1], counts[2], source)


def chapter(material: Material, falls: tuple[Waterfall, ...]) -> Section:
    """One table of counts and one of approval rates for every protected attribute."""
    policy = material.policy
    words = (
        "Every row of the source is either used or refused with a reason. Which rows are refused decides whom the "
        "audit speaks of: where their approval rate differs from that of the rows used, the results hold for the "
        "rows used only.",
    )
    parts = tuple(
        Section(f"By {f.attribute}", anchor("waterfall", f.attribute), tables=(_counts(f, policy), _rates(f, policy)))
        for f in falls
    )
    return Section("Exclusions: from the source to the rows used", "waterfall", words, parts=parts)


def withheld_lines(fall: Waterfall, policy: Policy) -> set[tuple[str, str, str]]:
    """Lines of refusals whose total is withheld: it must not be printed elsewhere either."""
    totals = _hidden(fall, policy)[1]
    return {line for line, gone in zip(fall.lines, totals[:-1], strict=True) if gone}


def _hidden(fall: Waterfall, policy: Policy) -> tuple[Bools, Bools]:
    """Withheld cells ``(lines + 1, groups)``, the last line the rows used, and withheld totals ``(lines + 1,)``."""
    table = np.vstack([fall.refused, fall.used])
    totals = table.sum(axis=1)
    return withhold_table(policy, table), complement((totals > 0) & (totals < policy.smallest), totals)


def _counts(fall: Waterfall, policy: Policy) -> TableView:
    cells, totals = _hidden(fall, policy)
    hidden = np.column_stack([cells, totals])
    left, rows = fall.source, [_line("Rows in the source", fall.source, policy)]
    since = np.zeros(hidden.shape[1], dtype=np.int64)
    for i, (stage, reason, column) in enumerate(fall.lines):
        words = f"refused by {stage}: {reason.replace('_', ' ')}" + (f" ({column})" if column else "")
        rows.append(_line(words, fall.refused[i], policy, cells[i], bool(totals[i])))
        left, since = left - fall.refused[i], since + hidden[i]
        if i + 1 < len(fall.lines) and fall.lines[i + 1][0] != stage:
            gone = _giving_away(since, hidden[i + 1 :], left)
            since = np.where(gone, since, 0)
            rows.append(_line(f"Rows out of {stage}", left, policy, gone[:-1], bool(gone[-1])))
    rows.append(_line("Rows used", fall.used, policy, cells[-1], bool(totals[-1])))
    note = f"Counts below {policy.smallest} are withheld, and with them those that would give them away"
    note += f"; the others are rounded to {policy.round_to}." if policy.round_to > 1 else "."
    title = f"Exclusion waterfall by {fall.attribute}"
    return TableView(title, ("", _ALL, *fall.groups), tuple(rows), note)


def _giving_away(since: Longs, after: Bools, left: Longs) -> Bools:
    """Which cells of a line of subtotals to withhold, ``(groups + 1,)``, the total last.

    A subtotal that leaves a single withheld cell between itself and the next one above or below would give it away; a
    single withheld subtotal would be given away by its own line.
    """
    gone = np.asarray((since == 1) | (after.sum(axis=0) == 1))
    groups = complement(gone[:-1], left)
    if gone[-1] and not groups.any():
        groups[np.argmin(left)] = True
    return np.append(groups, gone[-1])


def _line(words: str, counts: Longs, policy: Policy, hidden: Bools | None = None, total: bool = False) -> Row:
    few = (counts > 0) & (counts < policy.smallest)
    gone = complement(few if hidden is None else few | hidden, counts)
    cells = [count_cell(int(counts.sum()), policy, total)]
    cells += [count_cell(int(n), policy, bool(h)) for n, h in zip(counts, gone, strict=True)]
    return (Cell(words), *cells)


def count_cell(n: int, policy: Policy, hidden: bool = False) -> Cell:
    """A number of people as published."""
    if hidden or 0 < n < policy.smallest:
        return Cell("withheld", "none")
    return Cell(count(rounded(policy, n)), "number")


def _rates(fall: Waterfall, policy: Policy) -> TableView:
    """Approval rates among the refused rows whose decision could be read."""
    cells, totals = _hidden(fall, policy)
    rows: list[Row] = []
    for i, (stage, reason, column) in enumerate(fall.lines):
        if not fall.readable[i].sum():
            continue
        n, events = fall.readable[i], fall.favourable[i]
        hidden = np.array([small(policy, int(a), int(b)) for a, b in zip(n, events, strict=True)]) | cells[i]
        hidden = complement(hidden, n)
        alone = hidden.sum() == 1
        whole = rate_cell(int(n.sum()), int(events.sum()), policy, bool(totals[i] or alone))
        each = [rate_cell(int(a), int(b), policy, bool(h)) for a, b, h in zip(n, events, hidden, strict=True)]
        words = f"{stage}: {reason.replace('_', ' ')}" + (f" ({column})" if column else "")
        rows.append((Cell(words), whole, *each))
    title = f"The lender's approval rate among refused rows, by {fall.attribute}"
    note = "Only refused rows whose decision could be read; – where there is none. To be held against the rows used."
    return TableView(title, ("Refused by", _ALL, *fall.groups), tuple(rows), note)


def rate_cell(n: int, events: int, policy: Policy, hidden: bool) -> Cell:
    """A share of people as published: by rounded counts where the policy rounds."""
    if n == 0:
        return Cell("–", "none")
    if hidden or small(policy, n, events):
        return Cell("withheld", "none")
    return Cell(percent(rounded(policy, events) / max(1, rounded(policy, n))), "number")
