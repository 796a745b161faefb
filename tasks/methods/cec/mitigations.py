"""Trains the mitigations that CEC offers to the comparison of an audit (``compare`` of the spec), by their names.

Scope: a fold of the comparison as CEC's own split, and the net trained for consistent explanations. The others:
``algorithm.training.mitigations``.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Final

import numpy as np
from fairlearn.preprocessing import CorrelationRemover

from schemas.errors import DataQualityError
from tasks.baselines.mitigation import Decided, MitigationFold
from tasks.methods.cec.algorithm import mitigations
from tasks.methods.cec.algorithm.mitigations import Fold, Mitigated, Population, Split
from tasks.methods.cec.algorithm.models import Bridge, Lending
from tasks.numerics.networks.network import TrainingSettings
from tasks.numerics.networks.training import DivergedError, TrainingRows, train

FITS: Final = 10
"""Most nets that a reduction fits, as in ``methods.cec.training``."""

NOT_COMPARABLE: Final = "no column is financial, by which applicants are matched"
DIVERGED: Final = "training diverged: its loss is not finite"

Trained = Callable[[Split, TrainingSettings], Mitigated]


def decorrelated(split: Split, settings: TrainingSettings) -> Mitigated:
    """The net on inputs without their linear dependence on the group (fairlearn's ``CorrelationRemover``)."""
    remover = CorrelationRemover(sensitive_feature_ids=[split.inputs.shape[1]])
    repaired = remover.fit_transform(np.column_stack([split.inputs, split.protected]))
    tested = remover.transform(np.column_stack([split.test_inputs, split.test_protected]))
    return mitigations.unconstrained(replace(split, inputs=repaired, test_inputs=tested), settings)


TRAINED: Final[Mapping[str, Trained]] = {
    "unconstrained": mitigations.unconstrained,
    "dir": mitigations.disparate_impact_remover,
    "correlation_remover": decorrelated,
    "hardt": mitigations.threshold_optimizer,
    "agarwal": partial(mitigations.exponentiated_gradient, fits=FITS),
    "adversarial": mitigations.adversarial,
    "lagrangian": partial(mitigations.grid_search, fits=FITS),
}
"""All but the net that is trained for consistent explanations, ``cec``."""


def mitigate(name: str, fold: MitigationFold, seed: int) -> Decided:
    """Trains a mitigation on a fold and returns its decisions on the test rows, always on the CPU."""
    split = Split(fold.inputs, fold.label, fold.protected, fold.test_inputs, fold.test_protected)
    settings = TrainingSettings(seed=seed, device="cpu")
    try:
        if name == "cec":
            return _consistent(fold, settings)
        mitigated = TRAINED[name](split, settings)
    except DivergedError:
        return Decided(None, reason=DIVERGED)
    reason = "" if mitigated.predicted is not None else mitigated.reason
    return Decided(mitigated.predicted, mitigated.scores, reason, mitigated.expected)


def hyperparameters(name: str) -> dict[str, Any]:
    """What a mitigation is trained with, besides its seed."""
    extra: dict[str, dict[str, Any]] = {
        "agarwal": {"fits": FITS},
        "lagrangian": {"fits": FITS},
        "adversarial": {"weight": 1.0},
        "dir": {"level": 1.0},
    }
    training: dict[str, Any] = asdict(TrainingSettings(device="cpu"))
    training.pop("seed")
    if name != "cec":  # the terms of the loss are those of the net for consistent explanations
        training |= {"lambda_eo": 0.0, "lambda_cec": 0.0}
    return training | extra.get(name, {})


def _consistent(fold: MitigationFold, settings: TrainingSettings) -> Decided:
    """The net trained with the odds and the consistency term, both weighted by 1."""
    if not fold.financial.shape[1]:
        return Decided(None, reason=NOT_COMPARABLE)
    everybody = np.arange(len(fold.label))
    lending = Lending(
        Population(fold.inputs, fold.label, fold.protected),
        np.arange(fold.inputs.shape[1], dtype=np.int32),
        tuple(f"input {at}" for at in range(fold.inputs.shape[1])),
        fold.financial,
        fold.financial_names,
    )
    try:
        column_numbers = np.flatnonzero(np.ptp(lending.financial, axis=0) > 0)
        varying = replace(
            lending,
            financial=lending.financial[:, column_numbers],
            financial_names=tuple(lending.financial_names[i] for i in column_numbers),
        )
        match = Bridge(varying).match(Fold(0, everybody, everybody[:0], fold.inputs))
    except DataQualityError as error:
        return Decided(None, reason=str(error))
    net = train(TrainingRows(fold.inputs, fold.label, fold.protected, match), settings).net
    scores = mitigations.predict(net, fold.test_inputs)
    return Decided(scores >= 0, scores)
