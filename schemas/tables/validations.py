"""Table of validation results: what every other table was checked against."""

from schemas.table import Column, Table

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
    ),
    restricted=True,
)
