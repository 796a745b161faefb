"""Writes the data dictionary, docs/tables.md, from the declarations of the tables (``make docs``)."""

import sys

from schemas.table import Column, Table
from schemas.tables.applications import REFUSAL_COUNTS, REFUSALS, VALIDATIONS
from schemas.tables.hmda import HMDA_APPLICATIONS, HMDA_LENDERS, HMDA_REFUSALS
from schemas.tables.verdicts import MONITORING, RESTATEMENT, TREND
from tasks.plan import STAGES

_WRITTEN = [table for stage in STAGES.values() for table in stage.writes]
_BY_STAGE = reversed(dict.fromkeys(reversed(_WRITTEN)))
"""By the last stage that writes it."""

_OF_STAGES = (REFUSALS, REFUSAL_COUNTS, VALIDATIONS)
TABLES = (HMDA_APPLICATIONS, HMDA_REFUSALS, HMDA_LENDERS, *_BY_STAGE, *_OF_STAGES, TREND, MONITORING, RESTATEMENT)
"""Every table of the lake in the order of the stages, then those that are no stage's own, and those of trends."""


def dictionary() -> str:
    """The dictionary as Markdown."""
    text = "# The tables of the lake\n\nWritten by `make docs` from the declarations of the tables; do not edit.\n"
    for table in TABLES:
        text += f"\n## {table.name}\n\n{table.description} {' '.join(notes(table))}".rstrip()
        text += "\n\n| column | type | meaning | holds |\n| --- | --- | --- | --- |\n"
        for column in table.columns:
            text += f"| {column.name} | {column.type} | {column.description} | {'; '.join(holds(column))} |\n"
    return text


def notes(table: Table) -> list[str]:
    """Notes that a reader of a table needs in addition to its columns, in sentences."""
    sentences = [f"Key: {', '.join(table.key)}."] if table.key else []
    sentences += ["Restricted: holds rows or values of persons."] if table.restricted else []
    return sentences + (["The audit spec appends columns."] if table.open else [])


def holds(column: Column) -> list[str]:
    """What a column may hold."""
    rules = ["may be null"] if column.nullable else []
    rules += [f"at least {column.minimum:g}"] if column.minimum is not None else []
    rules += [f"at most {column.maximum:g}"] if column.maximum is not None else []
    return rules + ([f"one of {', '.join(column.codes)}"] if column.codes else [])


if __name__ == "__main__":
    sys.stdout.write(dictionary())
