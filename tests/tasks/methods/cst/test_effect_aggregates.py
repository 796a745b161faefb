"""Effects of an audit's problem: aggregates with what verdicts rest on, and refusals with their reasons."""

import math
from dataclasses import replace

import numpy as np
import pytest
from conftest import fingerprint
from planted_situations import MEDIATED, draw

from schemas.terms import Note
from tasks.methods.cst.algorithm import detection as cst
from tasks.methods.cst.algorithm.effects import effects
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.problem import Applicants, Counterfactuals, FeasibilityGraph, Problem
from tasks.pipeline.registry import METHODS

DRAWN = draw(MEDIATED, 1500, 5)
QUICK = {"ks": (30,), "k": 30, "null_permutations": 0, "null_draws": 0, "sensitivity": False}


def problem(drawn=DRAWN, imagined=True, **changes):
    """The planted lender as a problem with groups 0 (reference) and 1."""
    group, n = drawn.member.astype(np.int32), len(drawn.member)
    own = np.flatnonzero(drawn.member)

    def imagine(rows, labels, without, sample=None):
        shift = drawn.imagined(sample)[0] - drawn.values[own[0]]
        return Counterfactuals(rows, drawn.values[rows] + shift, None)

    made = {"counterfactuals": imagine(own, group, None), "imagine": imagine} if imagined else {}
    applicants = Applicants(
        **{"columns": drawn.columns, "favourable": ~drawn.denied, "attribute_columns": (), **made, **changes}
    )
    nothing = np.zeros(0, np.int64)
    return Problem(
        encoded=np.zeros((n, 0)),
        feature_of_column=np.zeros(0, np.int32),
        features=(),
        group=group,
        groups=("white", "Black"),
        reference=0,
        factual=drawn.denied,
        candidate=~drawn.denied,
        node=np.zeros(0, np.int32),
        graph=FeasibilityGraph(nothing, nothing.astype(np.int32), np.zeros(0)),
        applicants=applicants,
    )


def found(of, seed=0, **options):
    detected = cst.detect(of, CstSettings(**{**QUICK, **options}), np.random.default_rng(seed))
    return {(a.measure, *sorted(a.parameters.values())): a for a in detected.aggregates}, detected


def test_they_are_the_effects_of_the_arrays_alone():
    made, detected = found(problem(), clip=False)
    settings = CstSettings(ks=(30,), k=30, clip=False)
    st, total = effects(DRAWN.columns, DRAWN.member, DRAWN.denied, DRAWN.imagined(), settings)
    assert made["st_effect",].value == pytest.approx(st.value)
    assert made["st_effect",].inference.se == pytest.approx(st.se)
    assert made["cst_effect",].value == pytest.approx(total.value)
    assert made["cst_effect",].inference.se > total.se, "the causal model is estimated"
    assert made["mediated_effect",].value == pytest.approx(total.value - st.value)
    raw = made["excess_share_of_denials", "cst", "raw"]
    tests = detected.findings.tested
    assert raw.value == pytest.approx((tests.control - tests.test).sum() / tests.control.sum())
    for key, each in made.items():
        assert (each.group, each.n, each.compared) == (1, int(DRAWN.member.sum()), False)
        if "raw" in key or key[0] == "support":
            assert each.interval is None
        else:
            assert each.interval[0] < each.value < each.interval[1]


def test_judged_measures_have_no_parameters_and_what_a_verdict_rests_on():
    made, _ = found(problem())
    declared = METHODS["cst"]
    assert {(judged.measure,) for judged in declared.verdict_measures} <= set(made)
    for measure in declared.covering:
        low, high = made[measure,].interval
        assert (high - low) / 2 == pytest.approx(1.959964 * made[measure,].inference.se, rel=1e-6)
    assert all(each.inference is None for key, each in made.items() if key[0] == "excess_share_of_denials")


def test_without_counterfactuals_there_is_the_direct_effect_alone():
    made, _ = found(problem(imagined=False))
    assert set(made) == {
        ("st_effect",),
        ("excess_share_of_denials", "raw", "st"),
        ("excess_share_of_denials", "adjusted", "st"),
        ("support", "st"),
    }


def test_a_group_with_nobody_like_it_in_the_other_is_not_judged():
    """All columns of its members are moved by ten deviations: as counterfactuals they are where the others are."""
    shift = 10 * DRAWN.values.std(axis=0) * DRAWN.member[:, None]
    moved = replace(DRAWN.columns, values=DRAWN.values + shift)
    made, _ = found(problem(columns=moved))
    assert made["support", "st"].value < 0.1
    assert Note.POOR_SUPPORT in made["st_effect",].reason
    assert made["support", "cst"].value > 0.9
    assert Note.POOR_SUPPORT not in made["cst_effect",].reason
    assert Note.POOR_SUPPORT in made["mediated_effect",].reason


def test_a_group_with_its_like_in_the_other_is_supported():
    made, _ = found(problem())
    assert min(made["support", "st"].value, made["support", "cst"].value) > 0.9
    assert not made["st_effect",].reason


@pytest.mark.parametrize(("generator", "interval"), [("nearest", True), ("gan", False), ("quantile", False)])
def test_no_verdict_rests_on_a_generator_that_is_not_fitted_again(generator, interval):
    made, _ = found(problem(), generator=generator)
    total = made["cst_effect",]
    share = made["excess_share_of_denials", "adjusted", "cst"]
    assert (total.interval is not None, total.inference) == (interval, None)
    assert (share.interval is not None, bool(share.reason)) == (interval, True)
    assert total.reason
    assert made["st_effect",].inference is not None
    assert made["st_effect",].reason == ""


def test_a_group_without_an_effect_says_why():
    few, _ = found(problem(draw(MEDIATED, 300, 1)))
    assert {each.reason for each in few.values()} == {"too_few_neighbours"}
    short, _ = found(problem(draw(MEDIATED, 300, 1)), ks=(10,), k=10)
    assert {each.reason for each in short.values()} == {"too_few_for_adjustment"}
    assert all(math.isnan(each.value) and each.interval is None for each in (*few.values(), *short.values()))


def test_the_p_is_of_a_seed_whatever_else_is_drawn_and_is_refused_for_many_rows():
    one, _ = found(problem(), null_draws=19)
    two, _ = found(problem(), null_draws=19, null_permutations=1)
    assert one["st_effect_p",].value == two["st_effect_p",].value >= 1 / 20
    assert one["st_effect_p",].interval is None
    refused, _ = found(problem(), null_draws=19, null_rows=1000)
    assert (refused["st_effect_p",].reason, math.isnan(refused["st_effect_p",].value)) == ("too_many_rows", True)
    other, _ = found(problem(), null_draws=19, null="labels")
    assert 0 < other["st_effect_p",].value <= 1


def test_the_p_of_permuted_labels_counts_the_permutations():
    made, detected = found(problem(), null_permutations=4)
    null = next(d.values for d in detected.draws if d.measure == "share_significant" and not d.parameters)
    share = next(t for t in detected.tallies if t.measure == "share_significant" and not t.parameters)
    own = share.counts[share.values == 1].sum() / share.counts.sum()
    assert made["share_significant_p",].value == (1 + (null >= own).sum()) / 5


def test_a_column_with_a_logarithm_enters_as_one():
    money = DRAWN.values.copy()
    money[:, 0] = np.exp(money[:, 0])
    own = np.flatnonzero(DRAWN.member)
    there = DRAWN.imagined()
    there[:, 0] = np.exp(there[:, 0])
    columns = replace(DRAWN.columns, values=money, logged=("income",))
    made = {"counterfactuals": Counterfactuals(own, there, None), "imagine": None, "columns": columns}
    logged, _ = found(problem(**made), attributes=("score", "income"))
    plain, _ = found(problem(**{**made, "columns": replace(columns, logged=())}), attributes=("score", "income"))
    assert logged["st_effect",].value != plain["st_effect",].value


def test_yaml_reads_a_bare_null_as_no_key():
    assert CstSettings.model_validate({None: "labels"}).null == "labels"


RESULTS = {
    "whole": lambda: vars(found(problem())[1])["aggregates"],
    "sensitivity": lambda: found(problem(draw(MEDIATED, 300, 6)), sensitivity=True, null_draws=4)[1].aggregates,
    "nothing imagined": lambda: found(problem(draw(MEDIATED, 300, 6), imagined=False), alpha=0.1)[1].aggregates,
    "two sizes": lambda: found(problem(draw(MEDIATED, 300, 6)), ks=(5, 9), k=9, tau=0.05, clip=False)[1].aggregates,
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_stay_what_they_are(name):
    """Aggregates of planted lenders, kept from an earlier run: a number that moves is seen."""
    assert fingerprint(RESULTS[name]()) == pytest.approx(HELD[name], rel=1e-9, abs=1e-5)


HELD = {
    "whole": {
        "0": 357.391136,
        "1": 343.962915,
        "2": 344.3167,
        "3": 139.337563,
        "4": 358.006569,
        "5": 144.000033,
        "6": 357.783783,
        "7": 150.506347,
        "8": 165.261961,
        "9": 155.148948,
        "10": 181.630332,
    },
    "sensitivity": {
        "0": 135.998464,
        "1": 135.616454,
        "2": 136.518984,
        "3": 136.621732,
        "4": 136.59578,
        "5": 142.668545,
        "6": 147.331014,
        "7": 157.537742,
        "8": 161.575227,
        "9": 160.368261,
        "10": 164.405746,
        "11": 136.351537,
    },
    "nothing imagined": {"0": 136.518984, "1": 142.668545, "2": 157.537742, "3": 161.575227},
    "two sizes": {
        "0": 138.419378,
        "1": 138.037367,
        "2": 138.939898,
        "3": 139.042645,
        "4": 139.016694,
        "5": 145.597633,
        "6": 150.260103,
        "7": 160.975006,
        "8": 165.012491,
        "9": 163.805526,
        "10": 167.843011,
    },
}
