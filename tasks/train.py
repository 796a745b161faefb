"""Train: nets that learn the outcome of applications, with and without consistent reasons, for each group (CEC).

Training takes long, so that it has to be asked for and goes on where it was stopped. Here belong its settings and its
declaration; what it does is in ``_training``, which loads torch and is itself loaded only when something is trained.
"""

import pyarrow as pa

from schemas.applications import APPLICANTS, APPLICATIONS, ENCODINGS, MEMBERSHIPS, TRAINED_NETS
from schemas.errors import SpecError, nearest
from schemas.findings import AGGREGATES
from schemas.methods import CecSettings
from schemas.settings import AuditSpec, Protected, StageSettings
from schemas.training import CecTraining
from tasks._scratch import NOWHERE, Scratch
from tasks._stage import Produced, stage


class TrainSettings(StageSettings):
    """What decides the nets."""

    protected: tuple[Protected, ...]
    """The attributes whose groups nets are trained for."""
    cec: CecSettings
    """``training``, how rows are matched and ``theta``; all else as by default, since it decides nothing here."""
    seed: int

    @property
    def training(self) -> CecTraining:
        """What is trained."""
        if self.cec.training is None:
            raise ValueError("nothing is to be trained: the settings have no `training`")
        return self.cec.training


def settings_of(spec: AuditSpec) -> TrainSettings | None:
    """The stage's settings; None where no training is asked for.

    Raises:
        SpecError: An attribute is not known, or all of them cross columns and none was named.
    """
    asked = spec.methods.cec
    if asked is None or asked.training is None:
        return None
    decides = ("theta", "winsorise", "maximum_distance", "replacement", "training")
    own = CecSettings.model_validate({name: getattr(asked, name) for name in decides})
    return TrainSettings.of(spec, protected=_chosen(spec.protected, asked.training.attributes), cec=own)


def _chosen(protected: tuple[Protected, ...], wanted: tuple[str, ...]) -> tuple[Protected, ...]:
    """The attributes named, or all of a single column if none is."""
    where = ("methods", "cec", "training", "attributes")
    known = [p.name for p in protected]
    for position, name in enumerate(wanted):
        if name not in known:
            raise SpecError(f"no protected attribute {name!r}; {nearest(name, known)}", (*where, position))
    chosen = tuple(p for p in protected if (p.name in wanted if wanted else len(p.columns) == 1))
    if not chosen:
        raise SpecError("all protected attributes cross columns; name those that nets are to be trained for", where)
    return chosen


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
    """What the nets of every group are on held-out rows, beside mitigations of a kept library; and the nets.

    Raises:
        SpecError: No column is financial.
        DataQualityError: A loss is no longer finite; the last good state is kept in ``scratch``.
        IntegrityError: What ``scratch`` holds is of another training run.
    """
    from tasks._training import trained  # torch and fairlearn take seconds to load

    return trained(applicants, encodings, memberships, applications, settings=settings, scratch=scratch)
