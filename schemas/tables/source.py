"""Tables about the source of an audit: what was read, and whether the decision is read the right way round."""

from collections.abc import Mapping
from typing import Any

from schemas.table import Column, Table

SOURCE_READ = Table(
    "source_read",
    "What the audit read, by the source itself: one row.",
    (
        Column("source", "string", "names of the files in order, or the vintage in words"),
        Column("sha256", "string", "of the file; of several files, that of their digests in order"),
        Column("rows", "int64", "rows of the source, those that could not be read among them", minimum=0),
        Column("year", "int64", "year of the rows that are kept; null where no column tells it", nullable=True),
    ),
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
    """The row for the manifest, with the first 12 digits of the digest."""
    return {**row, "sha256": row["sha256"][:12]}


def read_words(row: Mapping[str, Any]) -> str:
    """What was read, as a manifest keeps it, in words: source, sha256, rows, year."""
    year = "year not in the rows" if row["year"] is None else f"year by the rows {row['year']}"
    rows = "rows withheld" if row["rows"] is None else f"{row['rows']:,} rows"
    return f"{row['source']}, sha256 {row['sha256']}, {rows}, {year}"
