"""Runs a system on inputs that are encoded already: what a comparison of models on the same folds has.

Scope: training and test inputs of a fold, and which of the inputs are covariates. All else that is seen counts as a
mediator, which the category may influence.
"""

from dataclasses import dataclass

import numpy as np

from schemas.terms import Kind
from tasks.baselines.algorithm.predictors.kind import FittingSettings
from tasks.baselines.algorithm.predictors.registry import PREDICTORS
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.columns import Columns
from tasks.numerics.mediation import Mediation

_GROUPS = ("others", "protected")


@dataclass(frozen=True)
class EncodedFold:
    """Training rows ``r`` and test rows ``t``."""

    inputs: Floats
    """``(r, d)``, without the protected attribute itself."""
    label: Bools
    """``(r,)``."""
    protected: Bools
    """``(r,)`` who is in the protected group."""
    test_inputs: Floats
    """``(t, d)``."""
    test_protected: Bools
    """``(t,)``."""
    covariate: Bools
    """``(d,)`` which inputs the protected attribute does not influence."""


def fold_scores(name: str, fold: EncodedFold, settings: FittingSettings) -> Floats:
    """Trains the system of a name and returns probabilities of the label on the test rows, ``(t,)``.

    Raises:
        KeyError: The registry has no such system.
        DataQualityError: The system cannot learn from these rows; CFUA, for one, needs a covariate.
    """
    model = PREDICTORS[name](mediation(fold, fold.inputs, fold.protected), fold.label, settings)
    return model.scores(mediation(fold, fold.test_inputs, fold.test_protected))


def mediation(fold: EncodedFold, inputs: Floats, protected: Bools) -> Mediation:
    """Rows with the covariates and the mediators of the fold, ``inputs`` ``(n, d)`` and ``protected`` ``(n,)``."""
    covariates, mediators = (_columns(inputs, chosen) for chosen in (fold.covariate, ~fold.covariate))
    return Mediation(covariates, protected.astype(np.int64), _GROUPS, mediators)


def _columns(inputs: Floats, chosen: Bools) -> Columns:
    names = tuple(f"input{at}" for at in np.flatnonzero(chosen))
    return Columns(names, (Kind.CONTINUOUS,) * len(names), ((),) * len(names), inputs[:, chosen])
