"""Caterpillar: many intervals in one order, all in few paths, and each of them in words and in the table."""

from dataclasses import replace

import pytest

from tasks.reporting.charts.layout import NARROW, WIDE, PathShape, element
from tasks.reporting.charts.rows import Caterpillar
from tasks.reporting.charts.values import POINTS, Mark

ROWS = tuple(
    Mark(label=f"L{n}", value=n - 5.0, low=n - 8.0, high=n - 2.0, n=100 + n, state="outside" if n > 15 else "within")
    for n in range(20)
)
CHART = Caterpillar(title="Pooled", unit=POINTS, rows=ROWS, limit=10.0, side="at_most")


@pytest.mark.parametrize("sheet", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("times", [1, 60])
def test_rows_lie_inside_whatever_their_number(sheet, times):
    drawn = replace(CHART, rows=ROWS * times).draw(sheet)
    assert len(drawn.shapes) < 60, "paths are shared"
    assert drawn.height < 4_000
    numbers = [
        float(each)
        for shape in drawn.shapes
        if isinstance(shape, PathShape)
        for each in shape.d.split()
        if is_number(each)
    ]
    assert max(numbers) <= max(drawn.height, drawn.width)


def is_number(text):
    return text.replace(".", "").replace("-", "").isdigit()


def test_every_row_is_in_the_words_and_in_the_table():
    said = CHART.description()
    assert len(said) == 22
    assert "100" in said[1]
    assert said[-1] == "Dashed line: limit +10; above it: outside the limit."
    table = CHART.table()
    assert [row[0] for row in table.rows] == [row.label for row in ROWS]
    assert table.rows[0][2] == "\N{MINUS SIGN}8 to \N{MINUS SIGN}2"


def test_labels_are_text():
    made = str(element(replace(CHART, rows=(replace(ROWS[0], label="<b>&"), *ROWS[1:])), "c"))
    assert "<b>&" not in made
    assert "&lt;b&gt;&amp;" in made


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: replace(CHART, rows=()),
        lambda: replace(CHART, rows=(Mark(label="a", value=1.0),)),
        lambda: replace(CHART, limit=float("inf")),
        lambda: replace(CHART, rows=(replace(ROWS[0], state="odd"),)),
    ],
)
def test_what_cannot_be_drawn_is_refused(wrong):
    with pytest.raises(ValueError, match=r"."):
        wrong()
