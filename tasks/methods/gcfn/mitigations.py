"""Trains the mitigations that GCFN offers to the comparison of an audit (``compare`` of the spec), by their names.

Inputs that the spec calls covariates stay as they are in another group; all others count as mediators, and the inputs
that are the attribute itself are seen by none. Scope: GCFN on a fold. Other systems: the registry of the predictors.
"""

from dataclasses import asdict, replace
from typing import Any, Final

import numpy as np

from schemas.errors import DataQualityError
from tasks.baselines import variational
from tasks.baselines.mitigation import Decided, MitigationFold
from tasks.baselines.predictors import FittingSettings
from tasks.baselines.variational import EncodedFold
from tasks.counterfactuals.algorithm.gan import training as generators
from tasks.counterfactuals.algorithm.gan.networks import GanSettings
from tasks.methods.gcfn.algorithm.predictors import PredictorSettings, Scales, train
from tasks.numerics.arrays import Bools, Floats

NETWORKS: Final = 2
EPOCHS: Final = 100
"""Of the generators: on each fold of each group, so that the paper's ten networks of 300 epochs take too long."""


def mitigate(name: str, fold: MitigationFold, seed: int) -> Decided:
    """Trains a mitigation on a fold and returns its decisions on the test rows, always on the CPU."""
    parts = (fold.inputs, fold.label, fold.protected, fold.test_inputs, fold.test_protected, fold.covariate)
    encoded_fold = _with(EncodedFold(*parts), ~fold.is_attribute)
    try:
        if name == "gcfn":
            scores = _counterfactually_fair(encoded_fold, seed)
        else:
            scores = variational.fold_scores(name, encoded_fold, FittingSettings(seed=seed))
    except DataQualityError as error:
        return Decided(None, reason=str(error))
    return Decided(scores >= 0.5, scores)


def hyperparameters(name: str) -> dict[str, Any]:
    """What a mitigation is trained with, besides its seed."""
    if name != "gcfn":
        return {key: value for key, value in asdict(FittingSettings()).items() if key != "seed"}
    generator = asdict(GanSettings(networks=NETWORKS, epochs=EPOCHS, device="cpu"))
    predictor = asdict(PredictorSettings(device="cpu"))
    return {
        part: {key: value for key, value in of.items() if key != "seed"}
        for part, of in (("generator", generator), ("predictor", predictor))
    }


def _with(fold: EncodedFold, chosen: Bools) -> EncodedFold:
    """The fold with some of its inputs, ``(d,)``."""
    inputs, tested = fold.inputs[:, chosen], fold.test_inputs[:, chosen]
    return replace(fold, inputs=inputs, test_inputs=tested, covariate=fold.covariate[chosen])


def _counterfactually_fair(fold: EncodedFold, seed: int) -> Floats:
    """Scores ``(t,)`` of the predictor that is held alike in both groups, by generators trained on the fold.

    Inputs with a single value within a group, such as a rare category, tell generators nothing and are left out.
    """
    groups = (fold.protected, ~fold.protected)
    varying = np.all([np.ptp(fold.inputs[group], axis=0) > 0 for group in groups], axis=0) | fold.covariate
    fold = _with(fold, varying)
    batch = min(GanSettings.batch, *(int(group.sum()) for group in groups))
    fitted = variational.mediation(fold, fold.inputs, fold.protected)
    test_rows = variational.mediation(fold, fold.test_inputs, fold.test_protected)
    size = GanSettings(networks=NETWORKS, epochs=EPOCHS, batch=batch, seed=seed, device="cpu")
    imaginer, scales = generators.train(fitted, size).imaginer, Scales.of(fitted)
    applicants = scales.applicants(fitted, imaginer.imagine(fitted), fold.label)
    model = train(applicants, PredictorSettings(device="cpu", seed=seed))
    unread = np.zeros(len(test_rows), np.bool_)
    return model.scores(scales.applicants(test_rows, imaginer.imagine(test_rows), unread))
