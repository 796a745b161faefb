"""Missing and exempt cells of the twin: in real data, more of the denied have missing cells.

A home that was never appraised, or an income that was never verified, belongs to an application that did not get far.
``denied_missing`` says how many times as often that is so among the denied; with 1 the gaps are innocent.
"""

from dataclasses import dataclass

import numpy as np

from tasks.ingest.synthetic.twin.algorithm.settings import TwinSettings
from tasks.numerics.arrays import Bools


@dataclass(frozen=True)
class Unreported:
    """Cells without a value; all arrays ``(n,)``."""

    income: Bools
    property_value: Bools
    """Whose loan to value is missing, too."""
    debt_to_income: Bools
    loan_to_value: Bools
    exempt: Bools
    """Value, ratios and prices are not reported, and the layout says so."""


def draw(settings: TwinSettings, denied: Bools, rng: np.random.Generator) -> Unreported:
    """Draw gaps for people of whom some are denied ``(n,)``; no share exceeds 1."""
    times = settings.missing * np.where(denied, settings.denied_missing, 1.0)

    def gaps(share: float) -> Bools:
        drawn: Bools = rng.random(len(denied)) < share * times
        return drawn

    value = gaps(settings.missing_value)
    income, debt = gaps(settings.missing_income), gaps(settings.missing_debt_to_income)
    ratio = value | gaps(settings.missing_loan_to_value)
    exempt = (rng.random(len(denied)) < settings.exempt) & settings.modern
    return Unreported(income, value & ~exempt, debt & ~exempt, ratio & ~exempt, exempt)
