"""Table of missing values by feature, and of the decisions on those who lack them."""

from schemas.table import Column, Table
from schemas.terms import Refusal

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
