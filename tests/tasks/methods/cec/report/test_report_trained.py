"""Models trained for consistency: accuracy beside every score, collapse in words, and a frontier that is one."""

import dataclasses
import json
import re
from itertools import pairwise

import pyarrow as pa
import pytest
import report_cec
import report_tables
import report_trained
from report_cec import NOBODY, THETA, WITHHELD
from report_chapters import SPACE, drawn, drawn_of, sections, table, under
from report_tables import HOSTILE, REFERENCE
from report_trained import COLLAPSED_CEC, GRID, LOSS, NO_COPY, OTHERS, REASON, accuracy_of, score_of

from tasks.methods.cec.report import section as cec
from tasks.methods.cec.report.trained.lookups import comparisons, of_the_audited
from tasks.methods.cec.report.trained.reading import readings
from tasks.reporting.stage import report

FIRST, SECOND = HOSTILE


@pytest.fixture(scope="module")
def material():
    return report_trained.material()


@pytest.fixture(scope="module")
def chapter(material):
    return cec.chapter(material)


@pytest.fixture(scope="module")
def section(chapter):
    return under(chapter, "cec-trained-race-1")


def changed(material, measure, model, group=FIRST, over="mean", **fields):
    """The material with a measure of one model of a group changed."""

    def edit(m):
        named = m.said.get("model"), m.said.get("over_folds")
        hit = (m.measure, m.group, *named) == (f"trained_{measure}", group, model, over)
        return dataclasses.replace(m, **fields) if hit else m

    return dataclasses.replace(material, measures=tuple(map(edit, material.measures)))


def of_first(material):
    """The models trained on the first group."""
    return next(comparisons(material))


def said(material):
    """What is said of the first group."""
    return " ".join(readings(of_first(material)))


def row_of(t, model):
    """The row of a model as text."""
    return next([cell.whole for cell in row] for row in t.rows if row[1].text == model)


def test_every_group_has_a_part_and_one_without_models_has_none(chapter):
    part = under(chapter, "cec-trained-race")
    assert [s.title for s in part.parts] == [f"{group} beside {REFERENCE}" for group in (*HOSTILE, WITHHELD)]
    assert NOBODY not in json.dumps([s.title for s in sections(part)])


def test_trained_models_are_nobodys_and_leave_the_rest_of_the_chapter_as_it_is(chapter, material):
    bare = report_cec.material()
    assert [part.anchor for part in chapter.parts] == ["cec-model", "cec-trained"]
    assert chapter.parts[0] == cec.chapter(bare).parts[0]
    assert chapter.words == cec.chapter(bare).words
    assert of_the_audited(material).measures == bare.measures
    assert cec.limits(material)[: len(cec.limits(bare))] == cec.limits(bare)
    assert len(cec.limits(material)) == len(cec.limits(bare)) + 2


def test_without_trained_models_nothing_of_them_is_said():
    text = str(cec.chapter(report_cec.material())) + str(cec.limits(report_cec.material()))
    assert "trained anew" not in text
    assert "lambda" not in text


def test_the_tables_have_every_model_with_its_mean_and_spread(section):
    decides, reasons = (
        table(section, f"{start}: {FIRST}") for start in ("What the models decide", "What their reasons are")
    )
    assert len(decides.rows) == len(reasons.rows) == len(LOSS) + len(OTHERS)
    assert decides.header[:6] == ("Number", "Model", "Lambda EO", "Lambda CEC", "Collapsed", "Held-out rows")
    assert [cell.replace(SPACE, " ") for cell in row_of(decides, "full: both terms")] == [
        *("4", "full: both terms", "1", "1", "no", "1,220", "0.862 ± 0.0123", "0.811 ± 0.0123", "0.762 ± 0.0123"),
        *("76.5 % ± 1.2", "0.0321 ± 0.0123", "0.0456 ± 0.0123", "60.0 % ± 1.2"),
    ]
    found = [cell.replace(SPACE, " ") for cell in row_of(reasons, "full: both terms")]
    assert found[5] == "610"
    assert found[6:10] == ["0.210 ± 0.0123", "0.310 ± 0.0123", "0.100 ± 0.0123", "9.3 % ± 1.2"]
    assert [float(cell.split(" ")[0]) for cell in found[10:]] == pytest.approx([27.2, 63.5, 2.8, 6.5])


def test_the_grid_has_tables_of_its_own_in_the_order_of_its_lambdas(section):
    t = table(section, "What the models decide, for the grid")
    assert t.folded
    assert [(row[0].text, row[1].text) for row in t.rows] == [(f"{eo:g}", f"{c:g}") for eo in GRID for c in GRID]


def test_a_collapsed_model_is_called_so_in_every_row_and_in_the_readings(section, material):
    for start in ("What the models decide, for", "What their reasons are, for"):
        for row in table(section, start).rows:
            expected = f"collapsed: in 40.0{SPACE}% of the folds" if row[1].text == "10" else "no"
            assert row[2].text == expected
    assert f"{len(GRID)} of {len(GRID) ** 2} nets of the grid" in said(material)
    fallen = changed(material, "collapsed", "full", value=0.2)
    assert "But full collapsed" in said(fallen)
    assert f"full: both terms in 20.0{SPACE}% of the folds" in said(fallen)
    assert "But full collapsed" not in said(material)
    plane, bars, frontier = (drawn(f) for f in under(cec.chapter(fallen), "cec-trained-race-1").figures)
    assert "full: both terms (collapsed)" in {row.get("of") for row in plane}
    assert "4  full: both terms (collapsed)" in {row["of"] for row in bars}
    assert "full (collapsed)" in {row["name"] for row in frontier}


def test_what_has_no_logit_says_why_and_is_not_drawn(section, material):
    assert f"Without CEC: thresholds by group. The reason: {REASON}." in said(material)
    assert f"Without CEC: impact remover. The reason: {NO_COPY}." in said(material)
    assert row_of(table(section, f"What their reasons are: {FIRST}"), "thresholds by group")[5:] == ["undefined"] * 9
    for figure in section.figures[:2]:
        assert "Not drawn, because withheld or undefined: thresholds by group and impact remover." in figure.caption
        assert not {"thresholds by group", "impact remover"} & {row.get("of", "")[-19:] for row in drawn(figure)}


def test_the_plane_has_one_mark_a_model_above_its_floor(section):
    points = {row["of"]: row for row in drawn(section.figures[0]) if row["part"] == "point"}
    assert list(points) == ["unconstrained", "equal odds", "consistency", "full: both terms", "adversarial"]
    full = points["full: both terms"]
    assert (full["cec"], full["floor"], full["flip"]) == pytest.approx((0.31, 0.1, 0.093))
    assert (full["low"], full["high"]) == pytest.approx((0.31 - 0.0123, 0.31 + 0.0123))
    edges = [row for row in drawn(section.figures[0]) if row["part"] == "edge"]
    assert {row["cec"] for row in edges if "cec" in row} == {THETA}
    assert f"theta = {THETA:g}" in section.figures[0].caption


def test_regimes_fill_the_bar_of_each_model_and_a_withheld_part_hides_the_bar(section, material):
    rows = drawn(section.figures[1])
    assert len({row["of"] for row in rows}) == 5
    assert all(sum(r["value"] for r in rows if r["of"] == name) == pytest.approx(1) for name in {r["of"] for r in rows})
    gap = changed(material, "regime_share", "full", value=None)
    bars = drawn(under(cec.chapter(gap), "cec-trained-race-1").figures[1])
    assert not any("full" in row["of"] for row in bars)


def test_the_frontier_holds_those_that_no_other_net_beats_and_no_collapsed_one(section):
    rows = drawn(section.figures[2])
    assert len(rows) == len(LOSS) + len(GRID) ** 2
    for row in rows:
        eo, c = float(row["lambda_eo"]), float(row["lambda_cec"])
        assert row["collapsed"] == (c == max(GRID))
        score = COLLAPSED_CEC if row["collapsed"] else score_of(eo, c)
        assert (row["cec"], row["accuracy"]) == pytest.approx((score, accuracy_of(eo, c)))
    able = [r for r in rows if not r["collapsed"]]
    for row in able:
        beaten = any(
            (o["cec"], -o["accuracy"]) != (row["cec"], -row["accuracy"])
            and o["cec"] <= row["cec"]
            and o["accuracy"] >= row["accuracy"]
            for o in able
        )
        assert row["front"] == (not beaten)
    assert not any(r["front"] for r in rows if r["collapsed"])
    assert {r["name"] for r in rows} == {"", "full", "unconstrained"}


def test_shades_and_shapes_tell_all_lambdas_apart(section):
    figure = section.figures[2]
    texts = [swatch.text for swatch in figure.legend]
    weights = ["0", "0.5", "1", "2", "10"]
    assert texts == [*(f"lambda CEC {w}" for w in weights), *(f"lambda EO {w}" for w in weights), "frontier"]
    assert len({swatch.colour for swatch in figure.legend[:5]}) == 5
    assert len({swatch.shape for swatch in figure.legend[5:10]}) == 5
    spec = figure.panels[0].spec["layer"][1]["encoding"]
    assert spec["color"]["scale"]["domain"] == spec["shape"]["scale"]["domain"] == weights


def test_every_number_that_is_drawn_stands_in_a_table(section):
    printed = {cell.text for t in section.tables for row in t.rows for cell in row}
    figures = 0
    for figure in section.figures:
        shown = {text for row in drawn(figure) for text in row.get("shown", "").split("; ")} - {""}
        figures += bool(shown)
        assert shown <= printed, figure.title
    assert figures == 3


def test_every_panel_draws_marks(chapter):
    panels = [p for s in sections(under(chapter, "cec-trained")) for f in s.figures for p in f.panels]
    assert len(panels) == 2 * 3
    for panel in panels:
        assert drawn_of(panel)
        assert re.search(r'role-mark[^>]*"[^>]*><path', panel.svg), panel.title


def test_a_withheld_group_prints_no_number_and_is_no_pass(chapter):
    hidden = under(chapter, "cec-trained-race-3")
    assert not hidden.figures
    assert hidden.points == (f"{WITHHELD} beside {REFERENCE}: withheld. Nothing can be said, and that is no pass.",)
    for t in hidden.tables:
        for row in t.rows:
            assert {cell.text for cell in row[4 if t.header[0] == "Number" else 2 :]} == {"withheld"}, t.title


@pytest.mark.parametrize(("auc", "told"), [(0.98, True), (0.9799, False)])
def test_an_auc_that_is_not_to_be_believed_is_told(material, auc, told):
    found = said(changed(material, "auc", "unconstrained", value=auc))
    assert ("gives the outcome away: unconstrained." in found) == told


def test_few_pairs_are_too_few_to_say_however_many_rows_there_are(material):
    few = changed(material, "cec", "full", n=29)
    assert "But fewer than 30 pairs stand behind CEC: too few to say, and that is no pass." in said(few)


def test_too_few_held_out_rows_are_no_pass(material):
    few = dataclasses.replace(
        material,
        measures=tuple(dataclasses.replace(m, n=29) if m.measure[:8] == "trained_" else m for m in material.measures),
    )
    assert said(few) == (
        f"{FIRST} beside {REFERENCE}: 29 held-out rows, fewer than the 30 that a reading needs. "
        "Too few to say, and that is no pass."
    )
    assert any("Trained on too few rows" in limit for limit in cec.limits(few))
    assert not any("Trained on too few rows" in limit for limit in cec.limits(material))


def test_the_cost_of_consistency_is_told_with_accuracy(material):
    assert "CEC is 0.310 ± 0.0123 instead of 0.600 ± 0.0123" in said(material).replace(SPACE, " ")
    assert "balanced accuracy 0.762 ± 0.0123 instead of 0.800 ± 0.0123" in said(material).replace(SPACE, " ")
    assert "lies 0.210 above the matching floor" in said(material)
    below = changed(material, "cec_above_floor", "full", value=-0.04)
    assert "lies 0.0400 below the matching floor" in said(below)
    unknown = changed(material, "cec", "full", value=None)
    assert "is not known: CEC of full or unconstrained is undefined" in said(unknown)


def test_words_tell_how_to_choose_and_what_these_models_are_not(chapter, material):
    words = " ".join(under(chapter, "cec-trained").words)
    for part in ("How to choose lambda", "close to collapse", "0.55", f"5.0{SPACE}%", "measure the chosen one on rows"):
        assert part in words
    limits = " ".join(cec.limits(material))
    for part in ("as if it were right, and accuracy is agreement with it", "held-out rows", "above the matching floor"):
        assert part in limits


def test_the_part_stands_in_the_report_with_its_names_escaped():
    tables = (merged(), *report_tables.tables()[1:])
    files = report.function(*tables, settings=report_cec.settings()).files
    page = files["report.html"].decode()
    assert '<section id="cec-trained">' in page
    assert f"<h5>&lt;script&gt;alert(1)&lt;/script&gt; beside {REFERENCE}</h5>" in page
    assert FIRST not in page
    levels = [int(level) for level in re.findall(r"<h(\d)>", page)]
    assert all(b <= a + 1 for a, b in pairwise(levels))


def merged():
    """The measures of the audited model and of the trained ones."""
    return pa.concat_tables([report_cec.measures(), report_trained.measures()])
