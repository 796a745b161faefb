"""No query changes a file or reads one beside the lake's tables; and a query has bounds."""

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from small_lake import small_lake

from schemas.errors import InfrastructureError, SpecError
from tasks.lake import views
from tasks.lake.store import Lake
from tasks.lake.views import answer, open_views, rows_of, size_of

MEMORY = 200_000_000


@dataclass(frozen=True)
class World:
    """A lake, a file beside it, a home and a working directory, all below one root."""

    root: Path
    lake: Lake

    @property
    def targets(self) -> tuple[str, ...]:
        """Files that a statement could write or read: of the lake, beside it, here, and at home."""
        table = next(self.lake.root.glob("stages/measure/*/measures.parquet"))
        there = [table, table.parent / "partition.json", self.root / "beside.csv"]
        new = [table.with_name("new.parquet"), self.root / "new.csv", self.root / "home" / "new.csv"]
        return tuple(f"'{path}'" for path in [*there, *new, Path("new.csv"), Path("beside.csv"), table.parent])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    root = tmp_path_factory.mktemp("world")
    for name in ("home", "work", "temporary"):
        (root / name).mkdir()
    for place in (root, root / "work"):
        (place / "beside.csv").write_text("a,b\n1,secret\n")
    lake = small_lake(root / "lake")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root / "work")
        patch.setenv("HOME", str(root / "home"))
        patch.setattr(tempfile, "tempdir", str(root / "temporary"))
        yield World(root, lake)


def digests(root: Path) -> dict[str, str]:
    """Path -> sha256 of every file below a directory; of a directory its name."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "directory"
        for path in root.rglob("*")
    }


WRITES = (
    "COPY measures TO {file}",
    "COPY measures TO {file} (FORMAT csv, USE_TMP_FILE false)",
    "COPY measures TO {file} (FORMAT parquet, OVERWRITE true, USE_TMP_FILE false)",
    "COPY measures TO {file} (FORMAT parquet, PARTITION_BY (measure), OVERWRITE_OR_IGNORE)",
    "COPY (SELECT 'x' AS a) TO {file} (FORMAT json)",
    "COPY measures FROM {file}",
    "CREATE TABLE made AS SELECT * FROM measures",
    "CREATE OR REPLACE VIEW measures AS SELECT 1",
    "CREATE PERSISTENT SECRET mine (TYPE http)",
    "CREATE MACRO f(x) AS x",
    "INSERT INTO measures VALUES (1)",
    "UPDATE measures SET value = 1",
    "DELETE FROM measures",
    "DROP VIEW measures",
    "ATTACH {file} AS other",
    "ATTACH {file} AS other (TYPE sqlite)",
    "EXPORT DATABASE {file}",
    "IMPORT DATABASE {file}",
    "INSTALL httpfs",
    "INSTALL {file}",
    "LOAD {file}",
    "SET enable_external_access = true",
    "SET temp_directory = {file}",
    "SET GLOBAL allowed_paths = [{file}]",
    "RESET lock_configuration",
    "PRAGMA profiling_output = {file}",
    "PRAGMA enable_profiling = 'json'",
    "CALL enable_logging(storage_path = {file})",
    "CALL enable_profiling(save_location = {file})",
    "PREPARE p AS COPY measures TO {file}",
    "CHECKPOINT",
)
WRAPS = (
    "{statement}",
    "EXPLAIN {statement}",
    "EXPLAIN ANALYZE {statement}",
    "EXPLAIN (ANALYZE) {statement}",
    "EXPLAIN (ANALYZE, FORMAT json) {statement}",
    "WITH x AS ({statement}) FROM x",
    "WITH x AS MATERIALIZED ({statement}) SELECT count(*) FROM x",
    "SELECT * FROM ({statement})",
    "SELECT 1; {statement}",
    "FROM measures; EXPLAIN ANALYZE {statement}",
    "FROM query('{text}')",
)
READS = (
    "FROM {file}",
    "FROM read_csv({file})",
    "FROM read_text({file})",
    "FROM read_blob({file})",
    "FROM read_json({file})",
    "FROM read_parquet({file})",
    "FROM parquet_metadata({file})",
    "FROM parquet_schema({file})",
    "FROM glob({file})",
    "FROM glob('*')",
    "FROM sniff_csv({file})",
    "FROM read_duckdb({file})",
    "SELECT count(*) FROM read_text('../**')",
    "FROM query('FROM read_text(''' || {file} || ''')')",
    "WITH x AS (FROM read_text({file})) FROM x",
    "EXPLAIN ANALYZE FROM read_text({file})",
    "FROM duckdb_extensions()",
    "FROM 'http://127.0.0.1:1/x.parquet'",
    "FROM read_csv('https://127.0.0.1:1/x.csv')",
    "FROM read_parquet('s3://bucket/x.parquet')",
    "SELECT getenv('HOME')",
    "FROM query_table('applic' || 'ants')",
)
TOLD = "(SELECT value || '/mine.csv' FROM duckdb_settings() WHERE name = 'temp_directory')"
"""A file in the connection's own temporary directory, as no constant."""
INDIRECT = (
    "COPY measures TO {told}",
    "COPY measures TO ({told})",
    "WITH x AS (COPY measures TO ({told})) FROM x",
    "EXPLAIN ANALYZE COPY measures TO ({told})",
    "FROM read_text({told})",
    "FROM read_csv({told})",
    "FROM read_blob([{told}])",
    "FROM glob({told})",
    "FROM query_table({told})",
    "WITH d(f) AS ({told}) FROM read_text((FROM d))",
    "FROM {told} AS d(f), read_text(d.f)",
    "FROM {told} AS d(f), LATERAL glob(d.f)",
    "SELECT (SELECT content FROM read_text(f)) FROM {told} AS d(f)",
    "SELECT list_transform([{told}], x -> (SELECT content FROM read_text(x)))",
    "CREATE MACRO r(x) AS TABLE FROM read_text(x); FROM r({told})",
    "EXPLAIN ANALYZE CREATE MACRO r(x) AS TABLE FROM read_text(x); FROM r({told})",
    "PREPARE p AS FROM read_text(?); EXECUTE p({told})",
    "EXPLAIN ANALYZE PREPARE p AS FROM read_text(?); EXPLAIN ANALYZE EXECUTE p({told})",
    *(
        f"{explain}SET VARIABLE f = {{told}}; {use}"
        for explain in ("", "EXPLAIN ANALYZE ")
        for use in (
            "COPY measures TO (getvariable('f'))",
            "EXPLAIN ANALYZE COPY measures TO (GetVariable /* f */ ('f'))",
            "WITH x AS (COPY measures TO (\"getvariable\"('f'))) FROM x",
            "FROM read_text(getvariable('f'))",
            "FROM read_text('f'.getvariable())",
            "FROM glob(getvariable('f'))",
            "EXPLAIN ANALYZE CREATE MACRO g() AS getvariable('f'); FROM read_text(g())",
        )
    ),
)
"""Ways to a file there."""
OWN = "(current_setting('temp_directory') || '/new.csv')"
"""A file in the connection's own temporary directory, as a query can name it."""
WORDS = (
    *(
        "COPY",
        "TO",
        "FROM",
        "SELECT",
        "*",
        "WITH",
        "x",
        "AS",
        "(",
        ")",
        ";",
        ",",
        "1",
        "EXPLAIN",
        "ANALYZE",
        "(ANALYZE)",
    ),
    *(
        "CREATE",
        "TABLE",
        "VIEW",
        "INSERT",
        "INTO",
        "VALUES",
        "(1)",
        "ATTACH",
        "EXPORT",
        "IMPORT",
        "DATABASE",
        "INSTALL",
    ),
    *("LOAD", "SET", "PRAGMA", "CALL", "=", "measures", "applicants", "COPY measures TO", "(USE_TMP_FILE false)"),
    *("(FORMAT parquet)", "read_text(", "glob(", "temp_directory", "PREPARE", "EXECUTE", "PIVOT", "ON", "WITH x AS ("),
)


def ask(world: World, text: str) -> object:
    with open_views(world.lake, memory=MEMORY) as views:
        return answer(views, text, 60, MEMORY)


@settings(max_examples=examples(80), deadline=None)
@given(st.data())
def test_no_statement_that_writes_changes_a_file(world: World, data: st.DataObject) -> None:
    """Neither by the command, nor on the connection itself, without the check of statement types."""
    statement = data.draw(st.sampled_from(WRITES)).format(file=data.draw(st.sampled_from(world.targets)))
    text = data.draw(st.sampled_from(WRAPS)).format(statement=statement, text=statement.replace("'", "''"))
    before = digests(world.root)
    with suppress(SpecError):  # EXPLAIN ANALYZE INSERT changes what is in memory, where it is allowed at all
        ask(world, text)
    assert digests(world.root) == before
    with suppress(duckdb.Error), open_views(world.lake, memory=MEMORY) as views:
        views.execute(text)
    assert digests(world.root) == before


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_no_order_of_the_words_changes_a_file(world: World, data: st.DataObject) -> None:
    words = st.lists(st.sampled_from((*WORDS, *world.targets)), min_size=3, max_size=14)
    text = " ".join(data.draw(words))
    before = digests(world.root)
    with suppress(duckdb.Error), open_views(world.lake, memory=MEMORY) as views:
        views.execute(text)
    assert digests(world.root) == before


@pytest.mark.parametrize("wrap", ["EXPLAIN ANALYZE {0}", "EXPLAIN (ANALYZE) {0}", "WITH x AS ({0}) FROM x"])
def test_an_attempt_to_write_is_told_with_the_file(world: World, wrap: str) -> None:
    for file in world.targets[:4]:
        text = wrap.format(f"COPY measures TO {file} (FORMAT csv, USE_TMP_FILE false)")
        words = f"the query failed: it would write {file[1:-1]}; evenhand sql has no files but the lake's tables"
        with pytest.raises(SpecError) as failed:
            ask(world, text)
        assert str(failed.value) == words
    with pytest.raises(SpecError, match="the query failed"):
        ask(world, wrap.format(f"COPY measures TO {OWN}"))


@pytest.mark.parametrize("statement", WRITES)
def test_a_bare_statement_that_writes_is_no_query(world: World, statement: str) -> None:
    with pytest.raises(SpecError, match=r"only queries are run here: SELECT, .*PIVOT or EXPLAIN|would open|Error"):
        ask(world, statement.format(file=world.targets[3]))


@pytest.mark.parametrize("query", READS)
def test_nothing_is_read_beside_the_tables(world: World, query: str) -> None:
    files = [*world.targets, *([OWN] if "({file}" in query or "|| {file}" in query else [])]
    for file in files:
        with pytest.raises(SpecError):
            ask(world, query.format(file=file))


@pytest.mark.parametrize("query", INDIRECT)
def test_what_tells_the_temporary_directory_does_not_open_it(world: World, query: str) -> None:
    with open_views(world.lake, memory=MEMORY) as views:
        (scratch,) = (world.root / "temporary").glob("evenhand-sql-*")
        (scratch / "mine.csv").write_text("secret")
        with pytest.raises(SpecError):
            answer(views, query.format(told=TOLD), 60, MEMORY)
        assert [path.name for path in scratch.iterdir()] == ["mine.csv"]
        assert (scratch / "mine.csv").read_text() == "secret"


BEYOND = {
    "DATE '99999-12-31'": "99999-12-31",
    "'infinity'::DATE": "infinity",
    "'-infinity'::TIMESTAMP": "-infinity",
    "'infinity'::TIMESTAMPTZ": "infinity",
    "DATE '4000-01-01 (BC)'": "4000-01-01 (BC)",
    "[DATE '99999-12-31']": "[99999-12-31]",
    "{'a': 'infinity'::DATE}": "{'a': infinity}",
}


@pytest.mark.parametrize(("value", "text"), BEYOND.items())
def test_a_date_that_python_cannot_hold_is_text(world: World, value: str, text: str) -> None:
    with open_views(world.lake, memory=MEMORY) as views:
        query = f"SELECT 1 AS n, {value} AS day UNION ALL SELECT 2, NULL"
        rows = rows_of(answer(views, query, 60, MEMORY))
    assert rows == [{"n": 1, "day": text}, {"n": 2, "day": None}]


def test_rows_that_python_can_hold_are_as_they_are(world: World) -> None:
    with open_views(world.lake, memory=MEMORY) as views:
        table = answer(views, "SELECT DATE '2020-02-29' AS day, '\\xFF'::BLOB AS raw, 1 AS n", 60, MEMORY)
    assert rows_of(table) == [{"day": date(2020, 2, 29), "raw": b"\xff", "n": 1}]
    assert rows_of(table.slice(0, 0)) == []
    assert rows_of(pa.table({})) == []


def test_a_query_that_is_no_text_says_so(world: World) -> None:
    with pytest.raises(SpecError, match="the query failed: it is not UTF-8 text"):
        ask(world, "SELECT '\udcff'")


def test_a_variable_of_the_program_is_no_table(world: World) -> None:
    with open_views(world.lake) as views:
        secret = views.sql("SELECT 1 AS a").to_arrow_table()
        with pytest.raises(duckdb.CatalogException, match="secret does not exist"):
            views.sql("SELECT * FROM secret").fetchall()
        assert secret.num_rows == 1


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("PIVOT measures ON measure USING count(*) GROUP BY run", 2),
        ("FROM (PIVOT measures ON measure USING count(*))", 4),
        ("EXPLAIN ANALYZE SELECT * FROM measures", 1),
        ("SELECT query FROM (SELECT measure AS query, 'query (x)' AS text FROM measures) WHERE (query = 'k0')", 2),
        ("SELECT 1; SELECT * FROM measures WHERE run = 'first'", 2),
        ("SHOW TABLES", 3),
        ("SUMMARIZE applicants", 5),
        ("", 0),
    ],
)
def test_what_reads_is_answered(world: World, query: str, rows: int) -> None:
    with open_views(world.lake, memory=MEMORY) as views:
        assert answer(views, query, 60, MEMORY).num_rows == rows


LONG = "SELECT count(*) FROM range(1000000) a, range(10000000) b WHERE hash(a.range, b.range) = 1"


@pytest.mark.parametrize("query", [LONG, f"SELECT 1; {LONG}; SELECT 2", f"EXPLAIN ANALYZE {LONG}"])
def test_a_query_is_stopped_after_its_time(world: World, query: str) -> None:
    with open_views(world.lake) as views:
        with pytest.raises(InfrastructureError, match=r"was stopped after 0\.5 s; narrow it, or give --timeout"):
            answer(views, query, 0.5, MEMORY)
        assert answer(views, "FROM measures", 60, MEMORY).num_rows == 4  # the connection is whole


@pytest.mark.parametrize(
    "query",
    [
        "SELECT list(hash(range)) FROM range(100000000)",  # a single value cannot be spilled
        "SELECT range, hash(range) FROM range(10000000000)",  # the result
    ],
)
def test_a_query_that_needs_more_memory_says_so(world: World, query: str) -> None:
    words = "the query needs more than the 100 MB of memory given; narrow it, or give --memory"
    with open_views(world.lake, memory=100_000_000) as views, pytest.raises(InfrastructureError) as failed:
        answer(views, query, 300, 100_000_000)
    assert str(failed.value) == words


def test_a_size_has_a_unit() -> None:
    assert [size_of(text) for text in ("2GB", "1.5 gb", "500MB", "1TB")] == [2 * 10**9, 15 * 10**8, 5 * 10**8, 10**12]
    for text in ("lots", "", "2", "GB", "-1GB", "0GB", "1KB", "1e9GB", "9999999GB", "2GB; SELECT 1"):
        with pytest.raises(SpecError, match="is no size of 1MB or more; give one such as 2GB or 500MB"):
            size_of(text)


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_a_query_in_a_container_gets_a_quarter_of_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    whole = views.default_memory()
    monkeypatch.setattr("tasks.lake.storage._GROUPS", tmp_path)
    assert views.default_memory() >= whole
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("max\n")
    assert views.default_memory() >= whole
    (tmp_path / name).write_text("400000000\n")
    assert views.default_memory() == 100_000_000
