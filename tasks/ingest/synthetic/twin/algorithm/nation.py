"""Lenders and states of a national year: as many lenders as report one, with a long tail, each at home in a state.

Sizes of lenders are those of a log-normal with the mean of 2022 (4,460 lenders, 16.08 million rows: CFPB, Summary of
2022 Data on Mortgage Lending) and the share of the 25 largest in 2021 (43.9 % of closed-end loans: CFPB). States have
the rows that the CFPB's data browser counts for 2022.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.stats import norm

from tasks.numerics.arrays import Floats, Ints, Longs

MEAN_ROWS = 3_605
"""Rows of a lender in the mean."""
SPREAD = 2.35
"""Standard deviation of the logarithm of a lender's rows."""
FEWEST_LENDERS = 2

# Code, FIPS code and thousands of rows in 2022; the three smallest territories are left out, NA is no state.
STATES = (
    ("CA", "06", 1560), ("TX", "48", 1388), ("FL", "12", 1387), ("NC", "37", 625), ("GA", "13", 603),
    ("PA", "42", 586), ("OH", "39", 566), ("NY", "36", 550), ("IL", "17", 495), ("AZ", "04", 473),
    ("MI", "26", 470), ("VA", "51", 456), ("WA", "53", 418), ("NJ", "34", 414), ("TN", "47", 403),
    ("CO", "08", 403), ("IN", "18", 354), ("MD", "24", 318), ("SC", "45", 313), ("MA", "25", 307),
    ("MO", "29", 291), ("WI", "55", 266), ("AL", "01", 253), ("MN", "27", 247), ("UT", "49", 228),
    ("OR", "41", 213), ("KY", "21", 203), ("NA", "", 196), ("LA", "22", 189), ("NV", "32", 181),
    ("OK", "40", 174), ("CT", "09", 163), ("AR", "05", 141), ("IA", "19", 138), ("MS", "28", 124),
    ("ID", "16", 117), ("KS", "20", 110), ("NM", "35", 91), ("NE", "31", 78), ("NH", "33", 71),
    ("ME", "23", 67), ("WV", "54", 65), ("DE", "10", 62), ("HI", "15", 58), ("RI", "44", 57), ("MT", "30", 48),
    ("SD", "46", 35), ("PR", "72", 32), ("AK", "02", 29), ("DC", "11", 28), ("WY", "56", 27), ("VT", "50", 26),
    ("ND", "38", 25),
)  # fmt: skip

LOCAL = ((1_000, 0.95), (20_000, 0.6))
"""Up to so many rows a lender has such a share of them in its home state, beside those of any state."""


def sizes(rows: int) -> Longs:
    """Rows of each lender ``(k,)``, the largest first; quantiles of the log-normal, which add up to ``rows``.

    Raises:
        ValueError: there are too few rows for two lenders.
    """
    lenders = max(round(rows / MEAN_ROWS), FEWEST_LENDERS)
    if rows < 2 * lenders:
        raise ValueError(f"{rows} rows are too few for {lenders} lenders")
    weights = np.exp(SPREAD * norm.ppf(1 - (np.arange(lenders) + 0.5) / lenders))
    ends = np.round(np.cumsum(weights) / weights.sum() * (rows - lenders)).astype(np.int64)
    found: Longs = np.sort(np.diff(ends, prepend=0) + 1)[::-1]
    return found


@dataclass(frozen=True)
class Nation:
    """Which lender and which state a row may have."""

    lenders: Floats
    """``(k,)`` ends of the lenders' shares of all rows."""
    states: Floats
    """``(52,)`` ends of the states' shares."""
    home: Ints
    """``(k,)`` place of each lender's home in ``STATES``."""
    local: Floats
    """``(k,)`` share of its rows that are drawn at home."""

    @classmethod
    def of(cls, rows: int, rng: np.random.Generator) -> Self:
        """Lenders of a year of so many rows, homes drawn by the rows of states; errors as of ``sizes``."""
        size, states = sizes(rows), _ends(np.array([state[2] for state in STATES], dtype=np.float64))
        home = np.searchsorted(states, rng.random(len(size)), side="right").astype(np.int32)
        local = np.select([size <= most for most, _ in LOCAL], [share for _, share in LOCAL], 0.0)
        return cls(_ends(size.astype(np.float64)), states, home, local)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Lender and place of the state in ``STATES`` of ``n`` rows, each ``(n,)``."""
        lender = np.searchsorted(self.lenders, rng.random(n), side="right").astype(np.int32)
        anywhere = np.searchsorted(self.states, rng.random(n), side="right").astype(np.int32)
        at_home = rng.random(n) < self.local[lender]
        return lender, np.where(at_home, self.home[lender], anywhere).astype(np.int32)


def _ends(weights: Floats) -> Floats:
    """Ends of shares within 0 to 1; without the last, so that no draw lies beyond."""
    ends: Floats = np.cumsum(weights)[:-1] / weights.sum()
    return ends
