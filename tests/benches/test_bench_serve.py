"""The bench of the pages: the lake that it serves holds what lists need, and every route of it is there."""

from pathlib import Path

from benches import serve
from benches.serve import copied, query_alone_ms, routes
from lake_of_runs import NEW, lake_of_runs
from served_lake import served

from flows.runs.index import read_manifest
from flows.runs.summary import read_summary
from tasks.lake import log


def test_copies_are_runs_with_a_summary_and_an_entry_of_the_log(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    names = [copied(lake, NEW, n) for n in range(1, 4)]
    assert [read_summary(lake, name).audit for name in names] == ["loans-1", "loans-2", "loans-3"]
    assert {read_manifest(lake, name)["state"] for name in names} == {"outside"}
    assert list(log.problems(lake)) == []
    text = served(lake.location).get("/runs").text
    assert all(name in text for name in names)


def test_every_route_of_the_bench_is_answered(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    one = served(lake.location)
    made_anew = {"question", "evidence", "quality", "years", "trend"}  # of runs that were computed
    for name, (address, most, _) in routes(NEW, copied(lake, NEW, 1)).items():
        one.clock.now += 6
        assert name in made_anew or one.get(address).status_code == 200, name
        assert most > 0


def test_it_is_a_bench_with_targets_at_any_size(tmp_path: Path) -> None:
    assert serve.BENCH.of_any_size
    assert query_alone_ms(lake_of_runs(tmp_path / "lake"), NEW, 2) > 0
