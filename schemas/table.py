"""Declaration of a table, from which come its Arrow schema, its expectations and its dictionary entry.

Scope: the form of declarations. The declarations themselves: ``schemas.tables``.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

Type = Literal["string", "double", "int64", "int32", "bool", "doubles", "strings", "binary"]
"""``doubles`` and ``strings`` are lists of them."""

_ARROW: dict[str, pa.DataType] = {
    "string": pa.string(),
    "double": pa.float64(),
    "int64": pa.int64(),
    "int32": pa.int32(),
    "bool": pa.bool_(),
    "doubles": pa.list_(pa.float64()),
    "strings": pa.list_(pa.string()),
    "binary": pa.binary(),
}


@dataclass(frozen=True)
class Column:
    """One column: its type, what it means and what its values must keep."""

    name: str
    type: Type
    description: str
    nullable: bool = False
    minimum: float | None = None
    maximum: float | None = None
    codes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """One table: its columns in order, its key, and the meaning of one row."""

    name: str
    description: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    per_application: bool = False
    """Whether a row is one application, so that a bad row can be set aside without harm to the rest."""
    open: bool = False
    """Whether the audit spec appends columns of its own."""
    restricted: bool = False
    """Whether it holds personal rows that never reach a report."""
    parts: tuple[str, ...] = ()
    """Columns of the key whose values part people, empty of a whole: all counts of parts are published, or none."""
    covered: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Parts that overlap: the value of a row, and those of the rows that hold all of its people, and perhaps more."""
    inside: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Table and its parts that hold all people of a row of this one; without parts the fullest row of the same group.

    Who they have more is told by both, and so is withheld with this one where it is few.
    """
    goes_with: str = ""
    """Table with ``parts`` that would tell the counts of this one, and takes them along."""
    of_counts: tuple[str, ...] = ()
    """Numbers that follow from the counts of their row, and would tell them where one is withheld or rounded."""

    def schema(self) -> pa.Schema:
        """The Arrow schema of the declared columns."""
        return pa.schema([pa.field(c.name, _ARROW[c.type], nullable=c.nullable) for c in self.columns])

    def extended(self, columns: Iterable[Column]) -> "Table":
        """The declaration with the audit spec's own columns appended."""
        return replace(self, columns=self.columns + tuple(columns), open=False)

    def build(self, /, **arrays: object) -> pa.Table:
        """An Arrow table of these columns, in the declared order and types.

        Raises:
            pa.ArrowInvalid: an array does not fit its declared type.
        """
        fields = self.schema()
        return pa.table({f.name: pa.array(arrays[f.name], f.type, from_pandas=True) for f in fields}, schema=fields)

    def empty(self) -> pa.Table:
        """A table of no rows."""
        return self.schema().empty_table()
