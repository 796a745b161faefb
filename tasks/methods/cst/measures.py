"""What CST will measure: of the groups other than the reference group, and so without comparisons."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from schemas.audit.spec import AuditSpec
from tasks.methods.cst.settings import CstSettings
from tasks.pipeline.method import NO_INTERVAL, RANGE, Form, Values, share, whole, without_interval

_VARIANTS: Values = ("cst", "cst_with_centres", "st")
_CF = {"variant": ("cf",)}
_MODEL = ("model",)
"""Counterfactual fairness needs repeated decisions, which a lender does not make."""


def measures(spec: AuditSpec) -> Iterator[Form]:
    """The planned measures."""
    settings = spec.methods.of(CstSettings)
    if settings is None:
        return
    of: dict[str, Values] = {"k": settings.ks, "variant": _VARIANTS}
    for measure in ("share_significant", "share_detected", "share_positive"):
        yield share(measure, of)
    yield Form("delta", of, -1.0, 1.0)
    yield share("delta_share", {"from": None, "to": None})
    yield share("share_detected_at", {"k": (settings.k,), "variant": _VARIANTS, "tau": settings.taus})
    for measure in ("share_detected", "share_positive"):
        yield share(measure, _CF, makers=_MODEL)
    # the headline forms, and what is found under permuted labels
    has_permutations = settings.null_permutations > 0
    yield share("share_significant", beside=("null", "null_difference") if has_permutations else ())
    yield share("share_detected", beside=("null",) if has_permutations else ())
    if has_permutations:
        yield without_interval(share("share_significant_p"))
        of_both: dict[str, Values] = {"k": (settings.k,), "variant": ("cst", "st")}
        yield replace(share("share_significant_null", of_both), unjudged=RANGE)
    descriptive = NO_INTERVAL if settings.generator in ("gan", "quantile") else ""
    yield _effect("st_effect")
    yield _effect("cst_effect", unjudged=descriptive)
    yield _effect("mediated_effect", unjudged=descriptive)
    yield without_interval(share("support", {"variant": ("cst", "st")}))
    if settings.generator == "scm" and settings.graph == "edges" and spec.causal_graph.edges:
        yield _effect("saturated_effect")
        yield _effect("saturated_shift")
    if settings.null_draws:
        yield without_interval(share("st_effect_p"))
    for numerator, why in (("raw", NO_INTERVAL), ("adjusted", "")):
        of = {"numerator": (numerator,), "variant": ("cst", "st")}
        yield _effect("excess_share_of_denials", of, why)
    if settings.sensitivity and settings.generator == "scm" and settings.graph == "edges":
        lifted = tuple(" -> ".join(edge) for edge in spec.causal_graph.edges)
        for measure in ("share_detected_without", "share_significant_without"):
            yield share(measure, {"k": (settings.k,), "variant": ("cst",), "without": lifted})
    if settings.clip:
        yield share("clipped_share", {"attribute": tuple(spec.features())})
    if settings.interval == "wald":
        yield share("no_width_share")
    if any(len(p.columns) > 1 for p in spec.protected):
        for measure in ("share_multiple", "share_multiple_significant"):
            yield share(measure, {"k": settings.ks, "variant": _VARIANTS})
        yield share("share_multiple", _CF, makers=_MODEL)


def _effect(measure: str, parameters: Mapping[str, Values] | None = None, unjudged: str = "") -> Form:
    return whole(Form(measure, parameters or {}, -math.inf, math.inf), unjudged)
