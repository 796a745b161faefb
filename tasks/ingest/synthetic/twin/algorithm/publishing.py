"""Amounts as published: rounded to the middle of a band, or the band alone (Regulation C, since 2018).

Before, loans and incomes were published to a thousand dollars, and neither home nor ratios.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.ingest.synthetic.twin.algorithm.causal import DEBT, INCOME, LOAN, RATIO, VALUE
from tasks.numerics.arrays import Floats, Longs

DEBT_BANDS = ("<20%", "20%-<30%", "30%-<36%", *map(str, range(36, 50)), "50%-60%", ">60%")
"""Debt to income as published, lowest first."""
_STARTS = np.array([20, 30, 36, *range(37, 51)], np.float64)
"""Where each band but the first begins; the last begins above 60."""
_BAND = 10_000
_MOST_DEBT = 60.0
_RATIOS = (1.0, 130.0)
"""Loan to value of which none lies outside."""


@dataclass(frozen=True)
class Published:
    """Amounts as they are published; all arrays ``(n,)``."""

    income: Longs
    """Thousands of dollars."""
    property_value: Longs
    """Dollars."""
    loan_amount: Longs
    """Dollars."""
    debt_to_income: Longs
    """Place in ``DEBT_BANDS``."""
    loan_to_value: Floats
    """Percent, to three decimals."""


def publish(mediators: Floats, modern: bool) -> Published:
    """The published form of mediators ``(n, 5)``; of a year before 2018 loans are to a thousand dollars."""
    amount = np.exp(mediators[:, LOAN])
    ratio: Floats = np.clip(mediators[:, RATIO], *_RATIOS)
    return Published(
        income=np.maximum(1, np.rint(np.exp(mediators[:, INCOME]) / 1000)).astype(np.int64),
        property_value=_middle(np.exp(mediators[:, VALUE])),
        loan_amount=_middle(amount) if modern else np.maximum(1, np.rint(amount / 1000)).astype(np.int64) * 1000,
        debt_to_income=band(mediators[:, DEBT]),
        loan_to_value=ratio.round(3),
    )


def band(percent: Floats) -> Longs:
    """``(n,)`` places in ``DEBT_BANDS`` of ratios in percent: 60 is the last of the band before the last."""
    inside = np.searchsorted(_STARTS, percent, side="right")
    found: NDArray[np.int64] = np.where(percent > _MOST_DEBT, len(DEBT_BANDS) - 1, inside).astype(np.int64)
    return found


def _middle(dollars: Floats) -> Longs:
    """The middle of the band of 10,000 dollars that an amount lies in."""
    found: NDArray[np.int64] = (np.floor(dollars / _BAND) * _BAND + _BAND // 2).astype(np.int64)
    return found
