"""``evenhand reproduce`` as a user runs it, on German credit and the loans: the smallest data sets of each paper."""

import json
import shutil
from pathlib import Path
from typing import get_type_hints

import pandas as pd
import pytest
from conftest import SHARED, evenhand

from research.commands import reproduce as command
from research.reproduction import papers_taking
from tasks.pipeline.registry import METHODS

needs_fgce, needs_cst = pytest.mark.data("golden/fgce", "data/german_credit"), pytest.mark.data("golden/cst")

GOLDEN = Path("golden") / "fgce" / "old_GermanCredit"
GERMAN = Path("data") / "german_credit" / "german.data.gz"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The files of German credit in a directory of their own, to be altered."""
    for file in (GERMAN, *(GOLDEN / path.name for path in (SHARED / GOLDEN).glob("*.json"))):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SHARED / file, tmp_path / file)
    return tmp_path


@needs_fgce
def test_german_credit_is_reproduced() -> None:
    done = evenhand("reproduce", "fgce", "--data", str(SHARED), "--only", "german")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert (
        "against the paper's printed figures, 177: differs 0, not reproduced 6, paper prints otherwise 13, agrees 158"
        in said
    )
    assert "against the reference, 657: differs 0, agrees 657" in said
    assert "'The reference has what we have' means that" in said
    assert "120 of 120 cells agree" in done.stdout
    assert "figures compared" in done.stderr


@needs_fgce
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


@needs_fgce
@pytest.mark.parametrize("missing", [GERMAN, GOLDEN / "kAUC.json"])
def test_a_missing_file_is_named(copied: Path, missing: Path) -> None:
    (copied / missing).unlink()
    done = evenhand("reproduce", "fgce", "--data", str(copied), "--only", "german")
    assert done.returncode == 5
    assert str(copied / missing) in done.stderr
    assert f"with {missing} in it" in done.stderr


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("fcge",), "did you mean 'fgce'?"),
        (("fgce", "--only", "germany"), "did you mean 'german'?"),
        (("cst", "--only", "loans"), "no such data set of cst; did you mean 'loan'?"),
        (("cst", "--only", "german"), "no such data set of cst; known: 'loan', 'law'"),
    ],
)
def test_an_unknown_name_offers_the_nearest(words: tuple[str, ...], hint: str) -> None:
    done = evenhand("reproduce", *words, "--data", str(SHARED))
    assert done.returncode == 2
    assert hint in done.stderr


def test_an_option_is_a_field_of_the_experiments_that_its_help_names() -> None:
    hints = get_type_hints(command, include_extras=True)
    helps = {name: hint.__metadata__[0].help for name, hint in hints.items() if name != "return"}
    papers = {name: paper for name, said in helps.items() if (paper := said.partition(":")[0]) in METHODS}
    assert len(papers) >= 5
    assert {name: papers_taking(name) for name in papers} == {name: [paper] for name, paper in papers.items()}
    assert papers_taking("baseline") == ["fgce", "cec", "gcfn", "raguel"]


@needs_cst
def test_loans_are_reproduced() -> None:
    done = evenhand("reproduce", "cst", "--data", str(SHARED), "--only", "loan")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "against the paper's printed figures, 99: differs 0, paper prints otherwise 3, agrees 96" in said
    assert "against the reference, 183: differs 0, agrees 183" in said
    assert "60.9 60.6308 -0.2692 0.996 0.051 paper prints otherwise: 1,038" in said
    assert "13 of 13 cells agree" in said
    assert "law" not in done.stdout


@needs_cst
def test_an_altered_complainant_is_named(tmp_path: Path) -> None:
    place = tmp_path / "golden" / "cst"
    place.mkdir(parents=True)
    for file in (SHARED / "golden" / "cst").glob("loan_*"):
        shutil.copyfile(file, place / file.name)
    changed = pd.read_csv(place / "loan_CSTwo_k50.csv.gz")
    changed.loc[7, "p_t"] += 0.02
    changed.to_csv(place / "loan_CSTwo_k50.csv.gz", index=False)
    done = evenhand("reproduce", "cst", "--data", str(tmp_path), "--only", "loan", "--json")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    (line,) = (line for line in found["lines"] if line["verdict"] == "differs")
    assert (line["source"], line["what"], line["at"]) == ("loan_*_k*.csv.gz", "p_t_furthest_apart", ["cst", 50])
    assert line["difference"] == pytest.approx(0.02)

    (place / "loan_ST_k15_neighbours.jsonl.gz").unlink()
    gone = evenhand("reproduce", "cst", "--data", str(tmp_path), "--only", "loan")
    assert gone.returncode == 5
    assert str(place / "loan_ST_k15_neighbours.jsonl.gz") in gone.stderr
    assert f"with {Path('golden') / 'cst' / 'loan_ST_k15_neighbours.jsonl.gz'} in it" in gone.stderr
