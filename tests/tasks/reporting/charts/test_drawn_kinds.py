"""Each kind of chart: its structure, its description, and what it draws in hand-worked cases."""

import math
import re
import subprocess
import sys
from dataclasses import replace
from itertools import chain
from xml.etree import ElementTree

import drawn_charts
import pytest
from conftest import REPOSITORY
from drawn_charts import BREACH, CHARTS, FEW, HEBREW, LONG, WITHIN, points, texts, tree

from tasks.reporting.charts.layout import DARK, LIGHT, NARROW, WIDE, element
from tasks.reporting.charts.matrix import Cell, Matrix, Row
from tasks.reporting.charts.rows import Forest
from tasks.reporting.charts.trend import Point, Series, Trend
from tasks.reporting.charts.values import POINTS, VERDICTS, WITHHELD, Mark


@pytest.mark.parametrize("name", CHARTS)
def test_a_drawing_is_an_image_with_name_and_description_and_hides_what_is_inside(name):
    found = tree(CHARTS[name], name)
    svgs = found.findall("svg")
    assert [svg.get("class") for svg in svgs] == ["wide", "narrow"]
    assert [svg.get("display") for svg in svgs] == [None, "none"], "one is shown without a style sheet"
    for svg in svgs:
        assert svg.get("role") == "img"
        assert [child.tag for child in svg] == ["title", "desc", "g"]
        assert svg.get("aria-labelledby") == svg[0].get("id")
        assert svg.get("aria-describedby") == svg[1].get("id")
        assert svg[2].get("aria-hidden") == "true"
        assert svg[0].text
        assert float(svg[2].get("font-size")) >= 13
    details = found.find("details")
    assert details.get("open") is None
    assert details.find("summary").text == "Show as a table"
    assert details.find(".//caption").text == svgs[0][0].text
    assert all(th.get("scope") == "col" and texts(th).strip() for th in details.findall(".//thead//th"))
    assert all(row[0].tag == "th" and row[0].get("scope") == "row" for row in details.findall(".//tbody/tr"))


def test_the_structure_of_the_first_picture():
    """Rows are drawn the same way each: caps and whisker, mark, numbers, state; a change here is a change of form."""
    svg = tree(drawn_charts.DECIDE).find("svg")
    kinds = [f"{node.tag} {node.get('class')}" for node in svg[2]]
    row = ["text ink", "text soft", "text ink", "text breach", "path fill breach", "path thin paper"]
    last = ["text ink", "text soft", "text soft", "text ink"]
    behind = ["path fill shade", "path faint line", "path faint line", "path thin ink", "path dashed breach"]
    marks = ["path bar breach", "path fill breach"] * 2 + ["path bar accent", "path fill accent"]
    axis = ["text ink"] * 5 + ["text soft"]
    assert kinds == [*behind, *row, "text breach", *row, *last, *marks, *axis]
    assert [text for text in svg[2].itertext() if text.strip()][:5] == [
        *("All applicants", "as decided, n\N{NO-BREAK SPACE}197", "−23 [−30, −17]", "Outside the limit", "limit −5"),
    ]


def test_the_description_of_the_first_picture():
    assert tree(drawn_charts.DECIDE).find("svg/desc").text == (
        "3 rows; unit: points of approval. "
        "All applicants (as decided): −23, 95 % interval −30 to −17, n 197, Outside the limit. "
        "Adjusted (18 columns on file): −14, 95 % interval −20 to −7, n 197, Outside the limit. "
        "Nearest 15 (similar white applicants): −18, 95 % interval −25 to −12, n 197. "
        "Dashed line: limit −5; below it: outside the limit."
    )


def test_ids_are_unique_by_the_prefix():
    page = ElementTree.fromstring(
        f"<main>{element(drawn_charts.DECIDE, 'a')}{element(drawn_charts.YEARS, 'b-2')}</main>"
    )
    ids = [node.get("id") for node in page.iter() if node.get("id")]
    assert len(ids) == len(set(ids)) == 8
    for wrong in ("", "1a", "a b", 'a"', "ä"):
        with pytest.raises(ValueError, match="prefix"):
            element(drawn_charts.DECIDE, wrong)


def test_without_an_interval_there_is_a_sentence_and_no_mark():
    row = Mark(label="a", value=-11.0, note="Only 3 of 20 resamples converged.")
    whole = Mark(label="b", value=-12.0, low=-15.0, high=-9.0)
    for sheet in (WIDE, NARROW):
        drawing = Forest(title="t", unit=POINTS, rows=(row, whole)).draw(sheet)
        marks = [s for s in drawing.shapes if getattr(s, "kind", "") in ("fill", "hollow")]
        assert len(marks) == 1
        assert "Only 3 of 20" in " ".join(getattr(shape, "text", "") for shape in drawing.shapes)
    found = tree(Forest(title="t", unit=POINTS, rows=(row, Mark(label="c", value=None))))
    for part in (found.find("svg/desc"), found.find("details")):
        assert "Only 3 of 20 resamples converged." in texts(part)
        assert "Not computed." in texts(part)


def test_rows_without_any_mark_have_no_axis():
    shapes = Forest(title="t", unit=POINTS, rows=(Mark(label="a", value=WITHHELD),), limit=-5).draw(WIDE).shapes
    assert [s.text for s in shapes if hasattr(s, "text")] == ["a", "withheld", "Withheld."]


def test_a_limit_has_a_shaded_side_though_it_is_the_least_value():
    row = Mark(label="a", value=0.3, low=-0.4, high=1.0)
    shapes = Forest(title="t", unit=POINTS, rows=(row,), limit=-2).draw(WIDE).shapes
    assert [s for s in shapes if getattr(s, "colour", "") == "shade"]


def test_a_name_that_is_cut_is_whole_in_its_title_and_keeps_its_direction():
    rows = tuple(Mark(label=name, value=None) for name in (LONG, HEBREW, "Black"))
    drawing = Forest(title="t", unit=POINTS, rows=rows).draw(WIDE)
    names = [s for s in drawing.shapes if hasattr(s, "text") and s.bold]
    assert [s.title for s in names if s.title] == [LONG] * 3, "on each of its lines"
    hebrew = [s.text for s in names if any("א" <= char <= "ת" for char in s.text) or "12" in s.text]
    assert len(hebrew) == 3
    assert all(line.startswith("\u2067") and line.endswith("\u2069") for line in hebrew)


def test_withheld_reads_withheld_everywhere():
    found = tree(Forest(title="t", unit=POINTS, rows=(Mark(label="a", value=WITHHELD, n=WITHHELD),)))
    for part in (*found.iter("desc"), *found.iter("g"), found.find("details")):
        assert "withheld" in texts(part)


def test_intervals_that_leave_the_axis_end_in_an_arrow():
    far = Mark(label="far", value=-10.0, low=-math.inf, high=math.inf)
    near = Mark(label="near", value=-10.0, low=-15.0, high=-5.0)
    for rows, arrows in (((near,), 0), ((near, far), 2), ((near, replace(far, high=-4.0)), 1)):
        drawing = Forest(title="t", unit=POINTS, rows=rows).draw(WIDE)
        heads = [s for s in drawing.shapes if getattr(s, "kind", "") == "fill" and s.d.endswith("Z") and "a" not in s.d]
        assert len(heads) == arrows


def test_marks_of_states_differ_without_colour():
    rows = [Mark(label=state, value=-10.0, low=-15.0, high=-5.0, state=state) for state in (BREACH, WITHIN, FEW, "")]
    rows.append(replace(rows[3], reference=True))
    forms = set()
    for row in rows:
        shapes = Forest(title="t", unit=POINTS, rows=(row,)).draw(WIDE).shapes
        mark = [s for s in shapes if getattr(s, "kind", "") in ("fill", "hollow")][-1]
        forms.add((mark.kind, re.sub(r"[-\d. ]+", " ", mark.d)))
    assert len(forms) == 4, "diamond, filled circle (inside, and no verdict), hollow circle, square"
    assert len({state.icon for state in VERDICTS.values()}) == 6


def centre(shape):
    """The middle of a path."""
    xs, ys = zip(*points(shape.d), strict=True)
    return (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2


@pytest.mark.parametrize("sheet", [WIDE, NARROW])
def test_places_of_marks_ends_and_limit_by_hand(sheet):
    """The axis goes from -30 to +10, so that a point is a fortieth of it."""
    shapes = drawn_charts.DECIDE.draw(sheet).shapes
    ticks = {s.text: s.x for s in shapes if getattr(s, "anchor", "") == "middle"}
    zero = next(s for s in shapes if getattr(s, "kind", "") == "thin" and s.colour == "ink")
    line = next(s for s in shapes if getattr(s, "kind", "") == "dashed")
    left, point = ticks["−10"] - (ticks["0"] - ticks["−10"]) * 2, (ticks["0"] - ticks["−10"]) / 10
    assert centre(zero)[0] == pytest.approx(ticks["0"], abs=0.11)
    assert centre(line)[0] == pytest.approx(ticks["0"] - 5 * point, abs=0.11)
    bars = [s for s in shapes if getattr(s, "kind", "") == "bar"]
    marks = [s for s in shapes if getattr(s, "kind", "") == "fill" and s.colour != "shade"][-3:]
    for row, bar, mark in zip(drawn_charts.DECIDE.rows, bars, marks, strict=True):
        xs = [x for x, _ in points(bar.d)]
        assert min(xs) == pytest.approx(left + (row.low + 30) * point, abs=0.2)
        assert max(xs) == pytest.approx(left + (row.high + 30) * point, abs=0.2)
        assert centre(mark)[0] == pytest.approx(left + (row.value + 30) * point, abs=0.2)
        assert centre(mark)[1] == pytest.approx(centre(bar)[1], abs=0.2)


@pytest.mark.parametrize(("side", "left"), [("at_least", True), ("at_most", False)])
def test_the_side_beyond_the_limit_is_shaded(side, left):
    for sheet in (WIDE, NARROW):
        shapes = replace(drawn_charts.DECIDE, side=side).draw(sheet).shapes
        line = next(s for s in shapes if getattr(s, "kind", "") == "dashed")
        shade = next(s for s in shapes if getattr(s, "colour", "") == "shade")
        assert (centre(shade)[0] < centre(line)[0]) == left
    panel = replace(drawn_charts.ONE_LINE, side=side).draw(WIDE).shapes
    line = next(s for s in panel if getattr(s, "kind", "") == "dashed")
    shade = next(s for s in panel if getattr(s, "colour", "") == "shade")
    assert (centre(shade)[1] > centre(line)[1]) == left, "values go upwards"


def test_the_reference_group_is_grey():
    for chart in (drawn_charts.RATES, drawn_charts.OUTCOMES, drawn_charts.YEARS):
        shapes = chart.draw(WIDE).shapes
        names = [s for s in shapes if getattr(s, "text", "").startswith("white") and s.bold]
        assert [name.colour for name in names] == ["soft"]
    squares = [
        s for s in drawn_charts.YEARS.draw(WIDE).shapes if getattr(s, "kind", "") == "fill" and s.colour == "soft"
    ]
    assert len(squares) == 8 * 3 + 1, "its eight years, behind both groups too, and the legend"


def test_all_panels_have_the_same_axis():
    texts_of_axis = [s.text for s in drawn_charts.YEARS.draw(WIDE).shapes if getattr(s, "anchor", "") == "end"]
    assert texts_of_axis == ["0", "20", "40", "60", "80", "100"] * 3


def test_rows_with_limits_of_their_own_have_their_lines():
    shapes = drawn_charts.OWN_LIMITS.draw(WIDE).shapes
    words = [s.text for s in shapes if getattr(s, "text", "").startswith("limit")]
    assert words == ["limit −18.2", "limit −2"], "none over the row without a mark"
    assert len([s for s in shapes if getattr(s, "kind", "") == "dashed"]) == 2


def test_a_ladder_is_joined_and_a_way_has_bars():
    stairs = [s for s in drawn_charts.LADDER.draw(WIDE).shapes if getattr(s, "kind", "") == "thin" and "H" in s.d]
    assert [stair.d.count("M") for stair in stairs if stair.colour == "soft"] == [4], "between five marks"
    rows = (*drawn_charts.LADDER.rows[:4], replace(drawn_charts.LADDER.rows[4], apart=True))
    shapes = replace(drawn_charts.LADDER, rows=rows).draw(WIDE).shapes
    stairs = [s for s in shapes if getattr(s, "kind", "") == "thin" and "H" in s.d and s.colour == "soft"]
    assert [stair.d.count("M") for stair in stairs] == [3], "none to what is no step"
    bars = [s for s in drawn_charts.ROUTES.draw(WIDE).shapes if getattr(s, "kind", "") == "fill"]
    lengths = [max(x for x, _ in points(bar.d)) - min(x for x, _ in points(bar.d)) for bar in bars]
    assert [length / lengths[0] for length in lengths] == pytest.approx([1, 51 / 64, 22 / 64], abs=0.002)


def test_no_line_crosses_a_gap_or_a_break():
    """White: 8 years, a break before the third: 6 lines of 7. Hispanic: 2016 to 2017, 2022 to 2023."""
    shapes = drawn_charts.YEARS.draw(NARROW).shapes
    lines = [s.d.count("M") for s in shapes if getattr(s, "kind", "") == "thin" and s.colour in ("soft", "accent")]
    assert lines.count(6) >= 2
    assert 2 in lines
    dotted = [s for s in shapes if getattr(s, "kind", "") == "dotted"]
    assert len(dotted) == 4, "a break in each panel, and in the legend"


def test_columns_that_do_not_fit_go_below_each_other_or_are_exchanged():
    stages = drawn_charts.STANDING.draw(NARROW)
    assert [s.text for s in stages.shapes if hasattr(s, "text")][:3] == ["2021", "2022", "2023"], "years as columns"
    many = Matrix(
        title="t",
        columns=tuple(f"column{i}" for i in range(12)),
        rows=tuple(Row(label=f"row{i}", cells=(Cell(state=WITHIN),) * 12) for i in range(12)),
    )
    found = [s.text for s in many.draw(NARROW).shapes if getattr(s, "text", "")]
    assert {*many.columns, *(row.label for row in many.rows)} < set(found)
    assert found.count("row0") > 1 or found.count("column0") > 1, "labels are repeated in each block"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Forest(title="t", unit=POINTS, rows=()),
        lambda: Forest(title="t", unit=POINTS, rows=(Mark(label="a", state="fine"),)),
        lambda: Forest(title="t", unit=POINTS, rows=(Mark(label="a"),), limit=math.inf),
        lambda: Trend(title="t", unit=POINTS, series=()),
        lambda: Trend(title="t", unit=POINTS, series=(Series(label="a", points=(Point(year=1),) * 2),)),
        lambda: Matrix(title="t", columns=(), rows=()),
        lambda: Matrix(title="t", columns=("a",), rows=(Row(label="b", cells=()),)),
        lambda: Matrix(title="t", columns=("a",), rows=(Row(label="b", cells=(Cell(value=1.0),)),)),
    ],
)
def test_what_cannot_be_drawn_is_refused(wrong):
    with pytest.raises(ValueError, match=r"."):
        wrong()


def test_the_same_bytes_in_every_process():
    code = "import drawn_charts, hashlib; print(hashlib.sha256(drawn_charts.page().encode()).hexdigest())"
    path = f"{REPOSITORY}:{REPOSITORY / 'tests' / 'material'}"
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": path, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_no_charting_library_and_no_frames_are_imported():
    kinds = ", ".join(f"tasks.reporting.charts.{kind}" for kind in ("rows", "trend", "matrix"))
    code = (
        f"import sys, {kinds};"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'pandas', 'altair', 'vl_convert'}))"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def contrast(one, other):
    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("colours", "grounds"), [(LIGHT, ("#ffffff", "#f5f6f8")), (DARK, ("#14171a", "#1d2125"))])
def test_text_and_marks_can_be_read_on_paper_wash_and_shade(colours, grounds):
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    for name in ("ink", "soft", "accent", "breach", "few", "ok"):
        for ground in (*grounds, colours["shade"]):
            assert contrast(colours[name], ground) >= 4.5, (name, ground)
    assert contrast(colours["paper"], colours["breach"]) >= 3, "the cross on its square"


def test_every_colour_of_a_shape_is_in_every_scheme():
    used = {
        shape.colour for chart in CHARTS.values() for shape in chain(chart.draw(WIDE).shapes, chart.draw(NARROW).shapes)
    }
    assert used <= set(LIGHT) == set(DARK)
