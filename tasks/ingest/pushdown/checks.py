"""Whether what was read can be audited: both decisions, every group that the spec names, and someone to compare."""
# ruff: noqa: S608 names are ours

from collections.abc import Sequence
from typing import TYPE_CHECKING

from schemas.audit.source import Source
from schemas.audit.spec import Decision, Protected
from schemas.errors import DataQualityError, SpecError, TooFewError, nearest
from tasks.ingest import year_of_rows
from tasks.ingest.pushdown.judged import Judged
from tasks.ingest.pushdown.statement import Statement

if TYPE_CHECKING:
    import duckdb


def year(
    column: str, source: Source, wanted: int, statement: Statement, connection: "duckdb.DuckDBPyConnection"
) -> int | None:
    """The year by the rows that are kept and have one; None where none has.

    Raises:
        DataQualityError: a row is of another year than the one that is wanted.
    """
    text, missing = statement.cells.text(column), statement.cells.missing(column)
    found = connection.sql(
        f"SELECT {text}, count(*) FROM {statement.rows} WHERE {statement.kept} AND NOT {missing} "
        f"GROUP BY {text} ORDER BY count(*) DESC, min(place)"
    ).fetchall()
    return year_of_rows.year_of(source.words, column, dict(found), wanted)


def check_decision(decision: Decision, statement: Statement, connection: "duckdb.DuckDBPyConnection") -> None:
    """A side of the decision that no row has, beside values of neither side, is a misspelling.

    Raises:
        SpecError: the side, with the nearest of the values that rows have.
    """
    text, missing = statement.cells.text(decision.column), statement.cells.missing(decision.column)
    found = {value for (value,) in connection.sql(f"SELECT DISTINCT {text} FROM cells WHERE NOT {missing}").fetchall()}
    neither = sorted(found - {*decision.favourable, *decision.unfavourable})
    for side in ("favourable", "unfavourable"):
        wanted = getattr(decision, side)
        if neither and found.isdisjoint(wanted):
            hint = nearest(wanted[0], neither)
            raise SpecError(f"no row of {decision.column!r} holds any of {list(wanted)}; {hint}", ("decision", side))


def check_usable(judged: Judged, source: Source, decision: Decision, connection: "duckdb.DuckDBPyConnection") -> int:
    """The number of rows that are used, which have both decisions.

    Raises:
        DataQualityError: there is no row, or none that can be used, with the reasons that refuse most.
        TooFewError: every decision is the same.
    """
    name = " and ".join(source.paths) or source.kind
    if judged.rows == 0:
        raise DataQualityError(f"{name} has no rows: at least one application is needed; give a table with rows")
    ((usable, favourable),) = connection.sql(
        "SELECT count(*), count_if(favourable) FROM judged WHERE refused IS NULL"
    ).fetchall()
    if usable == 0:
        raise DataQualityError(
            f"no row of {name} can be used: {_most_refused(judged, connection)}; "
            "look at `decision`, `columns` and `source` in the spec"
        )
    if favourable in (0, usable):
        side = "favourable" if favourable else "unfavourable"
        every = f"all {usable:,} usable decisions are" if usable > 1 else "the one usable decision is"
        raise TooFewError(
            f"{every} {side}, so there is nothing to compare: add rows of both kinds, or mend the spec; "
            f"decision.column is {decision.column!r}, favourable {list(decision.favourable)}"
        )
    return int(usable)


def check_groups(protected: Sequence[Protected], usable: int, connection: "duckdb.DuckDBPyConnection") -> None:
    """Every group that the spec names is there, and two of each attribute are left among the rows that are used.

    Raises:
        SpecError: no row belongs to a group, with the nearest that is there.
        TooFewError: one group is left, or the reference group is not.
    """
    for i, p in enumerate(protected):
        found = connection.sql(f"SELECT g{i}, bool_or(refused IS NULL) FROM judged GROUP BY g{i}").fetchall()
        seen, left = sorted(group for group, _ in found), {group for group, used in found if used}
        for group in (*p.groups, p.reference):
            if group not in seen:
                where = ("groups", group) if group in p.groups else ("reference",)
                raise SpecError(f"no row belongs to group {group!r}; {nearest(group, seen)}", ("protected", i, *where))
        if len(left) == 1:
            raise TooFewError(
                f"protected attribute {p.name!r} has one group only among the {usable:,} usable rows "
                f"({next(iter(left))!r}): there is no group to compare it with"
            )
        if p.reference not in left:
            raise TooFewError(
                f"every row of the reference group {p.reference!r} of {p.name!r} was refused: "
                "look at `columns` (types and bounds), or choose another reference"
            )


def _most_refused(judged: Judged, connection: "duckdb.DuckDBPyConnection") -> str:
    """The three lines with most rows, of as many the one that came first."""
    query = "SELECT refused, count(*) FROM judged GROUP BY refused ORDER BY count(*) DESC, min(place) LIMIT 3"
    found = [(judged.lines[line], rows) for line, rows in connection.sql(query).fetchall()]
    return "; ".join(f"{rows} rows: {reason} ({column})" for (reason, column), rows in found)
