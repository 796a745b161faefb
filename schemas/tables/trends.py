"""Tables over years: changes of measures, and changes by another edition of a year's data.

They hold only what the reports of the years print.
"""

from enum import StrEnum

from schemas.table import Column, Table
from schemas.tables.applications import DECISION_MAKER, GROUP, PROTECTED_ATTRIBUTE
from schemas.tables.findings import MEASURE, METHOD
from schemas.terms import State


class Told(StrEnum):
    """Status of a measure in a year. Only a value is drawn; all else is a gap with a mark."""

    VALUE = "value"
    TOO_FEW = "too few"
    WITHHELD = "withheld"
    UNDEFINED = "undefined"
    NOT_MADE = "not made"


_SERIES = (
    Column("audit", "string", "name of the audit"),
    Column("year", "int64", "year of the decisions"),
    *(METHOD, DECISION_MAKER, PROTECTED_ATTRIBUTE, GROUP, MEASURE),
)
TREND = Table(
    "trend",
    "Headline and checked measures of every year asked for; a year without a measure has a row that says so.",
    (
        *_SERIES,
        Column("run", "string", "run of the year; empty if it has none"),
        Column("vintage", "string", "edition of the year's data"),
        Column("value", "double", "the measure as its report prints it", nullable=True),
        Column("low", "double", "lower end of its interval, or of a range of draws (see note)", nullable=True),
        Column("high", "double", "upper end of it", nullable=True),
        Column("n", "int64", "units behind it; null where withheld", nullable=True, minimum=0),
        Column(
            "note", "string", "what qualifies the value or its two ends, as in measures; range: they are no interval"
        ),
        Column("state", "string", "how its check against a threshold ended", codes=tuple(State)),
        Column("told", "string", "whether there is a value to be drawn, or why not", codes=tuple(Told)),
        Column("reason", "string", "why it has that state, or is not there"),
    ),
    key=("audit", "year", "method", "decision_maker", "protected_attribute", "group", "measure"),
)
RESTATEMENT = Table(
    "restatement",
    "A headline or checked measure of one year by an earlier and by a later edition of its data.",
    (
        *_SERIES,
        Column("old", "double", "by the earlier edition", nullable=True),
        Column("new", "double", "by the later edition", nullable=True),
        Column("difference", "double", "new less old; null unless both are printed", nullable=True),
        Column("old_note", "string", "what qualifies the earlier value or its two ends, as in measures"),
        Column("new_note", "string", "what qualifies the later one"),
        Column("old_told", "string", "what the earlier one has to say", codes=tuple(Told)),
        Column("new_told", "string", "what the later one has to say", codes=tuple(Told)),
        Column("old_state", "string", "how the earlier check ended", codes=tuple(State)),
        Column("new_state", "string", "how the later check ended", codes=tuple(State)),
    ),
    key=("audit", "year", "method", "decision_maker", "protected_attribute", "group", "measure"),
)
