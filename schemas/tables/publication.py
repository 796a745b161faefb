"""Tables of the stage publish: what may be told of a run, and what became of every number of people.

Every output reads these and the tables ``published_*``, never those that they were made of. In all of them a number
that is null was withheld or not measured; where a table has a column ``withheld``, that tells the two apart.
"""

from dataclasses import replace

from schemas.table import Column, Table
from schemas.tables.applications import DECISION_MAKER, GROUP, PROTECTED_ATTRIBUTE, ROW_ID
from schemas.tables.findings import METHOD

PREFIX = "published_"
"""Names of published tables begin with it."""
_NUMBERS = ("double", "int64", "int32")

GONE = ("withheld_small", "withheld_with", "withheld_unaudited")
"""Fates of what is withheld: for its own size, with another, and with its whole attribute for want of an audit."""
FATES = ("shown", "rounded", "range", *GONE)
BASES = ("source", "used", "factuals", "candidates", "imagined", "identified", "refused")

PUBLICATION = Table(
    "publication",
    "The fate of every number of people: one row for each population and event.",
    (
        PROTECTED_ATTRIBUTE,
        Column("group", "string", "the group; All: everybody"),
        Column("part", "int32", "part of the group, from 1; 0 is the whole group", minimum=0),
        Column("decision_maker", "string", "whose decisions; empty where it is not about decisions"),
        Column("base", "string", "which rows the population is taken from", codes=BASES),
        Column("reason", "string", "why the rows were refused, for the base refused; else empty"),
        Column("event", "string", "empty: all people of the population; denied: those denied"),
        Column("fate", "string", "what happens to the number, and to all that is about the population", codes=FATES),
        Column("number", "int64", "the number as published; null where it is withheld or a range", True, 0),
        Column("text", "string", "the range in words; else empty"),
        Column(
            "least", "int64", "of a withheld number: the least that can be told from all that is published", True, 0
        ),
        Column("largest", "int64", "the largest", True, 0),
        Column("low", "int64", "what a reader knows of the number: the least that is printed alike", True, 0),
        Column("high", "int64", "the largest that is printed alike; null where nothing bounds it", True, 0),
        Column("rest_low", "int64", "of an event: the same of those without it; null where nothing is told", True, 0),
        Column("rest_high", "int64", "the largest; null where nothing bounds it", True, 0),
        Column("groups", "string", "of withheld groups that are shown as one: their names, as JSON; else empty"),
    ),
    key=("protected_attribute", "group", "part", "decision_maker", "base", "reason", "event", "groups"),
    restricted=True,
)

PUBLICATION_ROWS = Table(
    "publication_rows",
    "The kind of each row of the source: rows of a kind are counted by the same numbers of the publication.",
    (ROW_ID, Column("kind", "int32", "number of the kind", minimum=0)),
    key=("row_id",),
    restricted=True,
)

PUBLICATION_KINDS = Table(
    "publication_kinds",
    "What the numbers of the publication tell apart of each kind of rows: a row for each property of a kind.",
    (
        Column("kind", "int32", "number of the kind", minimum=0),
        Column("property", "string", "what the row says", codes=("group", "place", "denied")),
        Column("protected_attribute", "string", "of a group: the attribute; else empty"),
        Column("columns", "string", "of a group: the columns of the attribute, as JSON; else empty"),
        Column("group", "string", "the group; else empty"),
        Column("base", "string", "of a place: which rows it holds; else empty"),
        Column("decision_maker", "string", "whose decisions; else empty"),
        Column("reason", "string", "of a place: why its rows were refused; else empty"),
    ),
    key=("kind", "property", "protected_attribute", "base", "decision_maker", "reason"),
    restricted=True,
)

PUBLICATION_BESIDE = Table(
    "publication_beside",
    "Earlier published runs over the same rows that were taken into account: a row for each.",
    (
        Column("run", "string", "the earlier run"),
        Column(
            "told",
            "int64",
            "small counts that would follow from all runs, were not more withheld",
            minimum=0,
        ),
        Column("closed", "int64", "small counts that follow all the same", minimum=0),
    ),
    key=("run",),
    restricted=True,
)
"""Both numbers are of all runs together."""

HANDED_ON = (PUBLICATION, PUBLICATION_ROWS, PUBLICATION_KINDS)
"""What a later run over the same rows has to know of a published one."""


def earlier(table: Table) -> Table:
    """The declaration of a table that earlier published runs hand on: one run's rows after another's."""
    return replace(table, name=f"earlier_{table.name}")


EARLIER = tuple(map(earlier, HANDED_ON))
"""The same tables as a later run reads them."""

PUBLISHED_WATERFALL = Table(
    "published_waterfall",
    "From the rows of the source to the rows used: a row for each line of the waterfall and group.",
    (
        PROTECTED_ATTRIBUTE,
        Column("line", "int32", "place of the line, from 0 (the source) to the last (the rows used)", minimum=0),
        Column("kind", "string", "what the line counts", codes=("source", "refused", "left", "used")),
        Column("stage", "string", "stage that refused the rows, or after which these are left; empty for the source"),
        Column("reason", "string", "why rows were refused; else empty"),
        Column("column", "string", "column that they were refused for; empty where it is none"),
        GROUP,
        Column("n", "int64", "rows; null where withheld", nullable=True, minimum=0),
        Column("approval", "double", "of refused rows with a readable decision: the share approved", True, 0.0, 1.0),
        Column("withheld", "bool", "whether a number of the row is withheld"),
    ),
    key=("protected_attribute", "line", "group"),
)
"""Groups of a line: ``All`` first, then by falling size."""

PUBLISHED_MISSINGNESS = Table(
    "published_missingness",
    "For every feature that applications lack: how many, and decisions on them beside those on who has it.",
    (
        Column("feature", "string", "name of the column; any: at least one"),
        Column("reason", "string", "why it is missing"),
        Column("missing", "int64", "applications that lack it; null where withheld", nullable=True, minimum=0),
        Column("approval_missing", "double", "share approved of those", True, 0.0, 1.0),
        Column("approval_present", "double", "share approved of those who have it", True, 0.0, 1.0),
        Column("auc", "double", "how well all flags of missingness rank the decisions; row any alone", True, 0.0, 1.0),
        Column("withheld", "bool", "whether a number of the row is withheld"),
    ),
    key=("feature", "reason"),
)

PUBLISHED_MERGED = Table(
    "published_merged",
    "Withheld groups of an attribute that are shown as one group, where that tells nothing of each.",
    (
        PROTECTED_ATTRIBUTE,
        Column("groups", "string", "the groups, in words"),
        Column("base", "string", "which rows they are counted in", codes=BASES),
        Column("decision_maker", "string", "whose decisions; empty where it is not about decisions"),
        Column("n", "int64", "people of all these groups", minimum=0),
        Column("denied", "int64", "those denied; null where that is not told", True, 0),
    ),
    key=("protected_attribute", "groups", "base", "decision_maker"),
)

PUBLISHED_FINDINGS = Table(
    "published_findings",
    "What methods found, counted by group; a group with one small count is withheld whole.",
    (
        *(METHOD, DECISION_MAKER, PROTECTED_ATTRIBUTE, GROUP),
        Column("verdict", "string", "what was found"),
        Column("refusal", "string", "why nothing was found; else empty"),
        Column("findings", "int64", "units; null where withheld", True, 0),
        Column("mean_statistic", "double", "mean of their statistic", True),
    ),
    key=("method", "decision_maker", "protected_attribute", "group", "verdict", "refusal"),
)


def published(table: Table) -> Table:
    """The declaration of a table as it is published: the same columns, any number of which may be null.

    Integers of a key stay: they number rows, and count nobody.
    """
    columns = tuple(
        replace(each, nullable=True) if each.type in _NUMBERS and each.name not in table.key else each
        for each in table.columns
    )
    return replace(table, name=f"{PREFIX}{table.name}", columns=columns, restricted=False)
