"""Settings of the stage ``refit_generators``."""

from schemas.audit.model import Model
from schemas.audit.spec import AuditSpec
from tasks.counterfactuals.stage_settings import GeneratorSettings, generator_settings
from tasks.methods.gcfn.settings import GcfnSettings


class RefitSettings(GeneratorSettings):
    """Settings of the generators, of the refits, and of the decisions on counterfactual mediators."""

    model: Model
    refits: int


def refit_settings(spec: AuditSpec) -> RefitSettings | None:
    """Returns the stage's settings; None without refits in the audit spec, or without a model that can decide again.

    Raises:
        SpecError: as the settings of generators say.
    """
    settings = spec.methods.of(GcfnSettings)
    if settings is None or not settings.refits or spec.model.kind == "none":
        return None
    return RefitSettings.of(spec, refits=settings.refits, **generator_settings(spec, settings))
