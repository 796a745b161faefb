"""Honest copies keep who applied and in which number, and planted harm turns approvals of the group alone."""

from dataclasses import replace

import numpy as np
import pytest

from research.bench.lenders import equal_files, opposed_files, team_files
from tasks.methods.adjusted.algorithm.examined import Files, Rules, examine, risk_of
from tasks.methods.adjusted.algorithm.expected import LimitRule
from tasks.methods.adjusted.algorithm.planting import harmed, honest, risk_strata

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


def test_a_copy_keeps_decisions_columns_and_the_members_of_every_stratum(files: Files) -> None:
    strata = risk_strata(files, risk_of(files, RULES), 1)
    copy = honest(files, 1, strata, np.random.default_rng(1))
    assert (copy.denied == files.denied).all()
    assert copy.controls is files.controls
    assert (copy.group != files.group).any()
    for stratum in np.unique(strata):
        assert (copy.group[strata == stratum] == 1).sum() == (files.group[strata == stratum] == 1).sum()
    # files without a decision, and those that lack a column, are strata of their own
    assert len(set(strata[files.undecided])) == 1
    lacking = ~np.isfinite(files.controls[0].values) & ~files.undecided
    assert len(set(strata[lacking])) == 1


def test_strata_are_of_like_risk_and_a_part_keeps_its_members(files: Files) -> None:
    risk = risk_of(files, RULES)
    part = files.splits[-1].code == 1
    strata = risk_strata(files, risk, 1, part)
    copy = honest(files, 1, strata, np.random.default_rng(1))
    assert ((copy.group == 1) & part).sum() == ((files.group == 1) & part).sum()
    rated = np.isfinite(risk) & ~part
    ends = sorted((risk[rated & (strata == s)].min(), risk[rated & (strata == s)].max()) for s in set(strata[rated]))
    assert all(high <= low for (_, high), (low, _) in zip(ends[:-1], ends[1:], strict=True))


def test_a_copy_of_a_harmful_lender_is_honest() -> None:
    drawn = harmed(equal_files(np.random.default_rng(3), 3000).files, 1, 0.3, np.random.default_rng(4).random(3000))
    strata = risk_strata(drawn, risk_of(drawn, RULES), 1)
    effects = []
    for number in range(10):
        copy = honest(drawn, 1, strata, np.random.default_rng([1, number]))
        effects.append(examine(copy, RULES, np.random.default_rng(0))[0].effect.value)
    (real,) = examine(drawn, RULES, np.random.default_rng(0))
    assert real.effect.value > 0.25
    assert abs(np.mean(effects)) < 0.02


def test_officers_keep_unlike_shares_of_members_in_another_order() -> None:
    files = team_files(np.random.default_rng(2), 4000).files
    strata = risk_strata(files, risk_of(files, RULES), 1)
    copy = honest(files, 1, strata, np.random.default_rng(7))

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
