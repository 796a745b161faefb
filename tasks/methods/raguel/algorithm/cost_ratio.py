"""The reference group's mean recourse cost over a group's, with an interval that counts the model among what is drawn.

Below 1 the group has further to go. Costs follow from the model and its threshold, and these from the applicants: with
the model held, a nominal 95 % interval covers less (specs of verdicts, section 4). So each resample of rows has a model
of its own, and costs to its boundary. A rule is not fitted, and only its applicants are drawn.

Scope: the ratio and its error. Resamples and boundaries: ``tasks.methods.raguel.rerank.refitted``.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from tasks.numerics.arrays import Bools, Floats, Ints
from tasks.numerics.results import Aggregate, Inference

MEASURE: Final = "recourse_cost_reference_over_group"

FEWEST: Final = 10
"""Applicants of either group who were denied and have a way, below whom there is no ratio: as verdicts have it."""

ENOUGH: Final = 0.9
"""Share of resamples that need a ratio, or there is no interval."""

REFUSED: Final = "some resamples leave a group without anybody who was denied and has a way"
NOT_COVERING: Final = "there is no interval that counts all that is left to chance: "


@dataclass(frozen=True)
class Costs:
    """Applicants who were denied and have a way to a favourable decision."""

    cost: Floats
    """``(r,)`` recourse cost."""
    group: Ints
    """``(r,)`` number of the group."""
    count: Floats
    """``(r,)`` how often each counts: 1 but in a resample."""

    @classmethod
    def of(cls, cost: Floats, group: Ints, counted: Bools | Floats) -> "Costs":
        """Those among all rows who count and have a cost that is no NaN."""
        at = np.flatnonzero((counted > 0) & np.isfinite(cost))
        return cls(cost[at], group[at], counted[at].astype(np.float64))

    def means(self, groups: int) -> Floats:
        """``(groups,)`` mean costs; NaN of a group without anybody."""
        total = np.bincount(self.group, self.cost * self.count, minlength=groups)
        count = np.bincount(self.group, self.count, minlength=groups)
        found: Floats = np.divide(total, count, out=np.full(groups, np.nan), where=count > 0)
        return found


def ratios(means: Floats, reference: int) -> Floats:
    """The reference group's mean over each group's, of ``(..., groups)`` means; NaN where either is missing or 0."""
    other = np.broadcast_to(means[..., [reference]], means.shape)
    known = (means > 0) & (other > 0)
    found: Floats = np.divide(other, means, out=np.full(means.shape, np.nan), where=known)
    return found


def aggregates(
    costs: Costs, groups: Iterable[int], reference: int, errors: Floats | str, level: float
) -> list[Aggregate]:
    """The ratio of each group; none where nobody has a cost.

    Args:
        costs: Of the audit's model on the audit's rows.
        groups: Groups with rows, the reference group perhaps among them.
        reference: The reference group.
        errors: ``(groups,)`` standard errors of its logarithm, NaN where there is none; or why nobody knows them.
        level: Of the intervals.
    """
    numbers = [each for each in groups if each != reference and len(costs.cost)]
    size = max([*numbers, reference, int(costs.group.max(initial=0))]) + 1
    n, value = np.bincount(costs.group, minlength=size), ratios(costs.means(size), reference)
    found = []
    for number in numbers:
        few = min(n[number], n[reference]) < FEWEST
        if few or not np.isfinite(value[number]):
            why = f"fewer than {FEWEST} applicants of one of the groups were denied and have a way" if few else NOTHING
            found.append(Aggregate(number, 0, MEASURE, {}, math.nan, int(n[number]), compared=False, reason=why))
        else:
            error = errors if isinstance(errors, str) else float(errors[number])
            found.append(_aggregate(number, float(value[number]), int(n[number]), error, level))
    return found


NOTHING: Final = "one of the groups has nothing to pay"


def _aggregate(group: int, value: float, n: int, error: float | str, level: float) -> Aggregate:
    if isinstance(error, str) or not math.isfinite(error):
        reason = NOT_COVERING + error if isinstance(error, str) else REFUSED
        return Aggregate(group, 0, MEASURE, {}, value, n, compared=False, reason=reason)
    reach = NormalDist().inv_cdf((1 + level) / 2) * error
    ends = value * math.exp(-reach), value * math.exp(reach)
    told = Inference(error, "log")
    return Aggregate(group, 0, MEASURE, {}, value, n, compared=False, interval=ends, inference=told)


def errors_of_draws(means: Floats, reference: int) -> Floats:
    """Standard error of the log ratio of each group from ``(draws, groups)`` mean costs on resamples."""
    logs = np.log(ratios(means, reference))
    finite = np.isfinite(logs)
    enough = finite.sum(axis=0) >= max(2.0, ENOUGH * len(means))
    found = np.full(means.shape[1], np.nan)
    for group in np.flatnonzero(enough):
        found[group] = np.std(logs[finite[:, group], group], ddof=1)
    return found


def errors_of_rows(costs: Costs, groups: int, reference: int) -> Floats:
    """The same where nothing but the applicants is drawn, by the delta method."""
    found = np.full(groups, np.nan)
    for group in range(groups):
        own = costs.cost[costs.group == group]
        if len(own) > 1 and own.mean() > 0:
            found[group] = own.var(ddof=1) / len(own) / own.mean() ** 2
    whole: Floats = np.sqrt(found + found[reference])
    return whole
