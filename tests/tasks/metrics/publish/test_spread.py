"""Intervals of rates made of rounded counts: they hold those of all counts that are printed alike, and they cover."""

import itertools
import math

import numpy as np
import pytest
from benches.published import intervals, measured

from tasks.metrics.algorithm.measures import Family, Plan, Statistic, summarise
from tasks.metrics.publish.algorithm.populations import of_counts, of_decisions, spreads
from tasks.metrics.publish.algorithm.profiles import POLICIES, learned
from tasks.numerics.statistics.intervals import fisher_p

FAMILY = Family("outcomes", "lender", "race", "approval_rate", "{}")
PLAN = Plan({"race": "white"}, draws=1, level=0.95, seed=1)


def share(group: str, n: int, events: int, measure: str = "approval_rate") -> Statistic:
    family = Family("outcomes", "lender", "race", measure, "{}")
    return Statistic(family, group, np.array([0.0, 1.0]), np.array([n - events, events]), headline=True)


@pytest.mark.slow
def test_published_intervals_cover() -> None:
    """A small form of ``python -m benches published``."""
    lines = list(measured(25, (197,)))
    assert [line for line in lines if line["met"] == "missed"] == []
    assert sum(line["met"] == "met" for line in lines) >= 10


@pytest.mark.parametrize(("profile", "base"), [("public", 10), ("public", 20), ("strict", 5), ("official", 10)])
def test_an_interval_holds_those_of_all_counts_that_are_printed_alike(profile: str, base: int) -> None:
    policy = POLICIES[profile]
    own, reference = (118, 31), (402, 44)
    found = intervals(policy, base, own, reference)
    every = [
        itertools.product(range(n.low, n.high + 1, base // 2), range(denied.low, denied.high + 1, base // 2))
        for n, denied in (
            (learned(policy, n, base), learned(policy, d, base, policy.events_too)) for n, d in (own, reference)
        )
    ]
    for (n, denied), (n_white, denied_white) in itertools.product(*map(list, every)):
        exact = summarise([share("Black", n, n - denied), share("white", n_white, n_white - denied_white)], {}, PLAN)
        for m in exact:
            if m.group == "Black":
                ends = found[m.family.measure]
                assert ends.low <= m.low + 1e-6, (m.family.measure, n, denied, n_white, denied_white)
                assert m.high <= ends.high + 1e-6, (m.family.measure, n, denied, n_white, denied_white)


def test_denials_and_approvals_have_mirrored_ends() -> None:
    spans = learned(POLICIES["public"], 197, 10), learned(POLICIES["public"], 30, 10)
    assert spans == ((195, 205), (26, 34))
    approved = of_decisions(share("Black", 197, 167), *spans)
    denied = of_decisions(share("Black", 197, 30, "denial_rate"), *spans)
    assert [s.counts.tolist() for s in approved] == [[34, 161], [26, 179]]
    assert [s.counts.tolist() for s in denied] == [[179, 26], [161, 34]]


def test_exact_counts_have_their_own_interval() -> None:
    pair = of_counts(share("Black", 197, 30), POLICIES["public"], 1)
    (exact,) = summarise([share("Black", 197, 30)], {}, PLAN)
    assert spreads([pair], PLAN)[FAMILY, "Black"][:2] == (exact.low, exact.high)


@pytest.mark.parametrize(("own", "reference"), [((118, 31), (402, 44)), ((67, 20), (300, 50)), ((500, 80), (900, 100))])
@pytest.mark.parametrize(("profile", "base"), [("public", 20), ("strict", 5), ("official", 10)])
def test_p_is_no_smaller_than_of_any_counts_that_are_printed_alike(
    profile: str, base: int, own: tuple[int, int], reference: tuple[int, int]
) -> None:
    """Fisher's test keeps its size by the true counts, which are among them; so does the printed p."""
    policy = POLICIES[profile]
    known = [(learned(policy, n, base), learned(policy, d, base, policy.events_too)) for n, d in (own, reference)]
    pairs = [
        of_decisions(share(g, n, n - d), *ends)
        for g, (n, d), ends in zip(("Black", "white"), (own, reference), known, strict=True)
    ]
    printed = spreads(pairs, PLAN)[Family("outcomes", "lender", "race", "approval_rate_difference", "{}"), "Black"].p
    step = max(base // 2, 1)
    counts = [
        itertools.product(range(n.low, n.high + 1, step), range(denied.low, denied.high + 1, step))
        for n, denied in known
    ]
    exact = [
        fisher_p((d, d_white), (n, n_white)) for (n, d), (n_white, d_white) in itertools.product(*map(list, counts))
    ]
    assert max(exact) <= printed * (1 + 1e-9)


def test_p_is_one_where_the_counts_allow_no_difference() -> None:
    """30 of 200 against 170 of 1,000 by twenties: 0.15 and 0.17 may be alike."""
    policy = POLICIES["public"]
    alike = spreads(
        [of_counts(share("Black", 200, 30), policy, 20), of_counts(share("white", 1000, 170), policy, 20)], PLAN
    )
    apart = spreads(
        [of_counts(share("Black", 200, 90), policy, 20), of_counts(share("white", 1000, 170), policy, 20)], PLAN
    )
    key = Family("outcomes", "lender", "race", "approval_rate_difference", "{}"), "Black"
    assert alike[key].p == 1.0
    assert 0 < apart[key].p < 1e-6
    assert math.isnan(apart[FAMILY, "Black"].p)
