"""What a given decider would have decided, had mediators been what a generator imagines: the audit by GCFN.

The decider is asked and never looked into. It is told mediators alone; what else it reads, covariates among it, stays
as it is. Means over groups and their intervals are made elsewhere.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tasks.counterfactuals.algorithm.diagnostics.quality import others
from tasks.numerics.arrays import Bools, Floats, Longs

Decide = Callable[[Floats], tuple[Bools, Floats]]
"""From mediators ``(n, p)`` of all rows, in their order, to whether each decision is favourable, and its score."""


@dataclass(frozen=True)
class Flips:
    """Decisions and scores under imagined mediators; nothing changes in a row's own category."""

    favourable: Bools
    """``(n,)`` the decisions on the observed mediators."""
    flipped: Bools
    """``(s, k, n)`` whether the decision is another one, by generator and category."""
    change: Floats
    """``(s, k, n)`` score under imagined less score under observed mediators, in the decider's units."""
    other: Bools
    """``(k, n)`` the categories other than each row's own."""

    @property
    def by_any(self) -> Bools:
        """``(n,)`` whether some generator flips the decision in some other category: the worst case."""
        return np.asarray(self.flipped.any(axis=(0, 1)))

    @property
    def share(self) -> Floats:
        """``(n,)`` share of generators and other categories that flip the decision."""
        found: Floats = self.flipped.mean(axis=0).sum(axis=0) / (len(self.other) - 1)
        return found

    @property
    def largest_change(self) -> Floats:
        """``(n,)`` the change of the score that is largest in size, with its sign."""
        flat = self.change.reshape(-1, self.change.shape[2])
        found: Floats = flat[np.abs(flat).argmax(axis=0), np.arange(flat.shape[1])]
        return found

    @property
    def worst(self) -> int:
        """The generator under which scores move most, by mean square: the supremum of equation 10."""
        return int(np.square(self.change).sum(axis=(1, 2)).argmax())


def flips(imagined: Floats, category: Longs, observed: Floats, decide: Decide) -> Flips:
    """Ask a decider about every imagined set of mediators.

    Args:
        imagined: ``(s, k, n, p)``.
        category: ``(n,)``.
        observed: ``(n, p)`` the mediators as they are.
        decide: The decider; it must decide alike on like rows.
    """
    favourable, score = decide(observed)
    asked = [[decide(values) for values in network] for network in imagined]
    other = others(category, imagined.shape[1])
    flipped = np.array([[decisions != favourable for decisions, _ in network] for network in asked]) & other
    change = np.array([[found - score for _, found in network] for network in asked])
    return Flips(favourable, flipped, np.where(other, change, 0.0), other)
