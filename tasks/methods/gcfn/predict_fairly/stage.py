"""Stage ``predict_fairly``: trains predictors of the outcome with and without counterfactual fairness (GCFN).

Scope: the declaration. The work: ``predictors``, which loads torch and is itself loaded only when something is trained.
"""

import pyarrow as pa

from schemas.tables.applications import APPLICANTS, APPLICATIONS, DECISIONS, ENCODINGS, MEMBERSHIPS
from schemas.tables.counterfactuals import GENERATORS
from schemas.tables.findings import AGGREGATES, TALLIES
from tasks.methods.gcfn.predict_fairly.settings import PredictSettings, predict_settings
from tasks.pipeline.stage import OwnStage, Produced, stage


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
    """Trains the predictors of every protected attribute and measures them on held-out rows, group by group.

    Raises:
        DataQualityError: The training rows have outcomes of one kind only, or a training diverged.
        SpecError: The causal graph does not fit the columns.
        IntegrityError: The generators are damaged, or of other rows or settings.
    """
    from tasks.methods.gcfn.predict_fairly.predictors import predictions  # torch takes seconds to load

    return predictions(applicants, encodings, memberships, applications, decisions, generators, settings=settings)


OWN_STAGE = OwnStage(stage=predict_fairly, settings=predict_settings)
