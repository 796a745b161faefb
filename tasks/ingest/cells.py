"""Converts cells to values: identifiers, decisions and typed columns, with the first reason to refuse a row.

Nothing raises here: a cell that cannot be used refuses its row, and the row is counted.
"""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from schemas.audit.column import ColumnSpec
from schemas.audit.source import Keep, Source
from schemas.audit.spec import Decision
from schemas.tables.applications import REFUSALS
from schemas.terms import Kind, Refusal

Bools = NDArray[np.bool_]


def canonical(value: Any) -> str:
    """A cell as text to be compared with codes: trimmed, and 5.0 as 5."""
    text = "" if value is None else str(value).strip()
    head, dot, tail = text.partition(".")
    return head if dot and tail and not tail.strip("0") and head.lstrip("-").isdigit() else text


def missing_cells(frame: pd.DataFrame, source: Source, features: dict[str, ColumnSpec]) -> pd.DataFrame:
    """Which cells hold a text that means missing, in the source or in their own column."""
    missing = frame.isin([*source.missing, ""])
    for name, column in features.items():
        missing[name] |= frame[name].isin(column.missing)
    return missing


class Refused:
    """The first reason for which each row is refused, with the column to blame."""

    def __init__(self, rows: int) -> None:
        self.reason = np.full(rows, "", dtype=object)
        self.column = np.full(rows, None, dtype=object)

    def mark(self, rows: Bools, reason: Refusal, column: str | None = None) -> None:
        """Refuse rows that are not refused yet; ``rows`` is ``(n,)``."""
        new = rows & (self.reason == "")
        self.reason[new], self.column[new] = reason.value, column

    def table(self, ids: list[str], source_row: list[int], favourable: NDArray[Any]) -> pa.Table:
        """The refused rows, in the shape of ``REFUSALS``."""
        at = np.flatnonzero(self.reason != "")
        return REFUSALS.build(
            row_id=[ids[i] for i in at],
            source_row=[source_row[i] for i in at],
            stage=["ingest"] * len(at),
            reason=self.reason[at],
            column=self.column[at],
            detail=[None] * len(at),
            favourable=favourable[at],
            weight=np.ones(len(at)),
        )


def row_ids(
    frame: pd.DataFrame, source_row: list[int], column: str | None, missing: pd.DataFrame, refused: Refused
) -> list[str]:
    """Unique identifiers. Rows that share one are all refused, since none of them can be called the right one."""
    if column is None:
        return [str(i) for i in source_row]
    refused.mark(missing[column].to_numpy(), Refusal.MISSING_ROW_ID, column)
    twice = frame[column].duplicated(keep=False).to_numpy() & ~missing[column].to_numpy()
    refused.mark(twice, Refusal.DUPLICATE_ROW_ID, column)
    unique = ~(twice | missing[column].to_numpy())
    return [v if ok else f"{v}#{row}" for v, ok, row in zip(frame[column], unique, source_row, strict=True)]


def derive(frame: pd.DataFrame, source: Source) -> dict[str, Bools]:
    """Add the derived columns; gives by name the rows ``(n,)`` whose value the mapping does not list.

    Texts that mean missing or exempt are carried over where the mapping does not list them.
    """
    unlisted = {}
    for name, derived in source.derive.items():
        value_of = {code: value for value, codes in derived.values.items() for code in codes}
        values = frame[derived.column]
        unlisted[name] = ~values.isin([*value_of, "", *source.missing, *source.exempt]).to_numpy()
        frame[name] = values.map(lambda cell, known=value_of: known.get(cell, cell)).mask(unlisted[name], "")
    return unlisted


def keep_only(frame: pd.DataFrame, missing: pd.DataFrame, keep: dict[str, Keep], refused: Refused) -> Bools:
    """Refuse the rows that the spec does not keep; gives ``(n,)`` those that it keeps."""
    kept = np.ones(len(frame), dtype=bool)
    for name, rule in keep.items():
        own = _kept(frame[name], missing[name], rule)
        refused.mark(~own, Refusal.FILTERED, name)
        kept &= own
    return kept


def _kept(values: pd.Series, absent: pd.Series, rule: Keep) -> Bools:
    if rule.ranged:
        low = -np.inf if rule.minimum is None else rule.minimum
        high = np.inf if rule.maximum is None else rule.maximum
        within = pd.to_numeric(values, errors="coerce").between(low, high)  # false of a cell that is no number
        return np.asarray(within & ~absent, dtype=bool)
    return np.asarray(~absent if rule.present else values.isin(rule.values), dtype=bool)


def decide(frame: pd.DataFrame, missing: pd.DataFrame, decision: Decision, refused: Refused) -> NDArray[np.object_]:
    """True, False, or None where the value is neither."""
    values = frame[decision.column]
    out = np.full(len(frame), None, dtype=object)
    out[values.isin(decision.favourable).to_numpy()] = True
    out[values.isin(decision.unfavourable).to_numpy()] = False
    unknown = np.array([decided is None for decided in out], dtype=bool)
    absent = missing[decision.column].to_numpy()
    refused.mark(unknown & absent, Refusal.MISSING_DECISION, decision.column)
    refused.mark(unknown & ~absent, Refusal.DECISION_NOT_AUDITED, decision.column)
    return out


def typed(values: pd.Series, absent: pd.Series, name: str, column: ColumnSpec, refused: Refused) -> Any:
    """The column as numbers or text, None where absent; a value that does not fit refuses its row."""
    gone = absent.to_numpy()
    if column.type is Kind.CONTINUOUS:
        numbers = pd.to_numeric(values.where(~absent), errors="coerce").to_numpy(dtype=float)
        words = values.str.lower().str.lstrip("+-").isin(["nan", "inf", "infinity"]).to_numpy()
        refused.mark(np.isnan(numbers) & ~gone & ~words, Refusal.NOT_A_NUMBER, name)
        refused.mark((np.isinf(numbers) | words) & ~gone, Refusal.NOT_FINITE, name)
        return np.where(np.isfinite(numbers), numbers, np.nan)
    if column.order:
        refused.mark(~values.isin(column.order).to_numpy() & ~gone, Refusal.UNKNOWN_CATEGORY, name)
    return np.where(gone, None, values.to_numpy())
