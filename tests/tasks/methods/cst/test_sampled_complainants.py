"""A sample of complainants: its interval covers what all of them say; with all of them nothing is added."""

from dataclasses import replace

import numpy as np
import pytest
from planted_situations import DIRECT, MEDIATED, Lender, draw
from scipy.stats import binom
from test_effect_aggregates import found, problem

from research.cst.bench import coverage
from tasks.methods.cst.algorithm.effects import Frame, of_group
from tasks.methods.cst.algorithm.situations import compare, lay
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.problem import Counterfactuals, Problem
from tasks.numerics.statistics.sampling import Asked, hashes

LENDER = draw(DIRECT, 3000, 11)
SETTINGS = CstSettings(ks=(30,), k=30)


def asked_of(of: Problem, size: int, seed: int = 0) -> Asked:
    sizes = np.array([int((of.group == 0).sum()), size])
    return Asked.of(hashes([str(row) for row in range(len(of.group))], seed), of.group, sizes)


def sampled(of: Problem, size: int) -> Problem:

    return replace(of, sample=asked_of(of, size))


def pooled(of: Problem, asked: Asked, most: int) -> Problem:
    """The problem on a pool of about ``most`` rows; counterfactuals are those by the causal model of all rows."""
    rows = asked.pool(most)
    assert rows is not None
    assert (rows | ~asked.drawn).all()
    assert of.applicants is not None
    columns, favourable = of.applicants.columns.rows(np.flatnonzero(rows)), of.applicants.favourable[rows]
    imagined, number = of.applicants.counterfactuals, np.cumsum(rows) - 1
    kept = rows[imagined.row]
    counterfactuals = Counterfactuals(number[imagined.row[kept]], imagined.values[kept], None)
    every, imagine = np.flatnonzero(rows), of.applicants.imagine

    def again(some, labels, without, sample=None):
        made = imagine(every[some], of.group, without, every if sample is None else every[sample])
        return Counterfactuals(some, made.values, None)

    changed = {"columns": columns, "favourable": favourable, "counterfactuals": counterfactuals, "imagine": again}
    arrays = {name: getattr(of, name)[rows] for name in ("encoded", "group", "factual", "candidate")}
    return replace(of, **arrays, applicants=replace(of.applicants, **changed), sample=asked.among(rows))


def coverage_of_pools(lender: Lender, n: int, most: int, size: int, reps: int) -> dict[str, tuple[float, ...]]:
    """By effect the bias, standard deviation, mean standard error and coverage of the truth on all members of a file.

    Args:
        lender: Whose decisions.
        n: Rows of each file.
        most: Rows of the pool.
        size: Complainants.
        reps: Files.
    """
    errors: dict[str, list[tuple[float, float, bool]]] = {}
    for seed in range(reps):
        drawn = draw(lender, n, 5_000 + seed)
        direct, total, _ = drawn.truth
        of = problem(drawn)
        asked = Asked.of(hashes([str(row) for row in range(n)], seed), of.group, np.array([size, size]))
        made, _ = found(pooled(of, asked, most), seed)
        for name, truth in (("st", direct), ("cst", total), ("mediated", total - direct)):
            effect = made[f"{name}_effect",]
            error = effect.value - truth
            errors.setdefault(name, []).append((error, effect.inference.se, abs(error) <= 1.96 * effect.inference.se))
    out = {}
    for name, rows in errors.items():
        error, se, covered = np.array(rows, dtype=float).T
        out[name] = (error.mean(), error.std(ddof=1), se.mean(), covered.mean())
    return out


@pytest.mark.parametrize("imagined", [True, False])
def test_where_all_are_asked_nothing_changes(imagined):
    of = problem(LENDER, imagined=imagined)
    (plain, all_of_it), (limited, again) = found(of), found(sampled(of, int((of.group == 1).sum())))
    assert {key: (each.value, each.interval, each.n) for key, each in plain.items()} == {
        key: (each.value, each.interval, each.n) for key, each in limited.items()
    }
    assert (all_of_it.findings.statistic == again.findings.statistic).all()


def test_the_design_is_added_to_the_noise_of_the_decisions_and_of_the_causal_model():
    of = sampled(problem(LENDER), 200)
    ground = lay(of, SETTINGS, of.group, of.applicants.counterfactuals)
    frame, row = Frame(ground, of.sample), np.flatnonzero((of.group == 1) & of.drawn)
    effects = of_group(frame, 1, compare(ground, 1, row), ())
    members = int((of.group == 1).sum())
    variance = effects.sides.variance(len(frame.denied))
    for each in effects.contrasts:
        influence = each.design.control - each.design.test
        assert influence.sum() == pytest.approx(0, abs=1e-12)
        s2 = (influence[row] * 200) @ (influence[row] * 200) / 199
        assert each.sampling == pytest.approx(s2 / 200 * (1 - 200 / members))
        assert each.se(variance) ** 2 == pytest.approx(each.weights**2 @ variance + each.sampling)
    st, cst = effects.contrasts
    assert cst.less(st).sampling < cst.sampling + st.sampling, "the same people are asked for both"
    made, _ = found(of, clip=False)
    whole, _ = found(problem(LENDER), clip=False)
    share = ("excess_share_of_denials", "adjusted", "cst")
    for key in (("st_effect",), ("cst_effect",), ("mediated_effect",), share):
        wide, narrow = (ends[1] - ends[0] for ends in (made[key].interval, whole[key].interval))
        assert wide > narrow, key
    assert made["st_effect",].n == 200 < whole["st_effect",].n


def test_samples_cover_what_all_complainants_say():
    """The small form of the calibration on Texas: 300 draws, whose own error is 1.3 points."""
    got = {each.measure: each for each in coverage(problem(LENDER), SETTINGS, 200, 300, 100)}
    for name in ("st_effect", "share_detected"):
        each = got[name]
        assert each.sample == 200 < each.of
        assert 0.92 <= each.share <= 0.98, each
        assert each.spread == pytest.approx(each.error, rel=0.12), each


def test_pools_cover_the_effects_on_all_members_of_the_file():
    """Asked are 150 of about 510 members, and compared with 1,000 of 3,000 rows."""
    for name, (bias, sd, se, covered) in coverage_of_pools(MEDIATED, 3_000, 1_000, 150, 16).items():
        assert covered >= binom.ppf(0.01, 16, 0.95) / 16, name
        assert abs(bias) < 2.6 * sd / 16**0.5 + 0.003, name
        assert 0.6 < se / sd < 1.7, name
