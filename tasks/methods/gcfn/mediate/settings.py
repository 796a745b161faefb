"""Settings of the stage ``mediate``."""

from schemas.audit.model import Model
from schemas.audit.spec import AuditSpec
from tasks.counterfactuals.gan.settings import GeneratorSettings, generator_settings


class MediateSettings(GeneratorSettings):
    """What decides the mediators, and what is decided on them."""

    model: Model


def settings_of(spec: AuditSpec) -> MediateSettings | None:
    """The stage's settings; None without the method.

    Raises:
        SpecError: As ``generator_settings`` says.
    """
    if spec.methods.gcfn is None:
        return None
    return MediateSettings.of(spec, **generator_settings(spec, spec.methods.gcfn))
