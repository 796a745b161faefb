"""Tests whether missing values predict the decision: decisions by missing column, and the AUC of all flags.

A lender may stop asking once it denies, or deny applicants who do not answer. A value is then missing because of the
decision, and a model that sees missingness or imputed values learns the decision from it (label leakage).
"""

from dataclasses import dataclass

import numpy as np

from tasks.numerics.arrays import Bools, Longs

FOLDS = 5
_NORMAL = 1.96


@dataclass(frozen=True)
class Lacking:
    """Counts of applications by flag, each ``(f,)``."""

    flagged: Longs
    favourable: Longs
    """Of the flagged, favourable decisions."""
    elsewhere: Longs
    """Of the flagged, those whose refusal names another flag."""
    favourable_elsewhere: Longs
    """Of these, favourable decisions."""


def by_reason(gone: Bools, exempt: Bools) -> Bools:
    """Flags ``(n, 2 f)`` of what ``(n, f)`` is gone: first of applications not exempt from reporting ``(n,)``.

    A value that need not be reported is another thing than one that nobody knows, and decisions differ accordingly.
    """
    return np.column_stack([gone & ~exempt[:, None], gone & exempt[:, None]])


def lacking(flags: Bools, favourable: Bools, named: Longs) -> Lacking:
    """Count who lacks what.

    Args:
        flags: ``(n, f)`` whether an application lacks a feature, for a reason.
        favourable: ``(n,)`` decisions.
        named: ``(n,)`` number of the flag that the refusal of an application names; any for a complete one.
    """
    other = flags & (named[:, None] != np.arange(flags.shape[1]))
    approved = favourable[:, None]
    counts = (np.count_nonzero(table, axis=0) for table in (flags, flags & approved, other, other & approved))
    return Lacking(*(np.asarray(count, np.int64) for count in counts))


def auc_of_missingness(flags: Bools, favourable: Bools) -> float:
    """How well the flags ``(n, f)`` of what is missing rank the decisions ``(n,)``: 0.5 is not at all.

    The mean over folds of the AUC of a logistic regression on rows that it was not fitted on; NaN where nothing is
    missing, or fewer decisions of one kind than folds.
    """
    used = flags[:, flags.any(axis=0)]
    rarer = min(np.count_nonzero(favourable), np.count_nonzero(~favourable))
    if not used.shape[1] or rarer < FOLDS:
        return np.nan
    from sklearn.linear_model import LogisticRegression  # a plan reaches this module, and fits nothing
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    folds = StratifiedKFold(FOLDS)
    scores = cross_val_score(LogisticRegression(), used.astype(float), favourable, cv=folds, scoring="roc_auc")
    return float(scores.mean())


def beyond_chance(auc: float, favourable: int, unfavourable: int) -> bool:
    """Whether an AUC on so many decisions is further from 0.5 than chance takes it in 19 of 20 cases.

    By the variance of the Mann-Whitney statistic without ties, ``(a + b + 1) / (12 a b)``; ties make it smaller.
    """
    error = np.sqrt((favourable + unfavourable + 1) / (12 * favourable * unfavourable))
    return bool(abs(auc - 0.5) > _NORMAL * error)
