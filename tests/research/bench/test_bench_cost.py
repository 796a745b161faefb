"""The clock of the benchmark of what verdicts cost: every part is found, timed where it is called, and put back."""

import time
from importlib import import_module
from types import SimpleNamespace

import pytest

from research.bench import cost
from research.bench import timed_cost as cost_work
from research.bench.listing import bench_of
from research.bench.timed_cost import PARTS, WITH, WITHOUT
from tasks.plan import STAGES


def test_every_part_is_a_function_of_the_product_in_a_step_that_there_is():
    for part in PARTS:
        assert part.step.split()[0] in STAGES
        for place in part.places:
            module, path = place.split(":")
            found = import_module(module)
            for name in path.split("."):
                found = getattr(found, name)
            assert callable(found), place


def burning(seconds):
    clock = time.process_time()
    while time.process_time() - clock < seconds:
        pass
    yield "made"


def test_a_clock_counts_what_is_generated_and_is_taken_away_again(monkeypatch):
    holder = SimpleNamespace(work=burning)
    monkeypatch.setattr(cost_work, "import_module", lambda _: holder)
    used = {"part": 0.0}
    with cost_work._replaced("module:work", lambda function: cost_work._clocked(function, used, "part")):
        assert list(holder.work(0.05)) == ["made"]
        assert 0.05 <= used["part"] < 0.5
    assert holder.work is burning
    with cost_work._replaced("module:work", lambda function: cost_work._without(function, ())):
        assert holder.work(60) == ()


def test_the_table_adds_up_parts_once_and_compares_the_largest_peaks(monkeypatch, tmp_path):
    names = ["preprocess", *dict.fromkeys(part.step for part in PARTS)]

    def run(what, *about):
        if what == "step_names":
            return {"names": names}
        *_, name, how = about
        peak = {"ablate": {WITH: 900.0, WITHOUT: 700.0}, "measure": {WITH: 500.0}}.get(
            name, {WITH: 900.0, WITHOUT: 800.0}
        )
        took = {part.name: 3.0 for part in PARTS if part.step == name}
        return {"parts": took, "peak_mb": peak[how], "cpu_s": 100 / len(names), "rows": 50_000}

    monkeypatch.setattr(cost, "_run", run)
    monkeypatch.setattr(cost, "yardstick", lambda: {"seconds": 1.0, "cpu_s": 1.0})
    lines = {each["what"]: each for each in cost._lines(SimpleNamespace(data=tmp_path, place=tmp_path))}
    counted = sum(not part.within for part in PARTS)
    assert lines["all parts"]["cpu_s"] == pytest.approx(3 * counted)
    assert lines["all parts"]["ratio"] == pytest.approx(3 * counted / 100)
    assert lines["all parts"]["met"] == "missed"
    assert lines["largest peak of a step"]["peak_mb"] == pytest.approx(100)
    assert lines["FGCE: 199 relabelled draws"]["peak_mb"] == pytest.approx(200)
    assert lines["table of verdicts"]["peak_mb"] is None
    assert bench_of("cost") is cost.BENCH
