"""What is said of one series in one year: its band against the limit, and its change."""

import math
from dataclasses import dataclass, replace

from schemas.terms import ChangeState, State
from tasks.metrics.algorithm.monitoring.years import YearEstimate


@dataclass(frozen=True)
class Change:
    """A year beside the years before it, as it is printed: of a ratio, changes are ratios too. NaN: not there."""

    change: float = math.nan
    low: float = math.nan
    high: float = math.nan
    state: ChangeState = ChangeState.NONE
    reason: str = ""
    years_used: int = 0
    """Comparable years before it that the change rests on."""
    tau2: float = math.nan
    predicted_low: float = math.nan
    predicted_high: float = math.nan
    minimal: float = math.nan
    slope: float = math.nan
    slope_low: float = math.nan
    slope_high: float = math.nan
    since_year: int | None = None
    since_p: float = math.nan
    p: float = math.nan
    """Two-sided, of no change against four or more years before."""
    q: float = math.nan
    two_year_p: float = math.nan
    """Two-sided, of no change against the year before alone."""


NO_CHANGE = Change(reason="no year before it")


@dataclass(frozen=True)
class Monitored:
    """One series in one year."""

    of: YearEstimate
    state: State
    reason: str
    pooled: float = math.nan
    pooled_low: float = math.nan
    pooled_high: float = math.nan
    first_breach: int | None = None
    """The first year of this sequence whose band lay beyond the limit."""
    change: Change = Change()

    @property
    def breach(self) -> bool:
        """Whether the band of this year lies beyond the limit."""
        return self.state is State.BREACH

    def with_change(self, **said: object) -> "Monitored":
        """The same with more said of the change."""
        return replace(self, change=replace(self.change, **said))  # type: ignore[arg-type]

    @property
    def said(self) -> str:
        """Both reasons."""
        return "; ".join(words for words in (self.reason, self.change.reason) if words)
