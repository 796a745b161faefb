"""Estimates of the ladder as measures: which are judged, and what keeps one from being judged."""

import math

import numpy as np
import pytest

from schemas.terms import Note
from tasks.methods.adjusted.algorithm.detection import EFFECT, OVERLAP, Step, Steps, detect
from tasks.methods.adjusted.algorithm.estimators import INDEPENDENT
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.numerics.problem import FeasibilityGraph, Problem
from tasks.numerics.results import Aggregate

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
