"""The recourse ratio: how equal the groups' mean recourse costs are (Definition 3.3, Equations 1 and 4).

``r = min_g C_g / max_g C_g``; 1 is equal. An absent group is left out. The ratio is 1 as well if all means are 0 or
fewer than two groups are present. Scope: finished lists, their prefixes and their blocks.
"""

import numba
import numpy as np

from tasks.methods.raguel.algorithm.ranking import counting
from tasks.numerics.arrays import Floats, Ints, Longs


def group_means(cost: Floats, group: Ints, groups: int) -> Floats:
    """``(g,)`` mean recourse cost of each group, NaN where it is absent."""
    counts = np.bincount(group, minlength=groups)
    means: Floats = np.divide(
        np.bincount(group, cost, minlength=groups), counts, out=np.full(groups, np.nan), where=counts > 0
    )
    return means


def worst_off(cost: Floats, group: Ints, groups: int) -> int:
    """The group with the largest mean recourse cost; the first of them if there are several."""
    return int(np.argmax(np.nan_to_num(group_means(cost, group, groups), nan=-np.inf)))


def overall(cost: Floats, group: Ints) -> float:
    """The ratio of all records: costs ``(n,)`` and groups ``(n,)``."""
    return float(of_blocks(cost, group, np.zeros(len(cost), np.int64))[0]) if len(cost) else 1.0


def of_blocks(cost: Floats, group: Ints, block: Longs) -> Floats:
    """The ratio within each block, from 0 to the last ``(b,)``."""
    groups = int(group.max(initial=0)) + 1
    cell, cells = block * groups + group, (int(block.max(initial=-1)) + 1) * groups
    means = group_means(cost, cell, cells).reshape(-1, groups)
    present = np.isfinite(means)
    most = np.where(present, means, -np.inf).max(axis=1, initial=-np.inf)
    least = np.where(present, means, np.inf).min(axis=1, initial=np.inf)
    ratios: Floats = np.divide(least, most, out=np.ones(len(most)), where=most > 0)
    return ratios


def of_prefixes(cost: Floats, group: Ints) -> Floats:
    """The ratio of each prefix: costs ``(n,)`` and groups ``(n,)`` by rank."""
    found: Floats = _of_prefixes(np.ascontiguousarray(cost), np.ascontiguousarray(group, np.int32))
    return found


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _of_prefixes(cost: Floats, group: Ints) -> Floats:
    groups = 0
    for place in range(group.shape[0]):
        groups = max(groups, group[place] + 1)
    counts, sums = np.zeros(groups, np.int64), np.zeros(groups)
    found = np.empty(cost.shape[0])
    for place in range(cost.shape[0]):
        counts[group[place]] += 1
        sums[group[place]] += cost[place]
        found[place] = counting.ratio(counts, sums)
    return found
