"""Monitoring over years: confidence sequences, change points, random effects."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import (
    ndtr,
    ndtri,
    stdtr,  # scipy.stats would take half a second and 60 MB
    stdtrit,  # scipy.stats would take half a second and 60 MB
)

from schemas.terms import ChangeState, State
from tasks.numerics.arrays import Floats
from tasks.numerics.statistics.intervals import benjamini_hochberg

# --------------------------------------------------------------------------------------------------------------------
# Estimates of one measure in several years, and which of these years are alike.
#
# A ratio is worked on as its logarithm: its estimate, its limit and its standard error. ``worked`` takes a value there,
# ``shown`` brings it back.


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
    recipe: frozenset[tuple[str, str, str]] = frozenset()
    """Column, key and value of what the recipe of the cells says of their meaning: unit, codes, missing, order."""

    def unlike(self, earlier: "Conditions") -> list[str]:
        """What differs from an earlier year, in words; empty where nothing does."""
        gained, lost = earlier.lacking - self.lacking, self.lacking - earlier.lacking
        out = [f"with {', '.join(sorted(gained))}"] if gained else []
        out += [f"without {', '.join(sorted(lost))}"] if lost else []
        out += ["the groups are defined otherwise"] if self.groups != earlier.groups else []
        read = {(column, key) for column, key, _ in self.recipe ^ earlier.recipe}
        for name in sorted({column for column, _ in read}):
            out.append(f"{name} is read otherwise ({', '.join(sorted(key for column, key in read if column == name))})")
        out += ["another version of the method"] if self.version != earlier.version else []
        if self.columns_complete != earlier.columns_complete:
            out.append(f"columns_complete {self.columns_complete}, before {earlier.columns_complete}".lower())
        out += [f"edition {self.edition}, before {earlier.edition}"] if self.edition != earlier.edition else []
        return out + ([self.era or f"no longer {earlier.era}"] if self.era != earlier.era else [])


@dataclass(frozen=True)
class YearEstimate:
    """The estimate of one series in one year; ``gap`` gives the reason where no estimate exists."""

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


def limit_words(year: YearEstimate) -> str:
    """The limit in words."""
    return "none" if math.isnan(year.limit) else f"{year.side.replace('_', ' ')} {year.limit:g}"


def equal(a: float, b: float) -> bool:
    """Whether two limits are the same; none is like none."""
    return a == b or (math.isnan(a) and math.isnan(b))


def last_editions(estimates: Iterable[YearEstimate]) -> list[YearEstimate]:
    """One estimate for each series and year, the last one given, in the order of series and years.

    A restated year enters by its last edition only, so that what follows is computed as if the first had never been.
    """
    latest = {(edition.series, edition.year): edition for edition in estimates}
    return [latest[key] for key in sorted(latest)]


def stretches(years: Sequence[YearEstimate]) -> list[list[YearEstimate]]:
    """The years of one series that have an estimate, cut where a year is not like the one before it."""
    out: list[list[YearEstimate]] = []
    for year in years:
        if not year.usable:
            continue
        if out and not year.unlike(out[-1][-1]):
            out[-1].append(year)
        else:
            out.append([year])
    return out


# --------------------------------------------------------------------------------------------------------------------
# Change between two years, and the words for a change.
#
# Applications of two years are different ones, so that variances add. specs/verdicts.md, section 6. Two years cannot
# tell a change from wandering: with a gap that wanders by two points from year to year, and no change, each pair of
# neighbours differs "significantly" in a third of cases (specs/evidence.md, section 2). Hence such a difference has no
# state.


WANDERING = "two years cannot tell a change from wandering"


class Difference(NamedTuple):
    """Later less earlier year, on the scale of the estimates, with its 95 % interval and two-sided p."""

    value: float
    low: float
    high: float
    p: float


def two_years(
    later: float, variance: float, earlier: float, earlier_variance: float, level: float = 0.95
) -> Difference:
    """The difference of two estimates from different applications."""
    value, se = later - earlier, math.sqrt(variance + earlier_variance)
    half = -float(ndtri((1 - level) / 2)) * se
    return Difference(value, value - half, value + half, float(2 * ndtr(-abs(value) / se)))


def holm(p: Sequence[float]) -> list[float]:
    """p-values after Holm (1979), in the order given."""
    order = np.argsort(p, kind="stable")
    steps = np.asarray(p, dtype=np.float64)[order] * np.arange(len(p), 0, -1)
    out = np.empty(len(p))
    out[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return [float(adjusted) for adjusted in out]


def change_state(low: float, high: float, limit: float) -> ChangeState:
    """State of a change by its interval.

    Args:
        low: lower end of the interval of the change, on the scale of the estimates.
        high: its upper end.
        limit: the limit of the measure on that scale; its half is what counts as no change. NaN: none.
    """
    if low > 0 or high < 0:
        return ChangeState.CHANGED
    half = abs(limit) / 2
    return ChangeState.UNCHANGED if -half <= low and high <= half else ChangeState.UNCLEAR


# --------------------------------------------------------------------------------------------------------------------
# Random effects over years: variance between years, prediction interval of the next year, and trend.
#
# Between-year variance tau2 by the method of moments (DerSimonian and Laird 1986; of residuals about a line Thompson
# and Sharp 1999); prediction by Student's t on k - 1 degrees (Higgins, Thompson and Spiegelhalter 2009, with the
# sampling variance of the year added, since its estimate and no true effect is held against it). specs/evidence.md,
# section 2.


ENOUGH_YEARS = 4
"""Comparable years before a year from which its change can be judged."""
ENOUGH_FOR_SLOPE = 5
_POWER = 1.96 + 0.84
"""Normal quantiles of a two-sided 5 % test and of 80 % power."""


class Prediction(NamedTuple):
    """A year compared with the earlier years."""

    change: float
    """Its estimate less their mean."""
    low: float
    high: float
    """95 % interval of the change: 0 lies outside iff the year lies outside the prediction interval."""
    predicted_low: float
    predicted_high: float
    minimal: float
    """The smallest change that would have been seen with a power of 80 %."""
    tau2: float
    p: float
    """Two-sided, of no change."""


class Slope(NamedTuple):
    """Change a year with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def speaks(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


def between_years(estimates: Floats, variances: Floats) -> float:
    """tau2 of ``(k,)`` estimates about their mean; 0 where they differ by no more than sampling."""
    return _moments(np.ones((len(estimates), 1)), estimates, variances)


def mean_of(estimates: Floats, variances: Floats) -> tuple[float, float, float]:
    """Random-effects mean, its variance, and tau2."""
    tau2 = between_years(estimates, variances)
    weights = 1 / (variances + tau2)
    return float(weights @ estimates / weights.sum()), float(1 / weights.sum()), tau2


def prediction(before: Floats, variances: Floats, last: float, variance: float, level: float = 0.95) -> Prediction:
    """The last year against the ``(k,)`` years before it."""
    mean, of_mean, tau2 = mean_of(before, variances)
    se, df = math.sqrt(variance + tau2 + of_mean), len(before) - 1
    half, change = float(stdtrit(df, (1 + level) / 2)) * se, last - mean
    p = float(2 * stdtr(df, -abs(change) / se))
    return Prediction(change, change - half, change + half, mean - half, mean + half, _POWER * se, tau2, p)


def slope(years: Floats, estimates: Floats, variances: Floats, level: float = 0.95) -> Slope:
    """Weighted least squares on the year, weights 1 / (v_t + tau2), t on k - 2 degrees.

    tau2 is that of the residuals about the line: about the mean, a steady trend would count as wandering and so hide.
    """
    design = np.column_stack([np.ones(len(years)), years - years.mean()])
    weights = 1 / (variances + _moments(design, estimates, variances))
    inverse = np.linalg.inv(design.T @ (weights[:, None] * design))
    value = float((inverse @ (design.T @ (weights * estimates)))[1])
    half = float(stdtrit(len(years) - 2, (1 + level) / 2)) * math.sqrt(float(inverse[1, 1]))
    return Slope(value, value - half, value + half)


def _moments(design: Floats, estimates: Floats, variances: Floats) -> float:
    """tau2 = max(0, (Q - (k - p)) / (sum w - tr((X'WX)^-1 X'W^2 X))), w = 1 / v."""
    w = 1 / variances
    inverse = np.linalg.inv(design.T @ (w[:, None] * design))
    residuals = estimates - design @ (inverse @ (design.T @ (w * estimates)))
    excess = float(w @ residuals**2) - (len(estimates) - design.shape[1])
    scale = float(w.sum() - np.trace(inverse @ (design.T @ ((w**2)[:, None] * design))))
    return float(max(0.0, excess / scale))


# --------------------------------------------------------------------------------------------------------------------
# Years against a limit: a band that may be looked at after every year, for ever.
#
# Estimates e_t with variances v_t are pooled by precision: I_t = sum 1 / v_t, pooled = sum(e_t / v_t) / I_t. The normal
# mixture gives the radius sqrt((I_t + r) log((I_t + r) / (r a^2))) / I_t (Robbins 1970; Howard, Ramdas, McAuliffe and
# Sekhon 2021): with probability 1 - a no band of any year misses a true effect that stays the same.
# specs/verdicts.md, section 6.
#
# A band is two-sided and each verdict is about one side, so that a = 2 alpha / m keeps alpha over the m groups of a
# theory. Where years differ by more than sampling, their variance between years is added to each v_t first.


MIXTURE = 0.35
"""r over the information of the first year: the band is 2.8 standard errors wide to each side, all along."""


class Band(NamedTuple):
    """A pooled estimate with its band, on the scale of the estimates."""

    pooled: float
    low: float
    high: float
    tau2: float = 0.0
    """Variance between years that was added to each year's."""

    def widened(self, bias: float) -> "Band":
        """The band with a bias of unknown sign on both sides."""
        return self._replace(low=self.low - bias, high=self.high + bias)


def radius(information: float, first: float, a: float) -> float:
    """Half the width of the band.

    Args:
        information: I_t, of all years so far.
        first: information of the first year.
        a: probability that the band of any year misses the truth.
    """
    r = MIXTURE * first
    return math.sqrt((information + r) * math.log((information + r) / (r * a * a))) / information


def confidence_sequence(estimates: Floats, variances: Floats, biases: Floats, a: float) -> Band:
    """The band after the last of these years; those of earlier years are the same function of fewer years.

    Args:
        estimates: ``(t,)`` in order of years.
        variances: ``(t,)``.
        biases: ``(t,)`` how far each may lie off for a reason that more years do not cure; 0 where for none.
        a: as in ``radius``.
    """
    tau2 = between_years(estimates, variances) if len(estimates) >= ENOUGH_YEARS else 0.0
    weights = 1 / (variances + tau2)
    information = float(weights.sum())
    pooled, bias = float(weights @ estimates) / information, float(weights @ biases) / information
    half = radius(information, float(weights[0]), a)
    return Band(pooled, pooled - half, pooled + half, tau2).widened(bias)


def single_year(estimate: float, variance: float, bias: float, alpha: float) -> Band:
    """The band of one year by itself, each side at ``alpha``."""
    half = -float(ndtri(alpha)) * math.sqrt(variance)
    return Band(estimate, estimate - half, estimate + half).widened(bias)


def bonferroni(estimate: float, variance: float, bias: float, alpha: float, years: int) -> Band:
    """The band of one year of a plan of so many: each spends an equal part of ``alpha``."""
    return single_year(estimate, variance, bias, alpha / years)


def false_breach(alpha: float, years: int) -> float:
    """Probability that an honest lender at its limit is in breach in some year, each tested alone."""
    return float(1 - np.power(1 - alpha, years))


# --------------------------------------------------------------------------------------------------------------------
# Since when: the one change point that parts the years best, and how often chance parts them as well.
#
# Binary segmentation at its first step (Scott and Knott 1974): the greatest standardised difference between the years
# before and from a point on. p by permuting the standardised years.


PERMUTATIONS = 999


def change_point(
    estimates: Floats, variances: Floats, rng: np.random.Generator, draws: int = PERMUTATIONS
) -> tuple[int, float]:
    """Place of the first year after the change among the ``(k,)`` years, and p = (1 + as large) / (1 + draws)."""
    mean, _, tau2 = mean_of(estimates, variances)
    z = (estimates - mean) / np.sqrt(variances + tau2)
    contrasts = _contrasts(z[None, :])[0]
    permuted_maxima = _contrasts(rng.permuted(np.tile(z, (draws, 1)), axis=1)).max(axis=1)
    as_large = int((permuted_maxima >= contrasts.max() * (1 - 1e-12)).sum())
    return int(contrasts.argmax()) + 1, (1 + as_large) / (1 + draws)


def _contrasts(z: Floats) -> Floats:
    """``(n, k - 1)`` absolute difference of the means of both parts over its standard error, for each cut."""
    k = z.shape[1]
    first = np.arange(1, k)
    sums = np.cumsum(z, axis=1)
    before, after = sums[:, :-1] / first, (sums[:, -1:] - sums[:, :-1]) / (k - first)
    return np.asarray(np.abs(before - after) * np.sqrt(first * (k - first) / k))


# --------------------------------------------------------------------------------------------------------------------
# Defines the results for one series in one year: its band against the limit, and its change.


@dataclass(frozen=True)
class Change:
    """A year against the years before it, as printed: changes of a ratio are ratios, too. NaN: not computed."""

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
        return self.state is State.OUTSIDE

    def with_change(self, **changes: object) -> "Monitored":
        """The same with other fields of the change."""
        return replace(self, change=replace(self.change, **changes))  # type: ignore[arg-type]

    @property
    def said(self) -> str:
        """Both reasons."""
        return "; ".join(words for words in (self.reason, self.change.reason) if words)


# --------------------------------------------------------------------------------------------------------------------
# A year against its limit, with the years before it: the band, the state that is read from it, and the words.


EIGHT = 8
"""Years over which the cost of looking at each alone is told."""


def held(years: Sequence[YearEstimate], rule: MonitoringRule, groups: int, first_breach: int | None) -> Monitored:
    """The last of these comparable years.

    Args:
        years: a sequence from its start, each with an estimate.
        rule: confidence sequence, bonferroni or none.
        groups: judged groups of the theory, which share alpha.
        first_breach: the first year before it in breach, if there was one.
    """
    latest = years[-1]
    spent = rule.rule == "bonferroni" and len(years) > (rule.years or 0)
    if spent:
        reason = f"the plan was for {rule.years or 0} years, and its alpha is spent"
        return Monitored(latest, State.INCONCLUSIVE, reason, first_breach=first_breach)
    if rule.rule == "none":
        band = single_year(latest.estimate, latest.variance, latest.bias, rule.alpha / groups)
    elif rule.rule == "bonferroni":
        band = bonferroni(latest.estimate, latest.variance, latest.bias, rule.alpha / groups, rule.years or 1)
    else:
        e, v, b = (np.array([getattr(year, name) for year in years]) for name in ("estimate", "variance", "bias"))
        band = confidence_sequence(e, v, b, 2 * rule.alpha / groups)
    state, words = State.NO_LIMIT, "nobody said what is too much"
    if not math.isnan(latest.limit):
        limit, at_most, side = worked(latest.limit, latest.scale), latest.side == "at_most", limit_words(latest)
        if band.low > limit if at_most else band.high < limit:
            state, words = State.OUTSIDE, f"the whole band lies beyond the limit ({side})"
        elif band.high <= limit if at_most else band.low >= limit:
            state, words = State.WITHIN, f"the whole band keeps the limit ({side})"
        else:
            state, words = State.INCONCLUSIVE, f"the band lies on both sides of the limit ({side})"
    first = latest.year if state is State.OUTSIDE and first_breach is None else first_breach
    pooled, low, high = (shown(end, latest.scale) for end in band[:3])
    reason = "; ".join([words, *_qualified(latest, band, rule, first)])
    return Monitored(latest, state, reason, pooled, low, high, first)


def gap(year: YearEstimate) -> Monitored:
    """A year without an estimate: no pass, and no number."""
    state = State.INCONCLUSIVE if year.ran else State.NOT_RUN
    return Monitored(year, state, year.gap or "no estimate with a standard error")


def _qualified(year: YearEstimate, band: Band, rule: MonitoringRule, first: int | None) -> list[str]:
    """Qualifications of a band."""
    out = [f"beyond the limit for the first time in {first}"] if first is not None else []
    if year.bias:
        out.append("widened on both sides for what the lender saw and the columns lack")
    if band.tau2:
        out.append(f"years differ by more than sampling: {band.tau2:.2g} is added to the variance of each")
    if rule.rule == "none":
        chance = false_breach(rule.alpha, EIGHT)
        out.append(
            f"each year alone: an honest lender is in breach in some year of {EIGHT} with probability {chance:.2f}"
        )
    if rule.rule == "bonferroni":
        out.append(f"each year alone at 1/{rule.years} of alpha")
    return out


# --------------------------------------------------------------------------------------------------------------------
# What the years of an audit say together: each against its limit, and against the years before it.
#
# A function of the list of years and of nothing else: a restated year replaces its own, and all is computed anew. A
# year that is not like the one before it begins another sequence.


def monitor(estimates: Sequence[YearEstimate], rule: MonitoringRule) -> list[Monitored]:
    """One row for each series and year, in the order of series and years.

    Args:
        estimates: of judged groups alone; a series without a limit is followed and has no verdict. A year that comes
            twice counts as it came last.
        rule: how years are held against the limit.
    """
    editions = last_editions(estimates)
    groups = Counter(theory for theory, *_ in {edition.series for edition in editions})
    by_series: dict[object, list[YearEstimate]] = defaultdict(list)
    for edition in editions:
        by_series[edition.series].append(edition)
    rows = [row for years in by_series.values() for row in _followed(years, rule, groups[years[0].theory])]
    return _with_joint_tests(rows)


def _followed(years: Sequence[YearEstimate], rule: MonitoringRule, groups: int) -> list[Monitored]:
    """The rows of one series."""
    rows: dict[int, Monitored] = {year.year: gap(year) for year in years if not year.usable}
    parts = stretches(years)
    for number, part in enumerate(parts):
        first_breach = None
        for place, year in enumerate(part):
            row = held(part[: place + 1], rule, groups, first_breach)
            first_breach = first_breach or (year.year if row.breach else None)
            change = NO_CHANGE
            if place:
                change = _change(part[: place + 1], rule.seed)
            elif number:  # a year that is not like the one before it
                earlier = parts[number - 1][-1]
                why = f"not comparable with {earlier.year}: {'; '.join(year.unlike(earlier))}"
                change = Change(state=ChangeState.NOT_COMPARABLE, reason=f"{why}; another sequence begins")
            rows[year.year] = replace(row, change=change)
    return [rows[year] for year in sorted(rows)]


def _change(years: Sequence[YearEstimate], seed: int) -> Change:
    """Compares the last of these comparable years with the earlier ones."""
    if len(years) > ENOUGH_YEARS:
        result = _against_many(years)
    else:  # too few years before: the difference from the year before, without a state
        earlier, latest = years[-2:]
        comparison = two_years(latest.estimate, latest.variance, earlier.estimate, earlier.variance)
        change, low, high = (shown(number, latest.scale) for number in comparison[:3])
        reason = f"against {earlier.year} alone; {WANDERING}"
        result = Change(change, low, high, ChangeState.NONE, reason, years_used=1, two_year_p=comparison.p)
    if len(years) < ENOUGH_FOR_SLOPE:
        return result
    e, v, scale = *_arrays(years), years[0].scale
    line = slope(np.array([year.year for year in years], dtype=np.float64), e, v)
    ends = [shown(end, scale) for end in line]
    result = replace(result, slope=ends[0], slope_low=ends[1], slope_high=ends[2])
    if not line.speaks and result.state is not ChangeState.CHANGED:
        return result
    place, p = change_point(e, v, np.random.default_rng(seed))
    return replace(result, since_year=years[place].year, since_p=p)


def _against_many(years: Sequence[YearEstimate]) -> Change:
    """The last year against what those before it let expect."""
    *before, latest = years
    e, v = _arrays(before)
    forecast, scale = prediction(e, v, latest.estimate, latest.variance), latest.scale
    state = change_state(forecast.low, forecast.high, worked(latest.limit, scale))
    change, low, high, predicted_low, predicted_high, minimal = (shown(number, scale) for number in forecast[:6])
    words_before = len(before)
    size = f"by a factor below {minimal:.3g}" if (scale == "log") else f"below {minimal:.3g}"
    unseen = f"a change {size} would not have been seen"
    texts = {
        ChangeState.CHANGED: f"outside what the {words_before} comparable years before it let expect",
        ChangeState.UNCHANGED: f"within half the limit of the mean of {words_before} years before it",
    }
    words = f"{texts.get(state, f'inside what the {words_before} comparable years before it let expect')}; {unseen}"
    return Change(
        change=change,
        low=low,
        high=high,
        state=state,
        reason=words,
        years_used=len(before),
        tau2=forecast.tau2,
        predicted_low=predicted_low,
        predicted_high=predicted_high,
        minimal=minimal,
        p=forecast.p,
    )


def _arrays(years: Sequence[YearEstimate]) -> tuple[Floats, Floats]:
    return np.array([year.estimate for year in years]), np.array([year.variance for year in years])


def _with_joint_tests(rows: Sequence[Monitored]) -> list[Monitored]:
    """Rows with what takes several into account: q over all series of a year, and Holm over those of a theory."""
    of_year: dict[int, list[int]] = defaultdict(list)
    of_theory: dict[tuple[int, str], list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        if not math.isnan(row.change.p):
            of_year[row.of.year].append(place)
        if not math.isnan(row.change.two_year_p):
            of_theory[row.of.year, row.of.theory].append(place)
    out = list(rows)
    for places in of_year.values():
        for place, q in zip(places, benjamini_hochberg(np.array([rows[i].change.p for i in places])), strict=True):
            out[place] = out[place].with_change(q=float(q))
    for places in of_theory.values():
        for place, p in zip(places, holm([rows[i].change.two_year_p for i in places]), strict=True):
            words = f"{out[place].change.reason} (p {p:.2g} after Holm over {len(places)})"
            out[place] = out[place].with_change(reason=words)
    return out
