"""Results of Great Expectations that partitions keep, and faults of it that publish nothing."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from computed_lake import computed
from few_loans import between, few_loans, mean

from flows.cli.options import load_spec
from flows.runs.index import read_manifest
from schemas.errors import InfrastructureError
from tasks.lake.store import Lake
from tasks.pipeline.stage import EXPECTATIONS
from tasks.pipeline.validation import expectations as ours
from tasks.pipeline.validation import source
from tasks.plan import plan

Results = dict[str, bytes]


def results_of(place: Path, name: str) -> tuple[dict[str, Any], Results]:
    """The manifest of a run in a new lake, and the results of each stage."""
    lake = Lake(place / name)
    spec = load_spec(place / "few.yaml", {}).spec
    manifest = read_manifest(lake, computed(lake, spec))
    results = {}
    for partition in manifest["partitions"]:
        [path] = [path for path in partition["files"] if path.endswith(f"/{EXPECTATIONS}")]
        results[partition["stage"]] = (lake.storage.local / path).read_bytes()
    return manifest, results


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Results, Results]:
    """Manifest and results of a run, and its results in a second lake."""
    place = tmp_path_factory.mktemp("results")
    few_loans(place, [mean("warning"), between(50, "info")])
    manifest, first = results_of(place, "first")
    return manifest, first, results_of(place, "second")[1]


def test_every_partition_has_results_of_all_its_tables(run: tuple[dict[str, Any], Results, Results]) -> None:
    manifest, first, _ = run
    for partition in manifest["partitions"]:
        kept = json.loads(first[partition["stage"]])
        tables = {table["table"] for table in partition["tables"]} - {"validations"}
        assert kept["stage"] == partition["stage"]
        assert tables <= set(kept["tables"])
        for of_table in kept["tables"].values():
            assert len(of_table["result"]["results"]) == len(of_table["suite"]["expectations"]) > 0


def test_nothing_raised(run: tuple[dict[str, Any], Results, Results]) -> None:
    results = [
        result
        for content in run[1].values()
        for of_table in json.loads(content)["tables"].values()
        for result in of_table["result"]["results"]
    ]
    assert len(results) > 50
    assert not any("true" in json.dumps(result["exception_info"]) for result in results)


def test_results_have_no_values_of_rows(run: tuple[dict[str, Any], Results, Results]) -> None:
    for content in run[1].values():
        assert b"L00" not in content
        assert not [name for name in (b"partial_unexpected", b"unexpected_rows", b"unexpected_list") if name in content]


def test_results_are_the_same_bytes_in_a_second_lake(run: tuple[dict[str, Any], Results, Results]) -> None:
    assert run[1] == run[2]


@contextmanager
def _no_view(*_: Any) -> Iterator[None]:
    yield


def _raise(*_: Any, **__: Any) -> None:
    raise ValueError("broken")


@pytest.mark.parametrize("fault", ["dropped view", "raising expectation"])
def test_a_fault_of_the_engine_publishes_nothing(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(tmp_path / "lake")
    step = plan(load_spec(few_loans(tmp_path), {}).spec).steps[0]
    if fault == "dropped view":
        monkeypatch.setattr(source, "view", _no_view)
    else:
        monkeypatch.setattr(ours.ExpectTableKeyToBeUnique, "_validate", _raise)
    with pytest.raises(InfrastructureError) as caught:
        step.stage.run(lake, {}, step.settings, step.modules)
    assert caught.value.exit_code == 5
    assert not [path for path in (tmp_path / "lake").rglob("*") if path.suffix in (".parquet", ".json")]
