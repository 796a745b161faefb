"""Lines of text: nothing but the end is lost, nothing is wider than its room, and directions do not leak."""

import unicodedata
from pathlib import Path

import pytest
from drawn_charts import ARABIC, HEBREW, HOSTILE, LONG, UNBROKEN
from hypothesis import given
from hypothesis import strategies as st

from tasks.reporting.charts.values import ELLIPSIS, FIXED, clean, clipped, isolated, lines, width

NAMES = (HOSTILE, HEBREW, ARABIC, LONG, UNBROKEN, "漢字" * 40, "é" * 80, "e\u0301" * 80)
FACES = Path("/usr/share/fonts/truetype/dejavu")


def test_lines_by_hand():
    """Ten letters "n" are 6.4 ems wide; at size 10 that is 64."""
    assert width("nnnnnnnnnn", 10) == pytest.approx(64)
    assert lines("nnnnn nnnn nn", 64, 10, most=3) == ("nnnnn nnnn", "nn")
    assert lines("nnnnn nnnn nn", 60, 10, most=1) == ("nnnnn nn" + ELLIPSIS,), "58 wide"
    assert lines("nnnnnnnnnnn", 64, 10, most=2) == ("nnnnnnnnnn", "n")
    assert lines("", 64, 10, most=2) == ()
    assert lines(f"nnnnn n{FIXED}197", 64, 10, most=2) == ("nnnnn", f"n{FIXED}197")


@given(st.text(max_size=120) | st.sampled_from(NAMES), st.floats(60, 300), st.integers(1, 4), st.booleans())
def test_lines_fit_and_say_all_or_end_in_an_ellipsis(text, room, most, bold):
    found = lines(text, room, 13, most=most, bold=bold)
    assert len(found) <= most
    assert all(width(line, 13, bold=bold) <= room for line in found)
    whole, drawn = (part.replace(" ", "") for part in (clean(text, isolates=True), "".join(found)))
    if drawn != whole:
        assert drawn.endswith(ELLIPSIS)
        assert whole.startswith(drawn.removesuffix(ELLIPSIS))


def test_marks_stay_with_their_letter():
    found = lines("e\u0301" * 80, 50, 13, most=9)
    assert len(found) > 2
    assert not any(unicodedata.combining(line[0]) for line in found)


def test_clipping_leaves_what_fits():
    assert clipped("Black", 100, 13) == "Black"
    assert clipped(LONG, 100, 13).endswith(ELLIPSIS)


def test_text_is_cleaned_of_what_xml_refuses_and_of_overrides():
    assert clean("a\x00b\ud800c\ufffe\u202ed\u2066e\n\t f ") == "a\ufffdb\ufffdc\ufffdde f"
    assert clean("a\u2067b\u2069", isolates=True) == "a\u2067b\u2069"
    assert clean(f"n{FIXED}5") == f"n{FIXED}5"


def test_names_from_right_to_left_are_isolated_and_others_are_not():
    assert isolated("Black") == "Black"
    assert isolated(HEBREW) == f"\u2067{HEBREW}\u2069"
    assert isolated(f"12 {ARABIC}\u2069 \u202e") == f"\u206712 {ARABIC}\u2069"
    assert isolated(f"from {HEBREW}") == f"\u2066from {HEBREW}\u2069"
    assert isolated("12)", HEBREW) == "\u206712)\u2069", "the last line of a name has the direction of the name"


@pytest.mark.skipif(not FACES.is_dir(), reason="DejaVu Sans is not installed")
@pytest.mark.parametrize(("face", "bold"), [("DejaVuSans.ttf", False), ("DejaVuSans-Bold.ttf", True)])
def test_widths_are_upper_bounds_of_the_widest_common_face(face, bold):
    from PIL import ImageFont

    font = ImageFont.truetype(str(FACES / face), 1000)
    for text in (LONG, HEBREW, UNBROKEN, "All applicants", "−23 [−30, −17]", "Inconclusive", "18 columns on file"):
        assert font.getlength(text) <= width(text, 1000, bold=bold), text
        assert width(text, 1000, bold=bold) < 1.35 * font.getlength(text), "but no waste of room"
