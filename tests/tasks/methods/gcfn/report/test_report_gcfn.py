"""GCFN's chapter: no share of flips without what is not identified, and nothing that small cells could be had from."""

import dataclasses
import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import report_gcfn
from hypothesis import given
from hypothesis import strategies as st
from report_chapters import drawn, drawn_of, sections, table, under
from report_gcfn import (
    ABOVE,
    ENDS,
    EPOCHS,
    FLIPS,
    NETWORKS,
    NOBODY,
    PURPOSES,
    QUANTILE,
    WIDE,
    WIDTHS,
    WITHHELD,
    all_limits,
    changed,
    rows_of,
    said_of,
    text_of,
    with_settings,
)
from report_tables import HOSTILE, REFERENCE

from tasks.methods.gcfn.report import checks, identification, people
from tasks.methods.gcfn.report import decisions as mediated_found
from tasks.methods.gcfn.report import densities as mediated_density
from tasks.methods.gcfn.report import section as gcfn
from tasks.methods.gcfn.report.lookups import generators, mediated
from tasks.methods.gcfn.report.mediators import _told
from tasks.methods.gcfn.report.predictors import tables
from tasks.methods.gcfn.report.predictors.lookups import fair
from tasks.metrics.algorithm.disclosure import POLICIES
from tasks.pipeline.registry import METHODS
from tasks.reporting.chapters import builder
from tasks.reporting.methods import section_modules
from tasks.reporting.stage import report

FIRST, SECOND = HOSTILE
SAID = [REFERENCE, FIRST, SECOND]
"""Groups of whom everything is told."""


@pytest.fixture(scope="module")
def material():
    return report_gcfn.material()


@pytest.fixture(scope="module")
def chapter(material):
    return gcfn.chapter(material)


@pytest.fixture(scope="module")
def audit(chapter):
    return under(chapter, "gcfn-model-race")


def without(material, *measures):
    """The material without some measures."""
    return dataclasses.replace(material, measures=tuple(m for m in material.measures if m.measure not in measures))


def of_race(material):
    """The measures of the audited model by race."""
    return mediated(material)[0]


def test_every_measure_of_the_registry_has_words_and_no_term_has_two_meanings():
    assert set(gcfn.MEASURES) == set(METHODS["gcfn"].measures)
    modules = section_modules(METHODS).values()
    for mine in (lambda m: m.GLOSSARY, lambda m: m.MEASURES):
        texts = {}
        for module in modules:
            for name, meaning in mine(module).items():
                assert texts.setdefault(name, meaning) == meaning, name


def test_the_chapter_has_the_audit_then_the_generators_then_the_predictors(chapter):
    assert [part.anchor for part in chapter.parts] == ["gcfn-model", "gcfn-generators", "gcfn-fair"]
    for part, by in zip(chapter.parts, (["race", "purpose"], ["race", "purpose"], ["race"]), strict=True):
        assert [s.title for s in part.parts] == [f"By {name}" for name in by]
    anchors = Counter(s.anchor for s in sections(chapter))
    assert set(anchors.values()) == {1}


def test_the_table_of_decisions_has_the_worst_network_and_the_mean_over_them(audit):
    t = table(audit, "Decisions that would change")
    assert t.header[:7] == (
        *("Group", "Imagined as", "Applicants imagined", "Decided otherwise", "Mean over networks"),
        *("Then favourable", "Then unfavourable"),
    )
    assert rows_of(t, FIRST) == [
        [
            *(REFERENCE, "610", "16.0 % [14.9, 17.1]", "14.4 % [13.3, 15.5]", "12.0 % [10.9, 13.1]"),
            *("4.0 % [2.9, 5.1]", "7.2 %", "+14.0 pp [+12.9, +15.1]", "0.012", "0.023"),
        ]
    ]
    assert rows_of(t, REFERENCE)[0][:3] == ["each other group", "4,200", "2.0 % [0.9, 3.1]"]
    assert rows_of(t, REFERENCE)[0][-3:] == ["–"] * 3
    assert rows_of(t, WITHHELD) == [[REFERENCE, *["withheld"] * 7, "–", "–"]]
    assert not rows_of(t, NOBODY)


def test_the_table_of_scores_has_all_four_numbers(audit):
    t = table(audit, "How far scores")
    assert f"{100 * QUANTILE:g} % are smaller than" in t.header
    assert [cell.split(" ")[0] for cell in rows_of(t, SECOND)[0][2:]] == [
        "−0.0800",
        "0.0480",
        "0.120",
        "0.480",
        "0.0576",
    ]
    assert "the model's score, between 0 and 1" in t.note


def test_a_rule_has_its_own_unit():
    rule = {"kind": "rule", "rule": {"weights": {"age": 1.0}, "limit": 3.0}}
    material = report_gcfn.material(report_gcfn.spec(model=rule))
    _, scores = mediated_found.tables(of_race(material))
    assert "Change of the sum of the rule" in scores.note


def test_the_figure_has_a_mark_for_each_share_and_names_whom_it_leaves_out(audit):
    (figure,) = audit.figures
    flips, directions = (
        {(r["row"], r["what"]): r["value"] for r in panel.spec["datasets"]["rows"]} for panel in figure.panels
    )
    assert flips == pytest.approx(
        {
            **{(group, "most of all networks"): FLIPS[group] for group in SAID},
            **{(group, "mean over networks"): 0.9 * FLIPS[group] for group in SAID},
        },
        abs=1e-4,
    )
    for group in SAID:
        parts = [directions[group, kind] for kind in ("then favourable", "then unfavourable")]
        assert sum(parts) == pytest.approx(FLIPS[group], abs=2e-4)
        assert parts[0] > parts[1]
    assert f"Not drawn, because withheld or undefined: {NOBODY} and {WITHHELD}." in figure.caption


def test_a_reading_never_tells_flips_without_what_is_not_identified(audit, material):
    said = said_of(audit.points, FIRST)
    for part in (
        f"imagined as {REFERENCE}: 16.0 % [14.9, 17.1] of 610 applicants",
        "then favourable 12.0 % [10.9, 13.1], then unfavourable 4.0 % [2.9, 5.1]",
        "On average over networks it is 14.4 %",
        f"or part by more than {WIDE:g}: 4.0 % [2.9, 5.1].",
    ):
        assert part in said
    assert said_of(audit.points, WITHHELD) == f"{WITHHELD}: withheld. Nothing can be said, and that is no pass."
    assert (
        said_of(audit.points, NOBODY)
        == f"{NOBODY}: nobody could be imagined. Nothing can be said, and that is no pass."
    )
    few = changed(material, "decision_flip_share", n=29)
    told = said_of(mediated_found.readings(of_race(few)), FIRST)
    assert "29 applicants were imagined, fewer than the 30" in told
    assert "that is no pass" in told
    assert "16.0" not in told
    assert f"29 in {FIRST} (race)" in all_limits(few)
    unknown = without(material, "not_identified_share")
    assert "not identified is not computed" in said_of(mediated_found.readings(of_race(unknown)), FIRST)


def test_spreads_are_told_apart_by_the_limit(audit):
    part = under(audit, "gcfn-model-race-1")
    (figure,) = part.figures
    kinds = {row["bin"]: row["kind"] for row in drawn(figure)}
    above, both = "above the limit", "on both sides of the limit"
    assert kinds == {
        **dict.fromkeys(("0 to 0.05", "0.05 to 0.1", "0.1 to 0.15", "0.15 to 0.2"), "up to the limit"),
        **{"0.2 to 0.25": both, "0.25 to 0.5": above, "0.5 to 1": above, "1 and more": above},
    }
    assert f"Above {WIDE:g}" in figure.caption
    assert [row[0].text for row in table(part, "Spread between").rows] == list(kinds)
    (at_an_end,) = identification.figures(of_race(with_settings(wide=0.25)))
    assert {row["kind"] for row in drawn(at_an_end)} == {"up to the limit", above}
    assert len(kinds) == len(ENDS)


def test_what_is_identified_depends_on_the_mediators_and_the_number_of_generators(chapter):
    race, purpose = (" ".join(under(chapter, f"gcfn-model-{name}-1").words) for name in ("race", "purpose"))
    assert "What is not identified: there are 2 mediators (income, thousands and purpose)" in race
    assert "What is identified: income, thousands is the one mediator" in purpose
    assert "up to a flip" in purpose
    assert "up to a flip" not in race
    for words in (race, purpose):
        assert f"Imagined by {NETWORKS} networks" in words
        assert "may all agree on the same wrong answer" in words
    alone = with_settings(networks=1)
    words = " ".join(identification.words(of_race(alone)))
    assert "Imagined by one generator" in words
    assert "no pass" in words
    decisions, _ = mediated_found.tables(of_race(alone))
    assert "Mean over networks" not in decisions.header
    assert "One generator imagined everybody" in all_limits(alone)


def test_mediators_are_drawn_as_they_are_as_imagined_and_as_in_the_other_group(chapter):
    _, numbers, categories = under(chapter, "gcfn-generators-race-1").figures
    assert [panel.title for panel in numbers.panels] == [f"Income, thousands: {group}" for group in HOSTILE]
    rows = drawn_of(numbers.panels[0])
    for kind, first in (("as they are", 43), ("as imagined", 48), (f"{REFERENCE} as they are", 49)):
        line = {row["share"]: row["value"] for row in rows if row["what"] == kind}
        assert line == pytest.approx({q / 10: first + 3 * (q - 1) for q in range(1, 10)})
    shares = {(row["row"], row["what"]): row["value"] for row in drawn_of(categories.panels[0])}
    assert shares["buy", "as they are"] == pytest.approx(0.6, abs=0.01)
    assert shares["buy", "as imagined"] == pytest.approx(0.5, abs=0.01)
    assert f"Not drawn, because withheld: {WITHHELD}." in numbers.caption
    assert len(under(chapter, "gcfn-generators-purpose-1").figures) == 2


def test_densities_are_stepped_lines_of_even_intervals(chapter, material):
    densities = under(chapter, "gcfn-generators-race-1").figures[0]
    assert densities.title == "Densities of mediators, by race"
    assert [panel.title for panel in densities.panels] == [f"Income, thousands: {group}" for group in HOSTILE]
    rows = drawn_of(densities.panels[0])
    kinds = ["as they are", "as imagined", f"{REFERENCE} as they are"]
    assert list(dict.fromkeys(row["what"] for row in rows)) == kinds
    for kind, part in zip(kinds, (1, 0.5, 1), strict=True):
        corners = [(row["x"], row["value"]) for row in rows if row["what"] == kind]
        shares = [round(part / (2 + abs(at - 4)), 4) for at in range(WIDTHS)]
        assert corners == [(5.0 * end, shares[at]) for at in range(WIDTHS) for end in (at, at + 1)]
    assert [swatch.dash for swatch in densities.legend] == ["", "6 3", "2 2"]
    assert f"Not drawn, because withheld or undefined: {WITHHELD}." in densities.caption
    told = rows_of_mediator(table(under(chapter, "gcfn-generators-race-1"), "Densities"), FIRST)
    assert [row[0] for row in told] == [
        "below 0",
        *(f"{5 * at} to {5 * at + 5}" for at in range(WIDTHS)),
        "50 and more",
    ]
    at = {"mediator": "income", "from": 20.0, "to": 25.0}
    gap = changed(material, "imagined_mediator_share", said=at, value=None, n=None, reason="withheld: a small cell")
    (figure, *_) = mediated_density.figures(next(generators(gap)))
    hidden = [row for row in drawn_of(figure.panels[0]) if row["value"] is None]
    assert [(row["what"], row["x"], row["shown"]) for row in hidden] == [
        ("as imagined", end, "withheld") for end in (20, 25)
    ]
    assert len(re.findall(r'<path[^>]* d="M[^"]*M', figure.panels[0].svg)) > len(
        re.findall(r'<path[^>]* d="M[^"]*M', densities.panels[0].svg)
    )


def rows_of_mediator(t, group):
    """The rows of a group in a table whose first column is the mediator, without both."""
    return [text_of(row)[2:] for row in t.rows if row[1].text == group]


def test_panels_of_one_mediator_have_one_scale(material):
    at = {"mediator": "income", "from": 20.0, "to": 25.0}
    high = changed(material, "mediator_share", said=at, value=0.93)
    (figure, *_) = mediated_density.figures(next(generators(high)))
    scales = {str(panel.spec["encoding"]["y"]["scale"]) for panel in figure.panels}
    assert len(scales) == 1
    assert "0.93" in scales.pop()


def test_who_would_be_decided_on_otherwise_is_told_by_band(audit):
    part = under(audit, "gcfn-model-race-2")
    assert [figure.title for figure in part.figures] == [
        f"Who would be decided on otherwise: by {by}, by race"
        for by in ("score of the model", "income, thousands", "purpose")
    ]
    score, income, purpose = part.figures
    assert [panel.title for panel in score.panels] == [f"{REFERENCE} (reference)", *HOSTILE]
    flips = FLIPS[FIRST]
    marks = {(row["row"], row["what"]): row["value"] for row in drawn_of(income.panels[1])}
    assert list(dict.fromkeys(band for band, _ in marks)) == ["below −20", "−20 to 12,000", "12,000 and more"]
    assert marks == pytest.approx(
        {
            (band, what): times * share
            for band, times in zip(("below −20", "−20 to 12,000", "12,000 and more"), (0.5, 1.4, 0.6), strict=True)
            for what, share in (("decided otherwise", flips), (f"score moves by more than {ABOVE:g}", 0.05))
        },
        abs=1e-4,
    )
    assert list(dict.fromkeys(row["row"] for row in drawn_of(purpose.panels[0]))) == ["buy", "improve", "(others)"]
    assert f"too few for two bands, or withheld: {NOBODY} and {WITHHELD}." in score.caption
    scales = {str(panel.spec["layer"][1]["encoding"]["x"]["scale"]) for panel in score.panels}
    assert len(scales) == 1


def test_bands_stand_in_a_table_with_their_people_and_counts(audit):
    t = table(under(audit, "gcfn-model-race-2"), "Who would be decided on otherwise")
    assert t.folded
    assert t.header == (
        *("Group", "Sorted by", "Band", "Applicants", "Of these, decided otherwise"),
        *("Share: decided otherwise", f"Share: score moves by more than {ABOVE:g}"),
    )
    assert rows_of(t, FIRST)[1] == [
        *("score of the model", "0.4 to 0.6", "305", "68", "22.4 % [21.3, 23.5]", "7.0 % [5.9, 8.1]"),
    ]
    assert len(rows_of(t, FIRST)) == 9
    assert not rows_of(t, WITHHELD)


def test_a_band_without_a_count_is_a_dash_and_a_withheld_one_says_so(material):
    at = {"by": "score", "from": 0.4, "to": 0.6}
    shares = changed(material, "flip_share_by_band", REFERENCE, said=at, events=None)
    hidden = changed(shares, "flip_share_by_band", FIRST, said=at, value=None, n=None, events=None)
    (t,) = people.tables(of_race(hidden))
    assert rows_of(t, REFERENCE)[1][3] == "–"
    assert rows_of(t, FIRST)[1][2:5] == ["withheld"] * 3
    figure = people.figures(of_race(hidden))[0]
    drawn_bands = [row["row"] for row in drawn_of(figure.panels[1]) if row["what"] == "decided otherwise"]
    assert drawn_bands == ["below 0.4", "0.6 and more"]


def test_readings_name_the_band_with_the_largest_share_and_no_small_one(audit, material):
    said = said_of(under(audit, "gcfn-model-race-2").points, FIRST)
    assert said == (
        f"{FIRST} would be decided on otherwise most often where score of the model is 0.4 to 0.6 (22.4 % [21.3, 23.5] "
        "of 305), income, thousands is −20 to 12,000 (22.4 % [21.3, 23.5] of 305) and purpose is buy (22.4 % "
        "[21.3, 23.5] of 305)."
    )
    few = changed(material, "flip_share_by_band", FIRST, n=29)
    assert not [point for point in people.readings(of_race(few)) if point.startswith(FIRST)]
    never = changed(material, "flip_share_by_band", FIRST, value=0.0)
    assert not [point for point in people.readings(of_race(never)) if point.startswith(FIRST)]


def test_a_run_that_sorted_nobody_has_no_part_of_it(material):
    bare = without(material, "flip_share_by_band", "large_change_share_by_band")
    assert [part.anchor for part in under(gcfn.chapter(bare), "gcfn-model-race").parts] == ["gcfn-model-race-1"]


def test_a_small_category_is_withheld_with_another_wherever_its_people_stand(chapter):
    t = table(under(chapter, "gcfn-generators-race-1"), "Mediators as they are")
    cells = {tuple(c.text for c in row[1:4]): [c.text for c in row[4:]] for row in t.rows if row[0].text == "purpose"}
    for category in PURPOSES:
        own, there = cells[FIRST, REFERENCE, category][0], cells[REFERENCE, FIRST, category][2]
        assert own == there
        assert (own == "withheld") == (category != "buy")
    assert {text for key, texts in cells.items() if key[0] == WITHHELD for text in texts[:2]} == {"withheld"}
    assert {cells[REFERENCE, WITHHELD, category][2] for category in PURPOSES} == {"withheld"}


@given(st.lists(st.integers(0, 400), min_size=2, max_size=8))
def test_no_small_count_can_be_had_from_shares(counts):
    policy, n = POLICIES["strict"], sum(counts)
    told = _told([c / n for c in counts] if n else [0.0] * len(counts), n, True, policy)
    shown = [c for c, share in zip(counts, told, strict=True) if share is not None]
    hidden = [c for c, share in zip(counts, told, strict=True) if share is None]
    assert not any(0 < few < policy.smallest for c in shown for few in (c, n - c))
    if n < 10 * policy.smallest:
        assert not shown
    elif hidden:
        assert len(hidden) > 1
        assert len(hidden) == len(counts) or not 0 < sum(hidden) < policy.smallest


def test_checks_are_told_network_by_network_with_what_is_doubtful(chapter):
    part = under(chapter, "gcfn-generators-race-2")
    ended = table(part, "The networks at the end")
    assert [text_of(row) for row in ended.rows] == [
        *([str(network), "0.0120", "−0.00300", "51.2 %", "yes"] for network in range(NETWORKS - 1)),
        [str(NETWORKS - 1), "0.0120", "−0.00300", "51.2 %", "no: doubtful"],
    ]
    left = table(part, "What is left of a person")
    assert [row[2].text for row in left.rows] == ["0.954", "0.954", "0.312 (doubtful)"]
    points = " ".join(part.points)
    assert f"Came to rest: {NETWORKS - 1} of {NETWORKS} networks." in points
    assert "kept between 0.312 and 0.954" in points
    assert f"Less than half in 1 of {NETWORKS} networks" in points


def test_a_leak_is_a_loud_warning_and_no_leak_is_told_as_a_number(chapter, material):
    loud, quiet = under(chapter, "gcfn-generators-purpose"), under(chapter, "gcfn-generators-race")
    (notice,) = loud.notices
    assert notice.points == ("age: AUC 0.991.", "all covariates: AUC 0.991.")
    assert not quiet.notices
    assert "race can be told from age with an AUC of 0.613" in " ".join(under(quiet, "gcfn-generators-race-2").points)
    assert "covariates that give the group away" in all_limits(material)
    calm = dataclasses.replace(material, generator_checks=tuple(report_gcfn.checks(0.5).to_pylist()))
    assert "give the group away" not in all_limits(calm)
    assert not any(checks.warnings(g) for g in generators(calm))


def test_the_training_is_drawn_thinned_with_the_mean_of_the_networks(chapter):
    (figure,) = under(chapter, "gcfn-generators-race-2").figures
    assert [panel.title for panel in figure.panels][1] == "Log loss of the discriminator, nats"
    for panel in figure.panels:
        rows = drawn_of(panel)
        epochs = {row["epoch"] for row in rows}
        assert len(epochs) <= 60
        assert (min(epochs), max(epochs)) == (1, EPOCHS)
        for epoch in epochs:
            own = [row["value"] for row in rows if row["epoch"] == epoch and row["what"] == "one network"]
            (mean,) = (row["value"] for row in rows if row["epoch"] == epoch and row["what"] != "one network")
            assert len(own) == NETWORKS
            assert mean == pytest.approx(np.mean(own), abs=1e-4)


def test_the_map_of_quantiles_has_no_training_and_its_own_conditions():
    bare = dataclasses.replace(with_settings(generator="quantile"), generator_history=())
    assert not builder.part("", "", (checks,), next(generators(bare))).figures
    limits = all_limits(bare)
    assert "mapped by its quantiles" in limits
    assert "another seed makes other networks" not in limits


@pytest.mark.parametrize(("profile", "told"), [("strict", True), ("public", False)])
def test_a_mean_that_was_rounded_to_nothing_is_no_pass(profile, told):
    material = report_gcfn.material(report_gcfn.spec(disclosure={"profile": profile}))
    _, scores = mediated_found.tables(of_race(material))
    rates, *_ = tables.tables(fair(material)[0])
    for text in (scores.note, rates.note, tables.figures(fair(material)[0])[0].caption, all_limits(material)):
        assert ("0 stands for anything below 0.005, and is no pass" in text) == told


def test_directions_that_are_withheld_are_not_in_the_figure(material):
    for group in SAID:
        material = changed(material, "flip_direction_share", group, value=None)
    (figure,) = mediated_found.figures(of_race(material))
    assert [panel.title for panel in figure.panels] == ["Decided otherwise"]
    assert "Its directions are not known." in figure.caption
    assert len(figure.legend) == 2


def test_limits_name_roles_identification_and_whom_nobody_imagined(material):
    limits = all_limits(material)
    for part in (
        "race moves income, thousands and purpose (mediators), and does not move age (covariates)",
        "Neither mediators nor covariates of race: term.",
        "purpose moves income, thousands (mediators), and does not move age (covariates)",
        "What the lender would have decided on an imagined applicant nobody can know",
        "one continuous mediator (purpose)",
        "several mediators, or one with categories (race)",
        f"Not identified, since generators part about them: 0.5 % in {REFERENCE} (race)",
        f"Not imagined: {NOBODY} (race)",
        "another seed makes other networks",
        "networks that did not come to rest and mediators in which little of the person is left",
        "does not bound how far scores would move between true counterfactuals",
    ):
        assert part in limits, part


def test_without_declared_covariates_all_others_are_taken():
    columns = {
        "income": {"type": "continuous", "role": "mediator"},
        "age": {"type": "continuous"},
        "term": {"type": "continuous"},
        "left_out": {"type": "continuous", "role": "excluded"},
    }
    assert "does not move age and term (covariates)" in all_limits(
        report_gcfn.material(report_gcfn.spec(columns=columns))
    )


def test_without_a_model_there_is_no_pass(material):
    lone = dataclasses.replace(
        material, measures=tuple(m for m in material.measures if m.method != "gcfn" or m.decision_maker == "lender")
    )
    assert "No model was asked about imagined applicants" in all_limits(lone)
    assert [part.anchor for part in gcfn.chapter(lone).parts] == ["gcfn-generators", "gcfn-fair"]
    empty = dataclasses.replace(lone, measures=(), mediator_effects=(), generator_checks=(), generator_history=())
    assert not gcfn.chapter(empty).parts
    assert "that is no pass" in " ".join(gcfn.chapter(empty).words)


def test_every_number_that_is_drawn_stands_in_a_table(chapter):
    """All but the epochs of a training, which nobody reads off."""
    for section in sections(chapter):
        printed = {cell.whole for t in section.tables for row in t.rows for cell in row}
        printed |= {cell.text for t in section.tables for row in t.rows for cell in row}
        for figure in section.figures:
            shown = {text for row in drawn(figure) for text in row.get("shown", "").split("; ")} - {""}
            assert shown or figure.title.startswith("How the training")
            assert shown <= printed, figure.title


def test_every_panel_draws_marks(chapter):
    panels = [panel for s in sections(chapter) for f in s.figures for panel in f.panels]
    by_bands = 3 * 3 + 2 * 2 + 3 * 3
    assert len(panels) == 2 * 2 + (3 + 2) + (2 + 2 + 1) + (2 + 1) + 2 * 3 + 3 * 3 + by_bands
    for panel in panels:
        assert drawn_of(panel)
        assert re.search(r'role-mark[^>]*"[^>]*><path', panel.svg), panel.title


def test_a_withheld_group_prints_no_number(chapter):
    for section in sections(chapter):
        for t in section.tables:
            for row in t.rows:
                if row[0].text == WITHHELD:
                    assert not [c.text for c in row[1:] if c.kind == "number"], t.title


def test_the_page_escapes_names_nests_headings_and_reads_no_restricted_table_of_persons(material):
    assert not {"mediated", "mediated_decisions", "generators"} & {t.name for t in report.reads}
    files = report.function(*report_gcfn.tables(), settings=report_gcfn.settings()).files
    page = files["report.html"].decode()
    assert '<section id="gcfn">' in page
    assert FIRST not in page
    assert "<b>other</b>" not in re.sub(r"<script.*?</script>", "", page, flags=re.S)
    levels = [int(level) for level in re.findall(r"<h(\d)>", page)]
    assert all(b <= a + 1 for a, b in pairwise(levels))
    limits = page[page.index('<section id="limits">') : page.index('<section id="glance">')]
    assert METHODS["gcfn"].title in limits
    assert "nobody can know: only a model can be asked" in limits
    assert len(files["report.html"]) < 2_500_000
