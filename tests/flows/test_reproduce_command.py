"""``evenhand reproduce`` as a user runs it, on German credit: the smallest of the paper's data sets."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import SHARED, evenhand

pytestmark = pytest.mark.skipif(
    not (SHARED / "golden" / "fgce").is_dir(), reason="the shared folder with data and reference outputs is not here"
)

GOLDEN = Path("golden") / "fgce" / "old_GermanCredit"
GERMAN = Path("data") / "german_credit" / "german.data.gz"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The files of German credit in a directory of their own, to be altered."""
    for file in (GERMAN, *(GOLDEN / path.name for path in (SHARED / GOLDEN).glob("*.json"))):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SHARED / file, tmp_path / file)
    return tmp_path


def test_german_credit_is_reproduced() -> None:
    done = evenhand("reproduce", "fgce", "--data", str(SHARED), "--only", "german")
    assert done.returncode == 0, done.stderr
    assert "0 differs, 12 paper prints otherwise, 6 information" in done.stdout
    assert "120 of 120 cells agree" in done.stdout
    assert "figures compared" in done.stderr


def test_an_altered_reference_is_named(copied: Path) -> None:
    file = copied / GOLDEN / "coverage_kd.json"
    said = json.loads(file.read_text())
    said["table"]["2.1|2"]["1.0"]["coverage"] += 2
    file.write_text(json.dumps(said))
    done = evenhand("reproduce", "fgce", "--data", str(copied), "--only", "german", "--json")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    (line,) = (line for line in found["lines"] if line["verdict"] == "differs")
    named = {key: line[key] for key in ("dataset", "source", "what", "group", "at")}
    expected = {"dataset": "german", "source": "coverage_kd.json", "what": "coverage", "group": "male", "at": [2.1, 2]}
    assert named == expected
    assert line["difference"] == pytest.approx(-0.02)
    assert found["counts"]["differs"] == 1


@pytest.mark.parametrize("missing", [GERMAN, GOLDEN / "kAUC.json"])
def test_a_missing_file_is_named(copied: Path, missing: Path) -> None:
    (copied / missing).unlink()
    done = evenhand("reproduce", "fgce", "--data", str(copied), "--only", "german")
    assert done.returncode == 5
    assert str(copied / missing) in done.stderr
    assert f"with {missing} in it" in done.stderr


@pytest.mark.parametrize(
    ("words", "hint"), [(("fcge",), "did you mean 'fgce'?"), (("fgce", "--only", "germany"), "did you mean 'german'?")]
)
def test_an_unknown_name_offers_the_nearest(words: tuple[str, ...], hint: str) -> None:
    done = evenhand("reproduce", *words, "--data", str(SHARED))
    assert done.returncode == 2
    assert hint in done.stderr
