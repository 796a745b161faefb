"""Predictors trained to be fair: accuracy beside every change of scores, and a curve along lambda alone."""

import dataclasses
import json
import re

import pytest
import report_gcfn
from report_chapters import drawn_of, table, under
from report_gcfn import (
    BINS,
    GAMMAS,
    LAMBDAS,
    NOBODY,
    WHY,
    WITHHELD,
    accuracy,
    all_limits,
    changed,
    rows_of,
    said_of,
    unfairness,
    with_settings,
)
from report_tables import HOSTILE, REFERENCE

from tasks.methods.gcfn.report import section as gcfn
from tasks.methods.gcfn.report.predictors import reading, tables
from tasks.methods.gcfn.report.predictors.lookups import fair

FIRST = HOSTILE[0]


@pytest.fixture(scope="module")
def material():
    return report_gcfn.material()


@pytest.fixture(scope="module")
def chapter(material):
    return gcfn.chapter(material)


@pytest.fixture(scope="module")
def predictors(chapter):
    return under(chapter, "gcfn-fair-race")


def test_predictors_stand_in_their_order_with_all_rates(predictors):
    rows = rows_of(table(predictors, "Predictors on held-out rows"), FIRST)
    assert [row[0] for row in rows] == [
        *("The audited model", "Unconstrained", "GCFN, lambda 0.5", "GCFN, lambda 2"),
        *("CFUA: covariates alone", "CFAN: noise behind mediators"),
    ]
    assert rows[0][1:] == ["122", *["77.8 % [76.7, 78.9]"] * 4, "–", "–", "–"]
    assert [cell.split(" ")[0] for cell in rows[3][1:]] == [
        *("122", "78.0", "61.0", "31.0", "21.0", "0.115", "0.0133", "22.0")
    ]


def test_the_trade_off_is_accuracy_against_the_root_of_cf_along_lambda(predictors):
    figure = predictors.figures[0]
    assert [panel.title for panel in figure.panels] == [f"{REFERENCE} (reference)", *HOSTILE]
    rows = drawn_of(figure.panels[1])
    models = [("unconstrained", 0.0), *(("GCFN", w) for w in LAMBDAS[1:]), ("CFUA", 0.0), ("CFAN", 0.0)]
    assert [(row["kind"], row["moved"], row["accuracy"]) for row in rows] == [
        (name, pytest.approx(unfairness(name, w) ** 0.5, abs=1e-4), pytest.approx(accuracy(name, w)))
        for name, w in models
    ]
    assert [row["kind"] for row in rows if row["curve"]] == ["unconstrained", *["GCFN"] * (len(LAMBDAS) - 1)]
    assert [row["name"] for row in rows] == ["", *(f"{w:g}" for w in LAMBDAS[1:]), "", ""]
    encoded = figure.panels[1].spec["layer"][1]["encoding"]
    assert encoded["shape"]["scale"]["domain"] == ["GCFN", "unconstrained", "CFUA", "CFAN"]
    assert len({swatch.shape for swatch in figure.legend}) == len(figure.legend)


def test_panels_of_a_figure_have_one_scale(material):
    moved = changed(material, "fair_accuracy", REFERENCE, value=0.99)
    figure, *_ = tables.figures(fair(moved)[0])
    scales = {json.dumps(panel.spec["layer"][0]["encoding"]["y"]["scale"]) for panel in figure.panels}
    assert len(scales) == 1
    assert "0.99" in scales.pop()


def test_utility_is_drawn_by_gamma_for_every_predictor(predictors):
    found = {(row["what"], row["x"]): row["value"] for row in drawn_of(predictors.figures[1].panels[0])}
    assert len(found) == (len(LAMBDAS) + 2) * len(GAMMAS)
    for gamma in GAMMAS:
        expected = accuracy("GCFN", 2.0) - gamma * unfairness("GCFN", 2.0)
        assert found["GCFN, lambda 2", gamma] == pytest.approx(expected, abs=1e-4)


def test_scores_are_drawn_with_and_without_the_regularisation_and_a_withheld_bin_is_a_gap(material, predictors):
    rows = drawn_of(predictors.figures[2].panels[1])
    assert {row["what"] for row in rows} == {"unconstrained", "GCFN, lambda 2"}
    corners = [(row["x"], row["value"]) for row in rows if row["what"] == "GCFN, lambda 2"]
    share = [round((i + 1) / 15, 4) for i in range(BINS)]
    assert corners == [(end / BINS, share[i]) for i in range(BINS) for end in (i, i + 1)]
    bin_of = {"model": "GCFN", "lambda": 2.0, "from": 0.2, "to": 0.4}
    gap = changed(material, "fair_score_share", said=bin_of, value=None, n=None, reason="withheld: a small cell")
    figure = tables.figures(fair(gap)[0])[2]
    hidden = [row for row in drawn_of(figure.panels[1]) if row["value"] is None]
    assert [(row["what"], row["x"], row["shown"]) for row in hidden] == [
        ("GCFN, lambda 2", end, "withheld") for end in (0.2, 0.4)
    ]
    line = figure.panels[1].svg
    assert len(re.findall(r'<path[^>]* d="M[^"]*M', line)) > len(
        re.findall(r'<path[^>]* d="M[^"]*M', predictors.figures[2].panels[1].svg)
    )


def test_readings_of_predictors_tell_cost_and_gain_and_no_pass(predictors, material):
    assert said_of(predictors.points, FIRST) == (
        f"{FIRST}, on 122 held-out rows: with lambda = 2 scores move by 0.115 [0.104, 0.126] instead of 0.200 "
        "[0.189, 0.211] (root of CF), and accuracy is 78.0 % [76.9, 79.1] instead of 80.0 % [78.9, 81.1]. 22.0 % "
        "[20.9, 23.1] would be decided on otherwise than by the audited model."
    )
    assert said_of(predictors.points, WITHHELD) == (
        f"{WITHHELD}: accuracy is withheld. Nothing can be said, and that is no pass."
    )
    assert said_of(predictors.points, NOBODY) == (
        f"{NOBODY}: no predictor was trained on it: {WHY}. Nothing can be said, and that is no pass."
    )
    assert not rows_of(table(predictors, "Predictors on held-out rows"), NOBODY)
    few = changed(material, "fair_accuracy", n=29)
    assert "29 held-out rows, fewer than the 30" in said_of(reading.readings(fair(few)[0]), FIRST)
    assert f"which is no pass: {FIRST} (race)." in all_limits(few)


def test_the_table_says_which_noise_cfan_sees(material):
    def note(found):
        return tables.tables(fair(found)[0])[0].note

    assert (
        "CFAN sees of income, thousands the noise that the causal model of the audit spec abducts and of "
        "<b>purpose</b> the residual about the mean of people alike"
    ) in note(material)
    assert "could not be abducted" not in note(material)
    some = changed(material, "noise_abducted_share", said={"mediator": "income"}, value=0.995)
    assert "Whose noise could not be abducted counts with the mean one." in note(some)
    every = material
    for group in (REFERENCE, *HOSTILE):
        every = changed(every, "noise_abducted_share", group, said={"mediator": "income"}, value=0.0)
    assert "CFAN sees of income, thousands and <b>purpose</b> the residual" in note(every)
    assert "causal model of the audit spec abducts" not in note(every)
    unknown = dataclasses.replace(
        material, measures=tuple(m for m in material.measures if m.measure != "noise_abducted_share")
    )
    assert "CFAN sees" not in note(unknown)


def test_who_is_treated_differently_is_told_by_band(predictors):
    figures = [figure for figure in predictors.figures if figure.title.startswith("Who is treated differently")]
    assert [figure.title for figure in figures] == [
        f"Who is treated differently: by {by}, by race" for by in ("score of the model", "income, thousands", "purpose")
    ]
    assert "with the largest lambda (2) decides otherwise" in figures[0].caption
    assert f"too few for two bands, or withheld: {NOBODY} and {WITHHELD}." in figures[0].caption
    rows = rows_of(table(predictors, "Who is treated differently"), FIRST)
    assert rows[:3] == [
        ["score of the model", "below 0.4", "122", "6", "5.0 % [3.9, 6.1]"],
        ["score of the model", "0.4 to 0.6", "305", "43", "14.0 % [12.9, 15.1]"],
        ["score of the model", "0.6 and more", "183", "11", "6.0 % [4.9, 7.1]"],
    ]


def test_words_on_predictors_say_what_lambda_labels_and_cf_are(chapter):
    words = " ".join(under(chapter, "gcfn-fair").words)
    for part in (
        "the larger lambda is, the less scores move",
        "The labels are the lender's own decisions",
        "about generated mediators and never about true ones",
        "(Lemma 2) does not hold in general",
        "None of these predictors is in use",
    ):
        assert part in words


def test_without_prediction_nothing_is_said_of_predictors():
    bare = with_settings(prediction=None)
    assert [part.anchor for part in gcfn.chapter(bare).parts] == ["gcfn-model", "gcfn-generators"]
    assert "predictor" not in all_limits(bare)
