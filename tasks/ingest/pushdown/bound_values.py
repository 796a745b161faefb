"""Values of the audit spec, bound as variables of the connection: none of them is a part of a statement's text.

Variables and not parameters: DuckDB holds the whole answer of a statement with parameters, and streams one without.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb


class BoundValues:
    """The variables of one connection."""

    def __init__(self, connection: "duckdb.DuckDBPyConnection") -> None:
        """None yet."""
        self._connection, self._bound = connection, 0

    def value(self, value: str | float) -> str:
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
