"""The view ``cells``: texts with those of derived columns, and which of them mean missing or exempt."""
# ruff: noqa: S608 names are ours, values are bound

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from schemas.audit.column import ColumnSpec
from schemas.audit.source import Derived, Source
from tasks.ingest.pushdown.bound_values import BoundValues

if TYPE_CHECKING:
    import duckdb


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
    """Make the view over ``texts``, whose columns have these names."""
    cells = Cells({name: i for i, name in enumerate((*names, *source.derive))}, tuple(source.derive))
    made = "".join(f", {_derived(cells, name, source, bound)}" for name in source.derive)
    flags = "".join(f", {_flags(cells, name, source, columns.get(name), bound)}" for name in cells.at)
    connection.execute(f"CREATE TEMP VIEW cells AS SELECT *{flags} FROM (SELECT *{made} FROM texts)")
    return cells


def _derived(cells: Cells, name: str, source: Source, bound: BoundValues) -> str:
    """The value and whether it is unlisted; texts that mean missing or exempt are carried over if they are."""
    derived: Derived = source.derive[name]
    text = cells.text(derived.column)
    listed = [code for codes in derived.values.values() for code in codes]
    unlisted = f"NOT {bound.among(text, [*listed, '', *source.missing, *source.exempt])}"
    values = " ".join(
        f"WHEN {bound.among(text, codes)} THEN {bound.value(value)}" for value, codes in derived.values.items()
    )
    value = f"CASE WHEN {unlisted} THEN '' {values} ELSE {text} END"
    return f"{value} AS {cells.text(name)}, {unlisted} AS {cells.unlisted(name)}"


def _flags(cells: Cells, name: str, source: Source, column: ColumnSpec | None, bound: BoundValues) -> str:
    text, own = cells.text(name), column.missing if column else ()
    missing = bound.among(text, ["", *source.missing, *own])
    exempt = f"({bound.among(text, source.exempt)}) AND NOT ({missing})"
    return f"{missing} AS {cells.missing(name)}, {exempt} AS {cells.exempt(name)}"
