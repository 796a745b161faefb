"""Trains the mitigations that CEC offers to the comparison of an audit (``compare`` of the spec), by their names.

Scope: a fold of the comparison as CEC's own split, and the net trained for consistent explanations. The others:
``algorithm.training.mitigations``.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
from fairlearn.preprocessing import CorrelationRemover
from torch import nn

from schemas.errors import DataQualityError
from tasks.baselines.mitigation import Decided, MitigationFold
from tasks.methods.cec.algorithm import mitigations
from tasks.methods.cec.algorithm.mitigations import Fold, Mitigated, Population, Repaired, Split
from tasks.methods.cec.algorithm.models import Bridge, Lending
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.networks.network import TrainingSettings
from tasks.numerics.networks.training import DivergedError, TrainingRows, train

FITS: Final = 10
"""Most nets that a reduction fits, as in ``methods.cec.training``."""

NOT_COMPARABLE: Final = "no column is financial, by which applicants are matched"
DIVERGED: Final = "training diverged: its loss is not finite"

Trained = Callable[[Split, TrainingSettings], Mitigated]


@dataclass(frozen=True)
class _Decorrelated:
    """Inputs without their linear dependence on the group."""

    remover: CorrelationRemover

    def of(self, inputs: Floats, protected: Bools) -> Floats:
        """Those of rows of known group ``(n,)``."""
        changed_inputs: Floats = self.remover.transform(np.column_stack([inputs, protected]))
        return changed_inputs


def decorrelated(split: Split, settings: TrainingSettings) -> Mitigated:
    """The net on inputs without their linear dependence on the group (fairlearn's ``CorrelationRemover``)."""
    remover = CorrelationRemover(sensitive_feature_ids=[split.inputs.shape[1]])
    repair = _Decorrelated(remover.fit(np.column_stack([split.inputs, split.protected])))
    inputs = repair.of(split.inputs, split.protected)
    changed_split = replace(split, inputs=inputs, test_inputs=repair.of(split.test_inputs, split.test_protected))
    return replace(mitigations.unconstrained(changed_split, settings), repair=repair)


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
    explained = None if mitigated.net is None else partial(_explained, mitigated.net, mitigated.repair, fold)
    return Decided(mitigated.predicted, mitigated.scores, reason, mitigated.expected, explained)


def _explained(
    net: nn.Sequential, repair: Repaired | None, fold: MitigationFold, label: Bools, financial: Floats
) -> Floats:
    """CEC of the members among the test rows, matched with reference applicants of the training rows."""
    protected = np.concatenate([fold.protected, fold.test_protected])
    inputs = np.concatenate([fold.inputs, fold.test_inputs])
    inputs = inputs if repair is None else repair.of(inputs, protected)
    people = Population(inputs, np.concatenate([fold.label, label]), protected)
    trained, tested = np.split(np.arange(len(inputs)), [len(fold.label)])
    lending, members = _comparable(people, np.concatenate([fold.financial, financial]), fold), fold.test_protected
    cec = np.full(len(label), np.nan)
    if members.any() and lending.financial_names:
        try:
            scored = Bridge(lending).scored(net, Fold(0, trained, tested, inputs), tested[members])
        except DataQualityError:  # applicants of one label, or nobody to match with
            return cec
        cec[members] = scored[0].compared.cec
    return cec


def _comparable(people: Population, financial: Floats, fold: MitigationFold) -> Lending:
    """Rows by the columns that make applicants comparable and vary among the training rows."""
    column_numbers = np.flatnonzero(np.ptp(fold.financial, axis=0) > 0)
    return Lending(
        people,
        np.arange(people.features.shape[1], dtype=np.int32),
        tuple(f"input {at}" for at in range(people.features.shape[1])),
        financial[:, column_numbers],
        tuple(fold.financial_names[i] for i in column_numbers),
    )


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
    lending = _comparable(Population(fold.inputs, fold.label, fold.protected), fold.financial, fold)
    try:
        match = Bridge(lending).match(Fold(0, everybody, everybody[:0], fold.inputs))
    except DataQualityError as error:
        return Decided(None, reason=str(error))
    net = train(TrainingRows(fold.inputs, fold.label, fold.protected, match), settings).net
    scores = mitigations.predict(net, fold.test_inputs)
    return Decided(scores >= 0, scores, explained=partial(_explained, net, None, fold))
