"""Abandoned: the applications that the source holds without a decision, typed as the decided ones are.

A denial that is filed as withdrawn is in no rate of approval. Ingest refuses such rows with their reason and counts
them; here they are read once more with their columns, as the estimate of what they hide needs these. Nothing is read
where ingest refused no such row.
"""

# ruff: noqa: S608 names are ours, values are bound

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.spec import AuditSpec
from schemas.table import Column
from schemas.tables.readings import ABANDONED, ABANDONED_MEMBERSHIPS, UNDECIDED
from schemas.terms import Kind
from tasks.ingest import registry
from tasks.ingest.applications import database
from tasks.ingest.intake.recipe import respelled
from tasks.ingest.stage import IngestSettings, ingest_settings
from tasks.ingest.statement import REASONS_UNDECIDED, Question, statement
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.pipeline.stage import OwnStage, Produced, stage

PURCHASED: Final = "6"
"""HMDA's action of loans that were bought: nobody applied to this lender."""


class AbandonedSettings(IngestSettings):
    """What decides which rows they are: that of ingest."""

    codes_decide: bool


def abandoned_settings(spec: AuditSpec) -> AbandonedSettings | None:
    """The stage's settings; None where nothing is estimated, or the spec ignores such applications."""
    if spec.methods.of(AdjustedSettings) is None or spec.verdicts.undecided == "ignore":
        return None
    return AbandonedSettings(**vars(ingest_settings(spec)), codes_decide=spec.codes_decide)


@stage(reads=(UNDECIDED,), writes=(ABANDONED, ABANDONED_MEMBERSHIPS), balanced=False)
def abandoned(undecided: pa.Table, *, settings: AbandonedSettings) -> Produced:
    """Applications without a decision and their groups, as ingest would type them."""
    columns = {name: column for name, column in settings.columns.items() if column.kept}
    kinds = [
        (name, pa.float64() if column.type is Kind.CONTINUOUS else pa.string()) for name, column in columns.items()
    ]
    schema = pa.schema([*ABANDONED.schema(), *(pa.field(name, kind) for name, kind in kinds)])
    declared = {
        ABANDONED.name: ABANDONED.extended(
            Column(name, "double" if column.type is Kind.CONTINUOUS else "string", column.label, nullable=True)
            for name, column in columns.items()
        )
    }
    if not pc.sum(undecided["rows"]).as_py():
        empty = {ABANDONED.name: schema.empty_table(), ABANDONED_MEMBERSHIPS.name: ABANDONED_MEMBERSHIPS.empty()}
        return Produced(empty, rows_in=0, declared=declared)
    rows = _read(settings, list(columns))
    n = rows.num_rows
    fixed = {
        "row_id": rows["row_id"],
        "source_row": rows["place"],
        "favourable": pa.array([False] * n, pa.bool_()),
        "outcome": pa.array([False] * n, pa.bool_()),
        "exempt": rows["exempt"],
    }
    values = {name: rows[f"v{place}"] for place, name in enumerate(columns)}
    applications = pa.table({**fixed, **values}).cast(schema)
    groups = [
        ABANDONED_MEMBERSHIPS.build(row_id=rows["row_id"], protected_attribute=[p.name] * n, group=rows[f"g{place}"])
        for place, p in enumerate(settings.protected)
    ]
    tables = {ABANDONED.name: applications, ABANDONED_MEMBERSHIPS.name: pa.concat_tables(groups)}
    return Produced(tables, rows_in=n, declared=declared)


def _read(settings: AbandonedSettings, names: list[str]) -> pa.Table:
    """The rows of the source that ingest refuses for want of a decision, in the order of the source."""
    columns = {name: settings.columns[name] for name in names}
    source = settings.source
    question = Question(source, settings.row_id, settings.decision, settings.outcome, settings.protected, columns)
    to_read = registry.columns_read(question, None)
    with database(None) as connection, registry.lay(question, to_read, connection) as source_view:
        question = respelled(question, source_view.columns)
        ingested = statement(question, source_view, connection)
        lines = [number for number, (reason, _) in enumerate(ingested.lines) if reason in REASONS_UNDECIDED]
        bought = f"{ingested.cells.text(question.decision.column)} = '{PURCHASED}'"
        applied = f"AND place NOT IN (SELECT place FROM cells WHERE {bought})" if settings.codes_decide else ""
        listed = ", ".join(map(str, lines)) or "-1"
        return connection.sql(
            f"SELECT * FROM ({ingested.sql}) WHERE refused IN ({listed}) {applied} ORDER BY place"
        ).to_arrow_table()


OWN_STAGE = OwnStage(stage=abandoned, settings=abandoned_settings)
