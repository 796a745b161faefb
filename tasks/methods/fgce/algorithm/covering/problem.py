"""Covering a group's factuals with few counterfactuals: shapes of the problem and of its solution.

FGCE asks three questions of the same table of costs (sections III and IV): how many rows k candidates can cover within
a cost (``max_cover``), how few candidates cover all rows (``set_cover``), and at what largest cost k candidates cover a
share of them (``least_cost``). Every answer is an ``Optimum``: exact, or a bound with the reason why it is only that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.numerics.arrays import Bools, Floats, Longs

Pick = tuple[int, int]
"""A chosen candidate: its part, and its column there."""

SLACK = 1e-9
"""Shares of rows are rounded up to rows; a share may be off by this much."""


@dataclass(frozen=True)
class Part:
    """One weakly connected component of a group: what each of its candidates costs each of its factuals."""

    cost: Floats
    """``(f, c)`` in encoded units; ``inf`` where the candidate is not feasible for the factual."""
    weight: Longs
    """``(f,)`` factual rows at each factual node, at least 1."""

    def __post_init__(self) -> None:
        """Refuse what is no table of costs: every number that follows would be wrong."""
        if self.cost.ndim != 2 or len(self.cost) != len(self.weight):
            raise ValueError(f"part: expected one weight per row of cost {self.cost.shape}, not {len(self.weight)}")
        if not (self.cost >= 0).all() or (self.weight < 1).any():
            raise ValueError("part: costs are at least 0 (inf where not feasible, never NaN) and weights at least 1")

    @property
    def rows(self) -> int:
        """Coverable rows: those with at least one feasible candidate."""
        return int(self.weight[np.isfinite(self.cost).any(axis=1)].sum())

    def within(self, limit: float) -> Bools:
        """Which candidates are feasible at a cost of at most ``limit``, ``(f, c)``."""
        return (self.cost <= limit) & np.isfinite(self.cost)


@dataclass(frozen=True)
class Optimum:
    """An optimal value, or a bound on it, or a refusal."""

    value: float
    """The best that was found; NaN where there is none."""
    bound: float
    """No selection does better: a lower bound on a cost or a count, an upper bound on a coverage."""
    exact: bool
    """Whether the value is proven optimal."""
    picks: tuple[Pick, ...]
    """A selection that attains the value, ascending."""
    reason: str = ""
    """Why the value is not exact, or why there is none; empty for an exact value."""


def d0(parts: Sequence[Part]) -> float:
    """Smallest cost at which all coverable rows are covered by as many candidates as it takes (FGCE, section V).

    Returns:
        In encoded units; NaN where no row is coverable.
    """
    cheapest = np.concatenate([np.zeros(0), *(part.cost.min(axis=1, initial=np.inf) for part in parts)])
    return float(max(cheapest[np.isfinite(cheapest)], default=float("nan")))


def rows_needed(share: float, rows: int) -> int:
    """Rows that make up a share of ``rows``, rounded up."""
    return math.ceil(share * rows - SLACK)


def refusal(reason: str) -> Optimum:
    """There is no selection as wanted."""
    return Optimum(float("nan"), float("nan"), False, (), reason)


def between(value: float, bound: float, picks: Sequence[Pick], note: str) -> Optimum:
    """The optimum as far as it is known: exact where value and bound meet, else with ``note`` as the reason."""
    chosen = tuple(sorted(picks))
    if value == bound:
        return Optimum(value, bound, True, chosen)
    low, high = sorted((value, bound))
    return Optimum(value, bound, False, chosen, f"a bound: {note}; the optimum lies between {low:g} and {high:g}")
