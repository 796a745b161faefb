"""Runs whose first pages print every sentence that there is, with the tables and settings that each needs."""

from dataclasses import replace

from decide_runs import (
    INSIDE,
    LITTLE,
    NO_LIMIT,
    NOT_RUN,
    OUTSIDE,
    boston,
    effect,
    gap,
    nearest,
    of_states,
    row,
    texas,
    white,
    whole,
)
from first_page_again import Page
from report_tables import built, material, renamed, spec

from schemas.tables.applications import ANY, DECISION_DIRECTION, VALIDATIONS
from schemas.tables.verdicts import PUBLISHED_MEASURES, PUBLISHED_MISSINGNESS, PUBLISHED_WATERFALL
from schemas.terms import Theory
from tasks.pipeline.registry import tables_shown
from tasks.reporting.first_page.facts import Group, Run

SHOWN = {table.name: table for table in tables_shown()}
HMDA = {"kind": "hmda", "vintage": {}, "vintage_file": "vintages/2022/snapshot/TX/2023-05-01/0123456789ab/rows.parquet"}
DECISION = {"column": "action_taken", "favourable": [1], "unfavourable": [3]}
LONG = "Native Hawaiian and Other Pacific Islander"
POINTS = (-20.0, -28.0, -12.0)


def page(run, tables=None, **audit):
    """A page of a run, of other tables and of changes of the spec."""
    protected = [{"name": "race", "columns": ["race"], "reference": _reference(run)}]
    return Page(material(run, spec(**{"year": 2024, "protected": protected, **audit}), **(tables or {})))


def _reference(run):
    return next((group.name for group in run.groups if group.reference), "white")


def adding(run, *rows):
    """The same run with more rows."""
    return replace(run, rows=(*run.rows, *rows))


def alone(theory, state, *rows, reason=""):
    """One theory and nothing else."""
    return Run((whole(theory, state, reason), *rows), (white(), Group("race", "A", 100, 0.7)))


def benchmarks(column):
    """The judged rung of a group, and its strongest control."""
    of = {"decision_maker": "lender", "protected_attribute": "race", "group": "A"}
    judged = {**of, "blocks": "", "estimator": "logit", "average_over": "own", "form": "squared", "n": 100}
    rung = {**judged, "rung": 1, "value": 0.2, "primary": True, "events": 30, "reason": ""}
    controls = [("income", 0.01, 0.02), (column, 0.03, 0.004), ("public_record", 0.005, 0.13)]
    rows = [
        {**of, "rung": 1, "blocks": "", "column": name, "times": 1, "of_group": group, "of_denial": denial}
        for name, group, denial in controls[: 1 if column == "income" else 3]
    ]
    return {
        "adjusted": built(SHOWN["adjusted"], [rung]),
        "adjusted_benchmarks": built(SHOWN["adjusted_benchmarks"], rows),
    }


def waterfall(**groups):
    """Rows in and out: group -> applications and, by feature, those that lack it."""
    usual = {"protected_attribute": "race", "stage": "", "reason": "", "column": "", "withheld": False}
    features = list(dict.fromkeys(name for _, lacking in groups.values() for name in lacking))
    lacks = {"kind": "refused", "stage": "preprocess", "reason": "missing_covariate"}
    rows = []
    for group, (n, lacking) in {"All": _sum(groups), **groups}.items():
        gone = sum(lacking.values())
        rows.append({**usual, "line": 0, "kind": "source", "group": group, "n": n})
        for line, name in enumerate(features, 1):
            rows.append({**usual, **lacks, "line": line, "column": name, "group": group, "n": lacking.get(name, 0)})
        rows.append({**usual, "line": len(features) + 1, "kind": "used", "group": group, "n": n - gone})
    return built(PUBLISHED_WATERFALL, rows)


def _sum(groups):
    features = {name for _, lacking in groups.values() for name in lacking}
    return sum(n for n, _ in groups.values()), {
        name: sum(lacking.get(name, 0) for _, lacking in groups.values()) for name in features
    }


def missingness(missing, lacking, present):
    """Published decisions on those who lack a feature."""
    made = {"feature": ANY, "reason": ANY, "missing": missing, "withheld": lacking is None}
    return built(PUBLISHED_MISSINGNESS, [{**made, "approval_missing": lacking, "approval_present": present}])


def warned(*names):
    """Warnings of the data."""
    direction = {"decided_by": "columns", "columns": "income +", "n": 9, "auc": 0.2, "high": 0.3, "reversed": True}
    check = {"stage": "ingest", "table": "applications", "expectation": "x", "expected": "{}", "elements": 9}
    check["severity"] = "critical"
    made = {
        "decision_direction": built(DECISION_DIRECTION, [direction]),
        "validations": built(VALIDATIONS, [{**check, "success": False, "unexpected": 1, "quarantined": False}]),
    }
    return {name: made[name] for name in names}


def ranged(run, reason):
    """Approvals of which one is a range."""
    from report_tables import measures

    rows = measures(run).to_pylist()
    return {
        "measures": built(PUBLISHED_MEASURES, [{**r, "reason": reason if r["value"] is None else ""} for r in rows])
    }


def by_model(run):
    """The same run of a model's decisions."""
    from report_tables import measures

    made = [{**each, "decision_maker": "model"} for each in measures(run).to_pylist()]
    rows = tuple(replace(each, decision_maker="model") if each.group else each for each in run.rows)
    return replace(run, rows=rows), {"measures": built(PUBLISHED_MEASURES, made)}


def strong(run, **more):
    """The same with a robustness value of every adjusted effect."""
    change = {"robustness": 0.124} | more
    return replace(
        run,
        rows=tuple(replace(r, **change) if r.theory is Theory.SIMILAR_APPLICANTS and r.group else r for r in run.rows),
    )


def headlines():
    """A case for each first sentence, by two and more groups."""
    states = (OUTSIDE, INSIDE, LITTLE, NO_LIMIT, NOT_RUN)
    for plain in states:
        for adjusted in states:
            yield f"{plain} {adjusted}", page(of_states((plain, adjusted)))
    both = (OUTSIDE, OUTSIDE)
    yield "two groups", page(of_states(both, both))
    yield "three groups", page(of_states(both, both, both))
    widened = effect("A", LITTLE, (-20, -39, -1), limit=-2, bias=0.10)
    open_only = alone(Theory.SIMILAR_APPLICANTS, LITTLE, widened, nearest("A", LITTLE, (-9, -14, -1), bias=0.10))
    yield "widened", page(open_only)
    names = {name: f"Native Hawaiian and other Islanders {name}" for name in "AB"}
    yield "long names", page(renamed(of_states(both, both), names))
    yield "widened, long names", page(renamed(open_only, {"A": names["A"], "white": "None of the groups above"}))
    nobody = replace(of_states(both), groups=())
    yield "no reference", page(replace(nobody, rows=tuple(replace(r, reference_group=None) for r in nobody.rows)))
    for theory in (Theory.CAUSAL_MODEL, Theory.PATH_TO_APPROVAL, Theory.MODEL_REASONS, Theory.OWN_LIMITS):
        for pair in ((INSIDE, INSIDE), (LITTLE, LITTLE), (NO_LIMIT, NO_LIMIT)):
            own = (row(theory, "A", OUTSIDE, value=0.2),)
            yield f"{theory} beside {pair[0]}", page(adding(of_states(pair), whole(theory, OUTSIDE), *own))
    few = of_states(both, n=29)
    yield "too few to be named", page(few)
    yield "several", page(adding(few, whole(Theory.CAUSAL_MODEL, OUTSIDE)))
    unknown = of_states((INSIDE, INSIDE))
    yield "no size", page(replace(unknown, rows=tuple(replace(each, detectable=None) for each in unknown.rows)))
    for size in (0.171, 0.05):
        rows = (
            replace(r, detectable=1 - size) if r.theory is Theory.APPROVAL_RATES and r.group else r
            for r in unknown.rows
        )
        yield f"sizes apart {size}", page(replace(unknown, rows=tuple(rows)))
    for names in (("decision_direction",), ("validations",), ("decision_direction", "validations")):
        yield f"warned {names}", page(of_states(both), warned(*names))


def gaps():
    """Adjusted gaps beside plain ones: parts, five times as large, of the other sign, and none at all."""
    for plain in (-20.8, -4.0, 4.0, 0.0, -30.0):
        for adjusted in (-20.0, -14.0, -10.0, -4.6):
            rate = round((90.8 + plain) / 100, 6)
            rows = (
                *(whole(Theory.APPROVAL_RATES, OUTSIDE), whole(Theory.SIMILAR_APPLICANTS, OUTSIDE)),
                gap("A", OUTSIDE, (plain, -90, 90), limit=min(-5, plain - 1), n=100),
                effect("A", OUTSIDE, (adjusted, -90, adjusted + 1), limit=-1, n=100),
            )
            yield f"plain {plain} adjusted {adjusted}", page(Run(rows, (white(), Group("race", "A", 100, rate))))
    yield "each", page(of_states((OUTSIDE, OUTSIDE), (OUTSIDE, OUTSIDE)))
    odd = (effect("A", OUTSIDE, POINTS), nearest("A", INSIDE, (-1, -2, 0)))
    yield "methods disagree", page(alone(Theory.SIMILAR_APPLICANTS, LITTLE, *odd))
    hidden = effect("A", LITTLE, POINTS, withheld=True)
    yield "withheld", page(alone(Theory.SIMILAR_APPLICANTS, LITTLE, hidden))
    many = [replace(hidden, group=f"G{number}") for number in range(9)]
    yield "many withheld", page(Run((whole(Theory.SIMILAR_APPLICANTS, LITTLE), *many), (white(),)))
    nine = [effect(f"G{number}", OUTSIDE, POINTS, n=100) for number in range(9)]
    yield "many outside", page(Run((whole(Theory.SIMILAR_APPLICANTS, OUTSIDE), *nine), (white(),)))
    yield "boston", page(boston())
    yield "texas", page(texas())
