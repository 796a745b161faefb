"""Stage measure: computes the table of measures, with intervals and states, and withholds small cells.

DuckDB gathers, ``tasks.metrics.algorithm.measures`` computes. The stage knows no method: approvals and denials are
tallies like any other.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from schemas.audit.limits import Verdicts
from schemas.audit.spec import AuditSpec, Bootstrap, Disclosure, Protected, StageSettings, Threshold
from schemas.tables.applications import APPLICATIONS, DECISIONS, MEMBERSHIPS, MODEL_REFITS
from schemas.tables.findings import AGGREGATES, DRAWS, TALLIES
from schemas.tables.measures import MEASURES
from schemas.tables.verdicts import AGREEMENT, VERDICTS
from schemas.terms import DecisionMaker, State
from tasks.metrics import verdict_tables
from tasks.metrics.algorithm import measures as algorithm
from tasks.metrics.algorithm import publication
from tasks.metrics.algorithm.disclosure import POLICIES
from tasks.metrics.algorithm.verdicts import thresholds
from tasks.metrics.algorithm.verdicts.evidence import Evidence
from tasks.metrics.algorithm.verdicts.judgement import Case
from tasks.metrics.theories import Gathered
from tasks.numerics.arrays import Floats
from tasks.numerics.results import Inference
from tasks.numerics.statistics.intervals import Interval
from tasks.pipeline.registry import OUTCOMES_METHOD, covering, of_other_groups, partitions
from tasks.pipeline.stage import Produced, stage
from tasks.pipeline.statistics import COUNTED

_SQL = Path(__file__).parent / "sql"


class MeasureSettings(StageSettings):
    """Settings of the measures."""

    name: str
    year: int
    protected: tuple[Protected, ...]
    thresholds: tuple[Threshold, ...]
    disclosure: Disclosure
    bootstrap: Bootstrap
    seed: int
    verdicts: Verdicts
    running: tuple[str, ...]
    """Methods of the audit."""
    model_is_fitted: bool
    """Whether the model was fitted to the rows of this audit, and is no rule or file."""


def settings_of(spec: AuditSpec) -> MeasureSettings:
    """The stage's settings."""
    return MeasureSettings.of(spec, running=spec.methods.running(), model_is_fitted=not spec.model.is_given)


@stage(
    reads=(APPLICATIONS, DECISIONS, MEMBERSHIPS, MODEL_REFITS, TALLIES, AGGREGATES, DRAWS),
    writes=(MEASURES, VERDICTS, AGREEMENT),
    resources=("sql/*.sql",),
    balanced=False,
)
def measure(
    applications: pa.Table,
    decisions: pa.Table,
    memberships: pa.Table,
    model_refits: pa.Table,
    tallies: pa.Table,
    aggregates: pa.Table,
    draws: pa.Table,
    *,
    settings: MeasureSettings,
) -> Produced:
    """Every measure of the run, and the state of each theory of harm, decided before anything is withheld."""
    with duckdb.connect() as connection:
        for name, table in (
            ("applications", applications.select(["row_id", "favourable"])),
            ("decisions", decisions),
            ("memberships", memberships),
            ("tallies", tallies),
            ("draws", draws),
        ):
            connection.register(name, table)
        connection.execute(f"CREATE TEMP VIEW tallied AS FROM tallies UNION ALL BY NAME ({_query('outcomes')})")
        statistics = [_statistic(row) for row in connection.sql(_query("tallies")).to_arrow_table().to_pylist()]
        matched = dict(_matched(row) for row in connection.sql(_query("draws")).to_arrow_table().to_pylist())
    given = [_given(row) for row in aggregates.to_pylist()]
    policy = POLICIES[settings.disclosure.profile]
    hidden = publication.withheld([*statistics, *given], policy, partitions())
    plan = _plan(settings)
    gathered = Gathered.of(
        statistics,
        given,
        settings.protected,
        settings.running,
        settings.verdicts,
        _refitted(model_refits),
        model_is_fitted=settings.model_is_fitted,
    )
    by_refits = _of_families(gathered.refitted)
    exact = algorithm.summarise(statistics, matched, plan, given, by_refits)
    own = _own_cases(exact, gathered, _everyone(decisions, memberships), plan, settings)
    judged = verdict_tables.judged(gathered, [case for _, case in own], settings.verdicts)
    found = exact
    if policy.round_to != 1:
        shown = [publication.coarsened_given(g, policy) for g in given]
        found = algorithm.summarise(
            [publication.coarsened(s, policy) for s in statistics], matched, plan, shown, by_refits
        )
    missing = [m for m, _ in own if m.state is State.INSUFFICIENT_EVIDENCE]
    stated = thresholds.stated([*found, *dict.fromkeys(missing)], judged.rows, covering())
    published = publication.published(stated, hidden, policy)
    small = _cells(hidden)
    return Produced(
        {
            MEASURES.name: _table(published, settings),
            **verdict_tables.tables(judged, small, policy),
        }
    )


def _cells(hidden: set[publication.Cell]) -> set[tuple[str, ...]]:
    """What is withheld, as verdicts know it: (decision maker, attribute, group), or that after one measure's name."""
    out: set[tuple[str, ...]] = set()
    for f, group in hidden:
        whose = f.decision_maker, f.protected_attribute, group
        if f.method == OUTCOMES_METHOD:
            out.add(whose)
        elif not f.subgroup:
            out.add((f.method, f.measure, f.parameters, *whose))
    return out


def _refitted(model_refits: pa.Table) -> dict[tuple[str, str], Floats]:
    """(protected attribute, group) -> approval rates of the model by refits, in their order; NaN without a row."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in model_refits.sort_by("refit").to_pylist():
        rates = found.setdefault((row["protected_attribute"], row["group"]), [])
        rates.append(row["approved"] / row["n"] if row["n"] else math.nan)
    return {key: np.array(rates) for key, rates in found.items()}


def _of_families(rates: Mapping[tuple[str, str], Floats]) -> dict[tuple[algorithm.Family, str], Floats]:
    """The model's approvals and denials, by the families of their measures."""
    return {
        (algorithm.Family(OUTCOMES_METHOD, DecisionMaker.MODEL, attribute, measure, "{}"), group): shares
        for (attribute, group), approved in rates.items()
        for measure, shares in (("approval_rate", approved), ("denial_rate", 1 - approved))
    }


def _own_cases(
    found: list[algorithm.Measure],
    gathered: Gathered,
    everyone: set[tuple[str, str, str]],
    plan: algorithm.Plan,
    settings: MeasureSettings,
) -> list[tuple[algorithm.Measure, Case]]:
    """Cases of the spec's thresholds; ``limits`` has held them against the plan of measures before."""
    limits = [_limit(t) for t in settings.thresholds]
    if not limits:
        return []
    by_name = {p.name: p for p in settings.protected}
    everything = [
        m
        for m in found + thresholds.unmeasured(found, limits, everyone, plan)
        if m.group == plan.references[of := m.family.protected_attribute] or by_name[of].judges(m.group)
    ]
    exact: dict[tuple[algorithm.Family, str], Evidence] = {}
    unsure: dict[tuple[algorithm.Family, str], str] = {}
    for case in gathered.cases():
        family = algorithm.Family(case.method, case.decision_maker, case.protected_attribute, case.measure, "{}")
        if case.evidence is not None:
            exact[family, case.group] = case.evidence
        if case.problem:
            unsure[family, case.group] = case.problem
    made = thresholds.cases(everything, limits, exact, gathered.counts, covering(), plan, settings.bootstrap.minimum_n)
    return [(m, thresholds.doubted(case, unsure.get((m.family, m.group), ""))) for m, case in made]


def _plan(settings: MeasureSettings) -> algorithm.Plan:
    references = {p.name: p.reference for p in settings.protected}
    boot = settings.bootstrap
    return algorithm.Plan(references, boot.draws, boot.level, settings.seed, of_other_groups())


def _everyone(decisions: pa.Table, memberships: pa.Table) -> set[tuple[str, str, str]]:
    """Every decision maker with every group that a row of the source belongs to."""
    groups = set(zip(memberships["protected_attribute"].to_pylist(), memberships["group"].to_pylist(), strict=True))
    return {(maker, *pair) for maker in decisions["decision_maker"].unique().to_pylist() for pair in groups}


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


def _statistic(row: dict[str, Any]) -> algorithm.Statistic:
    values, counts = np.array(row["values"], dtype=float), np.array(row["counts"], dtype=np.int64)
    flags = row["headline"], row["compared"], row["share"]
    return algorithm.Statistic(_family(row), row["group"], values, counts, *flags)


def _given(row: dict[str, Any]) -> algorithm.Given:
    value = math.nan if row["value"] is None else row["value"]
    replicates = np.array(row["replicates"], dtype=float)
    flags = row["headline"], row["compared"]
    said = row["reason"] or "", row["events"]
    ends = None if row["low"] is None or row["high"] is None else Interval(row["low"], row["high"])
    return algorithm.Given(_family(row), row["group"], value, row["n"], replicates, *flags, *said, ends, _inferred(row))


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
    counted = None if row["n_used"] is None else tuple(row[name] for name in COUNTED)
    return Inference(scale=row["scale"], raised=row["raised"], lowered=row["lowered"], counted=counted, **numbers)


def _matched(row: dict[str, Any]) -> tuple[tuple[algorithm.Family, str], algorithm.Drawn]:
    drawn = algorithm.Drawn(np.array(row["values"], dtype=float), row["reason"] or "", row["reference"])
    return (_family(row), row["group"]), drawn


def _limit(t: Threshold) -> thresholds.Threshold:
    low = -math.inf if t.minimum is None else t.minimum
    high = math.inf if t.maximum is None else t.maximum
    return thresholds.Threshold(t.measure, t.method, t.decision_maker, low, high, t.parameters)


def _table(found: list[algorithm.Measure], settings: MeasureSettings) -> pa.Table:
    n = len(found)
    families = {
        name: [getattr(m.family, name) for m in found]
        for name in ("method", "decision_maker", "protected_attribute", "subgroup", "measure", "parameters")
    }
    fields = ("group", "reference_group", "value", "low", "high", "n", "events", "p", "q", "state", "reason", "note")
    own = {name: [getattr(m, name) for m in found] for name in fields}
    return MEASURES.build(dataset=[settings.name] * n, year=[settings.year] * n, **families, **own)
