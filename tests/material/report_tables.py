"""What the report stage is given, without a lake: the tables of a run of ``decide_runs``, and its settings.

Verdicts and approvals are those of the run; every other table is empty unless a test fills it.
"""

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa
from decide_runs import boston

from schemas.audit.spec import AuditSpec
from schemas.tables.verdicts import PREFIX, PUBLISHED_MEASURES, PUBLISHED_VERDICTS
from tasks.pipeline.registry import validated
from tasks.reporting import stage
from tasks.reporting.first_page.facts import Run
from tasks.reporting.material import Material, ReportSettings

HOSTILE = {
    "white": "A & B <b>reference</b>",
    "Black": "<script>alert(1)</script>",
    "Hispanic": "קבוצת המבקשים מן העיר העתיקה",
}
"""Names of groups that break pages which do not escape or isolate them."""
UNBROKEN = {"Black": "X" * 80}
RUN = "example-1990-0a1b2c3d"
_METHODS = {"approval_rate_ratio": "outcomes", "adjusted_effect": "adjusted", "cec_above_own_group": "cec"}
_METHODS |= {"st_effect": "cst", "cst_effect": "cst", "recourse_cost_reference_over_group": "raguel"}
_COLUMNS = {
    "income": {"type": "continuous", "constraint": "up", "label": "income (thousands of dollars)"},
    "public_record": {"type": "binary", "order": ["no", "yes"], "label": "public record"},
}


def spec(**changes: Any) -> AuditSpec:
    """An audit of race; ``changes`` replace whole parts of it."""
    raw = {
        "name": "example",
        "title": "Mortgage applications, an example",
        "year": 1990,
        "source": {"kind": "csv", "path": "/srv/secret place/applications.csv"},
        "decision": {"column": "action_taken", "favourable": [1, 2], "unfavourable": [3]},
        "protected": [{"name": "race", "columns": ["race"], "reference": "white"}],
        "columns": _COLUMNS,
        "methods": {"adjusted": {}, "cst": {"ks": [15, 30], "k": 15}},
    }
    return validated(AuditSpec, raw | changes)


def settings(audit: AuditSpec | None = None) -> ReportSettings:
    """The report's settings of a run."""
    return ReportSettings.of(
        audit or spec(),
        run=RUN,
        source_sha256="ab" * 32,
        code="cd" * 16,
        run_day="2026-11-27",
        effective_spec="name: example\nyear: 1990\n",
        version="0.1.0",
    )


def renamed(run: Run, names: dict[str, str]) -> Run:
    """A run with other names of groups."""
    rows = tuple(
        replace(
            row,
            group=names.get(row.group, row.group),
            reference_group=row.reference_group and names.get(row.reference_group, row.reference_group),
        )
        for row in run.rows
    )
    return replace(run, rows=rows, groups=tuple(replace(g, name=names.get(g.name, g.name)) for g in run.groups))


def built(table: Any, rows: list[dict[str, Any]]) -> pa.Table:
    """A table by its declaration; what a row does not say is null."""
    return table.build(**{column.name: [row.get(column.name) for row in rows] for column in table.columns})


def verdicts(run: Run) -> pa.Table:
    """The verdicts of a run."""
    own = [{"method": _METHODS.get(row.measure, ""), "assumption": "none"} | asdict(row) for row in run.rows]
    return built(PUBLISHED_VERDICTS, own)


def measures(run: Run) -> pa.Table:
    """Approvals of the lender by group, and nothing else."""
    return built(PUBLISHED_MEASURES, list(_approvals(run)))


def _approvals(run: Run) -> Iterator[dict[str, Any]]:
    whose = {"dataset": "example", "year": 1990, "method": "outcomes", "decision_maker": "lender", "subgroup": 0}
    for group in run.groups:
        row = {**whose, "protected_attribute": group.attribute, "group": group.name, "n": group.n}
        row |= {"measure": "approval_rate", "parameters": "{}", "state": "no_limit", "reason": "", "note": ""}
        value = group.approval
        ends = (None, None) if value is None else (max(value - 0.05, 0.0), min(value + 0.05, 1.0))
        yield {**row, "value": value, "low": ends[0], "high": ends[1]}


def tables(run: Run, **own: pa.Table) -> dict[str, pa.Table]:
    """Every table that the stage reads, by name; ``own`` are in place of empty ones, without their prefix."""
    known = {table.name: table.empty() for table in stage.READ}
    more = {f"{PREFIX}{name.removeprefix(PREFIX)}": table for name, table in own.items()}
    missing = set(more) - set(known)
    assert not missing, f"the stage reads no {missing}"
    return {**known, PUBLISHED_MEASURES.name: measures(run), PUBLISHED_VERDICTS.name: verdicts(run), **more}


def material(run: Run | None = None, audit: AuditSpec | None = None, **own: pa.Table) -> Material:
    """What files are made of; of Boston if no run is given."""
    run = run or boston()
    reference = next((group.name for group in run.groups if group.reference), "white")
    audit = audit or spec(protected=[{"name": "race", "columns": ["race"], "reference": reference}])
    return Material.of(settings(audit), tables(run, **own))
