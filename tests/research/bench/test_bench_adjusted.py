"""``evenhand bench adjusted``: what its processes time is the work itself, and fits are those of statsmodels."""

import numpy as np
import pytest
from conftest import SHARED, evenhand
from numpy.testing import assert_allclose

from research.adjusted import bench, timed_work
from research.adjusted.bench import SCENARIOS

ROWS = 70_000
"""More than a batch."""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    place = str(tmp_path_factory.mktemp("bench") / "applications.parquet")
    assert timed_work.generate(place, str(ROWS))["rows"] == ROWS
    return place


def test_rows_come_back_in_batches_and_only_as_many_as_are_wanted(file):
    whole = [*timed_work.streamed(file)()]
    assert [len(batch.y) for batch in whole] == [timed_work.BATCH, ROWS - timed_work.BATCH]
    assert {batch.x.shape[1] for batch in whole} == {40}
    assert all((batch.x[:, 0] == 1).all() for batch in whole)
    few = timed_work.streamed(file, 100)
    assert [len(batch.y) for batch in few()] == [100]
    assert_allclose(next(few()).x, whole[0].x[:100])
    assert np.array_equal(next(few()).y, whole[0].y[:100])


@pytest.mark.parametrize("fit", bench.FITS)
def test_streamed_fits_are_those_of_statsmodels(file, fit):
    ours, theirs = (getattr(timed_work, name)(file, str(ROWS)) for name in (fit, f"statsmodels_{fit}"))
    assert bench._apart(ours, theirs) < bench.MOST_APART
    assert min(ours["cpu_s"], theirs["cpu_s"], ours["peak_mb"]) > 0
    assert 0.05 < ours["effect"] < 0.15
    moved = {**theirs, "coefficients": [theirs["coefficients"][0] + 1, *theirs["coefficients"][1:]]}
    assert bench._apart(ours, moved) > 1


def test_the_whole_ladder_is_timed():
    said = timed_work.family()
    assert said["rows"] == 1_984
    assert said["effects"] == 4 * 2 * 5


def test_the_judged_effect_is_timed_with_its_parts():
    said = timed_work.judged_effect("3000")
    assert said["rows"] == 3_000
    assert said["parts"] >= 4 * timed_work.JUDGED_CATEGORIES


def test_coverage_is_of_every_scenario_of_a_size():
    said = timed_work.coverage("1500", "3")
    assert set(said["covered"]) == {each.name for each in SCENARIOS}
    assert all(round(3 * share) in (0, 1, 2, 3) for share in said["covered"].values())


@pytest.mark.parametrize(("shares", "met"), [((0.95, 0.97), "met"), ((0.9, 0.95), "missed"), ((1.0, 0.96), "missed")])
def test_coverage_has_a_target_on_both_sides(monkeypatch, shares, met):
    said = {"rows": 1500, "covered": {str(share): share for share in shares}}
    monkeypatch.setattr(bench, "_run", lambda *_: said)
    assert bench._bench_coverage(1500, 200)["met"] == met


def test_the_applications_of_texas_are_named_where_they_are_missing(tmp_path):
    gone = evenhand("bench", "adjusted", "--data", str(tmp_path))
    assert (gone.returncode, "hmda_tx_2022_sample.csv.gz in it" in gone.stderr) == (5, True)


@pytest.mark.long
@pytest.mark.data(str(bench.TEXAS_FILE))
def test_the_whole_ladder_of_texas_is_timed():
    said = timed_work.texas(str(SHARED))
    assert said["rows"] == 50_000
    assert set(said["effects"]) == {"race", "sex"}
    assert said["cpu_s"] > 0
