"""Distribution of a continuous mediator over people, real and generated: shares of even intervals.

Intervals have equal width, so that a share is a density up to a constant. A person counts once: with the share of the
networks whose value falls into an interval.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from tasks.methods.gcfn.algorithm.bands import Interval, even
from tasks.numerics.arrays import Floats
from tasks.numerics.results import Tally
from tasks.numerics.statistics.distributions import alone, mean

PEOPLE: Final = 50
"""Fewest people of whom a density is told: with fewer it is as ragged as they are. Our choice."""

_INTERVALS = 25


def intervals(values: Floats) -> tuple[Interval, ...]:
    """The intervals of a mediator, by the values ``(n,)`` of everybody; none where all are alike."""
    return even(values, _INTERVALS)


def factual(mediator: str, values: Floats, among: Sequence[Interval]) -> Iterator[Tally]:
    """Shares of values ``(n,)`` as they are; nothing of few people."""
    return _shares("mediator_share", mediator, values[None], among)


def imagined(mediator: str, values: Floats, among: Sequence[Interval]) -> Iterator[Tally]:
    """Shares of values ``(s, n)`` by network as members of the reference group; nothing of few people."""
    return _shares("imagined_mediator_share", mediator, values, among)


def _shares(measure: str, mediator: str, values: Floats, among: Sequence[Interval]) -> Iterator[Tally]:
    if values.shape[1] >= PEOPLE:
        for interval in among:
            inside = np.mean(interval.holds(values), axis=0)
            yield from alone(mean(measure, {"mediator": mediator, **interval.said}, inside, share=True))
