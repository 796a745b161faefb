"""Tallies of GCFN for one group: decisions and scores under the mediators of another group.

Every number is the worst of the networks or their mean: no single one is the truth (section 4.2.2). A member of the
reference group has a counterfactual in every other group, and counts with their mean. A row without one is NaN.

Scope: means over rows, and one quantile.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tasks.methods.gcfn.settings import GcfnSettings
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.results import Aggregate, Tally
from tasks.numerics.statistics.distributions import Parameters, alone, mean, share

SPREADS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 1.0)
"""Lower ends of the intervals by which spreads are counted; each holds its lower end, and the last has no upper one."""


@dataclass(frozen=True)
class Moved:
    """``n`` rows of a group, NaN where nothing was imagined."""

    favourable: Bools
    """``(n,)`` the decision as it is."""
    flips: Floats
    """``(s, n)`` share of the other groups in which the decision is another one: 0 or 1 where there is one."""
    change: Floats
    """``(s, n)`` mean change of the score."""
    absolute: Floats
    """``(s, n)`` mean size of the change."""
    squared: Floats
    """``(s, n)`` mean square of the change."""
    spread: Floats
    """``(n,)`` mean spread of the networks."""
    unidentified: Floats
    """``(n,)`` share of the other groups in which the row is not identified."""

    @property
    def imagined(self) -> Bools:
        """``(n,)``."""
        found: Bools = ~np.isnan(self.flips[0])
        return found


def tallies(moved: Moved) -> Iterator[Tally]:
    """Shares and means over the rows of a group."""
    worst = moved.flips[worst_network(moved.flips)]
    yield mean("decision_flip_share", {}, worst, headline=True, share=True)
    yield from _alone("decision_flip_share", {"over": "networks"}, moved.flips.mean(axis=0), share=True)
    for direction, own in (("to_favourable", ~moved.favourable), ("to_unfavourable", moved.favourable)):
        yield from _alone("flip_direction_share", {"direction": direction}, worst * own, share=True)
    yield from _alone("score_change", {}, moved.change.mean(axis=0))
    yield from _alone("score_change_absolute", {}, moved.absolute[worst_network(moved.absolute)])
    yield from _alone("score_change_squared", {}, moved.squared[worst_network(moved.squared)])
    yield from alone(share("unmediated_share", {}, ~moved.imagined))
    if len(moved.flips) > 1:
        yield from _alone("not_identified_share", {}, moved.unidentified, share=True)
        yield from _spread(moved.spread)


def aggregates(moved: Moved, settings: GcfnSettings, resamples: int, rng: np.random.Generator) -> Iterator[Aggregate]:
    """The quantile of the size of the change, with ``resamples`` of the rows imagined."""
    sizes = moved.absolute[worst_network(moved.absolute)][moved.imagined]
    if len(sizes):
        drawn = [np.quantile(rng.choice(sizes, len(sizes)), settings.quantile) for _ in range(resamples)]
        value, at = float(np.quantile(sizes, settings.quantile)), {"quantile": settings.quantile}
        replicates = np.array(drawn, dtype=np.float64)
        yield Aggregate(0, 0, "score_change_quantile", at, value, len(sizes), compared=False, replicates=replicates)


def net_change(flips: Floats, favourable: Bools) -> Floats:
    """``(s, n)`` or ``(n,)``: 1 where a decision would turn favourable, -1 where it would turn unfavourable, else 0.

    Args:
        flips: Whether the decision is another one, as 0 and 1.
        favourable: ``(n,)`` the decision as it is.
    """
    return np.where(favourable, -flips, flips)


def worst_network(values: Floats) -> int:
    """The network with the largest mean of ``(s, n)``, the first of several; 0 where nobody was imagined."""
    known = ~np.isnan(values[0])
    return int(values[:, known].mean(axis=1).argmax()) if known.any() else 0


def _spread(spread: Floats) -> Iterator[Tally]:
    yield from _alone("mediator_spread", {}, spread)
    known = ~np.isnan(spread)
    for low, high in zip(SPREADS, (*SPREADS[1:], np.inf), strict=True):
        ends: Parameters = {"from": low, "to": high} if np.isfinite(high) else {"from": low}
        yield from alone(share("mediator_spread_share", ends, (spread >= low) & (spread < high), known))


def _alone(measure: str, parameters: Parameters, values: Floats, share: bool = False) -> Iterator[Tally]:
    return alone(mean(measure, parameters, values, share=share))
