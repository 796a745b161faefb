"""Estimates of the ladder as measures: which are judged, and what keeps one from being judged."""

import math

import numpy as np
import pytest
from conftest import fingerprint

from schemas.terms import Note
from tasks.methods.adjusted.algorithm.detection import Beyond, DetectionExchange, Step, Steps, detect, effects
from tasks.methods.adjusted.algorithm.estimators import INDEPENDENT
from tasks.methods.adjusted.settings import EFFECT, OVERLAP, AdjustedSettings
from tasks.numerics.problem import FeasibilityGraph, Problem
from tasks.numerics.results import Aggregate
from tasks.numerics.statistics.intervals import Changes

FEW_OF_THE_GROUP = "few_clusters: 6 with members of the group, errors are too small below 20"


def measured(
    estimator: str = "logit",
    support: float = 1.0,
    reason: str = "",
    se: float = 0.025,
    ends: tuple[float, float] = (0.05, 0.15),
) -> dict[str, Aggregate]:
    """The measures of one estimate of group b on the judged rung, those without parameters."""
    step = Step(
        *("all", "b", estimator, "own", estimator == "logit", 0.1, *ends, 100, support, reason),
        se=se,
        df=40.0,
        judged_rung=True,
    )
    none = np.zeros(0, np.int32)
    graph = FeasibilityGraph(np.zeros(1, np.int64), none, np.zeros(0))
    labels = np.zeros(0, np.int32), ("a", "b"), 0
    nobody = np.zeros(0, bool), np.zeros(0, bool)
    problem = Problem(
        np.zeros((0, 0)),
        none,
        (),
        *labels,
        *nobody,
        none,
        graph,
        method_data=Steps((step,), (), {"a": (900, 90), "b": (100, 20)}),
    )
    found = detect(problem, AdjustedSettings(), np.random.default_rng(1)).aggregates
    return {each.measure: each for each in found if not each.parameters}


def test_the_primary_rung_is_judged_by_the_logit_and_by_overlap_beside_it() -> None:
    (effect,) = measured().values()
    assert (effect.measure, effect.value, effect.interval, effect.reason) == (EFFECT, 0.1, (0.05, 0.15), "")
    assert (effect.inference.se, effect.inference.df, effect.inference.counts) == (0.025, 40.0, (100, 20, 900, 90))
    assert list(measured("overlap")) == [OVERLAP]


def test_a_penalised_fit_has_an_error_on_either_side() -> None:
    (found,) = measured(se=math.nan, ends=(0.05, 1.0)).values()
    assert found.interval == (0.05, 1.0)
    assert (found.inference.se, found.inference.se_above) == pytest.approx((0.05 / 1.96, 0.9 / 1.96), rel=1e-4)


@pytest.mark.parametrize(
    ("estimator", "support", "reason", "note"),
    [
        ("logit", 0.5, "", Note.POOR_SUPPORT),
        ("logit", 1.0, "few_clusters: 12, errors are too small below 20", Note.FEW_CLUSTERS),
        ("logit", 0.5, FEW_OF_THE_GROUP, f"{Note.POOR_SUPPORT}; {Note.FEW_CLUSTERS}"),
        ("overlap", 0.5, FEW_OF_THE_GROUP, Note.FEW_CLUSTERS),
        ("logit", 1.0, "tells_decision: underwriting", Note.TELLS_DECISION),
        ("logit", 1.0, f"separated; Firth's penalised fit, {INDEPENDENT}", Note.ROWS_INDEPENDENT),
    ],
)
def test_what_keeps_an_estimate_from_being_judged(estimator: str, support: float, reason: str, note: str) -> None:
    (found,) = measured(estimator, support, reason).values()
    assert found.reason == note


def of_steps() -> dict[str, object]:
    """Steps of two groups by three estimators, exchanges and prices; some are refused, one is of another group."""
    steps = tuple(
        Step("all", group, kind, over, primary, 0.1, 0.05, 0.15, 100, 0.9, "", se=0.02, df=30.0, judged_rung=primary)
        for group in ("b", "c", "elsewhere")
        for kind, over, primary in (("logit", "own", True), ("overlap", "own", True), ("lpm", "all", False))
    )
    exchanged = (
        DetectionExchange("b", 100, Changes(9, 3, 100), (-0.01, 0.12)),
        DetectionExchange("c", 40, reason="the model does not take it"),
        DetectionExchange("elsewhere", 7),
    )
    beyond = (
        Beyond("b", "price", {"kind": "rate"}, 0.2, (0.1, 0.3), 50, se=0.05, df=12.0, robustness=0.1, unseen=0.4),
        Beyond("b", "smd", {}, 0.4, (0.2, 0.6), 50),
        Beyond("c", "price", {}, math.nan, (math.nan, math.nan), 3, "too few", se=0.1),
        Beyond("elsewhere", "price", {}, 0.2, (0.1, 0.3), 50),
    )
    given = Steps(steps, exchanged, {"a": (900, 90), "b": (100, 20)}, beyond)
    none = np.zeros(0, np.int32)
    graph = FeasibilityGraph(np.zeros(1, np.int64), none, np.zeros(0))
    problem = Problem(
        np.zeros((3, 0)), none, (), np.zeros(3, np.int32), ("a", "b", "c"), 0, np.zeros(3, bool), np.zeros(3, bool),
        np.zeros(3, np.int32), graph, method_data=given,
    )  # fmt: skip
    return vars(detect(problem, AdjustedSettings(), np.random.default_rng(1)))


def of_exchange() -> list[object]:
    """Ten members of two groups; a third one has none."""
    denied, other = np.arange(30) % 3 == 0, np.arange(30) % 4 == 0
    return list(effects(denied, other, (np.arange(30) % 10 // 4).astype(np.int32), 4, 0, 0.9))


RESULTS = {"steps": of_steps, "exchange": of_exchange}


@pytest.mark.parametrize("name", RESULTS)
def test_results_stay_what_they_are(name):
    """Kept from an earlier run: every field of the measures of a ladder. A number that moves is seen."""
    assert fingerprint(RESULTS[name]()) == pytest.approx(HELD[name], rel=1e-9, abs=1e-5)


HELD = {
    "steps": {"findings": 43.510619, "evidence": 36.763226, "tallies": 0.0, "draws": 0.0, "aggregates": 4126.061144},
    "exchange": {"0": 101.091691, "1": 98.945956},
}
