"""Mechanisms of a structural causal model: additive noise, cumulative logit, counts and categories."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import lstsq
from scipy.optimize import minimize
from scipy.special import expit, log_expit, ndtr, ndtri, pdtr, pdtrc
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, PoissonRegressor

from schemas.audit.causal import Form, Mechanism
from schemas.terms import Kind
from tasks.counterfactuals.algorithm.multinomial import MultinomialLogit, fit_classifier, refit_classifier
from tasks.numerics.arrays import Bools, Floats, Longs

# --------------------------------------------------------------------------------------------------------------------
# Additive noise: a number is the expectation of a regression on its causes, plus noise.
#
# The noise of a value is its residual. The fit is pooled over all groups (CST, section 4; Hoyer et al. 2009 for the
# model class).


TOLERANCE = 1e-13
"""Least squares drop directions smaller than this times the largest: groups beside dollars are that small."""

REGRESSORS: dict[str, Any] = {
    "linear": LinearRegression(tol=TOLERANCE),
    # deep trees learn the rows by heart: what is left of a value would not be its noise, and go with the group
    "forest": RandomForestRegressor(n_estimators=100, min_samples_leaf=50),
    "boosting": HistGradientBoostingRegressor(min_samples_leaf=50),
}
"""Regressors by the kind of mechanism that they stand for, unfitted."""


@dataclass(frozen=True)
class Additive:
    """``x = f(causes) + noise``."""

    regressor: Any
    """A fitted scikit-learn regressor."""
    decimals: int | None = None
    """Digits to which the noise is rounded."""
    draws: int = 0
    """Uniform numbers that ``abduct`` needs per row."""

    def abduct(self, causes: Floats, values: Floats, uniforms: Floats) -> Floats:  # noqa: ARG002
        """Noise ``(r, 1)`` behind the values ``(r,)``, in the column's units."""
        noise = values - self.expected(causes)
        return (noise if self.decimals is None else np.round(noise, self.decimals))[:, None]

    def predict(self, causes: Floats, noise: Floats) -> Floats:
        """Values ``(r,)`` that the causes ``(r, q)`` and the noise ``(r, 1)`` make."""
        return self.expected(causes) + noise[:, 0]

    def expected(self, causes: Floats) -> Floats:
        """What the regression expects, ``(r,)``."""
        return np.asarray(self.regressor.predict(causes), dtype=np.float64)


def fit_additive(regressor: Any, causes: Floats, values: Floats, seed: int, decimals: int | None = None) -> Additive:
    """Fit any scikit-learn regressor, seeded where it draws; the one given stays unfitted."""
    fresh = clone(regressor)
    if "random_state" in fresh.get_params():
        fresh.set_params(random_state=seed)
    return Additive(fresh.fit(causes, values), decimals)


@dataclass(frozen=True)
class Line:
    """A linear regression, as scikit-learn fits it, without its checks of what is handed in: most of a small fit."""

    coef_: Floats
    """``(q,)``."""
    intercept_: float

    @classmethod
    def of(cls, causes: Floats, values: Floats) -> "Line":
        """Least squares of values ``(n,)`` on causes ``(n, q)``, both centred."""
        centre, mean = causes.mean(axis=0), float(values.mean())
        coefficients = lstsq(causes - centre, values - mean, cond=TOLERANCE, check_finite=False)[0]
        return cls(coefficients, mean - float(centre @ coefficients))

    def predict(self, causes: Floats) -> Floats:
        """``(r,)`` expectations."""
        return causes @ self.coef_ + self.intercept_


def refit_additive(full_fit: Additive, causes: Floats, values: Floats, seed: int) -> Additive:
    """The same regression of other rows, such as a resample."""
    if isinstance(full_fit.regressor, LinearRegression):
        return Additive(Line.of(causes, values), full_fit.decimals)
    return fit_additive(full_fit.regressor, causes, values, seed, full_fit.decimals)


# --------------------------------------------------------------------------------------------------------------------
# Couplings of discrete values: which noise a value keeps, so that its counterfactual is well defined.
#
# A discrete value is compatible with many values of noise, and a coupling selects one. The quantile coupling preserves
# the order of categories or counts; Gumbel-max coupling needs no order. Both draw the noise from its distribution given
# the observation, so that noise and causes together reproduce the fitted distribution.


_INSIDE = 1e-6
"""How far, as a share of a step, a drawn quantile keeps from its ends: rounding must not take it to the next value."""


def quantile_score(lower: tuple[Floats, Floats], upper: tuple[Floats, Floats], uniforms: Floats) -> Floats:
    """Noise of observed values under the quantile coupling, as standard normal scores.

    The score lies between those at which the distribution function steps up to the value and away from it. If the
    distribution is the right one, it is standard normal whatever the causes (a randomised quantile residual, Dunn and
    Smyth 1996). Both tails are used, for a score far out to keep its digits.

    Args:
        lower: ``P(X < x)`` and ``P(X <= x)``, ``(r,)`` each.
        upper: ``P(X > x)`` and ``P(X >= x)``, ``(r,)`` each.
        uniforms: ``(r,)`` where in between, in [0, 1).

    Returns:
        ``(r,)`` scores, higher for higher values; not finite where the value has no probability.
    """
    share = _INSIDE + (1 - 2 * _INSIDE) * uniforms
    below = lower[0] + share * (lower[1] - lower[0])
    above = upper[0] + (1 - share) * (upper[1] - upper[0])
    with np.errstate(divide="ignore"):
        scores = np.where(below < above, ndtri(below), -ndtri(above))
    return np.where((lower[1] > lower[0]) | (upper[1] > upper[0]), scores, np.nan)


def passed(scores: Floats, at_most: Floats, at_least: Floats) -> Bools:
    """Whether scores lie beyond values with the given ``P(X <= x)`` and ``P(X > x)``; arrays broadcast."""
    return np.asarray(np.where(scores < 0, at_most <= ndtr(scores), at_least >= ndtr(-scores)))


def gumbel_noise(probabilities: Floats, observed: Floats, uniforms: Floats) -> Floats:
    """Noise of observed categories under Gumbel-max coupling (Oberst and Sontag 2019, section 3.2 and appendix).

    A category is the one whose log probability plus standard Gumbel noise is largest. Given which one that was, the
    largest sum is a Gumbel variable free of the causes, and the others are Gumbel variables cut off there. With ``e_j``
    exponential and ``k`` observed, that is ``-log(p_k e_k)`` for ``k`` and ``-log(p_j e_k + e_j)`` for the others.

    Args:
        probabilities: ``(r, c)`` fitted probability of every category.
        observed: ``(r,)`` number of the observed one.
        uniforms: ``(r, c)`` in [0, 1).

    Returns:
        ``(r, c)`` noise; not finite where the observed category has no probability.
    """
    exponential = -np.log1p(-uniforms)
    is_observed = np.arange(probabilities.shape[1]) == observed[:, None]
    largest = exponential[is_observed][:, None]
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(probabilities * largest + np.where(is_observed, 0.0, exponential)))


def gumbel_argmax(probabilities: Floats, noise: Floats) -> Floats:
    """Number of the category ``(r,)`` that the noise ``(r, c)`` leads to under other probabilities ``(r, c)``."""
    with np.errstate(divide="ignore"):
        return np.asarray((np.log(probabilities) + noise).argmax(axis=1), dtype=np.float64)


# --------------------------------------------------------------------------------------------------------------------
# A cumulative logit fitted to a resample, by Newton's method from the fit to all rows.
#
# The penalised likelihood is concave in slopes and cuts together (Burridge 1981), so that it has one maximum, and from
# nearby three or four steps reach it where the search from the start takes thirty. Rows are sorted by category once:
# all sums over categories are then of neighbours.
#
# Scope: the steps. The model, and its fit from the start: ``cumulative``.


CLOSE = 1e-9
"""Newton has arrived when no parameter would move by more."""
STEPS, HALVINGS = 30, 30


@dataclass(frozen=True)
class Sorted:
    """``n`` rows by category, of ``c`` categories that all occur."""

    x: Floats
    """``(n, q)`` scaled causes."""
    place: Longs
    """``(n,)`` ascending."""
    start: Longs
    """``(c,)`` first row of each category."""

    @classmethod
    def of(cls, x: Floats, place: Longs) -> "Sorted":
        """Rows and the number of each row's category."""
        order = np.argsort(place, kind="stable")
        ordered = place[order]
        return cls(x[order], ordered, np.flatnonzero(np.diff(ordered, prepend=-1)))

    def sums(self, values: Floats) -> Floats:
        """Sums by category ``(c, ...)`` of one value, or one row, for each row."""
        return np.add.reduceat(values, self.start, axis=0)


def newton(x: Floats, place: Longs, slopes: Floats, cuts: Floats) -> tuple[Floats, Floats] | None:
    """Slopes ``(q,)`` and cuts ``(c - 1,)`` of the largest penalised likelihood; None where it is not reached.

    Args:
        x: ``(n, q)`` scaled causes.
        place: ``(n,)`` number of each row's category; all from 0 to c - 1 occur.
        slopes: Where to start.
        cuts: Likewise, ascending.
    """
    rows, q = Sorted.of(x, place), len(slopes)
    b = np.concatenate([slopes, cuts])
    value = likelihood(rows, b)
    for _ in range(STEPS):
        gradient, curvature = derivatives(rows, b)
        try:
            step = np.linalg.solve(curvature, gradient)
        except np.linalg.LinAlgError:
            return None
        for _ in range(HALVINGS):
            ahead = b + step
            reached = likelihood(rows, ahead)
            if reached >= value - 1e-12 * abs(value):
                break
            step = step / 2
        else:
            return None
        b, value = ahead, reached
        if np.abs(step).max() <= CLOSE:
            return b[:q], b[q:]
    return None


def likelihood(rows: Sorted, b: Floats) -> float:
    """Log likelihood less half the squared slopes; minus infinity where the cuts do not ascend."""
    q = rows.x.shape[1]
    if (np.diff(b[q:]) <= 0).any():
        return float("-inf")
    above, below, gap = _ends(rows, b)
    log_likelihood = log_expit(above) + log_expit(-below) + np.log(-np.expm1(-gap))
    return float(log_likelihood.sum() - b[:q] @ b[:q] / 2)


def derivatives(rows: Sorted, b: Floats) -> tuple[Floats, Floats]:
    """Gradient ``(q + c - 1,)`` and minus the second derivatives of the penalised log likelihood.

    With F the logistic function, a row's probability is F(a) - F(b) between its ends a and b, less the linear term;
    ``shrink`` is 1 / (exp(a - b) - 1). Minus the second derivatives are F(a) F(-a) + h in a, F(b) F(-b) + h in b and -h
    across, with h = shrink (1 + shrink).
    """
    q = rows.x.shape[1]
    above, below, gap = _ends(rows, b)
    up, down, shrink = expit(-above), expit(below), 1 / np.expm1(gap)
    of_above, of_below = up + shrink, down + shrink  # the second with its sign turned
    a, c, h = rows.sums(up * (1 - up)), rows.sums(down * (1 - down)), rows.sums(shrink * (1 + shrink))
    curvature = up * (1 - up) + down * (1 - down)
    information = np.zeros((len(b), len(b)))
    information[:q, :q] = (rows.x * curvature[:, None]).T @ rows.x
    information.flat[: q * len(b) : len(b) + 1] += 1
    upper = rows.sums(rows.x * (up * (1 - up))[:, None])[:-1]
    lower = rows.sums(rows.x * (down * (1 - down))[:, None])[1:]
    information[q:, :q] = -upper - lower
    information[:q, q:] = information[q:, :q].T
    cut = np.arange(q, len(b))
    information[cut, cut] = (a + h)[:-1] + (c + h)[1:]
    information[cut[1:], cut[:-1]] = information[cut[:-1], cut[1:]] = -h[1:-1]
    gradient = np.concatenate(
        [-(rows.x.T @ (of_above - of_below)) - b[:q], rows.sums(of_above)[:-1] - rows.sums(of_below)[1:]]
    )
    return gradient, information


def _ends(rows: Sorted, b: Floats) -> tuple[Floats, Floats, Floats]:
    """Both ends of each row's category less its linear term, and how far they are apart."""
    q = rows.x.shape[1]
    ends, linear = np.concatenate([[-np.inf], b[q:], [np.inf]]), rows.x @ b[:q]
    wide = np.concatenate([[np.inf], np.diff(b[q:]), [np.inf]])
    return ends[rows.place + 1] - linear, ends[rows.place] - linear, wide[rows.place]


# --------------------------------------------------------------------------------------------------------------------
# Cumulative logit: ordered categories with proportional odds (McCullagh 1980, 'Regression Models for Ordinal Data').
#
# With one slope for all categories, a change of causes shifts the whole distribution, as the quantile coupling of an
# ordered column requires, and a column of many bands needs few parameters. scikit-learn has no such model, and that of
# statsmodels takes minutes over 40,000 rows.


@dataclass(frozen=True)
class CumulativeLogit:
    """The model with its parameters."""

    classes_: Longs
    """``(c,)`` the categories that the fit has met, ascending."""
    slopes: Floats
    """``(q,)`` of the scaled causes; a positive one moves towards higher categories."""
    cuts: Floats
    """``(c - 1,)`` ascending, where one category gives way to the next."""
    centre: Floats
    scale: Floats

    def predict_proba(self, causes: Floats) -> Floats:
        """``(r, c)`` probability of every category met."""
        below = expit(self.cuts - (_scaled(causes, self.centre, self.scale) @ self.slopes)[:, None])
        return np.diff(below, axis=1, prepend=0.0, append=1.0)


def refit_cumulative(full_fit: CumulativeLogit, causes: Floats, codes: Floats) -> CumulativeLogit:
    """The same model of other rows, such as a resample: from where the fit to the whole ended.

    Args:
        full_fit: The fit to all rows.
        causes: ``(n, q)``.
        codes: ``(n,)`` numbers of categories. Where they are not those of the whole, it is fitted from the start.
    """
    classes, place = np.unique(codes.astype(np.int64), return_inverse=True)
    centre, scale = _scaling(causes)
    if np.array_equal(classes, full_fit.classes_):
        slopes = full_fit.slopes * scale / full_fit.scale
        cuts = full_fit.cuts - ((centre - full_fit.centre) / full_fit.scale) @ full_fit.slopes
        solution = newton(_scaled(causes, centre, scale), place, slopes, cuts)
        if solution is not None:
            return CumulativeLogit(classes, *solution, centre, scale)
    return fit_cumulative(causes, codes)


def fit_cumulative(causes: Floats, codes: Floats) -> CumulativeLogit:
    """Fit by maximum likelihood, with a slight penalty (half the squared slopes) that keeps separable data finite.

    Args:
        causes: ``(n, q)``, scaled here to mean 0 and standard deviation 1.
        codes: ``(n,)`` numbers of categories; two at least occur.
    """
    classes, place = np.unique(codes.astype(np.int64), return_inverse=True)
    centre, scale = _scaling(causes)
    x = _scaled(causes, centre, scale)
    shares = np.cumsum(np.bincount(place))[:-1] / len(place)
    first = np.log(shares / (1 - shares))
    start = np.concatenate([np.zeros(x.shape[1]), first[:1], np.log(np.diff(first))])
    optimum = minimize(_loss, start, (x, place, len(classes)), method="L-BFGS-B", jac=True, options=_ENOUGH)
    slopes, cuts = optimum.x[: x.shape[1]], _cuts(optimum.x[x.shape[1] :])
    return CumulativeLogit(classes, slopes, cuts, centre, scale)


_ENOUGH = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-11, "gtol": 1e-6}


def _scaling(causes: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each cause; 1 for one that does not vary."""
    spread = causes.std(axis=0)
    return causes.mean(axis=0), np.where(spread > 0, spread, 1.0)


def _scaled(causes: Floats, centre: Floats, scale: Floats) -> Floats:
    return (causes - centre) / scale


def _cuts(free: Floats) -> Floats:
    """Ascending cuts from numbers that may be anything: the first, then logarithms of the steps."""
    return np.cumsum(np.concatenate([free[:1], np.exp(free[1:])]))


def _loss(parameters: Floats, x: Floats, place: Longs, categories: int) -> tuple[float, Floats]:
    """Penalised negative log likelihood per row, and its gradient.

    Log probability of a category between the cuts ``a`` (above) and ``b`` (below), both less the linear term, is
    ``log F(a) + log F(-b) + log(1 - exp(b - a))`` for the logistic ``F``: no difference of nearly equal numbers.
    """
    q, n = x.shape[1], len(x)
    slopes, free = parameters[:q], parameters[q:]
    ends = np.concatenate([[-np.inf], _cuts(free), [np.inf]])
    linear = x @ slopes
    above, below = ends[place + 1] - linear, ends[place] - linear
    with np.errstate(invalid="ignore"):
        gap = np.where(np.isfinite(above) & np.isfinite(below), above - below, np.inf)
    shrink = 1 / np.expm1(gap)
    loss = -(log_expit(above) + log_expit(-below) + np.log(-np.expm1(-gap))).sum() + slopes @ slopes / 2
    of_above, of_below = expit(-above) + shrink, -expit(below) - shrink
    of_slopes = x.T @ (of_above + of_below) + slopes
    of_ends = -np.bincount(place + 1, of_above, categories + 1) - np.bincount(place, of_below, categories + 1)
    # a step moves its own cut and all that follow
    following = np.cumsum(of_ends[1:-1][::-1])[::-1]
    of_free = following * np.concatenate([[1.0], np.exp(free[1:])])
    return float(loss) / n, np.concatenate([of_slopes, of_free]) / n


# --------------------------------------------------------------------------------------------------------------------
# Mechanisms of counts and categories: a fitted distribution given the causes, and a coupling over it.
#
# The distributions are scikit-learn's; the couplings are in ``coupling``.


@dataclass(frozen=True)
class Count:
    """A count with a Poisson distribution and a log mean that is linear in the causes, under the quantile coupling."""

    regressor: Any
    """A fitted regressor of the mean."""
    draws: int = 1

    def abduct(self, causes: Floats, values: Floats, uniforms: Floats) -> Floats:
        """Scores ``(r, 1)`` behind the counts ``(r,)``, seeded by ``(r, 1)`` uniform numbers."""
        mean, before = self.expected(causes), values - 1
        lower = (np.where(values > 0, pdtr(before, mean), 0.0), pdtr(values, mean))
        upper = (pdtrc(values, mean), np.where(values > 0, pdtrc(before, mean), 1.0))
        return quantile_score(lower, upper, uniforms[:, 0])[:, None]

    def predict(self, causes: Floats, noise: Floats) -> Floats:
        """Counts ``(r,)``: the smallest that the score has not passed, found by halving."""
        mean, scores = self.expected(causes), noise[:, 0]
        low, high = np.full(len(mean), -1.0), np.ceil(mean)
        while (short := passed(scores, pdtr(high, mean), pdtrc(high, mean))).any():
            high[short] = 2 * high[short] + 1
        while (high - low > 1).any():
            middle = np.floor((low + high) / 2)
            count = np.maximum(middle, 0.0)
            beyond = (middle < 0) | passed(scores, pdtr(count, mean), pdtrc(count, mean))
            low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
        return high

    def expected(self, causes: Floats) -> Floats:
        """Mean count, ``(r,)``."""
        return np.asarray(self.regressor.predict(causes), dtype=np.float64)


@dataclass(frozen=True)
class _Categorical:
    """Categories with a probability each, given the causes."""

    classifier: Any
    """A fitted classifier of the category's number."""
    categories: int

    def probabilities(self, causes: Floats) -> Floats:
        """Probability of every category, ``(r, c)``; 0 for those that the fit has not seen."""
        class_probabilities = np.zeros((len(causes), self.categories))
        class_probabilities[:, self.classifier.classes_.astype(np.int64)] = self.classifier.predict_proba(causes)
        return class_probabilities


@dataclass(frozen=True)
class Ordinal(_Categorical):
    """Ordered categories under the quantile coupling, which keeps the order of rows with the same causes."""

    draws: int = 1

    def abduct(self, causes: Floats, values: Floats, uniforms: Floats) -> Floats:
        """Scores ``(r, 1)`` behind the categories ``(r,)``, seeded by ``(r, 1)`` uniform numbers."""
        at_most, at_least = _tails(self.probabilities(causes))
        rows, code = np.arange(len(values)), values.astype(np.int64)
        lower = np.pad(at_most, ((0, 0), (1, 0)))
        upper = np.pad(at_least, ((0, 0), (1, 0)), constant_values=1.0)
        return quantile_score(
            (lower[rows, code], lower[rows, code + 1]), (upper[rows, code + 1], upper[rows, code]), uniforms[:, 0]
        )[:, None]

    def predict(self, causes: Floats, noise: Floats) -> Floats:
        """Categories ``(r,)``: as many as the score has passed."""
        at_most, at_least = _tails(self.probabilities(causes))
        return np.asarray(passed(noise, at_most[:, :-1], at_least[:, :-1]).sum(axis=1), dtype=np.float64)


@dataclass(frozen=True)
class Nominal(_Categorical):
    """Categories without order, under Gumbel-max coupling.

    A category whose odds have not fallen against any other is kept (counterfactual stability, Oberst and Sontag 2019).
    """

    @property
    def draws(self) -> int:
        """Uniform numbers that ``abduct`` needs per row: one per category."""
        return self.categories

    def abduct(self, causes: Floats, values: Floats, uniforms: Floats) -> Floats:
        """Gumbel noise ``(r, c)`` behind the categories ``(r,)``, seeded by ``(r, c)`` uniform numbers."""
        return gumbel_noise(self.probabilities(causes), values, uniforms)

    def predict(self, causes: Floats, noise: Floats) -> Floats:
        """Categories ``(r,)`` with the largest log probability plus noise."""
        return gumbel_argmax(self.probabilities(causes), noise)


def _tails(probabilities: Floats) -> tuple[Floats, Floats]:
    """``P(X <= x)`` and ``P(X > x)`` of every category, ``(r, c)`` each, either summed from its own end."""
    at_most = np.cumsum(probabilities, axis=1)
    at_least = np.cumsum(probabilities[:, ::-1], axis=1)[:, ::-1]
    return at_most, np.pad(at_least[:, 1:], ((0, 0), (0, 1)))


def fit_count(causes: Floats, values: Floats) -> Count:
    """Fit a Poisson regression without a penalty."""
    return Count(PoissonRegressor(alpha=0.0, solver="newton-cholesky", max_iter=1000, tol=1e-8).fit(causes, values))


def fit_ordered(causes: Floats, codes: Floats) -> Any:
    """Fit a cumulative logit to the numbers of ordered categories."""
    if len(np.unique(codes)) == 1:
        return DummyClassifier(strategy="prior").fit(causes, codes)
    return fit_cumulative(causes, codes)


# --------------------------------------------------------------------------------------------------------------------
# Mechanisms: one column as a function of its direct causes and of its own noise.
#
# ``abduct`` finds the noise of an observed value, ``predict`` computes the value from causes and noise. Predicting from
# the causes of the abduction returns the observed value.
#
# Scope: the interface of mechanisms, and the choice among them. The graph:
# ``tasks.counterfactuals.algorithm.causal_model``.


AUTO: dict[Kind, Form] = {
    Kind.CONTINUOUS: "linear",
    Kind.ORDINAL: "ordinal",
    Kind.BINARY: "ordinal",
    Kind.NOMINAL: "nominal",
}
"""The mechanism that a kind of column gets if none is named."""

ALLOWED: dict[Kind, tuple[Form, ...]] = {
    Kind.CONTINUOUS: ("linear", "forest", "boosting", "count"),
    Kind.ORDINAL: ("ordinal", "nominal"),
    Kind.BINARY: ("ordinal", "nominal"),
    Kind.NOMINAL: ("nominal",),
}
"""The mechanisms that a kind of column can have."""


class FittedMechanism(Protocol):
    """A mechanism with its parameters. ``q`` encoded causes, ``d`` numbers of noise per row."""

    @property
    def draws(self) -> int:
        """Uniform numbers that ``abduct`` needs per row."""

    def abduct(self, causes: Floats, values: Floats, uniforms: Floats) -> Floats:
        """Noise ``(r, d)`` behind values ``(r,)``; not finite where no noise makes the value."""

    def predict(self, causes: Floats, noise: Floats) -> Floats:
        """Values ``(r,)`` from causes ``(r, q)`` and noise ``(r, d)``."""


def fit_mechanism(
    form: Form, setting: Mechanism, causes: Floats, values: Floats, categories: int, seed: int
) -> FittedMechanism:
    """Fit one mechanism to all given rows, of every group.

    Args:
        form: Which mechanism, ``setting.kind`` where that names one.
        setting: How the noise is rounded.
        causes: ``(n, q)`` encoded direct causes.
        values: ``(n,)`` numbers, or the numbers of categories.
        categories: Categories that the column has; 0 for numbers.
        seed: Of regressors that draw.
    """
    if form == "count":
        return fit_count(causes, values)
    if form == "ordinal":
        return Ordinal(fit_ordered(causes, values), categories)
    if form == "nominal":
        return Nominal(fit_classifier(causes, values), categories)
    return fit_additive(REGRESSORS[form], causes, values, seed, setting.noise_decimals)


def refit_mechanism(
    full_fit: FittedMechanism,
    form: Form,
    setting: Mechanism,
    causes: Floats,
    values: Floats,
    categories: int,
    seed: int,
) -> FittedMechanism:
    """Fit a mechanism to a resample of the rows that ``full_fit`` was fitted to; the rest as ``fit_mechanism``."""
    if (
        isinstance(full_fit, Ordinal)
        and isinstance(full_fit.classifier, CumulativeLogit)
        and len(np.unique(values)) > 1
    ):
        return Ordinal(refit_cumulative(full_fit.classifier, causes, values), categories)
    if isinstance(full_fit, Nominal) and isinstance(full_fit.classifier, MultinomialLogit):
        return Nominal(refit_classifier(full_fit.classifier, causes, values), categories)
    if isinstance(full_fit, Additive):
        return refit_additive(full_fit, causes, values, seed)
    return fit_mechanism(form, setting, causes, values, categories, seed)
