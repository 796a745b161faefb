"""``evenhand bench gcfn``: what its processes time is the training itself, and what it says of it hangs together."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import evenhand

from research.benchmark import Room
from research.gcfn import bench as bench_gcfn
from research.gcfn import timed_work as gcfn_stages
from research.gcfn.timed_work import RestingGame, SeedResult
from tasks.counterfactuals.algorithm.gan import networks as gan
from tasks.counterfactuals.algorithm.gan.networks import GanSettings, Shape, fit_encoder
from tasks.counterfactuals.algorithm.gan.training import train
from tasks.counterfactuals.gan import gan_settings
from tasks.ingest.synthetic.algorithm.lending import Synthetic, synthetic


def test_variants_are_what_they_are_called():
    default, paper = gcfn_stages.VARIANTS["default"], gcfn_stages.VARIANTS["paper"]
    assert default == GanSettings(device="cpu")
    assert paper == replace(default, **gan.PAPER)
    assert [*gcfn_stages.VARIANTS, gcfn_stages.QUANTILES] == list(bench_gcfn.TITLES)
    assert (default.networks, default.epochs) == (bench_gcfn.NETWORKS, bench_gcfn.EPOCHS)


@pytest.mark.long
def test_a_whole_training_and_its_epochs_are_timed():
    said = gcfn_stages.speed("1000", "2", "4", "cpu")
    assert said["rows"] == 1_000
    assert 0 < said["epoch_cpu_s"] < said["cpu_s"]
    assert 3 * said["epoch_s"] < said["seconds"]
    assert said["peak_mb"] > 100
    once = gcfn_stages.speed("1000", "2", "1", "cpu")
    assert once["epoch_cpu_s"] == once["cpu_s"]


def test_forms_are_timed_in_turn(monkeypatch):
    monkeypatch.setattr(gcfn_stages, "ROUNDS", 1)
    said = gcfn_stages.forms("300", "64", "2")
    assert said["rows"] == 300
    assert min(said["compiled"], said["autograd"]) > 0


@pytest.mark.parametrize(("autograd", "met"), [(4.0, "met"), (1.9, "missed")])
def test_compiled_gradients_are_held_against_automatic_differentiation(monkeypatch, autograd, met):
    monkeypatch.setattr(
        bench_gcfn, "_run", lambda what, rows, *_: {"rows": rows, "compiled": 1.0, "autograd": autograd}
    )
    default, boston = bench_gcfn._forms(bench_gcfn.MANY_ROWS)
    assert (default["rows"], boston["rows"]) == (10_000, 1_989)
    assert (default["ratio"], default["met"], default["target"]) == (autograd, met, "at least 2")


@pytest.mark.slow
def test_quality_is_of_held_out_rows_by_seed(monkeypatch):
    for name, settings in gcfn_stages.VARIANTS.items():
        monkeypatch.setitem(gcfn_stages.VARIANTS, name, replace(settings, networks=2, epochs=40, batch=64))
    default, paper, exact = (gcfn_stages.quality(each, "0.5", "1000", "2") for each in bench_gcfn.TITLES)
    assert len(default["slopes"]) == len(default["errors"]) == len(set(default["slopes"])) == 2
    assert exact["slopes"] == pytest.approx([1, 1], abs=0.1)
    assert max(exact["errors"]) < 0.05 < min(paper["errors"])
    assert max(default["errors"]) < min(paper["errors"])
    assert gcfn_stages.quality("default", "0.5", "1000", "1")["slopes"] == default["slopes"][:1]


def speeds(ten=30.0, one=10.0):
    """Told in the place of a process."""

    def told(what, rows, networks, epochs, device):
        assert (what, device) == ("speed", "cpu")
        cpu_s = {10: ten, 1: one}[networks] * epochs / 300 * rows / 10_000
        return {"rows": rows, "seconds": 1.0, "cpu_s": cpu_s, "epoch_cpu_s": cpu_s / epochs, "peak_mb": 1.0}

    return told


def test_targets_of_speed_are_held_against_what_was_measured(monkeypatch):
    monkeypatch.setattr(bench_gcfn, "_run", speeds())
    ten, _, ratio, many, growth, extrapolated = bench_gcfn._speed(bench_gcfn.MANY_ROWS)
    assert (ten["met"], ratio["ratio"], ratio["target"]) == ("met", 3.0, None)
    assert (many["rows"], growth["ratio"]) == (101_570, pytest.approx(10.157))
    assert extrapolated["cpu_s"] == pytest.approx(30 * 10.157)
    assert "extrapolated: not run, 290 more epochs" in extrapolated["found"]
    monkeypatch.setattr(bench_gcfn, "_run", speeds(ten=37.0))
    ten, *_ = bench_gcfn._speed(bench_gcfn.MANY_ROWS)
    assert ten["met"] == "missed"


@pytest.mark.parametrize(
    ("slopes", "errors", "met"),
    [
        ([0.98, 0.84], [0.04, 0.055], ["met", "met"]),
        ([0.9, 0.7], [0.0, 0.0], ["missed", "met"]),
        ([0.95, 0.95], [0.06, 0.06], ["missed", "met"]),
        ([0.6, 0.7], [0.0, 0.0], ["missed", "missed"]),
    ],
)
def test_targets_of_quality_are_means_of_the_default_settings(monkeypatch, slopes, errors, met):
    told = {"slopes": slopes, "errors": errors, "cpu_s": 1.0}
    monkeypatch.setattr(bench_gcfn, "_run", lambda *_: told)
    rows = list(bench_gcfn._quality(10_000, 2))
    default = [row for row in rows if "default" in row["what"]]
    assert [row["met"] for row in default] == met
    assert [row["target"] for row in default] == ["slope at least 0.9, error at most 0.05", "slope at least 0.7"]
    assert all(row["target"] is None for row in rows if row not in default)
    assert f"({slopes[0]:.3f} {slopes[1]:.3f})" in default[0]["found"]


def test_an_accelerator_is_timed_by_the_clock(monkeypatch):
    answers = {
        "device": {"cuda": "card"},
        "cpu": {"epoch_s": 3.0, "seconds": 9.0},
        "cuda": {"epoch_s": 0.5, "seconds": 2},
    }
    monkeypatch.setattr(bench_gcfn, "_run", lambda *about: answers[about[-1]])
    (row,) = bench_gcfn._accelerator(10_000)
    assert (row["data"], row["ratio"], row["seconds"], row["target"]) == ("card", 6.0, 2, None)
    monkeypatch.setattr(bench_gcfn, "_run", lambda *_: {"cuda": None})
    (row,) = bench_gcfn._accelerator(10_000)
    assert row["found"] == "no device: nothing measured"


def test_what_cannot_be_run_is_named():
    few = evenhand("bench", "gcfn", "--rows", "300")
    assert (few.returncode, "needs 1000 rows" in few.stderr) == (2, True)
    savings = evenhand("bench", "gcfn", "--savings", "--rows", "2000")
    assert (savings.returncode, "--savings takes no --rows" in savings.stderr) == (2, True)
    other = evenhand("bench", "gcfn", "--data", "shared")
    assert (other.returncode, "bench gcfn takes no --data" in other.stderr) == (2, True)


SHORT = 100
"""Epochs of today's setting in the small form."""


@pytest.fixture(scope="module")
def boston(tmp_path_factory):
    """Boston's applicants, and a short setting of two networks."""
    place = str(tmp_path_factory.mktemp("boston"))
    assert gcfn_stages.applicants("boston1990", "0", place) == {"rows": 1_984}
    about = gcfn_stages.audited(place, "boston1990")
    return about, replace(gan_settings(about.case.settings), networks=2, epochs=SHORT, device="cpu")


def beyond(about, settings, today, candidate, first=0):
    """Measures of a candidate beyond the spread of five seeds."""
    numbers = range(settings.seed + first, settings.seed + first + 5)
    short = candidate.changed(settings)
    results = [gcfn_stages.seed_result(about, replace(short, seed=number), candidate.begin) for number in numbers]
    return {
        line.measure for line in gcfn_stages.comparisons(today or results, results) if line.over_spread > 1
    }, results


@pytest.mark.slow
def test_a_crippled_setting_is_beyond_the_spread_of_seeds_and_other_seeds_are_within(boston):
    about, settings = boston
    same, today = beyond(about, settings, None, gcfn_stages.CANDIDATES["today"])
    others, _ = beyond(about, settings, today, gcfn_stages.CANDIDATES["seeds"], gcfn_stages.SEEDS)
    crippled, _ = beyond(about, settings, today, gcfn_stages.CANDIDATES["crippled"])
    assert (same, others) == (set(), set())
    assert {"verdicts unlike another seed's", "dependence of noise and group"} < crippled
    assert {f"not_identified_share, {group}" for group in ("Black", "Hispanic")} < crippled


def result(share, decisions=(False, True), cpu_s=2.0, dependence=0.1):
    return SeedResult(cpu_s, list(decisions), [0, 2], {"share_changed, B": share}, dependence)


TODAY = [result(0.1), result(0.2), result(0.3, (True, True), dependence=0.2)]


@pytest.mark.parametrize(
    ("candidate", "measures"),
    [
        (TODAY, []),
        ([result(0.39), result(0.39), result(0.39, (True, True))], []),
        ([result(0.41), result(0.4), result(0.4, (True, True))], ["share_changed, B"]),
        ([result(0.1, (True, False)), result(0.2), result(0.3, (True, True))], []),
        ([result(0.1, (True, False)), result(0.2), result(0.3, (False, False))], ["decisions unlike another seed's"]),
        (
            [result(0.2, dependence=0.201)] * 2 + [result(0.2, (True, True), dependence=0.2)],
            ["dependence of noise and group"],
        ),
        ([result(0.2, dependence=0.0)] * 2 + [result(0.2, (True, True), dependence=0.0)], []),
    ],
)
def test_a_candidate_is_held_against_what_seeds_lie_apart(candidate, measures):
    *lines, verdict = bench_gcfn.compared(
        "boston1990", 9, TODAY, gcfn_stages.limits_of(TODAY, TODAY), "half", candidate
    )
    assert [line["what"].removeprefix("half: ") for line in lines if line["ratio"] > 1] == measures
    assert len(lines) == 4
    words = "beyond the spread of seeds: " if measures else "within the spread of seeds"
    assert verdict["found"].startswith(words)
    assert (verdict["what"], verdict["cpu_s"], verdict["ratio"]) == ("half", 2.0, 1.0)


def test_what_other_seeds_do_as_well_is_within():
    control = [result(0.45), result(0.45), result(0.45, (True, True))]
    limits = gcfn_stages.limits_of(TODAY, control)
    assert limits == {**dict.fromkeys(limits, 1.0), "share_changed, B": pytest.approx(1.25)}
    for share, words in ((0.44, "within the spread of seeds"), (0.46, "beyond the spread of seeds: share_changed, B")):
        candidate = [result(share), result(share), result(share, (True, True))]
        *_, verdict = bench_gcfn.compared("boston1990", 9, TODAY, limits, "half", candidate)
        assert verdict["found"] == words


def test_seeds_that_all_agree_allow_no_change():
    ratios = [line.over_spread for line in gcfn_stages.comparisons([result(0.1)] * 2, [result(0.1), result(0.2)])]
    assert ratios == [0, 0, float("inf"), 0]


@pytest.mark.parametrize(
    ("errors", "epoch"),
    [([3.0, 2.0, 1.0, 0.5], None), ([3.0, 2.0, 2.0, 1.0], None), ([3.0, 2.0, 2.0, 2.5, 1.0], 4), ([], None)],
)
def test_an_error_stalls_where_it_has_not_fallen_for_long(monkeypatch, errors, epoch):
    monkeypatch.setattr(gcfn_stages, "PATIENCE", 2)
    assert gcfn_stages.stalled_at(errors) == epoch


def trained(rows, begin, epochs=6):
    return train(rows, GanSettings(networks=2, hidden=8, epochs=epochs, batch=32, device="cpu"), begin=begin)


def test_a_network_stops_at_once_or_after_its_rate_has_fallen(monkeypatch):
    rows = synthetic(Synthetic(rows=200), np.random.default_rng(0)).mediation()
    errors = []

    def stalled(values):
        errors.append(len(values))
        return 2 if len(values) >= 2 else None

    monkeypatch.setattr(gcfn_stages, "stalled_at", stalled)
    at_once, later = (trained(rows, gcfn_stages._resting(falling)).checkpoint.tensors for falling in (0, 2))
    two = trained(rows, gcfn_stages._resting(gcfn_stages.ALWAYS), 2)
    assert torch.equal(
        at_once["generators.first"], trained(rows, gcfn_stages._resting(0), 5).checkpoint.tensors["generators.first"]
    )
    assert not torch.equal(at_once["generators.first"], later["generators.first"])
    assert max(errors) == 4
    assert len(two.checkpoint.history) == 2
    assert torch.equal(at_once["history"][1], at_once["history"][5])


def test_rows_held_out_are_not_learnt_from():
    rows = synthetic(Synthetic(rows=200), np.random.default_rng(0)).mediation()
    encoder = fit_encoder(rows, True, 0)
    shape = Shape(1, 2, encoder.width, encoder.heads, 8)
    game = RestingGame.of(encoder.encode(rows), shape, GanSettings(networks=2, hidden=8, batch=32, device="cpu"), 0)
    table, category = game.held_out
    assert (len(category), len(game.category)) == (20, 180)
    learnt = {tuple(row) for row in game.table.tolist()}
    assert not learnt & {tuple(row) for row in table.tolist()}


def test_networks_start_from_the_first_after_a_third_of_the_epochs():
    rows = synthetic(Synthetic(rows=200), np.random.default_rng(0)).mediation()
    states = []
    settings = GanSettings(networks=3, hidden=8, epochs=6, batch=32, device="cpu")
    train(rows, settings, states.append, begin=gcfn_stages.CANDIDATES["warm"].begin)
    alone = train(rows, replace(settings, networks=1)).checkpoint.tensors["generators.last"]
    weights = [state.tensors["generators.last"] for state in states]
    assert torch.equal(weights[0][1:], weights[1][1:])
    assert torch.equal(weights[-1][:1], alone)
    apart = (weights[2][1] - weights[2][0]).abs().max(), (weights[1][1] - weights[1][0]).abs().max()
    assert 0 < apart[0] < apart[1] / 10


def test_candidates_of_both_audits_are_compared_with_todays_setting(monkeypatch, tmp_path):
    begun = []

    def run(what, *about):
        begun.append((what, *about))
        return {"rows": 9} if what == "applicants" else {"results": json.loads(json.dumps(TODAY))}

    monkeypatch.setattr(bench_gcfn, "_run", run)
    rows = list(bench_gcfn._savings(Room(tmp_path, tmp_path, None)))
    verdicts = [row for row in rows if row["cpu_s"] is not None]
    candidates = len(gcfn_stages.CANDIDATES)
    assert [row["data"] for row in verdicts] == ["boston1990"] * (candidates - 1) + ["hmda"] * (candidates - 1)
    assert {row["found"] for row in verdicts} == {"within the spread of seeds"}
    assert begun[:2] == [
        ("applicants", "boston1990", 7_000, tmp_path),
        ("seeded", tmp_path, "boston1990", "today", gcfn_stages.SEEDS),
    ]
    assert len(begun) == 2 * (candidates + 1)
