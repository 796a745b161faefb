"""Lakes at a URI keep what lakes in a directory keep: on file://, on S3, and on a file system of fsspec.

The S3 server is a real one, on the loopback interface (``seaweed``).
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import duckdb
import pyarrow as pa
import pytest
from conftest import REPOSITORY, environment, evenhand, spec_of
from pyarrow import fs
from seaweed import BUCKET, s3_server

from flows.runs.record import publish, summarise
from flows.runs.signatures import verify_run
from schemas.errors import InfrastructureError, IntegrityError, SpecError
from tasks.lake import log
from tasks.lake.storage import storage_at
from tasks.lake.store import Lake, open_lake
from tasks.lake.views import latest_run, open_views
from tasks.pipeline.stage import Scratch
from tasks.plan import plan, walk

TABLE = pa.table({"x": [1, 2, 3]})
FAST = {
    "methods__adjusted": "null",
    "methods__fgce": "null",
    "methods__cst": "null",
    "causal_graph": "{edges: []}",
    "model__kind": "none",
    "bootstrap__draws": "100",
}


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of an S3 server, set for this process and its children."""
    with s3_server(tmp_path_factory.mktemp("s3")) as told, pytest.MonkeyPatch.context() as patch:
        for name, value in {**told, "XDG_STATE_HOME": str(tmp_path_factory.mktemp("state"))}.items():
            patch.setenv(name, value)
        yield told


@pytest.fixture(params=["file", "local", pytest.param("s3", marks=pytest.mark.slow)])
def uri(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a new lake may lie; ``local`` is a directory as fsspec sees it, which is one without atomic writes."""
    if request.param == "s3":
        request.getfixturevalue("s3")
        return f"s3://{BUCKET}/{uuid4().hex}/lake"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return f"{request.param}://{tmp_path}/lake"


def test_published_is_found_again_by_another_process_in_another_directory(uri: str, tmp_path: Path) -> None:
    written = Lake(uri).publish("score", "k", {"t": TABLE}, {"note.txt": b"x"}, {"seconds": 1})
    code = """
import sys
from tasks.lake.store import open_lake
lake = open_lake(sys.argv[1])
found = lake.find("score", "k")
print(found.reused, lake.read(found.table("t"))["x"].to_pylist(), lake.lineage(found), found.table("t").sha256)
"""
    command = [sys.executable, "-c", code, uri]
    done = subprocess.run(command, cwd=tmp_path, env=environment(None), capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"True [1, 2, 3] {{'seconds': 1}} {written.table('t').sha256}"


def test_files_in_folders_keep_their_places(uri: str) -> None:
    files = {"report.html": b"first", "pages/approval-rates.html": b"gap", "evidence/gap.html": b"evidence"}
    Lake(uri).publish("report", "k", {"t": TABLE}, files, {})
    lake = Lake(uri)
    found = lake.find("report", "k")
    assert found is not None
    kept = {found.within(path): lake.check(path, digest).read_bytes() for path, digest in found.files.items()}
    assert kept == {**files, "lineage.json": b"{}"}
    lake.write_file("reports/run/pages/approval-rates.html", b"gap", draft="tmp/run-pages-approval-rates.html")
    assert lake.storage.below("reports/run") == ["reports/run/pages/approval-rates.html"]


def test_the_same_table_has_the_digest_that_it_has_in_a_directory(uri: str, tmp_path: Path) -> None:
    here = Lake(tmp_path / "directory").publish("score", "k", {"t": TABLE}, {}, {})
    there = Lake(uri).publish("score", "k", {"t": TABLE}, {}, {})
    assert here.table("t").sha256 == there.table("t").sha256


@pytest.mark.parametrize("harm", ["altered", "removed"])
def test_a_harmed_file_is_named(uri: str, harm: str) -> None:
    lake = Lake(uri)
    written = lake.publish("score", "k", {"t": TABLE}, {}, {})
    path = written.table("t").path
    if harm == "removed":
        system, root = fs.FileSystem.from_uri(uri.replace("local://", "file://"))
        system.delete_file(f"{root}/{path}")
    else:
        lake.storage.write(path, b"PAR1 and no more")
    for look in (lambda: Lake(uri).find("score", "k"), lambda: Lake(uri).read(written.table("t"))):
        with pytest.raises(IntegrityError, match=r"t\.parquet is missing or is not the file that was written"):
            look()


def test_a_partition_without_its_record_does_not_exist(uri: str) -> None:
    lake = Lake(uri)
    lake.storage.write("stages/score/k/t.parquet", b"half")
    assert lake.find("score", "k") is None
    lake.publish("score", "k", {"t": TABLE}, {}, {})
    assert lake.find("score", "k") is not None


def test_a_writer_killed_before_the_record_leaves_no_partition(uri: str, tmp_path: Path) -> None:
    """All files are there and the record is not: on the directory it is killed before it renames."""
    code = """
import os, signal, sys
from pathlib import Path
import pyarrow as pa
from tasks.lake.object_store import ObjectStore
from tasks.lake.store import Lake
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
lake = Lake(sys.argv[1])
ObjectStore.write = die
Path.rename = die
lake.publish("score", "k", {"t": pa.table({"x": [1]})}, {}, {})
"""
    done = subprocess.run([sys.executable, "-c", code, uri], cwd=REPOSITORY, env=environment(None), check=False)
    assert done.returncode == -9
    lake = Lake(uri)
    assert lake.find("score", "k") is None
    assert lake.read(lake.publish("score", "k", {"t": TABLE}, {}, {}).table("t")).equals(TABLE)


def test_two_machines_that_compute_the_same_key_at_once_leave_whole_partitions(uri: str, tmp_path: Path) -> None:
    """Their records of lineage differ: a reader must never see the record of one with the files of the other."""
    if uri.startswith("file://"):
        pytest.skip("machines that share a directory share its locks")
    ended = threading.Event()

    def read() -> int:
        seen = 0
        while not ended.is_set():
            seen += Lake(uri).find("score", "k") is not None  # raises where a digest does not agree
        return seen

    def write(machine: int) -> None:
        lake = Lake(uri)
        lake.storage.local = tmp_path / f"machine-{machine}"  # type: ignore[misc]
        lake.storage.local.mkdir()
        for attempt in range(8):
            lake.publish("score", "k", {"t": TABLE}, {}, {"machine": machine, "attempt": attempt})

    with ThreadPoolExecutor(3) as pool:
        reader = pool.submit(read)
        try:
            for done in [pool.submit(write, machine) for machine in (1, 2)]:
                done.result()
        finally:
            ended.set()
        assert reader.result() > 0
    found = Lake(uri).find("score", "k")
    assert found is not None
    assert Lake(uri).lineage(found)["attempt"] == 7


def test_a_copy_stays_at_its_path_until_it_is_of_no_use(s3: dict[str, str]) -> None:
    """A vintage's path is part of a run's identity, so that it must not change from one process to the next."""
    uri = f"s3://{BUCKET}/{uuid4().hex}/lake"
    table = Lake(uri).publish("score", "k", {"t": TABLE}, {}, {}).table("t")
    copy = Lake(uri).check(table.path, table.sha256)
    assert Lake(uri).storage.local.stat().st_mode & 0o077 == 0
    copy.write_bytes(b"spoilt")
    assert Lake(uri).check(table.path, table.sha256) == copy
    assert Lake(uri).read(table).equals(TABLE)
    week_ago = time.time() - 8 * 24 * 3600
    os.utime(copy, (week_ago, week_ago))
    code = "import sys; from tasks.lake.store import Lake; Lake(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, uri], cwd=REPOSITORY, env=environment(None), check=True)
    assert not copy.exists()


def test_files_are_replaced_and_listed(uri: str) -> None:
    lake = Lake(uri)
    assert lake.storage.glob("runs/*/manifest.json") == []
    assert lake.storage.read("runs/b/manifest.json") is None
    assert not lake.storage.exists("runs/b")
    for path in ("runs/b/manifest.json", "runs/a/manifest.json", "runs/a/deep/manifest.json", "runs/a/other.json"):
        lake.write_file(path, b"old")
    lake.write_file("runs/a/manifest.json", b"new")
    assert lake.storage.read("runs/a/manifest.json") == b"new"
    assert lake.storage.glob("runs/*/manifest.json") == ["runs/a/manifest.json", "runs/b/manifest.json"]
    assert lake.storage.modified("runs/a/manifest.json") >= lake.storage.modified("runs/b/manifest.json") > 0
    lake.storage.remove("runs/a")
    assert lake.storage.glob("runs/*/*") == ["runs/b/manifest.json"]
    lake.storage.remove("runs/a")


def test_scratch_is_kept_for_the_next_process_and_cleared(uri: str) -> None:
    scratch = Scratch(Lake(uri), "train", "k")
    assert scratch.read("a") is None
    scratch.write("a", b"one")
    scratch.write("a", b"two")
    again = Scratch(Lake(uri), "train", "k")
    assert again.read("a") == b"two"
    again.clear()
    assert again.read("a") is None


def test_a_lake_in_which_no_year_came_to_a_result_is_one(uri: str) -> None:
    Lake(uri).write_file("backfills/yearly/2016/0001.json", b"{}")
    assert open_lake(uri).location == Lake(uri).location


def test_a_lake_that_is_not_there_is_not_made_by_reading(uri: str) -> None:
    with pytest.raises(SpecError, match="no lake at"):
        open_lake(uri)
    assert not storage_at(uri).exists("stages")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("s3://audit:secret@lakes/lake", "give credentials in the environment"),
        ("s3://lakes", "names no folder"),
        ("s3://lakes/", "names no folder"),
        ("teleport://lakes/lake", "no library here opens such a lake"),
        ("file://elsewhere/lake", "file:///absolute/path"),
        (Path("s3://lakes/lake"), "a slash too few"),
    ],
)
def test_what_is_no_place_for_a_lake_is_told(place: str | Path, said: str) -> None:
    with pytest.raises(SpecError, match=said) as error:
        Lake(place)
    assert "secret" not in str(error.value)


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(InfrastructureError, match="s3://lakes/nobody could not be read or written") as error:
        Lake("s3://lakes/nobody")
    assert isinstance(error.value.__cause__, OSError)  # the flow tries again then


def test_a_bucket_that_is_not_ours_is_named(s3: dict[str, str]) -> None:
    with pytest.raises(InfrastructureError, match="s3://theirs/lake could not be read or written"):
        Lake("s3://theirs/lake")


@pytest.mark.slow
def test_an_audit_on_s3_says_what_one_in_a_directory_says(s3: dict[str, str], place: Path, server: str) -> None:
    """By the command, with Prefect, from another directory; then everything that reads results."""
    uri = f"s3://{BUCKET}/{uuid4().hex}/lake"
    spec = spec_of(place, **FAST)
    here = Lake(place / "lake")
    done = walk(plan(spec).steps, lambda step, given: step.stage.run(here, given, step.settings, step.modules))
    publish(here, plan(spec), done)
    words = [f"--set={key.replace('__', '.')}={value}" for key, value in FAST.items()]
    ran = evenhand("audit", str(place / "loans.yaml"), "--lake", uri, *words, server=server, cwd=place)
    assert ran.returncode == summarise(here, spec, plan(spec).run, done).exit_code, ran.stderr
    there = open_lake(uri)
    run = latest_run(there)
    assert run == plan(spec).run
    assert f"report  {uri}/reports/{run}/report.html" in ran.stdout
    query = "SELECT * FROM measures ORDER BY ALL"
    with open_views(there) as remote, open_views(here) as local:
        assert remote.sql(query).to_arrow_table().equals(local.sql(query).to_arrow_table())
        with pytest.raises(duckdb.PermissionException):
            remote.sql(f"SELECT * FROM '{place / 'loans.csv'}'").fetchall()
    assert verify_run(uri, run)["altered"] == 0
    again = evenhand("audit", str(place / "loans.yaml"), "--lake", uri, *words, cwd=place)
    assert "nothing to compute" in again.stderr
    (ingest,) = there.storage.glob("stages/ingest/*/partition.json")
    home = ingest.rpartition("/")[0]
    there.storage.write(f"{home}/{'0' * 12}/t.parquet", b"of another machine")
    assert verify_run(uri, run)["altered"] == 0
    own = there.storage.glob(f"{home}/*/refusals.parquet")[0].rpartition("/")[0]
    for stray in (f"{home}/stray", f"{own}/stray", f"runs/{run}/stray", f"reports/{run}/stray"):
        there.storage.write(stray, b"")
        with pytest.raises(IntegrityError, match=f"{stray} is not named by the manifest"):
            verify_run(uri, run)
        system, root = fs.FileSystem.from_uri(uri)
        system.delete_file(f"{root}/{stray}")
    there.storage.write(f"reports/{run}/report.json", b"{}")
    with pytest.raises(IntegrityError, match=f"reports/{run}/report.json is missing or is not the file"):
        verify_run(uri, run)
    with pytest.raises(SpecError, match="no directory of this machine"):
        _ = there.root


def test_writers_of_the_log_at_the_same_time_get_numbers_of_their_own(uri: str) -> None:
    """By conditional writes on an object store, by turns where files of this machine are seen through fsspec."""
    Lake(uri)
    with ThreadPoolExecutor(6) as writers:
        list(writers.map(lambda who: log.append(Lake(uri), "note", by=str(who)), range(12)))
    assert sorted(int(entry.by) for entry in log.entries(Lake(uri))) == list(range(12))
    assert not list(log.problems(Lake(uri)))
