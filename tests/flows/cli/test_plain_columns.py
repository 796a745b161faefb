"""What `evenhand plan` and `evenhand status` print to a pipe: one line a year with whole words, tabs between cells."""

import os
import pty
import subprocess
import sys
from itertools import takewhile, zip_longest

import in_process
import pytest
from conftest import REPOSITORY, environment
from loans_by_year import ABSENT, BREACH, LACKING, ONE_SIDED, WITHIN, write_years, yearly_spec

from flows.partitions.year_audit import audit_year
from schemas.errors import EvenhandError
from tasks.lake.store import Lake


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory in which one year was audited and is stale now, one has nothing to compare and one has no file."""
    path = tmp_path_factory.mktemp("a-rather-long-name-so-that-messages-with-paths-are-wide")
    write_years(path)
    for year in (WITHIN, ONE_SIDED, ABSENT):
        try:
            audit_year(yearly_spec(path), year, Lake(path / "lake"))
        except EvenhandError:
            assert year == ABSENT
    with (path / f"loans_{WITHIN}.csv").open("a") as file:
        file.write((path / f"loans_{WITHIN}.csv").read_text().splitlines()[-1].replace("L", "M", 1) + "\n")
    return path


def piped(*words, columns):
    """What a command writes to a real pipe."""
    given = _given(columns)
    command = [sys.executable, "-m", "flows.cli", *words]
    done = subprocess.run(command, env=given, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert "Traceback" not in done.stderr
    return done.stdout.splitlines()


def printed(*words, columns):
    """The same in this process, to a file."""
    done = in_process.run(words, _given(columns), REPOSITORY)
    assert "Traceback" not in done.stderr
    return done.stdout.splitlines()


def _given(columns):
    kept = {k: v for k, v in environment(None).items() if k != "COLUMNS"}
    return kept if columns is None else {**kept, "COLUMNS": columns}


def rows_below(lines, title):
    """The rows of a table by the names in its header; tabs are between cells."""
    header, *body = (line.split("\t") for line in lines[lines.index(title) + 1 :])
    rows = list(takewhile(lambda row: row[0].isdigit(), body))
    return [dict(zip_longest(header, row, fillvalue="")) for row in rows]


STATES = {str(WITHIN): "stale", str(ONE_SIDED): "inconclusive", str(ABSENT): "failed"}


@pytest.mark.parametrize("columns", ["20", *(pytest.param(each, marks=pytest.mark.slow) for each in (None, "80"))])
def test_status_has_one_line_a_year_with_one_reason(place, columns):
    lines = piped("status", "--lake", str(place / "lake"), columns=columns)
    rows = rows_below(lines, "years of yearly")
    (glance,) = [line.split("\t") for line in lines if line.startswith("yearly\t")]
    assert glance[1].split()[0] in STATES, "the audit's newest run"
    waiting = [line.partition(":")[0] for line in lines[lines.index("years of yearly") + 2 + len(rows) :]]
    assert waiting == ["disk", "server", "runs nobody signed"]
    assert {row["year"]: row["state"] for row in rows} == STATES
    assert list(rows[0]) == ["year", "state", "date", "run", "seconds", "why"]
    assert [row["year"] for row in rows if row["run"].startswith(f"yearly-{WITHIN}-")] == [str(WITHIN)]
    assert all(len(row["why"]) <= 60 and row["why"] for row in rows)
    assert all(len(row["date"]) == 10 and float(row["seconds"]) >= 0 for row in rows)
    assert not [line for line in lines if line != line.rstrip(" ")]


def test_status_in_long_has_the_stages_and_whole_reasons(place):
    rows = rows_below(printed("status", "--long", "--lake", str(place / "lake"), columns="20"), "years of yearly")
    told = {row["year"]: row for row in rows}
    assert {year: row["state"] for year, row in told.items()} == STATES
    assert told[str(WITHIN)]["ingest"] == "stale input"
    assert str(place / f"loans_{ABSENT}.csv") in told[str(ABSENT)]["why"], "a long message is whole"


def test_status_of_years_has_those_that_nobody_tried(place):
    words = ("status", "--years", f"{WITHIN}-{WITHIN + 1}", "--lake", str(place / "lake"))
    rows = rows_below(printed(*words, columns="80"), "years of yearly")
    assert [(row["year"], row["state"]) for row in rows] == [
        (str(WITHIN), "stale"),
        (str(WITHIN + 1), "never audited"),
    ]


def test_plan_without_years_has_all_that_are_at_hand(place):
    words = ("plan", str(place / "yearly.yaml"), "--lake", str(place / "lake"))
    rows = rows_below(printed(*words, columns="80"), "what a back-fill would run")
    assert [row["year"] for row in rows] == [str(year) for year in (WITHIN, LACKING, ONE_SIDED, BREACH)]


def test_plan_has_one_line_a_year_in_both_tables(place):
    words = ("--years", f"{WITHIN},{ONE_SIDED},{ABSENT}", "--lake", str(place / "lake"))
    lines = printed("plan", str(place / "yearly.yaml"), *words, columns="80")
    first = rows_below(lines, "what a back-fill would run")
    second = rows_below(lines, "stage by stage")
    assert len(lines) == 4 + 2 * 3
    assert (
        [row["year"] for row in first]
        == [row["year"] for row in second]
        == sorted(map(str, (WITHIN, ONE_SIDED, ABSENT)))
    )
    assert {row["year"]: row["would run"] for row in first}[str(ABSENT)] == "cannot run"
    assert {row["year"]: row["measure"] for row in second}[str(WITHIN)] == "stale input"


def words_of(lines):
    """All words but numbers: ages and the free disk go on."""
    return {word for line in lines for word in line.split() if not word.replace(".", "").isdigit()}


def test_a_terminal_shows_tables_that_fit_it(place):
    """The same command on a terminal, which is 80 columns wide if it is a dumb one."""
    end, terminal = pty.openpty()
    kept = _given(None) | {"TERM": "dumb"}
    command = [sys.executable, "-m", "flows.cli", "status", "--lake", str(place / "lake")]
    process = subprocess.Popen(command, env=kept, cwd=REPOSITORY, stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    shown = b""
    try:
        while piece := os.read(end, 65536):
            shown += piece
    except OSError:  # the other end is closed: Linux says so with an error
        pass
    finally:
        os.close(end)
    assert process.wait(timeout=60) == 0
    lines = shown.decode().replace("\r", "").splitlines()
    assert any(line.startswith("year") for line in lines)
    assert words_of(lines) == words_of(printed("status", "--lake", str(place / "lake"), columns=None)), "none is broken"
    assert all(len(line) <= 80 or len(line.split()) == 1 for line in lines), "only a long word is wider"
