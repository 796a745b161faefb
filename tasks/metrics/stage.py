"""Stage measure: computes the table of measures, with intervals and states, and the tables of curves, all exact.

``tallied`` gathers, ``tasks.metrics.algorithm.measures`` computes. The stage knows no method: approvals and denials are
tallies like any other. What of it may be told is decided in ``publish``.
"""

import math
from dataclasses import replace
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from schemas.audit.limits import Bootstrap, Threshold, Verdicts
from schemas.audit.partition import Growth
from schemas.audit.spec import AuditSpec, Protected, StageSettings
from schemas.tables.applications import APPLICATIONS, DECISIONS, MEMBERSHIPS, MODEL_REFITS, REFUSAL_COUNTS
from schemas.tables.counterfactuals import GRAPH_TESTS
from schemas.tables.findings import AGGREGATES, CURVES, DRAWS, MEASURES, TALLIES
from schemas.tables.readings import ABANDONED_MEMBERSHIPS, COPIED_ROWS, COPIES, VERDICT_FINDINGS, WRITTEN_BY_ADJUST
from schemas.tables.verdicts import AGREEMENT, VERDICTS
from schemas.terms import State
from tasks.metrics import curves, verdicts
from tasks.metrics.algorithm import measures
from tasks.metrics.algorithm import measures as algorithm
from tasks.metrics.algorithm.verdicts import Case, Evidence
from tasks.metrics.limits import Tallied, of_families, refitted
from tasks.metrics.readings import facts_of, findings_of, findings_table
from tasks.metrics.verdicts import Gathered
from tasks.pipeline.registry import asked_for, covering, has_causal_model, inapplicable, of_other_groups
from tasks.pipeline.stage import Produced, stage
from tasks.preprocessing.columns import without_copies


class MeasureSettings(StageSettings):
    """Settings of the measures."""

    memory: ClassVar[Growth] = Growth(220, 14, "asked", 1.2)

    name: str
    year: int
    protected: tuple[Protected, ...]
    thresholds: tuple[Threshold, ...]
    bootstrap: Bootstrap
    seed: int
    verdicts: Verdicts
    running: tuple[str, ...]
    """Methods that run."""
    curves: dict[str, dict[str, dict[str, float | str | None]]] = Field(default_factory=dict)
    """Method -> measure with many points -> parameters of the points that stay measures; without any, none stays."""
    inapplicable: dict[str, str] = Field(default_factory=dict)
    """Methods that the spec asks for and that cannot run, each with the reason."""
    has_graph: bool = True
    """Whether the spec gives a causal model."""
    fewest: int = 0
    """People below which a group decides nothing: those that the profile of disclosure reports on."""
    model_is_fitted: bool
    """Whether the model was fitted to the rows of this audit, and is no rule or file."""


def measure_settings(spec: AuditSpec) -> MeasureSettings:
    """The stage's settings."""
    running = tuple(method.name for method in asked_for(spec))
    derived = {"running": running, "inapplicable": inapplicable(spec), "model_is_fitted": not spec.model.is_given}
    derived |= {"has_graph": has_causal_model(spec), "curves": curves.rule_of(spec)}
    derived |= {"fewest": spec.disclosure.smallest}
    return MeasureSettings.of(spec, **derived)


@stage(
    reads=(
        *(APPLICATIONS, DECISIONS, MEMBERSHIPS, REFUSAL_COUNTS, MODEL_REFITS, TALLIES, AGGREGATES, DRAWS),
        *(GRAPH_TESTS, COPIED_ROWS, COPIES, ABANDONED_MEMBERSHIPS, *WRITTEN_BY_ADJUST),
    ),
    writes=(MEASURES, *CURVES, VERDICTS, AGREEMENT, VERDICT_FINDINGS),
    resources=("metrics/sql/*.sql",),
    balanced=False,
)
def measure(
    applications: pa.Table,
    decisions: pa.Table,
    memberships: pa.Table,
    refusal_counts: pa.Table,
    model_refits: pa.Table,
    tallies: pa.Table,
    aggregates: pa.Table,
    draws: pa.Table,
    graph_tests: pa.Table,
    copied_rows: pa.Table,
    copies: pa.Table,
    abandoned_memberships: pa.Table,
    *of_effects: pa.Table,
    settings: MeasureSettings,
) -> Produced:
    """Every measure of the run, and the state of each theory of harm, with exact numbers."""
    applications = without_copies(applications, copied_rows)
    facts = facts_of({table.name: rows for table, rows in zip(WRITTEN_BY_ADJUST, of_effects, strict=True)})
    parted = curves.Parted.of(tallies, aggregates, draws, settings.curves, settings.thresholds)
    tallied = Tallied.of(applications, decisions, memberships, parted.tallies, parted.aggregates, parted.draws)
    plan = _plan(settings)
    # Groups of applications none of which is complete have no decision, and are lost.
    whose = ["protected_attribute", "group"]
    complete = memberships.filter(pc.is_in(memberships["row_id"], decisions["row_id"].combine_chunks()))
    source_groups, complete_groups, refused_groups = (
        {tuple(row.values()) for row in table.select(whose).drop_null().group_by(whose).aggregate([]).to_pylist()}
        for table in (memberships, complete, refusal_counts)
    )
    undecided = abandoned_memberships.group_by(whose).aggregate([([], "count_all")]).to_pylist()
    gathered = Gathered.of(
        tallied.statistics,
        tallied.aggregates,
        settings.protected,
        settings.running,
        settings.verdicts,
        refitted(model_refits),
        model_is_fitted=settings.model_is_fitted,
        inapplicable=settings.inapplicable,
        lost=source_groups - complete_groups,
        facts=facts,
        undecided={tuple(row[name] for name in whose): row["count_all"] for row in undecided},
        has_graph=settings.has_graph,
        contradicted="; ".join(row["words"] for row in graph_tests.to_pylist() if row["contradicted"]),
    )
    by_refits = of_families(gathered.refitted)
    plan = replace(plan, small=gathered.small)
    made = algorithm.summarise(tallied.statistics, tallied.draws, plan, tallied.aggregates, by_refits)
    makers, groups = decisions["decision_maker"].unique().to_pylist(), source_groups | refused_groups
    everyone = {(maker, *pair) for maker in makers for pair in groups}
    own_cases = _own_cases(made, gathered, everyone, plan, settings)
    judgement = verdicts.judged(gathered, [case for _, case in own_cases], settings.verdicts, fewest=settings.fewest)
    missing = [m for m, _ in own_cases if m.state is State.INCONCLUSIVE]
    stated = measures.stated([*made, *dict.fromkeys(missing)], judgement.rows, covering())
    columns: dict[str, list[object]] = {
        "dataset": [settings.name] * len(stated),
        "year": [settings.year] * len(stated),
        **{name: [getattr(m.family, name) for m in stated] for name in _OF_FAMILY},
        **{name: [getattr(m, name) for m in stated] for name in _OF_MEASURE},
    }
    references = {p.name: p.reference for p in settings.protected}
    copied = [row for row in copies.to_pylist() if row["beyond_chance"]]
    findings = findings_of(facts, copied[0] if copied else None, settings.verdicts)
    tables = {
        MEASURES.name: MEASURES.build(**columns),
        **curves.curves_of(parted.points, settings.bootstrap.level),
        **verdicts.tables(judgement),
        VERDICT_FINDINGS.name: findings_table(findings, references),
    }
    return Produced(tables)


_OF_FAMILY = ("method", "decision_maker", "protected_attribute", "subgroup", "measure", "parameters")
_OF_MEASURE = ("group", "reference_group", "value", "low", "high", "n", "events", "p", "q", "state", "reason", "note")


def _own_cases(
    made: list[algorithm.Measure],
    gathered: Gathered,
    everyone: set[tuple[str, str, str]],
    plan: algorithm.Plan,
    settings: MeasureSettings,
) -> list[tuple[algorithm.Measure, Case]]:
    """Cases of the spec's thresholds; ``limits`` has held them against the plan of measures before."""
    limits = [
        measures.Threshold(
            t.measure,
            t.method,
            t.decision_maker,
            -math.inf if t.minimum is None else t.minimum,
            math.inf if t.maximum is None else t.maximum,
            t.parameters,
        )
        for t in settings.thresholds
    ]
    if not limits:
        return []
    by_name = {p.name: p for p in settings.protected}
    everything = [
        m
        for m in made + measures.unmeasured(made, limits, everyone, plan)
        if m.group == plan.references[of := m.family.protected_attribute]
        or (by_name[of].judges(m.group) and (of, m.group) not in gathered.small)
    ]
    exact: dict[tuple[algorithm.Family, str], Evidence] = {}
    unsure: dict[tuple[algorithm.Family, str], str] = {}
    for case in gathered.cases():
        family = algorithm.Family(case.method, case.decision_maker, case.protected_attribute, case.measure, "{}")
        if case.evidence is not None:
            exact[family, case.group] = case.evidence
        if case.problem:
            unsure[family, case.group] = case.problem
    limit_cases = measures.cases(
        everything, limits, exact, gathered.counts, covering(), plan, settings.bootstrap.minimum_n
    )
    return [(m, measures.doubted(case, unsure.get((m.family, m.group), ""))) for m, case in limit_cases]


def _plan(settings: MeasureSettings) -> algorithm.Plan:
    references = {p.name: p.reference for p in settings.protected}
    boot = settings.bootstrap
    return algorithm.Plan(references, boot.draws, boot.level, settings.seed, of_other_groups())
