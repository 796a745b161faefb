"""Tables over years: measures, what they say against limit and change, and what another edition of a year changed.

They hold only what the reports of the years print.
"""

from enum import StrEnum

from schemas.table import Column, Table
from schemas.tables.applications import DECISION_MAKER, GROUP, PROTECTED_ATTRIBUTE
from schemas.tables.findings import MEASURE, METHOD
from schemas.terms import ChangeState, State, Theory


class Told(StrEnum):
    """Status of a measure in a year. Only a value is drawn; all else is a gap with a mark."""

    VALUE = "value"
    TOO_FEW = "too few"
    WITHHELD = "withheld"
    UNDEFINED = "undefined"
    NOT_MADE = "not made"


RULES = ("confidence_sequence", "bonferroni", "none")
"""How years are held against a limit."""
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
MONITORING = Table(
    "monitoring",
    "Every judged group of every theory over the years: the years so far against the limit, and each year against "
    "those before it. Of a ratio all changes are ratios too.",
    (
        *_SERIES[:2],
        Column("theory", "string", "what kind of harm it is about", codes=tuple(Theory)),
        *(DECISION_MAKER, PROTECTED_ATTRIBUTE, GROUP),
        Column("reference_group", "string", "the group that it is held against"),
        MEASURE,
        Column("scale", "string", "on which estimates are pooled; log: of a ratio", codes=("linear", "log")),
        Column("value", "double", "estimate of the year", nullable=True),
        Column("low", "double", "lower end of the year's own verdict interval", nullable=True),
        Column("high", "double", "upper end of it", nullable=True),
        Column("limit", "double", "the largest effect that is tolerated; null where there is none", nullable=True),
        Column("side", "string", "on which side of the limit it must lie", codes=("at_most", "at_least")),
        Column("rule", "string", "how years are held against the limit", codes=RULES),
        Column("pooled", "double", "estimate of the years so far; of one year by the other two rules", nullable=True),
        Column("pooled_low", "double", "lower end of its band", nullable=True),
        Column("pooled_high", "double", "upper end of it", nullable=True),
        Column("state", "string", "the band against the limit", codes=tuple(State)),
        Column("change", "double", "the year less the mean of 4 or more years before it, else the one", nullable=True),
        Column("change_low", "double", "lower end of its 95 % interval", nullable=True),
        Column("change_high", "double", "upper end of it", nullable=True),
        Column("change_state", "string", "how the year stands beside those before it", codes=tuple(ChangeState)),
        Column("tau2", "double", "variance between the years before it, on the scale", True, 0.0),
        Column("years_used", "int64", "comparable years before it that the change rests on", minimum=0),
        Column("predicted_low", "double", "lower end of what the years before let expect of it", nullable=True),
        Column("predicted_high", "double", "upper end of that", nullable=True),
        Column("minimal_change", "double", "smallest change that is seen with 80 % power", True, 0.0),
        Column("slope", "double", "change a year; of a ratio its factor", nullable=True),
        Column("slope_low", "double", "lower end of its 95 % interval", nullable=True),
        Column("slope_high", "double", "upper end of it", nullable=True),
        Column("since_year", "int64", "first year after the change, where slope or year speak", nullable=True),
        Column("since_p", "double", "p of that change point, by permuted years", True, 0.0, 1.0),
        Column("q", "double", "p of the change after Benjamini-Hochberg over the series of the year", True, 0.0, 1.0),
        Column("reason", "string", "both states in words"),
    ),
    key=("audit", "year", "theory", "decision_maker", "protected_attribute", "group", "measure"),
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
