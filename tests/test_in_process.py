"""The command in the process of the tests gives what a process of its own gives: most tests rely on that."""

import json
import logging
import os
import re
import sys
import warnings
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import SPEC, evenhand, evenhand_process

from tasks.lake.store import Lake

SAME = {
    "help": ["--help"],
    "help of a command": ["audit", "--help"],
    "no command": [],
    "an unknown option": ["measures", "--lakes", "x"],
    "a table": ["measures", "--lake", "LAKE", "--run", "first"],
    "JSON": ["measures", "--lake", "LAKE", "--run", "first", "--json"],
    "a query": ["sql", "SELECT * FROM measures ORDER BY ALL", "--lake", "LAKE", "--format", "csv"],
    "a query that writes": ["sql", "DROP VIEW measures", "--lake", "LAKE"],
    "no lake": ["measures", "--lake", "nowhere"],
    "damage": ["verify", "first", "--lake", "LAKE"],
    "a draft": ["init", "loans.csv", "--decision", "approved"],
    "a draft that lacks the decision": ["init", "loans.csv"],
    "a mistake in the spec": ["audit", "loans.yaml", "--lake", "LAKE", "--set", "methods.fgce.kk=3"],
    "no source": ["audit", "loans.yaml", "--lake", "LAKE", "--set", "source.path=nowhere.csv"],
    "status": ["status", "--lake", "LAKE"],
}


USUAL = ("help", "no command", "a table", "damage", "a mistake in the spec")
"""What the usual run compares; a process takes seconds to start."""


@pytest.mark.parametrize(
    "words",
    [pytest.param(words, id=name, marks=() if name in USUAL else pytest.mark.slow) for name, words in SAME.items()],
)
def test_both_print_and_end_alike(words: list[str], place: Path) -> None:
    lake = Lake(place / "lake")
    partition = lake.publish("measure", "0" * 32, {"measures": pa.table({"value": [0.5, 0.25]})}, {}, {})
    manifest = {"partitions": [partition.model_dump(mode="json")]}
    lake.write_file("runs/first/manifest.json", json.dumps(manifest).encode())
    given = [word.replace("LAKE", str(place / "lake")) for word in words]
    ours, theirs = (run(*given, cwd=place) for run in (evenhand, evenhand_process))
    said = [text.replace("python -m flows.cli", "evenhand") for text in (theirs.stdout, theirs.stderr)]
    assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, *said)
    assert ours.stdout + ours.stderr


@pytest.mark.slow
def test_both_audit_alike(place: Path, server: str) -> None:
    """Digests are compared with the run id; what differs is how long it took, and where the two lakes lie."""
    methods = SPEC[SPEC.index("methods:") : SPEC.index("thresholds:")]
    spec = place / "loans.yaml"
    spec.write_text(spec.read_text().replace(methods, "methods: {adjusted: null, fgce: null}\n"))
    for json_or_not in ([], ["--json"]):
        told = []
        for run, lake in ((evenhand, place / "ours"), (evenhand_process, place / "theirs")):
            done = run("audit", str(spec), "--lake", str(lake), *json_or_not, server=server)
            printed = [text.replace(str(lake), "LAKE") for text in (done.stdout, done.stderr)]
            told.append((done.returncode, *(re.sub(r" *\d+(\.\d+)? s\b *", " N s", text) for text in printed)))
        assert told[0] == told[1]
    assert json.loads(told[0][1])["run"].startswith("loans-2024-")
    assert _digests(place / "ours") == _digests(place / "theirs")


def _digests(lake: Path) -> dict[str, str]:
    records = [json.loads(path.read_text()) for path in lake.glob("stages/*/*/partition.json")]
    return {table["path"]: table["sha256"] for record in records for table in record["tables"]}


def test_nothing_stays_as_the_command_had_it(place: Path, server: str) -> None:
    from prefect.settings import PREFECT_API_URL, PREFECT_HOME

    def world() -> tuple[object, ...]:
        loggers = [logging.getLogger(name) for name in ("", "evenhand", "prefect")]
        umask = os.umask(0o022)
        os.umask(umask)
        return (
            dict(os.environ),
            Path.cwd(),
            sys.argv[:],
            (sys.stdout, sys.stderr),
            umask,
            warnings.filters[:],
            [(logger.handlers[:], logger.level, logger.propagate) for logger in loggers],
            (PREFECT_API_URL.value(), PREFECT_HOME.value()),
        )

    before = world()
    words = ["--set", "methods.cst=null", "--set", "methods.fgce=null"]
    done = evenhand("audit", "loans.yaml", "--lake", "lake", *words, server=server, cwd=place)
    assert done.returncode in (0, 1, 3), done.stderr
    assert (place / "lake" / "runs").stat().st_mode & 0o077 == 0, "the umask of the command"
    assert world() == before
