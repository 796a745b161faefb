"""Keys, signatures and the log by the commands: what a forger does to a run is found, and what cannot be is said."""

import json
import os
import shutil
from pathlib import Path

import pytest
from conftest import evenhand
from loans_by_year import LACKING, WITHIN, write_years, yearly_spec

from flows.partitions.year_audit import audit_year
from flows.runs.index import digest, last_run
from flows.runs.signatures import certify
from schemas.errors import SpecError
from tasks.lake import log
from tasks.lake.store import Lake

INTEGRITY = 6


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with two years that were signed as they were audited, and the key."""
    path = tmp_path_factory.mktemp("signed")
    log.new_key(path / "key")
    log.new_key(path / "other")
    write_years(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(log.KEY, str(path / "key"))
        for year in (WITHIN, LACKING):
            audit_year(yearly_spec(path), year, Lake(path / "lake"))
    return path


@pytest.fixture
def lake(place: Path, tmp_path: Path) -> Lake:
    """A copy that may be harmed."""
    shutil.copytree(place / "lake", tmp_path / "lake")
    return Lake(tmp_path / "lake")


@pytest.fixture
def run(lake: Lake) -> str:
    """Id of the run that is harmed."""
    found = last_run(lake, "yearly", WITHIN)
    assert found is not None
    return found.run


def verified(lake: Lake, run: str, *words: str) -> tuple[int, str]:
    """Exit code and words of `evenhand verify`."""
    done = evenhand("verify", run, "--lake", lake.location, *words)
    return done.returncode, (done.stdout + done.stderr).replace("\n", " ")


def forged(lake: Lake, run: str) -> None:
    """Alter the manifest and seal it anew by the product's own function."""
    path = lake.root / "runs" / run / "manifest.json"
    content = {name: value for name, value in json.loads(path.read_text()).items() if name != "sha256"}
    content["state"] = "outside"
    path.write_text(json.dumps({**content, "sha256": digest(content)}, indent=1))


@pytest.mark.slow
def test_what_is_said_of_a_sound_run_depends_on_the_keys_that_are_trusted(place: Path, lake: Lake, run: str) -> None:
    own = log.fingerprint(log.public_key(place / "key.pub"))
    code, said = verified(lake, run)
    assert (code, f"signed by {own} (key not in your trusted keys)" in said) == (0, True)
    code, said = verified(lake, run, "--key", str(place / "key.pub"), "--require-signature")
    assert code == 0
    assert f"signed by {own} on 2" in said
    assert "entry 1 of the log" in said
    code, said = verified(lake, run, "--key", str(place / "other.pub"))
    assert (code, "which is none of the trusted keys" in said) == (INTEGRITY, True)


def test_a_run_that_was_sealed_anew_is_found_by_its_signature_and_by_the_log(lake: Lake, run: str) -> None:
    forged(lake, run)
    code, said = verified(lake, run)
    assert code == INTEGRITY
    assert f"the signature of {run} is not one of its manifest" in said
    assert f"manifest of {run} is not the one that was logged on" in said


def test_a_signature_that_was_taken_away_is_found(place: Path, lake: Lake, run: str) -> None:
    (lake.root / "runs" / run / "manifest.sig.json").unlink()
    code, said = verified(lake, run)
    assert (code, "manifest.sig.json is missing or is not the signature that was logged" in said) == (INTEGRITY, True)
    for words in (["--require-signature"], ["--key", str(place / "key.pub")]):
        code, said = verified(lake, run, *words)
        assert (code, f"the manifest of {run} is not signed" in said) == (INTEGRITY, True)


def test_a_run_that_was_forged_signed_and_logged_with_another_key_is_not_by_the_trusted_one(
    place: Path, lake: Lake, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged(lake, run)
    monkeypatch.setenv(log.KEY, str(place / "other"))
    certify(lake, run)
    assert verified(lake, run)[0] == 0  # without trusted keys nobody can tell whose key it should be
    monkeypatch.setenv(log.TRUSTED, str(place / "key.pub"))
    code, said = verified(lake, run)
    assert (code, "none of the trusted keys" in said) == (INTEGRITY, True)


def test_exchanged_signatures_of_two_runs_are_found(lake: Lake, run: str) -> None:
    other = last_run(lake, "yearly", LACKING)
    assert other is not None
    own, others = (lake.root / "runs" / each / "manifest.sig.json" for each in (run, other.run))
    own_bytes, other_bytes = own.read_bytes(), others.read_bytes()
    own.write_bytes(other_bytes)
    others.write_bytes(own_bytes)
    for each in (run, other.run):
        code, said = verified(lake, each)
        assert (code, f"the signature of {each} is not one of its manifest" in said) == (INTEGRITY, True)


def test_the_log_tells_of_an_entry_that_is_gone(lake: Lake, run: str) -> None:
    head = evenhand("log", "head", "--lake", lake.location).stdout.strip()
    assert evenhand("log", "verify", "--lake", lake.location, "--head", head).returncode == 0
    assert evenhand("log", "--lake", lake.location, "--run", run).stdout.count(run) == 1
    other = last_run(lake, "yearly", LACKING)
    assert other is not None
    last = lake.root / "log" / "000002.json"
    kept = last.read_bytes()
    last.unlink()  # the run that it was about has none then
    done = evenhand("log", "verify", "--lake", lake.location)
    assert (done.returncode, "has no entry in the log" in done.stderr) == (INTEGRITY, True)
    done = evenhand("log", "verify", "--lake", lake.location, "--head", head)
    assert (done.returncode, "000002.json is missing" in done.stderr) == (INTEGRITY, True)
    assert f"{other.run} has no entry in the log" in verified(lake, other.run)[1]
    last.write_bytes(kept)
    (lake.root / "log" / "000001.json").unlink()
    done = evenhand("log", "verify", "--lake", lake.location)
    assert (done.returncode, "000001.json is missing: the log was cut in its middle" in done.stderr) == (
        INTEGRITY,
        True,
    )


def test_a_run_is_prepared_and_approved_by_two_people(place: Path, lake: Lake, run: str) -> None:
    def signed(name: str, role: str, *words: str) -> tuple[int, str]:
        done = evenhand("signoff", run, "--lake", lake.location, "--as", name, "--role", role, *words)
        return done.returncode, done.stdout + done.stderr

    assert "an approval needs" in signed("Ann", "approved")[1]
    code, said = signed("Ann", "prepared", "--key", str(place / "key"))
    assert (code, "signed with the key" in said, "kept elsewhere: 3:" in said) == (0, True, True)
    assert signed(" ann ", "approved")[0] == 2
    assert "rejected needs a reason" in signed("Bob", "rejected")[1]
    assert signed("Bob", "rejected", "--note", "wrong year")[0] == 0
    assert "has to be prepared again" in signed("Bob", "approved")[1]
    assert signed("Ann", "prepared")[0] == 0
    code, said = signed("Bob", "approved")
    assert (code, "name as given, not verified" in said) == (0, True)
    assert "did you mean" in signed("Bob", "aproved")[1]
    assert evenhand("log", "verify", "--lake", lake.location).returncode == 0
    page = lake.root / "reports" / run / "report.html"
    page.write_bytes(page.read_bytes() + b" ")
    assert signed("Bob", "approved")[0] == INTEGRITY


def test_what_a_retired_key_signed_before_stays_valid_and_nothing_after(
    place: Path, lake: Lake, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("keys", "retire", str(place / "key"), "--by", str(place / "other.pub"), "--lake", lake.location)
    assert evenhand(*words).returncode == 0
    assert "is retired already" in evenhand(*words).stderr
    assert verified(lake, run, "--key", str(place / "key.pub"))[0] == 0
    monkeypatch.setenv(log.KEY, str(place / "key"))
    with pytest.raises(SpecError, match=r"was retired \(entry 3 of the log\): nothing that it signs now counts"):
        certify(lake, run)
    logged = log.newest(log.entries(lake, run), ("run published",))
    assert logged is not None
    content = {"run": run, "manifest_sha256": logged.manifest_sha256, "files": logged.files}
    log.append(lake, "run published", log.signer(), **content)  # past the rules
    code, said = verified(lake, run, "--key", str(place / "key.pub"))
    assert (code, "a key that was retired before" in said) == (INTEGRITY, True)
    done = evenhand("log", "verify", "--lake", lake.location)
    assert (done.returncode, "a key that was retired before" in done.stderr) == (INTEGRITY, True)


def test_an_audit_publishes_a_run_again_that_no_trusted_key_signed(
    place: Path, lake: Lake, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(log.TRUSTED, str(place / "other.pub"))
    with pytest.raises(SpecError, match="EVENHAND_TRUSTED_KEYS is set and no key signs"):
        audit_year(yearly_spec(place), WITHIN, lake)
    assert verified(lake, run)[0] == INTEGRITY
    monkeypatch.setenv(log.KEY, str(place / "other"))
    attempts = [audit_year(yearly_spec(place), WITHIN, lake) for _ in range(2)]
    assert [(attempt.run, attempt.computed) for attempt in attempts] == [(run, 0)] * 2
    assert len([entry for entry in log.entries(lake, run) if entry.event == "run published"]) == 2, "again, and once"
    assert verified(lake, run)[0] == 0


def test_a_key_that_is_set_up_and_is_none_stops_the_run_that_it_should_sign(
    lake: Lake, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(log.KEY, os.fspath(tmp_path / "nothing"))
    with pytest.raises(SpecError, match="nothing cannot be read"):
        certify(lake, run)
