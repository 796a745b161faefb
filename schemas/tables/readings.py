"""Tables of the judged effect: what its verdict rests on, other readings of it, parts, files left out, carriers.

The stage ``adjust`` writes them and ``measure`` reads states and findings from them, so that neither knows the other.
"""

from schemas.table import Column, Table
from schemas.tables.applications import (
    APPLICATIONS,
    DECISION_MAKER,
    GROUP,
    MEMBERSHIPS,
    PROTECTED_ATTRIBUTE,
    ROW_ID,
)

OF_GROUP = (DECISION_MAKER, PROTECTED_ATTRIBUTE, GROUP)
KEY = ("decision_maker", "protected_attribute", "group")
READINGS_IN_HULL = ("weighted", "undecided", "undecided_approved", "through", "time", "office", "bands")
"""Readings that the state may be read from, beside the judged one."""
FINDING_KINDS = ("copies", "missing", "undecided", "part", "place", "through", "ratio", "bands", "form", "no_noise")
"""In the order in which the first page looks for the next step."""

ABANDONED = Table(
    "abandoned",
    "Applications that ended without a decision (withdrawn, incomplete), typed like the others.",
    APPLICATIONS.columns,
    key=("row_id",),
    open=True,
    restricted=True,
)
ABANDONED_MEMBERSHIPS = Table(
    "abandoned_memberships",
    "The group of every application that ended without a decision, for every protected attribute.",
    MEMBERSHIPS.columns,
    key=MEMBERSHIPS.key,
    restricted=True,
)

JUDGED_EFFECTS = Table(
    "judged_effects",
    "Observed less expected denials of each group, the estimate that the verdict on similar applicants rests on.",
    (
        *OF_GROUP,
        Column("n", "int64", "complete applications of the group", minimum=0),
        Column("events", "int64", "denials among them", minimum=0),
        Column("n_reference", "int64", "complete applications of the reference group", minimum=0),
        Column("events_reference", "int64", "denials among them", minimum=0),
        Column("value", "double", "share denied less the share that the reference group's rule would deny", True),
        Column("se", "double", "its standard error", True, 0.0),
        Column("se_by_rows", "double", "its standard error if rows were independent", True, 0.0),
        Column("df", "double", "degrees of freedom of its interval; null for the normal", True, 0.0),
        Column("limit", "double", "the limit that it is held against", True, 0.0),
        Column("se_at_limit", "double", "standard error of the value less the limit", True, 0.0),
        Column("expected", "double", "share of the members that the reference group's rule would deny", True, 0.0, 1.0),
        Column("ratio", "double", "denied over expected", True, 0.0),
        Column("ratio_low", "double", "lower end of its 95 % interval", True, 0.0),
        Column("ratio_high", "double", "upper end of it", True, 0.0),
        Column("rare", "bool", "whether the limit is smaller as few are denied, or approved", True),
        Column("approval_se", "double", "standard error of the logarithm of the ratio of approvals, by clusters", True),
        Column("approval_df", "double", "its degrees of freedom; null for the normal", True, 0.0),
        Column("cluster", "string", "column whose rows hang together; null where rows are independent", nullable=True),
        Column("explained", "double", "share of the deviance that the rule explains in the reference group", True),
        Column("no_noise", "bool", "whether the lender decides without chance", True),
        Column("depends", "bool", "whether missing values depend on the decision", True),
        Column("reason", "string", "why there is no value; empty where there is"),
    ),
    key=KEY,
    restricted=True,
)

READINGS = Table(
    "readings",
    "The judged effect made otherwise: files weighted, undecided ones counted as either, without branches, places in.",
    (
        *OF_GROUP,
        Column(
            "reading",
            "string",
            "how it is made",
            codes=(*READINGS_IN_HULL, "place", "targeted"),
        ),
        Column("value", "double", "the effect", True),
        Column("se", "double", "its standard error", True, 0.0),
        Column("df", "double", "degrees of freedom; null for the normal", True, 0.0),
        Column("difference", "double", "less the judged effect", True),
        Column("difference_se", "double", "standard error of the difference", True, 0.0),
    ),
    key=(*KEY, "reading"),
    restricted=True,
)

PARTS = Table(
    "parts",
    "The judged effect in every part of a group that is large enough: products, places, officers, thirds of numbers.",
    (
        *OF_GROUP,
        Column("column", "string", "column that parts the group, or another protected attribute"),
        Column("level", "string", "the part"),
        Column("n", "int64", "members in the part", minimum=0),
        Column("n_reference", "int64", "rows of the reference group in it", minimum=0),
        Column("value", "double", "effect, less what the rule misses in the part", True),
        Column("se", "double", "its standard error", True, 0.0),
        Column("low", "double", "lower end of its interval, simultaneous over all parts of the attribute", True),
        Column("high", "double", "upper end of it", True),
        Column("above", "double", "its one-sided lower bound, simultaneous over all parts of the attribute", True),
        Column("differs", "bool", "whether that interval excludes 0"),
        Column("outside", "bool", "whether the one-sided simultaneous bound exceeds the limit of a part"),
        Column("bars", "bool", "whether the part keeps the group from being within"),
        Column("exceeds_rest", "bool", "whether its effect is shown to exceed the whole group's"),
    ),
    key=(*KEY, "column", "level"),
    restricted=True,
)

LEFT_OUT = Table(
    "left_out",
    "Applications that the judged effect leaves out, and what it could be with them.",
    (
        *OF_GROUP,
        Column("what", "string", "the column that they lack, or `no decision`"),
        Column("n", "int64", "such applications of the group", minimum=0),
        Column("n_reference", "int64", "such applications of the reference group", minimum=0),
        Column("denied", "int64", "denials among the group's", minimum=0),
        Column("share", "double", "of the group's applications", True, 0.0, 1.0),
        Column("share_reference", "double", "of the reference group's applications", True, 0.0, 1.0),
        Column("share_denied", "double", "of the group's denied applications", True, 0.0, 1.0),
        Column("share_approved", "double", "of the group's approved applications", True, 0.0, 1.0),
        Column("share_denied_reference", "double", "of the reference group's denied applications", True, 0.0, 1.0),
        Column("share_approved_reference", "double", "of the reference group's approved applications", True, 0.0, 1.0),
        Column("p", "double", "p of depending on the decision, in either group; of the excess", True, 0.0, 1.0),
        Column("excess", "double", "share without a decision beyond that of similar reference applicants", True),
        Column("excess_se", "double", "its standard error", True, 0.0),
        Column("estimate", "double", "the effect with these applications", True),
        Column("low", "double", "lower end of its 95 % interval", True),
        Column("high", "double", "upper end of it", True),
        Column("worst_low", "double", "least effect whatever they hide", True),
        Column("worst_high", "double", "largest effect whatever they hide", True),
    ),
    key=(*KEY, "what"),
    restricted=True,
)
NO_DECISION = "no decision"

CARRIERS = Table(
    "carriers",
    "What of the judged effect goes through each column, for information: the effect without it less the effect.",
    (
        *OF_GROUP,
        Column("column", "string", "the column"),
        Column("value", "double", "effect without the column, less the effect with it", True),
        Column("low", "double", "lower end of its 95 % interval", True),
        Column("high", "double", "upper end of it", True),
        Column("auc", "double", "how well the column ranks the group before the reference group", True, 0.5, 1.0),
    ),
    key=(*KEY, "column"),
    restricted=True,
)

COPIES = Table(
    "copies",
    "Rows that are equal to an earlier one in every cell but the identifier: one row.",
    (
        Column("rows", "int64", "applications", minimum=0),
        Column("sets", "int64", "applications that have copies", minimum=0),
        Column("copied", "int64", "rows beyond the first of each set", minimum=0),
        Column("expected", "double", "pairs of equal rows by chance", minimum=0.0),
        Column("beyond_chance", "bool", "whether there are far more than chance makes"),
        Column("left_out", "bool", "whether one row of each set is audited"),
    ),
    restricted=True,
)

COPIED_ROWS = Table(
    "copied_rows",
    "The rows beyond the first of each set of copies, which every later stage leaves out.",
    (ROW_ID,),
    key=("row_id",),
    restricted=True,
)
UNDECIDED = Table(
    "undecided",
    "Applications that ended without a decision: one row.",
    (Column("rows", "int64", "applications that ingest refused for want of a decision", minimum=0),),
    restricted=True,
)

CHOICES = Table(
    "choices",
    "The judged effect by 48 defensible choices of form, columns, files and estimator; the first is the audit's own.",
    (
        *OF_GROUP,
        Column("number", "int32", "the choice, from 1", minimum=1),
        Column("estimator", "string", "the estimator", codes=("expected", "logit", "targeted", "overlap")),
        Column(
            "form", "string", "numbers with chosen terms, with squares, or alone", codes=("terms", "squares", "linear")
        ),
        Column("clipped", "bool", "whether numbers are cut off at the 1st and 99th percentile"),
        Column(
            "through", "bool", "whether branches, officers and channels are controls, where the spec makes them some"
        ),
        Column("weighted", "bool", "whether complete files stand for all of their group and decision"),
        Column("n", "int64", "complete applications of the group", minimum=0),
        Column("value", "double", "the effect", True),
        Column("se", "double", "its standard error", True, 0.0),
        Column("df", "double", "degrees of freedom; null for the normal", True, 0.0),
        Column("limit", "double", "the limit that it is held against", True, 0.0),
        Column("se_at_limit", "double", "standard error of the value less the limit", True, 0.0),
    ),
    key=(*KEY, "number"),
    restricted=True,
)

WRITTEN_BY_ADJUST = (JUDGED_EFFECTS, READINGS, PARTS, LEFT_OUT, CARRIERS, CHOICES)

VERDICT_FINDINGS = Table(
    "verdict_findings",
    "What a mean hides and what in the file misleads: a row for each finding, with a sentence and the next step.",
    (
        Column("kind", "string", "what was found", codes=FINDING_KINDS),
        Column("question", "string", "the question that it is about; empty: every one"),
        PROTECTED_ATTRIBUTE,
        Column("group", "string", "the group; empty: the whole file"),
        Column("part", "string", "the part, or the column that files lack; else empty"),
        Column("value", "double", "its size: of effects as shares denied beyond what is expected", True),
        Column("low", "double", "lower end of its interval", True),
        Column("high", "double", "upper end of it", True),
        Column("n", "int64", "applications that it is about", True, 0),
        Column("of", "int64", "of how many", True, 0),
        Column("sentence", "string", "the finding in words"),
        Column("next", "string", "what to do next"),
    ),
    key=("kind", "question", "protected_attribute", "group", "part"),
    restricted=True,
)
