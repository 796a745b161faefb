"""Stage compare: trains the mitigations that the spec names on the same folds, and measures them on held-out rows.

They learn the outcome. None is the audited model, or in use: they show what other models of the same rows could do.
The stage knows no mitigation: the registry says which method offers it. Scope: the declaration. The work:
``comparison``, which is loaded only when something is compared.
"""

import pyarrow as pa

from schemas.tables.applications import APPLICANTS, APPLICATIONS, ENCODINGS, MEMBERSHIPS
from schemas.tables.findings import COMPARED_MITIGATIONS, COMPARED_MODELS, MODEL_REGISTER
from tasks.metrics.compare.settings import CompareSettings, compare_settings
from tasks.pipeline.stage import Produced, stage

__all__ = ["compare", "compare_settings"]


@stage(
    reads=(APPLICANTS, ENCODINGS, MEMBERSHIPS, APPLICATIONS),
    writes=(COMPARED_MITIGATIONS, COMPARED_MODELS, MODEL_REGISTER),
    balanced=False,
)
def compare(
    applicants: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    applications: pa.Table,
    *,
    settings: CompareSettings,
) -> Produced:
    """Means over five folds of every mitigation, paired differences and a register, by group and reference group."""
    from tasks.metrics.compare.comparison import compared  # scikit-learn and torch take seconds to load

    return compared(applicants, encodings, memberships, applications, settings=settings)
