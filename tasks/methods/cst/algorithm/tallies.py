"""Tallies of CST for one group: the values of each statistic over the complainants of the group.

A complainant without a test is NaN. The reference group has no complainants, so nothing is compared with it.

Scope: means over complainants. Tests: ``significance``.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tasks.methods.cst.algorithm.comparisons import CF, CST
from tasks.methods.cst.algorithm.significance import Tests, flags
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.results import Tally
from tasks.numerics.statistics.distributions import Parameters, alone, mean, share

HEADLINE: Parameters = {}
"""What findings are about: the first variant, at ``settings.k``."""

ENDS = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Sizes of a difference between which complainants are counted, either side of 0."""


def of_variants(judged: Mapping[str, Tests], settings: CstSettings) -> Iterator[Tally]:
    """By variant and number of neighbours: shares detected, significant and positive, and the difference itself."""
    place, main = settings.ks.index(settings.k), next(iter(judged.values()))
    yield from flagged("share_significant", HEADLINE, main.significant(settings.alpha)[place], headline=True)
    yield from flagged("share_detected", HEADLINE, main.detected(settings.tau)[place])
    yield from _spread(main.delta[place])
    for variant, tests in judged.items():
        for at, k in enumerate(settings.ks):
            of: Parameters = {"k": k, "variant": variant}
            yield from flagged("share_significant", of, tests.significant(settings.alpha)[at])
            yield from flagged("share_detected", of, tests.detected(settings.tau)[at])
            yield from flagged("share_positive", of, tests.positive(settings.tau)[at])
            yield from alone(mean("delta", of, tests.delta[at]))
        yield from _by_tau(variant, tests.delta[place], settings)


def _spread(delta: Floats) -> Iterator[Tally]:
    """Share of complainants by size of the difference; the first interval holds its lower end."""
    ends = np.concatenate([-np.array(ENDS[::-1]), [0.0], ENDS])
    for low, high in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        inside = (delta > low) & (delta <= high) | (delta == low) & (low == ends[0])
        yield from flagged("delta_share", {"from": low, "to": high}, flags(inside, delta))


def _by_tau(variant: str, delta: Floats, settings: CstSettings) -> Iterator[Tally]:
    for tau in settings.taus:
        of: Parameters = {"k": settings.k, "variant": variant, "tau": tau}
        yield from flagged("share_detected_at", of, flags(delta > tau, delta))


def of_unfair(unfair: Floats) -> Iterator[Tally]:
    """Counterfactual fairness: refused but for the group, and the other way round."""
    yield from flagged("share_detected", {"variant": CF}, flags(unfair > 0, unfair))
    yield from flagged("share_positive", {"variant": CF}, flags(unfair < 0, unfair))


def without(edge: tuple[str, str], tests: Tests, settings: CstSettings) -> Iterator[Tally]:
    """What is left once the causal graph lacks an edge out of the protected attribute; tested at ``k`` alone."""
    of: Parameters = {"k": settings.k, "variant": CST, "without": " -> ".join(edge)}
    yield from flagged("share_detected_without", of, tests.detected(settings.tau)[0])
    yield from flagged("share_significant_without", of, tests.significant(settings.alpha)[0])


def without_width(tests: Tests, settings: CstSettings) -> Iterator[Tally]:
    """Share of complainants whose interval has no width, as Wald's has where both shares are 0 or 1.

    Such an interval claims certainty, and p is 0 or 1. No other interval does that.
    """
    at = settings.ks.index(settings.k)
    if settings.interval == "wald":
        yield from flagged("no_width_share", HEADLINE, flags(tests.low[at] == tests.high[at], tests.delta[at]))


def clipped(names: Sequence[str], outside: Bools) -> Iterator[Tally]:
    """Share of complainants whose value was clipped before distances were taken, by attribute ``(c, a)``."""
    for name, beyond in zip(names, outside.T, strict=True):
        yield from alone(share("clipped_share", {"attribute": name}, beyond))


def flagged(measure: str, parameters: Parameters, met: Floats, headline: bool = False) -> Iterator[Tally]:
    """The share of 1 among 0 and 1, with those that are neither as units without a value; nothing if all are."""
    yield from alone(share(measure, parameters, met == 1, ~np.isnan(met), headline=headline))
