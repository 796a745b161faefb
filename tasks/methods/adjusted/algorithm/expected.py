"""Observed less expected: denials of a group against those that the reference group's rule would give its members.

The judged estimate (Peters 1941; Belson 1956; Graubard, Rao and Gastwirth 2005 for logits): a logit of denial is fitted
to the reference group alone, and each member's denial is held against what that fit expects of the same columns. No
odds ratio is common to all members, so that harm in one part of a group counts as large as it is.

Scope: the rule, the effect with its influence, its error with clusters, its limit where denials or approvals are rare.
Parts of a group: ``parts``. Files that the rule leaves out, places and bands: ``readings``.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import logit, ndtr, ndtri, stdtr, stdtrit

from tasks.methods.adjusted.algorithm.design import CLIPPED, RARE, Applications, Control, Design
from tasks.methods.adjusted.algorithm.ladder import (
    EVENTS,
    MOST_ADDED,
    SHARE,
    Equation,
    Terms,
    added,
    choose,
    equation_of,
    of_groups,
    same_terms,
    some_rows,
    terms_of,
)
from tasks.numerics.arrays import Bools, Floats, Ints, Matrix, some_rows_of, sums_of
from tasks.numerics.statistics.regression import fit_logit, log_likelihood, logistic

RIDGE = 1e-3
"""Penalty on all coefficients but the intercept: fits that denials separate stay finite."""
SKEWED = 2.0
"""A positive number of larger skewness enters as its logarithm, where that is less skew."""
MOST_ODDS = 20.0
"""Odds of membership are cut at so many times their mean."""
NO_NOISE = 0.9
"""Share of deviance explained in the reference group from which a lender decides without chance."""
LEAST_APPLICATIONS = 3.0
"""Of such a lender the error is at least so many applications."""
MEMBERSHIP_ROWS, TIMES_MEMBERS = 10_000, 3
"""Reference rows by which membership is fitted: at least the first, or so many times the members."""
TWENTIETHS = tuple(place / 20 for place in range(1, 20))
"""Quantiles of a number at which a cut-off is looked for; two at once begin at every other one, the tenths."""
MOST_PAIRS = 4
"""Pairs of controls of which two cut-offs at once are looked for, by the order in which their products were chosen."""
MOST_CUTS = 6
"""Cut-offs that may be added to the terms."""


# --------------------------------------------------------------------------------------------------------------------
# The form of the rule: logarithms of skew numbers, squares, and terms that tell denial or a group.


def with_logs(control: Control, used: Bools) -> Control:
    """The control on a log scale, where it is a positive number that is skew and less skew as a logarithm."""
    values = control.values[used]
    if control.kind != "number" or control.scale == "log" or not len(values) or not (values > 0).all():
        return control
    skewness = _skewness(values)
    return replace(control, scale="log") if skewness > SKEWED and abs(_skewness(np.log(values))) < skewness else control


def within_reference(control: Control, reference: Bools) -> Control:
    """The control with its numbers cut off at the 1st and 99th percentile of the reference rows.

    The rule says nothing of values that the reference group does not have; squares and hinges would go on without end.
    """
    values = control.values[reference]
    if control.kind != "number" or (len(np.unique(values[:1000])) <= 2 and len(np.unique(values)) <= 2):
        return control
    low, high = np.quantile(values, CLIPPED)
    return replace(control, values=np.clip(control.values, low, high)) if low < high else control


def _skewness(values: Floats) -> float:
    scaled = values / np.abs(values).max()
    centred = scaled - scaled.mean()
    sd = float(np.sqrt(np.mean(centred**2)))
    return float(np.mean((centred / sd) ** 3)) if sd > 0 else 0.0


def with_reference_terms(design: Design, applications: Applications, used: Bools) -> Design:
    """The design with hinges and products by double selection (Belloni, Chernozhukov and Hansen 2014), and cut-offs.

    Score tests on the reference group's rows find terms that predict denial, tests on the rows of both those that tell
    a group from it: of a term that tells both, one test may miss it, and leave what it does in the effect. Ten denials
    and ten approvals of the reference group stand behind each column.

    Args:
        design: of the blocks that are judged, numbers with their squares.
        applications: for the values of the controls.
        used: ``(n,)`` rows of the design.
    """
    reference = design.group == design.reference
    denied = int(design.y[reference].sum())
    width, rung = design.widths[-1], len(design.widths) - 1
    columns = width - len(design.indicators)
    events = min(denied, int(reference.sum()) - denied)
    room = min(MOST_ADDED, events // EVENTS - columns)
    if room <= 0 or rung == 0:
        return design
    few, of_few, used_few = some_rows(design, applications, used)
    terms = terms_of(few, of_few, used_few, rung)
    if not len(terms.first):
        return design
    tested = few.group == few.reference

    @lru_cache(maxsize=1)  # the last choice is asked for up to three times
    def widened(chosen: tuple[int, ...]) -> Design:
        return added(few, terms, list(chosen), rung)

    @lru_cache(maxsize=1)
    def denial(chosen: tuple[int, ...]) -> Equation:
        """Denial of the reference rows by the columns and the terms that are chosen."""
        wide = widened(chosen)
        x = wide.x[np.ix_(tested, np.r_[0, wide.first_control : wide.x.shape[1]])]
        return equation_of(wide, tested, x, wide.y[tested], logit=True)

    chosen = choose(denial(()), terms, min(room, SHARE))
    chosen = of_groups(widened(tuple(chosen)), terms, chosen, rung, room)
    chosen += choose(denial(tuple(chosen)), terms, room - len(chosen))
    cuts = cut_offs(widened(tuple(chosen)), of_few, used_few, terms, chosen)
    most = min(MOST_CUTS, events // EVENTS - columns - len(chosen))
    steps = [] if cuts is None else choose(denial(tuple(chosen)), cuts.terms, most)
    if few is design or not chosen:
        wide = widened(tuple(chosen)) if few is design else design
    else:
        wide = added(
            design, same_terms(terms, chosen, design, applications, used, rung), list(range(len(chosen))), rung
        )
    if cuts is None or not steps:
        return wide
    if few is design:
        cut = added(wide, cuts.terms, steps, rung)
    else:
        cut = added(wide, cuts.of_rows(design, applications, used, steps), list(range(len(steps))), rung)
    return replace(cut, terms=(*wide.terms, *cut.terms), partners={**wide.partners, **cut.partners})


@dataclass(frozen=True)
class CutOffs:
    """Steps of numbers, and two at once."""

    terms: Terms
    ends: tuple[float, ...]
    """Of each factor of the terms, above which number it is 1; NaN of one that is no step."""

    def of_rows(self, design: Design, applications: Applications, used: Bools, steps: Sequence[int]) -> Terms:
        """Some of the terms on other rows, in the order of ``steps``, in single precision."""
        controls = [control for block in applications.blocks for control in block.controls]
        pairs = np.stack([self.terms.first[steps], self.terms.second[steps]])
        numbers, places = np.unique(pairs, return_inverse=True)
        factors = np.empty((len(numbers), len(design.y)), np.float32)
        for row, number in enumerate(numbers):
            name, control = self.terms.names[number], int(self.terms.control[number])
            if control < 0:
                factors[row] = 1.0
            elif math.isnan(self.ends[number]):
                factors[row] = design.matrix[:, design.names.index(name)]
            else:
                factors[row] = controls[control].values[used] > self.ends[number]
        first, second = places.reshape(pairs.shape).astype(np.int32)
        names = tuple(self.terms.names[number] for number in numbers)
        values: Any = factors
        return Terms(values, first, second, names, self.terms.control[numbers])


def cut_offs(
    design: Design, applications: Applications, used: Bools, terms: Terms, chosen: Sequence[int]
) -> CutOffs | None:
    """Steps of the numbers in the terms that are chosen, and two steps at once; None where no term has a number.

    A lender who denies where two numbers are high at once decides by a step. Hinges and their products come near to it
    and leave a point or two where the two numbers go together in one group alone.

    Args:
        design: with the terms that are chosen.
        applications: for the values of the controls.
        used: ``(n,)`` rows of the design.
        terms: those that were looked at.
        chosen: of them, in the order of choice.
    """
    controls = [control for block in applications.blocks for control in block.controls]
    meeting = [(int(terms.control[terms.first[k]]), int(terms.control[terms.second[k]])) for k in chosen]
    pairs = list(dict.fromkeys((min(pair), max(pair)) for pair in meeting if min(pair) >= 0))[:MOST_PAIRS]
    factors, names, of, alone, odd, ends = [np.ones(len(design.y))], [""], [-1], [], set(), [float("nan")]
    for number in dict.fromkeys(control for pair in meeting for control in pair if control >= 0):
        for place, (name, values, end) in enumerate(_steps(design, number, controls[number], used)):
            is_step = not math.isnan(end)
            ends.append(end)
            alone += [len(factors)] if is_step else []
            odd |= {len(factors)} if is_step and place % 2 == 0 else set()
            factors.append(values)
            names.append(name)
            of.append(number)
    control_of = np.array(of, np.int32)
    products = [
        (int(i), int(j))
        for low, high in pairs
        for i in np.flatnonzero(control_of == low)
        for j in np.flatnonzero(control_of == high)
        if (i in alone or j in alone) and not {i, j} & odd and (factors[i] * factors[j] != 0).sum() >= RARE
    ]
    if not alone:
        return None
    first, second = np.array([*((0, k) for k in alone), *products], np.int32).T
    return CutOffs(Terms(np.stack(factors), first, second, tuple(names), control_of), tuple(ends))


def _steps(design: Design, number: int, control: Control, used: Bools) -> Iterator[tuple[str, Floats, float]]:
    """Steps of a number at its twentieths in the reference group, or the columns of another control and NaN."""
    columns = [
        j for j, control_number in enumerate(design.control) if control_number == number and j not in design.partners
    ]
    values = control.values[used]
    ends = np.unique(np.quantile(values[design.group == design.reference], TWENTIETHS))
    if control.kind == "category" or len(ends) < 3:
        yield from ((design.names[j], design.x[:, j], math.nan) for j in columns)
        return
    for end in ends:
        step = (values > end).astype(np.float64)
        if RARE <= step.sum() <= len(step) - RARE:
            yield f"{control.name} cut at {end:.3g}", step, float(end)


# --------------------------------------------------------------------------------------------------------------------
# The rule of the reference group, and the effect on a group: observed less expected.


@dataclass(frozen=True)
class Rule:
    """The chance of denial by the reference group's rule."""

    x: Matrix
    """``(n, k)`` columns of all rows, intercept first, without those of groups."""
    y: Floats
    """``(n,)`` 1 for denied."""
    reference: Bools
    """``(n,)`` rows that it is fitted to."""
    weight: Floats | None
    """``(n,)`` how much each row counts; None: all alike."""
    p0: Floats
    """``(n,)`` chance of denial of every row by the rule."""
    coefficients: Floats
    """``(k,)``."""
    inverse: Floats
    """``(k, k)`` of the information."""
    explained: float
    """Share of the deviance that it explains in the reference group (McFadden 1974)."""

    @property
    def no_noise(self) -> bool:
        """Whether the lender decides without chance, as by a cut-off."""
        return self.explained > NO_NOISE

    def shifted(self, gradient: Floats) -> Floats:
        """``(n,)`` influence of the reference rows on a mean of p0 with this gradient by the coefficients."""
        rows, columns = int(self.reference.sum()), self.x.shape[1]
        small_sample = math.sqrt(rows / max(rows - columns, 1))
        influence: Floats = self.x @ (self.inverse @ gradient)
        influence *= np.where(self.reference, self.y - self.p0, 0.0)
        if self.weight is not None:
            influence *= self.weight
        influence *= small_sample
        return influence


def rule_of(x: Matrix, y: Floats, reference: Bools, weight: Floats | None = None, start: Floats | None = None) -> Rule:
    """Fit the rule to the reference group.

    Args:
        x: ``(n, k)`` columns of all rows, intercept first.
        y: ``(n,)`` 1 for denied.
        reference: ``(n,)`` rows of the reference group.
        weight: ``(n,)`` how much each row counts.
        start: ``(k,)`` first coefficients.
    """
    own_x, own_y = some_rows_of(x, reference), y[reference]
    own_weight = None if weight is None else weight[reference]
    fit = fit_logit(own_x, own_y, start, RIDGE, own_weight)
    p0 = logistic(x @ fit.coefficients)
    mean = float(np.average(own_y, weights=own_weight))
    deviance = -log_likelihood(own_x @ fit.coefficients, own_y, own_weight)
    alone = -log_likelihood(np.full(len(own_y), float(logit(mean))), own_y, own_weight) if 0 < mean < 1 else 0.0
    return Rule(x, y, reference, weight, p0, fit.coefficients, fit.inverse, 1 - deviance / alone if alone > 0 else 0.0)


@dataclass(frozen=True)
class Effect:
    """Denied less expected of one group, as shares of its members."""

    value: float
    expected: float
    """Share of the members that the rule would deny."""
    influence: Floats
    """``(n,)`` of each row on the value; 0 for rows of other groups."""
    of_expected: Floats
    """``(n,)`` of each row on the expected share."""
    members: Bools
    """``(n,)``."""
    n: int
    denied: float
    """Share of the members who were denied."""


def effect_on(rule: Rule, members: Bools) -> Effect:
    """The mean of denial less p0 over the members; their weights are those of the rule."""
    weight = np.ones(len(rule.y)) if rule.weight is None else rule.weight
    share = np.where(members, weight, 0.0) / weight[members].sum()
    p0 = rule.p0[members]
    gradient = sums_of(some_rows_of(rule.x, members), share[members] * p0 * (1 - p0))
    value, expected = float(share @ (rule.y - rule.p0)), float(share @ rule.p0)
    shifted = rule.shifted(gradient)
    influence = share * (rule.y - rule.p0 - value) - shifted
    of_expected = share * (rule.p0 - expected) + shifted
    return Effect(value, expected, influence, of_expected, members, int(members.sum()), value + expected)


# --------------------------------------------------------------------------------------------------------------------
# Errors: sums of squared influences, or of their sums by cluster, never below the error by rows.


@dataclass(frozen=True)
class Error:
    """A standard error with the degrees of freedom of Student's t; infinite for the normal."""

    se: float
    df: float = math.inf

    def quantile(self, level: float) -> float:
        """How many errors a one-sided interval reaches that misses with probability ``level``."""
        return -float(ndtri(level) if math.isinf(self.df) else stdtrit(self.df, level))

    def tail(self, distance: float) -> float:
        """Chance of an estimate so far above the truth, or farther."""
        z = distance / self.se if self.se > 0 else math.copysign(math.inf, distance)
        return float(ndtr(-z) if math.isinf(self.df) else stdtr(self.df, -z))


def error_of(
    influence: Floats, members: Bools, reference: Bools, cluster: Ints | None, least_of_members: float = 0.0
) -> Error:
    """The error of an estimate from the influence of each row.

    With clusters the sums of the members are divided by one less the cluster's share of the members, those of the
    reference rows by one less its share of these: the jackknife of both means. The degrees of freedom are
    Satterthwaite's for a strictness that the rows of a cluster share: (sum u)^2 / sum u^2, u the squared difference of
    both shares.

    Args:
        influence: ``(n,)``.
        members: ``(n,)`` of the group.
        reference: ``(n,)`` of the reference group.
        cluster: ``(n,)`` from 0; None for independent rows.
        least_of_members: The members' part of the variance is no smaller.
    """
    squares = influence**2
    by_rows = max(float(squares[members].sum()), least_of_members) + float(squares[~members].sum())
    if cluster is None:
        return Error(math.sqrt(by_rows))
    count = int(cluster.max(initial=-1)) + 1
    sums, shares = [], []
    for side in (members, reference):
        n = max(int(side.sum()), 1)
        share = np.bincount(cluster[side], minlength=count) / n
        shares.append(share)
        sums.append(np.bincount(cluster[side], influence[side], count) / np.maximum(1 - share, 1 / n))
    by_cluster = float(((sums[0] + sums[1]) ** 2).sum())
    u = (shares[0] - shares[1]) ** 2
    df = float(u.sum() ** 2 / (u**2).sum()) if u.any() else math.inf
    return Error(math.sqrt(max(by_cluster, by_rows)), df)


# --------------------------------------------------------------------------------------------------------------------
# The limit, which is smaller where few are denied or approved, and the ratio of denied to expected.


@dataclass(frozen=True)
class LimitRule:
    """How much more than expected is tolerated: the least of three numbers, and no less than a fourth."""

    points: float
    """Share of the members."""
    times: float | None = None
    """Times the expected denials."""
    fifth: float | None = None
    """Times the expected approvals."""
    least: float = 0.0

    def at(self, expected: float) -> tuple[float, float]:
        """The limit, and its slope by the expected share."""
        candidates = [(self.points, 0.0)]
        if self.times is not None:
            candidates.append((self.times * expected, self.times))
        if self.fifth is not None:
            candidates.append((self.fifth * (1 - expected), -self.fifth))
        limit, slope = min(candidates)
        return (limit, slope) if limit >= self.least else (self.least, 0.0)


@dataclass(frozen=True)
class Judged:
    """What a verdict on the effect rests on."""

    limit: float
    plain: Error
    """Of the effect."""
    se_by_rows: float
    """The same if rows were independent."""
    at_limit: Error
    """Of the effect less the limit, which moves with the expected share."""
    ratio: float
    ratio_se: float
    """Of the logarithm of the ratio; NaN where nobody is denied or expected to be."""


def judge(rule: Rule, effect: Effect, limits: LimitRule, cluster: Ints | None) -> Judged:
    """Errors of an effect, of its distance from its limit, and of the ratio of denied to expected."""
    limit, slope = limits.at(effect.expected)
    sides = effect.members, rule.reference, cluster
    rate = np.minimum(rule.p0[effect.members] * (1 + limit / max(effect.expected, 1e-12)), 1.0)
    least = float((rate * (1 - rate)).sum()) / effect.n**2
    plain = error_of(effect.influence, *sides)
    at_limit = error_of(effect.influence - slope * effect.of_expected, *sides, least)
    if rule.no_noise:
        coarse = LEAST_APPLICATIONS / effect.n
        plain = replace(plain, se=max(plain.se, coarse))
        at_limit = replace(at_limit, se=max(at_limit.se, coarse))
    ratio, ratio_se = math.nan, math.nan
    if effect.expected > 0:
        ratio = effect.denied / effect.expected
    if ratio > 0:
        of_denied = effect.influence + effect.of_expected
        ratio_se = error_of(of_denied / effect.denied - effect.of_expected / effect.expected, *sides).se
    return Judged(limit, plain, math.sqrt(float(effect.influence @ effect.influence)), at_limit, ratio, ratio_se)


# --------------------------------------------------------------------------------------------------------------------
# The targeted estimate (van der Laan and Rubin 2006) beside it: whether the effect depends on the form of the rule.


def odds_of_membership(x: Matrix, members: Bools, reference: Bools, weight: Floats | None = None) -> Floats:
    """``(n,)`` odds of being a member, by a logit on the columns; cut at 20 times their mean in the reference group.

    Of many reference rows every so many-th is fitted to, which moves the intercept alone. Rows may have a ``weight``.
    """
    step = 1 + int(reference.sum()) // max(MEMBERSHIP_ROWS, TIMES_MEMBERS * int(members.sum()))
    rows = np.sort(np.concatenate([np.flatnonzero(members), np.flatnonzero(reference)[::step]]))
    fitted_weight = None if weight is None else weight[rows]
    fit = fit_logit(some_rows_of(x, rows), members[rows].astype(np.float64), ridge=RIDGE, weight=fitted_weight)
    odds = np.exp(np.clip(x @ fit.coefficients, -30, 30)) / step
    return np.minimum(odds, MOST_ODDS * float(odds[reference].mean()))


def targeted(rule: Rule, effect: Effect, odds: Floats) -> tuple[float, Floats]:
    """The effect with p0 shifted until its errors in the reference group, weighted by odds, are 0; its influence."""
    index = logit(np.clip(rule.p0, 1e-12, 1 - 1e-12))
    row_weight = np.ones(len(rule.y)) if rule.weight is None else rule.weight
    weight, y = (odds * row_weight)[rule.reference], rule.y[rule.reference]
    members = float(row_weight[effect.members].sum())
    shift = 0.0
    for _ in range(50):
        p = logistic(index[rule.reference] + shift)
        step = float(weight @ (y - p)) / max(float(weight @ (p * (1 - p))), 1e-12)
        shift += min(max(step, -1.0), 1.0)
        if abs(step) < 1e-10:
            break
    shifted = logistic(index + shift)
    value = float(np.average((rule.y - shifted)[effect.members], weights=row_weight[effect.members]))
    influence = np.where(effect.members, row_weight * (rule.y - shifted - value), 0.0) / members
    influence[rule.reference] -= weight * (y - shifted[rule.reference]) / members
    return value, influence
