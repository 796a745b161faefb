"""What holds of every chart: well-formed, escaped, inside its frame, all its numbers said, the same bytes each time."""

import math
from html.parser import HTMLParser
from itertools import chain, combinations

from conftest import examples
from drawn_charts import ARABIC, HEBREW, HOSTILE, LONG, UNBROKEN, points, texts, tree
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.reporting.charts.layout import NARROW, WIDE, element
from tasks.reporting.charts.matrix import Cell, Matrix, Row
from tasks.reporting.charts.rows import Forest, Steps
from tasks.reporting.charts.trend import Point, Series, Trend
from tasks.reporting.charts.values import (
    OF_100,
    POINTS,
    VERDICTS,
    WITHHELD,
    Mark,
    clean,
    ends_text,
    people,
    value_text,
    width,
)

VALUES = st.floats(-1e5, 1e5).map(lambda value: round(value, 3))
NAMES = st.text(max_size=90) | st.sampled_from([HOSTILE, HEBREW, ARABIC, LONG, UNBROKEN, "", "a]]>b", "漢字" * 40])
PEOPLE = st.none() | st.just(WITHHELD) | st.integers(0, 10**7)
STATES = st.sampled_from(["", *VERDICTS])
TAGS = {
    *("div", "svg", "title", "desc", "g", "path", "text", "details", "summary", "table", "caption", "thead", "tbody"),
    *("tr", "th", "td", "bdi"),
}


@st.composite
def fields(draw):
    """Fields of an estimate: withheld, not computed, without interval, with one, with an open one."""
    kind = draw(st.sampled_from(["withheld", "none", "point", "interval", "interval", "interval"]))
    value = {"withheld": WITHHELD, "none": None}.get(kind) or (None if kind == "none" else draw(VALUES))
    found = {"value": value, "n": draw(PEOPLE), "note": draw(NAMES), "state": draw(STATES)}
    if kind == "interval":
        below, above = (draw(st.floats(0, 1e5) | st.just(math.inf)) for _ in range(2))
        found |= {"low": value - below, "high": value + above}
    return found


LIMITS = st.none() | VALUES
SIDES = st.sampled_from(["at_least", "at_most"])
UNITS = st.sampled_from([POINTS, OF_100])
MARKS = st.builds(
    lambda fields, **rest: Mark(**fields, **rest),
    fields(),
    label=NAMES,
    detail=NAMES,
    reference=st.booleans(),
    limit=LIMITS,
)
ROWS = st.lists(MARKS, min_size=1, max_size=6).map(tuple)
FORESTS = st.builds(Forest, title=NAMES, unit=UNITS, rows=ROWS, limit=LIMITS, side=SIDES)
STEPS = st.builds(Steps, title=NAMES, unit=UNITS, rows=ROWS, limit=LIMITS, side=SIDES, bars=st.booleans())
POINTS_OF_YEARS = st.dictionaries(st.integers(2010, 2024), fields(), min_size=1, max_size=6).map(
    lambda years: tuple(Point(year=year, **fields) for year, fields in years.items())
)
TRENDS = st.builds(
    Trend,
    title=NAMES,
    unit=UNITS,
    series=st.lists(
        st.builds(Series, label=NAMES, points=POINTS_OF_YEARS, reference=st.booleans()), min_size=1, max_size=4
    ).map(tuple),
    breaks=st.lists(st.tuples(st.integers(2008, 2026), NAMES), max_size=2).map(tuple),
    limit=LIMITS,
    side=SIDES,
)


@st.composite
def matrices(draw):
    count = draw(st.integers(1, 7))
    cells = st.none() | fields().map(lambda fields: Cell(**fields))
    rows = st.builds(
        Row, label=NAMES, cells=st.lists(cells, min_size=count, max_size=count).map(tuple), reference=st.booleans()
    )
    columns = draw(st.lists(NAMES, min_size=count, max_size=count).map(tuple))
    return Matrix(
        title=draw(NAMES), columns=columns, rows=tuple(draw(st.lists(rows, min_size=1, max_size=4))), unit=POINTS
    )


ANY = FORESTS | STEPS | TRENDS | matrices()


def estimates(chart):
    match chart:
        case Forest():
            return list(chart.rows)
        case Trend():
            return [point for series in chart.series for point in series.points]
        case Matrix():
            return [cell for row in chart.rows for cell in row.cells if cell]


@settings(max_examples=examples(100))
@given(ANY)
def test_every_chart_is_well_formed_and_holds_no_tag_but_its_own(chart):
    found = tree(chart)
    assert {node.tag for node in found.iter()} <= TAGS
    seen = set()

    class Tags(HTMLParser):
        def handle_starttag(self, tag, attrs):
            seen.add(tag)
            assert not any(name.startswith("on") or name in ("href", "src", "style") for name, _ in attrs)

    Tags(convert_charrefs=True).feed(element(chart, "p"))
    assert seen <= TAGS


@settings(max_examples=examples(100))
@given(ANY)
def test_every_number_is_in_the_description_and_in_the_table(chart):
    found = tree(chart)
    unit = chart.unit
    said = [texts(node) for node in found.iter("desc")]
    assert said[0] == said[1]
    table = texts(found.find("details"))
    for each in estimates(chart):
        for printed in (value_text(each, unit), *(ends_text(each, unit) or ()), people(each.n)):
            assert printed in said[0]
            assert printed in table
    drawn = {text.strip() for node in found.iter("text") for text in node.itertext()}
    if isinstance(chart, Forest):
        wide = "".join(texts(node) for node in found.find("svg").iter("text"))
        assert all(value_text(each, unit) in wide for each in estimates(chart)), drawn


@settings(max_examples=examples(100))
@given(ANY)
def test_nothing_is_drawn_outside_the_frame(chart):
    for sheet in (WIDE, NARROW):
        drawing = chart.draw(sheet)
        assert drawing.width == sheet.width
        for shape in drawing.shapes:
            for x, y in corners(shape, drawing.size):
                assert -0.6 <= x <= drawing.width + 0.6, shape
                assert -0.6 <= y <= drawing.height + 0.6, shape


@settings(max_examples=examples(100))
@given(ANY)
def test_no_text_lies_on_another(chart):
    for sheet in (WIDE, NARROW):
        drawing = chart.draw(sheet)
        boxes = [(s.text, *chain(*corners(s, drawing.size))) for s in drawing.shapes if hasattr(s, "text")]
        for (one, l1, t1, r1, b1), (other, l2, t2, r2, b2) in combinations(boxes, 2):
            apart = min(r1, r2) - max(l1, l2) < 0.5 or min(b1, b2) - max(t1, t2) < 1.5
            assert apart, (one, other)


def corners(shape, size):
    """Ends of a text, or points of a path (of an arc: its ends and the circle's other side)."""
    if hasattr(shape, "text"):
        wide = width(shape.text, size, bold=shape.bold)
        left = shape.x - {"start": 0, "middle": wide / 2, "end": wide}[shape.anchor]
        return [(left, shape.y - 0.8 * size), (left + wide, shape.y + 0.25 * size)]
    return list(points(shape.d))


@settings(max_examples=examples(60))
@given(ANY)
def test_whole_names_are_in_the_table(chart):
    cells = [texts(node) for node in tree(chart).find("details").iter() if node.tag in ("th", "td")]
    match chart:
        case Forest():
            names = [row.label for row in chart.rows]
        case Trend():
            names = [series.label for series in chart.series]
        case Matrix():
            names = [*chart.columns, *(row.label for row in chart.rows)]
    assert all(any(clean(name) in cell for cell in cells) for name in names)
