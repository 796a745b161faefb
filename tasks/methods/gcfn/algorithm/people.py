"""Shares of people treated differently, by bands of the model's score and of the mediators (Figures 6 and 18).

All groups share the same bands, joined where a group has few people in them. A band is of factual values only.

Scope: shares by band. Flips by network: ``tallies``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tasks.methods.gcfn.algorithm.bands import Band, categories, fifths, filled
from tasks.methods.gcfn.algorithm.tallies import Moved, worst_network
from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.columns import Columns
from tasks.numerics.results import Tally
from tasks.numerics.statistics.distributions import Parameters, alone, mean

PEOPLE: Final = 30
"""Fewest people of a group in a band: a share of fewer is not read. Our choice."""

LARGE: Final = 0.95
"""Share of all applicants imagined whose change of score is no large one. Our choice."""


@dataclass(frozen=True)
class Sorting:
    """Applicants by something that is known of each."""

    by: Parameters
    """What it is."""
    values: Floats
    """``(n,)`` numbers, or numbers of categories."""
    bands: tuple[Band, ...]

    def rows(self, chosen: Longs) -> "Sorting":
        """The same of some rows, ``(r,)``, in the same bands."""
        return replace(self, values=self.values[chosen])


def sortings(mediators: Columns, score: Floats) -> tuple[Sorting, ...]:
    """By the score ``(n,)`` of the audited model, then by each mediator of the same rows."""
    found = [Sorting({"by": "score"}, score, fifths(score))]
    for name, known, values in zip(mediators.names, mediators.categories, mediators.values.T, strict=True):
        bands: tuple[Band, ...] = categories(known) if known else fifths(values)
        found.append(Sorting({"by": "mediator", "mediator": name}, values, bands))
    return tuple(found)


def large_change(several: Sequence[Moved]) -> float:
    """The size of a change of the score that one in twenty of all applicants exceeds, to two significant digits.

    Args:
        several: Every group.
    """
    sizes = np.concatenate([_sizes(moved)[moved.imagined] for moved in several])
    return float(f"{np.quantile(sizes, LARGE):.2g}")


def tallies(moved: Moved, by: Sequence[Sorting], above: float) -> Iterator[Tally]:
    """Of one group, by band: share decided otherwise, and share whose score would move far.

    Both are under the network under which they are largest for the whole group, so that bands add up to the group.

    Args:
        moved: ``n`` rows of the group.
        by: The same rows, sorted.
        above: Size from which a change of the score is a large one.
    """
    known = np.flatnonzero(moved.imagined)
    flips, sizes = moved.flips[worst_network(moved.flips)][known], _sizes(moved)[known]
    own = [sorting.rows(known) for sorting in by]
    yield from by_band("flip_share_by_band", {}, flips, own)
    yield from by_band("large_change_share_by_band", {"above": above}, (sizes > above).astype(np.float64), own)


def by_band(measure: str, of: Parameters, values: Floats, by: Sequence[Sorting]) -> Iterator[Tally]:
    """Means of shares ``(n,)`` in every band of every sorting of the same rows; nothing of a single band."""
    for sorting in by:
        bands = filled(sorting.bands, sorting.values, PEOPLE)
        for band in bands if len(bands) > 1 else ():
            said = {**of, **sorting.by, **band.said}
            yield from alone(mean(measure, said, values[band.holds(sorting.values)], share=True))


def _sizes(moved: Moved) -> Floats:
    """``(n,)`` sizes of the change under the network under which they are largest."""
    found: Floats = moved.absolute[worst_network(moved.absolute)]
    return found
