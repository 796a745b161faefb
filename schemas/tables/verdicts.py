"""Tables of verdicts: a state for each judged group and theory of harm, and what several methods say of a question."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from schemas.table import Column, Table
from schemas.tables.applications import DECISION_MAKER, GROUP, PROTECTED_ATTRIBUTE
from schemas.tables.findings import METHOD, SCALES
from schemas.terms import State, Theory

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
        Column("side", "string", "side of the limit that is tolerated", True, codes=("at_most", "at_least")),
        Column("p_breach", "double", "one-sided p of an effect at or inside the limit", True, 0.0, 1.0),
        Column("p_breach_holm", "double", "the same after Holm over the rows judged together", True, 0.0, 1.0),
        Column("p_within", "double", "one-sided p of an effect at or beyond the limit", True, 0.0, 1.0),
        Column("detectable", "double", "smallest effect (of a ratio: largest) found with 80 % power", nullable=True),
        Column("needed", "double", "applications of both groups that would settle it; null: none would", nullable=True),
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
    ),
    key=("theory", "decision_maker", "protected_attribute", "group", "method", "measure"),
    restricted=True,
)

QUESTIONS = {
    Theory.DIRECT: "Are equals treated alike?",
    Theory.TOTAL: "Would it be otherwise, by the assumed graph?",
    Theory.OUTCOME: "Do approvals differ?",
    Theory.RECOURSE: "Is the way to approval longer?",
    Theory.REASONS: "Do the model's reasons differ?",
    Theory.OWN: "Limits of this spec",
}
"""What each theory asks, as reports and commands print it."""
BEARS_ON = {
    "us-2026": {
        Theory.DIRECT: "Equal Credit Opportunity Act",
        Theory.OUTCOME: "Fair Housing Act, state law",
    }
}
"""Legal frame -> theory -> the claim that it bears on (docs/verdicts.md); it says nothing of what is lawful."""
STATES = {
    State.BREACH: "outside limit",
    State.INSUFFICIENT_EVIDENCE: "too little to say",
    State.WITHIN: "inside limit",
    State.NO_LIMIT: "no limit set",
    State.DESCRIPTIVE: "described only",
    State.NOT_RUN: "not run",
}
"""States in words, the same wherever one is printed. Only ``within`` reads as a pass."""
WITHHELD = "insufficient_evidence (withheld)"
"""How the state of a withheld row is printed."""


def state_of_row(row: Mapping[str, Any]) -> str:
    """The state of a row as it is published."""
    return WITHHELD if row["withheld"] else str(row["state"])


def published(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rows of the table as ``theories`` of report.json and of the command print them."""
    names = [column.name for column in VERDICTS.columns if column.name != "withheld"]
    said = [{**row, "state": state_of_row(row)} for row in rows]
    return {"columns": names, "rows": [[row[name] for name in names] for row in said]}


def effect_words(row: Mapping[str, Any]) -> str:
    """A row's value with its verdict interval in the unit of its measure; empty without one.

    Where columns are lacking the estimate comes first, with its plain interval and robustness value.
    """
    if row["value"] is None:
        return ""
    number, unit = _unit(row)
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
    number, unit = _unit(row)
    side = "at least" if row["side"] == "at_least" else "at most"
    return f"{side} {number(row['limit']).removeprefix('+')}{unit}"


def _unit(row: Mapping[str, Any]) -> tuple[Callable[[float], str], str]:
    """How numbers of a row are printed, and their unit: differences of shares in percentage points, all else plain.

    A score of reasons and the measures that a spec limits itself have scales of their own.
    """
    if row["theory"] in (Theory.REASONS, Theory.OWN):
        return "{:.3g}".format, ""
    if row["scale"] == "log" or row["side"] == "at_least":
        return "{:.2f}".format, ""
    return (lambda value: f"{100 * value:+.1f}"), " points"
