"""What holds of the project as a whole: its dictionary, its declarations, its registry, its keys."""

import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path

from conftest import REPOSITORY, spec_of

from flows.operations.dictionary import TABLES, dictionary
from schemas.table import Table
from schemas.tables.verdicts import FACTS, PUBLISHED_CURVES, earlier, published
from tasks.metrics.algorithm.measures import base_name
from tasks.pipeline.digests import code_digest
from tasks.pipeline.method import REPORT
from tasks.pipeline.registry import METHODS, measures_known, tables_shown
from tasks.plan import STAGES, plan


def test_the_dictionary_is_current() -> None:
    assert (REPOSITORY / "docs" / "tables.md").read_text() == dictionary(), "run `make docs`"


def test_every_table_is_in_the_dictionary() -> None:
    files = [*REPOSITORY.glob("schemas/tables/*.py"), *REPOSITORY.glob("tasks/methods/*/tables.py")]
    modules = [import_module(".".join(file.relative_to(REPOSITORY).with_suffix("").parts)) for file in files]
    declared = [each for module in modules for each in vars(module).values() if isinstance(each, Table)]
    declared += [published(each) for each in (*FACTS, *tables_shown())] + list(PUBLISHED_CURVES)
    assert {t.name for t in declared} == {t.name for t in TABLES}


def test_what_a_method_alone_needs_of_a_problem_is_part_of_its_key(place: Path) -> None:
    asked = {f"methods__{name}": "{}" for name in ("raguel", "fgce")}
    modules = {step.name: step.modules for step in plan(spec_of(place, **asked)).steps}
    assert "tasks.methods.raguel.problem" in modules["detect raguel"]
    assert not any(module.endswith(".problem") for module in modules["detect fgce"])


def test_every_stage_reads_only_what_an_earlier_one_writes() -> None:
    of_earlier_runs = {earlier(table).name for stage in STAGES.values() for table in stage.writes}
    written = {"refusals", "refusal_counts", "validations", *of_earlier_runs}
    for stage in STAGES.values():
        assert {t.name for t in stage.reads} <= written, stage.name
        written |= {t.name for t in stage.writes}


def test_personal_tables_are_restricted() -> None:
    with_row_ids = {t.name for t in TABLES if any(c.name == "row_id" for c in t.columns)}
    assert with_row_ids <= {t.name for t in TABLES if t.restricted}


def test_every_method_has_its_modules() -> None:
    for method in METHODS.values():
        assert callable(method.load().detect)
        assert (REPOSITORY / "tasks" / "methods" / method.name / REPORT).is_file()


def test_no_measure_is_named_like_a_comparison() -> None:
    """What is withheld is found by the name of what a comparison compares."""
    assert [name for name in measures_known() if base_name(name) != name] == []


def test_a_key_reaches_through_imports() -> None:
    assert code_digest(["tasks.metrics.stage"]) != code_digest(["tasks.scoring.stage"])
    assert code_digest(["tasks.detection.stage"]) != code_digest(
        ["tasks.detection.stage", "tasks.methods.fgce.algorithm.detection"]
    )


def test_every_file_beside_code_is_in_the_key_of_a_stage() -> None:
    """SQL, sentences and templates decide results as code does; a pattern that finds nothing guards nothing."""
    here = REPOSITORY / "tasks"
    empty = [(s.name, each) for s in STAGES.values() for each in s.resources if not list(here.glob(each))]
    assert empty == []
    beside = {path for path in here.rglob("*") if path.suffix in (".sql", ".yaml", ".j2", ".css")}
    assert beside == {path for stage in STAGES.values() for path in stage.files()}
    assert {path.name for path in STAGES["measure"].files()} == {
        "curves.sql",
        "draws.sql",
        "outcomes.sql",
        "tallies.sql",
    }


def test_the_wheel_holds_our_four_packages_and_what_they_read(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=REPOSITORY, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("evenhand-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"evenhand", "research", "flows", "tasks", "schemas"}
    assert {
        "flows/bundled/boston1990.yaml",
        "tasks/metrics/sql/outcomes.sql",
        "tasks/reporting/templates/page.html.j2",
        "tasks/reporting/definitions.yaml",
        "tasks/methods/cst/report.yaml",
    } <= set(names)
    papers = {f"flows/bundled/paper/{file.name}" for file in (REPOSITORY / "data" / "audits" / "paper").iterdir()}
    named = ("published/fgce.toml", "sources.toml", "hmda-twin.yaml", "hmda.yaml", "german-credit.yaml", "compas.yaml")
    others = {f"flows/bundled/{name}" for name in named} | {"flows/cli/draft/words/en.csv"}
    assert {*papers, *others} <= set(names)
