"""How numbers are written: three significant digits, no sign on zero, and no interval that does not cover."""

import math

import pytest
from evidence_runs import row
from hypothesis import given
from hypothesis import strategies as st

from schemas.questions import STATES
from schemas.terms import State
from tasks.reporting import text as reporting_text
from tasks.reporting.declared import Form, Unit
from tasks.reporting.evidence_tables import measured
from tasks.reporting.text import written


def plain(text: str) -> str:
    """With plain spaces and minus signs."""
    return text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{MINUS SIGN}", "-")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0, "0"), (3.9e-16, "0"), (0.09996, "0.1"), (0.9996, "1"), (9.996, "10"), (99.96, "100")),
        *(
            (0.00012, "1.2e-04"),
            (-0.0316, "-0.0316"),
            (999.6, "1,000"),
            (12345.6, "12,346"),
            (1.5, "1.5"),
            (0.27, "0.27"),
        ),
    ],
)
def test_three_significant_digits(value: float, text: str) -> None:
    assert plain(reporting_text.significant(value)) == text


@given(st.floats(0.001, 999.4))
def test_what_is_written_is_within_half_of_its_last_digit(value: float) -> None:
    digits = plain(reporting_text.significant(value)).replace(",", "")
    assert math.isclose(float(digits), value, rel_tol=0.0051)
    assert len(digits.replace(".", "").lstrip("0")) <= 3
    assert "." not in digits or digits[-1] != "0", "no more digits than a rounded number has"


@pytest.mark.parametrize(
    ("value", "unit", "form", "text"),
    [
        (0.675, "rate", "", "67.5 %"),
        (1.0, "rate", "", "100 %"),
        (0.1234, "points", "", "+12.3 pp"),
        (-0.1234, "rate", "difference", "-12.3 pp"),
        *((each, "points", "", "0 pp") for each in (0.0, 1e-12, -1e-12)),
        (0.74321, "rate", "ratio", "0.743"),
        (1234.0, "count", "", "1,234"),
        (2.5, "count", "", "2.5"),
        (3.0, "count", "size_matched_difference", "+3"),
        (0.0004, "p", "", "≤ 0.001"),
        (0.001, "p", "", "≤ 0.001"),
        (0.012, "p", "", "0.012"),
    ],
)
def test_units_and_forms(value: float, unit: Unit, form: Form, text: str) -> None:
    assert plain(written(value, unit, form)) == text


def test_an_open_interval_and_one_without_spread_are_said_in_words() -> None:
    open_ended = measured(row("Black", "approval_rate_ratio", 2.0, low=1.1, note="no upper end"), "rate", "ratio")
    flat = measured(row("Black", "approval_rate", 1.0, note="no spread"), "rate")
    assert open_ended.cell.detail == "[1.1, \N{INFINITY})"
    assert flat.cell.detail == "(no spread)"
    assert (open_ended.note, flat.note) == ("", "")


def test_what_qualifies_an_interval_is_told_where_the_interval_is() -> None:
    poor = row("Black", "adjusted_effect", 0.1, low=0.0, high=0.2, note="poor support")
    assert measured(poor, "points").note == "poor support"
    assert (
        measured(row("Black", "burden", 0.1, note=f"poor support; {STATES[State.INFORMATION].words}"), "number").note
        == ""
    )


def test_states_are_printed_in_their_words() -> None:
    cell = reporting_text.state_cell(State.OUTSIDE)
    assert (cell.text, cell.kind, cell.state) == ("Outside the limit", "state", "outside")


def test_shares_below_a_hundredth_of_a_percent_have_no_power_of_ten() -> None:
    assert plain(written(1.72e-06, "rate", "")) == "< 0.01 %"
    assert plain(written(-2e-05, "points", "")) == "< 0.01 pp"
    assert plain(written(0.00012, "rate", "")) == "0.012 %"
