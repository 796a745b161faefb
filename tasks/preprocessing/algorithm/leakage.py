"""Tests whether a column is known only after the decision: the AUC of its values, and of their being filled in.

A file may write 0 for what is not there: that a number is the most common one counts as its being filled in does.

A lender sets an interest rate once it approves. Where the rate stands, the application was approved, and a model that
sees it learns the decision from it (label leakage). Each column is held against the decision alone.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from tasks.numerics.arrays import Bools, Floats

LEAST = 10
"""Decisions of either kind below which nothing is said."""

STOPS, WARNS = 0.9, 0.7
"""AUC from which a column is taken to be known after the decision, and from which being filled in is told of."""


@dataclass(frozen=True)
class Telling:
    """How well one column ranks the decision. AUCs are at least 0.5, in whichever direction; NaN where unknown."""

    filled: float
    """Of whether it is filled in."""
    value: float
    """Of its values, among applications that have one."""
    common: float
    """Of whether it is the most common number; NaN for codes, 0.5 where there are no three numbers."""
    filled_favourable: float
    """Share of the favourable decisions that have a value."""
    filled_unfavourable: float


def telling(values: Floats, favourable: Bools, unordered: bool) -> Telling:
    """Holds one column against the decision.

    Args:
        values: ``(n,)`` numbers or codes of categories; NaN where missing.
        favourable: ``(n,)`` decisions.
        unordered: Whether the codes have no order: categories then rank by their share of favourable decisions.
    """
    known = np.isfinite(values)
    own = favourable[known]
    ranks = _shares(values[known].astype(np.int64), own) if unordered else values[known]
    return Telling(
        auc(known.astype(np.float64), favourable),
        auc(ranks, own, either_way=not unordered),
        np.nan if unordered else auc(_most_common(values[known]), own),
        _share(known, favourable),
        _share(known, ~favourable),
    )


def auc(values: Floats, favourable: Bools, *, either_way: bool = True) -> float:
    """Area under the ROC curve of ``(n,)`` numbers, ties as halves, at least 0.5; NaN for few.

    Args:
        values: ``(n,)`` numbers.
        favourable: ``(n,)`` decisions.
        either_way: Whether small numbers may be those of favourable decisions; else an area below 0.5 is chance.
    """
    good, bad = int(np.count_nonzero(favourable)), int(np.count_nonzero(~favourable))
    if min(good, bad) < LEAST:
        return np.nan
    above = scipy.stats.rankdata(values)[favourable].sum() - good * (good + 1) / 2
    area = float(above / (good * bad))
    return max(area, 1 - area if either_way else 0.5)


def _most_common(values: Floats) -> Floats:
    """``(n,)`` 1 where a number is the most common one; nowhere, where there are no three numbers."""
    found, counts = np.unique(values, return_counts=True)
    if len(found) < 3:
        return np.zeros(len(values))
    common: Floats = (values == found[np.argmax(counts)]).astype(np.float64)
    return common


def _shares(codes: "np.ndarray[tuple[int], np.dtype[np.int64]]", favourable: Bools) -> Floats:
    """For each row the share of favourable decisions of its category among the other half of the rows.

    By the row itself, a category of one row would always be right. Categories that the other half lacks have the share
    of all.
    """
    out = np.full(len(codes), favourable.mean() if len(codes) else np.nan)
    halves = _halves(favourable)
    size = int(codes.max(initial=-1)) + 1
    for half in (halves, ~halves):
        counts = np.bincount(codes[~half], minlength=size)
        events = np.bincount(codes[~half], weights=favourable[~half], minlength=size)
        there = half & (counts[codes] > 0)
        out[there] = events[codes[there]] / counts[codes[there]]
    return out


def _halves(favourable: Bools) -> Bools:
    """``(n,)`` a drawn half of the decisions of either kind: in a file that alternates them, no other half is fair."""
    rng, half = np.random.default_rng(0), np.zeros(len(favourable), dtype=bool)
    for side in (favourable, ~favourable):
        half[side] = rng.permutation(int(side.sum())) % 2 == 0
    return half


def _share(known: Bools, among: Bools) -> float:
    return float(known[among].mean()) if among.any() else np.nan
