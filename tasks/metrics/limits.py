"""Tallies and aggregates of all methods, and the measures that may have a limit."""

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.audit.limits import Threshold
from schemas.audit.spec import AuditSpec
from schemas.errors import Location, SpecError, nearest, raise_together
from schemas.terms import DecisionMaker
from tasks.lake.storage import connected
from tasks.metrics.algorithm import measures as algorithm
from tasks.metrics.algorithm.measures import base_name, known_names
from tasks.numerics.arrays import Floats
from tasks.numerics.results import Inference
from tasks.numerics.statistics.intervals import Interval
from tasks.pipeline.method import COMPARED, COUNTED, Form, share
from tasks.pipeline.registry import METHODS, OUTCOMES, OUTCOMES_METHOD, asked_for, inapplicable, measures_known

# --------------------------------------------------------------------------------------------------------------------
# Measures without a method: approval and denial rates of the lender and, if there is one, of the model.


def makers_of_outcomes(spec: AuditSpec) -> tuple[str, ...]:
    """Who decides: the lender, and the model if there is one."""
    return ("lender",) if spec.audited_model.kind == "none" else ("lender", "model")


def measures(spec: AuditSpec) -> Iterator[Form]:
    """The planned measures."""
    makers = makers_of_outcomes(spec)
    yield share("approval_rate", beside=COMPARED, makers=makers)
    yield share("denial_rate", beside=COMPARED, makers=makers)


# --------------------------------------------------------------------------------------------------------------------
# What measures are made of: the tallies, aggregates and draws of all methods, and approvals as tallies like any other.
#
# DuckDB gathers them. The stages ``measure`` and ``publish`` both start from these.


_SQL = Path(__file__).parent / "sql"


@dataclass(frozen=True)
class Tallied:
    """The statistics of a run."""

    statistics: list[algorithm.Statistic]
    """Those that are distributions over units; decisions among them."""
    aggregates: list[algorithm.Given]
    """Those that methods gave as one number."""
    draws: Mapping[tuple[algorithm.Family, str], algorithm.Drawn]
    """Draws that groups are compared with; none where draws were not read."""

    @classmethod
    def of(
        cls,
        applications: pa.Table,
        decisions: pa.Table,
        memberships: pa.Table,
        tallies: pa.Table,
        aggregates: pa.Table,
        draws: pa.Table | None = None,
    ) -> "Tallied":
        """From the tables as they are read."""
        with connected() as connection:
            for name, table in (
                ("applications", applications.select(["row_id", "favourable"])),
                ("decisions", decisions),
                ("memberships", memberships),
                ("tallies", tallies),
                ("draws", draws),
            ):
                if table is not None:
                    connection.register(name, table)
            connection.execute(f"CREATE TEMP VIEW tallied AS FROM tallies UNION ALL BY NAME ({_query('outcomes')})")
            tally_rows = _rows(connection.sql(_query("tallies")).to_arrow_table(), ("values", "counts"))
            statistics = [
                algorithm.Statistic(
                    _family(row), row["group"], values, counts.astype(np.int64, copy=False),
                    row["headline"], row["compared"], row["share"],
                )
                for row, (values, counts) in tally_rows
            ]  # fmt: skip
            matched_draws = {}
            if draws is not None:
                draw_rows = _rows(connection.sql(_query("draws")).to_arrow_table(), ("values",))
                matched_draws = {
                    (_family(row), row["group"]): algorithm.Drawn(values, row["reason"] or "", row["reference"])
                    for row, (values,) in draw_rows
                }
        return cls(statistics, list(_aggregates(aggregates)), matched_draws)


def refitted(model_refits: pa.Table) -> dict[tuple[str, str], Floats]:
    """(protected attribute, group) -> approval rates of the model by refits, in their order; NaN without a row."""
    rates_of_groups: dict[tuple[str, str], list[float]] = {}
    for row in model_refits.sort_by("refit").to_pylist():
        rates = rates_of_groups.setdefault((row["protected_attribute"], row["group"]), [])
        rates.append(row["approved"] / row["n"] if row["n"] else math.nan)
    return {key: np.array(rates) for key, rates in rates_of_groups.items()}


def of_families(rates: Mapping[tuple[str, str], Floats]) -> dict[tuple[algorithm.Family, str], Floats]:
    """The model's approvals and denials, by the families of their measures."""
    return {
        (algorithm.Family(OUTCOMES_METHOD, DecisionMaker.MODEL, attribute, measure, "{}"), group): shares
        for (attribute, group), approved in rates.items()
        for measure, shares in (("approval_rate", approved), ("denial_rate", 1 - approved))
    }


def _query(name: str) -> str:
    return (_SQL / f"{name}.sql").read_text(encoding="utf-8")


def _family(row: dict[str, Any]) -> algorithm.Family:
    return algorithm.Family(
        row["method"],
        row["decision_maker"],
        row["protected_attribute"],
        row["measure"],
        row["parameters"],
        row.get("subgroup", 0),
    )


def _rows(table: pa.Table, lists: tuple[str, ...]) -> Iterator[tuple[dict[str, Any], tuple[Floats, ...]]]:
    """Each row of a table, and the numbers in its columns of lists as arrays: no number becomes an object."""
    arrays = []
    for name in lists:  # as views of one array; a number that is missing in a list is NaN
        column = table[name].combine_chunks()
        ends = column.offsets.to_numpy()
        flat = column.flatten().to_numpy(zero_copy_only=False)
        arrays.append([flat[start:stop] for start, stop in itertools.pairwise((ends - ends[0]).tolist())])
    plain = table.drop_columns(list(lists)).to_pylist()
    return zip(plain, zip(*arrays, strict=True), strict=True)


def _aggregates(table: pa.Table) -> Iterator[algorithm.Given]:
    for row, (replicates,) in _rows(table, ("replicates",)):
        value = math.nan if row["value"] is None else row["value"]
        flags = row["headline"], row["compared"]
        reason_and_events = row["reason"] or "", row["events"]
        ends = None if row["low"] is None or row["high"] is None else Interval(row["low"], row["high"])
        inferred = _inferred(row)
        yield algorithm.Given(
            _family(row), row["group"], value, row["n"], replicates, *flags, *reason_and_events, ends, inferred
        )


def _inferred(row: dict[str, Any]) -> Inference | None:
    """What a verdict on the aggregate rests on; None where its method gives nothing."""
    if row["scale"] is None:
        return None
    missing = {
        "se": math.nan,
        "se_above": math.nan,
        "df": math.inf,
        "p": math.nan,
        "robustness": math.nan,
        "unseen": 0.0,
    }
    numbers = {name: absent if row[name] is None else row[name] for name, absent in missing.items()}
    counts = None if row["n_used"] is None else tuple(row[name] for name in COUNTED)
    return Inference(scale=row["scale"], raised=row["raised"], lowered=row["lowered"], counts=counts, **numbers)


# --------------------------------------------------------------------------------------------------------------------
# Checks thresholds against the plan of measures: the measure will be made, and the limit lies in its range.
#
# A limit that no value can reach, or that every value keeps, would look like a check and be none. Scope: checks before
# a run. Verdicts: ``tasks.metrics.algorithm.verdicts``.


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
    measure_names, plan = known_names(measures_known()), planned(spec)
    doubted = {
        method
        for method in plan
        if method in METHODS
        and any(
            place[0] in _DECIDE
            or place[:2] in (("methods", method), ("model", "kind"))
            or place in (("methods",), ("model",))
            for place in doubtful
        )
    }
    for position, limit in enumerate(spec.thresholds):
        at: Location = ("thresholds", position)
        if at in doubtful:
            continue
        if limit.measure not in measure_names:
            yield SpecError(
                f"no method makes a measure {limit.measure!r}; {nearest(limit.measure, measure_names)}",
                (*at, "measure"),
            )
        elif limit.method is not None and limit.method not in plan:
            if not {("methods",), ("methods", limit.method)} & set(doubtful):
                yield SpecError(_not_run(limit.method, spec), (*at, "method"))
        elif doubted.isdisjoint(makers_of(limit)):
            yield from _of_plan(limit, plan, at, spec)


def makers_of(limit: Threshold) -> set[str]:
    """The methods with a measure that a limit applies to."""
    return {limit.method} if limit.method else set(_making(limit.measure))


def planned(spec: AuditSpec) -> dict[str, list[tuple[Form, tuple[str, ...]]]]:
    """By method, every possible measure and comparison with its decision makers."""
    explained, deciding = spec.explain.decision_makers, makers_of_outcomes(spec)  # without a model, the lender alone
    by_method = {OUTCOMES_METHOD: list(measures(spec))}
    by_method |= {method.name: list(method.plan(spec)) for method in asked_for(spec)}
    rows = {
        method: [
            (named, tuple(m for m in named.makers or explained if m in deciding))
            for form in forms
            for named in form.named()
        ]
        for method, forms in by_method.items()
    }
    return {
        method: [(form, makers) for form, makers in planned_forms if makers] for method, planned_forms in rows.items()
    }


def _making(measure: str) -> list[str]:
    """The methods that know a measure, whether they run or not."""
    base = base_name(measure)
    return [OUTCOMES_METHOD] * (base in OUTCOMES) + [m.name for m in METHODS.values() if base in m.measures]


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
        makers = sorted({maker for _, makers in fitting for maker in makers})
        yield SpecError(
            f"no measure {limit.measure} of the {limit.decision_maker} will be made; "
            f"there are those of the {' and the '.join(makers)}",
            (*at, "decision_maker"),
        )
    elif with_verdict := [form for form, _ in fitting if not form.unjudged]:
        yield from _of_range(limit, with_verdict, at)
    else:
        # the limit gives no verdict: name the related measure that gives one
        related = (f"{limit.measure}_difference", base_name(limit.measure))
        judged = {
            form.measure
            for rows in plan.values()
            for form, _ in rows
            if not form.unjudged and _has(form, limit.parameters)
        }
        other = next((name for name in related if name in judged), None)
        step = f"set the limit on {other}" if other else "take the limit away"
        message = f"{limit.measure} {fitting[0][0].unjudged} and gives no verdict; {step}"
        yield SpecError(message, (*at, "measure"))


def _has(form: Form, parameters: Mapping[str, float | str]) -> bool:
    """Whether the form can have these parameters; those that are left out may be any."""
    return all(
        name in form.parameters and ((values := form.parameters[name]) is None or value in values)
        for name, value in parameters.items()
    )


def _none(limit: Threshold, forms: Sequence[Form]) -> str:
    settings = ", ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in limit.parameters.items()
    )
    description = f"{limit.measure} with {settings}" if settings else limit.measure
    if not forms:
        where = f" by {limit.method}" if limit.method else ""
        return f"no measure {description} will be made{where} with these settings"
    listed = list(dict.fromkeys(map(str, forms)))
    rest = f"; and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
    return f"no measure {description} will be made; there are {'; '.join(listed[:_LISTED])}{rest}"


def _of_range(limit: Threshold, forms: Sequence[Form], at: Location) -> Iterator[SpecError]:
    """Limits outside the measure's range can never be reached, both at its ends can never be missed.

    A limit that leaves no more than one value can never be kept: every interval has width.
    """
    low, high = min(form.low for form in forms), max(form.high for form in forms)
    span = f"lies between {low:g} and {high:g}"
    if math.isinf(high):
        span = f"lies at {low:g} or above"
    elif math.isinf(low):
        span = f"lies at {high:g} or below"
    outside = [
        SpecError(f"{limit.measure} {span}, and {value:g} does not", (*at, name))
        for name, value in (("minimum", limit.minimum), ("maximum", limit.maximum))
        if value is not None and not low <= value <= high
    ]
    yield from outside
    below = limit.minimum is None or limit.minimum <= low
    above = limit.maximum is None or limit.maximum >= high
    if not outside and below and above:
        yield SpecError(
            f"every value of {limit.measure} keeps this limit, as it {span}; set one that can be missed",
            at,
        )
    least = low if limit.minimum is None else limit.minimum
    most = high if limit.maximum is None else limit.maximum
    if not outside and least == most:
        yield SpecError(
            f"no interval keeps this limit, as each has width: {limit.measure} {span}, and the limit "
            f"leaves {most:g} alone; set one that can be kept",
            at,
        )
