"""Checks of the decision's direction and of leakage."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from schemas.audit.column import ColumnSpec
from schemas.audit.spec import Decision
from schemas.errors import DataQualityError
from schemas.tables.applications import DECISION_DIRECTION, LEAKAGE
from schemas.terms import Kind
from tasks.numerics.arrays import Floats
from tasks.preprocessing.algorithm import LEAST, STOPS, WARNS, association, direction

if TYPE_CHECKING:
    import pandas as pd

# --------------------------------------------------------------------------------------------------------------------
# Check of the decision column by columns with a direction: its table, and its result in words.
#
# Scope: a table from a frame of applications, and sentences from its row. Arithmetic:
# ``tasks.preprocessing.algorithm``.


Row = Mapping[str, Any]
"""The row of the table."""


def check(frame: "pd.DataFrame", columns: Mapping[str, ColumnSpec], signs: Mapping[str, int] | None) -> pa.Table:
    """Hold the columns with a direction against the lender's decisions.

    Args:
        frame: applications with the column ``favourable``.
        columns: the features.
        signs: feature -> 1 or -1; None where the codes of the decision say by themselves what is favourable.
    """
    of = {name: _numbers(frame[name], columns[name]) for name in signs or ()}
    favourable = frame["favourable"].to_numpy(dtype=bool)
    result = direction(np.column_stack(list(of.values())), list((signs or {}).values()), favourable) if of else None
    return DECISION_DIRECTION.build(
        decided_by=["codes" if signs is None else "columns" if result else "none"],
        columns=[", ".join(f"{name} {'+' if sign > 0 else '-'}" for name, sign in (signs or {}).items())],
        n=[len(frame)],
        auc=[result.auc if result else None],
        high=[result.high if result else None],
        reversed=[result is not None and result.reversed],
    )


def _numbers(values: "pd.Series", column: ColumnSpec) -> Floats:
    """A column as numbers: categories by their order, or else the alphabet; NaN where missing."""
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


# --------------------------------------------------------------------------------------------------------------------
# Check for columns that are known only after the decision: its table, its refusal, and its result in words.
#
# Scope: a frame of applications, and sentences from a row of the table. Arithmetic:
# ``tasks.preprocessing.algorithm``.


MOST_ROWS: Final = 100_000
"""Applications that are looked at, evenly spaced among all: enough for an AUC to two digits."""

FILLED, VALUE, COMMON = "filled_in", "value", "most_common"


def check_leakage(frame: "pd.DataFrame", columns: Mapping[str, ColumnSpec], allowed: Collection[str]) -> pa.Table:
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
    rows: list[tuple[str, str, float]] = []
    reasons = {}
    for name, column in columns.items():
        unordered = column.type is not Kind.CONTINUOUS and not column.order
        result = association(_numbers(some[name], column), favourable, unordered)
        shares = f"{result.filled_favourable:.0%} of approved and {result.filled_unfavourable:.0%} of denied rows"
        # A debt ratio is meant to predict the decision; that a value is present is not, and counts from ``WARNS`` on.
        for aspect, auc, least, reason in (
            (FILLED, result.filled, WARNS, f"{name} is filled in for {shares}"),
            (VALUE, result.value, STOPS, f"{name} alone tells the decision"),
            (COMMON, result.common, STOPS, f"whether {name} has its most common value tells the decision"),
        ):
            if auc >= least:
                rows.append((name, aspect, auc))
                reasons[name, aspect] = reason if aspect == FILLED else f"{reason} with an AUC of {auc:.2f}"
    stopped = [row for row in rows if row[2] >= STOPS and row[0] not in allowed]
    if stopped:
        names = list(dict.fromkeys(name for name, _, _ in stopped))
        suspects = [f"{name} (AUC {auc:.2f})" for name, _, auc in rows if name not in names and auc < STOPS]
        further = f". Look at {', '.join(suspects)} as well" if suspects else ""
        they, them = ("it is", "it") if len(names) == 1 else ("they are", "them")
        raise DataQualityError(
            f"{'; '.join(reasons[name, aspect] for name, aspect, _ in stopped)}: {they} known only after the decision; "
            f"exclude {them} or say leakage: {{allow: [{', '.join(names)}]}}{further}"
        )
    return LEAKAGE.build(
        feature=[name for name, _, _ in rows],
        tells=[aspect for _, aspect, _ in rows],
        n=[len(some)] * len(rows),
        auc=[auc for _, _, auc in rows],
        allowed=[name in allowed for name, _, _ in rows],
    )


def leakage_message(row: Row, label: str) -> str:
    """The result of one column in a sentence, without a conclusion; ``label`` is what readers know it by."""
    what = {
        FILLED: f"Whether {label} is filled in",
        COMMON: f"Whether {label} has its most common value",
        VALUE: f"{label[:1].upper()}{label[1:]} alone",
    }[row["tells"]]
    how = "; how well is withheld" if row["auc"] is None else f" with an AUC of {row['auc']:.2f}"
    allowed = "; the spec allows it" if row["allowed"] else ""
    return f"{what} tells the decision{how}{allowed}."
