"""Stage measure: computes the table of measures, with intervals and states, and withholds small cells.

DuckDB gathers, ``tasks.metrics.algorithm.measures`` computes. The stage knows no method: approvals and denials are
tallies like any other.
"""

import math
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from schemas.audit.spec import Bootstrap, Disclosure, Protected, StageSettings, Threshold
from schemas.tables.applications import APPLICATIONS, DECISIONS, MEMBERSHIPS
from schemas.tables.findings import AGGREGATES, DRAWS, TALLIES
from schemas.tables.measures import MEASURES
from tasks.metrics.algorithm import measures as algorithm
from tasks.metrics.algorithm import publication, verdicts
from tasks.metrics.algorithm.disclosure import POLICIES
from tasks.numerics.statistics.intervals import Interval
from tasks.pipeline.registry import of_other_groups, partitions
from tasks.pipeline.stage import Produced, stage

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


@stage(
    reads=(APPLICATIONS, DECISIONS, MEMBERSHIPS, TALLIES, AGGREGATES, DRAWS),
    writes=(MEASURES,),
    resources=("sql/*.sql",),
    balanced=False,
)
def measure(
    applications: pa.Table,
    decisions: pa.Table,
    memberships: pa.Table,
    tallies: pa.Table,
    aggregates: pa.Table,
    draws: pa.Table,
    *,
    settings: MeasureSettings,
) -> Produced:
    """Every measure of the run; ``limits`` has held the thresholds against the plan before it."""
    limits = [_limit(t) for t in settings.thresholds]
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
    shown = [publication.coarsened_given(g, policy) for g in given]
    found = algorithm.summarise([publication.coarsened(s, policy) for s in statistics], matched, plan, shown)
    judged = verdicts.judge(found, limits, settings.bootstrap.minimum_n)
    published = publication.published(judged, hidden, policy)
    everyone = _everyone(decisions, memberships)
    return Produced({MEASURES.name: _table(published + verdicts.unmeasured(found, limits, everyone, plan), settings)})


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
    return algorithm.Given(_family(row), row["group"], value, row["n"], replicates, *flags, *said, ends)


def _matched(row: dict[str, Any]) -> tuple[tuple[algorithm.Family, str], algorithm.Drawn]:
    drawn = algorithm.Drawn(np.array(row["values"], dtype=float), row["reason"] or "", row["reference"])
    return (_family(row), row["group"]), drawn


def _limit(t: Threshold) -> verdicts.Limit:
    low = -math.inf if t.minimum is None else t.minimum
    high = math.inf if t.maximum is None else t.maximum
    return verdicts.Limit(t.measure, t.method, t.decision_maker, low, high, t.parameters)


def _table(found: list[algorithm.Measure], settings: MeasureSettings) -> pa.Table:
    n = len(found)
    families = {
        name: [getattr(m.family, name) for m in found]
        for name in ("method", "decision_maker", "protected_attribute", "subgroup", "measure", "parameters")
    }
    fields = ("group", "reference_group", "value", "low", "high", "n", "events", "p", "q", "state", "reason", "note")
    own = {name: [getattr(m, name) for m in found] for name in fields}
    return MEASURES.build(dataset=[settings.name] * n, year=[settings.year] * n, **families, **own)
