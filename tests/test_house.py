"""The shape of the house: what a method's folder holds, where stages are, and numbers that may only fall."""

import ast
import subprocess
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from itertools import chain
from pathlib import Path

import pytest
from conftest import REPOSITORY
from source_trees import TOPS, walked

from research.benchmark import Bench, Expected
from research.figures import Paper
from tasks.pipeline.registry import METHODS, NAMES
from tasks.plan import STAGES

GROUP = "source"
"""Run by the worker that has parsed the code."""
CODE = sorted(file for top in TOPS for file in (REPOSITORY / top).rglob("*.py"))
METHOD_FOLDERS = REPOSITORY / "tasks" / "methods"

WHOLE = ("method.py", "settings.py", "measures.py", "algorithm/detection.py", "report.yaml", "citation.bib")
"""Files of every method."""
RESEARCH = ("bench.py", "timed_work.py", "experiments.py")
"""Files of every method's folder in research."""
FILES_OF_A_METHOD = {"__init__.py", "__pycache__", "problem.py", "tables.py", "mitigations.py", "algorithm", *WHOLE}

DEEPEST, LONGEST = 4, 800
"""Folders below the root; lines of a file."""
MODULES = 577
"""Python files outside tests. May only fall; so may the two shares below."""
IMPORT_SHARE, SINGLE_USE_SHARE = 0.0591, 0.184

RECORDED = {
    "ingest": "tasks.ingest",
    "preprocess": "tasks.preprocessing",
    "score": "tasks.scoring",
    "connect": "tasks.feasibility_graph",
    "generate": "tasks.counterfactuals",
    "abandoned": "tasks.methods.adjusted.abandoned",
    "adjust": "tasks.methods.adjusted.adjust",
    "alternatives": "tasks.methods.adjusted.alternatives",
    "follow": "tasks.methods.adjusted.follow",
    "proxies": "tasks.methods.adjusted.proxies",
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
    folders = {folder.name for folder in METHOD_FOLDERS.iterdir() if (folder / "method.py").is_file()}
    assert folders == set(NAMES) == {method.name for method in METHODS.values()}


@pytest.mark.parametrize("name", NAMES)
def test_a_method_is_whole(name: str) -> None:
    home = METHOD_FOLDERS / name
    assert [file for file in WHOLE if not (home / file).is_file()] == []
    assert [file for file in RESEARCH if not (REPOSITORY / "research" / name / file).is_file()] == []
    assert (REPOSITORY / "docs" / "methods" / f"{name}.md").is_file()


@pytest.mark.parametrize("name", NAMES)
def test_a_method_declares_its_bench_its_twin_and_its_experiments(name: str) -> None:
    bench = import_module(f"research.{name}.bench")
    assert isinstance(bench.BENCH, Bench)
    assert isinstance(bench.TWIN, Expected)
    experiments = import_module(f"research.{name}.experiments").Experiments
    assert issubclass(experiments, Paper)
    assert bench.BENCH.name == experiments.name == name


@pytest.mark.parametrize("name", NAMES)
def test_every_other_folder_of_a_method_is_a_stage(name: str) -> None:
    entries = {entry for entry in _entries(METHOD_FOLDERS / name) if entry.name not in FILES_OF_A_METHOD}
    assert [entry.name for entry in sorted(entries) if not (entry / "stage.py").is_file()] == []


def test_no_folder_is_deep_and_no_file_is_long() -> None:
    files = {str(file.relative_to(REPOSITORY)): file for file in CODE}
    assert [name for name in files if len(Path(name).parts) - 1 > DEEPEST] == []
    assert [name for name, file in files.items() if len(file.read_text().splitlines()) > LONGEST] == []


def test_modules_do_not_become_more() -> None:
    assert len(CODE) <= MODULES


def test_the_share_of_import_lines_does_not_grow() -> None:
    lines = sum(len(file.read_text().splitlines()) for file in CODE)
    importing = sum(len(_import_lines(nodes)) for nodes in walked().values())
    assert importing / lines <= IMPORT_SHARE


def test_the_share_of_private_functions_with_one_caller_does_not_grow() -> None:
    functions = single = 0
    for nodes in walked().values():
        names = Counter(n.id for n in nodes if isinstance(n, ast.Name))
        names.update(n.attr for n in nodes if isinstance(n, ast.Attribute))
        declared = [n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        functions += len(declared)
        single += sum(name[0] == "_" and name[:2] != "__" and names[name] == 1 for name in declared)
    assert single / functions <= SINGLE_USE_SHARE


def test_tests_mirror_the_house() -> None:
    folders = {
        file.parent.relative_to(REPOSITORY / "tests")
        for top in TOPS
        for file in (REPOSITORY / "tests" / top).rglob("test_*.py")
    }
    assert [str(folder) for folder in sorted(folders) if not (REPOSITORY / folder / "__init__.py").is_file()] == []


def test_no_name_begins_with_an_underscore() -> None:
    folders = {file.parent for file in CODE}
    names = [path for path in (*CODE, *folders) if path.name.startswith("_") and not path.name.startswith("__")]
    assert names == []


def test_every_python_file_is_tracked() -> None:
    """A line of ``.gitignore`` once left out a whole package, and the wheel leaves out what git does."""
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", *TOPS], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert [
        str(file.relative_to(REPOSITORY)) for file in CODE if str(file.relative_to(REPOSITORY)) not in tracked
    ] == []


def test_nothing_imports_research() -> None:
    """import-linter holds it, too, but for names in strings: of the command, our packages and an extra."""
    product = [file for file in CODE if file.relative_to(REPOSITORY).parts[0] != "research"]
    naming = [str(file.relative_to(REPOSITORY)) for file in product if '"research' in file.read_text()]
    assert naming == ["evenhand/__init__.py", "flows/cli/main.py", "schemas/errors.py", "tasks/pipeline/digests.py"]


def test_stages_keep_their_recorded_names_and_are_where_the_house_says() -> None:
    assert {name: stage.function.__module__ for name, stage in STAGES.items()} == {
        name: f"{folder}.stage" for name, folder in RECORDED.items()
    }
    assert list(STAGES) == list(RECORDED)


def test_every_stage_is_in_a_file_of_that_name() -> None:
    declaring = [file for file in CODE if "\n@stage(" in file.read_text()]
    assert [str(file.relative_to(REPOSITORY)) for file in declaring if file.name != "stage.py"] == []
    assert len(declaring) == len(RECORDED)


def _import_lines(nodes: tuple[ast.AST, ...]) -> set[int]:
    imports = (n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom))
    return set(chain.from_iterable(range(n.lineno, (n.end_lineno or n.lineno) + 1) for n in imports))


def _entries(folder: Path) -> Iterator[Path]:
    """What git would keep of a folder: files, and folders that hold some."""
    for entry in folder.iterdir():
        inside = [entry] if entry.is_file() else (file for file in entry.rglob("*") if file.is_file())
        if any("__pycache__" not in file.parts for file in inside):
            yield entry
