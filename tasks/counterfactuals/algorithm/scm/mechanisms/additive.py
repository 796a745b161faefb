"""Additive noise: a number is the expectation of a regression on its causes, plus noise.

The noise of a value is its residual. The fit is pooled over all groups (CST, section 4; Hoyer et al. 2009 for the model
class).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lstsq
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression

from tasks.numerics.arrays import Floats

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


def refit_additive(whole: Additive, causes: Floats, values: Floats, seed: int) -> Additive:
    """The same regression of other rows, such as a resample."""
    if isinstance(whole.regressor, LinearRegression):
        return Additive(Line.of(causes, values), whole.decimals)
    return fit_additive(whole.regressor, causes, values, seed, whole.decimals)
