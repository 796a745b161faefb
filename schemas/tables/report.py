"""Table of the files of a report."""

from schemas.table import Column, Table

REPORT_INDEX = Table(
    "report_index",
    "The files of one report.",
    (Column("file", "string", "name of the file"), Column("bytes", "int64", "its size", minimum=1)),
    key=("file",),
)
