"""Integrated gradients of linear models of the logit, with or without standardised features: a constant gradient."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from schemas.errors import SpecError
from tasks.numerics.arrays import Floats


@dataclass(frozen=True)
class Linear:
    """A logit ``w x + c``; feature ``j`` is owed ``w_j (x_j - b_j)``, whatever the path."""

    coefficients: Floats
    """``(p,)``"""
    intercept: float = 0.0
    name: ClassVar[str] = "integrated gradients, linear model"
    exact: ClassVar[bool] = True

    def logit(self, x: Floats) -> Floats:
        """``(r,)`` logits of rows ``(r, p)``."""
        return x @ self.coefficients + self.intercept

    def attribute(self, x: Floats, baseline: Floats) -> Floats:
        """``(r, p)`` attributions of rows ``(r, p)``, each from its own baseline ``(r, p)``."""
        return (x - baseline) * self.coefficients

    def before_scaling(self, centre: Floats, scale: Floats) -> "Linear":
        """The same model as a function of features that are scaled on the way to it: ``(x - centre) / scale``."""
        coefficients = self.coefficients / scale
        return Linear(coefficients, self.intercept - float(coefficients @ centre))


def of_logistic_regression(model: Any) -> Linear:
    """The logit of a fitted binary logistic regression of scikit-learn, for the second of its classes.

    Raises:
        SpecError: The model knows more than two classes.
    """
    if np.shape(model.coef_)[0] != 1:
        message = f"a logistic regression knows the {len(model.classes_)} classes {list(model.classes_)}"
        raise SpecError(f"{message}; a decision has two, favourable and not")
    return Linear(np.array(model.coef_[0], np.float64), float(np.ravel(model.intercept_)[0]))
