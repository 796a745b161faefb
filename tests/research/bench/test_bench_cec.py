"""``evenhand bench cec``: what its processes time is the work itself, and what it says of it hangs together."""

import numpy as np
import pytest
from conftest import evenhand

from research.benchmark import Piped
from research.cec import bench as bench_cec
from research.cec import data
from research.cec import timed_work as cec_stages
from tasks.counterfactuals.algorithm.nearest import Matching
from tasks.ingest.synthetic.algorithm.lending import SyntheticLending
from tasks.methods.cec.algorithm.models import Bridge
from tasks.numerics.networks import training


@pytest.fixture(scope="module")
def rows():
    return data.drawn(SyntheticLending(rows=600, financial=3, proxies=2, noise=1), seed=2)


@pytest.mark.slow
def test_a_process_takes_its_rows_through_a_pipe(rows):
    said = bench_cec._run("epoch", Piped(rows), "plain", 300, "cpu")
    assert (said["rows"], said["cpu_s"] > 0) == (240, True)


def test_a_sample_keeps_rows_together(rows):
    few = cec_stages.some(rows, 50)
    assert np.array_equal(few.population.features[:, :3], few.financial)
    assert np.array_equal(few.population.features[:, -1], few.population.protected)
    assert len(few.financial) == len(few.population.favourable) == 50


def test_variants_are_what_they_are_called():
    plain, default, paper, double = cec_stages.VARIANTS.values()
    assert (plain.lambda_eo, plain.lambda_cec) == (0, 0)
    assert (default.lambda_eo, default.lambda_cec, default.steps, default.pair_share) == (1, 1, 8, 0.5)
    assert (paper.steps, paper.pair_share) == (32, 1)
    assert double == paper
    assert list(bench_cec.TITLES) == list(cec_stages.VARIANTS)


@pytest.mark.parametrize("variant", cec_stages.VARIANTS)
def test_an_epoch_is_timed_and_leaves_training_as_it_was(rows, variant):
    closed = training.integrated_gradients
    said = cec_stages.epoch(rows, variant, "300", "cpu")
    assert (said["rows"], said["cpu_s"] > 0, said["seconds"] > 0) == (240, True, True)
    assert training.integrated_gradients is closed is not training.twice_differentiated


@pytest.mark.slow
def test_double_backward_learns_the_same(rows, monkeypatch):
    bridge = Bridge(rows, Matching())
    given = cec_stages._training_rows(bridge, next(cec_stages._folds(bridge)))
    settings = cec_stages.VARIANTS["paper"]
    with monkeypatch.context() as patch:
        patch.setattr(training, "integrated_gradients", training.twice_differentiated)
        twice = training.train(given, settings).checkpoint.history
    closed = training.train(given, settings).checkpoint.history
    assert np.allclose(twice, closed, atol=1e-4)
    assert closed[-1, 3] < closed[0, 3]


def test_first_rows_keep_only_their_own_matches(rows, monkeypatch):
    batches = []
    monkeypatch.setattr(cec_stages, "WARM_ROWS", 64)
    monkeypatch.setattr(cec_stages, "train", lambda given, _: batches.append(given))
    cec_stages.epoch(rows, "plain", "600", "cpu")
    few, given, *_ = batches
    assert len(few.inputs) == len(few.match) == 64
    matched = few.match != training.UNMATCHED
    assert 0 < matched.sum() < 64
    assert np.array_equal(few.match[matched], given.match[:64][matched])
    assert few.match.max() < 64


def test_scoring_asks_for_as_many_pairs_as_were_said(rows):
    once, twice = cec_stages.score(rows, "600", "600"), cec_stages.score(rows, "1200", "600")
    assert once["rows"] == twice["rows"] == 600
    assert twice["cec"] == pytest.approx(once["cec"])
    assert once["unscored_percent"] == 0


def test_everybody_is_matched():
    said = cec_stages.match("3000", "4")
    assert (said["rows"], said["matched"]) == (3000, 3000)
    assert 0 < said["median"] < 1


def test_targets_are_held_against_what_was_measured(monkeypatch, tmp_path):
    seconds = {"plain": 1.0, "default": 4.1, "paper": 5.0, "paper, double backward": 15.0}

    def told(what, _file, variant, *_):
        assert what == "epoch"
        return {"rows": 9, "seconds": 2.0, "cpu_s": seconds[variant], "peak_mb": 1.0}

    monkeypatch.setattr(bench_cec, "_run", told)
    *said, alone = bench_cec._training(tmp_path, bench_cec.benchmark.ALL)
    by = {row["what"]: row for row in said}
    default = by[f"an epoch, {bench_cec.TITLES['default']}"]
    assert (default["ratio"], default["target"], default["met"]) == (4.1, "at most 4", "missed")
    faster = by["T = 32, all pairs: closed form against double backward"]
    assert (faster["ratio"], faster["met"]) == (3.0, "met")
    assert (alone["ratio"], alone["target"]) == (14 / 4, None)
    assert by[f"an epoch, {bench_cec.TITLES['paper']}"]["target"] is None


def test_what_is_missing_is_named(tmp_path):
    gone = evenhand("bench", "cec", "--data", str(tmp_path))
    assert (gone.returncode, "hmda_tx_2022_sample.csv.gz in it" in gone.stderr) == (5, True)
    unsaid = evenhand("bench", "cec")
    assert (unsaid.returncode, "bench cec needs --data" in unsaid.stderr) == (2, True)
