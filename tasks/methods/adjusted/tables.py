"""Tables of adjusted disparities: the ladder, what it rests on, and what an unseen column could do to it."""

from schemas.table import Column, Table
from schemas.tables.applications import DECISION_MAKER, GROUP, PROTECTED_ATTRIBUTE

RUNG = Column("rung", "int32", "number of the rung; rung 0 adjusts for nothing", minimum=0)
BLOCKS = Column("blocks", "string", "blocks of control columns that the rung adjusts for, joined by +")
ESTIMATOR = Column(
    "estimator", "string", "how the difference is estimated", codes=("logit", "lpm", "overlap", "aipw", "expected")
)
REASON = Column("reason", "string", "why there is no value, or what qualifies it; empty for a plain one")
RUNG_OF_GROUP = (RUNG, BLOCKS, DECISION_MAKER, PROTECTED_ATTRIBUTE, GROUP)
"""Leading columns: a rung, and the group that it is about."""

ADJUSTED = Table(
    "adjusted",
    "The denial ladder: the difference of denial between a group and the reference group among similar applicants.",
    (
        *RUNG_OF_GROUP,
        ESTIMATOR,
        Column(
            "average_over",
            "string",
            "over whose rows it is averaged: the group's own, all, or those where both groups are (overlap)",
            codes=("own", "all", "overlap"),
        ),
        Column("form", "string", "whether numbers enter with their squares", codes=("squared", "linear")),
        Column("primary", "bool", "whether it is judged: the primary rung, over the group's own rows"),
        Column("value", "double", "difference of the probability of denial, group minus reference", nullable=True),
        Column("low", "double", "lower end of its interval", nullable=True),
        Column("high", "double", "upper end of it", nullable=True),
        Column("se", "double", "its standard error", True, 0.0),
        Column("df", "double", "degrees of freedom of the interval, clusters less one; null for the normal", True, 0.0),
        Column(
            "unseen", "double", "of lpm: se sqrt(df), how far an unseen column of unit strength moves it", True, 0.0
        ),
        Column("odds_ratio", "double", "odds of denial, group over reference; of the logit", True, 0.0),
        Column("n", "int64", "rows of the group, the same on every rung", minimum=0),
        Column("events", "int64", "denials among them", minimum=0),
        Column(
            "support",
            "double",
            "share of the group's rows with a propensity from 0.05 to 0.95 at equal sizes of both groups",
            True,
            0.0,
            1.0,
        ),
        Column("rv", "double", "robustness value: what an unseen column has to explain of both", True, 0.0, 1.0),
        Column("rv_alpha", "double", "the same for the end of the interval nearest to zero", True, 0.0, 1.0),
        Column("e_value", "double", "risk ratio that an unseen column needs with group and denial", True, 1.0),
        Column("e_value_near", "double", "the same for the end of the interval nearest to zero", True, 1.0),
        Column("strongest", "string", "the control that explains most of what is left of denial", nullable=True),
        Column("adjusted_by_strongest", "double", "the effect if one as strong were unseen", nullable=True),
        Column(
            "method",
            "string",
            "how the fit was made; limit: columns tell some decisions by themselves; firth: penalised, without a limit",
            nullable=True,
            codes=("newton", "limit", "firth", "cells", "streamed"),
        ),
        REASON,
    ),
    key=("rung", "decision_maker", "protected_attribute", "group", "estimator", "average_over"),
    restricted=True,
)

ADJUSTED_SUPPORT = Table(
    "adjusted_support",
    "How far the reference group has applicants like those of a group, by rung.",
    (
        *RUNG_OF_GROUP,
        Column("n", "int64", "rows of the group", minimum=0),
        Column("inside", "double", "share of them with a propensity from 0.05 to 0.95", True, 0.0, 1.0),
        Column("comparable", "double", "the same at equal sizes of both groups; what is judged", True, 0.0, 1.0),
        Column("difference_raw", "double", "largest standardised difference of a control", True, 0.0),
        Column("column_raw", "string", "the control", nullable=True),
        Column("difference_weighted", "double", "the same after overlap weights", True, 0.0),
        Column("column_weighted", "string", "the control", nullable=True),
        Column("unmatched", "double", "share of rows without a reference applicant of like propensity", True, 0.0, 1.0),
        REASON,
    ),
    key=("rung", "decision_maker", "protected_attribute", "group"),
    restricted=True,
)

ADJUSTED_INTERACTIONS = Table(
    "adjusted_interactions",
    "Whether the adjusted difference of the primary rung depends on a control: a joint test, and the effect at three "
    "percentiles of the control, or at each category where they have no order.",
    (
        DECISION_MAKER,
        PROTECTED_ATTRIBUTE,
        GROUP,
        Column("block", "string", "block of the control"),
        Column("column", "string", "the control"),
        Column("statistic", "double", "Wald statistic of group x control", True, 0.0),
        Column("terms", "int32", "its degrees of freedom", minimum=0),
        Column("p", "double", "p-value", True, 0.0, 1.0),
        Column("p_holm", "double", "p after Holm over the controls of the group", True, 0.0, 1.0),
        Column("percentile", "int32", "percentile of the control; null for a category without order", True, 0, 100),
        Column("at", "string", "value of the control there in its own units, or its category", nullable=True),
        Column("value", "double", "adjusted difference there", nullable=True),
        Column("low", "double", "lower end of its interval", nullable=True),
        Column("high", "double", "upper end of it", nullable=True),
        REASON,
    ),
    key=("decision_maker", "protected_attribute", "group", "column", "percentile", "at"),
    restricted=True,
)

ADJUSTED_BENCHMARKS = Table(
    "adjusted_benchmarks",
    "The linear effect on the primary rung if a column were unseen, one to three times as strong as a control.",
    (
        *RUNG_OF_GROUP,
        Column("column", "string", "the control"),
        Column("times", "int32", "how many times as strong", minimum=1),
        Column("column_of_denial", "double", "share of what is left of denial that it explains", True, 0.0, 1.0),
        Column("column_of_group", "double", "share of what is left of group membership", True, 0.0, 1.0),
        Column("of_denial", "double", "bound on what a column so strong explains of denial", True, 0.0, 1.0),
        Column("of_group", "double", "the same of group membership", True, 0.0, 1.0),
        Column("value", "double", "the effect; null where no column can be so strong", nullable=True),
        Column("low", "double", "lower end of its interval", nullable=True),
        Column("high", "double", "upper end of it", nullable=True),
    ),
    key=("rung", "decision_maker", "protected_attribute", "group", "column", "times"),
    restricted=True,
)

ADJUSTED_ROWS = Table(
    "adjusted_rows",
    "The rows on every rung, the rows left out with the reason, and the columns that the decision sets.",
    (
        DECISION_MAKER,
        PROTECTED_ATTRIBUTE,
        Column("group", "string", "group of the rows; null for a column", nullable=True),
        Column("used", "bool", "whether they are on every rung"),
        Column("reason", "string", "why they, or a column, are left out; empty for rows used"),
        Column("rows", "int64", "rows; 0 for a column", minimum=0),
        Column("denied", "int64", "denials among them", minimum=0),
    ),
    restricted=True,
)

ADJUSTED_EXCHANGED = Table(
    "adjusted_exchanged",
    "What a model from a file, or a rule, does to a group by its own answer: decided as they are, and with the "
    "protected attribute exchanged to the reference group. No row where the model does not take the attribute.",
    (
        DECISION_MAKER,
        PROTECTED_ATTRIBUTE,
        GROUP,
        Column("column", "string", "the input that is exchanged; null where none is", nullable=True),
        Column("value", "string", "its value in the reference group", nullable=True),
        Column("n", "int64", "complete applications of the group", minimum=0),
        Column("events", "int64", "denials among them", minimum=0),
        Column("raised", "int64", "those denied as they are, and approved with the attribute exchanged", True, 0),
        Column("lowered", "int64", "those approved as they are, and denied with it exchanged", True, 0),
        Column("effect", "double", "share of the first less share of the second", True, -1.0, 1.0),
        Column("low", "double", "lower end of its interval", True, -1.0, 1.0),
        Column("high", "double", "upper end of it", True, -1.0, 1.0),
        Column("reason", "string", "why the attribute is not exchanged; empty where it is"),
    ),
    key=("decision_maker", "protected_attribute", "group"),
    restricted=True,
)

TABLES = (ADJUSTED, ADJUSTED_SUPPORT, ADJUSTED_INTERACTIONS, ADJUSTED_BENCHMARKS, ADJUSTED_ROWS, ADJUSTED_EXCHANGED)
"""Of the stage ``adjust``."""
