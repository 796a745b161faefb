"""Stage ingest: converts a source to typed applications, group memberships and refused rows.

Nothing is lost: every row of the source is an application or a refusal with its reason, and every row has its groups,
so that the exclusion waterfall can say who was left out.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from schemas.audit.column import ColumnSpec
from schemas.audit.expectations import Expectations, OwnExpectation
from schemas.audit.source import KeptRefusals, Source
from schemas.audit.spec import AuditSpec, Decision, Protected, StageSettings
from schemas.errors import InfrastructureError, SpecError
from schemas.table import Column, Table
from schemas.tables.applications import APPLICATIONS, INTAKE_CELLS, INTAKE_RULES, MEMBERSHIPS, SOURCE_READ
from schemas.tables.counterfactuals import COUNTERFACTUALS
from schemas.tables.readings import UNDECIDED
from schemas.terms import Kind
from tasks.ingest import applications, registry
from tasks.ingest.applications import database, judge, refused
from tasks.ingest.intake.recipe import respelled
from tasks.ingest.intake.step import check_unread
from tasks.ingest.sources.raw import CellCount, Laid, RuleCount
from tasks.ingest.statement import REASONS_UNDECIDED, Question, statement
from tasks.lake.store import IN_MEMORY, Drafts
from tasks.pipeline.stage import Produced, stage

if TYPE_CHECKING:
    import duckdb


class IngestSettings(StageSettings):
    """What decides the applications: the source by its digest, and how its columns are read."""

    year: int
    source: Source
    source_sha256: str
    row_id: str | None
    decision: Decision
    outcome: Decision | None
    protected: tuple[Protected, ...]
    columns: dict[str, ColumnSpec]
    refusals: KeptRefusals
    expectations: Expectations | None = None
    seed: int


@stage(writes=(APPLICATIONS, MEMBERSHIPS, SOURCE_READ, UNDECIDED, INTAKE_RULES, INTAKE_CELLS), streams=True)
def ingest(*, settings: IngestSettings, drafts: Drafts = IN_MEMORY) -> Produced:
    """Applications as the audit spec types them.

    Raises:
        DataQualityError: no row is left, or rows that are kept are of another year than the spec says.
        TooFewError: every decision is the same, or a protected attribute has one group only.
        SpecError: a group that no row has, or a reserved column name.
    """
    columns = {n: c for n, c in settings.columns.items() if c.kept}
    reserved = [c.name for table in (APPLICATIONS, COUNTERFACTUALS) for c in table.columns]
    for name in columns:
        if name in reserved:
            raise SpecError(
                f"{name!r} is a name of our own; rename the column in the source, or exclude it (role: excluded)",
                ("columns", name),
            )
    source = settings.source
    question = Question(source, settings.row_id, settings.decision, settings.outcome, settings.protected, columns)
    year_column = registry.year_column_of(source)
    with (
        database(drafts.aside("spill")) as connection,
        registry.lay(question, registry.columns_read(question, year_column), connection) as source_view,
    ):
        if registry.digest(source) != settings.source_sha256:
            raise InfrastructureError("the source changed while it was read; run the audit again once it is at rest")
        check_unread(source_view)
        question = respelled(question, source_view.columns)
        return _judged(settings, question, year_column, Reading(source_view, connection, drafts))


class Reading(NamedTuple):
    """A source that is open, and where its rows go."""

    laid: Laid
    connection: "duckdb.DuckDBPyConnection"
    drafts: Drafts


def _judged(settings: IngestSettings, question: Question, year_column: str | None, reading: Reading) -> Produced:
    """Every row of an open source as an application or a refusal."""
    source_view, connection, drafts = reading
    source, decision, protected, columns = question.source, question.decision, question.protected, question.columns
    rows_statement = statement(question, source_view, connection)
    year = applications.year(year_column, source, settings.year, rows_statement, source_view, connection)
    applications.check_decision(decision, rows_statement, connection)
    if source.intake is not None:
        applications.check_listed(decision, rows_statement, connection)
    judged_rows = judge(rows_statement, columns, [p.name for p in protected], connection, drafts)
    usable = applications.check_usable(judged_rows, source, decision, connection)
    applications.check_groups(judged_rows, protected, usable, connection)
    refusals = refused(judged_rows, source_view.unread, settings.refusals.keep, settings.seed, connection, drafts)
    rows = judged_rows.rows + len(source_view.unread)
    lender = applications.only_lender(registry.LENDER_ID, rows_statement, connection) if source.kind == "hmda" else None
    source_read = SOURCE_READ.build(
        source=[settings.source.words], sha256=[settings.source_sha256], rows=[rows], year=[year], lender=[lender]
    )
    return Produced(
        {
            APPLICATIONS.name: judged_rows.applications,
            MEMBERSHIPS.name: refusals.memberships,
            SOURCE_READ.name: source_read,
            UNDECIDED.name: UNDECIDED.build(rows=[judged_rows.refused_for(REASONS_UNDECIDED, connection)]),
            INTAKE_RULES.name: table_of(INTAKE_RULES, source_view.rules),
            INTAKE_CELLS.name: table_of(INTAKE_CELLS, source_view.cells),
        },
        refusals.refusals,
        rows_in=rows,
        declared={APPLICATIONS.name: APPLICATIONS.extended(_column(n, c) for n, c in columns.items())},
        keeping=refusals.keeping,
        expectations={APPLICATIONS.name: settings.expectations} if settings.expectations else {},
        laws=_laws(source_view, judged_rows.rows),
    )


def table_of(declared: Table, counts: Sequence[CellCount] | Sequence[RuleCount]) -> pa.Table:
    """Counts of intake in the shape of their table."""
    return declared.build(**{c.name: [getattr(count, c.name) for count in counts] for c in declared.columns})


def _laws(source_view: Laid, rows: int) -> dict[str, Sequence[OwnExpectation]]:
    """Of each column that a recipe read: values, missing and unread cells are as many as the rows."""
    if not source_view.cells:
        return {}
    arguments = {"column_list": ["values", "missing", "unread"], "sum_total": rows}
    return {INTAKE_CELLS.name: [OwnExpectation(type="expect_multicolumn_sum_to_equal", kwargs=arguments)]}


def _column(name: str, column: ColumnSpec) -> Column:
    kind = "double" if column.type is Kind.CONTINUOUS else "string"
    low, high = column.bounds
    return Column(name, kind, column.label, nullable=True, minimum=low, maximum=high, codes=column.order)  # type: ignore[arg-type]


def ingest_settings(spec: AuditSpec) -> IngestSettings:
    """The stage's settings, with the digest of the source as it is now.

    Raises:
        SpecError: expectations that are not usable, or the path of a suite's file that nobody read.
    """
    source = spec.source
    if source.kind == "hmda" and source.year is None:
        source = source.model_copy(update={"year": spec.year})  # another year's file would be audited as this year's
    if isinstance(spec.expectations, str):
        raise SpecError(
            f"the suite {spec.expectations} was not read; write its expectations into the spec as a list",
            ("expectations",),
        )
    if spec.expectations is not None:
        from tasks.pipeline.validation import own  # loads Great Expectations

        own.check(spec.expectations, [column.name for column in APPLICATIONS.columns] + list(spec.kept()))
    return IngestSettings.of(spec, source=source, source_sha256=registry.digest(source))
