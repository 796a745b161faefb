"""Net share of changed decisions, with the standard error that refits of a generator give it; and the relative change.

``share_changed`` is the share of members whose decision would turn favourable, less the share whose decision would turn
unfavourable, had they been of the reference group: the share denied now less the share denied then. Above 0, belonging
to the group harms. The denial difference of CST (``cst_effect``) has the same sign.

The standard error is that of one network, which varies more than the mean of several: it is told, and no interval is
made of it (docs/methods/gcfn.md has what was simulated).

Scope: aggregates of one group outside the reference group. Means over rows: ``tallies``.
"""

import math

import numpy as np

from tasks.methods.gcfn.algorithm.tallies import Moved, net_change
from tasks.numerics.arrays import Floats
from tasks.numerics.results import Aggregate, Inference
from tasks.numerics.statistics.sampling import design_variance

MEASURE, RELATIVE = "share_changed", "relative_change"

IDENTIFIED = 0.5
"""Share of a group that has to be identified before its standard error is told (verdicts, section 4)."""
FEWEST = 0.8
"""Share of the refits that must have a value."""

SMALLEST = 1e-12
"""A spread that is smaller is that of rounding."""

NOT_IDENTIFIED = "less than half of the group is identified: no standard error"
NOT_REFITTED = "too few refits have a value, or all have the same: no standard error"


def share_changed(moved: Moved, refits: Floats, part: tuple[int, int] = (0, 0)) -> Aggregate:
    """The net share of changed decisions of a group, the mean over networks.

    Args:
        moved: Its rows, some of them imagined in the reference group.
        refits: ``(refits,)`` the same of resampled rows by one network each; none without refits.
        part: How many members were asked, and of how many: a sample adds its variance to that of the refits, which
            are of all rows.
    """
    n = int(moved.imagined.sum())
    each = net_change(moved.flips[:, moved.imagined], moved.favourable[moved.imagined])
    value, own = float(each.mean()), each.mean(axis=0)
    design = design_variance((own - own.mean()) / max(n, 1), *part)
    known = refits[np.isfinite(refits)]
    reason, se = "", np.nan
    if len(refits):
        identified = 1 - float(np.nanmean(moved.unidentified))
        se = float(known.std(ddof=1)) if len(known) >= max(2, FEWEST * len(refits)) else np.nan
        reason = NOT_IDENTIFIED if identified < IDENTIFIED else "" if se > SMALLEST else NOT_REFITTED
    if design:
        se = math.hypot(se, math.sqrt(design))
    said = Inference() if not len(refits) or reason else Inference(se=se, df=len(known) - 1.0)
    return Aggregate(0, 0, MEASURE, {}, value, n, compared=False, reason=reason, inference=said)


def relative_change(change: Floats, denial: Floats, resamples: int, rng: np.random.Generator) -> Aggregate | None:
    """Sum of the score changes over the sum of the own probabilities of denial; None where nobody has both.

    A ratio of sums, never a mean of ratios: of who is hardly ever denied, the own ratio is noise.

    Args:
        change: ``(n,)`` mean change of the score over networks; NaN where nothing was imagined.
        denial: ``(n,)`` own probability of denial by the model; NaN of a model that knows none.
        resamples: Of the rows, for the interval.
        rng: Draws them.
    """
    known = np.isfinite(change) & np.isfinite(denial)
    change, denial = change[known], denial[known]
    if denial.sum() <= 0:
        return None
    drawn = np.full(resamples, np.nan)
    for number in range(resamples):
        rows = rng.integers(0, len(change), len(change))
        below = denial[rows].sum()
        drawn[number] = change[rows].sum() / below if below > 0 else np.nan
    value = float(change.sum() / denial.sum())
    return Aggregate(0, 0, RELATIVE, {}, value, len(change), compared=False, replicates=drawn)


def of_each(change: Floats, denial: Floats) -> Floats:
    """Change of the score over the own probability of denial, ``(n,)``; NaN where that is 0 or not known."""
    found: Floats = np.divide(change, denial, out=np.full(len(change), np.nan), where=denial > 0)
    return found
