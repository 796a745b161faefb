"""What RAGUEL will measure."""

import math
from collections.abc import Iterator

from schemas.audit.spec import AuditSpec
from tasks.methods.raguel.settings import RaguelSettings
from tasks.pipeline.method import COMPARED, Form, Values, share, whole, without_interval

_QUANTILES: Values = (0.1, 0.25, 0.5, 0.75, 0.9)
_THRESHOLDS = ("demographic_parity", "equalised_odds")
_FIXED = "has an interval that holds offers and ranks fixed"
_HELD = "has no interval while methods.raguel.refits is 0"
_OTHER_SOURCE = "has no interval while methods.raguel.source is not exact"
_COMMON_TARGET = "has no interval while methods.raguel.target is top"
_OVER: Values = ("mean_block", "least_block")
_MODEL = ("model",)
"""Only a model can decide again whether an offer helps."""


def measures(spec: AuditSpec) -> Iterator[Form]:
    """The planned measures; those with an order are of the list after, the others of the list before."""
    settings = spec.methods.of(RaguelSettings)
    if settings is None:
        return
    first = "list" if settings.order == "raguel" else settings.order
    orders = (first, "blocks", "any") if settings.reach == "any" else (first, "blocks")
    yield Form("recourse_cost", beside=COMPARED)
    no_interval = ""
    if not settings.refits:
        no_interval = _HELD
    elif settings.target != "boundary":
        no_interval = _COMMON_TARGET
    elif settings.source != "exact":
        no_interval = _OTHER_SOURCE
    yield whole(Form("recourse_cost_reference_over_group"), no_interval)
    yield share("unreached_share")
    yield share("recourse_not_confirmed_share", makers=_MODEL)
    yield share("list_share")
    # of the initial list, and of each list that is made of it
    blocks = tuple(range(1, settings.blocks + 1)) if settings.block_column is None else None
    for at in ({}, {"order": orders}):
        parameters: dict[str, Values] = {**at}
        yield share("block_share", {**parameters, "block": blocks})
        yield without_interval(share("ratio_of_costs", {**parameters, "over": _OVER}))
        yield without_interval(Form("unfair_blocks", parameters))
        yield without_interval(Form("recourse_cost_quantile", {**parameters, "quantile": _QUANTILES}))
    every = (*orders, *_THRESHOLDS)
    yield whole(share("ratio_of_costs"))
    yield whole(share("ratio_of_costs", {"order": every}), _FIXED)
    yield Form("recourse_cost", {"order": every})
    for measure in ("rnd", "rkl", "rrd"):
        yield without_interval(Form(measure))
        yield without_interval(Form(measure, {"order": (*every, "fa_ir")}))
    yield without_interval(share("block_band", {"bound": ("low",)}))
    yield without_interval(Form("block_band", {"bound": ("high",)}))
    features = tuple(spec.features())
    offer_at: dict[str, Values] = {"order": orders}
    yield without_interval(Form("points_changed", {"order": (*orders, *_THRESHOLDS)}))
    yield without_interval(Form("ranks_changed", {"order": (*orders, "fa_ir")}))
    for measure in ("total_cost", "mean_offer_cost"):
        yield without_interval(Form(measure, offer_at))
    yield share("offer_not_confirmed_share", offer_at, makers=_MODEL)
    yield share("offer_share", {**offer_at, "attribute": features})
    yield Form("offer_size", {**offer_at, "attribute": features}, -math.inf)
    yield without_interval(share("below_predecessor_share", offer_at))
    yield without_interval(Form("exit_rank", {"order": ("list",)}))
    of: dict[str, Values] = {"blocks": settings.block_counts, "over": ("mean_block",)}
    yield without_interval(share("ratio_of_costs_at", of))
    of = {**of, "tolerance": settings.tolerances, "over": ("mean_block", "overall")}
    yield without_interval(share("ratio_of_costs_at", of))
