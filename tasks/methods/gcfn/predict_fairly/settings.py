"""Settings of the stage ``stage``."""

from schemas.audit.causal import CausalGraph
from schemas.audit.methods.gcfn import GcfnPrediction
from schemas.audit.spec import AuditSpec, Bootstrap, Decision
from tasks.counterfactuals.gan.settings import GeneratorSettings, generator_settings


class PredictSettings(GeneratorSettings):
    """What decides the predictors, and the generators that they are fair by."""

    prediction: GcfnPrediction
    bootstrap: Bootstrap
    causal_graph: CausalGraph
    """By which the noise behind mediators is abducted; empty where nothing is assumed."""
    decision: Decision


def settings_of(spec: AuditSpec) -> PredictSettings | None:
    """The stage's settings; None where no prediction is asked for.

    Raises:
        SpecError: as the settings of generators say.
    """
    asked = spec.methods.gcfn
    if asked is None or asked.prediction is None:
        return None
    return PredictSettings.of(spec, prediction=asked.prediction, **generator_settings(spec, asked))
