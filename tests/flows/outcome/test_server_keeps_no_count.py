"""What a Prefect server keeps of an audit, during it and after: no exact count, and no number of a withheld group."""

import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
from conftest import REPOSITORY, environment, loans
from few_loans import FEW
from shared_server import served

from schemas.terms import ExitCode
from tasks.lake.local_directory import sha256_of

SMALL = 10
"""People of a group, all of them denied: fewer than the profile publishes."""
SPEC = FEW.replace("Black: [b]}", "Black: [b], Zulu: [z]}").replace(
    "verdicts: {limits: null}", "disclosure: {profile: official}\nseed: 1"
)
_OF_GROUP = re.compile(rf"Zulu\W+(?!withheld)\D{{0,30}}\b{SMALL}\b")
_NUMBER = re.compile(r"(?<![\w.:,-])\d[\d,]*(?![\w:-]|[.,]\d)")


def write(place: Path) -> pd.DataFrame:
    """A table whose exact counts are in no other number, and its spec."""
    table = loans(813)
    table["note"] = "x"
    table.loc[: SMALL - 1, ["race", "approved"]] = ["z", "no"]
    table.to_csv(place / "few.csv", index=False)
    (place / "few.yaml").write_text(SPEC.replace("path: loans.csv", f"path: {place / 'few.csv'}"))
    return table


def exact_counts(table: pd.DataFrame) -> set[int]:
    """Counts of groups and decisions, and differences of two rows of a waterfall, that nothing rounds."""
    counts = {len(table)}
    for columns in (["race"], ["approved"], ["race", "approved"]):
        counts |= {*table.groupby(columns).size().tolist()}
    known = sum(table["race"] != "")
    return {count for count in (*counts, known) if count > 100 and count % 10}


def texts(database: Path) -> Iterator[tuple[str, str]]:
    """Table and column -> every text that the database of a server holds."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=30)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            cursor = connection.execute(f'SELECT * FROM "{table}"')
            names = [column for column, *_ in cursor.description]
            for row in cursor:
                yield from ((f"{table}.{name}", str(cell)) for name, cell in zip(names, row, strict=True))


def told(database: Path, counts: set[int]) -> set[str]:
    """Texts with an exact count, and those that give the small group a number; parameters hold the spec and no rows."""
    found = set()
    for place, text in texts(database):
        numbers = {int(number.replace(",", "")) for number in _NUMBER.findall(text)}
        if counts & numbers or (_OF_GROUP.search(text) and place != "flow_run.parameters"):
            found.add(f"{place}: {sorted(counts & numbers)} {text[:2000]}")
    return found


@pytest.mark.slow
def test_no_artifact_line_state_or_event_has_an_exact_count(tmp_path: Path) -> None:
    table = write(tmp_path)
    counts, seen = exact_counts(table), set[str]()
    assert len(table) in counts
    assert len(counts) > 5
    words = ["audit", str(tmp_path / "few.yaml"), "--lake", str(tmp_path / "lake"), "--jobs", "1"]
    with served(tmp_path, environment(None)) as url:
        (database,) = tmp_path.glob("prefect-*/prefect.db")
        with (tmp_path / "said").open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "flows.cli", *words], env=environment(url), cwd=REPOSITORY, stderr=file
            )
            while process.poll() is None:
                seen |= told(database, counts)
                time.sleep(0.2)
        every = "\n".join(text for _, text in texts(database))
        seen |= told(database, counts)
    assert process.returncode == ExitCode.INCONCLUSIVE, "the state tells nothing of the group, whom all were denied"
    assert f"read few.csv, sha256 {sha256_of(tmp_path / 'few.csv')[:12]}, 810 rows" in every
    assert "race: Zulu" in every, "the group has its row, without a number"
    assert seen == set()
    assert told_by(tmp_path / "said", counts) == []


def told_by(file: Path, counts: set[int]) -> list[str]:
    """Lines on a terminal with such a number."""
    return [line for line in file.read_text().splitlines() if counts & {int(n) for n in re.findall(r"\d+", line)}]
