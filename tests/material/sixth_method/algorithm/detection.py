"""NEARBY: whether anybody like a person who was denied was approved."""

import numpy as np
from tasks.methods.nearby.settings import NearbySettings

from tasks.numerics.arrays import Bools
from tasks.numerics.problem import Problem
from tasks.numerics.results import Detected, Evidence, Findings, Tally


def units(problem: Problem) -> Bools:
    """Who gets a finding, ``(n,)``: everybody who is explained."""
    return problem.factual


def detect(problem: Problem, settings: NearbySettings, rng: np.random.Generator) -> Detected:
    """How far, in any feature, the most alike candidate is from every factual, and whether that is within reach."""
    rows = np.flatnonzero(problem.factual)
    approved = problem.encoded[problem.candidate]
    far = np.array([np.abs(approved - row).max(axis=1).min() for row in problem.encoded[rows]])
    near = far <= settings.reach
    findings = Findings(
        row=rows,
        subgroup=np.ones(len(rows), np.int32),
        verdict=np.where(near, "feasible", "infeasible"),
        statistic=far,
        refusal=np.full(len(rows), ""),
    )
    nobody = np.zeros(0, np.int64)
    none = Evidence(nobody, np.zeros(0, dtype=str), np.zeros(0, np.int32), nobody, np.zeros(0))
    return Detected(findings, none, tuple(_tallies(problem, near)), ())


def _tallies(problem: Problem, near: Bools) -> list[Tally]:
    groups = problem.group[problem.factual]
    return [
        Tally(
            group,
            0,
            "nearby_share",
            {},
            np.array([0.0, 1.0]),
            np.bincount(near[groups == group].astype(np.int64), minlength=2),
            headline=True,
            share=True,
        )
        for group in np.unique(groups)
    ]
