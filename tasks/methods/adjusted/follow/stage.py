"""Follow: the rows of the source once more, with the columns that a decision sets and that no method may see.

Applications are followed to their end (flow), denials to their reasons, loans to their prices, and all of them to their
census tracts. Controls of prices are those of the ladder, from the applications that ingest wrote. DuckDB counts; rows
leave it only of loans that were made.
"""

# ruff: noqa: S608 names are ours, values are bound

from collections.abc import Sequence
from typing import Any, Final
from zlib import crc32

import numpy as np
import pyarrow as pa

from schemas.audit.column import ColumnSpec
from schemas.tables.applications import APPLICATIONS, DECISIONS, MEMBERSHIPS
from schemas.tables.readings import COPIED_ROWS
from schemas.terms import Kind, Role
from tasks.ingest import registry
from tasks.ingest.applications import database
from tasks.ingest.intake.recipe import respelled
from tasks.ingest.statement import REASONS_UNDECIDED, Question, statement
from tasks.methods.adjusted.follow.settings import ACTIONS, CODES, NUMBERS, FollowSettings, follow_settings
from tasks.methods.adjusted.tables import FOLLOWED, PRICES
from tasks.pipeline.stage import OwnStage, Produced, stage
from tasks.preprocessing.columns import without_copies

AS_TEXT: Final = ColumnSpec(type=Kind.NOMINAL, role=(Role.EXCLUDED,), block="none")
"""Of a column that is read besides those of the spec."""


@stage(reads=(APPLICATIONS, MEMBERSHIPS, DECISIONS, COPIED_ROWS), writes=FOLLOWED, balanced=False)
def follow(
    applications: pa.Table,
    memberships: pa.Table,
    decisions: pa.Table,
    copied_rows: pa.Table,
    *,
    settings: FollowSettings,
) -> Produced:
    """How applications ended, why they were denied, at which prices loans were made, and where."""
    # these load what fits
    from tasks.methods.adjusted.follow.rows import Followed, disparities, flow, places, pricing, reasons

    applications = without_copies(applications, copied_rows)
    followed = Followed(
        settings, applications, memberships, decisions, *read(settings, copied_rows), rng_of(settings.seed)
    )
    tables = [flow(followed), reasons(followed), pricing(followed), disparities(followed), places(followed)]
    return Produced({table.name: rows for table, rows in zip(FOLLOWED, tables, strict=True)})


def rng_of(seed: int) -> np.random.Generator:
    """Draws tracts: the same whenever the same source is followed."""
    return np.random.default_rng([seed, crc32(b"follow")])


def read(settings: FollowSettings, copied_rows: pa.Table) -> tuple[pa.Table, pa.Table, pa.Table, tuple[int, ...]]:
    """Counts of ends and of reasons by attribute and group, the loans that were made, and the places of copied rows.

    Returns:
        ``attribute``, ``group``, ``outcome``, ``n``; ``attribute``, ``group``, ``reason``, ``first``, ``named``; and a
        row a loan with ``row_id``, the columns of ``NUMBERS`` and ``CODES`` that the source has, and ``unreadable``,
        the prices whose cell is no number.
    """
    source, action = settings.source, settings.decision.column
    header_names = set(registry.header(source))
    names = [name for name in (*NUMBERS, *CODES) if name in header_names]
    kept_columns = {name: column for name, column in settings.columns.items() if column.kept}
    # ingest's own question, and columns as texts, which refuse nothing: what is refused here, ingest refused
    columns = kept_columns | {name: AS_TEXT for name in (*names, action) if name not in kept_columns}
    question = Question(source, settings.row_id, settings.decision, settings.outcome, settings.protected, columns)
    to_read = registry.columns_read(question, None)
    with database(None) as connection, registry.lay(question, to_read, connection) as source_view:
        question = respelled(question, source_view.columns)
        of_rows = statement(question, source_view, connection)
        connection.register("copied_rows", copied_rows)
        v = {name: f"v{place}" for place, name in enumerate(columns)}
        undecided = [number for number, (reason, _) in enumerate(of_rows.lines) if reason in REASONS_UNDECIDED]
        ended = outcome_of(settings, v[action], undecided)
        connection.execute(
            "CREATE TEMP TABLE followed AS SELECT *, CASE WHEN row_id IN (SELECT row_id FROM copied_rows) "
            f"THEN 'copied' ELSE {ended} END AS ended FROM ({of_rows.sql})"
        )
        flows, whys = [], []
        reason_columns = [v[name] for name in names if name.startswith("denial_reason")]
        for place, p in enumerate(settings.protected):
            group_counts = f'g{place} AS "group", ended AS outcome, count(*) AS n'
            flows.append(_of(connection, p.name, f"SELECT {group_counts} FROM followed GROUP BY ALL"))
            if reason_columns:
                whys.append(_of(connection, p.name, reasons_of(f"g{place}", reason_columns)))
        numeric = {name: columns[name].type is Kind.CONTINUOUS for name in names}
        cells = {name: _number(v[name], numeric[name]) for name in names if name in NUMBERS}
        cells |= {name: _code(v[name], numeric[name]) for name in names if name in CODES}
        unread = [
            f"CASE WHEN {v[name]} IS NOT NULL AND {cells[name]} IS NULL THEN '{name}' END"
            for name in names
            if name in PRICES
        ]
        cells["unreadable"] = f"concat_ws(',', {', '.join(unread) or 'NULL'})"
        chosen = ", ".join(f"{sql} AS {name}" for name, sql in cells.items())
        is_loan = "ended IN ('originated', 'approved')"
        loans = connection.sql(f"SELECT row_id, {chosen} FROM followed WHERE {is_loan} ORDER BY place").to_arrow_table()
        copied = connection.sql("SELECT place FROM followed WHERE ended = 'copied' ORDER BY place").fetchall()
    nothing = pa.table({name: pa.array([], pa.string()) for name in ("attribute", "group", "reason")})
    nothing = nothing.append_column("first", pa.array([], pa.int64())).append_column("named", pa.array([], pa.int64()))
    return (
        pa.concat_tables(flows),
        pa.concat_tables(whys) if whys else nothing,
        loans,
        tuple(place for (place,) in copied),
    )


def _number(value: str, numeric: bool) -> str:
    """SQL of a finite number, after which ``%`` may stand; null of any other text."""
    if numeric:
        return value
    number = f"TRY_CAST(rtrim({value}, ' %') AS DOUBLE)"
    return f"CASE WHEN isfinite({number}) THEN {number} END"


def _code(value: str, numeric: bool) -> str:
    """SQL of a code, also where the spec takes its column for a number."""
    return f"regexp_replace(CAST({value} AS VARCHAR), '\\.0$', '')" if numeric else value


def outcome_of(settings: FollowSettings, action: str, undecided: Sequence[int]) -> str:
    """SQL of the end of a row; rows that are not kept, or cannot be read, are left out."""
    is_application = f"refused IS NULL OR refused IN ({', '.join(map(str, undecided)) or '-1'})"
    if settings.codes_decide:
        cases = " ".join(f"WHEN {action} = '{code}' THEN '{outcome}'" for code, outcome in ACTIONS.items())
        end = f"CASE {cases} ELSE 'undecided' END"
    else:
        end = "CASE WHEN favourable THEN 'approved' WHEN favourable = false THEN 'denied' ELSE 'undecided' END"
    return f"CASE WHEN {is_application} THEN {end} ELSE 'left_out' END"


def _of(connection: Any, attribute: str, query: str) -> pa.Table:
    rows = connection.sql(query).to_arrow_table()
    return rows.add_column(0, "attribute", pa.array([attribute] * rows.num_rows, pa.string()))


def reasons_of(group: str, reason_columns: Sequence[str]) -> str:
    """SQL of denied applications by group and code: those that name it first, and those that name it at all."""
    first = f"coalesce({reason_columns[0]}, 'none')"
    every = f"list_distinct(list_value({', '.join((first, *reason_columns[1:]))}))"
    return (
        f'SELECT {group} AS "group", code AS reason, count_if(code = {first})::BIGINT AS first, count(*) AS named '
        f"FROM (SELECT *, unnest({every}) AS code FROM followed WHERE ended = 'denied') WHERE code IS NOT NULL "
        "GROUP BY ALL"
    )


OWN_STAGE = OwnStage(stage=follow, settings=follow_settings)
