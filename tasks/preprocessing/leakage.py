"""Check for columns that are known only after the decision: its table, its refusal, and its result in words.

Scope: a frame of applications, and sentences from a row of the table. Arithmetic:
``tasks.preprocessing.algorithm.leakage``.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa

from schemas.audit.column import ColumnSpec
from schemas.errors import DataQualityError
from schemas.tables.source import LEAKAGE
from schemas.terms import Kind
from tasks.numerics.arrays import Floats
from tasks.preprocessing.algorithm.leakage import STOPS, WARNS, Telling, telling

Row = Mapping[str, Any]
"""A row of the table."""

MOST_ROWS: Final = 100_000
"""Applications that are looked at, evenly spaced among all: enough for an AUC to two digits."""

FILLED, VALUE, COMMON = "filled_in", "value", "most_common"


def check(frame: pd.DataFrame, columns: Mapping[str, ColumnSpec], allowed: Collection[str]) -> pa.Table:
    """Holds every column alone against the lender's decisions.

    Args:
        frame: Applications with the column ``favourable``, before any is refused for a missing value.
        columns: The features.
        allowed: Features that may tell the decision.

    Raises:
        DataQualityError: A column that is not allowed tells the decision with an AUC of ``STOPS`` or more.
    """
    some = frame.iloc[:: -(-len(frame) // MOST_ROWS) or 1]
    favourable = some["favourable"].to_numpy(dtype=bool)
    found = {
        name: telling(_numbers(some[name], column), favourable, _unordered(column)) for name, column in columns.items()
    }
    rows = [(name, of, auc) for name, each in found.items() for of, auc in _told(each)]
    stopped = [row for row in rows if row[2] >= STOPS and row[0] not in allowed]
    if stopped:
        raise DataQualityError(_refusal(found, rows, stopped))
    return LEAKAGE.build(
        feature=[name for name, _, _ in rows],
        tells=[of for _, of, _ in rows],
        n=[len(some)] * len(rows),
        auc=[auc for _, _, auc in rows],
        allowed=[name in allowed for name, _, _ in rows],
    )


def _told(found: Telling) -> Iterator[tuple[str, float]]:
    """What of a column tells the decision, and its AUC.

    Values are told of from ``STOPS`` on: a debt ratio is meant to tell the decision, that a value is there is not.
    """
    limits = ((FILLED, found.filled, WARNS), (VALUE, found.value, STOPS), (COMMON, found.common, STOPS))
    yield from ((of, auc) for of, auc, least in limits if auc >= least)


def _refusal(
    found: Mapping[str, Telling], rows: list[tuple[str, str, float]], stopped: list[tuple[str, str, float]]
) -> str:
    """What to do about the columns that tell the decision, with those that may tell it as well."""
    said = "; ".join(_because(name, of, auc, found[name]) for name, of, auc in stopped)
    names = list(dict.fromkeys(name for name, _, _ in stopped))
    others = [f"{name} (AUC {auc:.2f})" for name, _, auc in rows if name not in names and auc < STOPS]
    beside = f". Look at {', '.join(others)} as well" if others else ""
    they = "it is" if len(names) == 1 else "they are"
    message = f"{said}: {they} known only after the decision; exclude {'it' if len(names) == 1 else 'them'}"
    return f"{message} or say leakage: {{allow: [{', '.join(names)}]}}{beside}"


def _because(name: str, of: str, auc: float, found: Telling) -> str:
    if of == FILLED:
        shares = f"{found.filled_favourable:.0%} of approved and {found.filled_unfavourable:.0%} of denied rows"
        return f"{name} is filled in for {shares}"
    if of == COMMON:
        return f"whether {name} has its most common value tells the decision with an AUC of {auc:.2f}"
    return f"{name} alone tells the decision with an AUC of {auc:.2f}"


def _unordered(column: ColumnSpec) -> bool:
    return column.type is not Kind.CONTINUOUS and not column.order


def _numbers(values: pd.Series, column: ColumnSpec) -> Floats:
    """A column as numbers: categories by their order, else by any; NaN where missing."""
    if column.type is not Kind.CONTINUOUS:
        known = column.order or tuple(sorted(values.dropna().unique()))
        values = values.map({category: i for i, category in enumerate(known)})
    numbers: Floats = values.to_numpy(dtype=np.float64)
    return numbers


def said(row: Row, label: str) -> str:
    """The result of one column in a sentence, without a conclusion; ``label`` is what readers know it by."""
    what = {
        FILLED: f"Whether {label} is filled in",
        COMMON: f"Whether {label} has its most common value",
        VALUE: f"{label[:1].upper()}{label[1:]} alone",
    }[row["tells"]]
    how = "; how well is withheld" if row["auc"] is None else f" with an AUC of {row['auc']:.2f}"
    allowed = "; the spec allows it" if row["allowed"] else ""
    return f"{what} tells the decision{how}{allowed}."
