"""The tables of counterfactuals: who applicants would have been, what would have been decided, what was assumed."""

from schemas.applications import DECISION_MAKER, GROUP, PROTECTED_ATTRIBUTE, ROW_ID
from schemas.table import Column, Table
from schemas.terms import Refusal

GENERATOR = Column("generator", "string", "what made the counterfactual", codes=("scm",))

COUNTERFACTUALS = Table(
    "counterfactuals",
    "Every applicant outside the reference group as a member of it: its features then, and the noise that was kept.",
    (
        ROW_ID,
        GENERATOR,
        PROTECTED_ATTRIBUTE,
        GROUP,
        Column("refusal", "string", "why there is no counterfactual", nullable=True, codes=tuple(Refusal)),
    ),
    key=("row_id", "generator", "protected_attribute"),
    open=True,
    restricted=True,
)

COUNTERFACTUAL_DECISIONS = Table(
    "counterfactual_decisions",
    "What the model would have decided on each counterfactual. The lender cannot be asked.",
    (
        ROW_ID,
        GENERATOR,
        PROTECTED_ATTRIBUTE,
        DECISION_MAKER,
        Column("favourable", "bool", "whether the decision is the favourable one"),
        Column("score", "double", "score of the model, or sum of the rule, that the decision was made from"),
    ),
    key=("row_id", "generator", "protected_attribute", "decision_maker"),
    restricted=True,
)

CAUSAL_CHECKS = Table(
    "causal_checks",
    "How well the causal graph and its mechanisms fit the data. None of it shows that the graph is right.",
    (
        Column(
            "check",
            "string",
            "what was looked at",
            codes=("held_out_fit", "noise_location", "noise_spread", "independence"),
        ),
        Column("node", "string", "the column"),
        Column("other", "string", "the other column", nullable=True),
        Column("given", "string", "JSON list of the columns that are held fixed"),
        Column(
            "statistic",
            "double",
            "R2 or log loss saved; H of Kruskal-Wallis; chi-square of Fligner-Killeen; largest z",
            nullable=True,
        ),
        Column("p", "double", "p-value", True, 0.0, 1.0),
        Column("q", "double", "p after Benjamini-Hochberg over the checks of the same kind", True, 0.0, 1.0),
        Column("n", "int64", "rows behind it", minimum=0),
        Column("words", "string", "the same in words"),
    ),
)

CAUSAL_EFFECTS = Table(
    "causal_effects",
    "Features of a group as they are and as they would have been, as quantiles.",
    (
        PROTECTED_ATTRIBUTE,
        GROUP,
        Column("feature", "string", "name of the feature"),
        Column("category", "string", "the category, of a feature that has categories", nullable=True),
        Column("quantile", "double", "the quantile; null for a category", nullable=True, minimum=0.0, maximum=1.0),
        Column("factual", "double", "its value, or the share of the category", nullable=True),
        Column("imagined", "double", "the same had everyone belonged to the reference group", nullable=True),
        Column("n", "int64", "applicants behind it", minimum=0),
        Column("clipped", "int64", "imagined values cut off at their bounds", minimum=0),
    ),
)
