"""``evenhand sql`` as a user runs it: exit codes, messages, and what Ctrl-C leaves."""

import csv
import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from conftest import REPOSITORY, environment, evenhand

from flows.cli.results import findings, measures
from schemas.errors import InfrastructureError, SpecError
from tasks.lake import views
from tasks.lake.store import Lake
from tasks.lake.views import untold

DOUBLED = ", ".join(f"c{n} AS NOT MATERIALIZED (FROM c{n - 1} a JOIN c{n - 1} b USING (x))" for n in range(1, 23))
PLANNED = f"WITH c0 AS (SELECT 1 AS x), {DOUBLED} SELECT count(*) FROM c22"
"""Four million tables in a plan: DuckDB does not look whether it was interrupted while it makes one."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of one run with one table."""
    lake = Lake(tmp_path_factory.mktemp("sql") / "lake")
    partition = lake.publish("measure", "0" * 32, {"measures": pa.table({"value": [0.5, 0.25]})}, {}, {})
    manifest = {"partitions": [partition.model_dump(mode="json")]}
    lake.write_file("runs/first/manifest.json", json.dumps(manifest).encode())
    return lake.root


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["PIVOT measures ON value USING count(*)"], 0, "restricted: not for publication"),
        (
            ["WITH x AS (COPY measures TO 'out.csv' (USE_TMP_FILE false)) FROM x"],
            2,
            "the query failed: it would write out.csv; evenhand sql has no files but the lake's tables",
        ),
        (["SELECT DATE '99999-12-31'"], 0, ""),
        (["SELECT 'infinity'::DATE", "--format=csv"], 0, ""),
        (["SELECT ['infinity'::TIMESTAMP], '\\xFF'::BLOB, INTERVAL 1 MONTH, 2::HUGEINT", "--json"], 0, ""),
        (["SELECT '\udcff'"], 2, "the query failed: it is not UTF-8 text"),
        (["FROM measures", "--memory", "much"], 2, "--memory 'much' is no size of 1MB or more; give one such as 2GB"),
        (
            [
                "SELECT count(*) FROM range(1000000) a, range(10000000) b WHERE hash(a.range, b.range) = 1",
                "--timeout=1",
            ],
            5,
            "the query was stopped after 1 s; narrow it, or give --timeout",
        ),
        (
            ["SELECT range, hash(range) FROM range(10000000000)", "--memory", "50MB"],
            5,
            "the query needs more than the 50 MB of memory given; narrow it, or give --memory",
        ),
        (
            ["SELECT length(repeat('x', 4000000000))", "--memory", "300MB"],
            5,
            "the query needs more than the 300 MB of memory given; narrow it, or give --memory",
        ),
        (
            ["WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r", "--timeout=1"],
            5,
            "the query was stopped after 1 s; narrow it, or give --timeout",
        ),
        (["SELECT " + "(" * 20_000 + "1" + ")" * 20_000], 2, "Max expression depth limit of 1000 exceeded"),
        (
            ["SELECT error('a cell: ' || chr(27) || value) FROM measures"],
            2,
            "a cell: \\x1b0.5\nrestricted: not for publication, since this may quote measures\n",
        ),
        ([PLANNED, "--timeout=1", "--memory=4GB"], 5, "the query was stopped after 1 s; narrow it, or give --timeout"),
    ],
)
def test_a_query_ends_with_its_exit_code(lake: Path, words: list[str], code: int, message: str, tmp_path: Path) -> None:
    done = evenhand("sql", *words, "--lake", str(lake), cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_query_of_published_tables_is_not_called_restricted(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    tables = {name: pa.table({"value": [0.5]}) for name in ("measures", "published_measures")}
    partition = lake.publish("publish", "0" * 32, tables, {}, {})
    lake.write_file(
        "runs/first/manifest.json", json.dumps({"partitions": [partition.model_dump(mode="json")]}).encode()
    )
    with views.open_views(lake) as connection:
        asked = (
            "SHOW TABLES",
            "FROM published_measures",
            "SELECT * FROM Measures JOIN published_measures USING (value)",
        )
        assert [untold(connection, query) for query in asked] == [[], [], ["measures"]]


def test_a_question_that_cannot_be_answered_ends_in_a_sentence(lake: Path) -> None:
    with pytest.raises(
        SpecError, match=r"the tables of run 'first' cannot answer that query: .* findings does not exist"
    ):
        findings(str(lake), "first", rows=True, limit=5)
    with pytest.raises(SpecError, match=r"the tables of run 'first' cannot answer that query: .* UTF-8"):
        measures(str(lake), "first", measure="\udcff")


def test_a_listing_that_needs_more_memory_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(tmp_path / "lake")
    table = pa.table({name: [f"{name} {n}" for n in range(10_000)] for name in ("method", "group", "verdict")})
    partition = lake.publish("measure", "0" * 32, {"findings": table}, {}, {})
    manifest = {"partitions": [partition.model_dump(mode="json")]}
    lake.write_file("runs/first/manifest.json", json.dumps(manifest).encode())
    findings(str(lake.root), rows=True, limit=5)
    monkeypatch.setattr(views, "_MOST_MEMORY", 1000)
    words = r"the tables of run 'first' need more memory than there is for a query; free some, or ask .* --memory"
    with pytest.raises(InfrastructureError, match=words):
        findings(str(lake.root), rows=True, limit=10_000)


def test_ctrl_c_ends_a_query_and_its_temporary_directory(lake: Path, tmp_path: Path) -> None:
    query = "SELECT * FROM (SELECT range, hash(range) AS h FROM range(2000000000)) ORDER BY h"
    process = subprocess.Popen(
        [sys.executable, "-m", "flows.cli", "sql", query, "--memory=60MB", "--lake", str(lake)],
        env={**environment(None), "TMPDIR": str(tmp_path)},
        cwd=REPOSITORY,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a background shell ignores it
    )
    until = time.monotonic() + 120
    while not list(tmp_path.rglob("duckdb_temp*")):  # the query is at work
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert not list(tmp_path.iterdir())


def test_a_query_runs_no_module_of_the_working_directory(lake: Path, tmp_path: Path) -> None:
    for name in ("json", "pyarrow", "duckdb", "tasks"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w')\nraise SystemExit(9)\n")
    done = evenhand("sql", "FROM measures", "--lake", str(lake), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_killed_command_leaves_no_process_of_its_query(lake: Path, tmp_path: Path) -> None:
    query = "SELECT count(*) FROM range(1000000) a, range(10000000) b WHERE hash(a.range, b.range) = 1"
    command = [sys.executable, "-m", "flows.cli", "sql", query, "--lake", str(lake)]
    process = subprocess.Popen(command, env={**environment(None), "TMPDIR": str(tmp_path)}, cwd=REPOSITORY)
    try:
        until = time.monotonic() + 120
        while not list(tmp_path.glob("evenhand-sql-*/evenhand-sql-*")):  # its tables are open
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
        (child,) = psutil.Process(process.pid).children()
    finally:
        process.kill()
        process.wait()
    child.wait(60)
    assert not list(tmp_path.iterdir())


def test_csv_guards_text_that_a_spreadsheet_would_run_unless_it_is_for_machines(lake: Path) -> None:
    texts = ("=1+1", "+1", "-x", "@x", "\tx", "\rx")
    names = "'{}' AS \"=name\", -1.5 AS number, 'a\x1b[2Jb' AS controls"
    query = " UNION ALL ".join(f"SELECT {names.format(text)}" for text in texts)
    words = ("sql", query, "--lake", str(lake), "--format", "csv")
    shown = "".join("'" + text.replace("\r", "\\x0d") + ",-1.5,a\\x1b[2Jb\n" for text in texts)
    assert evenhand(*words).stdout == f"'=name,number,controls\n{shown}"
    raw = evenhand(*words, "--raw").stdout
    assert list(csv.reader(io.StringIO(raw, newline=""))) == [
        ["=name", "number", "controls"],
        *([text, "-1.5", "a\x1b[2Jb"] for text in texts),
    ]


def test_a_lake_with_stages_and_no_run_is_read(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    for key, values in (("0" * 32, [0.5]), ("1" * 32, [0.25, 0.75])):
        lake.publish("ingest", key, {"applications": pa.table({"value": values})}, {}, {})
    asked = evenhand("sql", "SELECT run, value FROM applications", "--lake", str(lake.root), "--format", "csv", "--raw")
    assert asked.stdout == "run,value\nno run yet,0.25\nno run yet,0.75\n", asked.stderr
    shown = evenhand("show", "--lake", str(lake.root))
    assert (shown.returncode, "ingest: applications (2 rows)" in shown.stdout) == (0, True)
    (tmp_path / "empty" / "stages").mkdir(parents=True)
    for words in (("show",), ("sql", "SHOW TABLES")):
        nothing = evenhand(*words, "--lake", str(tmp_path / "empty"))
        assert (nothing.returncode, "holds no run yet" in nothing.stderr) == (2, True)
