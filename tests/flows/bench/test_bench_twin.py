"""``evenhand bench twin``: every method on a twin with and without discrimination, and how rates are told."""

import math

import pytest
from conftest import evenhand

from flows.bench import twin
from flows.bench.twin import EXPECTED, Said

PLANTED = ("direct", "mediated")


UNPLANTED = (0, 1, 2)
"""Seeds. An interval that were right would be wrong now and then: of three twins without discrimination, one may be."""


@pytest.fixture(scope="module")
def audits():
    return {planted: twin.audit(planted, 0, twin.ROWS) for planted in PLANTED}


@pytest.fixture(scope="module")
def unplanted():
    return [twin.audit("none", seed, twin.ROWS) for seed in UNPLANTED]


@pytest.mark.slow
@pytest.mark.parametrize("method", EXPECTED)
def test_a_method_finds_what_is_planted_and_mostly_nothing_where_nothing_is(audits, unplanted, method):
    assert sum(said.found[method] for said in unplanted) <= 1
    for planted in EXPECTED[method].finds:
        assert audits[planted].found[method], planted
        assert audits[planted].values[method] > max(said.values[method] for said in unplanted)


@pytest.mark.slow
def test_the_truth_is_told_beside(audits, unplanted):
    assert [said.flips for said in unplanted] == [0, 0, 0]
    assert 0.1 < audits["direct"].flips < 0.3
    assert 0.1 < audits["mediated"].flips < 0.3


def test_every_method_is_held_against_one_limit():
    limits = [t.method for t in twin.spec_of("none", 0, 2000).thresholds]
    assert sorted(limits) == sorted(EXPECTED)
    for expected in EXPECTED.values():
        assert set(expected.why_not) == set(PLANTED) - set(expected.finds)


def said(found, value=0.2):
    return Said(dict.fromkeys(EXPECTED, found), dict.fromkeys(EXPECTED, value), 0.1, 1.0)


def test_rates_have_exact_intervals_and_targets():
    """2 of 20: Clopper and Pearson give 0.0123 to 0.3170."""
    audits = [said(True)] * 2 + [said(False, math.nan)] * 3 + [said(False, 0.0)] * 15
    false = twin._rate("none", "cst", audits)
    assert false["found"] == "2 of 20 [0.012, 0.317], mean of the measure 0.024, too few to say in 3"
    assert (false["ratio"], false["target"], false["met"]) == (0.1, "at most 0.1", "met")
    assert twin._rate("none", "cst", [said(True)] * 3 + [said(False)] * 17)["met"] == "missed"
    assert twin._rate("direct", "cst", [said(True)] * 8 + [said(False)] * 2)["met"] == "met"
    assert twin._rate("direct", "cst", [said(True)] * 7 + [said(False)] * 3)["met"] == "missed"
    untold = twin._rate("mediated", "cec", [said(False, math.nan)] * 4)
    assert "target" not in untold
    assert untold["found"].startswith("0 of 4 [0.000, 0.602], too few to say in 4; by its nature: ")


def test_a_quick_look_holds_nothing_against_targets(monkeypatch):
    monkeypatch.setattr(twin, "audit", lambda *_: said(True))
    quick = twin.BENCH.run(rows=1500)
    assert all(row["target"] is None and row["rows"] == 1500 for row in quick)
    full = twin.BENCH.run()
    assert len(full) == len(quick) == 3 * (1 + len(EXPECTED))
    assert [row["met"] for row in full if row["data"] == "twin, none"] == [None, *["missed"] * len(EXPECTED)]


def test_what_cannot_be_run_is_named():
    few = evenhand("bench", "twin", "--rows", "300")
    assert (few.returncode, "needs 1200 rows" in few.stderr) == (2, True)
    other = evenhand("bench", "twin", "--data", "shared")
    assert (other.returncode, "bench twin takes no --data" in other.stderr) == (2, True)
