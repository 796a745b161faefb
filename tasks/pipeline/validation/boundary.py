"""The boundary of a stage: all its tables held against their declarations in one suite.

Great Expectations is imported on first use and sees counts only, so its cost does not grow with the rows.

Scope: results of rules. Quarantine and errors: ``tasks.pipeline.stage``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from schemas.table import Table
from schemas.tables.validations import VALIDATIONS
from tasks.pipeline.validation.counts import Content, broken_rows, count
from tasks.pipeline.validation.rules import Count, balance, order, rules_of, types

MOST_IDS = 10_000
"""Identifiers given for a rule of a table whose rows are not set aside; all are counted."""


@dataclass(frozen=True)
class Outcome:
    """The result of one rule on one table."""

    expectation: str
    column: str | None
    expected: str
    success: bool
    elements: int
    unexpected: int
    row_ids: tuple[str, ...]
    """Identifiers of the rows that broke it, where the table has them."""


def validate(content: Content, declared: Table) -> list[Outcome]:
    """Hold one table against its declaration; see ``validate_all``."""
    (outcomes,) = validate_all([(content, declared)])
    return outcomes


def validate_all(
    tables: Sequence[tuple[Content, Table]], rows: tuple[int, int, int] | None = None
) -> list[list[Outcome]]:
    """Hold tables against their declarations, and the numbers of rows in, out and refused against each other.

    Returns:
        The outcomes of each table, then those of the numbers of rows where they are given.

    Raises:
        InfrastructureError: the engine failed on an expectation.
    """
    from tasks.pipeline.validation.judge import judge

    counts = [_counts(content, declared) for content, declared in tables]
    counts += [[balance(*rows)]] if rows else []
    every = [each for of_table in counts for each in of_table]
    verdicts = iter(judge([each.elements for each in every], [each.unexpected for each in every]))
    judged = [[(each, next(verdicts)) for each in of_table] for of_table in counts]
    sources: list[tuple[Content, Table] | None] = [*tables, *([None] if rows else [])]
    return [
        [_outcome(each, kept, source) for each, kept in of_table]
        for of_table, source in zip(judged, sources, strict=True)
    ]


def as_table(stage: str, results: Sequence[tuple[str, Outcome, bool]]) -> pa.Table:
    """The results of a stage, as (table, outcome, quarantined) triples, in the shape of ``VALIDATIONS``."""
    return VALIDATIONS.build(
        stage=[stage] * len(results),
        table=[name for name, _, _ in results],
        expectation=[o.expectation for _, o, _ in results],
        column=[o.column for _, o, _ in results],
        expected=[o.expected for _, o, _ in results],
        success=[o.success for _, o, _ in results],
        elements=[o.elements for _, o, _ in results],
        unexpected=[o.unexpected for _, o, _ in results],
        quarantined=[q for _, _, q in results],
    )


def prepare_engine() -> None:
    """Load Great Expectations ahead of its first use."""
    from tasks.pipeline.validation.judge import prepare

    prepare()


def _counts(content: Content, declared: Table) -> list[Count]:
    """Columns of other names or types have no rules that could be counted: nothing else is asked of such a table."""
    typed = types(content.schema, declared)
    if typed.unexpected:
        return [typed]
    return [typed, order(content.schema, declared), *count(content, rules_of(declared))]


def _outcome(each: Count, kept: bool, source: tuple[Content, Table] | None) -> Outcome:
    rule = each.rule
    ids: tuple[str, ...] = ()
    if not kept and source and rule.names_rows and "row_id" in source[0].schema.names:
        content, declared = source
        ids = broken_rows(content, rule, None if declared.per_application else MOST_IDS)
    return Outcome(rule.expectation, rule.column, rule.expected, kept, each.elements, each.unexpected, ids)
