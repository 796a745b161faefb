"""The table of measures, in long form: what is printed, exported and compared with thresholds."""

from schemas.table import Column, Table
from schemas.tables.applications import DECISION_MAKER, GROUP, PROTECTED_ATTRIBUTE
from schemas.tables.findings import MEASURE, METHOD, PARAMETERS, SUBGROUP
from schemas.terms import State

MEASURES = Table(
    "measures",
    "Every measure with its exact n, interval and state. The run is prepended where the table is read or exported.",
    (
        Column("dataset", "string", "name of the audit"),
        Column("year", "int64", "year of the decisions"),
        *(METHOD, DECISION_MAKER, PROTECTED_ATTRIBUTE, GROUP),
        Column("reference_group", "string", "the group it is compared with", nullable=True),
        *(SUBGROUP, MEASURE, PARAMETERS),
        Column("value", "double", "the measure; null where undefined or suppressed", nullable=True),
        Column(
            "low",
            "double",
            "lower end of its interval, or of the range of what was drawn; null where there is none",
            nullable=True,
        ),
        Column("high", "double", "upper end of it; null also where a ratio to a share of 0 has none", nullable=True),
        Column("n", "int64", "units behind it; null where suppressed", nullable=True, minimum=0),
        Column("events", "int64", "units with the event, for a share", nullable=True, minimum=0),
        Column("p", "double", "p-value of a comparison", True, 0.0, 1.0),
        Column("q", "double", "p after Benjamini-Hochberg over the run", True, 0.0, 1.0),
        Column("state", "string", "how its check against a threshold ended", codes=tuple(State)),
        Column("reason", "string", "why it has that state"),
        Column(
            "note",
            "string",
            "what qualifies the value or its two ends, set apart by semicolons: a bound and not the optimum, why there "
            "is none, range, no spread, no upper end, or why an adjusted one is not judged: poor support, few "
            "clusters, rows taken as independent, a control tells the decision",
        ),
    ),
    key=("method", "decision_maker", "protected_attribute", "group", "subgroup", "measure", "parameters"),
    restricted=True,
)
