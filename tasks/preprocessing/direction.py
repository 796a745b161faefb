"""Check of the decision column by columns with a direction: its table, and its result in words.

Scope: a table from a frame of applications, and sentences from its row. Arithmetic:
``tasks.preprocessing.algorithm.decision_direction``.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from schemas.audit.column import ColumnSpec
from schemas.audit.spec import Decision
from schemas.tables.source import DECISION_DIRECTION
from schemas.terms import Kind
from tasks.numerics.arrays import Floats
from tasks.preprocessing.algorithm.decision_direction import LEAST, direction

Row = Mapping[str, Any]
"""The row of the table."""


def check(frame: pd.DataFrame, columns: Mapping[str, ColumnSpec], signs: Mapping[str, int] | None) -> pa.Table:
    """Hold the columns with a direction against the lender's decisions.

    Args:
        frame: applications with the column ``favourable``.
        columns: the features.
        signs: feature -> 1 or -1; None where the codes of the decision say by themselves what is favourable.
    """
    of = {name: _numbers(frame[name], columns[name]) for name in signs or ()}
    favourable = frame["favourable"].to_numpy(dtype=bool)
    found = direction(np.column_stack(list(of.values())), list((signs or {}).values()), favourable) if of else None
    return DECISION_DIRECTION.build(
        decided_by=["codes" if signs is None else "columns" if found else "none"],
        columns=[", ".join(f"{name} {'+' if sign > 0 else '-'}" for name, sign in (signs or {}).items())],
        n=[len(frame)],
        auc=[found.auc if found else None],
        high=[found.high if found else None],
        reversed=[found is not None and found.reversed],
    )


def _numbers(values: pd.Series, column: ColumnSpec) -> Floats:
    """A column as numbers: categories by their order, NaN where missing."""
    if column.type is not Kind.CONTINUOUS:
        order = column.order or tuple(sorted(values.dropna().unique()))
        values = values.map({category: i for i, category in enumerate(order)})
    numbers: Floats = values.to_numpy(dtype=np.float64)
    return numbers


def warnings(row: Row, decision: Decision) -> tuple[str, ...]:
    """The warning of a decision that is read the wrong way round, if it is."""
    if not row["reversed"]:
        return ()
    return (
        f"columns_swapped: applications that look better by {row['columns']} were decided on less favourably (AUC "
        f"{row['auc']:.2f}, upper bound {row['high']:.2f}, below 0.5): are favourable {list(decision.favourable)} and "
        f"unfavourable {list(decision.unfavourable)} swapped? A column that should not count: verdicts.direction",
    )


def said(row: Row) -> str:
    """The result in a sentence, without a conclusion."""
    if row["decided_by"] == "codes":
        return "Which actions are favourable follows from the codes of HMDA."
    if row["decided_by"] == "columns":
        return (
            f"Columns with a direction ({row['columns']}), taken together, rank the favourable decision with an AUC of "
            f"{row['auc']:.2f}; 0.5 is no better than chance, and above 0.5 is expected."
        )
    return NOT_CHECKED if not row["columns"] else f"{NOT_CHECKED[:-1]}, or fewer than {LEAST} decisions of either kind."


NOT_CHECKED = (
    "Decision column not checked: no column has a direction (`constraint` or `verdicts.direction`: up or down)."
)
