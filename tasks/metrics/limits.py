"""Checks thresholds against the plan of measures: the measure will be made, and the limit lies in its range.

A limit that no value can reach, or that every value keeps, would look like a check and be none. Scope: checks before a
run. Verdicts: ``tasks.metrics.algorithm.verdicts``.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from schemas.audit.limits import Threshold
from schemas.audit.spec import AuditSpec
from schemas.errors import Location, SpecError, nearest, raise_together
from tasks.metrics import outcomes
from tasks.metrics.algorithm.measures import base_name
from tasks.metrics.algorithm.verdicts.thresholds import known_names
from tasks.pipeline.planned import Form
from tasks.pipeline.registry import METHODS, OUTCOMES, OUTCOMES_METHOD, asked_for, inapplicable, measures_known

_DECIDE = frozenset(("profile", "protected", "columns", "explain", "causal_graph"))
"""Parts of the spec that the plan of every method depends on."""

_LISTED = 6


def check_limits(spec: AuditSpec) -> None:
    """Check the thresholds of a spec against its plan of measures.

    Raises:
        SpecError: a measure, a method or a decision maker that there will not be, or a limit that says nothing.
    """
    raise_together(list(faults(spec)))


def faults(spec: AuditSpec, doubtful: Collection[Location] = ()) -> Iterator[SpecError]:
    """Every fault of the thresholds.

    Args:
        spec: what is audited.
        doubtful: places that hold substitutes for faulty values; checks that depend on them are skipped.
    """
    if spec.source.lacking:
        return  # what a year lacks was taken out of it: its limits were held against the whole spec before
    known, plan = known_names(measures_known()), planned(spec)
    doubted = {method for method in plan if _in_doubt(method, doubtful)}
    for position, limit in enumerate(spec.thresholds):
        at: Location = ("thresholds", position)
        if at in doubtful:
            continue
        if limit.measure not in known:
            yield SpecError(
                f"no method makes a measure {limit.measure!r}; {nearest(limit.measure, known)}", (*at, "measure")
            )
        elif limit.method is not None and limit.method not in plan:
            if not {("methods",), ("methods", limit.method)} & set(doubtful):
                yield SpecError(_not_run(limit.method, spec), (*at, "method"))
        elif doubted.isdisjoint(makers_of(limit)):
            yield from _of_plan(limit, plan, at, spec)


def makers_of(limit: Threshold) -> set[str]:
    """The methods whose measures a limit is about."""
    return {limit.method} if limit.method else set(_making(limit.measure))


def planned(spec: AuditSpec) -> dict[str, list[tuple[Form, tuple[str, ...]]]]:
    """By method, every measure and comparison that can be made, and of which decision makers."""
    explained, deciding = spec.explain.decision_makers, outcomes.makers_of(spec)  # without a model, the lender alone
    made = {OUTCOMES_METHOD: list(outcomes.measures(spec))}
    made |= {method.name: list(method.plan(spec)) for method in asked_for(spec)}
    rows = {
        method: [
            (named, tuple(m for m in named.makers or explained if m in deciding))
            for form in forms
            for named in form.named()
        ]
        for method, forms in made.items()
    }
    return {method: [(form, makers) for form, makers in each if makers] for method, each in rows.items()}


def _making(measure: str) -> list[str]:
    """The methods that know a measure, whether they run or not."""
    base = base_name(measure)
    return [OUTCOMES_METHOD] * (base in OUTCOMES) + [m.name for m in METHODS.values() if base in m.measures]


def _in_doubt(method: str, doubtful: Collection[Location]) -> bool:
    return method in METHODS and any(
        place[0] in _DECIDE
        or place[:2] in (("methods", method), ("model", "kind"))
        or place in (("methods",), ("model",))
        for place in doubtful
    )


def _not_run(method: str, spec: AuditSpec) -> str:
    if reason := inapplicable(spec).get(method):
        return f"the method {method!r} does not run in this spec: {reason}; take the limit away"
    if method in METHODS:
        return f"the method {method!r} does not run in this spec; add it to `methods`, or take the limit away"
    return f"there is no method {method!r}; {nearest(method, [OUTCOMES_METHOD, *spec.methods.running()])}"


def _of_plan(
    limit: Threshold, plan: Mapping[str, list[tuple[Form, tuple[str, ...]]]], at: Location, spec: AuditSpec
) -> Iterator[SpecError]:
    forms = [
        (form, makers)
        for method, rows in plan.items()
        for form, makers in rows
        if form.measure == limit.measure and limit.method in (None, method)
    ]
    fitting = [(form, makers) for form, makers in forms if _has(form, limit.parameters)]
    if not fitting:
        idle = [method for method in _making(limit.measure) if method not in plan]
        yield SpecError(_not_run(idle[0], spec) if idle else _none(limit, [form for form, _ in forms]), at)
    elif limit.decision_maker is not None and not any(limit.decision_maker in makers for _, makers in fitting):
        there = sorted({maker for _, makers in fitting for maker in makers})
        yield SpecError(
            f"no measure {limit.measure} of the {limit.decision_maker} will be made; "
            f"there are those of the {' and the '.join(there)}",
            (*at, "decision_maker"),
        )
    elif judged := [form for form, _ in fitting if not form.unjudged]:
        yield from _of_range(limit, judged, at)
    else:
        others = [form for rows in plan.values() for form, _ in rows if not form.unjudged]
        yield SpecError(_unjudged(limit, fitting[0][0], others), (*at, "measure"))


def _has(form: Form, parameters: Mapping[str, float | str]) -> bool:
    """Whether the form can have these parameters; those that are left out may be any."""
    return all(
        name in form.parameters and ((values := form.parameters[name]) is None or value in values)
        for name, value in parameters.items()
    )


def _none(limit: Threshold, forms: Sequence[Form]) -> str:
    said = ", ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in limit.parameters.items()
    )
    wanted = f"{limit.measure} with {said}" if said else limit.measure
    if not forms:
        where = f" by {limit.method}" if limit.method else ""
        return f"no measure {wanted} will be made{where} with these settings"
    listed = list(dict.fromkeys(map(str, forms)))
    more = f"; and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
    return f"no measure {wanted} will be made; there are {'; '.join(listed[:_LISTED])}{more}"


def _unjudged(limit: Threshold, form: Form, judged: Sequence[Form]) -> str:
    """Why the limit gives no verdict, and the measure beside it that gives one."""
    beside = (f"{limit.measure}_difference", base_name(limit.measure))
    there = {each.measure for each in judged if _has(each, limit.parameters)}
    other = next((name for name in beside if name in there), None)
    step = f"set the limit on {other}" if other else "take the limit away"
    return f"{limit.measure} {form.unjudged} and gives no verdict; {step}"


def _of_range(limit: Threshold, forms: Sequence[Form], at: Location) -> Iterator[SpecError]:
    """Limits outside the measure's range can never be reached, both at its ends can never be missed.

    A limit that leaves no more than one value can never be kept: every interval has width.
    """
    low, high = min(form.low for form in forms), max(form.high for form in forms)
    outside = [
        SpecError(f"{limit.measure} {_within(low, high)}, and {value:g} does not", (*at, name))
        for name, value in (("minimum", limit.minimum), ("maximum", limit.maximum))
        if value is not None and not low <= value <= high
    ]
    yield from outside
    below = limit.minimum is None or limit.minimum <= low
    above = limit.maximum is None or limit.maximum >= high
    if not outside and below and above:
        yield SpecError(
            f"every value of {limit.measure} keeps this limit, as it {_within(low, high)}; set one that can be missed",
            at,
        )
    least = low if limit.minimum is None else limit.minimum
    most = high if limit.maximum is None else limit.maximum
    if not outside and least == most:
        yield SpecError(
            f"no interval keeps this limit, as each has width: {limit.measure} {_within(low, high)}, and the limit "
            f"leaves {most:g} alone; set one that can be kept",
            at,
        )


def _within(low: float, high: float) -> str:
    if math.isinf(high):
        return f"lies at {low:g} or above"
    return f"lies at {high:g} or below" if math.isinf(low) else f"lies between {low:g} and {high:g}"
