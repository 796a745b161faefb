"""`evenhand verify` on a real run: every harm to every file is named, and a copy of the lake is whole by itself."""

import json
import random
import shutil
import subprocess

import pytest
from conftest import evenhand
from loans_by_year import LACKING, WITHIN, write_years, yearly_spec

from flows.launch.audit import run_audit
from flows.partitions.year_audit import audit_year
from flows.partitions.years import spec_of_year
from flows.runs.index import digest, last_run, report_of, runs_of
from flows.runs.record import is_published
from flows.runs.report_files import note_made
from flows.runs.review import SignOff, sign_off
from flows.runs.signatures import certify, check_log, protect, verify_run
from schemas.errors import IntegrityError, SpecError
from tasks.lake import log
from tasks.lake.store import Lake


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with a lake in which two years were audited."""
    path = tmp_path_factory.mktemp("verify")
    write_years(path)
    for year in (WITHIN, LACKING):
        audit_year(yearly_spec(path), year, Lake(path / "lake"))
    return path


@pytest.fixture
def lake(place, tmp_path):
    shutil.copytree(place / "lake", tmp_path / "lake")
    return Lake(tmp_path / "lake")


@pytest.fixture
def run(lake):
    return last_run(lake, "yearly", WITHIN)


def files_of(lake, run):
    """All files in the run's folders, found without its manifest's help."""
    folders = [f"stages/{p.stage}/{p.key}" for p in run.partitions] + [f"runs/{run.run}", f"reports/{run.run}"]
    found = [path for folder in folders for path in (lake.root / folder).rglob("*") if path.is_file()]
    assert {path.name for path in found} >= {"partition.json", "lineage.json", "manifest.json", "report.html"}
    return found


def message(lake, run):
    with pytest.raises(IntegrityError) as error:
        verify_run(lake.location, run.run)
    return str(error.value)


def rewritten(lake, run, **changes):
    """Seal a manifest anew with other content; a value of None takes the key away."""
    path = lake.root / "runs" / run.run / "manifest.json"
    content = {**json.loads(path.read_text()), **changes}
    content = {key: value for key, value in content.items() if value is not None and key != "sha256"}
    path.write_text(json.dumps({**content, "sha256": digest(content)}, indent=1))


@pytest.fixture
def signed(lake, run, tmp_path, monkeypatch):
    """The run with all that is written after it: signature, mark of protection, list of later files, a sign-off."""
    log.new_key(tmp_path / "key")
    monkeypatch.setenv(log.KEY, str(tmp_path / "key"))
    certify(lake, run.run)
    protect(lake, run.run, True)
    note_made(lake, run.run, {"report.pdf": b"pages"})
    sign_off(lake, run.run, SignOff("Ann", "prepared"))
    names = {"manifest.sig.json", "logged.json", "mark.json", "files.json"}
    assert names <= {path.name for path in files_of(lake, run)}
    return run


def test_one_altered_byte_of_any_file_is_found_and_named(lake, signed):
    places = random.Random(7)
    for path in files_of(lake, signed):
        content = path.read_bytes()
        at = places.randrange(len(content))
        path.write_bytes(content[:at] + bytes([content[at] ^ places.randrange(1, 256)]) + content[at + 1 :])
        assert str(path) in message(lake, signed), (path, at)
        path.write_bytes(content)
    assert verify_run(lake.location, signed.run)["altered"] == 0


def test_other_blanks_and_another_time_of_the_signature_are_found(lake, signed):
    """What a seal of the content, or a signature of it, does not show."""
    for name, old, new in (
        ("manifest.json", b"{\n ", b"{\n\t"),
        ("manifest.sig.json", b"{\n ", b"{\n\t"),
        ("manifest.sig.json", b'"time": "20', b'"time": "19'),
    ):
        path = lake.root / "runs" / signed.run / name
        content = path.read_bytes()
        path.write_bytes(content.replace(old, new, 1))
        assert path.read_bytes() != content
        assert str(path) in message(lake, signed)
        path.write_bytes(content)


def test_one_altered_byte_of_any_entry_of_the_log_is_found(lake, signed):
    kept, places = log.head(lake), random.Random(7)
    for path in sorted((lake.root / "log").iterdir()):
        content = path.read_bytes()
        at = places.randrange(len(content))
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(IntegrityError, match=r"the log of .*: \d+ problems"):
            check_log(lake, f"{kept.n}:{kept.sha256}")
        path.write_bytes(content)
    assert check_log(lake, f"{kept.n}:{kept.sha256}").entries == kept.n


def test_a_run_that_nobody_signed_shows_damage_alone(lake, run):
    done = evenhand("verify", run.run, "--lake", lake.location)
    assert (done.returncode, "NOT SIGNED, so that this shows damage" in " ".join(done.stdout.split())) == (0, True)
    done = evenhand("verify", run.run, "--lake", lake.location, "--require-signature")
    assert (done.returncode, f"the manifest of {run.run} is not signed" in done.stderr) == (6, True)


def test_any_file_that_was_removed_or_renamed_is_named(lake, run):
    one_of_each_name = {path.name: path for path in files_of(lake, run)}
    for path in one_of_each_name.values():
        other = path.rename(path.with_name(f"{path.name}.old"))
        told = message(lake, run)
        assert f"{path} is missing" in told
        assert path.name == "manifest.json" or f"{other} is not named by the manifest" in told
        aside = other.rename(lake.root / "tmp" / "aside")
        assert f"{path} is missing" in message(lake, run)
        aside.rename(path)
    assert verify_run(lake.location, run.run)["altered"] == 0


def test_a_file_that_the_manifest_does_not_name_is_found_in_every_folder(lake, run):
    for folder in {path.parent for path in files_of(lake, run)}:
        for name in ("stray.parquet", ".hidden", "deep/er/stray"):
            stray = folder / name
            stray.parent.mkdir(parents=True, exist_ok=True)
            stray.write_bytes(b"")
            assert f"{stray} is not named by the manifest" in message(lake, run)
            stray.unlink()
    assert verify_run(lake.location, run.run)["altered"] == 0


def test_the_command_ends_with_6_and_names_the_file(lake, run):
    record = lake.root / "stages" / run.partitions[0].stage / run.partitions[0].key / "partition.json"
    rows = json.loads(record.read_text())["tables"][0]["rows"]
    record.write_text(record.read_text().replace(f'"rows": {rows}', f'"rows": {rows + 1}', 1))
    done = evenhand("verify", run.run, "--lake", lake.location)
    assert (done.returncode, str(record) in done.stderr.replace("\n", "")) == (6, True)


def test_a_copied_lake_verifies_without_what_lay_beside_it(place, tmp_path):
    subprocess.run(["cp", "-r", place / "lake", tmp_path / "elsewhere"], check=True)
    (place / "lake").rename(place / "away")
    try:
        for year in (WITHIN, LACKING):
            run = last_run(Lake(tmp_path / "elsewhere"), "yearly", year)
            done = evenhand("verify", run.run, "--lake", str(tmp_path / "elsewhere"))
            assert done.returncode == 0, done.stderr
            assert "files are as they were written" in done.stdout
            assert "earlier version" not in done.stdout
    finally:
        (place / "away").rename(place / "lake")


def test_the_mark_of_a_protected_run_is_no_stray_file(lake, run):
    protect(lake, run.run, True)
    assert verify_run(lake.location, run.run)["altered"] == 0
    (lake.root / "runs" / run.run / "protected" / "note.txt").write_text("x")
    assert "note.txt is not named" in message(lake, run)


def test_a_lost_manifest_is_damage_and_an_unknown_run_is_a_mistake(lake, run):
    (lake.root / "runs" / run.run / "manifest.json").unlink()
    assert "manifest.json is missing; restore it from a copy" in message(lake, run)
    shutil.rmtree(lake.root / "runs" / run.run)
    assert "manifest.json is missing; restore it from a copy" in message(lake, run)
    for unknown in ("yearly-2012-0000000000", "..", ".", "", "../lake"):
        with pytest.raises(SpecError, match="holds no run"):
            verify_run(lake.location, unknown)


def test_the_manifest_of_another_run_is_not_taken(lake, run):
    other = last_run(lake, "yearly", LACKING)
    own, others = (lake.root / "runs" / each.run / "manifest.json" for each in (run, other))
    sealed = own.read_bytes(), others.read_bytes()
    own.write_bytes(sealed[1])
    others.write_bytes(sealed[0])
    for each in (run, other):
        assert f"{each.run}/manifest.json is not the manifest that was written" in message(lake, each)


class TestRunsOfEarlierVersions:
    """Their report lies beside the lake, their manifest has no sha256 of partition.json, and there is no log."""

    @pytest.fixture(autouse=True)
    def earlier(self, lake, run):
        rewritten(lake, run, records=None)
        shutil.rmtree(lake.root / "log")
        for noted in (lake.root / "runs").glob("*/logged.json"):
            noted.unlink()
        (lake.root.parent / "reports").mkdir()
        (lake.root / "reports" / run.run).rename(lake.root.parent / "reports" / run.run)

    def test_it_verifies_and_is_published(self, lake, run):
        assert verify_run(lake.location, run.run)["by_content"] == len(run.partitions)
        assert is_published(lake, run.run)
        done = evenhand("verify", run.run, "--lake", lake.location)
        assert done.returncode == 0
        assert f"{len(run.partitions)} of them were compared by content" in " ".join(done.stdout.split())
        storage, folder = report_of(lake, run.run)
        assert storage.where(folder) == str(lake.root.parent / "reports" / run.run)

    def test_it_is_not_audited_again(self, lake, run, place):
        assert (audit_year(yearly_spec(place), WITHIN, lake).computed, is_published(lake, run.run)) == (0, True)
        assert not (lake.root / "reports" / run.run).exists()

    def test_it_is_entered_before_the_first_entry(self, lake, run):
        protect(lake, run.run, True)
        assert [entry.event for entry in log.entries(lake, run.run)] == ["run published", "protected"]
        assert verify_run(lake.location, run.run)["altered"] == 0
        assert is_published(lake, run.run)
        assert check_log(lake).entries == 3

    def test_it_verifies_with_its_report_moved_into_the_lake(self, lake, run):
        (lake.root.parent / "reports" / run.run).rename(lake.root / "reports" / run.run)
        assert verify_run(lake.location, run.run)["altered"] == 0

    def test_harm_to_its_report_or_to_what_a_record_says_is_named(self, lake, run):
        page = lake.root.parent / "reports" / run.run / "report.html"
        page.write_bytes(page.read_bytes() + b" ")
        assert f"{page} is missing or is not the file" in message(lake, run)
        record = next((lake.root / "stages" / "ingest").glob(f"{run.partitions[0].key}/partition.json"))
        content = json.loads(record.read_text())
        content["tables"][0]["rows"] += 1
        record.write_text(json.dumps(content))
        assert f"{record} is missing or is not the file" in message(lake, run)


def test_a_run_of_this_version_needs_its_report_in_the_lake(lake, run):
    (lake.root.parent / "reports").mkdir()
    (lake.root / "reports" / run.run).rename(lake.root.parent / "reports" / run.run)
    assert str(lake.root / "reports" / run.run / "report.html") in message(lake, run)


def test_a_year_of_which_a_stage_was_computed_again_is_published_anew(place, lake, run):
    shutil.rmtree(lake.root / "stages" / "measure" / next(p.key for p in run.partitions if p.stage == "measure"))
    assert "stages/measure" in message(lake, run)
    assert audit_year(yearly_spec(place), WITHIN, lake).computed == 1
    assert verify_run(lake.location, run.run)["altered"] == 0


def by_audit(spec, lake):
    return run_audit(spec_of_year(spec, WITHIN, lake), lake.location).computed


def by_backfill(spec, lake):
    return audit_year(spec, WITHIN, lake).computed


@pytest.fixture(scope="module")
def stricter(place, tmp_path_factory):
    """A copy of the lake with an audit that shares stages, and the spec and the run of that audit."""
    copied = shutil.copytree(place / "lake", tmp_path_factory.mktemp("stricter") / "lake")
    spec = yearly_spec(place, thresholds__0__minimum="0.45")
    return copied, spec, audit_year(spec, WITHIN, Lake(copied)).run


@pytest.mark.parametrize("again", [by_audit, by_backfill])
@pytest.mark.parametrize("kept", ["this version", "an earlier version"])
def test_a_run_whose_shared_stage_was_computed_again_for_another_is_published_anew(
    place, stricter, tmp_path, again, kept
):
    copied, spec, other = stricter
    lake = Lake(shutil.copytree(copied, tmp_path / "lake"))
    run = last_run(Lake(place / "lake"), "yearly", WITHIN)
    assert other != run.run
    if kept == "an earlier version":
        rewritten(lake, next(each for each in runs_of(lake) if each.run == other), records=None)
    shutil.rmtree(lake.root / "stages" / "ingest" / run.partitions[0].key)
    assert audit_year(yearly_spec(place), WITHIN, lake).computed == 1
    with pytest.raises(IntegrityError, match=r"lineage\.json is missing or is not the file"):
        verify_run(lake.location, other)
    lake = Lake(lake.root)  # the one above has found the former files intact and does not read them again
    assert not is_published(lake, other)
    assert again(spec, lake) == 0
    assert verify_run(lake.location, other)["altered"] == 0
    assert verify_run(lake.location, run.run)["altered"] == 0
    sealed = (lake.root / "runs" / other / "manifest.json").read_bytes()
    assert again(spec, lake) == 0
    assert (lake.root / "runs" / other / "manifest.json").read_bytes() == sealed  # once
