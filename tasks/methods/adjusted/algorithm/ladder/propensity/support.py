"""Support: how far the reference group has applicants like those of the group, by the propensity and by columns."""

import math
from dataclasses import dataclass

import numpy as np

from tasks.methods.adjusted.algorithm.ladder.propensity.overlap import overlap_weights
from tasks.methods.adjusted.algorithm.ladder.propensity.score import Propensity
from tasks.numerics.arrays import Bools, Floats

INSIDE = (0.05, 0.95)
"""Propensities with support on both sides (Crump and others 2009 advise 0.1 and 0.9)."""
CALIPER = 0.25
"""Standard deviations of the logit of e within which a reference applicant is near (Rosenbaum and Rubin 1985)."""


@dataclass(frozen=True)
class Support:
    """Overlap of a group with the reference group on one rung."""

    rung: int
    group: int
    n: int
    """Rows of the group."""
    inside: float
    """Share of the group's rows with a propensity in [0.05, 0.95]; 1 on rung 0, which adjusts for nothing."""
    comparable: float
    """The same at equal sizes of both groups (odds of e times reference rows over group rows): what is judged, as the
    propensity of a small group is below 0.05 for its size alone."""
    difference_raw: float
    """Largest standardised difference of a column: difference of means over the deviation of both groups together."""
    column_raw: str
    difference_weighted: float
    """The same after overlap weights."""
    column_weighted: str
    unmatched: float
    """Share of the group's rows without a reference applicant within 0.25 standard deviations of the logit of e."""
    reason: str = ""


def measure_support(propensity: Propensity, rung: int, group: int) -> Support:
    """Support of a group on a rung."""
    pair, e = propensity.pair, propensity.e
    n = int(pair.member.sum())
    if pair.x.shape[1] < 2:
        return Support(rung, group, n, 1.0, 1.0, math.nan, "", math.nan, "", 0.0)
    raw = standardised_differences(pair.x[:, 1:], pair.member, np.ones(len(e)))
    weighted = standardised_differences(pair.x[:, 1:], pair.member, overlap_weights(propensity))
    of_members = np.clip(e[pair.member], 1e-12, 1 - 1e-12)
    odds = of_members / (1 - of_members) * (len(e) - n) / n
    return Support(
        rung=rung,
        group=group,
        n=n,
        inside=_share_inside(of_members),
        comparable=_share_inside(odds / (1 + odds)),
        difference_raw=float(np.nanmax(raw)),
        column_raw=pair.names[1 + int(np.nanargmax(raw))],
        difference_weighted=float(np.nanmax(weighted)),
        column_weighted=pair.names[1 + int(np.nanargmax(weighted))],
        unmatched=unmatched_share(e, pair.member),
        reason=f"propensity penalised: {propensity.separated}" if propensity.separated else "",
    )


def _share_inside(e: Floats) -> float:
    return float(((e >= INSIDE[0]) & (e <= INSIDE[1])).mean())


def standardised_differences(x: Floats, member: Bools, weights: Floats) -> Floats:
    """``(q,)`` absolute differences of weighted means, in unweighted standard deviations of all rows (Austin 2009)."""
    means = [np.average(x[each], axis=0, weights=weights[each]) for each in (member, ~member)]
    found: Floats = np.abs(means[0] - means[1]) / x.std(axis=0)
    return found


def unmatched_share(e: Floats, member: Bools) -> float:
    """Share of members without a reference applicant within the caliper on the logit of e."""
    bounded = np.clip(e, 1e-12, 1 - 1e-12)
    index = np.log(bounded / (1 - bounded))
    reference = np.sort(index[~member])
    place = np.searchsorted(reference, index[member])
    below = index[member] - reference[np.maximum(place - 1, 0)]
    above = reference[np.minimum(place, len(reference) - 1)] - index[member]
    nearest = np.minimum(np.abs(below), np.abs(above))
    return float((nearest > CALIPER * index.std()).mean())
