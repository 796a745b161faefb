"""Honest copies keep who applied and in which number, and planted harm turns approvals of the group alone."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from research.bench.lenders import equal_files, opposed_files, team_files
from tasks.methods.adjusted.algorithm.examined import Files, Rules, examine
from tasks.methods.adjusted.algorithm.expected import LimitRule
from tasks.methods.adjusted.algorithm.planting import harmed, honest, risk_of, risk_strata

RULES = Rules(LimitRule(0.02, 0.5, 0.2, 0.005), parts=None, beside=False)


@pytest.fixture(scope="module")
def files() -> Files:
    drawn = opposed_files(np.random.default_rng(5), 1500).files
    undecided = np.zeros(1500, np.bool_)
    undecided[::20] = True
    money = drawn.controls[0].values.copy()
    money[::30] = np.nan
    controls = (replace(drawn.controls[0], values=money), *drawn.controls[1:])
    return replace(drawn, denied=drawn.denied & ~undecided, undecided=undecided, controls=controls)


def test_a_copy_has_rows_of_the_file_and_the_members_of_every_stratum(files: Files) -> None:
    strata = risk_strata(files, 1)
    copy, rows = honest(files, 1, strata, np.random.default_rng(1))
    assert (copy.denied == files.denied[rows]).all()
    assert np.array_equal(copy.controls[0].values, files.controls[0].values[rows], equal_nan=True)
    assert (strata[rows] == strata).all()
    assert (copy.group != files.group[rows]).any()
    for stratum in np.unique(strata):
        assert (copy.group[strata == stratum] == 1).sum() == (files.group[strata == stratum] == 1).sum()
    # files without a decision, and those that lack a column, have strata of their own
    lacking = ~np.isfinite(files.controls[0].values) & ~files.undecided
    kinds = [set(strata[mask]) for mask in (files.undecided, lacking, ~files.undecided & ~lacking)]
    assert len(set.union(*kinds)) == sum(map(len, kinds))


def test_rows_of_other_groups_stay() -> None:
    drawn = opposed_files(np.random.default_rng(5), 900).files
    third = replace(drawn, groups=(*drawn.groups, "third"), group=np.where(np.arange(900) % 3, drawn.group, 2))
    strata = risk_strata(third, 1)
    copy, rows = honest(third, 1, strata, np.random.default_rng(1))
    assert (strata[third.group == 2] == -1).all()
    assert (rows[third.group == 2] == np.flatnonzero(third.group == 2)).all()
    assert ((copy.group == 2) == (third.group == 2)).all()


def test_strata_are_of_like_risk_and_a_part_keeps_its_members(files: Files) -> None:
    risk, part = risk_of(files), files.splits[-1].code == 1
    assert np.isfinite(risk).all()
    strata = risk_strata(files, 1, part)
    copy, rows = honest(files, 1, strata, np.random.default_rng(1))
    assert ((copy.group == 1) & part[rows]).sum() == ((files.group == 1) & part).sum()
    whole = ~part & ~files.undecided & np.isfinite(files.controls[0].values)
    ends = sorted((risk[whole & (strata == s)].min(), risk[whole & (strata == s)].max()) for s in set(strata[whole]))
    assert all(high <= low for (_, high), (low, _) in pairwise(ends))


def test_a_copy_of_a_harmful_lender_is_honest() -> None:
    drawn = harmed(equal_files(np.random.default_rng(3), 3000).files, 1, 0.3, np.random.default_rng(4).random(3000))
    strata = risk_strata(drawn, 1)
    effects = []
    for number in range(10):
        copy, _ = honest(drawn, 1, strata, np.random.default_rng([1, number]))
        effects.append(examine(copy, RULES, np.random.default_rng(0))[0].effect.value)
    (real,) = examine(drawn, RULES, np.random.default_rng(0))
    assert real.effect.value > 0.25
    assert abs(np.mean(effects)) < 0.02


def test_officers_keep_unlike_shares_of_members_in_another_order() -> None:
    files = team_files(np.random.default_rng(2), 4000).files
    strata = risk_strata(files, 1)
    copy, _ = honest(files, 1, strata, np.random.default_rng(7))

    def shares(of: Files) -> np.ndarray:
        return np.bincount(of.cluster, of.group == 1) / np.bincount(of.cluster)

    assert np.sort(shares(copy))[-6:].mean() > 0.8 * np.sort(shares(files))[-6:].mean()
    assert abs(np.corrcoef(shares(copy), shares(files))[0, 1]) < 0.6


def test_harm_turns_approvals_of_the_group_alone_by_so_many_points(files: Files) -> None:
    draw = np.random.default_rng(1).random(len(files.denied))
    small, large = (harmed(files, 1, points, draw) for points in (0.1, 0.2))
    turned = large.denied & ~files.denied
    assert (files.group[turned] == 1).all()
    assert not (turned & files.undecided).any()
    assert (small.denied <= large.denied).all()
    members = (files.group == 1) & ~files.undecided
    share = turned.sum() / members.sum()
    assert share == pytest.approx(0.2, abs=3 * np.sqrt(0.2 * 0.8 / members.sum()))
    part = files.splits[-1].code == 1
    assert part[harmed(files, 1, 0.5, draw, part).denied & ~files.denied].all()
    assert harmed(files, 1, 1.0, draw).denied[members].all()


def test_without_what_decides_no_state_the_judged_numbers_are_the_same(files: Files) -> None:
    every = examine(files, Rules(RULES.limits), np.random.default_rng(0))
    lean = examine(files, Rules(RULES.limits, beside=False), np.random.default_rng(0))
    for full, short in zip(every, lean, strict=True):
        assert (full.effect.value, full.judged, full.parts) == (short.effect.value, short.judged, short.parts)
        assert set(full.readings) - set(short.readings) == {"targeted"}
        assert {name: full.readings[name] for name in short.readings} == dict(short.readings)
