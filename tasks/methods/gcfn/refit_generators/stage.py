"""Stage ``refit_generators``: what an interval of the share of changed decisions rests on (GCFN).

Scope: the declaration. The work: ``refits``, which loads torch and is itself loaded only when something is trained.
"""

import pyarrow as pa

from schemas.tables.applications import APPLICANTS, DECISIONS, ENCODINGS, MEMBERSHIPS, MODELS
from schemas.tables.counterfactuals import GENERATOR_REFITS
from tasks.methods.gcfn.refit_generators.settings import RefitSettings, refit_settings
from tasks.pipeline.stage import OwnStage, Produced, stage


@stage(reads=(APPLICANTS, ENCODINGS, MEMBERSHIPS, DECISIONS, MODELS), writes=(GENERATOR_REFITS,), balanced=False)
def refit_generators(
    applicants: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    decisions: pa.Table,
    models: pa.Table,
    *,
    settings: RefitSettings,
) -> Produced:
    """Trains one generator on each resample of the rows, and measures the changed decisions of resampled members."""
    from tasks.methods.gcfn.refit_generators.refits import refitted  # torch takes seconds to load

    return refitted(applicants, encodings, memberships, decisions, models, settings=settings)


OWN_STAGE = OwnStage(stage=refit_generators, settings=refit_settings)
