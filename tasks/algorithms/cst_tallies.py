"""What CST says of one group, statistic by statistic: for each, its values over the complainants of the group.

A complainant who could not be tested has no value (NaN). Nothing is compared with the reference group: it has no
complainants.

Here belong means over complainants; their tests are in ``judgements``.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from schemas.methods import CstSettings
from tasks.algorithms.comparisons import CF, CST
from tasks.algorithms.detector import Floats, Tally
from tasks.algorithms.judgements import Judged, flags

Parameters = Mapping[str, float | str]

HEADLINE: Parameters = {}
"""What findings are about: the first variant, at ``settings.k``."""

ENDS = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Sizes of a difference between which complainants are counted, either side of 0."""


def of_variants(judged: Mapping[str, Judged], settings: CstSettings) -> Iterator[Tally]:
    """By variant and number of neighbours: shares detected, significant and positive, and the difference itself."""
    place, main = settings.ks.index(settings.k), next(iter(judged.values()))
    yield from share("share_significant", HEADLINE, main.significant(settings.alpha)[place], headline=True)
    yield from share("share_detected", HEADLINE, main.detected(settings.tau)[place])
    yield from _spread(main.delta[place])
    for variant, tests in judged.items():
        for at, k in enumerate(settings.ks):
            of: Parameters = {"k": k, "variant": variant}
            yield from share("share_significant", of, tests.significant(settings.alpha)[at])
            yield from share("share_detected", of, tests.detected(settings.tau)[at])
            yield from share("share_positive", of, tests.positive(settings.tau)[at])
            yield from _mean("delta", of, tests.delta[at])
        yield from _by_tau(variant, tests.delta[place], settings)


def _spread(delta: Floats) -> Iterator[Tally]:
    """Share of complainants by size of the difference; the first interval holds its lower end."""
    ends = np.concatenate([-np.array(ENDS[::-1]), [0.0], ENDS])
    for low, high in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        inside = (delta > low) & (delta <= high) | (delta == low) & (low == ends[0])
        yield from share("delta_share", {"from": low, "to": high}, flags(inside, delta))


def _by_tau(variant: str, delta: Floats, settings: CstSettings) -> Iterator[Tally]:
    for tau in settings.taus:
        of: Parameters = {"k": settings.k, "variant": variant, "tau": tau}
        yield from share("share_detected_at", of, flags(delta > tau, delta))


def of_unfair(unfair: Floats) -> Iterator[Tally]:
    """Counterfactual fairness: refused but for the group, and the other way round."""
    yield from share("share_detected", {"variant": CF}, flags(unfair > 0, unfair))
    yield from share("share_positive", {"variant": CF}, flags(unfair < 0, unfair))


def without(edge: tuple[str, str], tests: Judged, settings: CstSettings) -> Iterator[Tally]:
    """What is left once the causal graph lacks an edge out of the protected attribute; tested at ``k`` alone."""
    of: Parameters = {"k": settings.k, "variant": CST, "without": " -> ".join(edge)}
    yield from share("share_detected_without", of, tests.detected(settings.tau)[0])
    yield from share("share_significant_without", of, tests.significant(settings.alpha)[0])


def share(measure: str, parameters: Parameters, met: Floats, headline: bool = False) -> Iterator[Tally]:
    """The share of 1 among 0 and 1, with those that are neither as units without a value; nothing if all are."""
    missing = int(np.isnan(met).sum())
    counts = [int((met == 0).sum()), int((met == 1).sum())] + [missing] * (missing > 0)
    values = np.array([0.0, 1.0] + [np.nan] * (missing > 0))
    if missing < len(met):
        yield Tally(0, 0, measure, parameters, values, np.array(counts), headline, compared=False, share=True)


def _mean(measure: str, parameters: Parameters, values: Floats) -> Iterator[Tally]:
    """Distinct values, NaN last, and their counts; nothing if nobody has one."""
    distinct, counts = np.unique(values, return_counts=True)
    if not np.isnan(values).all():
        yield Tally(0, 0, measure, parameters, distinct, counts.astype(np.int64), False, compared=False)
