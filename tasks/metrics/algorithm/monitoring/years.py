"""Estimates of one measure in several years, and which of these years are alike.

A ratio is worked on as its logarithm: its estimate, its limit and its standard error. ``worked`` takes a value there,
``shown`` brings it back.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Scale = Literal["linear", "log"]
Side = Literal["at_most", "at_least"]


class Series(NamedTuple):
    """What is followed over the years: one measure of one judged group."""

    theory: str
    decision_maker: str
    attribute: str
    group: str
    measure: str


@dataclass(frozen=True)
class Conditions:
    """How a year was measured. Two years are compared only where all of it is the same."""

    lacking: frozenset[str] = frozenset()
    """Columns that the year does not have and others may."""
    groups: str = ""
    """Definition of the group and of the reference group."""
    version: str = ""
    """Of the code that measured."""
    columns_complete: bool = False
    edition: str = ""
    """Kind of data, such as snapshot."""
    era: str = ""
    """Rules by which the data were collected."""

    def unlike(self, earlier: "Conditions") -> list[str]:
        """What differs from an earlier year, in words; empty where nothing does."""
        gained, lost = earlier.lacking - self.lacking, self.lacking - earlier.lacking
        out = [f"with {', '.join(sorted(gained))}"] if gained else []
        out += [f"without {', '.join(sorted(lost))}"] if lost else []
        out += ["the groups are defined otherwise"] if self.groups != earlier.groups else []
        out += ["another version of the method"] if self.version != earlier.version else []
        if self.columns_complete != earlier.columns_complete:
            out.append(f"columns_complete {self.columns_complete}, before {earlier.columns_complete}".lower())
        out += [f"edition {self.edition}, before {earlier.edition}"] if self.edition != earlier.edition else []
        return out + ([self.era or f"no longer {earlier.era}"] if self.era != earlier.era else [])


@dataclass(frozen=True)
class YearEstimate:
    """The estimate of one series in one year; one without an estimate says why (``gap``)."""

    year: int
    theory: str
    attribute: str
    group: str
    decision_maker: str
    measure: str
    value: float = math.nan
    se: float = math.nan
    """Standard error of the value, or of its logarithm (``scale``)."""
    scale: Scale = "linear"
    bias: float = 0.0
    """How far an unseen block of columns may have moved the estimate to either side, on its scale."""
    limit: float = math.nan
    """NaN where nobody said what is too much."""
    side: Side = "at_most"
    conditions: Conditions = Conditions()
    reference: str = ""
    low: float = math.nan
    high: float = math.nan
    """The verdict interval of the year alone, as its run has it; copied."""
    gap: str = ""
    ran: bool = True
    """Whether a run of the year judged the series, with or without an estimate."""

    @property
    def series(self) -> Series:
        """What is followed."""
        return Series(self.theory, self.decision_maker, self.attribute, self.group, self.measure)

    @property
    def usable(self) -> bool:
        """Whether there is an estimate with a standard error."""
        positive = self.scale == "linear" or self.value > 0
        return not self.gap and positive and math.isfinite(self.value) and math.isfinite(self.se) and self.se > 0

    @property
    def estimate(self) -> float:
        """The value on its scale."""
        return worked(self.value, self.scale)

    @property
    def variance(self) -> float:
        """Of the estimate on its scale."""
        return self.se**2

    def unlike(self, earlier: "YearEstimate") -> list[str]:
        """Why it cannot be compared with an earlier year; empty where it can."""
        out = self.conditions.unlike(earlier.conditions)
        same = (self.side, self.scale) == (earlier.side, earlier.scale) and equal(self.limit, earlier.limit)
        return out if same else [*out, f"the limit is {limit_words(self)}, before {limit_words(earlier)}"]


@dataclass(frozen=True)
class MonitoringRule:
    """How years are held against the limit."""

    rule: Literal["confidence_sequence", "bonferroni", "none"] = "confidence_sequence"
    years: int | None = None
    """Planned number of years; ``bonferroni`` needs it."""
    alpha: float = 0.05
    """One-sided, over all groups of a theory."""
    seed: int = 0
    """Of the permutations of years."""


def worked(value: float, scale: Scale) -> float:
    """A value on the scale on which it is normal."""
    return math.log(value) if scale == "log" else value


def shown(value: float, scale: Scale) -> float:
    """A value of that scale as it is printed; a difference of logarithms becomes a ratio."""
    return math.exp(value) if scale == "log" else value


def limit_words(one: YearEstimate) -> str:
    """The limit in words."""
    return "none" if math.isnan(one.limit) else f"{one.side.replace('_', ' ')} {one.limit:g}"


def equal(a: float, b: float) -> bool:
    """Whether two limits are the same; none is like none."""
    return a == b or (math.isnan(a) and math.isnan(b))


def last_editions(estimates: Iterable[YearEstimate]) -> list[YearEstimate]:
    """One estimate for each series and year, the last one given, in the order of series and years.

    A restated year enters by its last edition only, so that what follows is computed as if the first had never been.
    """
    found = {(one.series, one.year): one for one in estimates}
    return [found[key] for key in sorted(found)]


def stretches(years: Sequence[YearEstimate]) -> list[list[YearEstimate]]:
    """The years of one series that have an estimate, cut where a year is not like the one before it."""
    out: list[list[YearEstimate]] = []
    for one in years:
        if not one.usable:
            continue
        if out and not one.unlike(out[-1][-1]):
            out[-1].append(one)
        else:
            out.append([one])
    return out
