"""The counterfactually fair predictors by name, and those of the GCFN paper that are not built."""

from collections.abc import Mapping
from typing import Final

from tasks.baselines.algorithm.predictors.additive_noise import additive_noise
from tasks.baselines.algorithm.predictors.hscic import hscic
from tasks.baselines.algorithm.predictors.kind import FairSystem
from tasks.baselines.algorithm.predictors.unaware import unaware
from tasks.baselines.algorithm.predictors.variational.predictor import ADVAE, DCEVAE, MCEVAE, variational

PREDICTORS: Final[Mapping[str, FairSystem]] = {
    "cfua": unaware,
    "cfan": additive_noise,
    "hscic": hscic,
    "mcevae": variational(MCEVAE),
    "dcevae": variational(DCEVAE),
    "advae": variational(ADVAE),
}
"""In the order in which they are compared."""

NOT_BUILT: Final[Mapping[str, str]] = {
    "cfgan": "CFGAN makes data and no predictions; its use in two stages is the GCFN authors' own and is not described",
}
"""System -> the reason."""
