"""Distribution of a statistic over the rows of a group: the ``Tally`` that is printed and resampled.

Methods tally shares, of 0 and 1, and means of any values; rows without a value are NaN.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.results import Tally

Parameters = Mapping[str, float | str]


def share(
    measure: str,
    parameters: Parameters,
    yes: Bools,
    of: Bools | None = None,
    *,
    headline: bool = False,
    compared: bool = True,
) -> Tally:
    """The share of the rows ``(n,)``, or of those ``of`` them on which it says something."""
    said = len(yes) if of is None else int(of.sum())
    met = int((yes if of is None else yes & of).sum())
    return counted(measure, parameters, said - met, met, len(yes) - said, headline=headline, compared=compared)


def counted(
    measure: str,
    parameters: Parameters,
    no: int,
    yes: int,
    missing: int,
    *,
    headline: bool = False,
    compared: bool = True,
) -> Tally:
    """The same by how many do not, do, and are neither."""
    values, counts = [0.0, 1.0] + [np.nan] * (missing > 0), [no, yes] + [missing] * (missing > 0)
    return Tally(0, 0, measure, parameters, np.array(values), np.array(counts), headline, compared, share=True)


def mean(measure: str, parameters: Parameters, values: Floats, *, headline: bool = False, share: bool = False) -> Tally:
    """The mean of values ``(n,)``: distinct ones, NaN last, and their counts."""
    distinct, counts = np.unique(values, return_counts=True)
    return Tally(0, 0, measure, parameters, distinct, counts.astype(np.int64), headline, share=share)


def alone(tally: Tally) -> Iterator[Tally]:
    """One that is not compared with the reference group's; nothing where no row has a value."""
    if tally.counts[~np.isnan(tally.values)].any():
        yield replace(tally, compared=False)


def as_said(limit: float) -> float:
    """A limit as it stands in the parameters of a measure: to ten digits, so that what is printed is what is used."""
    return float(f"{limit:.10g}")
