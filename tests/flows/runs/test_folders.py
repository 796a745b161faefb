"""A run is compared with its own files, whatever folder a command is started in and wherever the project lies."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import evenhand
from loans_by_year import SPEC, WITHIN, year_of_loans

from flows.runs.given import places, where_it_lies
from flows.runs.index import places_path, read_manifest
from flows.runs.run_names import run_ids
from schemas.audit.spec import AuditSpec
from schemas.errors import IntegrityError
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec
from tasks.plan import plan

pytestmark = pytest.mark.long

FILE = f"loans_{WITHIN}.csv"


def project(folder: Path) -> Path:
    """A folder with a spec in `specs`, its table beside it, and room for a lake."""
    (folder / "specs").mkdir(parents=True)
    year_of_loans(WITHIN).to_csv(folder / "specs" / FILE, index=False)
    (folder / "specs" / "yearly.yaml").write_text(SPEC.replace("PLACE/", ""))
    return folder


def backfilled(folder: Path, spec: str, cwd: Path, server: str) -> str:
    lake = str(folder / "lake")
    done = evenhand("backfill", spec, "--years", str(WITHIN), "--lake", lake, "--json", server=server, cwd=cwd)
    assert done.returncode == 0, (done.stdout, done.stderr)
    [run] = run_ids(Lake(folder / "lake"))
    return run


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory, server: str) -> Path:
    """A project whose year was audited from the folder of its spec."""
    folder = project(tmp_path_factory.mktemp("folders") / "project")
    backfilled(folder, "yearly.yaml", folder / "specs", server)
    return folder


@pytest.fixture
def copy(audited: Path, tmp_path: Path) -> Path:
    """A project of one's own, whose run read its own files."""
    folder = Path(shutil.copytree(audited, tmp_path / "project", copy_function=shutil.copy2))
    [run] = run_ids(Lake(folder / "lake"))
    text = (folder / "lake" / places_path(run)).read_text()
    (folder / "lake" / places_path(run)).write_text(text.replace(str(audited), str(folder)))
    return folder


def year_in(lake: Path, cwd: Path) -> dict[str, Any]:
    done = evenhand("status", "--json", "--lake", str(lake), cwd=cwd)
    assert done.returncode == 0, done.stderr
    [year] = json.loads(done.stdout)["years"]
    return dict(year)


def folders(folder: Path) -> list[Path]:
    return [folder / "specs", folder, folder / "lake", Path("/")]


def test_status_is_the_same_in_every_folder(copy: Path) -> None:
    first, *others = [year_in(copy / "lake", cwd) for cwd in folders(copy)]
    assert first["state"] == "within"
    assert others == [first] * len(others)


def test_other_data_are_stale_in_every_folder(copy: Path) -> None:
    year_of_loans(WITHIN).iloc[:-30].to_csv(copy / "specs" / FILE, index=False)
    first, *others = [year_in(copy / "lake", cwd) for cwd in folders(copy)]
    assert first["state"] == "stale"
    assert first["message"].startswith("the data are now sha256")
    assert others == [first] * len(others)


def test_of_a_missing_file_the_path_that_was_looked_for_is_named(copy: Path) -> None:
    (copy / "specs" / FILE).unlink()
    (copy / FILE).write_text("another file of that name")
    first, *others = [year_in(copy / "lake", cwd) for cwd in folders(copy)]
    assert first["state"] == "stale"
    assert f"no file at source.path '{copy / 'specs' / FILE}';" in first["message"]
    assert others == [first] * len(others)


def test_a_plan_is_the_same_in_every_folder_and_for_every_way_to_write_the_spec(copy: Path) -> None:
    found = []
    for cwd in folders(copy):
        for spec in (str(copy / "specs" / "yearly.yaml"), os.path.relpath(copy / "specs" / "yearly.yaml", cwd)):
            asked = ("plan", spec, "--years", str(WITHIN), "--lake", str(copy / "lake"), "--json")
            done = evenhand(*asked, cwd=cwd)
            assert done.returncode == 0, done.stderr
            found.append(json.loads(done.stdout))
    assert found == [found[0]] * len(found)
    assert {stage["state"] for stage in found[0][0]["stages"]} == {"ok"}


def test_a_run_is_replayed_and_verified_from_another_folder(copy: Path) -> None:
    [run] = run_ids(Lake(copy / "lake"))
    for command in ("replay", "verify"):
        done = evenhand(command, run, "--lake", str(copy / "lake"), cwd=Path("/"))
        assert done.returncode == 0, (command, done.stdout, done.stderr)


def test_a_project_that_moved_is_named_until_it_is_audited_where_it_lies(copy: Path, server: str) -> None:
    moved = copy.rename(copy.with_name("moved"))
    [before] = run_ids(Lake(moved / "lake"))
    sealed = read_manifest(Lake(moved / "lake"), before)
    year = year_in(moved / "lake", moved / "specs")
    assert f"no file at source.path '{copy / 'specs' / FILE}'" in year["message"]
    assert backfilled(moved, "specs/yearly.yaml", moved, server) == before, "the same files are the same run"
    assert read_manifest(Lake(moved / "lake"), before) == sealed
    assert [year_in(moved / "lake", cwd)["state"] for cwd in folders(moved)] == ["within"] * 4


def test_where_files_lie_is_in_no_report_and_in_no_manifest(audited: Path) -> None:
    lake = Lake(audited / "lake")
    [run] = run_ids(lake)
    assert places(lake, run) == ((str(audited / "specs" / FILE),), "", ())
    naming = [
        file for file in lake.root.rglob("*") if file.is_file() and str(audited / "specs").encode() in file.read_bytes()
    ]
    assert [str(file.relative_to(lake.root)) for file in naming] == [places_path(run)]


def test_a_damaged_record_of_places_is_named(copy: Path) -> None:
    [run] = run_ids(Lake(copy / "lake"))
    (copy / "lake" / places_path(run)).write_text("{")
    with pytest.raises(IntegrityError, match=r"places/.*json is not as it was written; run that audit again"):
        places(Lake(copy / "lake"), run)
    assert f"{run}.json is not as it was written" in year_in(copy / "lake", copy)["message"]


def test_a_run_of_a_version_that_kept_no_places_is_looked_for_from_here(copy: Path) -> None:
    [run] = run_ids(Lake(copy / "lake"))
    (copy / "lake" / places_path(run)).unlink()
    assert year_in(copy / "lake", copy / "specs")["state"] == "within"
    assert f"(from {copy})" in year_in(copy / "lake", copy)["message"]


def _spec(folder: Path, **overrides: str) -> AuditSpec:
    text = SPEC.replace("PLACE/loans_{year}.csv", str(folder / "specs" / FILE)).replace("year: 2024", f"year: {WITHIN}")
    return read_spec(text, "yearly.yaml", {key.replace("__", "."): value for key, value in overrides.items()}).spec


def test_two_clones_have_the_same_run_and_the_same_keys(tmp_path: Path) -> None:
    one, other = (plan(_spec(project(tmp_path / name))) for name in ("one", "other"))
    assert one.run == other.run
    assert [step.settings.identifying() for step in one.steps] == [step.settings.identifying() for step in other.steps]


def test_other_rows_in_a_file_of_the_same_name_are_another_run(tmp_path: Path) -> None:
    one, other = project(tmp_path / "one"), project(tmp_path / "other")
    year_of_loans(WITHIN).iloc[1:].to_csv(other / "specs" / FILE, index=False)
    assert plan(_spec(one)).run != plan(_spec(other)).run


def test_a_given_model_is_looked_for_where_it_lay(tmp_path: Path) -> None:
    lake, file = Lake(tmp_path / "lake"), {"kind": "file", "file": {"path": "models/credit.onnx"}}
    spec = _spec(project(tmp_path / "one"), model=json.dumps(file))
    lake.write_file(places_path("run"), json.dumps({"source": ["/a/x.csv"], "model": "/b/models/credit.onnx"}).encode())
    found = where_it_lies(lake, "run", spec)
    assert (found.source.paths, found.model.file and found.model.file.path) == (("/a/x.csv",), "/b/models/credit.onnx")
    assert found.model.identifying() == spec.model.identifying()


def test_a_vintage_is_that_of_the_lake_where_it_was_moved(tmp_path: Path) -> None:
    lake, inside = Lake(tmp_path / "lake"), "vintages/2022/snapshot/TX/2023-05-01/0123456789ab/applications"
    (lake.root / inside).mkdir(parents=True)
    spec = _spec(project(tmp_path / "one"))
    source = {"kind": "hmda", "vintage": {}, "vintage_file": f"/before/{inside}"}
    of_vintage = spec.model_copy(update={"source": type(spec.source).model_validate(source)})
    found = where_it_lies(lake, "run", of_vintage)
    assert found.source.paths == (str(lake.root / inside),)
    assert found.source.identifying() == of_vintage.source.identifying()
    assert "0123456789ab" in str(found.source.identifying())
