"""``evenhand runs`` and ``show`` as a user runs them, in a pipe: which runs there are, and the first page of one."""

import json
from pathlib import Path

import pytest
from conftest import evenhand
from lake_of_runs import NEW, OLD, OTHER, lake_of_runs

from flows.runs.signatures import protect
from schemas.questions import QUESTIONS
from tasks.lake.store import Lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = lake_of_runs(tmp_path_factory.mktemp("runs") / "lake")
    protect(made, OTHER, protected=True)
    return made.location


def listed(lake: str, *words: str) -> list[str]:
    done = evenhand("runs", "--lake", lake, *words, "--json")
    assert done.returncode == 0, done.stderr
    return [row["run"] for row in json.loads(done.stdout)]


def test_runs_are_listed_newest_first_with_the_state_of_every_question(lake: str) -> None:
    header, *rows = [line.split("\t") for line in evenhand("runs", "--lake", lake).stdout.splitlines()]
    assert header == ["run", "audit", "year", "finished", "state by question"]
    assert [row[0] for row in rows] == [NEW, OTHER, OLD]
    assert rows[1][1:4] == ["cards", "2024", "2026-01-02 10:00"]
    states = "Outside the limit: " + ", ".join(question.short for question in QUESTIONS.values())
    assert [row[4] for row in rows] == [states, f"{states}; protected", states]


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        (["--audit", "loans"], [NEW, OLD]),
        (["--year", "2024"], [OTHER]),
        (["--state", "within"], [OLD]),
        (["--audit", "loans", "--state", "outside"], [NEW]),
        (["--limit", "2"], [NEW, OTHER]),
    ],
)
def test_runs_are_chosen(lake: str, words: list[str], runs: list[str]) -> None:
    assert listed(lake, *words) == runs


def test_what_is_not_listed_is_counted(lake: str) -> None:
    done = evenhand("runs", "--lake", lake, "--limit", "1")
    assert "2 older runs are not shown: --limit 3" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"), [(["--audit", "loan"], "it has runs of cards, loans"), (["--state", "maybe"], "'within'")]
)
def test_runs_that_are_not_there_are_answered(lake: str, words: list[str], told: str) -> None:
    done = evenhand("runs", "--lake", lake, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in " ".join(done.stderr.split())


def test_a_lake_without_a_run_says_how_to_make_one(tmp_path: Path) -> None:
    Lake(tmp_path / "lake")
    for command in ("runs", "show", "measures"):
        done = evenhand(command, "--lake", str(tmp_path / "lake"))
        assert done.returncode == 2
        assert "holds no run yet; `evenhand audit` makes one" in done.stderr


@pytest.mark.parametrize(("name", "run"), [((), NEW), (("cards",), OTHER), (("loans@2023",), NEW), ((OLD,), OLD)])
def test_the_first_page_of_a_run_is_shown_whatever_it_is_named_by(lake: str, name: tuple[str, ...], run: str) -> None:
    done = evenhand("show", *name, "--lake", lake)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[2].startswith("Black applicants were approved less often")
    assert lines[-2].startswith(f"run     {run}     exit code ")
    assert lines[-1] == f"report  {lake}/reports/{run}/report.html"
    assert json.loads(evenhand("show", *name, "--lake", lake, "--json").stdout)["run"] == run


def test_what_did_not_run_is_named(tmp_path: Path) -> None:
    methods = {"methods": {"cst": {}, "gcfn": None}, "causal_graph": {"edges": []}}
    made = lake_of_runs(tmp_path / "lake", spec=methods)
    done = evenhand("show", "--lake", made.location)
    assert "  Not run: gcfn (not in `methods` of the spec, or without a `causal_graph`)." in done.stdout.splitlines()


def test_a_name_that_fits_two_runs_names_both_for_every_command(lake: str) -> None:
    commands = (
        *(["show", "loans"], ["report", "loans"], ["verify", "loans"], ["replay", "loans"], ["protect", "loans"]),
        *(["measures", "--run", "loans"], ["findings", "--run", "loans"], ["verdicts", "loans"], ["disclose", "loans"]),
        ["adjusted", "loans"],
    )
    for words in commands:
        done = evenhand(*words, "--lake", lake)
        assert done.returncode == 2, words
        assert OLD in done.stderr, words
        assert NEW in done.stderr, words


def test_an_earlier_report_without_a_first_page_is_answered(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake", b'{"state": "within"}')
    done = evenhand("show", "--lake", lake.location)
    assert (done.returncode, done.stdout) == (2, "")
    assert "was made by an earlier version" in done.stderr
    assert [row["theories"] for row in json.loads(evenhand("runs", "--lake", lake.location, "--json").stdout)] == [
        {}
    ] * 3


def test_a_report_that_was_altered_is_not_shown(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    file = Path(lake.location, "reports", NEW, "report.json")
    file.write_bytes(file.read_bytes().replace(b"less often", b"more often"))
    done = evenhand("show", "--lake", lake.location)
    assert (done.returncode, done.stdout) == (6, "")
    assert "is not the one that was written" in done.stderr
