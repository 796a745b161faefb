"""Settings of the stage ``predict_fairly``."""

from schemas.audit.causal import CausalGraph
from schemas.audit.limits import Bootstrap
from schemas.audit.spec import AuditSpec, Decision
from tasks.counterfactuals.stage_settings import GeneratorSettings, generator_settings
from tasks.methods.gcfn.settings import GcfnPrediction, GcfnSettings


class PredictSettings(GeneratorSettings):
    """Settings of the predictors, and of the generators behind their fairness term."""

    prediction: GcfnPrediction
    bootstrap: Bootstrap
    causal_graph: CausalGraph
    """By which the noise behind mediators is abducted; empty where nothing is assumed."""
    decision: Decision


def predict_settings(spec: AuditSpec) -> PredictSettings | None:
    """Returns the stage's settings; None where the audit spec has no prediction.

    Raises:
        SpecError: as the settings of generators say.
    """
    settings = spec.methods.of(GcfnSettings)
    if settings is None or settings.prediction is None:
        return None
    return PredictSettings.of(spec, prediction=settings.prediction, **generator_settings(spec, settings))
