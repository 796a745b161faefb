"""`evenhand export`: RO-Crates and data packages that their own libraries read, through the one door of releases."""

import csv
import hashlib
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit
from typing import Any

import frictionless
import pytest
from computed_lake import computed
from conftest import evenhand, loans
from few_loans import FEW
from rocrate.rocrate import ROCrate

from flows.operations import export as exporting
from flows.operations.export import CRATE, NULL, PACKAGE, Terms, export
from flows.runs.index import run_of
from flows.runs.released import CERTIFICATE, Door
from schemas.errors import InfrastructureError, SpecError
from schemas.table import Column, Table
from tasks.lake import log
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec
from tasks.reporting.text import guarded


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A lake with a run under the profile `public`, and exports of it as folders."""
    place = tmp_path_factory.mktemp("export")
    table = loans(400)
    table = table[table["race"] != ""]
    table["note"] = "x"
    table.to_csv(place / "few.csv", index=False)
    keys = {"source.path": str(place / "few.csv"), "disclosure.profile": "public"}
    run = computed(Lake(place / "lake"), read_spec(FEW, "few.yaml", keys).spec)
    for form in ("rocrate", "datapackage"):
        export(str(place / "lake"), run, place / form, form)
    return place, run


def test_a_crate_opens_and_lists_every_file_with_its_digest(audited: tuple[Path, str]) -> None:
    folder = audited[0] / "rocrate"
    crate = ROCrate(folder)
    listed = {entity.id: entity for entity in crate.data_entities if entity.type == "File"}
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert set(listed) == files - {CRATE}
    for name in files - {CRATE, CERTIFICATE}:
        assert listed[name]["sha256"] == hashlib.sha256((folder / name).read_bytes()).hexdigest()
    assert crate.metadata["conformsTo"] == "https://w3id.org/ro/crate/1.3"
    [action] = [entity for entity in crate.contextual_entities if entity.type == "CreateAction"]
    assert action["instrument"]["name"] == "Evenhand"
    assert {part.id for part in action["result"]} >= {"report.html", "measures.parquet"}
    assert all("@id" in entity for entity in json.loads((folder / CRATE).read_text())["@graph"])


def valid_tables(folder: Path) -> list[dict[str, Any]]:
    """The resources of a whole package, which Frictionless finds valid."""
    report = frictionless.validate(str(folder / PACKAGE))
    assert report.valid, report.flatten(["title", "note", "fieldName", "rowNumber"])[:5]
    resources: list[dict[str, Any]] = json.loads((folder / PACKAGE).read_text())["resources"]
    assert [task.type for task in report.tasks] == ["table"] * len(resources)
    return resources


def test_a_package_is_valid_with_all_its_rows(audited: tuple[Path, str]) -> None:
    folder = audited[0] / "datapackage"
    resources = valid_tables(folder)
    assert len(resources) > 20
    assert {resource["path"] for resource in resources} == {
        f"tables/{path.name}" for path in (folder / "tables").iterdir()
    }
    for resource in resources:
        content = (folder / resource["path"]).read_bytes()
        assert (resource["bytes"], resource["hash"]) == (len(content), f"sha256:{hashlib.sha256(content).hexdigest()}")
    [measures] = [r for r in resources if r["path"] == "tables/measures.csv"]
    assert "method" in measures["schema"]["primaryKey"]
    assert all(field["description"] for field in measures["schema"]["fields"])


def test_a_package_of_a_run_without_a_later_column_is_valid(
    audited: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later version declares columns that the tables of a run do not have."""
    later = Column("later", "double", "what a later version adds", nullable=True)
    grown = [replace(table, columns=(table.columns[0], later, *table.columns[1:])) for table in exporting.TABLES]
    monkeypatch.setattr(exporting, "TABLES", grown)
    place, run = audited
    export(str(place / "lake"), run, tmp_path / "package", "datapackage")
    tables = valid_tables(tmp_path / "package")
    assert not any(field["name"] == "later" for table in tables for field in table["schema"]["fields"])


def test_a_changed_cell_is_not_valid(audited: tuple[Path, str], tmp_path: Path) -> None:
    folder = audited[0] / "datapackage"
    package = json.loads((folder / PACKAGE).read_text())
    package["resources"] = [r for r in package["resources"] if r["path"] == "tables/verdicts.csv"]
    del package["resources"][0]["hash"], package["resources"][0]["bytes"]
    (tmp_path / "tables").mkdir()
    rows = list(csv.reader(io.StringIO((folder / "tables/verdicts.csv").read_text())))
    rows[1][rows[0].index("state")] = "guilty"
    with (tmp_path / "tables/verdicts.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    (tmp_path / PACKAGE).write_text(json.dumps(package))
    assert not frictionless.validate(str(tmp_path / PACKAGE)).valid


def test_only_published_tables_leave_and_no_row_of_a_person(audited: tuple[Path, str]) -> None:
    place, _ = audited
    text = b"".join(path.read_bytes() for form in ("rocrate", "datapackage") for path in (place / form).rglob("*.*"))
    assert b"L00" not in text
    assert str(place).encode() not in text
    names = {path.stem for path in (place / "rocrate" / "tables").iterdir()}
    assert {"measures", "verdicts", "waterfall"} <= names
    assert not names & {"applications", "memberships", "publication", "publication_rows", "refusals", "decisions"}


def test_a_restricted_table_never_enters_though_its_name_is_one_of_published(
    audited: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, run = audited
    planted = Table("published_measures", "Planted.", (Column("value", "double", "a value"),), restricted=True)
    tables = tuple(planted if table.name == planted.name else table for table in exporting.TABLES)
    monkeypatch.setattr(exporting, "TABLES", tables)
    files = exporting.packed(Lake(place / "lake"), run, {"README.md": b""}, "rocrate")
    assert "tables/measures.csv" not in files
    assert "tables/verdicts.csv" in files
    files = exporting.packed(
        Lake(place / "lake"), run, {"README.md": b""}, "rocrate", door=Door(withheld=("published_verdicts",))
    )
    assert "tables/verdicts.csv" not in files
    assert b"verdicts.csv" not in files[CRATE]


def test_exporting_twice_gives_the_same_bytes_but_for_the_time_of_the_certificate(audited: tuple[Path, str]) -> None:
    place, run = audited
    export(str(place / "lake"), run, place / "again", "rocrate")
    first, second = (
        {p.relative_to(place / name).as_posix(): p.read_bytes() for p in (place / name).rglob("*") if p.is_file()}
        for name in ("rocrate", "again")
    )
    certificates = [json.loads(files.pop(CERTIFICATE)) for files in (first, second)]
    assert first == second
    assert certificates[0]["files"] == certificates[1]["files"]


def test_an_export_is_a_release(audited: tuple[Path, str]) -> None:
    place, run = audited
    released = [entry.run for entry in log.entries(Lake(place / "lake")) if entry.event == "released"]
    assert released[:2] == [run, run]
    done = evenhand("verify", str(place / "datapackage"))
    assert done.returncode == 0, done.stderr
    (place / "rocrate" / "tables" / "more.csv").write_text("a\n")
    assert evenhand("verify", str(place / "rocrate")).returncode == 6
    (place / "rocrate" / "tables" / "more.csv").unlink()


def test_the_command_writes_an_archive_and_refuses_what_release_refuses(audited: tuple[Path, str]) -> None:
    place, run = audited
    words = ("export", run, "--lake", str(place / "lake"), "--format", "rocrate", "--out", str(place / "few.zip"))
    done = evenhand(
        *words,
        "--licence",
        "https://creativecommons.org/licenses/by/4.0/",
        "--publisher",
        "Bank für Alle <https://example.org/>",
    )
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(place / "few.zip") as archive:
        graph = json.loads(archive.read(CRATE))["@graph"]
    assert graph[1]["license"] == {"@id": "https://creativecommons.org/licenses/by/4.0/"}
    [publisher] = [entity for entity in graph if entity["@type"] == "Organization"]
    assert (publisher["name"], publisher["@id"]) == ("Bank für Alle", "https://example.org/")
    action = next(entity for entity in graph if entity["@type"] == "CreateAction")
    assert graph[1]["author"] == graph[1]["publisher"] == action["agent"] == {"@id": publisher["@id"]}
    assert [path.name for path in place.iterdir() if path.name.endswith(".folder")] == []
    again = evenhand(*words)
    assert (again.returncode, "exists already" in again.stderr) == (2, True)


def test_a_run_that_withholds_nothing_is_not_exported(audited: tuple[Path, str], monkeypatch: Any) -> None:
    place, run = audited
    lake = Lake(place / "lake")
    internal = replace(run_of(lake, run), spec={**run_of(lake, run).spec, "disclosure": {"profile": "internal"}})
    monkeypatch.setattr("flows.operations.release.run_of", lambda *_: internal)
    with pytest.raises(SpecError, match="profile internal"):
        export(str(place / "lake"), run, place / "out", "rocrate")
    assert not (place / "out").exists()


def test_a_cell_without_a_value_is_no_empty_text(audited: tuple[Path, str]) -> None:
    rows = list(csv.DictReader(io.StringIO((audited[0] / "rocrate" / "tables" / "measures.csv").read_text())))
    assert {row["note"] for row in rows} >= {""}
    assert any(row["reference_group"] == NULL for row in rows)


def test_a_disk_that_is_full_leaves_no_cut_archive_and_the_same_export_goes_on(audited: tuple[Path, str]) -> None:
    """The folder of the release fits, and the archive does not; some bytes of it are written."""
    place, run = audited
    target = place / "full" / "few.zip"
    target.parent.mkdir()
    write = zipfile.ZipFile.writestr

    def writing(archive: zipfile.ZipFile, *given: Any) -> None:
        write(archive, *given)
        setrlimit(RLIMIT_FSIZE, (10, hard))  # what a write beyond it says is what a full disk says

    soft, hard = getrlimit(RLIMIT_FSIZE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zipfile.ZipFile, "writestr", writing)
        try:
            with pytest.raises(InfrastructureError, match="cannot be written"):
                export(str(place / "lake"), run, target, "rocrate")
        finally:
            setrlimit(RLIMIT_FSIZE, (soft, hard))
    assert list(target.parent.iterdir()) == []
    export(str(place / "lake"), run, target, "rocrate")
    assert [path.name for path in target.parent.iterdir()] == ["few.zip"]
    with zipfile.ZipFile(target) as archive:
        assert archive.testzip() is None


@pytest.mark.parametrize("licence", ["javascript:alert(1)", "CC-BY", "https://example.org/a b", "file:///etc/passwd"])
def test_a_licence_is_an_address_of_the_web(licence: str) -> None:
    with pytest.raises(SpecError, match="give the URL of a licence"):
        Terms(licence)


def test_no_cell_begins_a_formula() -> None:
    cells = ["=1", "\n=1", "\N{FULLWIDTH EQUALS SIGN}1", "\N{FULLWIDTH COMMERCIAL AT}x", "-1", "\t+1"]
    assert [guarded(cell) for cell in cells] == [f"'{cell}" for cell in cells]
    assert [guarded(cell) for cell in ("white", -1, None)] == ["white", -1, None]
