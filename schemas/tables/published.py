"""Tables of a run as they are published: declarations of what every output may read, each made of a raw one.

``published_waterfall`` and ``published_missingness`` have shapes of their own: ``schemas.tables.publication``. Tables
of single methods are made of theirs by the same function.
"""

from schemas.table import Column, Table
from schemas.tables.applications import ENCODINGS, MODEL_METRICS
from schemas.tables.counterfactuals import (
    CAUSAL_CHECKS,
    CAUSAL_EFFECTS,
    GENERATOR_CHECKS,
    GENERATOR_HISTORY,
    MEDIATOR_EFFECTS,
)
from schemas.tables.feasibility import FEASIBILITY_FACTS
from schemas.tables.findings import COMPARED_MITIGATIONS
from schemas.tables.measures import MEASURES
from schemas.tables.publication import published
from schemas.tables.source import DECISION_DIRECTION, LEAKAGE, SOURCE_READ
from schemas.tables.validations import VALIDATIONS
from schemas.tables.verdicts import AGREEMENT, VERDICTS

PUBLISHED_MEASURES = published(MEASURES)
PUBLISHED_VERDICTS = published(VERDICTS)
PUBLISHED_AGREEMENT = published(AGREEMENT)
PUBLISHED_DECISION_DIRECTION = published(DECISION_DIRECTION)
PUBLISHED_COMPARED_MITIGATIONS = published(COMPARED_MITIGATIONS)
PUBLISHED_SOURCE_READ = published(SOURCE_READ)

FACTS = (
    *(ENCODINGS, MODEL_METRICS, FEASIBILITY_FACTS, CAUSAL_CHECKS, CAUSAL_EFFECTS, MEDIATOR_EFFECTS),
    *(GENERATOR_CHECKS, GENERATOR_HISTORY, DECISION_DIRECTION, LEAKAGE, COMPARED_MITIGATIONS),
    *(SOURCE_READ, VALIDATIONS),
)
"""Raw tables that are published column by column."""
PUBLISHED_FACTS = tuple(published(each) for each in FACTS)

REPORT_INDEX = Table(
    "report_index",
    "The files of one report.",
    (Column("file", "string", "name of the file"), Column("bytes", "int64", "its size", minimum=1)),
    key=("file",),
)
