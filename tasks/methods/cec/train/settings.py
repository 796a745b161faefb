"""Settings of the stage ``train``."""

from schemas.audit.spec import AuditSpec, Protected, StageSettings
from schemas.errors import SpecError, nearest
from tasks.methods.cec.settings import CecSettings, CecTraining


class TrainSettings(StageSettings):
    """Settings of the nets."""

    protected: tuple[Protected, ...]
    """Nets are trained for the groups of these attributes."""
    cec: CecSettings
    """``training``, how rows are matched and ``theta``; all else as by default, since it decides nothing here."""
    seed: int

    @property
    def training(self) -> CecTraining:
        """Settings of the training."""
        if self.cec.training is None:
            raise ValueError("nothing is to be trained: the settings have no `training`")
        return self.cec.training


def train_settings(spec: AuditSpec) -> TrainSettings | None:
    """Returns the stage's settings; None where the audit spec has no training.

    Raises:
        SpecError: An attribute is not known, or all of them cross columns and none was named.
    """
    method_settings = spec.methods.of(CecSettings)
    if method_settings is None or method_settings.training is None:
        return None
    decides = ("theta", "winsorise", "maximum_distance", "replacement", "training")
    network_settings = CecSettings.model_validate({name: getattr(method_settings, name) for name in decides})
    requested, where = method_settings.training.attributes, ("methods", "cec", "training", "attributes")
    declared_names = [p.name for p in spec.protected]
    for position, name in enumerate(requested):
        if name not in declared_names:
            raise SpecError(f"no protected attribute {name!r}; {nearest(name, declared_names)}", (*where, position))
    chosen = tuple(p for p in spec.protected if (p.name in requested if requested else len(p.columns) == 1))
    if not chosen:
        raise SpecError("all protected attributes cross columns; name those that nets are to be trained for", where)
    return TrainSettings.of(spec, protected=chosen, cec=network_settings)
