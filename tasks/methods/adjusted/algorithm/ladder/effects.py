"""Average marginal effects of a group: the mean change of the fitted probability if its indicator is turned on.

A discrete change, not a derivative: each row's probability with the indicator of the group at 1 and all other
indicators at 0, minus that with all at 0. Standard errors by the delta method with the sandwich: the influence of row i
is G' H^-1 x_i (y_i - p_i), G the gradient of the effect (Wooldridge 2010, section 15.8.4; Greene 2012, section 17.3.2).
"""

from dataclasses import dataclass

from scipy.special import expit

from tasks.numerics.arrays import Floats, Ints
from tasks.numerics.statistics.influence import Estimate, estimate, standard_error
from tasks.numerics.statistics.logit import LogitFit


@dataclass(frozen=True)
class Change:
    """Mean probability of the rows with the group's indicator on and off."""

    on: float
    off: float
    on_gradient: Floats
    """``(p,)`` derivative of ``on`` by the coefficients."""
    off_gradient: Floats

    @property
    def effect(self) -> float:
        """The average marginal effect."""
        return self.on - self.off

    @property
    def gradient(self) -> Floats:
        """``(p,)`` of the effect."""
        return self.on_gradient - self.off_gradient


def change(coefficients: Floats, x: Floats, column: int, indicators: slice) -> Change:
    """Mean probabilities of the rows ``x`` with the indicator ``column`` at 1 and at 0.

    Args:
        coefficients: ``(p,)`` of a logit.
        x: ``(m, p)`` rows to average over.
        column: Indicator of the group.
        indicators: Columns of all groups, set to 0 first.
    """
    base = x.copy()
    base[:, indicators] = 0.0
    index = base @ coefficients
    off, on = expit(index), expit(index + coefficients[column])
    slope_off, slope_on = off * (1 - off), on * (1 - on)
    off_gradient, on_gradient = slope_off @ base / len(x), slope_on @ base / len(x)
    on_gradient[column] = slope_on.mean()
    return Change(float(on.mean()), float(off.mean()), on_gradient, off_gradient)


def effect_of(
    found: Change, fit: LogitFit, x: Floats, y: Floats, level: float, cluster: Ints | None = None
) -> Estimate:
    """The effect with the interval of the delta method; ``x``, ``y``, ``cluster`` are the rows of the fit."""
    influence = (x @ (fit.inverse @ found.gradient)) * (y - fit.fitted)
    return estimate(found.effect, standard_error(influence, cluster), level, cluster)
