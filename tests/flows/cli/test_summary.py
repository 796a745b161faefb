"""What the command prints at the end of an audit: intervals, ranges and what has neither; states of theories."""

import io
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from flows.cli.terminal import print_audit, print_run
from flows.runs.record import Summary
from schemas.questions import QUESTIONS
from schemas.tables.verdicts import VERDICTS
from schemas.terms import State, Theory

OF = {"decision_maker": "lender", "protected_attribute": "race", "group": "Black", "measure": "approval_rate", "n": 30}
NOTHING = dict.fromkeys(column.name for column in VERDICTS.columns) | {"withheld": False}
WHOLE = NOTHING | {
    "theory": "similar_applicants",
    "role": "theory",
    "protected_attribute": "",
    "group": "",
    "measure": "",
}
ROW = NOTHING | {
    **{"theory": "similar_applicants", "role": "primary", "protected_attribute": "race", "group": "Black"},
    **{"measure": "adjusted_denial_effect", "scale": "linear", "limit": 0.02, "side": "at_most", "bias": 0.0},
}


QUESTION = {
    "theory": "approval_rates",
    "question": "Are approval rates different?",
    "state": "outside",
    "sentence": "White 91, Black 68 of 100.",
}
REPORT = {
    "title": "Loans",
    "audit": "loans",
    "year": 2024,
    "run": "loans-2024-0123456789",
    "state": "inconclusive",
    "source": {"rows": {"shown": "1,989"}},
    "headline": {"words": "Black applicants were approved less often."},
    "questions": [QUESTION | {"state_words": "Outside the limit"}],
    "figures": [],
    "next": [{"words": f"Read files {n}.", "command": ""} for n in range(9)],
    "cannot": [{"words": "Why decisions differ."}],
}


def summary_of(headline: list[dict[str, Any]], verdicts: list[dict[str, Any]], **fields: Any) -> Summary:
    """The summary of an audit with these rows."""
    made = Summary(
        run="run",
        state=State.INCONCLUSIVE,
        headline=headline,
        titles={"Decisions": {"approval_rate": "approved"}},
        verdicts=verdicts,
        report="report.html",
        source_summary={"source": "loans.csv", "sha256": "0123456789ab", "rows": 30, "year": None},
        computed=1,
        warnings=[],
        withheld="0 of 12 populations withheld",
        unchecked="",
        withheld_groups=[],
        not_run=[],
    )
    return replace(made, **fields)


def printed(headline: list[dict[str, Any]], verdicts: list[dict[str, Any]], *, verbose: bool = True) -> str:
    """What is printed of an audit with these rows, by default with its tables."""
    return shown(summary_of(headline, verdicts), verbose=verbose)


def shown(summary: Summary, *, verbose: bool = False, terminal: bool = False) -> str:
    """What is printed of an audit, to a pipe or on a terminal of 100 columns."""
    console = Console(file=io.StringIO(), width=100, force_terminal=terminal)
    print_audit(console, REPORT, "11 of the rows read", summary, verbose=verbose)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_the_first_page_is_short_and_has_its_headline_on_the_third_line() -> None:
    rows = [WHOLE | {"state": "outside", "reason": "one group"}]
    lines = shown(summary_of([OF | {"value": 0.5, "low": 0.4, "high": 0.6, "note": ""}], rows)).splitlines()
    assert lines[2] == "Black applicants were approved less often."
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 100
    assert all(line == line.rstrip() for line in lines)
    assert any("Left out: 11 of the rows read." in line for line in lines)
    assert lines[-2].endswith("exit code 3: inconclusive, or no limit set")
    assert lines[-1] == "report  report.html"


def test_the_exit_code_is_that_of_the_audit_whatever_is_withheld_from_its_report() -> None:
    assert "exit code 1: " in shown(summary_of([], [], state=State.OUTSIDE))


def test_methods_that_did_not_run_and_groups_withheld_are_named() -> None:
    summary = summary_of([], [], not_run=["Not run: cst (why)."], withheld_groups=["Withheld: Black: why"])
    assert "Not run: cst (why). Withheld: Black: why" in " ".join(shown(summary).split())


def test_what_has_no_room_on_the_first_page_is_there_on_request() -> None:
    summary = summary_of([], [], not_run=["Not run: " + "cst " * 600], unchecked="Decision column not checked.")
    assert "more with --verbose." in shown(summary)
    assert len(shown(summary).splitlines()) <= 24
    assert summary.not_run[0].strip() in shown(summary, verbose=True).splitlines()
    assert summary.unchecked in shown(summary, verbose=True).splitlines()


def test_states_are_coloured_on_a_terminal_only() -> None:
    summary = summary_of([], [])
    assert "\x1b" not in shown(summary)
    assert "\x1b[1;31mOutside the limit" in shown(summary, terminal=True)
    assert shown(summary) == re.sub(r"\x1b\[[\d;]*m", "", shown(summary, terminal=True))


def test_the_short_form_is_run_state_and_report() -> None:
    console = Console(file=io.StringIO(), width=20)
    print_run(console, summary_of([], []))
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert said == "run     run\nstate   Inconclusive\nreport  report.html\n"


def line_of(text: str, word: str) -> str:
    """The one line that begins with a word."""
    return next(line for line in text.splitlines() if line.startswith(word))


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
    found = printed([{**OF, **fields, "state": "inconclusive", "reason": "none"}], [])
    assert line_of(found, "lender").split("\t")[3] == text
    assert "nan" not in found


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"value": 0.0707, "low": 0.031, "high": 0.1104},
            "Black -7 points [-11, -3] (at least -2 points)",
        ),
        (
            {"value": 0.743, "low": 0.6675, "high": 0.8122, "scale": "log", "limit": 0.8, "side": "at_least"},
            "Black 0.74 [0.67, 0.81] (at least 0.80)",
        ),
        ({"value": 0.0707, "low": None, "high": None}, "Black -7.1 points (at least -2 points)"),
        ({"value": 0.0707, "low": 0.031, "high": 0.1104, "limit": None}, "Black -7 points [-11, -3]"),
        ({"value": None}, ""),
    ],
)
@pytest.mark.parametrize(
    ("state", "words", "told"),
    [
        ("outside", "Outside the limit", True),
        ("within", "Within the limit", False),
        ("inconclusive", "Inconclusive", True),
        ("no_limit", "No limit set", True),
        ("information", "For information", True),
    ],
)
def test_a_theory_is_a_line_of_state_effects_and_why(
    state: str, words: str, told: bool, fields: dict[str, object], text: str
) -> None:
    whole = WHOLE | {"state": state, "reason": "THE WHY"}
    theory = "approval_rates" if fields.get("scale") == "log" else "similar_applicants"
    whole, row = whole | {"theory": theory}, ROW | {"theory": theory}
    found = printed([], [whole, row | fields | {"state": state, "reason": "a row's"}])
    why = "THE WHY" if told or not text else ""
    effects = "; ".join(each for each in (why, text) if each)
    assert line_of(found, QUESTIONS[Theory(theory)].short).split("\t")[1:] == [
        part for part in (words, effects) if part
    ]
    assert "nan" not in found
    assert "None" not in found


def test_a_price_outside_its_limit_is_named_in_the_line_of_its_question() -> None:
    whole = WHOLE | {"state": "outside", "reason": "beyond the limit: Black (price)"}
    row = ROW | {"value": 0.0, "low": -0.01, "high": 0.01, "state": "within"}
    price = ROW | {"role": "adds", "measure": "rate_spread_effect", "limit": 0.1, "value": 0.3, "low": 0.2, "high": 0.4}
    lines = [
        line_of(printed([], [whole, row, price | {"state": state}]), "Similar applicants").split("\t")[-1]
        for state in ("outside", "within")
    ]
    added = "; Black price +0.300 percentage points [+0.200, +0.400] (at most 0.1 percentage points)"
    assert lines[0] == lines[1] + added
    assert lines[1].startswith("beyond the limit: Black (price); Black +0.0 points")


def test_rows_that_are_not_within_are_listed_on_request() -> None:
    rows = [
        WHOLE | {"state": "outside", "reason": "one group"},
        ROW | {"group": "Black", "value": 0.07, "low": 0.03, "high": 0.11, "state": "outside", "reason": "beyond"},
        ROW | {"group": "Asian", "value": 0.0, "low": -0.01, "high": 0.01, "state": "within", "reason": "inside"},
        ROW | {"group": "few", "state": "within", "withheld": True, "reason": "withheld: it rests on few people"},
    ]
    lines = printed([], rows, verbose=True).split("groups that are not within")[1].splitlines()
    open_rows = [line for line in lines if line.startswith("Similar applicants")]
    assert ["race: Black" in line for line in open_rows] == [True, False]
    assert "Outside the limit" in open_rows[0]
    assert "race: few" in open_rows[1]
    assert "Inconclusive (withheld)" in open_rows[1]
    assert "groups that are not within" not in printed([], rows, verbose=False)
