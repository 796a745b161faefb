"""Curves over a numeric axis: what is drawn, said and tabled of them."""

import math
import re

import pytest

from research.reproduction_page import Curve, Curves
from tasks.reporting.charts.layout import NARROW, WIDE, element, svg
from tasks.reporting.charts.values import Unit

POINTS = ((0.0, 0.8), (0.5, math.nan), (1.0, 0.4), (2.0, 0.2))
CHART = Curves(
    "CF by lambda", Unit("lambda"), Unit("CF"), (Curve("women", POINTS), Curve("<b>men</b>", ((0.0, 0.1), (2.0, 0.3))))
)


def test_a_point_without_a_value_is_a_gap_and_no_number():
    (line,) = (
        shape.d
        for shape in CHART.draw(WIDE).shapes
        if getattr(shape, "kind", "") == "bar"
        and "M" in shape.d
        and shape.d.count("L") == 1
        and shape.d.count("M") == 2
    )
    assert "nan" not in line
    assert ("women", "0.5", "no value") in CHART.table().rows


def test_description_says_where_a_curve_begins_and_ends():
    assert "from 0.8 at 0 to 0.2 at 2, between 0.2 and 0.8." in CHART.description()[1]


def test_every_curve_has_a_panel_inside_the_sheet():
    for sheet in (WIDE, NARROW):
        drawn = CHART.draw(sheet)
        numbers = [float(n) for shape in drawn.shapes if hasattr(shape, "d") for n in re.findall(r"-?[\d.]+", shape.d)]
        assert max(numbers) <= max(drawn.width, drawn.height)
        assert min(numbers) >= -8  # radii of circles come with their sign
        assert sum(getattr(shape, "bold", False) for shape in drawn.shapes) == 2


def test_names_of_curves_are_escaped():
    assert "<b>men" not in svg(CHART, "a") + element(CHART, "b")


def test_curves_without_any_value_are_refused():
    with pytest.raises(ValueError, match="no value: nothing"):
        Curves("nothing", Unit("x"), Unit("y"), (Curve("a", ((0.0, math.nan),)),))
