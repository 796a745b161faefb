"""Synthetic tables of a run, as the stages before the report would leave them. No numbers here mean anything."""

import json
import math
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import report_fgce

from schemas.audit.spec import AuditSpec
from schemas.tables.applications import ENCODINGS, MEMBERSHIPS, MODEL_METRICS, REFUSALS
from schemas.tables.counterfactuals import (
    CAUSAL_CHECKS,
    CAUSAL_EFFECTS,
    GENERATOR_CHECKS,
    GENERATOR_HISTORY,
    MEDIATOR_EFFECTS,
)
from schemas.tables.feasibility import FEASIBILITY_FACTS
from schemas.tables.measures import MEASURES
from schemas.tables.missingness import ANY, MISSINGNESS
from schemas.tables.source import DECISION_DIRECTION, SOURCE_READ
from schemas.tables.validations import VALIDATIONS
from tasks.metrics import verdict_tables
from tasks.metrics.algorithm.disclosure import POLICIES
from tasks.metrics.algorithm.measures import Family, Statistic
from tasks.metrics.theories import Gathered
from tasks.pipeline.registry import tables_shown
from tasks.pipeline.specs import validated
from tasks.reporting.material import ReportSettings
from tasks.reporting.stage import report

REFERENCE = "white"
HOSTILE = ("<script>alert(1)</script>", "'; DROP TABLE x; --")
NOBODY = "Pacific Islander"
"""A group with applications in the graph, and without factuals."""
APPROVAL = {REFERENCE: 0.86, HOSTILE[0]: 0.61, HOSTILE[1]: 0.79, "Asian": 0.8}
SIZES = {REFERENCE: 4200, HOSTILE[0]: 610, HOSTILE[1]: 240, "Asian": 20}


@dataclass
class Rows:
    """Rows of MEASURES under construction."""

    year: int = 1990
    rows: list[dict] = field(default_factory=list)

    def add(self, method, maker, group, measure, value, *, spread=0.05, reference=None, subgroup=0, n=None, **more):
        parameters = more.pop("parameters", {})
        missing = value is None
        self.rows.append(
            {
                "dataset": "example",
                "year": self.year,
                "method": method,
                "decision_maker": maker,
                "protected_attribute": "race",
                "group": group,
                "reference_group": reference,
                "subgroup": subgroup,
                "measure": measure,
                "parameters": json.dumps(parameters, sort_keys=True),
                "value": value,
                "low": None if missing or spread is None else value - spread,
                "high": None if missing or spread is None else value + spread,
                "n": n,
                "events": None,
                "p": None,
                "q": None,
                "state": "not_run",
                "reason": "no threshold set",
                "note": "",
                **more,
            }
        )


def _outcomes(rows, maker, approval):
    for group, n in SIZES.items():
        rate = approval[group]
        rows.add("outcomes", maker, group, "approval_rate", rate, n=n, spread=2 * math.sqrt(rate * (1 - rate) / n))
        rows.add("outcomes", maker, group, "denial_rate", 1 - rate, n=n, spread=0.03)
        if group == REFERENCE:
            continue
        for name, own, other in (
            ("approval_rate", rate, approval[REFERENCE]),
            ("denial_rate", 1 - rate, 1 - approval[REFERENCE]),
        ):
            compared = {"reference": REFERENCE, "n": n, "p": 0.0004, "q": 0.003}
            rows.add("outcomes", maker, group, f"{name}_difference", own - other, **compared)
            state = {}
            if name == "approval_rate":
                few = n < 30
                verdict = "insufficient_evidence" if few else "breach" if own / other < 0.8 else "within"
                why = (
                    "20 units, 30 are needed for a verdict"
                    if few
                    else "the whole interval lies on one side of [0.8, inf]"
                )
                state = {"state": verdict, "reason": why}
            rows.add("outcomes", maker, group, f"{name}_ratio", own / other, **compared, **state)


def _refusals():
    lines = [
        ("ingest", "decision_not_audited", "action_taken", 300, None),
        ("ingest", "malformed_line", None, 3, None),
        ("ingest", "missing_decision", "action_taken", 40, None),
        ("preprocess", "missing_covariate", "debt_to_income", 220, 0.35),
        ("preprocess", "missing_covariate", "loan_to_value", 90, 0.36),
        ("score", "failed_expectation", "income", 12, 0.5),
    ]
    rng = np.random.default_rng(7)
    names = list(SIZES)
    out, members = [], []
    for stage, reason, column, n, rate in lines:
        for _ in range(n):
            row_id = f"r{len(out)}"
            favourable = None if rate is None else bool(rng.random() < rate)
            out.append((row_id, len(out) + 1, stage, reason, column, None, favourable))
            if reason != "malformed_line":
                members.append((row_id, names[rng.choice(4, p=[0.78, 0.15, 0.06, 0.01])]))
    for group, size in SIZES.items():
        members += [(f"{len(members)}-kept", group) for _ in range(size)]
    fields = [c.name for c in REFUSALS.columns]
    refusals = REFUSALS.build(**{name: [row[i] for row in out] for i, name in enumerate(fields)})
    ids, groups = zip(*members, strict=True)
    memberships = MEMBERSHIPS.build(row_id=ids, protected_attribute=["race"] * len(ids), group=groups)
    return refusals, memberships


def _validations():
    rows = []
    for stage, table in (("ingest", "applications"), ("preprocess", "features"), ("score", "decisions")):
        for name, column in (
            ("expect_column_values_to_not_be_null", "row_id"),
            ("expect_column_values_to_be_between", "income"),
        ):
            bad = stage == "score" and column == "income"
            rows.append(
                (stage, table, name, column, '{"max_value": null, "min_value": 0}', not bad, 5070, 12 * bad, bad)
            )
    fields = [c.name for c in VALIDATIONS.columns]
    return VALIDATIONS.build(**{name: [row[i] for row in rows] for i, name in enumerate(fields)})


def _encodings():
    income = {"encoded": "income", "kind": "continuous", "low": 12.0, "high": 480.0, "bins": 11, "clipped": 101}
    sex = {"encoded": "sex", "kind": "binary", "categories": '["Female", "Male"]', "constraint": "immutable"}
    purpose = {"kind": "nominal", "categories": '["buy", "refinance"]', "transitions": '{"buy": []}'}
    rows = [
        {"feature": "income", "feature_index": 0, **income, "constraint": "up", "implausible": 14},
        {"feature": "sex", "feature_index": 1, **sex},
        {"feature": "purpose", "feature_index": 2, **purpose, "encoded": "purpose=buy", "category": "buy"},
        {"feature": "purpose", "feature_index": 2, **purpose, "encoded": "purpose=refinance", "category": "refinance"},
    ]
    usual = {"clipped": 0, "implausible": 0, "roles": "feature", "constraint": "free"}
    return ENCODINGS.build(**{c.name: [(usual | row).get(c.name) for row in rows] for c in ENCODINGS.columns})


def _metrics():
    rows = [
        (group, metric, None if group == "Asian" and metric == "auc" else 0.8 - 0.03 * i, size)
        for i, (group, size) in enumerate(SIZES.items())
        for metric in ("accuracy", "auc", "predicted_denial_rate", "true_positive_rate", "false_positive_rate")
    ]
    groups, metrics, values, n = zip(*rows, strict=True)
    return MODEL_METRICS.build(
        protected_attribute=["race"] * len(rows), group=groups, metric=metrics, value=values, n=n
    )


def missingness(auc=0.6123, **changes):
    """Who lacks what, as the refusals have it: 40 of 130 without a loan-to-value ratio lack the debt ratio too."""
    rows = {
        "debt_to_income": (220, 77, 0, 0),
        "loan_to_value": (130, 46, 40, 14),
        ANY: (310, 109, 310, 109),
    } | changes
    each = [(name, *counts) for name, counts in rows.items()]
    names, missing, favourable, elsewhere, approved = zip(*each, strict=True)
    return MISSINGNESS.build(
        feature=names,
        reason=[ANY if name == ANY else "missing_covariate" for name in names],
        missing=missing,
        favourable_missing=favourable,
        present=[5392 - n for n in missing],
        favourable_present=[4321 - n for n in favourable],
        elsewhere=elsewhere,
        favourable_elsewhere=approved,
        auc=[auc if name == ANY else None for name in names],
    )


def with_tables(approval: dict[str, float] | None = None, **own: pa.Table) -> tuple[pa.Table, ...]:
    """The tables of the synthetic run, with some of them, by name, replaced."""
    names = [table.name for table in report.reads]
    assert set(own) <= set(names), "no such table"
    return tuple(own.get(name, table) for name, table in zip(names, tables(approval), strict=True))


def source_read() -> pa.Table:
    """What was read."""
    return SOURCE_READ.build(source=["applications.csv"], sha256=["ab" * 32], rows=[5395], year=[None])


def direction(auc: float | None = 0.6951, high: float | None = 0.727) -> pa.Table:
    """The check of the decision column."""
    return DECISION_DIRECTION.build(
        decided_by=["none" if auc is None else "columns"],
        columns=["" if auc is None else "income +, debt_to_income -"],
        n=[5392],
        auc=[auc],
        high=[high],
        reversed=[high is not None and high < 0.5],
    )


def spec() -> AuditSpec:
    """The audit spec of the synthetic run."""
    return validated(
        AuditSpec,
        {
            "name": "example",
            "title": "Mortgage applications, an example",
            "year": 1990,
            "source": {"kind": "csv", "path": "/srv/secret place/applications.csv"},
            "decision": {"column": "action_taken", "favourable": [1, 2], "unfavourable": [3]},
            "protected": [{"name": "race", "columns": ["race"], "reference": REFERENCE}],
            "columns": {
                "income": {"type": "continuous", "constraint": "up", "label": "Income, thousands"},
                "sex": {"type": "binary", "constraint": "immutable"},
                "purpose": {"type": "nominal"},
            },
            "thresholds": [{"measure": "approval_rate_ratio", "minimum": 0.8}],
        },
    )


def settings(audit: AuditSpec | None = None) -> ReportSettings:
    """The report's settings of the synthetic run."""
    return ReportSettings.of(
        audit or spec(),
        run="example-1990-0a1b2c3d",
        source_sha256="ab" * 32,
        code="cd" * 16,
        effective_spec="name: example\nyear: 1990\n",
        version="0.1.0",
    )


def verdicts(audit: AuditSpec | None = None) -> pa.Table:
    """The verdicts on the lender's approvals; no method has anything to say of the other theories."""
    said = audit or spec()
    denied = [
        Statistic(
            Family("outcomes", "lender", "race", "denial_rate", "{}"),
            group,
            np.array([0.0, 1.0]),
            np.array([round(n * APPROVAL[group]), n - round(n * APPROVAL[group])]),
            headline=True,
        )
        for group, n in SIZES.items()
    ]
    gathered = Gathered.of(denied, (), said.protected, (), said.verdicts, {})
    found = verdict_tables.judged(gathered, [], said.verdicts)
    return verdict_tables.tables(found, set(), POLICIES["public"])["verdicts"]


def tables(approval: dict[str, float] | None = None) -> tuple[pa.Table, ...]:
    """The tables that the report reads, in its order; of an audit without a causal graph."""
    rows = Rows()
    for maker in ("model", "lender"):
        _outcomes(rows, maker, approval or APPROVAL)
        report_fgce.add(rows, maker, SIZES, REFERENCE, NOBODY)
    names = [c.name for c in MEASURES.columns]
    measures = MEASURES.build(**{name: [row[name] for row in rows.rows] for name in names})
    facts = FEASIBILITY_FACTS.build(
        fact=["epsilon", "nodes"],
        value=[0.524, 43916.0],
        words=[
            "one feasible step reaches 0.524 in encoded units",
            "43,916 distinct rows stand for 51,002 applications",
        ],
    )
    refusals, memberships = _refusals()
    return (
        measures,
        verdicts(),
        refusals,
        _validations(),
        memberships,
        _encodings(),
        _metrics(),
        facts,
        CAUSAL_CHECKS.empty(),
        CAUSAL_EFFECTS.empty(),
        missingness(),
        MEDIATOR_EFFECTS.empty(),
        GENERATOR_CHECKS.empty(),
        GENERATOR_HISTORY.empty(),
        direction(),
        source_read(),
        *(table.empty() for table in tables_shown()),
    )
