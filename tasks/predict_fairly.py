"""Predict fairly: predictors of the outcome with and without a term of counterfactual fairness, by group (GCFN).

Here belong the stage's settings and its declaration; what it does is in ``_predicting``, which loads torch and is
itself loaded only when something is trained.
"""

import pyarrow as pa

from schemas.applications import APPLICANTS, APPLICATIONS, DECISIONS, ENCODINGS, MEMBERSHIPS
from schemas.causal import CausalGraph
from schemas.counterfactuals import GENERATORS
from schemas.findings import AGGREGATES, TALLIES
from schemas.gcfn import GcfnPrediction
from schemas.settings import AuditSpec, Bootstrap, Decision
from tasks._stage import Produced, stage
from tasks.mediate import GeneratorSettings, generator_settings


class PredictSettings(GeneratorSettings):
    """What decides the predictors, and the generators that they are fair by."""

    prediction: GcfnPrediction
    bootstrap: Bootstrap
    causal_graph: CausalGraph
    """By which the noise behind mediators is abducted; empty where nothing is assumed."""
    decision: Decision


def settings_of(spec: AuditSpec) -> PredictSettings | None:
    """The stage's settings; None where no prediction is asked for.

    Raises:
        SpecError: as the settings of generators say.
    """
    asked = spec.methods.gcfn
    if asked is None or asked.prediction is None:
        return None
    return PredictSettings.of(spec, prediction=asked.prediction, **generator_settings(spec, asked))


@stage(
    reads=(APPLICANTS, ENCODINGS, MEMBERSHIPS, APPLICATIONS, DECISIONS, GENERATORS),
    writes=(TALLIES, AGGREGATES),
    balanced=False,
)
def predict_fairly(
    applicants: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    applications: pa.Table,
    decisions: pa.Table,
    generators: pa.Table,
    *,
    settings: PredictSettings,
) -> Produced:
    """What the predictors of every protected attribute are on held-out rows, group by group.

    Raises:
        DataQualityError: The training rows have outcomes of one kind only, or a training diverged.
        SpecError: The causal graph does not fit the columns.
        IntegrityError: The generators are damaged, or of other rows or settings.
    """
    from tasks._predicting import predictions  # torch takes seconds to load

    return predictions(applicants, encodings, memberships, applications, decisions, generators, settings=settings)
