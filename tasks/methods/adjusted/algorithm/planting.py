"""Harm planted in a file, and honest copies of the file without any.

An honest copy draws rows with replacement, and labels of the group and of the reference group, among applicants of like
risk: decisions tell nothing of the group beyond the columns, and chance is drawn anew as in another year. Planted harm
turns approvals of the group into denials at random. Gaps, and applications without a decision, stay as common as they
are in either group.

Scope: arrays in, arrays out. How often a copy is called outside: ``adjust.power``.
"""

from dataclasses import replace

import numpy as np
from scipy.special import logit

from tasks.methods.adjusted.algorithm.design import Control, build_design, complete_rows
from tasks.methods.adjusted.algorithm.examined import Files
from tasks.methods.adjusted.algorithm.expected import rule_of
from tasks.numerics.arrays import Bools, Floats, Ints, Longs

STRATA = 30
"""Of the chance of denial, each with as many applications (as for the strata of a propensity)."""
ROWS_A_STRATUM = 20
"""With fewer on average there are fewer strata."""
FEWEST_IN_CLUSTER = 10
"""Applications of a cluster whose share of members may go to another one."""


def risk_of(files: Files) -> Floats:
    """``(n,)`` chance of denial by the rule of the reference group's decided files, gaps filled; NaN where unusable.

    It makes strata alone, and enters no estimate.
    """
    filled = replace(files, controls=tuple(without_gaps(control) for control in files.controls))
    applications = filled.applications()
    rows = complete_rows(applications)
    design = build_design(applications, rows, "squared")
    x = design.x[:, np.r_[0, design.first_control : design.x.shape[1]]]
    risk = np.full(len(files.denied), np.nan)
    fitted = (design.group == files.reference) & ~files.undecided[rows.used]
    if fitted.any():
        risk[rows.used] = rule_of(x, files.denied[rows.used].astype(np.float64), fitted).p0
    return risk


def without_gaps(control: Control) -> Control:
    """A control without gaps: the median of a number, the commonest category."""
    finite = np.isfinite(control.values)
    if finite.all() or not finite.any():
        return control
    levels, counts = np.unique(control.values[finite], return_counts=True)
    middle = np.median(control.values[finite]) if control.kind == "number" else levels[counts.argmax()]
    return replace(control, values=np.where(finite, control.values, middle))


def risk_strata(files: Files, group: int, part: Bools | None = None) -> Ints:
    """``(n,)`` stratum of each row of a group and of the reference group; -1 of all others.

    Strata are of like chance of denial. Files that lack a column, and applications without a decision, have strata of
    their own, and so has a part.

    Args:
        files: all applications.
        group: which gets other labels.
        part: ``(n,)`` rows of a part that keeps its number of members.
    """
    either, risk = (files.group == group) | (files.group == files.reference), risk_of(files)
    complete = np.ones(len(risk), np.bool_)
    for control in files.controls:
        complete &= np.isfinite(control.values)
    kind = np.where(files.undecided, 2, np.where(complete, 0, 1)) + 3 * (0 if part is None else part.astype(np.int64))
    strata = np.full(len(risk), -1, np.int32)
    first = 0
    for number in np.unique(kind[either]):
        rows = either & (kind == number)
        rated = rows & np.isfinite(risk)
        count = max(1, min(STRATA, int(rated.sum()) // ROWS_A_STRATUM))
        ends = np.quantile(risk[rated], np.arange(1, count) / count) if rated.any() else np.zeros(0)
        strata[rows] = first + count
        strata[rated] = first + np.searchsorted(ends, risk[rated], side="right")
        first += count + 1
    return strata


def honest(files: Files, group: int, strata: Ints, rng: np.random.Generator) -> tuple[Files, Longs]:
    """A copy of the file without harm to a group, and the ``(n,)`` rows of the file that it is made of.

    In each stratum rows are drawn with replacement, and as many labels of the group as it has members there. Where rows
    hang together, the share of members of each large cluster goes to another one at random: a group that is mostly
    served by a few officers stays so, and what these officers are like is drawn anew.

    Args:
        files: all applications.
        group: which gets other labels.
        strata: as ``risk_strata`` gives them.
        rng: draws rows and labels.
    """
    inside = np.flatnonzero(strata >= 0)
    order = inside[np.argsort(strata[inside], kind="stable")]
    stratum, member = strata[order], files.group[order] == group
    counts, sizes = (np.bincount(stratum, weights, int(stratum.max(initial=0)) + 1) for weights in (member, None))
    first = np.cumsum(sizes) - sizes
    source = order[first[stratum] + np.floor(rng.random(len(order)) * sizes[stratum]).astype(np.int64)]
    rows = np.arange(len(strata))
    rows[order] = source
    score = rng.gumbel(size=len(order))
    if files.cluster is not None:
        score += tendency_of(files.cluster[source], files.group[source] == group, rng)
    ranked = np.lexsort((-score, stratum))
    chosen = np.zeros(len(order), np.bool_)
    chosen[ranked] = np.arange(len(order)) - first[stratum] < counts[stratum]
    copy = files.taken(rows)
    labels = copy.group.copy()
    labels[order] = np.where(chosen, group, files.reference)
    return replace(copy, group=labels), rows


def tendency_of(cluster: Ints, member: Bools, rng: np.random.Generator) -> Floats:
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
