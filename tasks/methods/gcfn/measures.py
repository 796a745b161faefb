"""Lists the measures of GCFN: of a model, which decides again, and of mediators, which involve no decisions."""

import math
from collections.abc import Iterator

from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from schemas.terms import Role
from tasks.methods.gcfn.settings import GcfnSettings
from tasks.pipeline.method import COMPARED, NAMES_OF_BAND, NO_INTERVAL, Form, Values, share, whole, without_interval

_MODEL, _LENDER = ("model",), ("lender",)
_BY: dict[str, Values] = {"by": ("score", "mediator"), "mediator": None, **NAMES_OF_BAND}


def measures(spec: AuditSpec) -> Iterator[Form]:
    """The planned measures."""
    settings = spec.methods.of(GcfnSettings)
    if settings is None:
        return
    mediators = tuple(name for name, column in spec.features().items() if Role.MEDIATOR in column.role)
    yield whole(Form("share_changed", {}, -1.0, 1.0, makers=_MODEL), NO_INTERVAL)
    yield whole(Form("relative_change", {}, -math.inf, 1.0, makers=_MODEL))
    yield without_interval(share("mediator_support", makers=_MODEL))
    yield share("decision_flip_share", beside=COMPARED, makers=_MODEL)
    yield share("decision_flip_share", {"over": ("networks",)}, makers=_MODEL)
    yield share("flip_direction_share", {"direction": ("to_favourable", "to_unfavourable")}, makers=_MODEL)
    yield Form("score_change", {}, -1.0, 1.0, makers=_MODEL)
    for measure in ("score_change_absolute", "score_change_squared", "unmediated_share"):
        yield share(measure, makers=_MODEL)
    yield share("score_change_quantile", {"quantile": (settings.quantile,)}, makers=_MODEL)
    if settings.networks > 1 and settings.generator == "gan":
        yield share("not_identified_share", makers=_MODEL)
        yield Form("mediator_spread", makers=_MODEL)
        yield share("mediator_spread_share", {"from": None, "to": None}, makers=_MODEL)
    yield share("flip_share_by_band", _BY, makers=_MODEL)
    yield share("large_change_share_by_band", {"above": None, **_BY}, makers=_MODEL)
    for measure in ("mediator_share", "imagined_mediator_share"):
        yield share(measure, {"mediator": mediators, "from": None, "to": None}, makers=_LENDER)
    if settings.prediction is not None:
        of: dict[str, Values] = {"model": None, "lambda": (0.0, *settings.prediction.lambdas)}
        shares = ("accuracy", "ppv", "fpr", "fnr", "unfairness", "score_change")
        for name in shares:
            yield share(f"fair_{name}", of, makers=_LENDER)
        yield Form("fair_utility", {**of, "gamma": settings.prediction.gammas}, -math.inf, 1.0, makers=_LENDER)
        yield share("fair_score_share", {**of, "from": None, "to": None}, makers=_LENDER)
        yield without_interval(share("noise_abducted_share", {"mediator": None}, makers=_LENDER))
        yield share("treated_differently_share", of, makers=_LENDER)
        yield share("treated_differently_by_band", {**of, **_BY}, makers=_LENDER)


def faults(spec: AuditSpec) -> Iterator[SpecError]:
    """An error for refits with one network alone, which does not show the identified counterfactuals."""
    settings = spec.methods.of(GcfnSettings)
    if settings is not None and settings.refits and not settings.several:
        message = "refits tell only of a group most of which is identified, which takes several networks to see"
        yield SpecError(f"{message}; set generator: gan and networks: 10, or refits: 0", ("methods", "gcfn", "refits"))
