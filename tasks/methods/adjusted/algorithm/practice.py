"""Plain comparisons that practitioners expect next to adjusted ones: flow, reasons, SMD, ratios, places.

None adjusts for anything, and none is judged. Sources: interagency examination procedures (flow, reasons); Cohen 1988
and Hedges 1981 (standardised difference); convention of practitioners (ratio by score); FFIEC 2009, III.G.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy

from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.statistics.intervals import Pair, bounds, quantile, ratio_bounds, step_down, wilson

SMALL_EXPECTED: Final = 5.0
"""Expected count below which a reason joins the others in a chi-square test (Cochran 1954)."""
SHARES: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Shares of all applicants who would be approved, the best scores first."""
FEWEST: Final = 10
"""Values of either group that a standardised difference needs."""


@dataclass(frozen=True)
class Share:
    """The share of a group with an outcome, and how far it is from that of the reference group."""

    n: int
    events: int
    low: float
    high: float
    difference: float = math.nan
    difference_low: float = math.nan
    difference_high: float = math.nan

    @property
    def value(self) -> float:
        """The share."""
        return self.events / self.n if self.n else math.nan


def share_of(events: int, n: int, reference: tuple[int, int] | None, level: float) -> Share:
    """Share with Wilson's interval; the difference from ``(events, n)`` of the reference group with Newcombe's."""
    z = quantile((1 - level) / 2)
    low, high = wilson(events, n, z) if n else (math.nan, math.nan)
    if reference is None or not reference[1] or not n:
        return Share(n, events, low, high)
    pair = Pair(*(np.array([count], dtype=np.float64) for count in (events, n, *reference)))
    least_difference, largest_difference = bounds(pair, "newcombe", z)
    return Share(
        n,
        events,
        low,
        high,
        events / n - reference[0] / reference[1],
        float(least_difference[0]),
        float(largest_difference[0]),
    )


def mix_test(members: Mapping[str, int], reference: Mapping[str, int]) -> tuple[float, str]:
    """P of "both groups have the same mix of reasons" by Pearson's chi-square, and why there is none.

    Reasons that are expected fewer than five times in either group are one.
    """
    names = sorted({*members, *reference})
    table = np.array([[counts.get(name, 0) for name in names] for counts in (members, reference)], dtype=np.float64)
    if not table.sum(axis=1).all():
        return math.nan, "no_denials: one of the groups has none with a reason"
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    few = expected.min(axis=0) < SMALL_EXPECTED
    merged = np.column_stack([table[:, ~few], table[:, few].sum(axis=1)]) if few.any() else table
    merged = merged[:, merged.sum(axis=0) > 0]
    if merged.shape[1] < 2:
        return math.nan, "too_few_reasons: fewer than two reasons are expected five times"
    lowest = (merged.sum(axis=1, keepdims=True) * merged.sum(axis=0) / merged.sum()).min()
    if lowest < 1:
        return math.nan, "too_few_reasons: the rare ones together are expected less than once"
    return float(scipy.stats.chi2_contingency(merged, correction=False).pvalue), ""


def holm(p: Sequence[float]) -> list[float]:
    """P after Holm over the tests that were made; NaN stays."""
    values = np.array(p, dtype=np.float64)
    tested = np.isfinite(values)
    out = np.full(len(values), math.nan)
    if tested.any():
        out[tested] = step_down(values[tested], 0.05).adjusted
    return [float(value) for value in out]


@dataclass(frozen=True)
class Standardised:
    """A standardised mean difference, group less reference group."""

    value: float
    low: float
    high: float
    n: int
    n_reference: int
    reason: str = ""


def standardised_difference(values: Floats, members: Bools, reference: Bools, level: float) -> Standardised:
    """(Mean of the group less mean of the reference group) over the pooled standard deviation of both.

    Exchanging the groups changes the sign alone. Large-sample variance (n1 + n2) / (n1 n2) + d^2 / (2 (n1 + n2)).

    Args:
        values: ``(n,)``; NaN where missing.
        members: ``(n,)`` those of the group.
        reference: ``(n,)`` members of the reference group.
        level: of the interval.
    """
    first, second = (values[mask & np.isfinite(values)] for mask in (members, reference))
    n, m = len(first), len(second)
    if min(n, m) < FEWEST:
        why = f"too_few_values: fewer than {FEWEST} on one side"
        return Standardised(math.nan, math.nan, math.nan, n, m, why)
    pooled = ((n - 1) * first.var(ddof=1) + (m - 1) * second.var(ddof=1)) / (n + m - 2)
    if not pooled > 0:
        return Standardised(math.nan, math.nan, math.nan, n, m, "no_spread: all values are alike")
    d = float((first.mean() - second.mean()) / math.sqrt(pooled))
    half = quantile((1 - level) / 2) * math.sqrt((n + m) / (n * m) + d**2 / (2 * (n + m)))
    return Standardised(d, d - half, d + half, n, m)


@dataclass(frozen=True)
class Ratio:
    """A ratio with its interval, and the counts that it is of."""

    value: float
    low: float
    high: float
    events: int
    n: int
    reference_events: int
    reference_n: int
    reason: str = ""


def counted(event: Bools, members: Bools, reference: Bools) -> tuple[int, int, int, int]:
    """Events and people of the group, and of the reference group."""
    events, of_reference = int((event & members).sum()), int((event & reference).sum())
    return events, int(members.sum()), of_reference, int(reference.sum())


def impact_ratios(counts: Sequence[tuple[int, int, int, int]], level: float) -> list[Ratio]:
    """Share of a group over share of the reference group, with the score interval, many at once.

    Args:
        counts: events and people of the group, and of the reference group.
        level: of the intervals.
    """
    numbers = np.array(counts, dtype=np.float64).reshape(-1, 4)
    defined = np.asarray((numbers[:, 1:] > 0).all(axis=1), np.bool_)
    low, high = np.full((2, len(counts)), math.nan)
    if defined.any():
        pair = Pair(*numbers[defined].T)
        low[defined], high[defined] = ratio_bounds(pair, quantile((1 - level) / 2))
    out = []
    for of, is_defined, least, largest in zip(counts, defined, low, high, strict=True):
        value = (of[0] / of[1]) / (of[2] / of[3]) if is_defined else math.nan
        reason = "" if is_defined else "undefined: nobody of the reference group"
        out.append(Ratio(value, float(least), float(largest), *of, reason=reason))
    return out


def odds_ratio(counts: tuple[int, int, int, int], level: float) -> Ratio:
    """Odds of an event in the group over those in the reference group, with Woolf's interval (1955) on the logarithm.

    Args:
        counts: as above.
        level: as above.
    """
    events, n, reference_events, reference_n = counts
    cells = (events, n - events, reference_events, reference_n - reference_events)
    if min(cells) <= 0:
        return Ratio(math.nan, math.nan, math.nan, *counts, reason="undefined: a cell of the four is empty")
    value = cells[0] * cells[3] / (cells[1] * cells[2])
    half = quantile((1 - level) / 2) * math.sqrt(sum(1 / cell for cell in cells))
    return Ratio(value, value * math.exp(-half), value * math.exp(half), *counts)


def approved_by_score(score: Floats, share: float) -> Bools:
    """``(n,)`` who would be approved if the best ``share`` of all were: scores at or above that quantile.

    Those with a score equal to the cut-off are all approved, so that no order of the rows decides.
    """
    finite = np.isfinite(score)
    cut = float(np.quantile(score[finite], 1 - share)) if finite.any() else math.nan
    return np.asarray(finite & (score >= cut), np.bool_)


# --------------------------------------------------------------------------------------------------------------------
# Places: a lender's share of applications by minority share of the tract, against its peers.


BANDS: Final = (("0 to 25 %", 0.0, 25.0), ("25 to 50 %", 25.0, 50.0), ("50 to 75 %", 50.0, 75.0))
"""Name, and the ends in percent; the upper one belongs to the next band."""
LAST, MAJORITY, EIGHTY, UNKNOWN = "75 to 100 %", "above 50 %", "above 80 %", "not known"
LIMIT: Final = 0.5
"""Smallest ratio of the lender's share to that of its peers in majority-minority tracts (ours, without a source)."""
DRAWS: Final = 1000
NO_PEERS: Final = "not_run: no peers were given; --peers of `evenhand places` names their file"
NO_PEER: Final = "no_peers: no lender has 0.5 to 2 times its applications in the same areas and products"
ONE_TRACT: Final = "one_tract: the lender has applications in one tract, which cannot be drawn again"
NONE_OF: Final = "none: the lender, or its peers, have no application with a known tract"


@dataclass(frozen=True)
class Tracts:
    """Applications, or originations, by tract."""

    minority: Floats
    """``(t,)`` minority share in percent; NaN where it is not known."""
    homes: Floats
    """``(t,)`` homes of one to four units; NaN where they are not known."""
    lender: Longs
    """``(t,)`` of the lender."""
    peers: Longs
    """``(t,)`` of its peers together."""


@dataclass(frozen=True)
class PlaceShare:
    """The lender in the tracts of one band."""

    band: str
    n: int
    """Of the lender, in all tracts."""
    events: int
    """Of those in the band."""
    peers_n: int
    peers_events: int
    ratio: float = math.nan
    """Share of the lender over share of its peers."""
    low: float = math.nan
    high: float = math.nan
    difference: float = math.nan
    difference_low: float = math.nan
    difference_high: float = math.nan
    expected: float = math.nan
    """Applications in the band if the lender's share were that of its peers."""
    shortfall: float = math.nan
    """Those expected less those made."""
    shortfall_low: float = math.nan
    shortfall_high: float = math.nan
    per_home: float = math.nan
    """Applications of the lender for 1,000 homes of one to four units in the band."""
    peers_per_home: float = math.nan
    reason: str = ""

    @property
    def share(self) -> float:
        """Of the lender's."""
        return self.events / self.n if self.n else math.nan

    @property
    def state(self) -> str:
        """Of the ratio in majority-minority tracts against its limit, for information; empty elsewhere.

        A lender in a single tract has none: its interval would count applications, and tracts are what was chosen.
        """
        if self.band not in (MAJORITY, EIGHTY) or not math.isfinite(self.ratio) or self.reason == ONE_TRACT:
            return ""
        return "outside" if self.high < LIMIT else "within" if self.low >= LIMIT else "inconclusive"

    @property
    def peers_share(self) -> float:
        """Of its peers'."""
        return self.peers_events / self.peers_n if self.peers_n else math.nan


def bands_of(minority: Floats) -> dict[str, Bools]:
    """Band -> ``(t,)`` whether a tract is in it; the two of majority-minority tracts overlap the others."""
    masks = {name: (minority >= low) & (minority < high) for name, low, high in BANDS}
    return masks | {LAST: minority >= 75.0, MAJORITY: minority > 50.0, EIGHTY: minority > 80.0}


def shares(tracts: Tracts, level: float, rng: np.random.Generator, reason: str = "") -> Iterator[PlaceShare]:
    """The share of the lender and of its peers in each band, and last the applications without a known tract.

    The ratio has the score interval (Miettinen and Nurminen 1985), the difference Newcombe's (1998, method 10), the
    shortfall a percentile interval over resampled tracts, since applications of one tract hang together.

    Args:
        tracts: of the lender and its peers.
        level: of the intervals.
        rng: draws tracts.
        reason: why there are no peers; empty where there are.
    """
    located = np.isfinite(tracts.minority)
    own_n, peers_n = int(tracts.lender[located].sum()), int(tracts.peers[located].sum())
    z = quantile((1 - level) / 2)
    weights = None
    if not reason and own_n and peers_n:  # how often each tract is drawn
        weights = np.zeros((DRAWS, len(located)))
        places = np.flatnonzero(located)
        weights[:, places] = rng.multinomial(len(places), np.full(len(places), 1 / len(places)), size=DRAWS)
    is_single = int((tracts.lender[located] > 0).sum()) == 1
    for band, mask in bands_of(np.where(located, tracts.minority, np.nan)).items():
        lender, peers = int(tracts.lender[mask].sum()), int(tracts.peers[mask].sum())
        homes = float(np.nansum(tracts.homes[mask]))
        per = (1000 * lender / homes, 1000 * peers / homes) if homes > 0 else (math.nan, math.nan)
        base = PlaceShare(band, own_n, lender, peers_n, peers, per_home=per[0], peers_per_home=per[1])
        why = reason or ("" if own_n and peers_n else NONE_OF)
        if why or weights is None:
            yield replace(base, reason=why)
            continue
        yield _compared(base, z, level, _shortfalls(weights, tracts, mask), ONE_TRACT if is_single else "")
    lost = PlaceShare(UNKNOWN, int(tracts.lender.sum()), int(tracts.lender[~located].sum()), int(tracts.peers.sum()), 0)
    if lost.events or tracts.peers[~located].any():
        yield replace(lost, reason="tracts that the file does not name")


def _compared(base: PlaceShare, z: float, level: float, shortfalls: Floats, reason: str) -> PlaceShare:
    counts = (base.events, base.n, base.peers_events, base.peers_n)
    pair = Pair(*(np.array([count], dtype=np.float64) for count in counts))
    other = Pair(*(np.array([count], dtype=np.float64) for count in (*counts[2:], *counts[:2])))
    (low,), (high,) = ratio_bounds(pair, z)
    least, largest = bounds(other, "newcombe", z)
    expected = base.n * base.peers_share
    ends = np.quantile(shortfalls, [(1 - level) / 2, (1 + level) / 2]) if not reason else (math.nan, math.nan)
    return replace(
        base,
        ratio=base.share / base.peers_share if base.peers_events else math.nan,
        low=float(low),
        high=float(high),
        difference=base.share - base.peers_share,
        difference_low=-float(largest[0]),
        difference_high=-float(least[0]),
        expected=expected,
        shortfall=expected - base.events,
        shortfall_low=float(ends[0]),
        shortfall_high=float(ends[1]),
        reason=reason,
    )


def _shortfalls(weights: Floats, tracts: Tracts, mask: Bools) -> Floats:
    """``(draws,)`` expected less made in each draw of tracts, at the lender's own number of applications."""
    lender, peers = tracts.lender.astype(np.float64), tracts.peers.astype(np.float64)
    own_all, peers_all = weights @ lender, weights @ peers
    with np.errstate(divide="ignore", invalid="ignore"):
        theirs, ours = (weights[:, mask] @ peers[mask]) / peers_all, (weights[:, mask] @ lender[mask]) / own_all
    located = np.isfinite(tracts.minority)
    short = (theirs - ours) * float(lender[located].sum())
    return short[np.isfinite(short)]
