"""A report made anew: from the tables of the manifest, never into the run's folder, with its digests on a list."""

import hashlib
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from exported_run import material
from sealed_run import RUN, sealed_run

from flows.runs.index import digest, made_later, read_manifest
from flows.runs.released import OPEN, Door
from flows.runs.report_files import note_made, read_anew, report_anew
from flows.runs.signatures import verify_run
from schemas.errors import IntegrityError, SpecError
from tasks.lake.store import Lake
from tasks.reporting import stage
from tasks.reporting.material import Material


@pytest.fixture
def lake(place: Path) -> Lake:
    return sealed_run(place)


@pytest.fixture(autouse=True)
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Material]:
    """What the report was made of."""
    found: list[Material] = []

    def files(given: Material) -> dict[str, bytes]:
        found.append(given)
        return {"report.html": b"first", "pages/approval-rates.html": given.settings.code.encode()}

    monkeypatch.setattr("tasks.reporting.pages.files", files)
    return found


def without(lake: Lake, name: str) -> None:
    """Seal the manifest anew without a table."""
    manifest = read_manifest(lake, RUN)
    for partition in manifest["partitions"]:
        partition["tables"] = [each for each in partition["tables"] if each["table"] != name]
    lake.write_file(f"runs/{RUN}/manifest.json", json.dumps({**manifest, "sha256": digest(manifest)}).encode())


def test_it_is_made_of_the_tables_of_the_manifest(lake: Lake, seen: list[Material]) -> None:
    files = report_anew(lake, RUN)
    [given] = seen
    assert given.measures == material().measures
    assert (given.settings.run, given.settings.title, given.settings.code) == (RUN, "Synthetic loans", "cd" * 32)
    assert list(files) == ["report.html", "pages/approval-rates.html", "measures.parquet"]
    measures = pq.read_table(io.BytesIO(files["measures.parquet"]))
    assert set(measures["run"].to_pylist()) == {RUN}
    assert measures.num_rows == len(given.measures)


def test_a_table_that_is_withheld_whole_comes_without_rows_and_no_other_one(lake: Lake) -> None:
    whole, rest = (
        dict(zip([table.name for table in stage.READ], read_anew(lake, RUN, shown)[0], strict=True))
        for shown in (OPEN, Door(withheld=("published_measures",)))
    )
    assert whole["published_measures"].num_rows > 0
    assert rest == whole | {"published_measures": whole["published_measures"].slice(0, 0)}


def test_nothing_of_the_lake_changes(lake: Lake) -> None:
    before = {path: path.read_bytes() for path in lake.root.rglob("*") if path.is_file()}
    report_anew(lake, RUN)
    assert before == {path: path.read_bytes() for path in lake.root.rglob("*") if path.is_file()}


def test_a_run_that_is_not_there_is_named(lake: Lake) -> None:
    with pytest.raises(SpecError, match="holds no run 'loans-2024-012345678'; did you mean"):
        report_anew(lake, "loans-2024-012345678")


def test_a_run_of_another_version_is_named(lake: Lake) -> None:
    without(lake, stage.READ[0].name)
    with pytest.raises(SpecError, match="another version of evenhand"):
        report_anew(lake, RUN)


def test_an_altered_table_is_named(lake: Lake) -> None:
    table = lake.root / "stages" / "measure" / ("0" * 32) / f"{stage.READ[0].name}.parquet"
    table.write_bytes(table.read_bytes() + b" ")
    with pytest.raises(IntegrityError, match="is not the file that was written"):
        report_anew(Lake(lake.root), RUN)


def test_digests_of_later_files_are_listed_once_and_the_run_still_verifies(lake: Lake) -> None:
    for content in (b"one", b"one", b"two"):
        note_made(lake, RUN, {"report.pdf": content})
    listed = json.loads(lake.storage.read(made_later(RUN)) or b"")
    assert [each["sha256"] for each in listed["files"]] == [
        hashlib.sha256(text).hexdigest() for text in (b"one", b"two")
    ]
    assert verify_run(lake.location, RUN)["altered"] == 0
    (lake.root / "reports" / RUN / "report.pdf").write_bytes(b"one")
    with pytest.raises(IntegrityError, match=r"report\.pdf is not named by the manifest"):
        verify_run(lake.location, RUN)
