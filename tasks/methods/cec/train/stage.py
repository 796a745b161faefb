"""Stage ``train``: trains nets on the outcomes, with and without consistent explanations, for each group (CEC).

Training takes long: it runs only if the audit spec asks for it, and resumes from checkpoints. Scope: the declaration.
The work: ``nets``, which loads torch and is itself loaded only when something is trained.
"""

import pyarrow as pa

from schemas.tables.applications import APPLICANTS, APPLICATIONS, ENCODINGS, MEMBERSHIPS, TRAINED_NETS
from schemas.tables.findings import AGGREGATES
from tasks.methods.cec.train.settings import TrainSettings, train_settings
from tasks.pipeline.stage import NOWHERE, OwnStage, Produced, Scratch, stage


@stage(
    reads=(APPLICANTS, ENCODINGS, MEMBERSHIPS, APPLICATIONS),
    writes=(AGGREGATES, TRAINED_NETS),
    balanced=False,
    resumable=True,
)
def train(
    applicants: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    applications: pa.Table,
    *,
    settings: TrainSettings,
    scratch: Scratch = NOWHERE,
) -> Produced:
    """Trains the nets of every group and measures them on held-out rows, together with mitigations of fairlearn.

    Raises:
        SpecError: No column is financial.
        DataQualityError: A loss is no longer finite; the last good state is kept in ``scratch``.
        IntegrityError: What ``scratch`` holds is of another training run.
    """
    from tasks.methods.cec.train.nets import trained  # torch and fairlearn take seconds to load

    return trained(applicants, encodings, memberships, applications, settings=settings, scratch=scratch)


OWN_STAGE = OwnStage(stage=train, settings=train_settings)
