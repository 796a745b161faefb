"""What the command prints at the end of an audit: intervals, ranges and what has neither; states of theories."""

import io
from typing import Any

import pytest
from rich.console import Console

from flows.cli.summary import print_summary
from flows.runs.record import Summary
from schemas.tables.verdicts import VERDICTS
from schemas.terms import State

OF = {"decision_maker": "lender", "protected_attribute": "race", "group": "Black", "measure": "approval_rate", "n": 30}
NOTHING = dict.fromkeys(column.name for column in VERDICTS.columns) | {"withheld": False}
WHOLE = NOTHING | {"theory": "direct", "role": "theory", "protected_attribute": "", "group": "", "measure": ""}
ROW = NOTHING | {
    **{"theory": "direct", "role": "primary", "protected_attribute": "race", "group": "Black"},
    **{"measure": "adjusted_denial_effect", "scale": "linear", "limit": 0.02, "side": "at_most", "bias": 0.0},
}


def printed(headline: list[dict[str, Any]], verdicts: list[dict[str, Any]], *, verbose: bool = False) -> str:
    """The summary of an audit with these rows, on a console that wraps nothing."""
    summary = Summary(
        run="run",
        state=State.INSUFFICIENT_EVIDENCE,
        headline=headline,
        titles={"Decisions": {"approval_rate": "approved"}},
        verdicts=verdicts,
        report="report.html",
        read={"source": "loans.csv", "sha256": "0123456789ab", "rows": 30, "year": None},
        computed=1,
        warnings=[],
        withheld="0 of 12 populations withheld",
        unchecked="",
    )
    console = Console(file=io.StringIO(), width=400)
    print_summary(console, "Loans", summary, verbose=verbose)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def line_of(text: str, word: str) -> str:
    """The one line that begins with a word."""
    (line,) = (line for line in text.splitlines() if line.startswith(word))
    return line


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"value": 0.0, "low": 0.0, "high": 0.1135, "note": ""}, "0.0000 [0.000, 0.114]"),
        ({"value": 0.0, "low": 0.0, "high": 0.0, "note": "range"}, "0.0000 (0.000 to 0.000)"),
        ({"value": 2.5, "low": None, "high": None, "note": "no spread"}, "2.5000 (no spread)"),
        ({"value": 2.5, "low": None, "high": None, "note": ""}, "2.5000 (no interval)"),
        ({"value": None, "low": 0.0, "high": None, "note": "no upper end"}, "undefined"),
    ],
)
def test_the_ends_of_a_measure_are_printed_as_what_they_are(fields: dict[str, object], text: str) -> None:
    found = printed([{**OF, **fields, "state": "insufficient_evidence", "reason": "none"}], [])
    assert line_of(found, "lender").split("30", 1)[1].strip() == text
    assert "nan" not in found


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"value": 0.0707, "low": 0.031, "high": 0.1104},
            "Black +7.1 points [+3.1, +11.0] (at most 2.0 points)",
        ),
        (
            {"value": 0.743, "low": 0.6675, "high": 0.8122, "scale": "log", "limit": 0.8, "side": "at_least"},
            "Black 0.74 [0.67, 0.81] (at least 0.80)",
        ),
        ({"value": 0.0707, "low": None, "high": None}, "Black +7.1 points (at most 2.0 points)"),
        ({"value": 0.0707, "low": 0.031, "high": 0.1104, "limit": None}, "Black +7.1 points [+3.1, +11.0]"),
        ({"value": None}, ""),
    ],
)
@pytest.mark.parametrize(
    ("state", "words", "told"),
    [
        ("breach", "outside limit", True),
        ("within", "inside limit", False),
        ("insufficient_evidence", "too little to say", True),
        ("no_limit", "no limit set", True),
        ("descriptive", "described only", True),
    ],
)
def test_a_theory_is_a_line_of_state_effects_and_why(
    state: str, words: str, told: bool, fields: dict[str, object], text: str
) -> None:
    whole = WHOLE | {"state": state, "reason": "THE WHY"}
    found = printed([], [whole, ROW | fields | {"state": state, "reason": "a row's"}])
    why = "THE WHY" if told or not text else ""
    line = line_of(found, "Are equals treated alike?").removeprefix("Are equals treated alike?").strip()
    assert [part.strip() for part in line.split("  ") if part.strip()] == [
        part for part in ("direct", words, "; ".join(each for each in (why, text) if each)) if part
    ]
    assert "nan" not in found
    assert "None" not in found


def test_rows_that_are_not_within_are_listed_on_request() -> None:
    rows = [
        WHOLE | {"state": "breach", "reason": "one group"},
        ROW | {"group": "Black", "value": 0.07, "low": 0.03, "high": 0.11, "state": "breach", "reason": "beyond"},
        ROW | {"group": "Asian", "value": 0.0, "low": -0.01, "high": 0.01, "state": "within", "reason": "inside"},
        ROW | {"group": "few", "state": "within", "withheld": True, "reason": "withheld: it rests on few people"},
    ]
    open_rows = [line for line in printed([], rows, verbose=True).splitlines() if line.startswith("direct")]
    assert ["race: Black" in line for line in open_rows] == [True, False]
    assert "outside limit" in open_rows[0]
    assert "race: few" in open_rows[1]
    assert "too little to say (withheld)" in open_rows[1]
    assert "groups that are not within" not in printed([], rows)
