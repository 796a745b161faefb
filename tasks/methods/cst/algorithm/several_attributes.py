"""Several protected attributes: who is detected under every one of them (multiple discrimination).

Where an attribute crosses several columns, each of its groups is audited as a group of its own (intersectional); beside
it is the share of its members that are detected under each single attribute. These are tested at alpha divided by the
number of attributes (specs of CST, 'Confidence').
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.methods.cst.algorithm.comparisons import CF, SearchSpace, compare
from tasks.methods.cst.algorithm.significance import flags, judge
from tasks.methods.cst.algorithm.tallies import flagged
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.results import Tally
from tasks.numerics.statistics.proportions import Pair


@dataclass(frozen=True)
class Single:
    """What one attribute finds among ``c`` rows; NaN for a row of its reference group, or one not tested."""

    detected: Mapping[str, Floats]
    """``(len(ks), c)`` by variant."""
    significant: Mapping[str, Floats]
    """``(len(ks), c)`` by variant."""
    unfair: Floats | None
    """``(c,)`` whether refused but for the group."""


def tallies(singles: Sequence[SearchSpace], row: Longs, settings: CstSettings) -> Iterator[Tally]:
    """Shares of a crossed group's rows ``(c,)`` that are detected under every single attribute, and significant."""
    found = [_single(ground, row, settings, len(singles)) for ground in singles]
    if not found:
        return
    for variant in found[0].detected:
        if not all(variant in single.detected for single in found):
            continue
        detected = np.prod([single.detected[variant] for single in found], axis=0)
        significant = np.prod([single.significant[variant] for single in found], axis=0)
        for at, k in enumerate(settings.ks):
            yield from flagged("share_multiple", {"k": k, "variant": variant}, detected[at])
            yield from flagged("share_multiple_significant", {"k": k, "variant": variant}, significant[at])
    unfair = [single.unfair for single in found if single.unfair is not None]
    if len(unfair) == len(found):
        yield from flagged("share_multiple", {"variant": CF}, np.prod(unfair, axis=0))


def _single(ground: SearchSpace, row: Longs, settings: CstSettings, attributes: int) -> Single:
    """The rows tested together are the given ones, not the whole group under the single attribute."""
    pairs, unfair = _gathered(ground, row)
    judged = {variant: judge(pair, settings) for variant, pair in pairs.items()}
    return Single(
        {variant: tests.detected(settings.tau) for variant, tests in judged.items()},
        {variant: tests.significant(settings.alpha / attributes) for variant, tests in judged.items()},
        unfair,
    )


def _gathered(ground: SearchSpace, row: Longs) -> tuple[dict[str, Pair], Floats | None]:
    """Rows compared group by group of a single attribute, put together again."""
    pairs: dict[str, Pair] = {}
    unfair = None
    for group in np.unique(ground.group[row]):
        if group == ground.reference:
            continue
        own = np.flatnonzero(ground.group[row] == group)
        compared = compare(ground, int(group), row[own])
        for variant, pair in compared.pairs.items():
            wide = pairs.setdefault(variant, Pair(*np.full((4, pair.delta.shape[0], len(row)), np.nan)))
            for whole, part in zip(wide, pair, strict=True):
                whole[:, own] = part
        if compared.unfair is not None:
            unfair = np.full(len(row), np.nan) if unfair is None else unfair
            unfair[own] = flags(compared.unfair > 0, compared.unfair)
    return pairs, unfair
