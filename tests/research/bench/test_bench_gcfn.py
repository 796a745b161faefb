"""``evenhand bench gcfn``: what its processes time is the training itself, and what it says of it hangs together."""

from dataclasses import replace

import pytest
from conftest import evenhand

from research.gcfn import bench as bench_gcfn
from research.gcfn import timed_work as gcfn_stages
from tasks.counterfactuals.algorithm.gan import networks as gan
from tasks.counterfactuals.algorithm.gan.networks import GanSettings


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
    other = evenhand("bench", "gcfn", "--data", "shared")
    assert (other.returncode, "bench gcfn takes no --data" in other.stderr) == (2, True)
