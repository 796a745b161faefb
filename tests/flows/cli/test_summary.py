"""What the command prints at the end of an audit: intervals, ranges and what has neither."""

import io

import pytest
from rich.console import Console

from flows.cli.summary import print_summary
from flows.runs.record import Summary
from schemas.terms import State

OF = {"decision_maker": "lender", "protected_attribute": "race", "group": "Black", "measure": "approval_rate", "n": 30}


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
    row = {**OF, **fields, "state": "insufficient_evidence", "reason": "none"}
    titles = {"Decisions": {"approval_rate": "approved"}}
    summary = Summary(
        run="run",
        state=State.INSUFFICIENT_EVIDENCE,
        headline=[row],
        titles=titles,
        checks=[row],
        report="report.html",
        read={"source": "loans.csv", "sha256": "0123456789ab", "rows": 30, "year": None},
        computed=1,
        warnings=[],
        unchecked="",
    )
    console = Console(file=io.StringIO(), width=160)
    print_summary(console, "Loans", summary)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert printed.count(text) == 2, "among the groups and among the checks"
    assert "nan" not in printed
