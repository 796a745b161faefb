"""RAGUEL's chapter: costs never without those who have none, a ratio that falls is told, and offers are aggregates."""

import dataclasses
import json
import re
from collections import Counter
from itertools import pairwise

import pytest
import report_raguel
from report_chapters import SPACE, drawn, drawn_of, sections, table, under
from report_raguel import (
    BLOCKS,
    GRID,
    MINORITY,
    NO_SCORES,
    NOBODY,
    OFFERS,
    SIZES,
    TIED,
    TOLERANCES,
    TOO_MANY,
    WITHHELD,
    share,
)
from report_tables import HOSTILE, REFERENCE

from tasks.methods.raguel.report import blocks, costs, limits, offers, quality, ratio
from tasks.methods.raguel.report import section as raguel
from tasks.methods.raguel.report.lookups import ORDERS, RERANKED, Ranked, boundary
from tasks.pipeline.registry import METHODS
from tasks.reporting.methods import section_modules
from tasks.reporting.stage import report

FIRST, SECOND = HOSTILE
SAID = [REFERENCE, SECOND, FIRST]
"""Groups in the list of whom everything is told, in the order of their sizes among all applicants."""
BESIDE = f"{FIRST} beside {REFERENCE}"
WORDS = {order: swatch.text for order, swatch in ORDERS.items()}


@pytest.fixture(scope="module")
def material():
    return report_raguel.material()


@pytest.fixture(scope="module")
def chapter(material):
    return raguel.chapter(material)


@pytest.fixture(scope="module")
def by_race(chapter):
    return under(chapter, "raguel-model-race")


def of(material, maker="model", attribute="race"):
    """The measures of one list."""
    return next(r for r in Ranked.of(material, maker) if r.view.attribute == attribute)


def with_settings(model=None, **changes):
    """The material under other settings of the method, or of another kind of model."""
    more = {"model": model} if model else {}
    return report_raguel.material(
        report_raguel.spec(methods={"fgce": None, "raguel": report_raguel.raguel(**changes)}, **more)
    )


def changed(material, measure, group=FIRST, said=None, maker="model", **fields):
    """The material with a measure of a group changed; at parameters ``said``, or at all of them."""

    def edit(m):
        hit = (m.method, m.measure, m.group, m.decision_maker) == ("raguel", measure, group, maker)
        return dataclasses.replace(m, **fields) if hit and said in (None, m.said) else m

    return dataclasses.replace(material, measures=tuple(map(edit, material.measures)))


def without(material, *measures):
    """The material without some measures."""
    return dataclasses.replace(material, measures=tuple(m for m in material.measures if m.measure not in measures))


def text_of(row):
    return [cell.whole.replace(SPACE, " ") for cell in row]


def rows_of(t, name, order=None):
    """The rows of a group, or of a comparison, without its name; of one order, without that too."""
    found = [text_of(row) for row in t.rows if row[0].text.removesuffix(" (reference)") == name]
    return [row[1:] for row in found] if order is None else [row[2:] for row in found if row[1] == WORDS[order]]


def said_of(points, start):
    return next(point for point in points if point.startswith(start)).replace(SPACE, " ")


def all_limits(material):
    return " ".join(raguel.limits(material)).replace(SPACE, " ")


def test_every_measure_of_the_registry_has_words_and_no_term_has_two_meanings():
    assert set(raguel.MEASURES) == set(METHODS["raguel"].measures)
    for mine in (lambda m: m.GLOSSARY, lambda m: m.MEASURES):
        texts = {}
        for module in section_modules(METHODS).values():
            for name, meaning in mine(module).items():
                assert texts.setdefault(name, meaning) == meaning, name


def test_the_chapter_has_a_part_for_every_decision_maker_and_attribute_and_five_parts_in_each(chapter):
    assert [part.anchor for part in chapter.parts] == ["raguel-model", "raguel-lender"]
    for maker in chapter.parts:
        assert [s.title for s in maker.parts] == ["By race", "By sex"]
        assert all(len(s.parts) == 4 and s.figures and s.tables for s in maker.parts)
    assert set(Counter(s.anchor for s in sections(chapter)).values()) == {1}


@pytest.mark.parametrize(
    ("model", "changes", "words"),
    [
        (
            {"kind": "logistic_regression"},
            {"steps": False},
            "which is linear, and the nearest permitted point is worked",
        ),
        ({"kind": "logistic_regression"}, {"steps": True}, "searched in whole steps, where the audit spec gives any."),
        ({"kind": "logistic_regression"}, {"steps": False, "most": 2}, "searched among changes of at most 2 columns."),
        (
            {"kind": "rule", "rule": {"weights": {"income": 1.0}, "limit": 3}},
            {"steps": False},
            "The boundary is the rule's",
        ),
        ({"kind": "random_forest"}, {}, "The model has no boundary that could be written down: the nearest applicant"),
        ({"kind": "file", "file": {"path": "m.onnx"}}, {}, "Where the given model is linear its own boundary is taken"),
    ],
)
def test_it_is_said_which_boundary_costs_lead_to(model, changes, words):
    changed_material = with_settings(model, **changes)
    assert words in boundary(changed_material, "model")
    assert words in all_limits(changed_material)


def test_of_a_lender_nobody_knows_the_boundary(material, chapter):
    assert "Nobody knows where the lender draws the line" in boundary(material, "lender")
    for maker in ("model", "lender"):
        assert under(chapter, f"raguel-{maker}").words == (boundary(material, maker),)


def test_assumptions_stand_as_the_audit_spec_has_them(chapter):
    t = table(dataclasses.replace(chapter, parts=()), "What recourse is assumed to be")
    assert [text_of(row) for row in t.rows] == [
        ["<b>income</b>, thousands", "up only", "0.5", "0.25", "to 480"],
        ["debts", "either way", "1", "–", "–"],
        ["age", "no", "1", "–", "–"],
    ]


def test_a_mean_cost_never_stands_without_those_who_have_none(by_race):
    t = table(by_race, "Cost of recourse before any offer")
    assert t.header[:5] == ("Group", "To be listed", "Without a cost", "Listed", "Mean cost")
    assert rows_of(t, FIRST) == [
        ["260", "20.0 %", "250", "1.50 [1.45, 1.55]", "+0.500 [+0.440, +0.560]", "0.012", "0.023", "3.2 %"]
    ]
    assert rows_of(t, REFERENCE)[0][4:] == ["–", "–", "–", "3.2 %"]
    assert rows_of(t, NOBODY)[0][:4] == ["12", "100.0 %", "not computed", "not computed"]
    assert set(rows_of(t, WITHHELD)[0]) == {"withheld", "–"}
    assert "Without a cost: 20.0 %." in said_of(by_race.points, FIRST)


def test_nobody_listed_too_few_and_withheld_are_no_pass(material, by_race):
    for group in (NOBODY, WITHHELD):
        assert said_of(by_race.points, group).endswith("Nothing can be said, and that is no pass.")
    few = changed(material, "recourse_cost", n=29)
    said = said_of(costs.readings(of(few)), FIRST)
    assert "29 applicants have a cost, fewer than the 30" in said
    assert said.endswith("Too few to say, and that is no pass.")
    assert f"29 in {FIRST} (race" in all_limits(few)
    assert "Too few listed" not in all_limits(material)


@pytest.mark.parametrize(
    ("low", "high", "value", "words"),
    [
        (0.4, 0.6, 0.5, f"further away than {REFERENCE} (+0.500 [+0.400, +0.600])"),
        (-0.6, -0.4, -0.5, f"nearer than {REFERENCE}"),
        (
            -0.1,
            0.6,
            0.5,
            f"not distinguishable from {REFERENCE} (+0.500 [\N{MINUS SIGN}0.100, +0.600]), which is no pass.",
        ),
    ],
)
def test_a_difference_is_told_with_its_interval(material, low, high, value, words):
    known = changed(material, "recourse_cost_difference", value=value, low=low, high=high)
    assert words in said_of(costs.readings(of(known)), FIRST)


def test_quantiles_are_drawn_only_where_all_are_known(material, by_race):
    means, spread = by_race.figures[0].panels
    assert {row["row"] for row in drawn_of(spread)} == set(SAID)
    row = next(r for r in drawn_of(spread) if r["row"] == FIRST and r["what"] == WORDS["list"])
    assert [row[name] for name in ("lowest", "lower", "median", "upper", "highest")] == [0.72, 0.9, 1.2, 1.5, 1.68]
    assert row["shown"] == "0.720, 0.900, 1.20, 1.50, 1.68"
    assert {(r["row"], r["what"]): r["value"] for r in drawn_of(means)}[FIRST, WORDS["blocks"]] == 1.4
    assert f"Not drawn, because withheld or undefined: {NOBODY} and {WITHHELD}." in by_race.figures[0].caption
    gap = changed(material, "recourse_cost_quantile", said={"quantile": 0.9, "order": "list"}, value=None)
    panel = costs.figures(of(gap))[0].panels[1]
    assert (FIRST, WORDS["list"]) not in {(r["row"], r["what"]) for r in drawn_of(panel)}
    assert (FIRST, WORDS[""]) in {(r["row"], r["what"]) for r in drawn_of(panel)}


def test_blocks_show_shares_in_every_order_inside_their_band(by_race):
    part = under(by_race, "raguel-model-race-1")
    assert [panel.title for panel in part.figures[0].panels] == [f"{REFERENCE} (reference)", SECOND, FIRST]
    rows = drawn_of(part.figures[0].panels[2])
    for order in ("", "list", "blocks", "any"):
        found = {r["block"]: r["value"] for r in rows if r["what"] == WORDS[order]}
        expected = {b: share(FIRST, SIZES, order, b) for b in range(1, BLOCKS + 1)}
        assert found == pytest.approx(expected, abs=1e-4)
    own = SIZES[FIRST] / sum(SIZES.values())
    band = [(r["low"], r["high"]) for r in rows if r["what"] is None]
    assert band == [pytest.approx((own * 2 / 3, own * 4 / 3), abs=1e-4)] * BLOCKS
    assert not any(r["what"] is None for r in drawn_of(part.figures[0].panels[0]))


def test_a_withheld_block_breaks_its_line_and_takes_no_other_place(material):
    gap = changed(material, "block_share", said={"block": 2}, value=None, n=None)
    panel, shares = blocks.figures(of(gap))[0].panels[2], blocks.tables(of(gap))[1]
    rows = [r for r in drawn_of(panel) if r["what"] == WORDS[""]]
    assert [r["block"] for r in rows if r["value"] is None] == [2]
    line = next(layer for layer in panel.spec["layer"] if layer["mark"]["type"] == "line")
    assert line["mark"]["invalid"] == "break-paths-show-domains"
    found = rows_of(shares, FIRST, "")
    assert [cell == "withheld" for cell in found[0]] == [False, True, False, False]


def test_unfair_blocks_stand_before_and_after(material, by_race):
    part = under(by_race, "raguel-model-race-1")
    assert rows_of(table(part, "Blocks that are not fair"), FIRST) == [
        ["773", "32.3 % [31.3, 33.3]", "21.6 %", "43.1 %", "3", "1", "1", "1"]
    ]
    assert rows_of(table(part, "Blocks that are not fair"), REFERENCE)[0][2:4] == ["–", "–"]
    assert said_of(part.points, FIRST) == (
        f"{FIRST}: 3 of 4 blocks are unfair in the initial order; list re-ranked (Algorithm 1): 1; blocks re-ranked "
        "(Algorithm 2): 1; blocks re-ranked at any depth: 1."
    )
    assert said_of(part.points, "Any group").startswith("Any group: 3 of 4 blocks")
    gone = changed(material, "unfair_blocks", said={"order": "list"}, value=None, n=None)
    assert "(Algorithm 1): withheld" in said_of(blocks.readings(of(gone)), FIRST)
    banded = of(with_settings(block_column="debts"))
    assert "as the bands of debts cut the list" in blocks.tables(banded)[0].note


def test_the_ratio_stands_overall_and_over_blocks_before_and_after(by_race):
    part = under(by_race, "raguel-model-race-2")
    t = table(part, "Ratio of costs, by race")
    assert rows_of(t, BESIDE, "") == [["650", "0.667 [0.647, 0.687]", "0.707", "0.467"]]
    assert rows_of(t, BESIDE, "list") == [["650", "0.833 [0.813, 0.853]", "0.873", "0.633"]]
    assert rows_of(t, BESIDE, "any") == [["650", "0.952 [0.932, 0.972]", "0.992†", "0.752†"]]
    assert rows_of(t, BESIDE, "demographic_parity")[0][2:] == ["–", "–"]
    assert t.note.endswith(f"† {TIED}.")
    assert rows_of(t, "all groups together", "")[0][1] == "0.667 [0.647, 0.687]"
    assert "List re-ranked (Algorithm 1): 0.833, on average over blocks 0.873 (before 0.707)." in said_of(
        part.points, BESIDE
    )


def test_with_two_groups_all_together_are_not_told_twice(chapter):
    part = under(chapter, "raguel-model-sex-2")
    assert {row[0].text for row in table(part, "Ratio of costs, by sex").rows} == {"women beside men"}
    assert len(part.figures[0].panels) == 1
    assert len(under(chapter, "raguel-model-sex-1").points) == 1


def test_a_ratio_that_falls_is_told_in_its_reading_and_on_the_first_page(material, chapter):
    said = under(chapter, "raguel-model-sex-2").points[0]
    assert "(Algorithm 1): 0.750, which is lower, on average over blocks 0.790 (before 0.840), which is lower." in said
    assert "(Algorithm 2): 0.870, on average" in said
    assert "mean over blocks, is lower after some re-ranking than before: women beside men (sex" in all_limits(material)
    risen = material
    for maker in ("model", "lender"):
        risen = changed(risen, "ratio_of_costs", "women", {"order": "list"}, maker, value=0.85)
    assert "lower after some re-ranking than before:" in all_limits(risen)
    for maker in ("model", "lender"):
        risen = changed(risen, "ratio_of_costs", "women", {"order": "list", "over": "mean_block"}, maker, value=0.85)
    assert "lower after some re-ranking than before:" not in all_limits(risen)


def test_a_ratio_with_a_small_group_is_too_few_to_say_however_large_the_other_is(material):
    few = changed(material, "recourse_cost", n=29, said={})
    for start in (BESIDE, "All groups together"):
        said = said_of(ratio.readings(of(few)), start)
        assert "fewer than 30 applicants of a group, too few to say, and that is no pass." in said
    assert "too few" not in said_of(ratio.readings(of(few)), SECOND)


def test_an_undefined_ratio_gives_its_reason(material):
    alone = changed(material, "ratio_of_costs", said={}, value=None, note="there is one group only")
    said = said_of(ratio.readings(of(alone)), BESIDE)
    assert said == (
        f"{BESIDE}: the ratio is undefined. The reason: there is one group only. Nothing can be said, and that is no "
        "pass."
    )


def test_the_heat_map_has_every_cut_and_tolerance_and_says_why_a_cell_is_empty(by_race):
    part = under(by_race, "raguel-model-race-2")
    figure = part.figures[1]
    panel = next(p for p in figure.panels if p.title == f"Mean over the blocks: {BESIDE}")
    rows = {(r["blocks"], r["tolerance"]): (r["value"], r["shown"]) for r in drawn_of(panel)}
    assert len(rows) == len(GRID) * (1 + len(TOLERANCES))
    assert rows["5", "before"] == (0.81, "0.810")
    assert rows["5", "0.500"] == (pytest.approx(0.845), "0.845")
    assert rows["10", "0.200"] == (pytest.approx(0.87), "0.870")
    assert rows["900", "0.200"] == (None, "–")
    whole = next(p for p in figure.panels if p.title == f"Whole list: {BESIDE}")
    assert {r["value"] for r in drawn_of(whole) if r["tolerance"] == "before"} == {round(2 / 3, 4)}
    t = table(part, "Ratio of costs by blocks and tolerance")
    assert t.folded
    assert rows_of(t, BESIDE)[-1] == ["Mean over the blocks", "0.200", "0.875", "0.870", "undefined"]
    assert t.note == f"Undefined: {TOO_MANY}."


def test_heat_maps_of_a_figure_have_one_scale(by_race):
    panels = under(by_race, "raguel-model-race-2").figures[1].panels
    domains = {tuple(p.spec["layer"][0]["encoding"]["color"]["scale"]["domain"]) for p in panels}
    assert len(panels) == 6
    assert len(domains) == 1
    assert domains.pop() == pytest.approx((2 / 3, 1))


def test_ranking_quality_has_every_order_and_says_why_a_metric_is_undefined(by_race):
    part = under(by_race, "raguel-model-race-3")
    t = table(part, "Ranking quality")
    assert [row[0] for row in rows_of(t, FIRST)] == list(WORDS.values())
    assert rows_of(t, FIRST, "fa_ir") == [["773", "0.0123", "0.0456", "0.0789"]]
    assert rows_of(t, SECOND, "fa_ir") == [["773", "0.0123", "0.0456", "undefined"]]
    assert said_of(part.points, SECOND) == f"{SECOND}: rRD is undefined ({MINORITY})."
    assert not any(point.startswith(FIRST) for point in part.points)
    assert said_of(part.points, NOBODY).endswith("Nothing can be said, and that is no pass.")
    assert "Not made in this run" not in t.note


def test_orders_that_were_not_made_are_named_and_no_scores_are_a_reason(material, chapter):
    part = under(chapter, "raguel-lender-race-3")
    note = table(part, "Ranking quality").note
    assert note.endswith("Not made in this run: FA*IR.") is False
    few = dataclasses.replace(
        material, measures=tuple(m for m in material.measures if m.said.get("order") not in ("fa_ir", "any"))
    )
    assert "Not made in this run: FA*IR." in quality.tables(of(few))[0].note
    assert of(few).reranked == ("list", "blocks")
    assert of(material, "lender").reranked == ("list", "blocks")
    baselines = table(under(chapter, "raguel-lender-race-4"), "What other rules would do")
    assert rows_of(baselines, FIRST, "equalised_odds") == [["–", "–", "–", "undefined"]]
    assert baselines.note.endswith(f"Undefined: {NO_SCORES}.")


def test_offers_say_whom_they_reach_and_at_what_cost(by_race):
    part = under(by_race, "raguel-model-race-4")
    t = table(part, "Offers: whom they reach")
    assert len(t.rows) == len(RERANKED) * len(SIZES)
    assert rows_of(t, FIRST, "list") == [["250", "60", "67", "30.0", "0.500", "1.20 [1.15, 1.25]", "4.3 % [3.3, 5.3]"]]
    assert rows_of(t, REFERENCE, "list") == [["400", "0", "7", "0", "–", "1.00 [0.950, 1.05]", "–"]]
    assert "offers go to the group with the higher mean cost alone" in t.note
    assert said_of(part.points, "List re-ranked").endswith(
        f"{SECOND} 0; {FIRST} {OFFERS['list']}; {WITHHELD} withheld."
    )
    assert any("no promise" in words for words in part.words)
    assert "go to any group" in offers.tables(of(with_settings(direction="both")))[0].note


def test_the_sum_over_so_few_offers_that_their_mean_is_withheld_is_not_shown(material):
    few = changed(material, "mean_offer_cost", said={"order": "blocks"}, value=None, n=None)
    t = offers.tables(of(few))[0]
    assert rows_of(t, FIRST, "blocks")[0][3:5] == ["withheld", "withheld"]
    assert rows_of(t, FIRST, "list")[0][3:5] == ["30.0", "0.500"]


def test_what_offers_change_is_aggregated_commonest_first_and_small_cells_are_withheld(material, by_race):
    t = table(by_race, "What offers would change")
    assert rows_of(t, FIRST, "list") == [
        ["<b>income</b>, thousands", "60", "75.0 % [72.0, 78.0]", "45", "12.5 [12.0, 13.0]"],
        ["debts", "60", "50.0 % [47.0, 53.0]", "30", "\N{MINUS SIGN}2.00 [\N{MINUS SIGN}2.50, \N{MINUS SIGN}1.50]"],
    ]
    assert rows_of(t, FIRST, "blocks")[1][3:] == ["withheld", "withheld"]
    turned = changed(material, "offer_share", said={"order": "list", "attribute": "debts"}, value=0.9)
    assert offers.tables(of(turned))[1].rows[0][2].text == "debts"
    hidden = changed(material, "offer_share", said={"order": "list", "attribute": "income"}, value=None, n=None)
    assert [row[2].text for row in offers.tables(of(hidden))[1].rows[:2]] == [
        "debts",
        "<b>income</b>, thousands",
    ]


def test_where_re_ranking_stopped_is_told(material):
    m = next(m for m in material.measures if m.measure == "below_predecessor_share" and m.said == {"order": "list"})
    for value, note, shown in ((17.0, "", "17"), (None, "the list was never copied", "never")):
        ended = dataclasses.replace(m, measure="exit_rank", value=value, note=note)
        t = offers.tables(of(dataclasses.replace(material, measures=(*material.measures, ended))))[2]
        assert text_of(t.rows[0]) == [WORDS["list"], "2.3 %", shown]
    assert text_of(offers.tables(of(material))[2].rows[0])[2] == "–"


def test_the_first_page_tells_what_a_list_by_cost_is_not(material):
    text = all_limits(material)
    for part in (
        "and not by merit",
        "is assumed, and not found in the data: the audit spec gives 1 of 3 columns a weight, a step or bounds",
        "Theorem 3.5, which promises more, has a counterexample",
        "Nothing here says that a decision was unlawful",
        f"20.0 % in {FIRST} (race, the model of the lender's decisions)",
        f"100.0 % in {NOBODY} (race",
        "Counterfactual points that the very model does not favour",
        "No lender can be asked",
        f"No mean cost, because withheld or because nobody was listed: {NOBODY} (race",
    ):
        assert part in text, part
    strict = all_limits(with_settings(rule="strict", delta=0.2))
    assert "accepted only if the ratio of costs is then at least 0.8" in strict
    assert limits.PER_SWAP not in strict


def test_without_anybody_ranked_nothing_reads_as_a_pass(material):
    nobody = dataclasses.replace(material, measures=tuple(m for m in material.measures if m.method != "raguel"))
    assert tuple(raguel.limits(nobody)) == (limits.NOBODY,)
    bare = raguel.chapter(nobody)
    assert bare.words[-1] == limits.NOBODY
    assert not bare.parts


def test_a_chapter_of_few_measures_has_no_empty_parts(material):
    bare = without(material, *(set(raguel.MEASURES) - {"recourse_cost", "unreached_share"}))
    part = under(raguel.chapter(bare), "raguel-model-race")
    assert part.tables
    assert all(s.tables or s.figures for s in part.parts)
    assert len(part.figures[0].panels) == 1


def test_every_number_that_is_drawn_stands_in_a_table(by_race):
    printed = {cell for s in sections(by_race) for t in s.tables for row in t.rows for cell in text_of(row)}
    printed |= {cell.split(" [")[0].rstrip("†") for cell in printed} | {cell.rstrip("†") for cell in printed}
    for s in sections(by_race):
        for figure in s.figures:
            for row in drawn(figure):
                parts = row["shown"].replace(SPACE, " ").split("; ") if "shown" in row else []
                for text in parts if "lowest" not in row else row["shown"].split(", "):
                    assert text in printed or text in ("–", "withheld"), (figure.title, text)


def test_every_panel_draws_marks(chapter):
    panels = [p for s in sections(chapter) for f in s.figures for p in f.panels]
    assert len(panels) == 2 * ((2 + 3 + 3 + 6) + (2 + 2 + 1 + 2))
    for panel in panels:
        assert drawn_of(panel)
        assert re.search(r'role-mark[^>]*"[^>]*><(path|text)', panel.svg), panel.title


def test_the_chapter_stands_in_the_report_with_its_names_escaped_and_no_restricted_table():
    files = report.function(*report_raguel.tables(), settings=report_raguel.settings()).files
    page = files["report.html"].decode()
    assert '<section id="raguel">' in page
    assert FIRST not in page
    assert "&lt;b&gt;income&lt;/b&gt;" in page
    levels = [int(level) for level in re.findall(r"<h(\d)>", page)]
    assert all(b <= a + 1 for a, b in pairwise(levels))
    assert "raguel" in json.loads(files["report.json"])["tables"]
    read = {t.name for t in report.reads}
    assert not {"reranked", "offers", "findings", "evidence"} & read
