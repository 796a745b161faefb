"""Thirty misuses: each is answered with what was given, what was expected and what to do, and with its exit code.

No answer is longer than 240 letters, none is a traceback, and none is on standard output.
"""

from pathlib import Path

import pytest
from conftest import REPOSITORY, SPEC, evenhand, loans
from small_lake import small_lake

LONGEST = 240
HMDA = str(REPOSITORY / "data" / "audits" / "hmda.yaml")
GERMAN = str(REPOSITORY / "data" / "audits" / "german-credit.yaml")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with sound and unsound files, and a lake of two runs."""
    place = tmp_path_factory.mktemp("desk")
    table = loans(200)
    table.to_csv(place / "loans.csv", index=False)
    (place / "loans.yaml").write_text(SPEC)
    (place / "binary").write_bytes(bytes(range(256)) * 40)
    (place / "header.csv").write_text(",".join(table.columns) + "\n")
    (place / "empty.csv").write_text("")
    (place / "empty.yaml").write_text("")
    table.head(1).to_csv(place / "one.csv", index=False)
    (place / "folder").mkdir()
    small_lake(place / "two")
    twins = small_lake(place / "twins")
    for run in ("loans-2024-0123456789", "loans-2024-0198765432"):
        twins.write_file(f"runs/{run}/manifest.json", b"{}")
    return place


AUDIT = ("audit", "loans.yaml", "--lake", "lake")
TWO = ("--lake", "two")
NONE = ("--lake", "no-lake")


def path(name: str) -> tuple[str, ...]:
    return (*AUDIT, "--set", f"source.path={name}")


def set_to(pair: str) -> tuple[str, ...]:
    return (*AUDIT, "--set", pair)


MISUSES: dict[str, tuple[tuple[str, ...], int, tuple[str, ...]]] = {
    # what is given as a spec
    "no spec": (("audit", "nowhere.yaml"), 2, ("'nowhere.yaml'", "evenhand init FILE.csv")),
    "a table as spec": (("audit", "loans.csv"), 2, ("YAML mapping", "`evenhand init loans.csv` drafts one")),
    "a binary file as spec": (("audit", "binary"), 2, ("binary is no audit spec", "name a YAML file")),
    "a directory as spec": (("audit", "folder"), 2, ("folder is a directory", "such as folder/loans.yaml")),
    "an empty spec": (("audit", "empty.yaml"), 2, ("empty.yaml: this is no audit spec", "evenhand init")),
    # what is given as partitions
    "an unknown column of partitions": (set_to("by={column: purpse}"), 2, ("by.column", "did you mean 'purpose'?")),
    "a protected attribute's": (set_to("by={column: race}"), 2, ("is the protected attribute race", "lender_id")),
    "partitions of a few": (set_to("by={column: purpose, minimum: 99}"), 2, ("by.minimum", "100")),
    "a partition without by": ((*AUDIT, "--by-value", "buy"), 2, ("the spec has no `by`", "by: {column: lender_id}")),
    "no such partition": (
        (*set_to("by={column: purpose}"), "--by-value", "bui"),
        2,
        ("--by-value bui", "did you mean 'buy'?"),
    ),
    # what is given as a table
    "no file": (path("nowhere.csv"), 5, ("no file at source.path 'nowhere.csv'", "--set source.path=FILE")),
    "a binary file": (path("binary"), 4, ("binary holds NUL bytes", "save it as UTF-8")),
    "a directory": (path("folder"), 2, ("'folder' is not a file", "give the path of a regular file")),
    "an empty file": (path("empty.csv"), 4, ("empty.csv is empty", "a header and at least one row are needed")),
    "a header only": (path("header.csv"), 4, ("has no rows", "give a table with rows")),
    "one row": (path("one.csv"), 4, ("the one usable decision is", "add rows of both kinds")),
    "a spec of another table": (
        ("audit", GERMAN, "--lake", "lake", "--set", "source.path=loans.csv"),
        4,
        ("loans.csv has 1 columns", "is source.delimiter right?"),
    ),
    # words on the command line
    "a year that is no number": ((*AUDIT, "--year", "abc"), 2, ("--year abc: expected a year such as 2022",)),
    "a year of another age": ((*AUDIT, "--year", "99"), 2, ("expected a year from 1900", "got 99")),
    "no number in the spec": (set_to("year=abc"), 2, ("year: expected a year such as 2022", "got 'abc'")),
    "no pair": (set_to("novalue"), 2, ("--set novalue: expected KEY=VALUE", "--set source.path=FILE")),
    "a key misspelt": (set_to("sorce.path=x"), 2, ("sorce: unknown key; did you mean 'source'?",)),
    "a setting misspelt": (set_to("methods.fgce.kk=3"), 2, ("methods.fgce.kk: unknown key; did you mean 'k'?",)),
    "a column misspelt": (set_to("row_id=idd"), 2, ("the source has no column 'idd'; did you mean 'id'?",)),
    "a value misspelt": (set_to("decision.favourable=['Yes']"), 2, ("holds any of ['Yes']; did you mean 'yes'?",)),
    "a measure misspelt": (
        set_to("thresholds.0.measure=aproval_rate"),
        2,
        ("no method makes a measure 'aproval_rate'; did you mean 'approval_rate'?",),
    ),
    "a method misspelt": ((*AUDIT, "--method", "fgcee"), 2, ("--method fgcee", "did you mean 'fgce'?")),
    "a profile misspelt": ((*AUDIT, "--profile", "papr"), 2, ("got 'papr'; did you mean 'paper'?",)),
    "a command misspelt": (("audti",), 2, ("audti", "audit")),
    # lakes, runs and years
    "a file as lake": (("audit", "loans.yaml", "--lake", "loans.csv"), 5, ("cannot be written", "with --lake")),
    "no lake": (("measures", *NONE), 2, ("no lake at 'no-lake'", "--lake")),
    "no lake to list": (("status", *NONE), 2, ("no lake at 'no-lake'", "--lake")),
    "a run that is not there": (("verify", "frist", *TWO), 2, ("no run 'frist'; did you mean 'first'?",)),
    "a prefix that fits two runs": (
        ("verify", "loans-2024-01", "--lake", "twins"),
        2,
        ("loans-2024-01: expected the beginning of one run, and 2 begin so: loans-2024-0123456789", "more letters"),
    ),
    "a year without a run": (("show", "loans@1999", *TWO), 2, ("'loans' in 1999",)),
    "a run of another lake": (("measures", "--run", "1990", *TWO), 2, ("no run '1990'", "'first', 'second'")),
    "no such table": (("sql", "SELECT * FROM aplicants", *TWO), 2, ("aplicants does not exist", "applicants")),
    "years that are none": (
        ("plan", "loans.yaml", "--years", "20x0", "--lake", "lake"),
        2,
        ("--years 20x0: '20x0' is no year", "such as 2010-2024"),
    ),
    "years backwards": (
        ("backfill", "loans.yaml", "--years", "2024-2020", "--lake", "lake"),
        2,
        ("'2024-2020' is no year and no range such as 2010-2024",),
    ),
    "a path beside a vintage": (
        ("plan", HMDA, "--years", "2022", "--set", "source.path=folder", "--lake", "lake"),
        2,
        ("path and vintage both say what to read; drop one", "--set source.vintage=null"),
    ),
    "a table that is not there": (("init", "nowhere.csv"), 2, ("no file at 'nowhere.csv'", "give its path")),
    "a binary file to draft from": (("init", "binary"), 4, ("NUL bytes", "save it as UTF-8")),
    "an unknown benchmark": (("bench", "nobench"), 2, ("no benchmark 'nobench'", "fgce")),
}


def test_thirty_are_tried() -> None:
    assert len(MISUSES) >= 30


@pytest.mark.parametrize("name", MISUSES)
def test_a_misuse_is_answered_with_what_was_given_what_was_expected_and_what_to_do(
    name: str, desk: Path, server: str
) -> None:
    words, code, said = MISUSES[name]
    done = evenhand(*words, server=server, cwd=desk)
    told = [line for line in done.stderr.splitlines() if " begins" not in line]
    answer = " ".join(told).replace(str(desk), "").replace(str(REPOSITORY), "")
    assert done.returncode == code, answer
    assert all(each in answer for each in said), answer
    assert "Traceback" not in answer
    assert len(answer) <= LONGEST, f"{len(answer)} letters"
    assert done.stdout == ""
