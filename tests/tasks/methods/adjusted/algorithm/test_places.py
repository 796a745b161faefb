"""Places: figures of the specification, bands, shortfall with its interval, named outcomes, coverage."""

import numpy as np
import pandas as pd
import pytest
from conftest import SHARED, fingerprint

from tasks.methods.adjusted.algorithm.practice import (
    MAJORITY,
    NO_PEERS,
    NONE_OF,
    ONE_TRACT,
    UNKNOWN,
    Tracts,
    bands_of,
    shares,
)


def market(own_inside=40, own=400, peers_inside=3000, peers=15000, tracts=50):
    """Half of the tracts have a minority share of 80 percent, half of 20."""
    half = tracts // 2
    minority = np.r_[np.full(half, 80.0), np.full(half, 20.0)]

    def dealt(total, inside):
        return np.r_[
            np.bincount(np.arange(inside) % half, minlength=half),
            np.bincount(np.arange(total - inside) % half, minlength=half),
        ]

    return Tracts(minority, np.full(tracts, 1000.0), dealt(own, own_inside), dealt(peers, peers_inside))


def of(tracts, band=MAJORITY, reason=""):
    rng = np.random.default_rng(1)
    return next(share for share in shares(tracts, 0.95, rng, reason) if share.band == band)


def test_the_figures_of_the_specification_come_out_to_the_digit():
    share = of(market())
    assert (round(share.ratio, 3), round(share.low, 3), round(share.high, 3)) == (0.5, 0.371, 0.668)
    assert (round(share.difference_low, 3), round(share.difference_high, 3)) == (-0.127, -0.066)
    assert (share.expected, share.shortfall) == (pytest.approx(80), pytest.approx(40))
    assert share.shortfall_low < 40 < share.shortfall_high
    assert share.per_home == pytest.approx(1000 * 40 / 25_000)


def test_bands_part_all_tracts_and_ends_belong_to_the_next_one():
    masks = bands_of(np.array([0.0, 24.9, 25.0, 49.9, 50.0, 74.9, 75.0, 100.0]))
    parts = [mask for name, mask in masks.items() if not name.startswith("above")]
    assert np.array_equal(np.sum(parts, axis=0), np.ones(8))
    assert masks[MAJORITY].sum() == 3, "above 50, and 50 itself is not"


def test_a_lender_that_lends_as_its_peers_has_a_ratio_of_one_inside_its_interval():
    share = of(market(own_inside=80))
    assert share.low < 1 < share.high
    assert share.shortfall == pytest.approx(0)


@pytest.mark.parametrize(
    ("tracts", "reason", "starts"),
    [
        (market(peers=0, peers_inside=0), NO_PEERS, NO_PEERS),
        (market(peers=0, peers_inside=0), "", NONE_OF),
        (Tracts(np.array([80.0, 20.0]), np.ones(2), np.array([40, 0]), np.array([30, 70])), "", ONE_TRACT),
    ],
)
def test_outcomes_are_named(tracts, reason, starts):
    assert of(tracts, reason=reason).reason == starts


def test_one_tract_has_a_ratio_and_no_interval_of_its_shortfall():
    share = of(Tracts(np.array([80.0, 20.0]), np.ones(2), np.array([40, 0]), np.array([30, 70])))
    assert np.isfinite(share.ratio)
    assert np.isnan(share.shortfall_low)
    assert share.state == "", "one tract gives no interval, and so no state"


def test_applications_without_a_known_tract_are_counted_apart():
    tracts = Tracts(np.array([80.0, np.nan]), np.ones(2), np.array([40, 9]), np.array([30, 1]))
    assert of(tracts).n == 40
    assert of(tracts, UNKNOWN).events == 9


@pytest.mark.slow
def test_the_interval_of_the_shortfall_holds_the_true_one_when_tracts_differ():
    """Tracts differ in how much the lender is present, so that applications of one hang together."""
    covered = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        minority = np.where(np.arange(120) < 48, 80.0, 20.0)
        demand = rng.gamma(4, 25, 120)
        presence = np.where(minority > 50, 0.5, 1.0) * rng.gamma(3, 1 / 3, 120)
        own, peers = rng.poisson(0.08 * demand * presence), rng.poisson(demand)
        share = of(Tracts(minority, np.full(120, 1000.0), own, peers))
        truth = own.sum() * (0.4 - 0.4 * 0.5 / (0.4 * 0.5 + 0.6))
        covered.append(share.shortfall_low <= truth <= share.shortfall_high)
    assert 0.89 <= np.mean(covered) <= 0.99


@pytest.mark.data("data/hmda_lar_2024_travis_cu")
def test_shares_of_a_credit_union_are_those_of_the_specification():
    file = SHARED / "data/hmda_lar_2024_travis_cu/travis_cu_2024_hmda.csv"
    rows = pd.read_csv(file, dtype=str, keep_default_na=False)
    rows["minority"] = pd.to_numeric(rows["tract_minority_population_percent"], errors="coerce")
    by_tract = rows.groupby("census_tract").agg(
        minority=("minority", "first"), own=("lei", "size"), made=("action_taken", lambda a: (a == "1").sum())
    )
    nobody = np.zeros(len(by_tract), np.int64)
    for column, n, majority in (("own", 1442, 0.701), ("made", 817, 0.682)):
        tracts = Tracts(by_tract["minority"].to_numpy(), np.ones(len(by_tract)), by_tract[column].to_numpy(), nobody)
        share = of(tracts, reason=NO_PEERS)
        assert (share.n, round(share.share, 3)) == (n, majority)
    assert len(by_tract) == 542


def scattered(single=False):
    """Tracts of every band, some without homes, one without a known share."""
    rng = np.random.default_rng(4)
    minority = np.r_[np.linspace(0, 100, 29), np.nan]
    homes = np.where(np.arange(30) % 7 == 0, np.nan, 100.0 * np.arange(30))
    lender = np.where(np.arange(30) == 20, 9, 0) if single else rng.integers(0, 9, 30)
    return Tracts(minority, homes, lender, rng.integers(0, 90, 30))


def fields(tracts, reason=""):
    found = list(shares(tracts, 0.9, np.random.default_rng(1), reason))
    return [(vars(each), each.share, each.state, each.peers_share) for each in found]


RESULTS = {
    "scattered": lambda: fields(scattered()),
    "one tract": lambda: fields(scattered(True)),
    "no peers": lambda: fields(scattered(), NO_PEERS),
    "market": lambda: fields(market()),
    "half of peers": lambda: fields(market(own_inside=300)),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_stay_what_they_are(name):
    """Kept from an earlier run: every field of every band. A number that moves is seen."""
    assert fingerprint(RESULTS[name]()) == pytest.approx(HELD[name], rel=1e-9, abs=1e-5)


HELD = {
    "scattered": {
        "0": 311.009605,
        "1": 308.652348,
        "2": 297.151817,
        "3": 312.599912,
        "4": 322.296694,
        "5": 308.109961,
        "6": 347.589082,
    },
    "one tract": {
        "0": 273.463779,
        "1": 274.474365,
        "2": 331.704281,
        "3": 272.168183,
        "4": 331.615553,
        "5": 275.534456,
        "6": 329.524464,
    },
    "no peers": {
        "0": 377.766035,
        "1": 367.242019,
        "2": 364.412112,
        "3": 370.665809,
        "4": 372.910053,
        "5": 368.284843,
        "6": 347.589082,
    },
    "market": {"0": 311.066446, "1": 256.090903, "2": 255.819775, "3": 333.481003, "4": 338.886958, "5": 258.566723},
    "half of peers": {
        "0": 343.798061,
        "1": 256.090903,
        "2": 255.819775,
        "3": 307.726991,
        "4": 314.522831,
        "5": 258.566723,
    },
}
