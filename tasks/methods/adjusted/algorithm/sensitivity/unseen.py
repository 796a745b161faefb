"""The sensitivity of one group's linear effect to a column that is not in the data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.methods.adjusted.algorithm.sensitivity.benchmarks import Benchmark, Fit, benchmarks, strengths
from tasks.methods.adjusted.algorithm.sensitivity.robustness import Confounder, Estimate, robustness_value


@dataclass(frozen=True)
class Sensitivity:
    """How strong an unseen column has to be to explain an effect away."""

    estimate: Estimate
    rv: float
    """Robustness value: strength with denial and group alike that brings the estimate to zero."""
    rv_alpha: float
    """The same for the end of the interval nearest to zero."""
    columns: Mapping[str, Confounder]
    """What each declared column explains."""
    benchmarks: tuple[Benchmark, ...]

    @property
    def strongest(self) -> str:
        """The declared column that explains most of what is left of denial; empty where there is none."""
        return max(self.columns, key=lambda name: self.columns[name].outcome, default="")

    @property
    def adjusted_by_strongest(self) -> Estimate | None:
        """The effect if a column as strong as the strongest one were unseen."""
        return next((each.effect for each in self.benchmarks if each.column == self.strongest), None)


def sensitivity(
    outcome: Fit, membership: Fit, group: int, named: Mapping[str, Sequence[int]], alpha: float = 0.05
) -> Sensitivity:
    """Robustness values and benchmarks of one group's coefficient.

    Args:
        outcome: Fit of the outcome on the whole design.
        membership: Fit of the group's indicator on the other columns of the design, in the same order.
        group: The indicator's place in the design.
        named: Declared column -> places of its columns in the design.
        alpha: One less the level of the interval.
    """
    se = float(np.sqrt(outcome.classical[group, group]))
    estimate = Estimate(float(outcome.coefficients[group]), se, outcome.df)
    columns = strengths(outcome, membership, group, named)
    values = robustness_value(estimate), robustness_value(estimate, alpha)
    return Sensitivity(estimate, *values, columns, benchmarks(estimate, columns))
