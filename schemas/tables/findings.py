"""Tables that methods write, and the exact measures."""

from schemas.table import Column, Table
from schemas.tables.applications import DECISION_MAKER, GROUP, PROTECTED_ATTRIBUTE, ROW_ID
from schemas.terms import Refusal, State

# --------------------------------------------------------------------------------------------------------------------
# Tables that methods write: findings, the evidence behind them, and the numbers that measures are made of.


METHOD = Column("method", "string", "the method, by its paper's acronym in lower case")
SUBGROUP = Column("subgroup", "int32", "part of the group, from 1; 0 is the whole group", minimum=0)
MEASURE = Column("measure", "string", "name of the measure")
PARAMETERS = Column("parameters", "string", "JSON object of the measure's parameters, keys sorted")

HEADLINE = Column("headline", "bool", "whether its difference from the reference group is tested")
COMPARED = Column("compared", "bool", "whether its difference and ratio to the reference group are made")
_STATISTIC = (METHOD, DECISION_MAKER, PROTECTED_ATTRIBUTE, GROUP, SUBGROUP, MEASURE, PARAMETERS, HEADLINE, COMPARED)

VERDICTS = (
    *("feasible", "infeasible"),
    *("detected", "not_detected", "not_tested"),
    *("same_reasons", "different_reasons", "flipped_same_reasons", "flipped_different_reasons"),
    *("decision_kept", "decision_changes", "not_identified"),
    *("rank_kept", "rank_changed", "offered_recourse"),
)
"""Of FGCE, of CST, of CEC (its regimes A to D), of GCFN, and of RAGUEL."""

FINDINGS = Table(
    "findings",
    "One row per unit and method: what was found, or why the search for it was refused.",
    (
        *(ROW_ID, METHOD, DECISION_MAKER, PROTECTED_ATTRIBUTE, GROUP, SUBGROUP),
        Column("verdict", "string", "what was found", codes=VERDICTS),
        Column(
            "statistic",
            "double",
            "FGCE: cost of the cheapest recourse; CST: control less test; CEC: score; GCFN: mean change of the score; "
            "RAGUEL: recourse cost",
            nullable=True,
        ),
        Column("control", "double", "share of unfavourable decisions in the control group", True, 0.0, 1.0),
        Column("test", "double", "the same in the test group", True, 0.0, 1.0),
        Column("low", "double", "lower end of the statistic's interval", nullable=True),
        Column("high", "double", "upper end of it", nullable=True),
        Column("p", "double", "p-value", True, 0.0, 1.0),
        Column("q", "double", "p after Benjamini-Hochberg over the units of the group", True, 0.0, 1.0),
        Column("refusal", "string", "why nothing was found", nullable=True, codes=tuple(Refusal)),
        Column(
            "weight",
            "double",
            "units of the group that it stands for: 1 where everybody is asked, N/m where m of N are (sampling)",
            minimum=1.0,
        ),
    ),
    key=("row_id", "method", "decision_maker", "protected_attribute"),
    restricted=True,
)

COMPARED_MITIGATIONS = Table(
    "compared_mitigations",
    "Mitigations trained on the same five folds (`compare` of the spec): means of their figures on held-out rows, of a "
    "group and the reference group together.",
    (
        *(PROTECTED_ATTRIBUTE, GROUP),
        Column("mitigation", "string", "its name in the spec; unconstrained is the net without any"),
        Column(
            "figure",
            "string",
            "what is measured; gaps are between the group and the reference group",
            codes=("auc", "f1", "balanced_accuracy", "positive_rate", "eo_gap", "sp_gap"),
        ),
        Column("position", "int32", "place of the figure in their order, from 0", minimum=0),
        Column("value", "double", "mean over the folds; null where some fold has none", True, 0.0, 1.0),
        Column("deviation", "double", "standard deviation over the folds", True, 0.0),
        Column("reason", "string", "why there is no value; empty where there is one"),
    ),
    key=("protected_attribute", "group", "mitigation", "figure"),
    restricted=True,
)

COMPARED_MODELS = Table(
    "compared_models",
    "Differences between two mitigations of `compare`, of a group and the reference group together, with paired "
    "intervals: rows resampled within group and label, the same draw for both, and the folds repeated five times.",
    (
        *(PROTECTED_ATTRIBUTE, GROUP),
        Column("mitigation", "string", "its name in the spec"),
        Column("compared_with", "string", "what it is compared with: always the net without any mitigation"),
        Column(
            "quantity",
            "string",
            "what is compared; sp_gap is signed, approval of the reference group less that of the group",
            codes=(
                *(
                    "accuracy",
                    "balanced_accuracy",
                    "auc",
                    "approval_ratio",
                    "sp_gap",
                    "eo_gap",
                    "flips",
                    "decisions_changed",
                    "cec",
                ),
            ),
        ),
        Column("position", "int32", "place of the quantity in their order, from 0", minimum=0),
        Column("difference", "double", "the mitigation less the other; null without a value", True),
        Column("low", "double", "lower end of its 95 % interval", True),
        Column("high", "double", "upper end of it", True),
        Column("p", "double", "two-sided, of no difference", True, 0.0, 1.0),
        Column("q", "double", "p after Benjamini-Hochberg over the quantities of the mitigation", True, 0.0, 1.0),
        Column("folds", "int32", "folds of a repeat", minimum=2),
        Column("repeats", "int32", "repeats of the folds", minimum=1),
        Column(
            "drawn", "double", "share of rows whose decision is drawn, and counts by its probability", True, 0.0, 1.0
        ),
        Column(
            "frontier",
            "string",
            "whether another mitigation is better on accuracy and the gap in approvals, by whole intervals",
            codes=("dominated", "not_dominated", "cannot_tell", "not_compared"),
        ),
        Column(
            "performance",
            "string",
            "whether `comparable_by` is worse by less than the margin, by a one-sided 95 % interval",
            codes=("comparable", "worse", "cannot_tell", "not_compared"),
        ),
        Column("comparable_by", "string", "what performance is judged by (`comparable`)", codes=("accuracy", "auc")),
        Column("margin", "double", "by how much it may be worse", minimum=0.0, maximum=1.0),
        Column("reason", "string", "why there is no value; empty where there is one"),
    ),
    key=("protected_attribute", "group", "mitigation", "quantity"),
    restricted=True,
)

MODEL_REGISTER = Table(
    "model_register",
    "Every model that `compare` tried: a register of less discriminatory alternatives. A run adds its rows and changes "
    "none of another run.",
    (
        *(PROTECTED_ATTRIBUTE, GROUP),
        Column("mitigation", "string", "its name in the spec; unconstrained is the net without any"),
        Column("hyperparameters", "string", "JSON object of what it was trained with, keys sorted"),
        Column("first_seed", "int64", "seed of the first repeat of the folds; each later one has the next", minimum=0),
        Column("model_seed", "int64", "seed of the models", minimum=0),
        Column("folds", "int32", "folds of a repeat", minimum=2),
        Column("repeats", "int32", "repeats of the folds", minimum=1),
        Column(
            "rows", "int64", "rows of the group and the reference group that it was trained and held out on", minimum=0
        ),
        Column(
            "standing",
            "string",
            "candidate: performs as well, is dominated by none, and its gap in approvals is smaller by its interval",
            codes=("base", "candidate", "not_candidate", "not_trained"),
        ),
        Column("reason", "string", "why it has that standing"),
    ),
    key=("protected_attribute", "group", "mitigation"),
    restricted=True,
)

EVIDENCE = Table(
    "evidence",
    "The rows behind a finding. Restricted: never in a report.",
    (
        *(ROW_ID, METHOD, DECISION_MAKER, PROTECTED_ATTRIBUTE),
        Column("role", "string", "what the other row is to this one"),
        Column("rank", "int32", "its place in that role, from 1", minimum=1),
        Column("other_row_id", "string", "the other row, or the row itself"),
        Column(
            "value",
            "double",
            "cost, distance or divergence between the two, or a share of the row itself",
            nullable=True,
        ),
    ),
    key=("row_id", "method", "decision_maker", "protected_attribute", "role", "rank"),
    restricted=True,
)

TALLIES = Table(
    "tallies",
    "The distribution of each statistic over the units of a group: enough to print its mean and to resample it.",
    (
        *_STATISTIC,
        Column("share", "bool", "whether no value can be below 0 or above 1"),
        Column("value", "double", "value of the statistic; null where it is not defined on the unit", nullable=True),
        Column("count", "int64", "units with that value", minimum=0),
    ),
    restricted=True,
)

SCALES = ("linear", "log")

AGGREGATES = Table(
    "aggregates",
    "Measures of a group that are no means over its units; the method resamples them, or gives their intervals.",
    (
        *_STATISTIC,
        Column("value", "double", "the measure; null where it is refused", nullable=True),
        Column("n", "int64", "units that it is about", minimum=0),
        Column("events", "int64", "units that the value counts, where it counts units", nullable=True, minimum=0),
        Column("reason", "string", "why there is no value, or how far a bound may be from the optimum", nullable=True),
        Column("replicates", "doubles", "the measure on units drawn anew with replacement; none: no interval of these"),
        Column("low", "double", "lower end of an interval by a formula of the method; else null", nullable=True),
        Column("high", "double", "upper end of it", nullable=True),
        Column("se", "double", "standard error of a measure that may be judged, or of its logarithm", True, 0.0),
        Column("scale", "string", "whether the error is of the value or of its logarithm", True, codes=SCALES),
        Column("se_above", "double", "standard error towards larger values, where it is another one", True, 0.0),
        Column("df", "double", "degrees of freedom of Student's t; null for the normal", nullable=True),
        Column("p", "double", "one-sided p of a test that has no interval", True, 0.0, 1.0),
        Column("robustness", "double", "robustness value of an adjusted effect", True, 0.0, 1.0),
        Column("unseen", "double", "how far an unseen column of unit strength moves the value", True, 0.0),
        Column("raised", "int64", "of a paired difference: units on which it is 1; else null", True, 0),
        Column("lowered", "int64", "units on which it is -1", True, 0),
        Column("n_used", "int64", "applications of the group that an effect rests on; null: all", True, 0),
        Column("events_used", "int64", "denials among them", True, 0),
        Column("n_reference_used", "int64", "applications of the reference group that it rests on", True, 0),
        Column("events_reference_used", "int64", "denials among them", True, 0),
    ),
    key=("method", "decision_maker", "protected_attribute", "group", "subgroup", "measure", "parameters"),
    restricted=True,
)

DRAWS = Table(
    "draws",
    "Each statistic where nothing but size, or nothing at all, tells the group from the reference group.",
    (
        *(METHOD, DECISION_MAKER, PROTECTED_ATTRIBUTE, GROUP, MEASURE, PARAMETERS),
        Column("reason", "string", "why values among them are bounds; null where none is", nullable=True),
        Column(
            "reference",
            "string",
            "size_matched: on the reference group, subsampled to the group's size; null: on permuted labels",
            codes=("size_matched", "null"),
        ),
        Column("draw", "int32", "number of the subsample, from 0", minimum=0),
        Column("value", "double", "the statistic; null where it is not defined", nullable=True),
    ),
    key=("method", "decision_maker", "protected_attribute", "group", "measure", "parameters", "draw"),
    restricted=True,
)


# --------------------------------------------------------------------------------------------------------------------
# The table of measures, in long form: what is printed, exported and compared with thresholds.


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


# --------------------------------------------------------------------------------------------------------------------
# Curves: what is measured at many points has a row a curve, with a list a column, and no row of ``measures`` a point.


_OF_CURVE = (METHOD, DECISION_MAKER, PROTECTED_ATTRIBUTE, GROUP, SUBGROUP)
_CURVE = Column("curve", "string", "the measure that the points have")
_POINTS = (
    Column("parameters", "strings", "of each point, its parameters as a JSON object with sorted keys"),
    Column("value", "doubles", "the measure at each point; null where undefined or withheld"),
    Column("n", "doubles", "units behind each point; null where withheld"),
    Column("events", "doubles", "units with the event, of points that are shares"),
    Column("low", "doubles", "lower end of Wilson's interval, of points that are shares; not published"),
    Column("high", "doubles", "upper end of it"),
    Column("drawn", "doubles", "mean of the same over subsamples of the reference group at the group's size"),
    Column(
        "drawn_low", "doubles", "2.5 % quantile of these subsamples, or the one that the level of the spec asks for"
    ),
    Column("drawn_high", "doubles", "97.5 % quantile of them"),
    Column("draws", "doubles", "number of these subsamples with a value"),
    Column("note", "strings", "what qualifies the value of each point: a bound, or why there is none; else empty"),
    Column("drawn_note", "strings", "the same of the subsamples"),
)
_KEY_OF_CURVE = ("method", "decision_maker", "protected_attribute", "group", "subgroup", "curve")

FGCE_CURVES = Table(
    "fgce_curves",
    "Curves of FGCE, a row a curve: coverage, its areas and costs by k, d and c; shares by column and by rule lifted; "
    "the graph by epsilon; all measures of a part of a group. Lists of a row are of one length.",
    (
        *_OF_CURVE,
        _CURVE,
        Column("denominator", "string", "what a share is of: all or feasible; null where there is no choice", True),
        Column("k", "doubles", "number of counterfactuals at each point; null where the curve does not run over k"),
        Column("d", "doubles", "limit on cost at each point; null likewise"),
        Column("c", "doubles", "share of the coverable that is served; null likewise"),
        *_POINTS,
    ),
    key=(*_KEY_OF_CURVE, "denominator"),
    restricted=True,
)

METHOD_CURVES = Table(
    "method_curves",
    "Curves of the other methods, a row a curve: CEC by theta and column, RAGUEL by blocks and quantile, "
    "CST by k, tau and delta. Lists of a row are of one length.",
    (*_OF_CURVE, _CURVE, *_POINTS),
    key=_KEY_OF_CURVE,
    restricted=True,
)

CURVES = (FGCE_CURVES, METHOD_CURVES)
