"""The table of the check that favourable and unfavourable decisions are read the right way round."""

from schemas.table import Column, Table

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
