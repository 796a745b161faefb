"""Tables of applications, of their source, and validation results."""

from collections.abc import Mapping
from typing import Any

from schemas.table import Column, Table
from schemas.terms import Constraint, DecisionMaker, Kind, Refusal

# --------------------------------------------------------------------------------------------------------------------
# Tables about the source of an audit: what was read, and whether the decision is read the right way round.


INTAKE = (
    *("encoding", "skip", "foot", "fold", "number", "currency", "percent", "scale", "sign", "unit"),
    *("missing_word", "code", "date", "age", "band", "repeat", "join"),
    *("unjoined", "unused"),
)
"""Rules of intake."""

SOURCE_READ = Table(
    "source_read",
    "What the audit read, by the source itself: one row.",
    (
        Column("source", "string", "names of the files in order, or the vintage in words"),
        Column("sha256", "string", "of the file; of several files, that of their digests in order"),
        Column("rows", "int64", "rows of the source, those that could not be read among them", minimum=0),
        Column("year", "int64", "year of the rows that are kept; null where no column tells it", nullable=True),
        Column("lender", "string", "of HMDA: the lender of all rows that are kept; null where they are several", True),
    ),
    restricted=True,
)

INTAKE_RULES = Table(
    "intake_rules",
    "What the recipe of intake changed: one row for each column and rule that took effect; none without a recipe.",
    (
        Column("column", "string", "the column; empty where a rule is about whole rows"),
        Column("rule", "string", "the rule", codes=INTAKE),
        Column("cells", "int64", "cells that it read or changed; 0 of a rule about rows", minimum=0),
        Column("rows", "int64", "rows of these cells, or that the rule left out or joined", minimum=0),
    ),
    key=("column", "rule"),
    restricted=True,
)

INTAKE_CELLS = Table(
    "intake_cells",
    "The cells of every column that was read by a recipe of intake: values, missing and unread ones add up.",
    (
        Column("column", "string", "the column"),
        Column("read", "string", "how its cells are read", codes=("number", "date", "age", "bands", "text")),
        Column("cells", "int64", "cells of the column, as many as there are rows", minimum=0),
        Column("values", "int64", "cells with a value", minimum=0),
        Column("missing", "int64", "cells that are empty, or hold a word or code for missing", minimum=0),
        Column("unread", "int64", "cells that are there, and no number, date or age", minimum=0),
    ),
    key=("column",),
    restricted=True,
)

DECISION_DIRECTION = Table(
    "decision_direction",
    "One row: how well the columns with a direction, taken together, rank the favourable decision.",
    (
        Column(
            "decided_by",
            "string",
            "columns with a direction, or the codes of HMDA; none where it is not checked",
            codes=("columns", "codes", "none"),
        ),
        Column("columns", "string", "the columns with a direction, + where more is better and - where less is"),
        Column("n", "int64", "applications with a readable decision", minimum=0),
        Column("auc", "double", "area under the ROC curve; null where columns do not decide", True, 0.0, 1.0),
        Column("high", "double", "its one-sided 95 % upper bound", True, 0.0, 1.0),
        Column("reversed", "bool", "whether that bound lies below 0.5"),
    ),
    key=("decided_by",),
    restricted=True,
)


LEAKAGE = Table(
    "leakage",
    "Columns that may be known only after the decision: being filled in tells it with an AUC of 0.7 or more, or their "
    "values, or being the most common one, with 0.9. No row where none does, or no model is fitted to the decisions.",
    (
        Column("feature", "string", "name of the column"),
        Column("tells", "string", "what of it tells the decision", codes=("filled_in", "value", "most_common")),
        Column("n", "int64", "applications that were looked at", minimum=0),
        Column("auc", "double", "area under the ROC curve, in whichever direction", True, 0.5, 1.0),
        Column("allowed", "bool", "whether the spec says that it may"),
    ),
    key=("feature", "tells"),
    restricted=True,
)


def told(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row for the manifest, with the first 12 digits of the digest, and with the lender where it is one."""
    named = {name: value for name, value in row.items() if name != "lender" or value}
    return {**named, "sha256": row["sha256"][:12]}


def read_words(row: Mapping[str, Any]) -> str:
    """What was read, as a manifest keeps it, in words: source, sha256, rows, year."""
    year = "year not in the rows" if row["year"] is None else f"year by the rows {row['year']}"
    rows = "rows withheld" if row["rows"] is None else f"{row['rows']:,} rows"
    return f"{row['source']}, sha256 {row['sha256']}, {rows}, {year}"


# --------------------------------------------------------------------------------------------------------------------
# Table of validation results: what every other table was checked against.


VALIDATIONS = Table(
    "validations",
    "One row per expectation that a stage's table was held against.",
    (
        Column("stage", "string", "the stage that wrote the table"),
        Column("table", "string", "the table"),
        Column("expectation", "string", "name of the expectation"),
        Column("column", "string", "its column or columns", nullable=True),
        Column("expected", "string", "what was expected, as JSON"),
        Column("success", "bool", "whether it held"),
        Column("elements", "int64", "values held against it; nulls only against the null rule", minimum=0),
        Column("unexpected", "int64", "values that broke it", minimum=0),
        Column("quarantined", "bool", "whether the rows that broke it were set aside and the rest kept"),
        Column("severity", "string", "what follows where it does not hold", codes=("critical", "warning", "info")),
    ),
    restricted=True,
)


# --------------------------------------------------------------------------------------------------------------------
# Tables of applications: as read, group memberships, refusals, encoded features, decisions.


ROW_ID = Column("row_id", "string", "identifier of the application, from the source or its row number")
PROTECTED_ATTRIBUTE = Column("protected_attribute", "string", "name of the protected attribute in the audit spec")
GROUP = Column("group", "string", "group of the protected attribute; a missing value is a group")
DECISION_MAKER = Column("decision_maker", "string", "whose decision it is", codes=tuple(DecisionMaker))

APPLICATIONS = Table(
    "applications",
    "Applications as the source gives them, typed as the audit spec declares; its columns follow the fixed ones.",
    (
        ROW_ID,
        Column("source_row", "int64", "number of the row in the source, from 1", minimum=1),
        Column("favourable", "bool", "whether the lender's decision was the favourable one"),
        Column("outcome", "bool", "the true label; the decision where the spec names no other"),
        Column("exempt", "string", "first column that is exempt from reporting", nullable=True),
    ),
    key=("row_id",),
    per_application=True,
    open=True,
    restricted=True,
)

MEMBERSHIPS = Table(
    "memberships",
    "The group of every application, and of every row that `refusals` has, for every protected attribute.",
    (ROW_ID, PROTECTED_ATTRIBUTE, GROUP),
    key=("row_id", "protected_attribute"),
    restricted=True,
)

REFUSALS = Table(
    "refusals",
    "Rows that a stage could not use, each with its reason: all of them, or a sample where they are many.",
    (
        ROW_ID,
        Column("source_row", "int64", "number of the row in the source, from 1", nullable=True, minimum=1),
        Column("stage", "string", "the stage that refused it"),
        Column("reason", "string", "why", codes=tuple(Refusal)),
        Column("column", "string", "the column to blame", nullable=True),
        Column("detail", "string", "the expectation that was not met", nullable=True),
        Column("favourable", "bool", "the lender's decision, where it could be read", nullable=True),
        Column("weight", "double", "refused rows of this reason and column that it stands for", minimum=1.0),
    ),
    key=("row_id", "stage"),
    restricted=True,
)

REFUSAL_COUNTS = Table(
    "refusal_counts",
    "Rows that a stage could not use, counted exactly. Rows of one kind are alike in reason, column, decision and the "
    "groups of all protected attributes; a kind has a row for each attribute, so sum n over one attribute.",
    (
        Column("stage", "string", "the stage that refused them"),
        Column("kind", "int32", "number of the kind of row, from 0", minimum=0),
        Column("reason", "string", "why", codes=tuple(Refusal)),
        Column("column", "string", "the column to blame", nullable=True),
        PROTECTED_ATTRIBUTE,
        Column("group", "string", "their group; null where it could not be read", nullable=True),
        Column("favourable", "bool", "the lender's decision, where it could be read", nullable=True),
        Column("n", "int64", "number of rows", minimum=1),
    ),
    key=("stage", "kind", "protected_attribute"),
    restricted=True,
)

FEATURES = Table(
    "features",
    "Encoded features, one column each in [0, 1]; a one-hot set is several columns.",
    (ROW_ID,),
    key=("row_id",),
    per_application=True,
    open=True,
    restricted=True,
)

APPLICANTS = Table(
    "applicants",
    "The features of complete applications as handed in, imputed where the audit spec asks for that.",
    (ROW_ID,),
    key=("row_id",),
    open=True,
    restricted=True,
)

ENCODINGS = Table(
    "encodings",
    "How each encoded column was made from its source column, and so how to read it back.",
    (
        Column("encoded", "string", "name of the encoded column"),
        Column("feature", "string", "name of the source column"),
        Column("feature_index", "int32", "its position among the features, from 0", minimum=0),
        Column("kind", "string", "how the source column is typed", codes=tuple(Kind)),
        Column("category", "string", "the category that a one-hot column stands for", nullable=True),
        Column("categories", "string", "JSON list of the categories in order", nullable=True),
        Column("low", "double", "source value encoded as 0", nullable=True),
        Column("high", "double", "source value encoded as 1", nullable=True),
        Column("bins", "int64", "number of equal-width bins between low and high", nullable=True, minimum=1),
        Column("clipped", "int64", "rows whose value was outside low and high", minimum=0),
        Column("implausible", "int64", "rows kept whose value is outside the spec's plausible range", minimum=0),
        Column("roles", "string", "what the source column is for, separated by commas"),
        Column("constraint", "string", "how an applicant may change it", codes=tuple(Constraint)),
        Column("transitions", "string", "JSON object: category -> categories it may change to", nullable=True),
    ),
    key=("encoded",),
)

DECISIONS = Table(
    "decisions",
    "One decision per application and decision maker: the lender's own, and the model's where one is asked for.",
    (
        *(ROW_ID, DECISION_MAKER),
        Column("favourable", "bool", "whether the decision is the favourable one"),
        Column("outcome", "bool", "the true label that the decision is held against"),
        Column("score", "double", "predicted probability of the favourable decision", True, 0.0, 1.0),
        Column("threshold", "double", "score from which the decision is favourable", True, 0.0, 1.0),
        Column("explained", "bool", "whether the row may be explained (held out from the fit of its score)"),
        Column("fold", "int32", "the model that decided, by its number; null where no fitted model did", True, 0),
    ),
    key=("row_id", "decision_maker"),
    restricted=True,
)

MODELS = Table(
    "models",
    "The models that were fitted, so that they can decide again on applications that nobody handed in.",
    (
        Column(
            "fold",
            "int32",
            "number of the model, from 0: each was fitted without the rows that it decides on",
            minimum=0,
        ),
        Column(
            "content", "binary", "numbers as safetensors, trees in the format of skops, a given model as it was given"
        ),
    ),
    key=("fold",),
    restricted=True,
)

TRAINED_NETS = Table(
    "trained_nets",
    "Nets trained for consistent reasons and those beside them, so that they can be looked into. Restricted.",
    (
        PROTECTED_ATTRIBUTE,
        Column("group", "string", "the group that the net was trained on, together with the reference group"),
        Column("fold", "int32", "number of the fold, from 0, that the net was not trained on", minimum=0),
        Column("model", "string", "name of the model in the measures"),
        Column("inputs", "string", "JSON list of the net's inputs in order: a column, or column=category as 0 and 1"),
        Column("content", "binary", "the net as safetensors; it takes inputs in the user's units and gives the logit"),
    ),
    key=("protected_attribute", "group", "fold", "model"),
    restricted=True,
)

MODEL_REFITS = Table(
    "model_refits",
    "Decisions of the model on resamples of rows to which it and its threshold were fitted anew, by group.",
    (
        Column("refit", "int32", "number of the resample, from 0", minimum=0),
        *(PROTECTED_ATTRIBUTE, GROUP),
        Column("n", "int64", "rows of the group in the resample", minimum=0),
        Column("approved", "int64", "those that the model fitted to the resample favours", minimum=0),
    ),
    key=("refit", "protected_attribute", "group"),
    restricted=True,
)

EXCHANGES = Table(
    "exchanges",
    "Protected attributes that a model from a file, or a rule, takes as an input, and to what value each is exchanged.",
    (
        PROTECTED_ATTRIBUTE,
        Column("column", "string", "the input that is exchanged; null where none is", nullable=True),
        Column("value", "string", "its value in the reference group", nullable=True),
        Column("reason", "string", "why it is not exchanged; empty where it is"),
    ),
    key=("protected_attribute",),
)

EXCHANGED_DECISIONS = Table(
    "exchanged_decisions",
    "What a model from a file, or a rule, decides on each application with the protected attribute exchanged to the "
    "reference group and all other columns as they are.",
    (
        *(ROW_ID, PROTECTED_ATTRIBUTE),
        Column("favourable", "bool", "whether the decision is the favourable one"),
    ),
    key=("row_id", "protected_attribute"),
    restricted=True,
)

MODEL_METRICS = Table(
    "model_metrics",
    "How well the model's scores and decisions follow the lender's, by group.",
    (
        *(PROTECTED_ATTRIBUTE, GROUP),
        Column("metric", "string", "accuracy, auc, predicted_denial_rate, true_positive_rate or false_positive_rate"),
        Column("value", "double", "null where the group has one class only", nullable=True, minimum=0.0, maximum=1.0),
        Column("n", "int64", "rows behind the value", minimum=0),
    ),
    key=("protected_attribute", "group", "metric"),
    restricted=True,
)

ANY = "any"
"""Feature and reason in the row of the applications that lack at least one feature, for either reason."""

MISSINGNESS = Table(
    "missingness",
    "For every feature that applications lack: how many, and their decisions beside those of all who have it.",
    (
        Column("feature", "string", f"name of the column; {ANY} in the row of those that lack at least one"),
        Column(
            "reason",
            "string",
            "why: missing, or missing in an application that is exempt from reporting a value",
            codes=(Refusal.MISSING_COVARIATE, Refusal.EXEMPT_COVARIATE, ANY),
        ),
        Column("missing", "int64", "applications that lack it for that reason", minimum=0),
        Column("favourable_missing", "int64", "of these, favourable decisions", minimum=0),
        Column("present", "int64", "applications that have it", minimum=0),
        Column("favourable_present", "int64", "of these, favourable decisions", minimum=0),
        Column("elsewhere", "int64", "those that lack it and whose refusal names another column", minimum=0),
        Column("favourable_elsewhere", "int64", "of these, favourable decisions", minimum=0),
        Column(
            "auc",
            "double",
            "how well all flags of missingness rank the decisions: a logistic regression, cross-validated; in the row "
            f"{ANY} alone, and null where it cannot be told",
            True,
            0.0,
            1.0,
        ),
    ),
    key=("feature", "reason"),
    restricted=True,
)
