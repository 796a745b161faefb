"""FGCE's chapter: no figure without its numbers, no group overlooked, and nothing said to be more than it is."""

import dataclasses
import math
import re
from collections import Counter

import pytest
import report_fgce
import report_tables
from report_chapters import drawn, sections
from report_tables import HOSTILE, NOBODY, REFERENCE, SIZES
from tasks.reporting.chapters.checks import COMPARED, names

from tasks.methods.fgce.report import section as fgce
from tasks.methods.fgce.settings import FgceSettings
from tasks.metrics.algorithm.measures import SUFFIXES
from tasks.pipeline.registry import METHODS
from tasks.reporting.material import Material, Shown
from tasks.reporting.numbers import NOTED, value_cell, written

WITHHELD = "Asian"
GROUPS = (*SIZES, NOBODY)


@pytest.fixture(scope="module")
def material():
    measures, *others = report_tables.tables()
    return Material.of(report_tables.settings(), measures, *others[4:])


@pytest.fixture(scope="module")
def chapter(material):
    return fgce.chapter(material)


def named(chapter, start, maker="model"):
    """The one section of a maker whose title starts so."""
    found = [s for s in sections(chapter) if s.title.startswith(start) and s.anchor.startswith(f"fgce-{maker}")]
    assert len(found) == 1
    return found[0]


def table(section, start):
    """The one table of a section whose title starts so."""
    found = [t for t in section.tables if t.title.startswith(start)]
    assert len(found) == 1, [t.title for t in section.tables]
    return found[0]


def test_every_measure_of_the_method_has_words_and_every_part_is_there(chapter):
    assert set(METHODS["fgce"].measures) <= set(fgce.MEASURES)
    titles = Counter(s.title.split(":")[0] for s in sections(chapter))
    parts = ("Coverage", "Least cost", "Sharing", "Attributes", "Subgroups", "Rules")
    assert [titles[name] for name in parts] == [2] * 6
    words = ("k0", "d0", "kAUC", "dAUC", "cAUC", "saturation point", "ACF", "FACE ratio", "lifted rule", "density")
    assert {*words, "bound"} <= set(fgce.GLOSSARY)


def test_every_number_that_is_drawn_stands_in_a_table_of_the_section(chapter):
    """As it is printed; the grey of curves is drawn without words, and is found by its value."""
    figures = 0
    for section in sections(chapter):
        printed = {cell.text.removesuffix(NOTED) for t in section.tables for row in t.rows for cell in row}
        numbers = sorted(number(text) for text in printed if re.match(r"\d", text))
        for figure in section.figures:
            figures += 1
            for row in drawn(figure):
                if "shown" in row:
                    said = re.match(r"[\d.,]+(\N{NO-BREAK SPACE}%)?", row["shown"])
                    assert said is not None, row
                    assert said.group() in printed, (figure.title, row)
                else:
                    assert any(math.isclose(n, row["value"], rel_tol=0.006, abs_tol=0.0006) for n in numbers), row
    assert figures >= 2 * 8 + 1


def number(text):
    """A printed number; shares between 0 and 1."""
    value = float(re.match(r"[\d.,]+", text).group().replace(",", ""))
    return value / 100 if text.endswith("%") else value


def test_every_panel_draws_marks(chapter):
    for section in sections(chapter):
        for figure in section.figures:
            for panel in figure.panels:
                assert re.search(r'role-mark[^>]*"[^>]*><path', panel.svg), (figure.title, panel.title)


def test_every_table_has_every_group(chapter):
    tables = [t for section in sections(chapter) for t in section.tables]
    assert len(tables) > 30
    for t in tables:
        said = {*t.header, *(cell.text.removesuffix(" (reference)") for row in t.rows for cell in row)}
        assert set(GROUPS) <= said, t.title


def test_a_withheld_group_and_one_without_factuals_are_named_and_not_drawn(chapter):
    for section in sections(chapter):
        for figure in section.figures:
            groups = {row["group"] for row in drawn(figure)}
            assert WITHHELD not in groups or section.anchor.startswith("fgce-graph")
            assert {REFERENCE, *HOSTILE} <= groups
            for group in set(GROUPS) - groups:
                assert group in figure.caption.split("Not drawn")[1], figure.title


def test_a_group_without_factuals_is_no_pass(chapter):
    said = [s for s in named(chapter, "By race").points if s.startswith(NOBODY)]
    assert len(said) == 2
    assert all("no factuals" in s and "no pass" in s for s in said)


def test_the_size_matched_reference_stands_beside_every_curve(chapter):
    """A panel for each group; where groups share one, each of them but the reference group has its grey mark."""
    for panel in named(chapter, "Sharing").figures[0].panels:
        rows = {(row["group"], row["what"]) for row in panel.spec["datasets"]["rows"]}
        assert rows == {(REFERENCE, "own"), *((g, w) for g in HOSTILE for w in ("own", "size-matched"))}
    for start in ("Coverage", "Least cost", "Attributes"):
        for figure in named(chapter, start).figures:
            for panel in figure.panels:
                kinds = Counter(row["what"] for row in panel.spec["datasets"]["rows"])
                alone = panel.title == f"{REFERENCE} (reference)"
                assert kinds["size-matched"] == (0 if alone else kinds["own"]), (figure.title, panel.title)
                assert kinds["own"]


def test_without_subsamples_no_figure_speaks_of_grey(material):
    kept = tuple(m for m in material.measures if "_size_matched" not in m.measure)
    bare = fgce.chapter(dataclasses.replace(material, measures=kept))
    below = [f for s in sections(bare) for f in s.figures if s.anchor.startswith(("fgce-model", "fgce-lender"))]
    assert any("not subsampled" in f.caption for f in below)
    assert not any("Grey" in f.caption or "at the group's size" in s.text for f in below for s in f.legend)
    assert any("has no size-matched reference" in point for point in named(bare, "By race").points)


@pytest.mark.parametrize(
    ("cost", "unit"), [("vector", "encoded units"), ("path", "weighted path length"), ("hops", "steps")]
)
def test_what_costs_are_counted_in_follows_the_cost(material, cost, unit):
    settings = report_tables.settings()
    counted = settings.methods.of(FgceSettings).model_copy(update={"cost": cost})
    methods = settings.methods.only("fgce", counted)
    asked = dataclasses.replace(material, settings=settings.model_copy(update={"methods": methods}))
    chapter = fgce.chapter(asked)
    titles = [panel.title for panel in named(chapter, "By race").figures[0].panels]
    assert titles == ["Infeasible share", f"Burden ({unit})"]
    axis = f"cost limit d ({unit})"
    assert all(axis in panel.label for panel in named(chapter, "Coverage").figures[0].panels)
    assert f"Smallest cost limit ({unit})" in named(chapter, "Least cost").figures[0].caption
    assert any(f"given in {unit}," in limit for limit in fgce.limits(asked))


def test_bounds_are_said_to_be_bounds_everywhere(chapter, material):
    section = named(chapter, "Least cost")
    rows = {(row[0].text, row[1].text): row for row in table(section, "How few").rows}
    unsolved, solved = rows[HOSTILE[1], "k0"], rows[HOSTILE[0], "k0"]
    assert unsolved[3].text == f"4{NOTED}"
    assert unsolved[-1].text.startswith("A bound")
    assert (solved[3].text, solved[-1].text) == ("4", "–")
    assert "The values are bounds" in section.figures[0].caption
    assert report_fgce.BOUND in table(section, "cAUC").note
    assert any("bounds" in limit for limit in fgce.limits(material))
    exact = dataclasses.replace(material, measures=tuple(dataclasses.replace(m, note="") for m in material.measures))
    section = named(fgce.chapter(exact), "Least cost")
    assert "bounds" not in section.figures[0].caption
    assert not any(NOTED in cell.text for t in section.tables for row in t.rows for cell in row)
    assert not any("bounds" in limit for limit in fgce.limits(exact))


def test_a_share_that_is_never_covered_is_undefined_and_begins_no_line(chapter):
    section = named(chapter, "Least cost")
    first = table(section, "Least cost of serving").rows[30]
    assert [cell.text for cell in first[:3]] == ["100.0\N{NO-BREAK SPACE}%", "1", "undefined"]
    whole = [row["x"] for row in drawn(section.figures[0]) if row["line"] == "c = 100 %" and row["group"] == REFERENCE]
    assert sorted(whole) == list(range(2, 11))


def test_areas_stand_with_their_saturation_points(chapter):
    t = table(named(chapter, "Coverage"), "kAUC")
    row = next(row for row in t.rows if (row[0].text, row[1].text) == ("10", HOSTILE[0]))
    assert t.header[:3] == ("k", "Group", "Saturation d")
    assert (row[2].text, row[2].detail) == ("3.10", "[3.05, 3.15]")
    assert row[5].text == written(0.8 * 0.78 * (1 - 0.6**10), "number")
    assert [cell.text for cell in t.rows[0]][3::3] == ["–", "–"], "the reference group has no size-matched value"
    assert len(t.rows) == 10 * len(GROUPS)


def test_attributes_have_labels_and_those_that_never_change_are_left_out(chapter):
    section = named(chapter, "Attributes")
    assert {row["row"] for row in drawn(section.figures[0])} == {"Income, thousands", "Purpose"}
    assert [row[0].text for row in section.tables[0].rows] == ["Income, thousands", "Purpose"]
    assert "Changed in no group: sex." in section.tables[0].note


def test_lifted_rules_are_beside_the_baseline_and_those_without_effect_are_listed(chapter):
    section = named(chapter, "Rules")
    assert [row["row"] for row in section.figures[0].panels[0].spec["datasets"]["rows"]] == [
        *("All rules kept", "Income, thousands", "Limit on one step", "Every constraint"),
        "Every constraint and epsilon",
    ]
    assert (
        "As with all rules kept in every group drawn: without the constraint on purpose." in section.figures[0].caption
    )
    assert "without the limit on one step: the 30 nearest" in table(section, "Infeasible share and burden").note


def test_the_greedy_gap_is_shown_where_it_was_computed(chapter):
    gap = table(named(chapter, "Least cost"), "What the greedy selection misses")
    assert gap.folded
    assert [cell.text for cell in gap.rows[0]] == ["1", "0.600", REFERENCE, *(written(x, "rate") for x in (0.5, 0.013))]
    assert not any("greedy selection misses" in t.title for t in named(chapter, "Least cost", "lender").tables)


def test_connectivity_stands_once_and_with_the_graph(chapter):
    found = [s.anchor for s in sections(chapter) for f in s.figures if "length of one step" in f.title]
    assert found == ["fgce-graph-race"]


def test_a_method_that_measured_less_leaves_no_empty_part(material):
    few = {"infeasible_share", "burden"}
    kept = tuple(m for m in material.measures if m.measure in few and not m.subgroup)
    less = dataclasses.replace(material, measures=kept)
    found = sections(fgce.chapter(less))
    assert [s.title for s in found if s.tables] == ["By race"] * 2
    assert not any("d0" in limit or "Lifting" in limit for limit in fgce.limits(less))


def test_every_comparison_has_words():
    assert set(COMPARED) == set(SUFFIXES)
    known = {"share_significant": Shown("share significant", "rate")}
    assert names("share_significant_null", known)[0] == "share significant, labels permuted"
    assert names("share_significant_null_difference", known) == (
        "share significant, difference from permuted labels",
        known["share_significant"],
    )


def test_a_measure_that_ends_like_a_comparison_keeps_its_name():
    assert names("cost_over_face", fgce.MEASURES)[0] == "FACE ratio"
    assert names("cost_over_face_size_matched", fgce.MEASURES)[0] == "FACE ratio, size-matched reference"


@pytest.mark.parametrize(
    ("number", "measure", "text"),
    [
        (4.0, "k0", "4"),
        (3.225, "k0_size_matched", "3.23"),
        (0.775, "k0_difference", "+0.775"),
        (1.0, "k0_ratio", "1.00"),
    ],
)
def test_a_mean_of_counts_is_not_cut_to_a_whole_number(number, measure, text):
    assert written(number, "count", measure) == text


def test_a_noted_value_is_marked_and_an_undefined_one_says_only_that(material):
    bound = next(m for m in material.measures if m.note and m.value is not None)
    assert value_cell(bound, "number").text.endswith(NOTED)
    assert value_cell(dataclasses.replace(bound, value=None, low=None, high=None), "number").text == "undefined"


@pytest.mark.parametrize(
    ("ends", "note", "detail"),
    [
        ((0.1, 0.3), "", "[10.0, 30.0]"),
        ((0.1, 0.3), "range", "(10.0 to 30.0)"),
        ((0.2, 0.2), "4 of 40 subsamples have a bound only; range", "(20.0 to 20.0)"),
        ((None, None), "no spread", "(no spread)"),
        ((None, None), "", ""),
    ],
)
def test_a_range_is_written_as_one_and_marks_no_bound(material, ends, note, detail):
    found = next(m for m in material.measures if m.measure == "infeasible_share" and m.value is not None)
    cell = value_cell(dataclasses.replace(found, value=0.2, low=ends[0], high=ends[1], note=note), "rate")
    assert cell.detail == detail
    assert cell.text.endswith(NOTED) == ("bound" in note)
