"""``evenhand bench twin``: every method on a twin with and without discrimination, and how rates are told."""

import math

import numpy as np
import pandas as pd
import pytest
from conftest import evenhand

from research.bench import twin
from research.bench.twin import EXPECTED, Measured, Said
from research.benchmark import Held
from tasks.metrics.algorithm.agreement import TWINS, WORLDS
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


def test_an_order_that_finds_the_harmed_has_an_auc_of_one_and_one_group_alone_has_none():
    harmed = pd.Series([True, False, True, False], index=list("abcd"))
    assert twin._auc(harmed, pd.Series([0.9, 0.1, 0.8, np.nan], index=list("abcd"))) == 1
    assert twin._auc(harmed, pd.Series([0.1, 0.9, 0.2, 0.8], index=list("abcd"))) == 0
    assert math.isnan(twin._auc(harmed, pd.Series([0.9, np.nan, 0.8, np.nan], index=list("abcd"))))


def test_worth_is_printed_twin_by_twin_and_the_printed_share_is_held_against_the_truth(monkeypatch, capsys):
    def worth(planted, seed, rows):
        return twin.Worth({twin.CEILING: 0.7, **dict.fromkeys(twin.STATISTICS, 0.6 - seed / 10)}, 2.0)

    def excess(planted, seed, rows):
        harmed, low = (0.0, -0.1) if planted == "none" else (0.4, 0.1)
        return twin.Excess(
            {"ratio": 0.3, twin.JUDGED: harmed + 0.06}, {twin.JUDGED: (low, 0.6)}, 200 + seed, harmed, 1.0
        )

    monkeypatch.setattr(twin, "worth", worth)
    monkeypatch.setattr(twin, "excess", excess)
    rows = {(row["data"], row["what"]): row for row in twin.BENCH.run(reps=2, form="--individuals")}
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4 + 10, "twins of two worlds by all methods, and of five by CST alone"
    assert "CEC: score 0.500" in lines[1]
    assert lines[4] == "excess, none: twin 1 of 2, 1 CPU s: +0.060, truth 0.000"
    assert rows["excess, none", twin.JUDGED]["met"] == "missed", "0.06 from nothing"
    assert rows["excess, direct", twin.JUDGED]["met"] == "met"
    interval = f"{twin.JUDGED}: interval"
    assert (rows["excess, none", interval]["met"], rows["excess, direct", interval]["met"]) == ("met", "met")
    assert rows["excess, none", interval]["found"].startswith("the interval excludes 0 in 0 of 2")
    assert rows["excess, direct", interval]["ratio"] == 1
    assert rows["excess, mediated", interval]["target"] is None
    assert rows["worth, direct", "GCFN: change / own probability of denial"]["met"] == "missed", "0.55 of at least 0.58"
    assert (rows["worth, direct", "twins"]["cpu_s"], rows["excess, direct", "truth"]["cpu_s"]) == (4, 2)
    assert ("worth, none", twin.CEILING) not in rows


def test_patterns_are_those_of_the_command_with_exact_intervals(monkeypatch, capsys):
    def audit(planted, seed, rows, *, as_input):
        sign = "against" if planted == "direct" or (as_input and seed == 0) else "none_seen"
        return Said({}, 0.1, 1.0, {"st_effect": sign, "cec_above_own_group": "too_few"})

    monkeypatch.setattr(twin, "audit", audit)
    rows = twin.BENCH.run(reps=2, form="--patterns")
    told = {(row["data"], row["what"], row["found"]) for row in rows}
    assert ("pattern, direct", "st_effect", "against the group in 2 of 2 (0.16 to 1.00)") in told
    assert ("pattern, direct", "pattern", "ST- CEC?: 2 of 2 (0.16 to 1.00)") in told
    assert ("pattern, none, group an input", "st_effect", "against the group in 1 of 2 (0.01 to 0.99)") in told
    assert len(capsys.readouterr().err.splitlines()) == 12


def test_two_forms_of_one_benchmark_are_refused():
    both = evenhand("bench", "twin", "--patterns", "--individuals")
    assert (both.returncode, "are two benchmarks" in both.stderr) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize("planted", ["direct"])
def test_the_rates_that_reports_print_are_those_of_a_twin_again(planted):
    """Of every twin of a world a measure spoke, or of none: then it does so of the first one."""
    said = twin.audit(planted, 0, twin.ROWS)
    for measure, rates in TWINS.items():
        rate = rates[WORLDS.index(planted)]
        if rate.spoke in (0, rate.twins):
            assert said.measured[measure].detected == (rate.spoke > 0), measure


@pytest.mark.slow
def test_the_excess_share_of_a_direct_twin_is_near_the_truth_and_that_of_an_empty_one_near_nothing():
    of = {planted: twin.excess(planted, 0, 4_000) for planted in ("direct", "none")}
    assert of["none"].harmed == 0 < of["direct"].harmed
    for planted in of:
        assert of[planted].estimates[twin.JUDGED] == pytest.approx(of[planted].harmed, abs=0.2), planted
    low, high = of["direct"].intervals[twin.JUDGED]
    assert 0 < low < of["direct"].harmed < high


@pytest.mark.long
def test_what_flags_are_worth_stays_below_the_ceiling_and_necessity_orders_better_than_the_difference():
    of = [twin.worth("direct", seed, 2_000) for seed in range(2)]
    for found in of:
        assert 0.55 < found.auc[twin.CEILING] < 0.85
    share, difference = (
        np.mean([found.auc[name] for found in of])
        for name in ("CST: (control - test) / control, lender", "CST: control - test, lender")
    )
    assert share > difference
