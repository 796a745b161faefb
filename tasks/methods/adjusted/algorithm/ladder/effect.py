"""Output of the ladder: one adjusted effect for each rung, group and estimator."""

import math
from dataclasses import dataclass
from typing import Literal

from tasks.methods.adjusted.algorithm.sensitivity.unseen import Sensitivity

Estimator = Literal["logit", "lpm", "overlap", "aipw"]
Fit = Literal["newton", "firth", "cells", "streamed", ""]


@dataclass(frozen=True)
class Effect:
    """The adjusted difference of denial between a group and the reference group, and what it rests on.

    A number that cannot be had is NaN, and ``reason`` says why.
    """

    rung: int
    blocks: tuple[str, ...]
    """Names of the blocks that the rung adjusts for."""
    group: int
    estimator: Estimator
    average_over: Literal["own", "all", "overlap"]
    """Over whose rows the effect is averaged: the group's own, all, or those where both groups are."""
    value: float
    """Difference of the probability of denial, group minus reference (0.1 is 10 percentage points)."""
    low: float
    high: float
    """95 % interval (the level of the audit)."""
    se: float
    df: float = math.inf
    """Degrees of freedom of its interval: clusters less one; infinite for the normal."""
    odds_ratio: float = math.nan
    """Of the logit; else NaN."""
    n: int = 0
    """Rows of the group on this rung (the same on every rung)."""
    events: int = 0
    """Denials among them."""
    support: float = math.nan
    """Share of the group's rows whose propensity, at equal sizes of both groups, is inside [0.05, 0.95]."""
    rv: float = math.nan
    rv_alpha: float = math.nan
    """Robustness values (Cinelli and Hazlett 2020) of the linear fit: at the estimate, and at the interval's end."""
    e_value: float = math.nan
    e_value_near: float = math.nan
    """E-values of the logit's effect (VanderWeele and Ding 2017): at the estimate, and at the interval's near end."""
    strongest: str = ""
    """The control column that explains most of what is left of denial."""
    adjusted_by_strongest: float = math.nan
    """The effect if a column as strong as the strongest one were unseen."""
    unseen: Sensitivity | None = None
    """Of the linear fit: what every control explains, and the effect beside a column as strong."""
    fit: Fit = ""
    reason: str = ""
    """Why there is no value, or what the reader must know of it (dropped columns, poor support)."""
