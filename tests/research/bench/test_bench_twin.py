"""``evenhand bench twin``: every method on a twin with and without discrimination, and how rates are told."""

import math

import pytest
from conftest import evenhand

from research.bench import twin
from research.bench.twin import EXPECTED, Measured, Said
from research.benchmark import Held
from tasks.pipeline.registry import METHODS

PLANTED = ("direct", "mediated")
HELD = {each.measure: each for expected in EXPECTED.values() for each in expected.measures}


UNPLANTED = (0, 1, 2)
"""Seeds. An interval that were right would be wrong now and then: of three twins without discrimination, one may be."""


@pytest.fixture(
    scope="module", params=[False, pytest.param(True, marks=pytest.mark.long)], ids=["as shipped", "group as input"]
)
def as_input(request):
    return request.param


@pytest.fixture(scope="module")
def audits(as_input):
    return {planted: twin.audit(planted, 0, twin.ROWS, as_input=as_input) for planted in PLANTED}


@pytest.fixture(scope="module")
def unplanted(as_input):
    return [twin.audit("none", seed, twin.ROWS, as_input=as_input) for seed in UNPLANTED]


@pytest.mark.long
@pytest.mark.parametrize("measure", HELD)
def test_a_measure_finds_what_is_planted_and_mostly_nothing_where_nothing_is(as_input, audits, unplanted, measure):
    assert sum(said.measured[measure].detected for said in unplanted) <= 1
    for planted in HELD[measure].finds_by_input if as_input else HELD[measure].finds:
        assert audits[planted].measured[measure].detected, planted


@pytest.mark.long
def test_the_truth_is_told_beside_and_the_effects_are_near_it(audits, unplanted):
    assert [said.flips for said in unplanted] == [0, 0, 0]
    assert 0.1 < audits["direct"].flips < 0.3
    assert 0.1 < audits["mediated"].flips < 0.3
    for planted in PLANTED:
        assert audits[planted].measured["cst_effect"].value == pytest.approx(audits[planted].flips, abs=0.08)
    assert audits["direct"].measured["adjusted_effect"].value == pytest.approx(audits["direct"].flips, abs=0.08)
    assert audits["mediated"].measured["adjusted_effect"].value == pytest.approx(0, abs=0.08)


def test_every_method_is_held_by_measures_that_it_is_judged_by():
    for name, expected in EXPECTED.items():
        judged = {each.measure for each in METHODS[name].verdict_measures}
        assert {each.measure for each in expected.measures} <= judged, name
        assert expected.measures, name
    for held in HELD.values():
        assert held.why_not or set(held.finds) == set(held.finds_by_input) == set(PLANTED)
        assert set(held.finds) <= set(held.finds_by_input) <= set(PLANTED)


def test_the_race_is_an_input_only_where_that_is_asked_for():
    assert "derived_race" not in twin.spec_of("none", 0, 2000).columns
    assert "derived_race" in twin.spec_of("none", 0, 2000, as_input=True).features()


ROW = {"value": 0.1, "p": None, "se": 0.04, "low": 0.02, "high": 0.18, "scale": "linear"}


@pytest.mark.parametrize(
    ("row", "by", "found"),
    [
        (ROW, "interval", True),
        ({**ROW, "low": -0.01}, "interval", False),
        ({**ROW, "low": 0.7, "high": 0.95, "scale": "log"}, "interval", True),
        ({**ROW, "low": 0.7, "high": 1.05, "scale": "log"}, "interval", False),
        ({**ROW, "p": 0.05, "low": -0.01}, "test", True),
        ({**ROW, "p": 0.06}, "test", False),
        ({**ROW, "se": None, "low": None, "high": None}, "value alone", False),
        ({**ROW, "se": None}, "value alone", False),
    ],
)
def test_what_speaks_against_a_group(row, by, found):
    """A test of its own decides before an interval; an interval that nobody says covers decides nothing."""
    assert twin._against(row) == (by, found)


def test_the_lenders_decisions_come_before_the_models_and_others_are_not_read():
    of = {"measure": "m", "group": twin.GROUP, "subgroup": 0, "parameters": "{}", **ROW}
    model, lender = {**of, "decision_maker": "model", "value": 0.3}, {**of, "decision_maker": "lender"}
    found = twin._measured("m", [model, lender, {**lender, "parameters": "{1}", "value": 9}], {("m", "lender")})
    assert found == Measured(0.1, "interval", detected=True, breach=True)
    assert twin._measured("m", [model], {("m", "lender")}) == Measured(0.3, "interval", detected=True, breach=False)
    alone = {**lender, "se": None, "value": 0.7}
    assert twin._measured("m", [model, alone], set()).value == 0.3, "the lender's has a value alone"
    assert twin._measured("m", [{**model, "value": None}, alone], set()).value == 0.7
    assert math.isnan(twin._measured("m", [{**lender, "group": "White"}], set()).value)


def measured(found, value=0.2):
    return Measured(value, "interval", found, breach=False)


def said(found):
    return Said(dict.fromkeys(HELD, measured(found)), 0.1, 1.0)


BY_INPUT = Held("x", (), ("direct",), "it does not see the group")


def test_rates_have_exact_intervals_and_targets():
    """2 of 20: Clopper and Pearson give 0.0123 to 0.3170."""
    audits = [measured(True)] * 2 + [measured(False, math.nan)] * 3 + [measured(False, 0.0)] * 15
    false = twin._rate("none", BY_INPUT, audits)
    told = "2 of 20 [0.012, 0.317] by its interval, mean of the measure 0.024, beyond the spec's limit in 0"
    assert false["found"] == f"{told}, too few to say in 3"
    assert (false["ratio"], false["target"], false["met"]) == (0.1, "at most 0.1", "met")
    assert twin._rate("none", BY_INPUT, [measured(True)] * 3 + [measured(False)] * 17)["met"] == "missed"
    eight, seven = ([measured(True)] * n + [measured(False)] * (10 - n) for n in (8, 7))
    assert twin._rate("direct", BY_INPUT, eight, as_input=True)["met"] == "met"
    assert twin._rate("direct", BY_INPUT, seven, as_input=True)["met"] == "missed"
    untold = twin._rate("direct", BY_INPUT, [measured(False, math.nan)] * 4)
    assert "target" not in untold
    assert untold["found"].startswith("0 of 4 [0.000, 0.602] by its value, beyond the spec's limit in 0, too few")
    assert untold["found"].endswith("by its nature: it does not see the group")


def test_a_quick_look_holds_nothing_against_targets(monkeypatch):
    asked = []
    monkeypatch.setattr(twin, "audit", lambda *_, as_input: asked.append(as_input) or said(True))
    quick = twin.BENCH.run(rows=1500)
    assert all(row["target"] is None and row["rows"] == 1500 for row in quick)
    full = twin.BENCH.run()
    assert len(full) == len(quick) == 3 * (1 + len(HELD))
    assert [row["met"] for row in full if row["data"] == "twin, none"] == [None, *["missed"] * len(HELD)]
    assert not any(asked)
    other = twin.BENCH.run(rows=1500, form="--group-as-input")
    assert {row["data"] for row in other} == {f"twin, {each}, group an input" for each in ("none", *PLANTED)}
    assert asked[-1]


def test_what_cannot_be_run_is_named():
    few = evenhand("bench", "twin", "--rows", "300")
    assert (few.returncode, "needs 1200 rows" in few.stderr) == (2, True)
    other = evenhand("bench", "twin", "--data", "shared")
    assert (other.returncode, "bench twin takes no --data" in other.stderr) == (2, True)
    form = evenhand("bench", "ingest", "--group-as-input")
    assert (form.returncode, "bench ingest takes no --group-as-input; bench twin does" in form.stderr) == (2, True)
