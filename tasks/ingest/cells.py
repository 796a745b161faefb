"""Cells of a source as text that is compared with codes, in pandas: for few rows, and for distinct texts.

Whole sources are read by SQL of the same meaning: ``tasks.ingest.pushdown``.
"""

from typing import TYPE_CHECKING, Any

from schemas.audit.column import ColumnSpec
from schemas.audit.source import Source

if TYPE_CHECKING:
    import pandas as pd


def canonical(value: Any) -> str:
    """A cell as text to be compared with codes: trimmed, and 5.0 as 5."""
    text = "" if value is None else str(value).strip()
    head, dot, tail = text.partition(".")
    return head if dot and tail and not tail.strip("0") and head.lstrip("-").isdigit() else text


def missing_cells(frame: "pd.DataFrame", source: Source, features: dict[str, ColumnSpec]) -> "pd.DataFrame":
    """Which cells hold a text that means missing, in the source or in their own column."""
    missing = frame.isin([*source.missing, ""])
    for name, column in features.items():
        missing[name] |= frame[name].isin(column.missing)
    return missing
