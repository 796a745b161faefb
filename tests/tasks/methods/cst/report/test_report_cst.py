"""CST's chapter: no figure without its numbers, no finding that chance would give, no assumption left unsaid."""

import dataclasses
import math
import re
from itertools import pairwise

import networkx as nx
import pytest
import report_cst
import report_tables
from hypothesis import given
from hypothesis import strategies as st
from report_chapters import SPACE, drawn, sections, table, under
from report_cst import COMPLAINANTS, EDGES, GROUPS, NOBODY, WITHHELD
from report_tables import HOSTILE, REFERENCE

from tasks.methods.cst.report import causes, differences, significance
from tasks.methods.cst.report import section as cst
from tasks.methods.cst.report.charts.causal_chart import layout
from tasks.methods.cst.report.counterfactuals import shifted
from tasks.methods.cst.report.lookups import Situations
from tasks.methods.cst.settings import CstSettings
from tasks.metrics.algorithm.disclosure import POLICIES
from tasks.metrics.algorithm.measures import base_name
from tasks.pipeline.registry import METHODS
from tasks.reporting.chapters import builder
from tasks.reporting.stage import report

FIRST = HOSTILE[0]


@pytest.fixture(scope="module")
def material():
    return report_cst.material()


@pytest.fixture(scope="module")
def chapter(material):
    return cst.chapter(material)


def changed(material, measure, group, value=None, **fields):
    """The material with the headline form of one measure of a group changed."""

    def edit(m):
        hit = (m.measure, m.group, m.parameters, m.decision_maker) == (measure, group, "{}", "model")
        return dataclasses.replace(m, value=value, **fields) if hit else m

    return dataclasses.replace(material, measures=tuple(map(edit, material.measures)))


def reading(material, group=FIRST):
    """What is said of a group by race, for the model."""
    return next(said for said in significance.readings(by_race(material)) if said.startswith(f"{group}:"))


def by_race(material):
    """The situations of the model's decisions by race."""
    return next(s for s in Situations.of(material, "model") if s.view.attribute == "race")


def test_every_measure_of_the_method_has_words():
    assert set(METHODS["cst"].measures) <= set(cst.MEASURES)
    made = {base_name(m.measure) for m in report_cst.material().measures if m.method == "cst"}
    assert made == set(cst.MEASURES)


def test_every_number_that_is_drawn_stands_in_a_table_of_the_section(chapter):
    figures = 0
    for part in chapter.parts:
        for section in sections(part):
            printed = {cell.text for s in sections(part) for t in s.tables for row in t.rows for cell in row}
            for figure in section.figures:
                said = [row["shown"].split(" [")[0] for row in drawn(figure) if "shown" in row]
                figures += bool(said)
                assert set(said) <= printed, figure.title
    assert figures >= 2 * 3 * 4


def test_every_panel_draws_marks(chapter):
    for section in sections(chapter):
        for figure in section.figures:
            assert figure.panels
            for panel in figure.panels:
                assert re.search(r'role-mark[^>]*"[^>]*><path', panel.svg), (figure.title, panel.title)


def test_every_table_has_every_group_of_complainants_and_no_reference_group(chapter):
    found = [
        t for s in sections(chapter) if s.anchor.startswith(("cst-model-race", "cst-lender-race")) for t in s.tables
    ]
    found = [t for t in found if not t.title.startswith("Beside")]
    by_race = [t for t in found if {*t.header, *(row[0].text for row in t.rows)} & set(GROUPS)]
    assert len(by_race) >= 2 * 6
    for t in by_race:
        said = {*t.header, *(row[0].text for row in t.rows)}
        assert (set(GROUPS) <= said and REFERENCE not in said) or "race and cohort" in t.title or said == {"Group"}, (
            t.title
        )


def test_a_withheld_group_and_one_that_was_not_tested_are_named_and_not_drawn(chapter):
    for name in ("cst-model-race", "cst-model-race-1", "cst-model-race-2", "cst-model-race-3", "cst-imagined-race"):
        for figure in under(chapter, name).figures:
            assert "Not drawn, because withheld or undefined" in figure.caption
            assert WITHHELD in figure.caption
            assert WITHHELD not in {row.get("group") for row in drawn(figure)} | {p.title for p in figure.panels}


def test_the_headline_is_the_share_significant_beside_permuted_labels(chapter, material):
    rows = drawn(under(chapter, "cst-model-race").figures[0])
    assert {(row["group"], row["what"]) for row in rows} == {
        (g, w) for g in HOSTILE for w in ("found", "labels permuted")
    }
    said = reading(material)
    assert f"30.0{SPACE}% of 610 complainants have a significant test (CST, k = 15)" in said
    assert f"2.0{SPACE}% on average (0.9{SPACE}% to 3.1{SPACE}%; 20 permutations): more than chance finds" in said


@pytest.mark.parametrize(
    ("measure", "fields", "words"),
    [
        ("share_significant", {"value": 0.03}, "not distinguishable from chance"),
        ("share_significant", {"value": 0.5, "n": 12}, "too few to say, and that is no pass"),
        ("share_significant", {"value": None, "n": 610}, "is undefined. Nothing can be said"),
        ("share_significant_null_difference", {"value": 0.28, "low": -0.01}, "no difference can be told"),
        ("share_significant_null_difference", {"value": 0.28, "low": None}, "no difference can be told"),
    ],
)
def test_a_share_counts_as_found_only_above_chance_and_its_own_error(material, measure, fields, words):
    said = reading(changed(material, measure, FIRST, **fields))
    assert words in said
    assert "more than chance finds" not in said


def test_nobody_tested_withheld_and_unpermuted_are_no_pass(material):
    assert "nobody could be tested" in reading(material, NOBODY)
    assert "is withheld" in reading(material, WITHHELD)
    kept = tuple(m for m in material.measures if "_null" not in m.measure)
    bare = dataclasses.replace(material, measures=kept)
    assert "labels were not permuted" in reading(bare)
    assert not any(t.title.startswith("Beside") for t in builder.part("", "", (significance,), by_race(bare)).tables)
    assert {row["what"] for row in drawn(significance.figures(by_race(bare))[0])} == {"found"}


def test_a_group_that_is_small_beside_k_is_told_to_be_few_comparisons(material):
    assert "holds 15 of them" in reading(changed(material, "share_significant", FIRST, 0.9, n=149))
    assert "holds 15 of them" not in reading(changed(material, "share_significant", FIRST, 0.9, n=150))


def test_the_variants_stand_side_by_side_at_every_k(chapter):
    section = under(chapter, "cst-model-race")
    detected = table(section, "Share detected, CST / ST / CST with centres / CF")
    row = next(row for row in detected.rows if (row[0].text, row[1].text) == (FIRST, "CST"))
    assert [cell.text for cell in row[2:]] == ["610", *(f"{x}{SPACE}%" for x in (50.0, 52.1, 54.2))]
    assert row[3].detail
    cf = next(row for row in detected.rows if (row[0].text, row[1].text) == (FIRST, "CF"))
    assert {cell.text for cell in cf[3:]} == {f"23.4{SPACE}%"}
    assert "no finding by itself" in detected.note
    significant = table(section, "Share significant, CST / ST / CST with centres by")
    assert "CF" not in {row[1].text for row in significant.rows}


def test_the_lender_has_no_centres_and_no_counterfactual_fairness_and_the_chapter_says_why(chapter):
    lender = under(chapter, "cst-lender")
    assert "cannot be asked what it would have decided" in lender.words[0]
    said = {row[1].text for s in sections(lender) for t in s.tables for row in t.rows if len(row) > 1}
    assert {"CST", "ST"} <= said
    assert not {"CF", "CST with centres"} & said
    assert under(chapter, "cst-model").words == ()


def test_an_attribute_without_an_arrow_has_situation_testing_only(chapter):
    section = under(chapter, "cst-model-cohort")
    assert "No arrow of the causal graph leads out of cohort" in section.words[0]
    assert any("(ST, k = 15)" in said for said in section.points)
    assert [panel.title.split(":")[0] for panel in section.figures[0].panels] == ["ST"]


def test_a_crossed_attribute_says_whom_it_is_compared_with(chapter):
    section = under(chapter, "cst-model-race-and-cohort")
    assert "everybody outside its own group" in section.words[0]
    both = table(section, "Share significant, under every single attribute")
    assert [row[4].text for row in both.rows] == [f"12.3{SPACE}%", f"30.0{SPACE}%"]
    assert not any("Several attributes" in s.title for s in sections(under(chapter, "cst-model-race")))


def test_assumptions_are_sentences_and_a_figure(chapter):
    section = under(chapter, "cst-causes")
    assert section.points[0].startswith(
        "Income, thousands comes about from race alone: each cause moves it by a constant"
    )
    assert section.points[0].endswith("imagined values are not below 0.")
    assert section.points[1].startswith("Purpose comes about from race alone: its categories have no order")
    assert section.points[2].startswith("Amount comes about from income, thousands, purpose and race, and nothing else")
    boxes = {row["name"]: row["kind"] for row in drawn(section.figures[0]) if row["part"] == "box"}
    assert boxes["race"] == "protected attribute", "by the name of the attribute, not of its column"
    assert {boxes[name] for name in ("income, thousands", "purpose", "amount")} == {"would change with it"}
    assert sum(row["part"] == "arrow" for row in drawn(section.figures[0])) == 5


def test_checks_that_fail_are_named_at_the_top_and_none_shows_that_the_graph_is_right(chapter, material):
    section = under(chapter, "cst-causes")
    assert section.notices[0].title == "The data speak against the causal model in 1 of 2 tests"
    assert section.notices[0].points == (
        "Income, thousands and purpose go together, given race, and the graph says that they do not.",
    )
    assert section.notices[0].text == "Together: an arrow or a common cause may be missing."
    tests = table(section, "Tests of the causal model")
    assert [(row[1].text, row[-1].text) for row in tests.rows] == [("income, thousands", "yes"), ("amount", "not seen")]
    assert "None of the checks below shows that the graph is right" in section.words[0]
    assert table(section, "Fit of the mechanisms").rows[0][2].text == "0.107"
    unchecked = causes.section(dataclasses.replace(material, causal_checks=()))
    assert "was not checked" in unchecked.words[0]
    assert not unchecked.notices


@pytest.mark.parametrize(
    ("generator", "said"),
    [("nearest", "the real applicant of the reference group"), ("quantile", "GCFN's conditional")],
)
def test_another_generator_is_named_with_what_it_cannot_show(generator, said):
    asked = report_cst.spec().methods.of(CstSettings).model_copy(update={"generator": generator})
    settings = report_cst.spec()
    settings = settings.model_copy(update={"methods": settings.methods.only("cst", asked)})
    other = dataclasses.replace(report_cst.material(settings), causal_checks=())
    section = under(cst.chapter(other), "cst-causes")
    assert said in section.words[0]
    assert not section.figures, "no graph is used"
    limits = cst.limits(other)
    assert not any("causal graph" in limit for limit in limits)
    assert any(limit.startswith("Test groups are searched around") for limit in limits)


def test_without_a_causal_graph_the_chapter_says_that_there_is_situation_testing_only():
    bare = report_cst.material(report_cst.spec(causal_graph={}))
    kept = tuple(m for m in bare.measures if m.said.get("variant", "st") == "st" and m.protected_attribute == "cohort")
    chapter = cst.chapter(dataclasses.replace(bare, measures=kept, causal_checks=(), causal_effects=()))
    section = under(chapter, "cst-causes")
    assert "no causal graph" in section.words[0]
    assert not section.figures
    assert not under(chapter, "cst-model-cohort").words, "said once is enough"
    said = cst.limits(dataclasses.replace(bare, measures=kept, causal_checks=(), causal_effects=()))
    assert "no causal graph" in said[0]
    assert not any("imagined applicant is not observed" in limit for limit in said)


def test_arrows_are_left_out_one_by_one_beside_the_graph_as_assumed(chapter):
    section = under(chapter, "cst-model-race-3")
    rows = section.figures[0].panels[0].spec["datasets"]["rows"]
    assert [row["row"] for row in rows] == ["Graph as assumed", "race → income, thousands", "race → purpose"]
    t = section.tables[0]
    assert len(t.rows) == len(GROUPS) * (1 + len(EDGES))
    assert [cell.text for cell in t.rows[1][2:]] == [f"11.1{SPACE}%", f"22.2{SPACE}%"]


def test_limits_are_told(material):
    said = " ".join(cst.limits(material))
    for words in (
        "tests are not independent",
        "no data can confirm",
        "in 1 of 2 checks",
        "does not show that anybody was treated unlawfully",
    ):
        assert words in said


def test_a_graph_that_was_not_checked_or_not_contradicted_is_not_thereby_right(material):
    unchecked = " ".join(cst.limits(dataclasses.replace(material, causal_checks=())))
    assert "was not checked" in unchecked
    kept = tuple(check for check in material.causal_checks if check["node"] != "income")
    quiet = " ".join(cst.limits(dataclasses.replace(material, causal_checks=kept)))
    assert "None of 1 checks spoke against the causal graph. That does not show that it is right" in quiet


def test_groups_in_which_permuted_labels_find_more_than_the_level_are_named(material):
    assert not any("nothing to find, with" in limit for limit in cst.limits(material)), "2 % is below the level"
    often = next(
        limit for limit in cst.limits(changed(material, "share_significant_null", FIRST, 0.271)) if "nothing" in limit
    )
    assert f"more than 5{SPACE}% of the complainants" in often
    assert f"{FIRST} (race, model) 27.1{SPACE}%." in often, "and no other group, nor the lender"
    bare = dataclasses.replace(material, measures=tuple(m for m in material.measures if "_null" not in m.measure))
    assert any("labels were not permuted" in limit for limit in cst.limits(bare))


def test_groups_that_are_small_beside_k_are_named(material):
    assert not any("same test" in limit for limit in cst.limits(material))
    few = changed(material, "share_significant", FIRST, 0.9, n=79)
    named = next(limit for limit in cst.limits(few) if "same test" in limit)
    assert "the 15 nearest" in named
    assert f"15 of 79 in {FIRST} (race)." in named


def test_every_figure_says_how_many_complainants_it_shows_and_for_whom_they_are_too_few(chapter, material):
    for name in ("cst-model-race", "cst-model-race-1", "cst-model-race-2", "cst-model-race-3"):
        for figure in under(chapter, name).figures:
            assert f"Complainants: {FIRST} 610, {HOSTILE[1]} 240, {WITHHELD} withheld." in figure.caption
            assert f"Nobody could be tested with k = 15: {NOBODY}." in figure.caption
            assert "too few" not in figure.caption
    few = by_race(changed(material, "share_significant", FIRST, 0.9, n=29))
    assert f"Fewer than 30, too few for a share or a distribution: {FIRST}." in differences.figures(few)[0].caption
    assert f"Applicants: {FIRST} 610, {HOSTILE[1]} 240; a group of fewer than 80" in (
        under(chapter, "cst-imagined-race").figures[0].caption
    )


def test_the_causal_graph_has_the_whole_width(chapter):
    assert under(chapter, "cst-causes").figures[0].panels[0].span == "full"


def test_names_from_the_data_are_escaped():
    other = report_tables.tables()
    tables = (report_cst.measures(), *other[1:8], report_cst.checks(), report_cst.effects(), *other[10:])
    page = report.function(*tables, settings=report_cst.settings()).files["report.html"].decode()
    assert FIRST not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;: 30.0" in page


def effect(n, **fields):
    usual = {"group": "b", "category": None, "quantile": None, "clipped": 0, "n": n}
    return usual | fields


@pytest.mark.parametrize(("policy", "n", "shown"), [("public", 49, False), ("public", 50, True), ("strict", 79, False)])
def test_tenths_of_a_small_group_are_withheld(policy, n, shown):
    rows = [effect(n, quantile=q, factual=1.0, imagined=2.0) for q in (0.1, 0.9)]
    (found,) = shifted(rows, POLICIES[policy])
    assert found.printed == shown
    assert {line.before for line in found.lines} == ({1.0} if shown else {None})


def test_a_category_with_few_people_is_withheld_and_not_given_away_by_the_others():
    shares = {"a": (0.59, 0.5), "b": (0.4, 0.49), "c": (0.01, 0.01)}
    rows = [effect(400, category=c, factual=old, imagined=new) for c, (old, new) in shares.items()]
    (found,) = shifted(rows, POLICIES["strict"])
    assert {line.words: line.before is None for line in found.lines} == {"a": False, "b": True, "c": True}
    assert found.lines[0].after == 0.5


names = st.integers(2, 9).flatmap(
    lambda n: st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] < e[1]), min_size=1)
)


@given(names)
def test_no_line_of_the_graph_runs_through_a_box_and_no_boxes_overlap(pairs):
    edges = nx.DiGraph([(f"column {a}", f"column {b}") for a, b in pairs])
    made = layout(edges, frozenset({"column 0"}))
    boxes = list(made.boxes.items())
    for i, (_, (l1, r1, t1, b1)) in enumerate(boxes):
        assert 0 <= t1 < b1 <= made.height
        for _, (l2, r2, t2, b2) in boxes[:i]:
            assert r1 <= l2 or r2 <= l1 or b1 <= t2 or b2 <= t1
    assert set(made.lines) == set(edges.edges)
    for (cause, effect_), points in made.lines.items():
        xs = [x for x, _ in points]
        assert xs == sorted(xs)
        assert math.isclose(xs[0], made.boxes[cause][1])
        assert xs[-1] <= made.boxes[effect_][0]
        for (x1, y1), (x2, y2) in pairwise(points):
            for left, right, top, bottom in made.boxes.values():
                if x1 < right and x2 > left:  # a line is above a box only where it runs in a lane
                    assert y1 == y2
                    assert not top < y1 < bottom


def test_complainants_are_listed_by_size(chapter):
    said = [p.split(":")[0] for p in under(chapter, "cst-model-race").points]
    assert said[:2] == list(COMPLAINANTS)[:2]


def test_what_was_clipped_stands_by_group_and_attribute(chapter):
    t = table(under(chapter, "cst-model-race-5"), "Share of complainants clipped")
    assert t.header == ("Group", "Complainants", "income, thousands", "amount")
    assert [cell.text for cell in t.rows[0]] == [FIRST, "610", f"2.3{SPACE}%", f"3.2{SPACE}%"]
    told = {row[0].text: [cell.text for cell in row[1:]] for row in t.rows}
    assert told[WITHHELD][1:] == ["withheld"] * 2
    assert told[NOBODY] == ["not computed"] * 3


def test_intervals_without_width_are_flagged_where_there_are_any(chapter, material):
    assert table(under(chapter, "cst-model-race-5"), "Intervals without width").rows[0][2].text == f"0.0{SPACE}%"
    assert not any("no width" in limit for limit in cst.limits(material))
    flagged = changed(material, "no_width_share", FIRST, 0.123)
    (said,) = (limit for limit in cst.limits(flagged) if "no width" in limit)
    assert f"12.3{SPACE}% in {FIRST} (race)" in said


def test_another_interval_or_no_clipping_leaves_no_table(material):
    kept = tuple(m for m in material.measures if m.measure not in ("no_width_share", "clipped_share"))
    bare = cst.chapter(dataclasses.replace(material, measures=kept))
    assert "cst-model-race-5" not in {s.anchor for s in sections(bare)}
