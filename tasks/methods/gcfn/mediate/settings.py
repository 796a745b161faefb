"""Settings of the stage ``mediate``."""

from schemas.audit.model import Model
from schemas.audit.spec import AuditSpec
from tasks.counterfactuals.stage_settings import GeneratorSettings, generator_settings
from tasks.methods.gcfn.settings import GcfnSettings


class MediateSettings(GeneratorSettings):
    """Settings of the generators, and of the decisions on counterfactual mediators."""

    model: Model


def mediate_settings(spec: AuditSpec) -> MediateSettings | None:
    """Returns the stage's settings; None without the method.

    Raises:
        SpecError: As ``generator_settings`` says.
    """
    settings = spec.methods.of(GcfnSettings)
    return MediateSettings.of(spec, **generator_settings(spec, settings)) if settings else None
