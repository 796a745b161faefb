"""Tables of verdicts, tables over years, and published tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final, overload

from schemas.questions import QUESTIONS, WITHHELD
from schemas.table import Column, Table
from schemas.tables.applications import (
    DECISION_DIRECTION,
    DECISION_MAKER,
    ENCODINGS,
    GROUP,
    INTAKE_RULES,
    LEAKAGE,
    MODEL_METRICS,
    PROTECTED_ATTRIBUTE,
    ROW_ID,
    SOURCE_READ,
    VALIDATIONS,
)
from schemas.tables.counterfactuals import (
    CAUSAL_CHECKS,
    CAUSAL_EFFECTS,
    FEASIBILITY_FACTS,
    GENERATOR_CHECKS,
    GENERATOR_HISTORY,
    GRAPH_TESTS,
    MEDIATOR_EFFECTS,
)
from schemas.tables.findings import COMPARED_MITIGATIONS, COMPARED_MODELS, CURVES, MEASURE, MEASURES, METHOD, SCALES
from schemas.tables.readings import COPIES, VERDICT_FINDINGS, WRITTEN_BY_ADJUST
from schemas.terms import ChangeState, State, Theory

# --------------------------------------------------------------------------------------------------------------------
# Tables of verdicts: a state for each judged group and theory of harm, and what several methods say of a question.


THEORY = Column("theory", "string", "kind of harm that the verdict is about", codes=tuple(Theory))
_WHOSE = (
    THEORY,
    Column("protected_attribute", "string", "the protected attribute; empty in the row of the theory as a whole"),
    Column("group", "string", "the group; empty in the row of the theory as a whole"),
    Column("reference_group", "string", "the group it is compared with", nullable=True),
    Column("decision_maker", "string", "whose decisions; empty in the row of the theory as a whole"),
)
ASSUMPTIONS = ("columns_complete", "graph", "none")

VERDICTS = Table(
    "verdicts",
    "The state of every theory of harm, and of each judged group in it. The run is prepended where it is exported.",
    (
        *_WHOSE,
        Column("method", "string", "the method of the measure; empty in the row of the theory as a whole"),
        Column("measure", "string", "what is judged; empty in the row of the theory as a whole"),
        Column(
            "role",
            "string",
            "theory: the row of the theory as a whole; primary: decides; adds: may add a breach; beside: a second "
            "method; watch: a level of practitioners",
            codes=("theory", "primary", "adds", "beside", "watch"),
        ),
        Column("value", "double", "the measure; null where it was not measured, or is withheld", nullable=True),
        Column("low", "double", "lower end of the verdict interval", nullable=True),
        Column("high", "double", "upper end of it", nullable=True),
        Column("plain_low", "double", "lower end of the two-sided 95 % interval, without any widening", nullable=True),
        Column("plain_high", "double", "upper end of it", nullable=True),
        Column("robustness", "double", "what an unseen column has to explain to bring it to zero", True, 0.0, 1.0),
        Column("se", "double", "standard error of the value, or of its logarithm", True, 0.0),
        Column("scale", "string", "whether the error is of the value or of its logarithm", True, codes=SCALES),
        Column("bias", "double", "by how much the interval is widened for columns that the table lacks", True, 0.0),
        Column("limit", "double", "how much is tolerated; null where no limit is set", nullable=True),
        Column("limit_used", "double", "the limit of the judged effect, smaller where few are denied", True),
        Column("expected", "double", "share that the reference group's rule would deny", True, 0.0, 1.0),
        Column("ratio", "double", "denied over expected", True, 0.0),
        Column("ratio_low", "double", "lower end of its 95 % interval", True, 0.0),
        Column("ratio_high", "double", "upper end of it", True, 0.0),
        Column("hull_low", "double", "lower end of the hull of all readings, each one-sided at alpha", nullable=True),
        Column("hull_high", "double", "upper end of it", nullable=True),
        Column("cluster", "string", "column whose rows hang together in the error", nullable=True),
        Column("df", "double", "degrees of freedom of the error; null for the normal", True, 0.0),
        Column("side", "string", "side of the limit that is tolerated", True, codes=("at_most", "at_least")),
        Column("p_breach", "double", "one-sided p of an effect at or inside the limit", True, 0.0, 1.0),
        Column("p_breach_holm", "double", "the same after Holm over the rows judged together", True, 0.0, 1.0),
        Column("p_within", "double", "one-sided p of an effect at or beyond the limit", True, 0.0, 1.0),
        Column("detectable", "double", "smallest effect (of a ratio: largest) found with 80 % power", nullable=True),
        Column("needed", "double", "applications of both groups that would settle it; null: none would", nullable=True),
        Column("part_n", "int64", "members of a part of which the smallest harm is told", nullable=True, minimum=50),
        Column("part_detectable", "double", "smallest effect in such a part found with 80 % power", nullable=True),
        Column("choices", "int64", "defensible choices by which the effect was made; null: none but its own", True, 0),
        Column("choices_outside", "int64", "choices by which the whole group is outside", nullable=True, minimum=0),
        Column("choices_within", "int64", "choices by which it is within", nullable=True, minimum=0),
        Column("n", "int64", "applications of the group", nullable=True, minimum=0),
        Column("events", "int64", "denials among them", nullable=True, minimum=0),
        Column("n_reference", "int64", "applications of the reference group", nullable=True, minimum=0),
        Column("events_reference", "int64", "denials among them", nullable=True, minimum=0),
        Column("state", "string", "how it ended", codes=tuple(State)),
        Column("reason", "string", "why, in a sentence"),
        Column("assumption", "string", "what must hold for it to be true", codes=ASSUMPTIONS),
        Column("withheld", "bool", "whether its numbers, and its state, are withheld for few people"),
    ),
    key=("theory", "protected_attribute", "group", "decision_maker", "method", "measure", "limit", "side"),
    restricted=True,
)

AGREEMENT = Table(
    "agreement",
    "What each method says of one theory and group: the direction of its effect, and its state.",
    (
        THEORY,
        *(DECISION_MAKER, PROTECTED_ATTRIBUTE, GROUP, METHOD),
        Column("measure", "string", "its measure"),
        Column(
            "sign",
            "string",
            "direction, by the 95 % interval: against the group, for it, none seen, or too few to say",
            codes=("against", "for", "none_seen", "too_few"),
        ),
        Column("state", "string", "its state", codes=tuple(State)),
        Column("reference_group", "string", "the group it is compared with", nullable=True),
        Column("value", "double", "the measure, as in the table of verdicts", nullable=True),
        Column("low", "double", "lower end of its two-sided 95 % interval, from which the sign follows", nullable=True),
        Column("high", "double", "upper end of it", nullable=True),
        Column("p", "double", "p of a test with permuted labels, where it has one", True, 0.0, 1.0),
        Column("null_low", "double", "2.5 % quantile of the measure with labels permuted; null without a range", True),
        Column("null_high", "double", "97.5 % quantile of it", nullable=True),
        Column("n", "int64", "applications of the group", nullable=True, minimum=0),
        Column("explains", "string", "codes of why methods with another sign may differ (docs/verdicts.md)", True),
    ),
    key=("theory", "decision_maker", "protected_attribute", "group", "method", "measure"),
    restricted=True,
)

BEARS_ON = {
    "us-2026": {
        Theory.SIMILAR_APPLICANTS: "Equal Credit Opportunity Act",
        Theory.APPROVAL_RATES: "Fair Housing Act, state law",
    }
}
"""Legal frame -> theory -> the claim that it bears on (docs/verdicts.md); it says nothing of what is lawful."""


REPORTED = "reported, not judged: fewer applications than a verdict needs, and less than 1 % of all"
"""The reason of a row of a group that is too small to be judged and leaves the states of other groups alone."""


def state_of_row(row: Mapping[str, Any]) -> str:
    """The state of a row as it is published."""
    return WITHHELD if row["withheld"] else str(row["state"])


WIDE_HALF: Final = 2.0
"""Half an interval in points from which on decimals would claim more than is known."""
_SIGNED = ("value", "limit", "limit_used", "detectable")
_ENDS = (("low", "high"), ("hull_low", "hull_high"), ("plain_low", "plain_high"))
_SIDES = {"at_most": "at_least", "at_least": "at_most"}


@overload
def approval_of(effect: float) -> float: ...
@overload
def approval_of(effect: None) -> None: ...
@overload
def approval_of(effect: float | None) -> float | None: ...


def approval_of(effect: float | None) -> float | None:
    """An effect on denial as people read it: group less reference group in approval; negative is approved less often.

    Methods measure effects on denial, as papers print them, and so do the tables of the lake. This is the one place
    where the sign turns.
    """
    return None if effect is None else 0.0 - effect  # and no negative zero


PRICES: Final = frozenset(("rate_spread_effect",))
"""Measures that are prices in percentage points: above zero is dearer. They answer no question about approval."""


def in_approval(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of verdicts in the sign that people read; ratios, costs, scores and own limits keep their direction."""
    turned = dict(row)
    is_difference = row["theory"] in (Theory.SIMILAR_APPLICANTS, Theory.CAUSAL_MODEL) and row["scale"] != "log"
    if not is_difference or row["role"] == "theory" or row.get("measure") in PRICES:
        return turned
    turned |= {name: approval_of(row.get(name)) for name in _SIGNED}
    for low, high in _ENDS:
        turned[low], turned[high] = approval_of(row.get(high)), approval_of(row.get(low))
    return turned | {"side": _SIDES.get(row["side"], row["side"])}


EFFECTS_ON_DENIAL: Final = frozenset(
    (
        *("adjusted_effect", "overlap_effect", "exchanged_effect"),
        *("st_effect", "cst_effect", "mediated_effect", "saturated_effect", "saturated_shift"),
        *("delta", "share_changed"),
    )
)
"""Measures that are differences of denial and whose names do not say so."""


def measure_in_approval(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of measures in the sign that people read, as ``in_approval`` does for verdicts."""
    if row["measure"] not in EFFECTS_ON_DENIAL:
        return dict(row)
    ends = {"low": approval_of(row["high"]), "high": approval_of(row["low"])}
    return {**row, "value": approval_of(row["value"]), **ends}


def columns_in_approval() -> dict[str, str]:
    """The same as columns of a query over measures, so that it may sort by them."""
    names = ", ".join(f"'{name}'" for name in sorted(EFFECTS_ON_DENIAL))
    turned = {"value": "value", "low": "high", "high": "low"}
    return {to: f"CASE WHEN measure IN ({names}) THEN -{of} ELSE {to} END AS {to}" for to, of in turned.items()}


def published_verdicts(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rows of the table as ``theories`` of report.json and of the command print them.

    A row of an earlier version has no value in columns that came later.
    """
    names = [column.name for column in VERDICTS.columns if column.name != "withheld"]
    judged_rows = [{**in_approval(row), "state": state_of_row(row)} for row in rows]
    return {"columns": names, "rows": [[row.get(name) for name in names] for row in judged_rows]}


FINDINGS_OF_EFFECTS: Final = frozenset(("missing", "part", "place", "through", "bands", "form"))
"""Kinds of findings whose numbers are effects on denial; those of others are counts, shares and ratios."""


def finding_in_approval(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the table of findings in the sign that people read."""
    if row["kind"] not in FINDINGS_OF_EFFECTS:
        return dict(row)
    ends = {"low": approval_of(row["high"]), "high": approval_of(row["low"])}
    return {**row, "value": approval_of(row["value"]), **ends}


FINDINGS_TOLD = (
    *("kind", "question", "protected_attribute", "group", "part", "value", "low", "high", "n", "sentence", "next"),
)
"""Columns of the findings that report.json and the command print."""


def published_findings(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rows of the table of findings as ``findings`` of report.json and of the command."""
    turned = map(finding_in_approval, rows)
    return {"columns": list(FINDINGS_TOLD), "rows": [[row[name] for name in FINDINGS_TOLD] for row in turned]}


def effect_words(row: Mapping[str, Any]) -> str:
    """A row's value with its verdict interval in the unit of its measure; empty without one.

    Where columns are lacking the estimate comes first, with its plain interval and robustness value.
    """
    if row["value"] is None:
        return ""
    row = in_approval(row)
    number, unit = unit_of(row)
    value = number(row["value"]) + unit
    if row["low"] is None or row["high"] is None:
        return value

    def ends(low: str, high: str) -> str:
        return f"[{number(row[low])}, {number(row[high])}]"

    if not row["bias"] or row["plain_low"] is None:
        return f"{value} {ends('low', 'high')}"
    robust = "" if row["robustness"] is None else f", robustness value {100 * row['robustness']:.1f} %"
    return f"{value} {ends('plain_low', 'plain_high')}{robust}; for unseen columns {ends('low', 'high')}"


def limit_words(row: Mapping[str, Any]) -> str:
    """A row's limit in words; empty without one."""
    if row["limit"] is None:
        return ""
    row = in_approval(row)
    side = "at least" if row["side"] == "at_least" else "at most"
    _, unit = unit_of(row)
    limit = f"{100 * row['limit']:+g}".removeprefix("+") if unit else f"{row['limit']:.2f}"
    if row.get("measure") in PRICES:
        return f"{side} {row['limit']:g}{unit}"
    plain = row["theory"] in (Theory.MODEL_REASONS, Theory.OWN_LIMITS)
    return f"{side} {row['limit']:.3g}" if plain else f"{side} {limit}{unit}"


def subject_words(row: Mapping[str, Any]) -> str:
    """The question that a row belongs to in a few words; of a price with that word, as it is not about approval."""
    short = QUESTIONS[Theory(row["theory"])].short
    return f"{short}, price" if row["measure"] in PRICES else short


def row_words(row: Mapping[str, Any]) -> str:
    """A judged row in one line, with the figures of the first page: the question, the group, the result and its limit.

    The first page has two-sided 95 % intervals, and of a ratio of approval rates the verdict interval.
    """
    if row["theory"] != Theory.APPROVAL_RATES and row["plain_low"] is not None and row["plain_high"] is not None:
        row = {**row, "low": row["plain_low"], "high": row["plain_high"], "bias": 0.0}
    effect = "withheld" if row["withheld"] else effect_words(row)
    measure = f" {row['measure']}" if row["theory"] == Theory.OWN_LIMITS else ""
    place = f"{subject_words(row)}, {row['protected_attribute']}: {row['group']}{measure}"
    return ", ".join(filter(None, (f"{place} {effect}".rstrip(), limit_words(row))))


def unit_of(row: Mapping[str, Any]) -> tuple[Callable[[float], str], str]:
    """How numbers of a row are printed, and their unit: differences in points, a path in percent, all else plain.

    Points are whole where half the interval is two or more and no end would read as no difference, as on pages. A score
    of reasons and the measures that a spec limits itself have scales of their own.
    """
    if row.get("measure") in PRICES:
        return "{:+.3f}".format, " percentage points"
    if row["theory"] in (Theory.MODEL_REASONS, Theory.OWN_LIMITS):
        return "{:.3g}".format, ""
    is_path = row["measure"].endswith("_over_group")
    if not is_path and (row["scale"] == "log" or row["measure"].endswith("_ratio")):
        return "{:.2f}".format, ""
    places = 1
    if row["low"] is not None and row["high"] is not None:
        low, high = 100 * row["low"], 100 * row["high"]
        reaches_none = (100 if is_path else 0) in (round(low), round(high))
        places = 0 if high - low >= 2 * WIDE_HALF and not reaches_none else 1
    if is_path:
        return (lambda value: f"{100 * value:.{places}f}"), " %"
    return (lambda value: f"{round(round(100 * value, 3), places) + 0.0:+.{places}f}"), " points"


# --------------------------------------------------------------------------------------------------------------------
# Tables over years: measures, what they say against limit and change, and what another edition of a year changed.
#
# They hold only what the reports of the years print.


class Told(StrEnum):
    """Status of a measure in a year. Only a value is drawn; all else is a gap with a mark."""

    VALUE = "value"
    TOO_FEW = "too few"
    WITHHELD = "withheld"
    UNDEFINED = "undefined"
    NOT_MADE = "not made"


RULES = ("confidence_sequence", "bonferroni", "none")
"""How years are held against a limit."""
_SERIES = (
    Column("audit", "string", "name of the audit"),
    Column("year", "int64", "year of the decisions"),
    *(METHOD, DECISION_MAKER, PROTECTED_ATTRIBUTE, GROUP, MEASURE),
)
TREND = Table(
    "trend",
    "Headline and checked measures of every year asked for; a year without a measure has a row that says so.",
    (
        *_SERIES,
        Column("run", "string", "run of the year; empty if it has none"),
        Column("vintage", "string", "edition of the year's data"),
        Column("value", "double", "the measure as its report prints it", nullable=True),
        Column("low", "double", "lower end of its interval, or of a range of draws (see note)", nullable=True),
        Column("high", "double", "upper end of it", nullable=True),
        Column("n", "int64", "units behind it; null where withheld", nullable=True, minimum=0),
        Column(
            "note", "string", "what qualifies the value or its two ends, as in measures; range: they are no interval"
        ),
        Column("state", "string", "how its check against a threshold ended", codes=tuple(State)),
        Column("told", "string", "whether there is a value to be drawn, or why not", codes=tuple(Told)),
        Column("reason", "string", "why it has that state, or is not there"),
    ),
    key=("audit", "year", "method", "decision_maker", "protected_attribute", "group", "measure"),
)
MONITORING = Table(
    "monitoring",
    "Every judged group of every theory over the years: the years so far against the limit, and each year against "
    "those before it, in the sign of the pages. Of a ratio all changes are ratios too.",
    (
        *_SERIES[:2],
        Column("theory", "string", "what kind of harm it is about", codes=tuple(Theory)),
        *(DECISION_MAKER, PROTECTED_ATTRIBUTE, GROUP),
        Column("reference_group", "string", "the group that it is held against"),
        MEASURE,
        Column("scale", "string", "on which estimates are pooled; log: of a ratio", codes=("linear", "log")),
        Column("value", "double", "estimate of the year", nullable=True),
        Column("low", "double", "lower end of the year's own verdict interval", nullable=True),
        Column("high", "double", "upper end of it", nullable=True),
        Column("limit", "double", "the largest effect that is tolerated; null where there is none", nullable=True),
        Column("side", "string", "on which side of the limit it must lie", codes=("at_most", "at_least")),
        Column("rule", "string", "how years are held against the limit", codes=RULES),
        Column("pooled", "double", "estimate of the years so far; of one year by the other two rules", nullable=True),
        Column("pooled_low", "double", "lower end of its band", nullable=True),
        Column("pooled_high", "double", "upper end of it", nullable=True),
        Column("state", "string", "the band against the limit", codes=tuple(State)),
        Column("change", "double", "the year less the mean of 4 or more years before it, else the one", nullable=True),
        Column("change_low", "double", "lower end of its 95 % interval", nullable=True),
        Column("change_high", "double", "upper end of it", nullable=True),
        Column("change_state", "string", "how the year stands beside those before it", codes=tuple(ChangeState)),
        Column("tau2", "double", "variance between the years before it, on the scale", True, 0.0),
        Column("years_used", "int64", "comparable years before it that the change rests on", minimum=0),
        Column("predicted_low", "double", "lower end of what the years before let expect of it", nullable=True),
        Column("predicted_high", "double", "upper end of that", nullable=True),
        Column("minimal_change", "double", "smallest change that is seen with 80 % power", True, 0.0),
        Column("slope", "double", "change a year; of a ratio its factor", nullable=True),
        Column("slope_low", "double", "lower end of its 95 % interval", nullable=True),
        Column("slope_high", "double", "upper end of it", nullable=True),
        Column("since_year", "int64", "first year after the change, where slope or year speak", nullable=True),
        Column("since_p", "double", "p of that change point, by permuted years", True, 0.0, 1.0),
        Column("q", "double", "p of the change after Benjamini-Hochberg over the series of the year", True, 0.0, 1.0),
        Column("reason", "string", "both states in words"),
    ),
    key=("audit", "year", "theory", "decision_maker", "protected_attribute", "group", "measure"),
)
RESTATEMENT = Table(
    "restatement",
    "A headline or checked measure of one year by an earlier and by a later edition of its data.",
    (
        *_SERIES,
        Column("old", "double", "by the earlier edition", nullable=True),
        Column("new", "double", "by the later edition", nullable=True),
        Column("difference", "double", "new less old; null unless both are printed", nullable=True),
        Column("old_note", "string", "what qualifies the earlier value or its two ends, as in measures"),
        Column("new_note", "string", "what qualifies the later one"),
        Column("old_told", "string", "what the earlier one has to say", codes=tuple(Told)),
        Column("new_told", "string", "what the later one has to say", codes=tuple(Told)),
        Column("old_state", "string", "how the earlier check ended", codes=tuple(State)),
        Column("new_state", "string", "how the later check ended", codes=tuple(State)),
    ),
    key=("audit", "year", "method", "decision_maker", "protected_attribute", "group", "measure"),
)


# --------------------------------------------------------------------------------------------------------------------
# Tables of the stage publish: what may be published of a run, and the disclosure action on every count of people.
#
# Every output reads these and the tables ``published_*``, never those that they were made of. In all of them a number
# that is null was withheld or not measured; where a table has a column ``withheld``, that tells the two apart.


PREFIX = "published_"
"""Names of published tables begin with it."""
_NUMBERS = ("double", "int64", "int32")
WITHHELD_TABLE = "withheld: a count of this table is small"
"""Stands in the first column of ``parts`` of a table that a profile withholds as a whole."""

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

PUBLISHED_AGREEMENT_PAIRS = Table(
    "published_agreement_pairs",
    "Whom two methods flag, of those whom both could judge: counts, kappa, AC1. A flag is no finding about a person.",
    (
        *(PROTECTED_ATTRIBUTE, GROUP, DECISION_MAKER),
        Column("first", "string", "one method"),
        Column("second", "string", "the other"),
        Column("n", "int64", "people whom both could judge; all numbers are null where the pair is withheld", True, 0),
        Column("both", "int64", "flagged by both", True, 0),
        Column("first_alone", "int64", "flagged by the first alone", True, 0),
        Column("second_alone", "int64", "flagged by the second alone", True, 0),
        Column("neither", "int64", "flagged by neither", True, 0),
        Column("agreement", "double", "share with equal flags", True, 0.0, 1.0),
        Column("null_low", "double", "2.5 % quantile of it with flags permuted, as chance alone gives", True, 0.0, 1.0),
        Column("null_high", "double", "97.5 % quantile of it", True, 0.0, 1.0),
        Column("kappa", "double", "Cohen's kappa; null where one flags all or nobody", True, -1.0, 1.0),
        Column("kappa_low", "double", "lower end of its 95 % interval, over resampled applicants", True, -1.0, 1.0),
        Column("kappa_high", "double", "upper end of it", True, -1.0, 1.0),
        Column("ac1", "double", "Gwet's AC1", True, -1.0, 1.0),
        Column("ac1_low", "double", "lower end of its 95 % interval", True, -1.0, 1.0),
        Column("ac1_high", "double", "upper end of it", True, -1.0, 1.0),
        Column("jaccard", "double", "share flagged by both, of those flagged by one", True, 0.0, 1.0),
        Column("not_asked", "int64", "others: one method has no row of them, since it asks the denied alone", True, 0),
        Column("refused", "int64", "others: one method refused them", True, 0),
        Column("not_identified", "int64", "others: the generators of one part about them", True, 0),
        Column("may_differ", "string", "codes of why the two may differ (docs/verdicts.md), separated by semicolons"),
        Column("first_flag", "string", "what a flag of the first is"),
        Column("second_flag", "string", "what a flag of the second is"),
        Column("withheld", "bool", "whether its numbers are withheld for few people"),
    ),
    key=("protected_attribute", "group", "decision_maker", "first", "second"),
)


def published(table: Table) -> Table:
    """The declaration of a table as it is published: the same columns; its numbers may be null.

    Integers of a key stay: they number rows, and count nobody. A table with ``parts`` may be ``WITHHELD_TABLE``.
    """
    columns = tuple(
        replace(column, nullable=True)
        if column.type in _NUMBERS and column.name not in table.key
        else replace(column, codes=(*column.codes, WITHHELD_TABLE if column.name == table.parts[0] else ""))
        if column.name in table.parts and column.codes
        else column
        for column in table.columns
    )
    return replace(table, name=f"{PREFIX}{table.name}", columns=columns, restricted=False)


# --------------------------------------------------------------------------------------------------------------------
# Tables of a run as they are published: declarations of what every output may read, each made of a raw one.
#
# ``published_waterfall`` and ``published_missingness`` have shapes of their own: ``schemas.tables.verdicts``. Tables
# of single methods are made of theirs by the same function.


PUBLISHED_MEASURES = published(MEASURES)
PUBLISHED_CURVES = tuple(published(table) for table in CURVES)
OF_CURVE = ("method", "decision_maker", "protected_attribute", "group", "subgroup")
"""Columns that say what a curve is about."""
PUBLISHED_VERDICTS = published(VERDICTS)
PUBLISHED_AGREEMENT = published(AGREEMENT)
PUBLISHED_DECISION_DIRECTION = published(DECISION_DIRECTION)
PUBLISHED_COMPARED_MITIGATIONS = published(COMPARED_MITIGATIONS)
PUBLISHED_COMPARED_MODELS = published(COMPARED_MODELS)
PUBLISHED_SOURCE_READ = published(SOURCE_READ)
PUBLISHED_INTAKE_RULES = published(INTAKE_RULES)

FACTS = (
    *(ENCODINGS, MODEL_METRICS, FEASIBILITY_FACTS, CAUSAL_CHECKS, GRAPH_TESTS, CAUSAL_EFFECTS, MEDIATOR_EFFECTS),
    *(GENERATOR_CHECKS, GENERATOR_HISTORY, DECISION_DIRECTION, LEAKAGE, COMPARED_MITIGATIONS, COMPARED_MODELS),
    *(SOURCE_READ, INTAKE_RULES, VALIDATIONS, COPIES, *WRITTEN_BY_ADJUST, VERDICT_FINDINGS),
)
"""Raw tables that are published column by column."""
PUBLISHED_FACTS = tuple(published(table) for table in FACTS)

REPORT_INDEX = Table(
    "report_index",
    "The files of one report.",
    (Column("file", "string", "name of the file"), Column("bytes", "int64", "its size", minimum=1)),
    key=("file",),
)


def points_query(table: str) -> str:
    """SQL of the points of a published table of curves, in the columns of the table of measures that a point has."""
    whose = ", ".join(f'"{name}"' for name in ("run", *OF_CURVE))
    of_point = {"value": "value", "low": "low", "high": "high", "n": "n::BIGINT[]", "events": "events::BIGINT[]"}
    of_draws = {"value": "drawn", "low": "drawn_low", "high": "drawn_high", "n": "draws::BIGINT[]"}
    queries = []
    for ending, lists, note in (("", of_point, "note"), ("_size_matched", of_draws, "drawn_note")):
        columns = ", ".join(f"unnest({values}) AS {name}" for name, values in (lists | {"note": note}).items())
        points = (
            f"SELECT {whose}, curve || '{ending}' AS measure, unnest(parameters) AS parameters, {columns} FROM {table}"  # noqa: S608 ours
        )
        state = f"SELECT *, '{State.INFORMATION}' AS state, '' AS reason FROM ({points})"  # noqa: S608 ours
        queries.append(state + (" WHERE value IS NOT NULL OR note <> ''" if ending else ""))
    return " UNION ALL BY NAME ".join(queries)
