"""What adjusted disparities will measure."""

import math
from collections.abc import Iterator

from schemas.audit.column import CROSS, NO_BLOCK
from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from schemas.terms import NO_FEATURE, DecisionMaker
from tasks.methods.adjusted.adjust import settings
from tasks.methods.adjusted.follow.settings import follows
from tasks.methods.adjusted.settings import EFFECT, EXCHANGED, OVERLAP, PRICE, STANDARDISED, AdjustedSettings
from tasks.pipeline.method import Form, Values, whole


def measures(spec: AuditSpec) -> Iterator[Form]:
    """The planned measures: of the primary rung without parameters, and of every rung and estimator."""
    ladder = spec.methods.of(AdjustedSettings)
    if ladder is None:
        return
    names = [block.name for block in settings.blocks_of(spec, ladder)]
    rungs: Values = (NO_BLOCK, *names, *((CROSS,) if ladder.cross else ()))
    yield whole(Form(EFFECT, {}, -1.0, 1.0))
    if "overlap" in ladder.estimators:
        yield whole(Form(OVERLAP, {}, -1.0, 1.0))
    model_features = spec.model.takes(spec.features()) if spec.model.is_given else ()
    if any(name in model_features for p in spec.protected for name in p.columns):
        yield whole(Form(EXCHANGED, {}, -1.0, 1.0, makers=(DecisionMaker.MODEL,)))
    of: dict[str, Values] = {"rung": rungs, "estimator": ladder.estimators, "over": ("own", "all", "overlap")}
    yield whole(Form(EFFECT, of, -1.0, 1.0))
    if follows(spec):
        lender = (DecisionMaker.LENDER,)
        yield whole(Form(PRICE, {}, -math.inf, math.inf, makers=lender))
        yield whole(Form(STANDARDISED, {"of": None}, -math.inf, math.inf, makers=lender))
    of_judged: dict[str, Values] = {"rung": rungs, "estimator": ("expected",), "over": ("own",)}
    yield whole(Form(EFFECT, of_judged, -1.0, 1.0, makers=(DecisionMaker.LENDER,)))


def lacks(spec: AuditSpec) -> str:
    """Why there is no ladder: the spec reads no column, neither a feature nor a control."""
    return "" if spec.kept() else NO_FEATURE


def faults(spec: AuditSpec) -> Iterator[SpecError]:
    """Errors in the settings, checked against the columns and limits of the spec."""
    yield from settings.faults(spec)
    ladder = spec.methods.of(AdjustedSettings)
    if ladder is None or "logit" in ladder.estimators or ladder.judged == "expected":
        return
    for number, limit in enumerate(spec.thresholds):
        if limit.measure == EFFECT and not limit.parameters:
            message = "the logit is what a limit judges, and `methods.adjusted.estimators` leaves it out; add it, or "
            yield SpecError(f"{message}name `parameters` of the limit", ("thresholds", number))
