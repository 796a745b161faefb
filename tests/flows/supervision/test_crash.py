"""A user meets sentences, not tracebacks: a fault of ours leaves a file without values; a spec that is none is told."""

import os
import stat
import tempfile
from pathlib import Path

import pytest
from conftest import SPEC

from flows.cli import main as cli
from flows.launch import audit
from schemas.errors import InfrastructureError

SECRET = "applicant 4711 earns 98765"


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The command in this process: its exit code, and what it printed on the error stream."""
    monkeypatch.setattr("sys.argv", ["evenhand", *arguments])
    monkeypatch.setenv("COLUMNS", "400")
    code = cli._code()
    return code, " ".join(capsys.readouterr().err.split())


@pytest.fixture
def spec(tmp_path: Path) -> str:
    (tmp_path / "loans.yaml").write_text(SPEC)
    return str(tmp_path / "loans.yaml")


def faulty(*_: object, **__: object) -> None:
    """Stands for code of ours with a fault: a wrong key, met while an error of ours is on its way."""
    income = SECRET
    try:
        raise InfrastructureError("no disk")
    except InfrastructureError as error:
        raise KeyError(income) from error


@pytest.mark.parametrize("by", ["option", "environment", "nowhere"])
def test_a_fault_of_ours_leaves_a_file_without_values(
    by: str, spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = tmp_path / "lake"
    if by != "nowhere":
        lake.mkdir()
    if by == "environment":
        monkeypatch.setenv("EVENHAND_LAKE", str(lake))
    (tmp_path / "system").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "system"))
    monkeypatch.setattr(audit, "run_audit", faulty)
    options = () if by == "environment" else ("--lake", str(lake))
    code, said = run(monkeypatch, capsys, "audit", spec, *options)
    folder = tmp_path / "system" if by == "nowhere" else lake / "tmp"
    (file,) = folder.glob("crash-*.txt")
    assert code == 5
    assert f"evenhand: this is a fault of ours: KeyError in {Path(__file__).name}, line " in said
    assert f"; traceback in {file};" in said
    assert "Traceback" not in said
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text(encoding="utf-8")
    assert "in faulty" in text
    assert "builtins.KeyError: (message left out)" in text
    assert "InfrastructureError: no disk" in text  # ours: no message of ours quotes a row
    assert SECRET not in text + said


def test_where_no_file_can_be_written_that_is_said(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "tmp").write_text("a file where a folder should be")
    monkeypatch.setattr(audit, "run_audit", faulty)
    code, said = run(monkeypatch, capsys, "audit", spec, "--lake", str(tmp_path / "lake"))
    assert code == 5
    assert "its traceback could not be written anywhere" in said


def directory(place: Path) -> Path:
    return place


def binary(place: Path) -> Path:
    (place / "x.yaml").write_bytes(b"\x7fELF\xff\xfe\x00\x01" * 100)
    return place / "x.yaml"


def empty(place: Path) -> Path:
    (place / "x.yaml").write_bytes(b"")
    return place / "x.yaml"


def large(place: Path) -> Path:
    (place / "x.yaml").write_bytes(b"x: " + b"1" * 2_000_000)
    return place / "x.yaml"


def device(_: Path) -> Path:
    return Path("/dev/zero")


def pipe(place: Path) -> Path:
    os.mkfifo(place / "x.yaml")
    return place / "x.yaml"


def missing(place: Path) -> Path:
    return place / "nowhere.yaml"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (directory, "is a directory; an audit spec is a YAML file"),
        (missing, "no audit spec at"),
        (binary, "is no audit spec, which is a UTF-8 text"),
        (empty, "this is no audit spec, which is a YAML mapping"),
        (large, "longer than 1 MB"),
        (device, "is not a file, but a device"),
        (pipe, "is not a file, but a pipe (FIFO)"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_is_no_spec_ends_with_a_sentence(
    make, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # type: ignore[no-untyped-def]
    code, said = run(monkeypatch, capsys, "audit", str(make(tmp_path)), "--lake", str(tmp_path / "lake"))
    assert code == 2
    assert message in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--year", "abc"), "--year abc: expected a year such as 2022"),
        (("--year", "0"), "year: expected a year from 1900"),
        (("--year", "99999999999999999999"), "year: expected a year from 1900"),
        (("--set", "junk"), "--set junk: expected KEY=VALUE"),
        (("--set", "=1"), "expected KEY=VALUE"),
        (("--set", "seed=["), "--set seed: not a YAML value"),
        (("--set", "."), "expected KEY=VALUE"),
        (("--set", ".=1"), "(--set)"),
        (("--set", "protected.-1.name=x"), "no '-1' there"),
        (("--set", "protected.²=x"), "no '²' there"),
        (("--set", "seed=4294967296", "--set", "model.threshold=2"), "seed: at most 4294967295"),
        (("--profile", "papers"), "expected 'default' or 'paper'"),
    ],
)
def test_options_without_sense_end_with_a_sentence(
    options: tuple[str, ...],
    message: str,
    spec: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, said = run(monkeypatch, capsys, "audit", spec, "--lake", str(tmp_path / "lake"), *options)
    assert code == 2
    assert message in said
    assert "Traceback" not in said


def test_a_back_fill_without_a_place_for_the_year_says_so(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["evenhand", "plan", spec, "--years", "2020", "--lake", str(tmp_path / "lake")])
    code, printed = cli._code(), capsys.readouterr()
    said = " ".join(f"{printed.out} {printed.err}".split())
    assert (code, "Traceback" in said) == (2, False)
    assert "source.path has no {year} in it" in said
