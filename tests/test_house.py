"""The shape of the house: what a method's folder holds, how large rooms and files are, where stages are."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import REPOSITORY

from tasks.pipeline.registry import METHODS, NAMES
from tasks.plan import STAGES
from tasks.proof.benches import Bench, Expected
from tasks.proof.experiments import Paper

TOPS = ("flows", "tasks", "schemas")
CODE = sorted(file for top in TOPS for file in (REPOSITORY / top).rglob("*.py"))
FOLDERS = sorted({file.parent for file in CODE})
METHOD_FOLDERS = REPOSITORY / "tasks" / "methods"

WHOLE = (
    *("method.py", "settings.py", "measures.py", "algorithm/detection.py", "report.yaml"),
    *("bench/bench.py", "reproduction/experiments.py"),
)
"""Files of every method."""
BESIDE = {
    *("__init__.py", "__pycache__", "method.py", "settings.py", "measures.py", "problem.py", "tables.py"),
    *("report.yaml", "mitigations.py"),
}
ROOMS = {"algorithm", "bench", "reproduction"}

MOST_ENTRIES = {"tasks": 16, "flows": 14, "tasks/reporting": 13, "tasks/lake": 13}
"""Where there may be more than 12."""
MOST_LINES = 320

RECORDED = {
    "ingest": "tasks.ingest",
    "preprocess": "tasks.preprocessing",
    "score": "tasks.scoring",
    "connect": "tasks.feasibility_graph",
    "generate": "tasks.counterfactuals",
    "adjust": "tasks.methods.adjusted.adjust",
    "ablate": "tasks.methods.fgce.ablate",
    "train": "tasks.methods.cec.train",
    "mediate": "tasks.methods.gcfn.mediate",
    "predict_fairly": "tasks.methods.gcfn.predict_fairly",
    "refit_generators": "tasks.methods.gcfn.refit_generators",
    "rerank": "tasks.methods.raguel.rerank",
    "detect": "tasks.detection",
    "compare": "tasks.metrics.compare",
    "measure": "tasks.metrics",
    "publish": "tasks.metrics.publish",
    "report": "tasks.reporting",
}
"""Name of each stage in lakes, lineage and reports -> its folder, in the order in which they run."""


def test_every_folder_of_a_method_is_in_the_registry_and_no_other_name_is() -> None:
    folders = {each.name for each in METHOD_FOLDERS.iterdir() if (each / "method.py").is_file()}
    assert folders == set(NAMES) == {method.name for method in METHODS.values()}


@pytest.mark.parametrize("name", NAMES)
def test_a_method_is_whole(name: str) -> None:
    home = METHOD_FOLDERS / name
    assert [file for file in WHOLE if not (home / file).is_file()] == []
    assert (REPOSITORY / "docs" / "methods" / f"{name}.md").is_file()


@pytest.mark.parametrize("name", NAMES)
def test_a_method_declares_its_bench_its_twin_and_its_experiments(name: str) -> None:
    bench = METHODS[name].module("bench.bench")
    assert isinstance(bench.BENCH, Bench)
    assert isinstance(bench.TWIN, Expected)
    experiments = METHODS[name].module("reproduction.experiments").Experiments
    assert issubclass(experiments, Paper)
    assert bench.BENCH.name == experiments.name == name


@pytest.mark.parametrize("name", NAMES)
def test_beside_that_a_method_has_only_stages(name: str) -> None:
    others = {each for each in _entries(METHOD_FOLDERS / name) if each.name not in BESIDE | ROOMS}
    assert [each.name for each in sorted(others) if not (each / "stage.py").is_file()] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(REPOSITORY)))
def test_rooms_are_small(folder: Path) -> None:
    entries = [each.name for each in _entries(folder) if each.name not in ("__init__.py", "__main__.py")]
    assert len(entries) <= MOST_ENTRIES.get(str(folder.relative_to(REPOSITORY)), 12), sorted(entries)


def test_no_file_is_long() -> None:
    lines = {str(file.relative_to(REPOSITORY)): len(file.read_text().splitlines()) for file in CODE}
    assert {file: count for file, count in lines.items() if count > MOST_LINES} == {}


def test_no_name_begins_with_an_underscore() -> None:
    names = [each for each in (*CODE, *FOLDERS) if each.name.startswith("_") and not each.name.startswith("__")]
    assert names == []


def test_every_python_file_is_tracked() -> None:
    """A line of ``.gitignore`` once left out a whole package, and the wheel leaves out what git does."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", *TOPS], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert [str(file.relative_to(REPOSITORY)) for file in CODE if str(file.relative_to(REPOSITORY)) not in listed] == []


def test_stages_keep_their_recorded_names_and_are_where_the_house_says() -> None:
    assert {name: stage.function.__module__ for name, stage in STAGES.items()} == {
        name: f"{folder}.stage" for name, folder in RECORDED.items()
    }
    assert list(STAGES) == list(RECORDED)


def test_every_stage_is_in_a_file_of_that_name() -> None:
    declaring = [file for file in CODE if "\n@stage(" in file.read_text()]
    assert [str(file.relative_to(REPOSITORY)) for file in declaring if file.name != "stage.py"] == []
    assert len(declaring) == len(RECORDED)


def _entries(folder: Path) -> Iterator[Path]:
    """What git would keep of a folder: files, and folders that hold some."""
    for each in folder.iterdir():
        inside = [each] if each.is_file() else (file for file in each.rglob("*") if file.is_file())
        if any("__pycache__" not in file.parts for file in inside):
            yield each
