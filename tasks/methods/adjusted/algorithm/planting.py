"""Harm planted in a file, and honest copies of the file without any.

An honest copy draws the labels of a group and of the reference group anew among applicants of like risk, so that
decisions tell nothing of the group beyond the columns, and chance is drawn anew as well. Planted harm turns approvals
of the group into denials at random. Both leave columns, places, gaps and applications without a decision as they are.

Scope: arrays in, arrays out. How often a copy is called outside: ``adjust.power``.
"""

from dataclasses import replace

import numpy as np
from scipy.special import logit

from tasks.methods.adjusted.algorithm.examined import Files
from tasks.numerics.arrays import Bools, Floats, Ints

STRATA = 30
"""Of the chance of denial, each with as many applications (as for the strata of a propensity)."""
ROWS_A_STRATUM = 20
"""With fewer on average there are fewer strata."""
FEWEST_IN_CLUSTER = 10
"""Applications of a cluster whose share of members may go to another one."""


def risk_strata(files: Files, risk: Floats, group: int, part: Bools | None = None) -> Ints:
    """``(n,)`` stratum of each row of a group and of the reference group; -1 of all others.

    Strata are of equal chance of denial. Files that lack a column, and applications without a decision, are a stratum
    each, so that either group keeps as many of them. With a part the strata inside it are others than those outside.

    Args:
        files: all applications.
        risk: ``(n,)`` chance of denial by the reference group's rule; NaN where a column or the decision is missing.
        group: whose labels are drawn.
        part: ``(n,)`` rows of a part that keeps its number of members.
    """
    either = (files.group == group) | (files.group == files.reference)
    rated = either & np.isfinite(risk)
    count = max(1, min(STRATA, int(rated.sum()) // ROWS_A_STRATUM))
    ends = np.quantile(risk[rated], np.arange(1, count) / count) if rated.any() else np.zeros(0)
    stratum = np.full(len(risk), count, np.int32)
    stratum[rated] = np.searchsorted(ends, risk[rated], side="right")
    stratum[files.undecided] = count + 1
    if part is not None:
        stratum = stratum + (count + 2) * part.astype(np.int32)
    return np.where(either, stratum, -1).astype(np.int32)


def honest(files: Files, group: int, strata: Ints, rng: np.random.Generator) -> Files:
    """The file with the labels of a group and of the reference group drawn anew within strata.

    Where rows hang together, the share of members of each large cluster goes to another one at random: a group that is
    mostly served by a few officers stays so, and what these officers are like is drawn anew.

    Args:
        files: all applications.
        group: whose labels are drawn.
        strata: as ``risk_strata`` gives them.
        rng: draws labels.
    """
    rows = np.flatnonzero(strata >= 0)
    stratum, member = strata[rows], files.group[rows] == group
    score = rng.gumbel(size=len(rows))
    if files.cluster is not None:
        score += _tendency(files.cluster[rows], member, rng)
    order = np.lexsort((-score, stratum))
    counts, sizes = (np.bincount(stratum, weights, int(stratum.max(initial=0)) + 1) for weights in (member, None))
    first = np.cumsum(sizes) - sizes
    drawn = np.zeros(len(rows), np.bool_)
    drawn[order] = np.arange(len(rows)) - first[stratum[order]] < counts[stratum[order]]
    labels = files.group.copy()
    labels[rows] = np.where(drawn, group, files.reference)
    return replace(files, group=labels)


def _tendency(cluster: Ints, member: Bools, rng: np.random.Generator) -> Floats:
    """``(m,)`` log odds of membership of a row's cluster, the odds of large clusters permuted among them."""
    _, code, size = np.unique(cluster, return_inverse=True, return_counts=True)
    share = float(member.mean())
    members = np.bincount(code, member, len(size))
    shrunk = (members + FEWEST_IN_CLUSTER * share) / (size + FEWEST_IN_CLUSTER)
    odds = logit(shrunk) if 0 < share < 1 else np.zeros(len(size))
    large = np.flatnonzero(size >= FEWEST_IN_CLUSTER)
    tendency = np.full(len(size), logit(share) if 0 < share < 1 else 0.0)
    tendency[large] = odds[rng.permutation(large)]
    return np.asarray(tendency[code])


def harmed(files: Files, group: int, points: float, draw: Floats, part: Bools | None = None) -> Files:
    """The file with approvals of a group, or of a part of it, turned into denials.

    Every approval turns with the same chance, so that ``points`` of the decided members more are denied on average;
    all of them where fewer were approved.

    Args:
        files: all applications.
        group: which is harmed.
        points: share of the decided members.
        draw: ``(n,)`` uniform; an approval turns where it is below the chance.
        part: ``(n,)`` rows of the part.
    """
    members = (files.group == group) & ~files.undecided
    if part is not None:
        members &= part
    approved = members & ~files.denied
    chance = points * members.sum() / max(int(approved.sum()), 1)
    return replace(files, denied=files.denied | (approved & (draw < chance)))
