"""Trend: the measures of every year beside each other, as their reports print them.

Nothing is computed from measures, and nothing is said of a year that its report does not say: what is withheld there is
withheld here. A year without a run, and a measure that rests on too few people, are rows too, so that a gap is seen.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import pyarrow as pa

from schemas.tables.trends import TREND, Told
from schemas.terms import State
from tasks.reporting.material import Measure

RANGES = "Two numbers in round brackets are a range: between them lies what was drawn. It is no interval."
"""What a page with ranges of draws says of them."""
HMDA_BREAK = (2018, "from 2018 HMDA counts other lenders, loans and codes")
"""The year from which its public data are collected under other rules (Regulation C as of 2018), and in words."""

Series = tuple[str, str, str, str, str]
"""Method, decision maker, protected attribute, group and measure."""


@dataclass(frozen=True)
class YearResult:
    """One year of an audit, by its run; without one, why there is none."""

    year: int
    run: str = ""
    vintage: str = ""
    edition: str = "none"
    """What kind of data the vintage is, such as snapshot; what marks it in a figure."""
    state: str = "missing"
    why: str = ""
    rows: int | None = None
    lacking: tuple[str, ...] = ()
    minimum_n: int = 30
    """Fewer units than this give no verdict."""
    measures: tuple[Measure, ...] = ()

    @cached_property
    def by_series(self) -> dict[Series, Measure]:
        """What it measures, by what that is of."""
        return {series_of(m): m for m in self.measures}


def trend(audit: str, years: Sequence[YearResult]) -> pa.Table:
    """Every measure of every year, in the shape of ``TREND``; ``(measures * years,)`` rows."""
    rows = [row for series in all_series(years) for row in (_row(audit, year, series) for year in years)]
    return TREND.build(**{column.name: [row[column.name] for row in rows] for column in TREND.columns})


def all_series(years: Iterable[YearResult]) -> list[Series]:
    """What any of the years measures: decisions first, then method by method; the groups of a measure together."""
    known = dict.fromkeys(series_of(m) for year in years for m in year.measures)
    return sorted(known, key=lambda s: (s[0] != "outcomes", s[0], s[2], s[4], s[1]))


def series_of(m: Measure) -> Series:
    """What a measure is of."""
    return m.method, m.decision_maker, m.protected_attribute, m.group, m.measure


def found(year: YearResult, series: Series) -> Measure | None:
    """The measure of a year, if it has it."""
    return year.by_series.get(series)


def told(m: Measure | None, minimum_n: int) -> Told:
    """What a year has to say of a measure."""
    if m is None:
        return Told.NOT_MADE
    if m.value is None:
        return Told.WITHHELD if m.withheld else Told.UNDEFINED
    return Told.TOO_FEW if m.n is not None and m.n < minimum_n else Told.VALUE


def breaks(years: Sequence[YearResult], hmda: bool) -> dict[int, str]:
    """First year after a break -> what is another thing from then on.

    No line is drawn over a break: that of HMDA, and any year that lacks other columns than the audited one before it.
    """
    out: dict[int, str] = {}
    audited = [year for year in years if year.run]
    for before, after in pairwise(audited):
        gained, lost = (_columns(a) - _columns(b) for a, b in ((before, after), (after, before)))
        words = [f"with {', '.join(sorted(gained))}"] if gained else []
        words += [f"without {', '.join(sorted(lost))}"] if lost else []
        if words:
            out[after.year] = f"from {after.year} {' and '.join(words)}"
    first, words_of_hmda = HMDA_BREAK
    if hmda and years and years[0].year < first <= years[-1].year:
        out[first] = "; ".join(word for word in (words_of_hmda, out.get(first, "")) if word)
    return dict(sorted(out.items()))


def _columns(year: YearResult) -> set[str]:
    """What a year lacks, without its groups that nobody belongs to: those do not change what is measured of others."""
    return {name for name in year.lacking if ": " not in name}


def _row(audit: str, year: YearResult, series: Series) -> dict[str, object]:
    method, maker, attribute, group, measure = series
    m = found(year, series)
    return {
        "audit": audit,
        "year": year.year,
        "method": method,
        "decision_maker": maker,
        "protected_attribute": attribute,
        "group": group,
        "measure": measure,
        "run": year.run,
        "vintage": year.vintage,
        "value": m.value if m else None,
        "low": m.low if m else None,
        "high": m.high if m else None,
        "n": m.n if m else None,
        "note": m.note if m else "",
        "state": m.state if m else State.NOT_RUN,
        "told": told(m, year.minimum_n),
        "reason": m.reason if m else year.why or "the run of this year does not make it",
    }
