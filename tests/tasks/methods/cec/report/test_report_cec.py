"""CEC's chapter: no score without its floor, no conclusion that hangs on theta, and nobody who is too few let pass."""

import dataclasses
import json
import re
from itertools import pairwise

import pytest
import report_cec
import report_trained
from report_cec import FEATURES, GROUPS, NOBODY, SIZES, THETA, WITHHELD
from report_chapters import SPACE, drawn, drawn_of, sections, table, under
from report_tables import HOSTILE, REFERENCE

from tasks.methods.cec.report import reading as reasons_read
from tasks.methods.cec.report import regimes, scores
from tasks.methods.cec.report import section as cec
from tasks.methods.cec.report.lookups import Reasons
from tasks.metrics.algorithm.measures import base_name
from tasks.pipeline.registry import METHODS
from tasks.reporting.chapters import builder
from tasks.reporting.stage import report

FIRST, SECOND = HOSTILE


@pytest.fixture(scope="module")
def material():
    return report_cec.material()


@pytest.fixture(scope="module")
def chapter(material):
    return cec.chapter(material)


def changed(material, measure, group=FIRST, parameters=None, **fields):
    """The material with one measure of a group changed."""

    def edit(m):
        hit = (m.measure, m.group, m.said) == (measure, group, parameters or {})
        return dataclasses.replace(m, **fields) if hit else m

    return dataclasses.replace(material, measures=tuple(map(edit, material.measures)))


def without(material, *measures):
    """The material as it is where a run did not make some measures."""
    kept = tuple(m for m in material.measures if m.measure not in measures)
    return dataclasses.replace(material, measures=kept)


def by_race(material):
    """The reasons by race."""
    return next(s for s in Reasons.of(material, "model") if s.view.attribute == "race")


def reading(material, group=FIRST):
    """What is said of a group by race."""
    return next(said for said in reasons_read.readings(by_race(material)) if said.startswith(f"{group}:"))


def limit(material, words):
    """The one limit that holds the words, or none."""
    found = [said for said in cec.limits(material) if words in said]
    assert len(found) <= 1
    return found[0] if found else ""


def test_every_measure_of_the_method_has_words():
    assert set(METHODS["cec"].measures) == set(cec.MEASURES)
    made = {base_name(m.measure) for m in report_trained.material().measures if m.method == "cec"}
    assert made == set(cec.MEASURES)


def test_every_number_that_is_drawn_stands_in_a_table_of_the_section(chapter):
    figures = 0
    for part in chapter.parts[0].parts:
        cells = [cell for s in sections(part) for t in s.tables for row in t.rows for cell in row]
        printed = {cell.text for cell in cells}
        for section in sections(part):
            for figure in section.figures:
                said = [text.split(" [")[0] for row in drawn(figure) for text in row.get("shown", "").split("; ")]
                figures += any(said)
                assert set(said) - {""} <= printed, figure.title
    assert figures == 2 * 3


def test_the_curve_over_theta_passes_through_the_numbers_of_its_table(chapter):
    section = under(chapter, "cec-model-race-1")
    curves, t = section.figures[1], table(section, "Regimes by theta")
    thetas = [float(h.removeprefix("theta = ")) for h in t.header[3:]]
    assert thetas == [step / 10 for step in range(11)]
    points = {(p.title, row["regime"], row["x"]): row["value"] for p in curves.panels for row in drawn_of(p)}
    for row in t.rows:
        if row[0].text in (FIRST, SECOND):
            at = [points[row[0].text, row[1].text, theta] for theta in thetas]
            assert [f"{100 * value:.1f}{SPACE}%" for value in at] == [cell.text for cell in row[3:]]


def test_every_panel_draws_marks(chapter):
    panels = [p for s in sections(chapter) for figure in s.figures for p in figure.panels]
    assert len(panels) == 2 * 2 + 3 + 2 + 3
    for panel in panels:
        assert re.search(r'role-mark[^>]*"[^>]*><path', panel.svg), panel.title


def test_every_table_of_pairs_has_every_group_and_the_other_direction_below(chapter):
    for start in ("CEC above", "Regimes at", "Matches", "Attributions"):
        rows = table(under(chapter, "cec-model-race"), start).rows
        pairs = [(row[1].text, row[2].text) for row in rows]
        headline = [(group, REFERENCE) for group in pairs_by_size()]
        assert pairs[: len(headline)] == headline
        assert set(pairs[len(headline) :]) == {(REFERENCE, group) for group in SIZES}
        assert [row[0].text for row in rows] == [str(n) for n in range(1, len(pairs) + 1)]


def pairs_by_size():
    """The groups as the report lists them: those without a printed size last."""
    return (*HOSTILE, NOBODY, WITHHELD)


def test_a_withheld_group_and_one_that_nobody_could_be_compared_of_are_named_and_not_drawn(chapter):
    for name in ("cec-model-race", "cec-model-race-1", "cec-model-race-2"):
        for figure in under(chapter, name).figures:
            assert "Not drawn, because withheld or undefined" in figure.caption
            assert f"No pair could be compared: {NOBODY}." in figure.caption
            assert f"{FIRST} 610, {SECOND} 240, {WITHHELD} withheld" in figure.caption
            groups = {row.get("group") for row in drawn(figure)} | {p.title for p in figure.panels}
            assert not {WITHHELD, NOBODY} & groups


def test_withheld_numbers_are_in_no_cell_of_their_group(chapter):
    for t in (t for s in sections(under(chapter, "cec-model-race")) for t in s.tables):
        for row in t.rows:
            if WITHHELD in {cell.text for cell in row[:3]}:
                assert {cell.kind for cell in row[3:]} == {"none"}, t.title


def test_the_score_is_drawn_above_its_floor_in_both_panels(chapter):
    beside, plane = under(chapter, "cec-model-race").figures[0].panels
    first = {row["what"]: row["value"] for row in drawn_of(beside) if row["pair"] == f"1  {FIRST} → {REFERENCE}"}
    assert first == pytest.approx({"CEC": 0.421, "within the group": 0.321, "matching floor": 0.121})
    points = {row["number"]: row for row in drawn_of(plane) if row["part"] == "point"}
    assert (points["1"]["flip"], points["1"]["cec"], points["1"]["floor"]) == pytest.approx((0.21, 0.421, 0.121))
    assert {row["cec"] for row in drawn_of(plane) if row["part"] == "edge" and "cec" in row} == {THETA}
    assert [row["words"][0] for row in drawn_of(plane) if row["part"] == "corner"] == list("ABCD")


def test_the_headline_is_cec_above_floor(chapter, material):
    assert "The headline to read is CEC above floor" in " ".join(chapter.words)
    header = table(under(chapter, "cec-model-race"), "CEC above").header
    assert header[3:] == ("Pairs compared", "Unmatched", "CEC above floor", "CEC", "Matching floor", "Flips")
    said = reading(material)
    assert "CEC is 0.421 on 610 pairs with white" in said
    assert "CEC lies 0.300 [0.289, 0.311] above it" in said
    assert f"55.3{SPACE}% of the pairs have the same decision for different reasons (theta = 0.3)" in said
    assert f"21.0{SPACE}% are decided on differently" in said


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"low": -0.01, "high": 0.6}, "not distinguishable from what financial features alone would give"),
        ({"value": -0.1, "low": -0.2, "high": -0.05}, "That does not show that they are the same"),
        ({"low": None}, "is not known. Nothing can be said, and that is no pass"),
        ({"n": 29}, "fewer than 30 pairs are too few to say, and that is no pass"),
        ({"value": None}, "CEC above floor is undefined. Nothing can be said, and that is no pass"),
    ],
)
def test_reasons_differ_only_above_the_floor_and_its_own_error(material, fields, words):
    said = reading(changed(material, "cec_above_floor", **fields))
    assert words in said
    assert "reasons differ by more" not in said


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {},
            "With matches of their own group CEC is 0.321: across groups the reasons lie 0.100 [0.0890, 0.111] further",
        ),
        ({"n": 29}, "but of fewer than 30 applicants: too few to say, and that is no pass"),
        ({"low": -0.01}, "not distinguishable from that, which is no pass"),
        ({"value": -0.1, "low": -0.2, "high": -0.05}, "across groups it is smaller"),
        ({"low": None}, "is without an interval, so that what any two applicants differ by is not known"),
    ],
)
def test_reasons_across_groups_are_set_beside_those_within(material, fields, words):
    edited = changed(material, "cec_above_within_group", **fields)
    assert words in reading(edited)
    above = (fields.get("low", 0.1) or -1) > 0
    assert bool(limit(edited, "matches of their own group")) != above


def test_where_nobody_can_be_matched_within_a_group_that_is_said(material):
    bare = without(material, "cec_within_group", "cec_above_within_group")
    assert "own group is not computed, so that what any two applicants differ by" in reading(bare)
    titles = [t.title for t in builder.part("", "", (scores,), by_race(bare)).tables]
    assert titles == ["CEC above its matching floor, by race"]


def test_nobody_compared_and_withheld_are_no_pass(material):
    assert reading(material, NOBODY).endswith("no pair could be compared. Nothing can be said, and that is no pass.")
    assert "is withheld. Nothing can be said, and that is no pass" in reading(material, WITHHELD)
    alone = without(changed(material, "unmatched_share", value=1.0, events=610), "cec", "cec_above_floor")
    assert "610 of 610 applicants have no match" in reading(alone)


def test_regimes_fill_the_bar_and_a_withheld_one_is_not_given_away_by_its_gap(material):
    bars = drawn(regimes.figures(by_race(material))[0])
    first = [row for row in bars if row["of"].startswith("1 ")]
    assert [row["regime"] for row in first] == list("ABCD")
    assert first[-1]["end"] == pytest.approx(1)
    assert all(row["start"] == before["end"] for before, row in pairwise(first))
    gap = changed(material, "regime_share", parameters={"regime": "C"}, value=None, n=None)
    figure = regimes.figures(by_race(gap))[0]
    assert not any(row["group"] == FIRST for row in drawn(figure))
    assert f"{FIRST} → {REFERENCE}" in figure.caption


def test_regime_b_is_told_at_several_thetas(chapter, material):
    points = under(chapter, "cec-model-race-1").points
    at = ", ".join(f"{79 - 7.9 * step:.1f}{SPACE}% at theta = {step / 10:g}" for step in range(1, 5))
    assert points[0] == f"{FIRST}: the share of pairs in regime B is {at} and 39.5{SPACE}% at theta = 0.5."
    said = {p.split(": ", 1)[0]: p for p in points}
    assert "is withheld. Nothing can be said" in said[WITHHELD]
    assert "is not computed. Nothing can be said" in said[NOBODY]
    bare = without(material, "regime_share_at")
    shown = builder.part("", "", (regimes,), by_race(bare))
    assert len(shown.figures) == 1
    assert [t.title[:10] for t in shown.tables] == ["Regimes at"]


def test_features_by_which_applicants_are_matched_are_told_from_the_others(chapter):
    section = under(chapter, "cec-model-race-2")
    names = {row["row"]: row["financial"] for row in drawn(section.figures[0])}
    assert names == {"<b>zip</b>": 0, "Purpose": 0, "F · Amount": 1, "F · Income, thousands": 1}
    rows = table(section, "Attribution divergence").rows
    assert [row[1].text for row in rows] == ["other", "other", "financial", "financial", ""]
    assert len(rows) == len(FEATURES) + 1
    assert section.points[0].startswith(f"{FIRST}: reasons part most in <b>zip</b> (40.0{SPACE}%), purpose")
    assert len(section.points) == 2, "and nothing of those who are withheld or were not compared"


def test_matches_and_their_reuse_are_told(chapter):
    rows = table(under(chapter, "cec-model-race"), "Distances and reuse").rows
    assert [cell.text for cell in rows[0][3:]] == ["610", "0.800", "1.20", "1.29", "2.35", "67"]
    assert table(under(chapter, "cec-model-race"), "Attributions").rows[0][4].text == "2.5e\N{MINUS SIGN}16"


def test_the_lender_is_not_looked_into_and_the_chapter_says_so_once(chapter):
    assert [part.anchor for part in chapter.parts] == ["cec-model"]
    assert " ".join(chapter.words).count("Nobody recorded the lender's own reasons") == 1


def test_without_a_model_nothing_is_said_and_that_is_no_pass(material):
    bare = dataclasses.replace(material, measures=tuple(m for m in material.measures if m.method != "cec"))
    assert not cec.chapter(bare).parts
    assert "No model was looked into" in cec.chapter(bare).words[-1]
    assert cec.limits(bare) == (cec.chapter(bare).words[-1],)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("logistic_regression", "attributions are exact: integrated gradients in closed form, which a model that is"),
        ("net", "exact: integrated gradients of a network of ReLUs"),
        ("gradient_boosting", "attributions are a substitute: a model of boosted trees has no gradient"),
    ],
)
def test_the_attributions_are_named(kind, words):
    of_kind = report_cec.material(report_cec.spec(model={"kind": kind}))
    assert words in under(cec.chapter(of_kind), "cec-model").words[0]
    assert bool(limit(of_kind, "not integrated gradients")) == (kind == "gradient_boosting")


def test_a_net_is_exact_and_not_linear():
    of_net = report_cec.material(report_cec.spec(model={"kind": "net"}))
    assert limit(of_net, "not linear in its inputs")
    assert not limit(report_cec.material(), "not linear in its inputs")


@pytest.mark.parametrize("substitute", [True, False])
def test_of_a_given_file_nobody_claims_to_know_how_it_was_explained_or_whom_it_learnt_from(substitute):
    given = {"model": {"kind": "file", "file": {"path": "theirs.onnx"}}}
    methods = {"methods": {"fgce": None, "cec": {"substitute": substitute}}}
    of_file = report_cec.material(report_cec.spec(**given, **methods))
    for said in (under(cec.chapter(of_file), "cec-model").words[0], limit(of_file, "what the file holds")):
        assert "linear models and of chains of ReLU layers are integrated gradients in closed form" in said
        assert "by quadrature" in said
        assert ("the substitute that was chosen" in said) == substitute
    assert limit(of_file, "it may have learnt from applicants and matches alike")
    assert not limit(report_cec.material(), "learnt from applicants and matches alike")
    assert under(cec.chapter(of_file), "cec-model").title == "The model that is audited, given as a file"


def test_limits_hold_the_numbers_of_these_data(material):
    assert f"0.121 for {FIRST} (race)" in limit(material, "matching floor")
    assert "near in income, thousands and amount" in limit(material, "declared to be financial")
    assert "2 columns by which nobody is matched: purpose and <b>zip</b>" in limit(material, "nobody is matched")
    assert f"up to 67 pairs a match in {FIRST} (race)" in limit(material, "Pairs share matches")
    assert f"{NOBODY} (race) and {WITHHELD} (race)" in limit(material, "No score")
    for said in ("the lender's own decision, unless", "theta = 0.3", "no proof of unequal treatment"):
        assert limit(material, said)


def test_limits_that_do_not_apply_are_not_told(material):
    for said in ("left out", "without a direction", "add up", "Too few pairs", "Not told to lie above"):
        assert not limit(material, said)
    assert "18 of 610 in" in limit(changed(material, "unmatched_share", value=0.03, events=18), "left out")
    assert "2 of 610 in" in limit(changed(material, "no_direction_share", value=0.01, events=2), "a direction")
    assert f"4.0{SPACE}% in" in limit(changed(material, "incomplete_share", value=0.04, events=24), "add up")
    assert "12 in" in limit(changed(material, "cec", n=12), "Too few pairs to say, which is no pass")
    assert FIRST in limit(changed(material, "cec_above_floor", low=-0.1), "Not told to lie above")
    assert not limit(changed_largest(material), "Pairs share matches")
    near = report_cec.material(report_cec.spec(methods={"fgce": None, "cec": {"maximum_distance": 2}}))
    assert limit(material, "however far")
    assert not limit(near, "however far")


def changed_largest(material):
    """The material where no match serves more than one."""

    def edit(m):
        return dataclasses.replace(m, value=1.0) if m.measure == "match_reuse_largest" else m

    return dataclasses.replace(material, measures=tuple(map(edit, material.measures)))


def test_names_from_the_data_are_escaped_and_the_chapter_stands_in_the_report():
    files = report.function(*report_cec.tables(), settings=report_cec.settings()).files
    page = files["report.html"].decode()
    assert FIRST not in page
    assert "<b>zip" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;: CEC is 0.421" in page
    assert '<section id="cec">' in page
    assert json.loads(files["report.json"])


def test_groups_stand_in_every_chapter(chapter):
    said = [p.split(": ")[0] for p in under(chapter, "cec-model-race").points]
    assert sorted(said) == sorted(GROUPS)
