"""Additive noise: a number is the expectation of a regression on its causes, plus noise.

The noise of a value is its residual. The fit is pooled over all groups (CST, section 4; Hoyer et al. 2009 for the model
class).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression

from tasks.numerics.arrays import Floats

REGRESSORS: dict[str, Any] = {
    # the least-squares solver drops directions smaller than tol times the largest: groups beside dollars are that small
    "linear": LinearRegression(tol=1e-13),
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
