"""What FGCE will measure."""

from collections.abc import Iterator

from schemas.audit.spec import AuditSpec
from tasks.methods.fgce.settings import FgceSettings
from tasks.pipeline.method import COMPARED, Form, Values, share, up_to, whole, without_interval

_LIFTED = ("nothing", "epsilon", "every constraint", "every constraint and epsilon")
_DENOMINATORS: Values = ("all", "feasible")
_BOUND = "is no more than a bound while methods.fgce.exact is false"
_NEVER_AGAIN = "has no interval while methods.fgce.resolves is 0"


def measures(spec: AuditSpec) -> Iterator[Form]:
    """The planned measures; sizes of subgroups are none, as a limit is about whole groups."""
    settings = spec.methods.of(FgceSettings)
    if settings is None:
        return
    has_draws = settings.size_matched_draws > 0
    beside = (*COMPARED, *(("size_matched", "size_matched_difference") if has_draws else ()))
    ks = up_to(settings.k)
    yield share("infeasible_share", {}, beside)
    yield Form("burden", {}, beside=beside)
    yield Form("burden_at_k", {"k": (settings.k,)}, beside=beside)
    yield share("coverage_at_k", {"k": ks}, beside)
    again = "" if settings.resolves else _NEVER_AGAIN
    for measure in ("k0", "d0", "d0_at_k0"):
        yield whole(Form(measure, beside=beside), again)
    if settings.curves:
        yield from _on_curves(spec, settings, beside)
    if settings.exact:
        for measure in ("coverage_optimum", "greedy_gap"):
            yield without_interval(share(measure, {"k": up_to(settings.k), "d": None}, COMPARED))
    if settings.relabelled_draws:
        yield without_interval(Form("infeasible_share_relabelled", {}, -1.0, 1.0, ("null",)))
        yield without_interval(share("infeasible_share_under_relabelling"))
    if settings.ablations:
        beside = ("size_matched",) if settings.ablation_draws else ()
        lifted = {"without": (*_LIFTED, *spec.features()), "nearest": None}
        yield share("infeasible_share_without", lifted, beside)
        yield Form("burden_without", lifted, beside=beside)
        for measure in ("components", "strong_components", "singletons"):
            yield without_interval(Form(measure, {"epsilon": None}, beside=beside, makers=("lender",)))
        yield without_interval(share("density", {"epsilon": None}, beside, ("lender",)))


def _on_curves(spec: AuditSpec, settings: FgceSettings, beside: tuple[str, ...]) -> Iterator[Form]:
    """What is measured at many points."""
    ks, alone = up_to(settings.k), ("size_matched",) if settings.size_matched_draws else ()
    yield share("coverage", {"k": ks, "d": None, "denominator": _DENOMINATORS}, alone)
    yield share("kauc", {"k": ks, "denominator": _DENOMINATORS}, beside)
    yield share("dauc", {"d": None, "denominator": _DENOMINATORS}, beside)
    yield share("acf", {"attribute": tuple(spec.features())}, beside)
    yield Form("cost_over_face", {"cost": settings.face, "k": ks}, beside=beside)
    yield whole(Form("kauc_saturation", {"k": ks}, beside=beside))
    yield whole(Form("dauc_saturation", {"d": None}, beside=beside))
    least = _BOUND if not settings.exact else "" if settings.resolves else _NEVER_AGAIN
    yield whole(Form("least_cost", {"k": ks, "c": settings.shares}, beside=beside), least)
    for measure in ("cauc", "cauc_saturation"):
        yield whole(Form(measure, {"c": settings.shares}, beside=beside), least)
