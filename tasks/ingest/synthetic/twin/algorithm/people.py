"""Draws applicants, kinds of loan and lenders, which nothing else influences, groups included."""

from dataclasses import dataclass

import numpy as np

from tasks.ingest.synthetic.twin.algorithm.settings import AGES, TwinSettings
from tasks.numerics.arrays import Bools, Ints

NOBODY = -1
"""Sex or age of a co-applicant whom there is none of."""
_SAME_SEX = 0.15
"""Share of the co-applicants who are of the applicant's sex."""
_PLACES = 60
"""Census tracts that applications come from."""


@dataclass(frozen=True)
class People:
    """Applicants; all arrays ``(n,)``, and groups as places in the tuples of ``settings``."""

    race: Ints
    hispanic: Bools
    sex: Ints
    age: Ints
    race_told: Bools
    sex_told: Bools
    cosex: Ints
    """``NOBODY`` without a co-applicant."""
    coage: Ints
    purpose: Ints
    kind: Ints
    """Of the loan: 0 conventional to 3 FSA or RHS."""
    subordinate: Bools
    occupancy: Ints
    lender: Ints
    place: Ints
    """The census tract, as a number from 0 to 59."""
    detail: Ints
    """A number from 0 to 9 that decides which of the detailed codes of 2018 a person gives, if any."""


def draw(settings: TwinSettings, n: int, rng: np.random.Generator) -> People:
    """Draw ``n`` applicants."""

    def of(shares: tuple[float, ...]) -> Ints:
        return np.searchsorted(np.cumsum(shares)[:-1], rng.random(n), side="right").astype(np.int32)

    def some(share: float) -> Bools:
        drawn: Bools = rng.random(n) < share
        return drawn

    def number(below: int) -> Ints:
        return rng.integers(below, size=n, dtype=np.int32)

    race, sex, age = of(settings.race_shares), some(settings.female).astype(np.int32), of(settings.age_shares)
    together = some(settings.coapplicants)
    return People(
        race=race,
        hispanic=some(settings.hispanic),
        sex=sex,
        age=age,
        race_told=~some(settings.race_untold),
        sex_told=~some(settings.sex_untold),
        cosex=np.where(together, np.where(some(_SAME_SEX), sex, 1 - sex), NOBODY).astype(np.int32),
        coage=np.where(together, np.clip(age + number(3) - 1, 0, len(AGES) - 1), NOBODY).astype(np.int32),
        purpose=of(settings.purpose_shares),
        kind=of(settings.type_shares),
        subordinate=some(settings.subordinate),
        occupancy=of(settings.occupancy_shares),
        lender=number(settings.lenders),
        place=number(_PLACES),
        detail=number(10),
    )
