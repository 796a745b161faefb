"""Numbers of drawings: one way of printing, by hand and against exact decimals."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.reporting.charts.values import (
    OF_100,
    POINTS,
    RATIO,
    WITHHELD,
    Estimate,
    Mark,
    ends_text,
    exact,
    number,
    people,
    shown,
    value_text,
)


@pytest.mark.parametrize(
    ("value", "low", "high", "printed"),
    [
        (-23.3, -30.0, -16.6, "−23 [−30, −17]"),
        (-13.8, -20.2, -7.4, "−14 [−20, −7]"),
        (-4.8, -5.8, -3.7, "−4.8 [−5.8, −3.7]"),
        (2.0, 0.8, 3.2, "+2 [+0.8, +3.2]"),
        (0.0, -2.0, 2.0, "0 [−2, +2]"),
        (0.0, -1.99, 1.99, "0 [−2, +2]"),
        (-0.04, -0.9, 0.94, "0 [−0.9, +0.9]"),
        (1234.0, -math.inf, math.inf, "+1,234 [−∞, +∞]"),
    ],
)
def test_points_as_the_specification_prints_them(value, low, high, printed):
    assert shown(Estimate(value=value, low=low, high=high), POINTS) == printed


def test_half_an_interval_of_two_points_is_wide():
    assert shown(Estimate(value=5.04, low=3.04, high=7.04), POINTS) == "+5 [+3, +7]"
    assert shown(Estimate(value=5.04, low=3.14, high=7.04), POINTS) == "+5 [+3.1, +7]"


def test_other_units():
    assert shown(Estimate(value=90.8, low=89.4, high=92.1), OF_100) == "90.8 [89.4, 92.1]"
    assert shown(Estimate(value=0.743, low=0.6675, high=0.8122), RATIO) == "0.74 [0.67, 0.81]"
    assert shown(Estimate(value=0.1, low=0.05, high=0.2), RATIO) == "0.1 [0.05, 0.2]", "no zeros behind a number"
    assert value_text(Estimate(value=-11.2), POINTS) == "−11"
    assert value_text(Estimate(value=WITHHELD), POINTS) == "withheld"
    assert value_text(Estimate(), POINTS) == ""
    assert ends_text(Estimate(value=1.0), POINTS) is None


def test_limits_keep_all_their_decimals():
    assert [exact(value, POINTS) for value in (-5, -2.5, -18.16, 0)] == ["−5", "−2.5", "−18.16", "0"]
    assert exact(0.8, RATIO) == "0.8"


def test_people():
    assert [people(n) for n in (0, 197, 43859, None, WITHHELD)] == ["0", "197", "43,859", "", "withheld"]


@given(st.floats(-1e9, 1e9), st.integers(0, 3), st.booleans())
def test_a_number_is_the_nearest_decimal(value, places, signed):
    text = number(value, places, signed)
    back = Decimal(text.replace("−", "-").replace(",", ""))
    assert back == round(Decimal(value), places)
    assert text.startswith("−") == (back < 0)
    assert text.startswith("+") == (signed and back > 0)
    assert "-" not in text


@pytest.mark.parametrize(
    "wrong",
    [
        {"value": math.nan},
        {"value": math.inf},
        {"value": 1.0, "low": 0.0},
        {"value": 1.0, "low": 2.0, "high": 0.0},
        {"value": 1.0, "low": math.nan, "high": 2.0},
        {"value": WITHHELD, "low": 0.0, "high": 2.0},
        {"value": None, "low": 0.0, "high": 2.0},
        {"value": "hidden"},
    ],
)
def test_what_is_no_estimate_is_refused(wrong):
    with pytest.raises(ValueError, match=r"interval|value"):
        Estimate(**wrong)


@pytest.mark.parametrize(
    ("mark", "sentence"),
    [
        (Mark(label="a", value=None), "Not computed."),
        (Mark(label="a", value=WITHHELD), "Withheld."),
        (Mark(label="a", value=WITHHELD, note="Fewer than 10 people."), "Withheld. Fewer than 10 people."),
        (Mark(label="a", value=WITHHELD, note="This rate is withheld."), "This rate is withheld."),
        (Mark(label="a", value=-11.0), "No interval is published."),
        (Mark(label="a", value=-11.0, note="Too few."), "Too few."),
    ],
)
def test_a_sentence_stands_where_no_mark_can(mark, sentence):
    assert mark.point is None
    assert mark.sentence == sentence
