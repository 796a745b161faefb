"""What CEC will measure: of a model, which can be looked into as a lender cannot."""

from collections.abc import Iterator
from dataclasses import replace

from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from tasks.methods.cec.settings import CecSettings, CecTraining
from tasks.pipeline.method import NO_INTERVAL, Form, Values, share, whole, without_interval

REFITTED = ("logistic_regression", "net")
"""Kinds of models that are fitted again (``tasks.scoring.decider``), and that have attributions in closed form."""

_REGIMES: Values = ("A", "B", "C", "D")
_QUANTILES: Values = (0.5, 0.9, 0.99)
_MODEL, _LENDER = ("model",), ("lender",)


def measures(spec: AuditSpec) -> Iterator[Form]:
    """The planned measures."""
    settings = spec.methods.of(CecSettings)
    if settings is None:
        return
    names = ("cec", "cec_floor", "flip_share", "unmatched_share", "no_direction_share", "incomplete_share")
    scores = [
        *(share(name, makers=_MODEL) for name in names),
        Form("cec_above_floor", {}, -1.0, 1.0, makers=_MODEL),
        share("regime_share", {"regime": _REGIMES}, makers=_MODEL),
        *(Form(name, makers=_MODEL) for name in ("match_distance", "completeness_error")),
    ]
    yield from scores
    if settings.pairs != "reference":
        yield from (replace(form, parameters={**form.parameters, "matched_with": None}) for form in scores)
    steps = settings.theta_steps
    features = tuple(spec.features())
    yield share("cec_within_group", makers=_MODEL)
    yield Form("cec_above_within_group", {}, -1.0, 1.0, makers=_MODEL)
    if steps:
        thetas = tuple(step / steps for step in range(steps + 1))
        yield share("regime_share_at", {"regime": _REGIMES, "theta": thetas}, makers=_MODEL)
    yield Form("attribution_divergence", {"feature": features}, makers=_MODEL)
    yield share("attribution_share", {"feature": features}, makers=_MODEL)
    yield without_interval(Form("match_distance_quantile", {"quantile": _QUANTILES}, makers=_MODEL))
    for measure in ("match_reuse", "match_reuse_largest"):
        yield without_interval(Form(measure, makers=_MODEL))
    # attributions in closed form are compared with relabelled groups; only refits give an interval
    beside = ("null",) if settings.relabelled_draws and spec.model.kind in REFITTED else ()
    above_own_group = Form("cec_above_own_group", {}, -1.0, 1.0, beside, _MODEL)
    yield whole(above_own_group, "" if settings.refits else NO_INTERVAL)
    yield without_interval(share("matching_support", makers=_MODEL))
    if settings.training is not None:
        yield from map(without_interval, _of_training(settings.training))


def faults(spec: AuditSpec) -> Iterator[SpecError]:
    """Refits of a model that is not fitted again here."""
    settings = spec.methods.of(CecSettings)
    if settings is None or not settings.refits or spec.model.kind in (*REFITTED, "none"):
        return
    message = f"a model of kind {spec.model.kind} is not fitted again on resampled rows, only {' and '.join(REFITTED)}"
    yield SpecError(f"{message}; set refits: 0, the measure is then descriptive", ("methods", "cec", "refits"))


def _of_training(settings: CecTraining) -> Iterator[Form]:
    """Of nets and mitigations on the rows held out of each fold; deviations are of the same size as shares."""
    of: dict[str, Values] = {"model": None, "lambda_eo": None, "lambda_cec": None}
    over: dict[str, Values] = {"over_folds": ("mean", "sd")}
    for name in (
        "auc",
        "f1",
        "balanced_accuracy",
        "positive_rate",
        "eo_gap",
        "sp_gap",
        "cec",
        "cec_floor",
        "flip_share",
    ):
        yield share(f"trained_{name}", {**of, **over}, makers=_LENDER)
    yield Form("trained_cec_above_floor", {**of, **over}, -1.0, 1.0, makers=_LENDER)
    yield share("trained_regime_share", {**of, **over, "regime": _REGIMES}, makers=_LENDER)
    yield share("trained_collapsed", {**of, "over_folds": ("mean",)}, makers=_LENDER)
    own_lambdas = {"lambda_eo": (0.0, settings.lambda_eo), "lambda_cec": (0.0, settings.lambda_cec)}
    yield share("trained_non_dominated", {"model": None, **own_lambdas, "over_folds": ("mean",)}, makers=_LENDER)
