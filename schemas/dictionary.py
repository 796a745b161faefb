"""The data dictionary, written from the declarations of the tables: ``make docs`` puts it into docs/tables.md."""

import sys

from schemas.table import Column, Table
from schemas.tables.applications import (
    APPLICANTS,
    APPLICATIONS,
    DECISIONS,
    ENCODINGS,
    FEATURES,
    MEMBERSHIPS,
    MODEL_METRICS,
    MODELS,
    REFUSALS,
    TRAINED_NETS,
)
from schemas.tables.counterfactuals import (
    CAUSAL_CHECKS,
    CAUSAL_EFFECTS,
    COUNTERFACTUAL_DECISIONS,
    COUNTERFACTUALS,
    GENERATOR_CHECKS,
    GENERATOR_HISTORY,
    GENERATORS,
    MEDIATED,
    MEDIATED_DECISIONS,
    MEDIATOR_EFFECTS,
)
from schemas.tables.feasibility import FEASIBILITY_EDGES, FEASIBILITY_FACTS, FEASIBILITY_NODES
from schemas.tables.findings import AGGREGATES, DRAWS, EVIDENCE, FINDINGS, TALLIES
from schemas.tables.hmda import HMDA_APPLICATIONS, HMDA_REFUSALS
from schemas.tables.measures import MEASURES
from schemas.tables.missingness import MISSINGNESS
from schemas.tables.report import REPORT_INDEX
from schemas.tables.reranking import OFFERS, RERANKED
from schemas.tables.source import DECISION_DIRECTION, SOURCE_READ
from schemas.tables.trends import RESTATEMENT, TREND
from schemas.tables.validations import VALIDATIONS

TABLES = (
    HMDA_APPLICATIONS,
    HMDA_REFUSALS,
    APPLICATIONS,
    MEMBERSHIPS,
    SOURCE_READ,
    REFUSALS,
    VALIDATIONS,
    FEATURES,
    APPLICANTS,
    ENCODINGS,
    MISSINGNESS,
    DECISION_DIRECTION,
    DECISIONS,
    MODEL_METRICS,
    MODELS,
    FEASIBILITY_NODES,
    FEASIBILITY_EDGES,
    FEASIBILITY_FACTS,
    COUNTERFACTUALS,
    COUNTERFACTUAL_DECISIONS,
    CAUSAL_CHECKS,
    CAUSAL_EFFECTS,
    MEDIATED,
    MEDIATED_DECISIONS,
    MEDIATOR_EFFECTS,
    GENERATOR_CHECKS,
    GENERATOR_HISTORY,
    GENERATORS,
    TRAINED_NETS,
    RERANKED,
    OFFERS,
    FINDINGS,
    EVIDENCE,
    TALLIES,
    AGGREGATES,
    DRAWS,
    MEASURES,
    REPORT_INDEX,
    TREND,
    RESTATEMENT,
)
"""Every table that a stage writes for its readers, in the order of the stages."""


def dictionary() -> str:
    """The dictionary as Markdown."""
    head = "# The tables of the lake\n\nWritten by `make docs` from the declarations in `schemas/`; do not edit.\n"
    return head + "".join(_section(table) for table in TABLES)


def _section(table: Table) -> str:
    notes = [f"Key: {', '.join(table.key)}."] if table.key else []
    notes += ["Restricted: holds rows or values of persons."] if table.restricted else []
    notes += ["The audit spec appends columns."] if table.open else []
    rows = "".join(_row(column) for column in table.columns)
    lines = f"\n## {table.name}\n\n{table.description} {' '.join(notes)}".rstrip()
    return f"{lines}\n\n| column | type | meaning | holds |\n| --- | --- | --- | --- |\n{rows}"


def _row(column: Column) -> str:
    rules = ["may be null"] if column.nullable else []
    rules += [f"at least {column.minimum:g}"] if column.minimum is not None else []
    rules += [f"at most {column.maximum:g}"] if column.maximum is not None else []
    rules += [f"one of {', '.join(column.codes)}"] if column.codes else []
    return f"| {column.name} | {column.type} | {column.description} | {'; '.join(rules)} |\n"


if __name__ == "__main__":
    sys.stdout.write(dictionary())
