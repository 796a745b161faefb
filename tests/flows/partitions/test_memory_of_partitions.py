"""What partitions will need beside what workers may take: refused, told, or sent to a large worker beforehand."""

import logging
import math
from dataclasses import asdict

import pytest
from lenders_of_loans import LARGE, YEAR, write_lenders

from flows.partitions.partition_list import listing
from flows.partitions.runners import Capacity
from flows.partitions.year_plan import Asked, Expected, check_together, fitted, for_large
from schemas.errors import InfrastructureError
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec

AT = "tcp://10.0.0.5:8786"
SMALL_WORKER, LARGE_WORKER = Capacity("tcp://a:1", 3000.0, large=False), Capacity("tcp://b:1", 12000.0, large=True)


def expected(*mb, measured_here=True):
    return [Expected(f"2022 bank {at}", each, 1000, measured_here) for at, each in enumerate(mb)]


def test_the_largest_at_a_time_share_what_there_is(monkeypatch):
    monkeypatch.setenv("EVENHAND_MEMORY", "3GB")
    check_together(expected(900, 2000, 800), 2, force=False)
    check_together([], 2, force=False)
    said = (
        r"2022 bank 1 will need about 2\.0 GB for 1,000 usable rows \(2 partitions at a time take 3\.5 GB\), and the "
        r"back-fill may take 3\.0 GB; fewer --workers.*EVENHAND_MEMORY; --force goes on"
    )
    with pytest.raises(InfrastructureError, match=said):
        check_together(expected(900, 2000, 1500), 2, force=False)
    check_together(expected(900, 2000, 1500), 1, force=False)


def test_a_partition_counts_as_often_as_its_stages_run_at_a_time(monkeypatch):
    monkeypatch.setenv("EVENHAND_MEMORY", "3GB")
    parts = [expected(1200)[0]._replace(at_once=3), *expected(100)]
    check_together(parts, 2, force=False)
    with pytest.raises(InfrastructureError, match=r"\(3 partitions or stages at a time take 3\.6 GB\)"):
        check_together(parts, 3, force=False)


def test_force_goes_on_and_so_does_a_figure_of_a_table(monkeypatch, caplog):
    monkeypatch.setenv("EVENHAND_MEMORY", "1GB")
    check_together(expected(2000), 1, force=True)
    check_together(expected(2000, measured_here=False), 1, force=False)
    assert ["because of --force" in message for message in caplog.messages] == [True, False]
    assert "the lake has no run of this audit yet" in caplog.messages[1]


def test_a_partition_above_a_workers_limit_is_for_a_large_worker():
    workers = [SMALL_WORKER, LARGE_WORKER]
    assert for_large(expected(900, 3001, 3000), workers, AT, force=False) == {"2022 bank 1"}
    assert for_large(expected(900), workers, AT, force=False) == set()
    assert for_large(expected(900), [], AT, force=False) == set()  # no worker has come yet


def test_without_a_large_worker_the_partition_and_the_command_are_named(caplog):
    said = (
        r"2022 bank 1 will need about 4\.2 GB for 1,000 usable rows, and the Dask worker tcp://a:1 may take 3\.0 GB: "
        rf"start a larger one with `dask worker {AT} --nthreads 1 --memory-limit 5GB --resources large=1`; --force"
    )
    with pytest.raises(InfrastructureError, match=said):
        for_large(expected(900, 4200), [SMALL_WORKER], AT, force=False)
    assert for_large(expected(900, 4200), [SMALL_WORKER], AT, force=True) == set()
    assert "because of --force" in caplog.text


def test_a_worker_without_a_limit_and_a_large_one_that_is_too_small_are_told(caplog):
    with caplog.at_level(logging.WARNING, "evenhand"):
        for_large(expected(900), [Capacity("tcp://c:1", math.inf, large=False)], AT, force=False)
        assert "the Dask worker tcp://c:1 has no memory limit: start workers with --memory-limit" in caplog.text
        assert for_large(expected(15000), [SMALL_WORKER, LARGE_WORKER], AT, force=False) == {"2022 bank 0"}
    assert "no Dask worker with the resource large may take more than 12.0 GB" in caplog.text


def test_partitions_are_forecast_as_the_plan_says(tmp_path, monkeypatch, caplog):
    path, lake = write_lenders(tmp_path), Lake(tmp_path / "lake")
    spec = read_spec(path.read_text(), "lenders.yaml", {}).spec
    usual = {"spec": spec.model_dump(mode="json"), "year": YEAR, "lake": lake.location, "force": False, "jobs": 1}
    listed = [each for each in listing(spec, YEAR, lake) if not each.too_few]
    asked = [Asked(**usual, listed=asdict(each)) for each in listed]
    monkeypatch.setenv("EVENHAND_MEMORY", "100MB")
    settings = {"kind": "processes", "workers": 2, "address": None}
    assert fitted(asked, settings) == asked  # no run of this lake tells
    assert f"{YEAR} all will need about" in caplog.text
    assert [LARGE in one.value for one in asked].count(True) == 1


def test_only_a_divided_partition_has_stages_at_a_time(tmp_path, monkeypatch, caplog):
    path, lake = write_lenders(tmp_path), Lake(tmp_path / "lake")
    with_methods = path.read_text().replace("{adjusted: null, fgce: null}", "{adjusted: {}, fgce: {}}")
    spec = read_spec(with_methods, "lenders.yaml", {}).spec
    usual = {"spec": spec.model_dump(mode="json"), "year": YEAR, "lake": lake.location, "force": False, "jobs": 1}
    every = next(listed for listed in listing(spec, YEAR, lake) if listed.value == "all")
    tasks = [Asked(**usual, listed=asdict(every))]
    monkeypatch.setenv("EVENHAND_MEMORY", "100MB")
    # adjust waits for rows and scores, ablate and fgce for the graph, too: three at a time however many workers
    for rows, workers, stages in (("85", 2, 2), ("85", 9, 3), ("85", 1, 1), ("86", 2, 1)):
        monkeypatch.setenv("EVENHAND_SUB_FLOW_ROWS", rows)
        caplog.clear()
        fitted(tasks, {"kind": "processes", "workers": workers, "address": None})
        assert (f"({stages} partitions or stages at a time" in caplog.text) is (stages > 1)
