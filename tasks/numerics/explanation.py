"""Input of a method that explains a model: the model's inputs, and the attributor of each row.

Scope: shapes. Attributions: ``attributions``. Comparison of two of them: ``tasks.methods.cec.algorithm.score``.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tasks.numerics.arrays import Bools, Floats, Ints

NOBODY = -1
"""Explainer of a row that no model explains."""


class Attributor(Protocol):
    """A model with attributions."""

    @property
    def name(self) -> str:
        """How the attributions are made, as the report says it."""

    @property
    def exact(self) -> bool:
        """Whether they are the integral itself; not a quadrature, nor a substitute for integrated gradients."""

    def logit(self, x: Floats) -> Floats:
        """The model's logit, ``(r,)``, of inputs ``(r, p)``."""

    def attribute(self, x: Floats, baseline: Floats) -> Floats:
        """What each input adds to the logit on the straight path from the baseline, ``(r, p)`` all three.

        Integrated gradients (Sundararajan, Taly and Yan 2017), or the substitute that ``name`` tells.
        """


@dataclass(frozen=True)
class ModelView:
    """The rows of a problem as models see them. Arrays are aligned by row; ``n`` rows, ``p`` inputs."""

    x: Floats
    """``(n, p)`` model inputs."""
    feature_of_column: Ints
    """``(p,)`` index into ``features`` of each input: the columns of one category share one."""
    features: tuple[str, ...]
    label: Bools
    """``(n,)`` whether the true outcome is favourable."""
    financial: Floats
    """``(n, f)`` what applicants are comparable by (paper: F), in the user's units."""
    financial_names: tuple[str, ...]
    explainer: Ints
    """``(n,)`` number of the model that explains each row, or ``NOBODY``."""
    models: tuple[Attributor, ...]
    pools: tuple[Bools, ...]
    """For each model the rows, ``(n,)``, that it was trained on and that its rows may be matched with. A rule that was
    not fitted has everybody for a pool."""
    cuts: tuple[float, ...] = ()
    """For each model the logit from which it decides favourably; 0 for all if none is given."""
    favourable: Bools | None = None
    """``(n,)`` decisions, where they are not those of the logit (a post-processed model)."""

    def __post_init__(self) -> None:
        """Hold the shapes against each other.

        Raises:
            ValueError: If arrays differ in their rows, or columns and models in their numbers.
        """
        n, inputs = self.x.shape
        by_row = {
            "label": self.label,
            "financial": self.financial,
            "explainer": self.explainer,
            **{f"pools[{i}]": pool for i, pool in enumerate(self.pools)},
            **({} if self.favourable is None else {"favourable": self.favourable}),
        }
        for name, values in by_row.items():
            if len(values) != n:
                raise ValueError(f"{name} has {len(values)} rows; expected {n}, as x has")
        if len(self.feature_of_column) != inputs:
            raise ValueError(f"feature_of_column has {len(self.feature_of_column)} entries; x has {inputs} columns")
        if self.financial.shape[1:] != (len(self.financial_names),):
            raise ValueError(f"financial is {self.financial.shape} for {len(self.financial_names)} names")
        if len(self.pools) != len(self.models) or len(self.cuts) not in (0, len(self.models)):
            raise ValueError(f"{len(self.models)} models, {len(self.pools)} pools and {len(self.cuts)} cuts")
        if n and not NOBODY <= self.explainer.min() <= self.explainer.max() < len(self.models):
            raise ValueError(f"explainer names models outside -1 to {len(self.models) - 1}")

    def cut(self, model: int) -> float:
        """The logit from which a model decides favourably."""
        return self.cuts[model] if self.cuts else 0.0

    def rows_of(self, model: int) -> Bools:
        """``(n,)`` rows that a model explains."""
        return np.equal(self.explainer, model)
