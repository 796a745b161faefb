"""Stage ingest: converts a source to typed applications, group memberships and refused rows.

Nothing is lost: every row of the source is an application or a refusal with its reason, and every row has its groups,
so that the exclusion waterfall can say who was left out.
"""

from typing import TYPE_CHECKING, NamedTuple

from schemas.audit.column import ColumnSpec
from schemas.audit.expectations import Expectations
from schemas.audit.source import KeptRefusals, Source
from schemas.audit.spec import AuditSpec, Decision, Protected, StageSettings
from schemas.errors import InfrastructureError, SpecError
from schemas.table import Column
from schemas.tables.applications import APPLICATIONS, MEMBERSHIPS, SOURCE_READ
from schemas.tables.counterfactuals import COUNTERFACTUALS
from schemas.terms import Kind
from tasks.ingest import applications, registry
from tasks.ingest.applications import database, judge, refused
from tasks.ingest.sources import raw
from tasks.ingest.sources.raw import Laid
from tasks.ingest.statement import Question, statement
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


@stage(writes=(APPLICATIONS, MEMBERSHIPS, SOURCE_READ), streams=True)
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
    year_column = _year_column(settings.source)
    year = year_column
    named = [settings.row_id] if settings.row_id else []
    named += [settings.decision.column, *([settings.outcome.column] if settings.outcome else [])]
    named += [c for p in settings.protected for c in p.columns]
    named += [*settings.source.keep, *columns, *(d.column for d in settings.source.derive.values())]
    named += [year] if year else []
    columns_to_read = list(dict.fromkeys(name for name in named if name not in settings.source.derive))
    with (
        database(drafts.aside("spill")) as connection,
        registry.lay(settings.source, columns_to_read, connection) as source_view,
    ):
        if registry.digest(settings.source) != settings.source_sha256:
            raise InfrastructureError("the source changed while it was read; run the audit again once it is at rest")
        return _judged(settings, columns, year_column, Reading(source_view, connection, drafts))


class Reading(NamedTuple):
    """A source that is open, and where its rows go."""

    laid: Laid
    connection: "duckdb.DuckDBPyConnection"
    drafts: Drafts


def _judged(
    settings: IngestSettings, columns: dict[str, ColumnSpec], year_column: str | None, reading: Reading
) -> Produced:
    """Every row of an open source as an application or a refusal."""
    source_view, connection, drafts = reading
    source, decision, protected = settings.source, settings.decision, settings.protected
    question = Question(source, settings.row_id, decision, settings.outcome, protected, columns)
    rows_statement = statement(question, source_view, connection)
    year = applications.year(year_column, source, settings.year, rows_statement, connection) if year_column else None
    applications.check_decision(decision, rows_statement, connection)
    judged_rows = judge(rows_statement, columns, [p.name for p in protected], connection, drafts)
    usable = applications.check_usable(judged_rows, source, decision, connection)
    applications.check_groups(protected, usable, connection)
    refusals = refused(judged_rows, source_view.unread, settings.refusals.keep, settings.seed, connection, drafts)
    rows = judged_rows.rows + len(source_view.unread)
    source_read = SOURCE_READ.build(source=[source.words], sha256=[settings.source_sha256], rows=[rows], year=[year])
    return Produced(
        {
            APPLICATIONS.name: judged_rows.applications,
            MEMBERSHIPS.name: refusals.memberships,
            SOURCE_READ.name: source_read,
        },
        refusals.refusals,
        rows_in=rows,
        declared={APPLICATIONS.name: APPLICATIONS.extended(_column(n, c) for n, c in columns.items())},
        keeping=refusals.keeping,
        expectations={APPLICATIONS.name: settings.expectations} if settings.expectations else {},
    )


def _year_column(source: Source) -> str | None:
    """The column with the year of each row; for HMDA one that every file has after conversion."""
    if source.kind == "hmda":
        return raw.COLUMNS[0]
    return raw.column_of(source, registry.reader_of(source).header(source))


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
