"""Stage ``mediate``: generates applicants' mediators in other groups, and the decisions that would follow (GCFN).

Training generators takes long, so it resumes from checkpoints. Scope: the declaration. The work: ``mediators``, which
loads torch and is itself loaded only when something is generated.
"""

import pyarrow as pa

from schemas.tables.applications import APPLICANTS, DECISIONS, ENCODINGS, MEMBERSHIPS, MODELS
from schemas.tables.counterfactuals import (
    GENERATOR_CHECKS,
    GENERATOR_HISTORY,
    GENERATORS,
    MEDIATED,
    MEDIATED_DECISIONS,
    MEDIATOR_EFFECTS,
)
from schemas.tables.findings import TALLIES
from tasks.methods.gcfn.mediate.settings import MediateSettings, mediate_settings
from tasks.pipeline.stage import NOWHERE, OwnStage, Produced, Scratch, stage


@stage(
    reads=(APPLICANTS, ENCODINGS, MEMBERSHIPS, DECISIONS, MODELS),
    writes=(MEDIATED, MEDIATED_DECISIONS, MEDIATOR_EFFECTS, GENERATOR_CHECKS, GENERATOR_HISTORY, GENERATORS, TALLIES),
    resumable=True,
)
def mediate(
    applicants: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    decisions: pa.Table,
    models: pa.Table,
    *,
    settings: MediateSettings,
    scratch: Scratch = NOWHERE,
) -> Produced:
    """Generates mediators of applicants outside the reference group as in it, and of its members as in other groups.

    Raises:
        DataQualityError: The training of generators diverged; the last good state is kept in ``scratch``.
        IntegrityError: What ``scratch`` holds is of another training run.
    """
    from tasks.methods.gcfn.mediate.mediators import mediated  # torch takes seconds to load

    return mediated(applicants, encodings, memberships, decisions, models, settings=settings, scratch=scratch)


OWN_STAGE = OwnStage(stage=mediate, settings=mediate_settings)
