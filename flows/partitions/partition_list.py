"""Partitions of a year by a column such as the lender: list, counts, digests, and the newest record of each."""

# ruff: noqa: S608 names are ours, values are bound

import hashlib
import io
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from flows.partitions.attempts import LISTING, Attempt, as_it_stands, folder_of, read_record
from flows.partitions.years import goes_by_years, lacking_columns, placed, without
from schemas.audit.column import ColumnSpec
from schemas.audit.partition import ALL, By, slug
from schemas.audit.spec import AuditSpec, Protected
from schemas.bounds import canonical
from schemas.errors import InfrastructureError, SpecError, nearest
from schemas.terms import Kind
from tasks.ingest import registry
from tasks.ingest.applications import database
from tasks.ingest.intake.recipe import respelled
from tasks.ingest.registry import part_digests
from tasks.ingest.statement import Question, Statement, statement
from tasks.lake.store import Lake
from tasks.pipeline.digests import code_digest, versions

if TYPE_CHECKING:
    import duckdb

__all__ = ["Listed", "by_of", "listed_value", "listing", "slug", "without_value", "year_spec"]


# --------------------------------------------------------------------------------------------------------------------
# Digests of the rows of every partition, kept in the lake so that a source is read for them once.


def digests_of(spec: AuditSpec, lake: Lake) -> Mapping[str, str]:
    """Value of the column -> digest of the rows that have it; of rows without one under the empty value.

    Args:
        spec: with ``by``, its source that of one year and of no partition.
        lake: keeps what was counted.

    Raises:
        EvenhandError: as readers of sources say.
    """
    source_sha256 = registry.digest(spec.source)
    column = spec.by.column if spec.by else ""
    path = f"parts/{source_sha256[:32]}-{hashlib.sha256(column.encode()).hexdigest()[:10]}.parquet"
    content, table = lake.storage.read(path), None
    if content is not None:
        with suppress(pa.ArrowException):  # a file that cannot be read is made again
            table = pq.read_table(io.BytesIO(content))
    if table is None:
        with spilling(lake) as spill:
            table = part_digests(spec.source, column, spill)
        sink = io.BytesIO()
        pq.write_table(table, sink)
        lake.write_file(path, sink.getvalue())
    column_spec = spec.kept().get(column) if spec.by else None
    missing = {"", *spec.source.missing, *(column_spec.missing if column_spec else ())}
    digests: dict[str, list[str]] = defaultdict(list)
    for row in table.to_pylist():
        digests["" if canonical(row["value"]) in missing else row["value"]].append(row["rows_sha256"])
    # Of texts that all mean missing, the digest of their digests.
    return {
        value: of[0] if len(of) == 1 else hashlib.sha256("".join(sorted(of)).encode()).hexdigest()
        for value, of in digests.items()
    }


@contextmanager
def spilling(lake: Lake) -> Iterator[Path]:
    """A folder of the lake for what does not fit into memory, which goes afterwards."""
    place = lake.storage.local / "tmp"
    place.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="parts-", dir=place) as spill:
        yield Path(spill)


# --------------------------------------------------------------------------------------------------------------------
# Counts of the partitions of a year: rows, usable ones, decisions, groups, and columns that have values.
#
# The rows are judged as the stage ingest judges them, and DuckDB groups them by partition, decision and groups in one
# pass; sums over these are small. What is counted is kept in the lake, by the digest of the source and what the spec
# says of rows, so that each worker reads it.


MOST_VALUES: Final = 20_000
"""Partitions that a column may have."""
_PEOPLE = "sum(n), coalesce(sum(n) FILTER (usable), 0), coalesce(sum(n) FILTER (usable AND favourable), 0)"
"""SQL of ``People``."""


@dataclass
class People:
    """Rows of a partition, or of one of its groups."""

    rows: int = 0
    usable: int = 0
    """That are kept, have a decision, and whose cells are of the type of their columns."""
    favourable: int = 0
    """Of the usable ones."""


@dataclass
class Counts:
    """Counts of one partition."""

    people: People = field(default_factory=People)
    groups: dict[str, dict[str, People]] = field(default_factory=dict)
    """Protected attribute -> group -> people."""
    values: dict[str, int] = field(default_factory=dict)
    """Column of the spec -> usable rows that have a value in it."""
    rows_sha256: str = ""


def counts_of(spec: AuditSpec, lake: Lake) -> Mapping[str, Counts]:
    """The counts of every partition by its value; those of rows without a value under the empty one.

    Args:
        spec: with ``by``, its source that of one year.
        lake: keeps what was counted.

    Raises:
        SpecError: the column has more values than there may be partitions.
        EvenhandError: as readers of sources say.
    """
    full_spec = spec.model_copy(update={"source": spec.source.model_copy(update={"part": None})})
    source_sha256 = registry.digest(full_spec.source)
    spec_keys = full_spec.model_dump(mode="json", include={"decision", "outcome", "protected", "columns"})
    source = full_spec.source.model_dump(
        mode="json", exclude={"path", "vintage_file", "vintage", "part", "lacking", "lender_name"}
    )
    code = code_digest([__name__])
    column = full_spec.by.column if full_spec.by else ""
    content = json.dumps([spec_keys, source, column, source_sha256, code, versions()], sort_keys=True)
    key = hashlib.sha256(content.encode()).hexdigest()[:32]
    path = f"parts/{key}.json"
    cached = lake.storage.read(path)
    if cached is not None and (counts := _read(cached)) is not None:
        return counts
    counts = _counted(full_spec, lake)
    lake.write_file(path, json.dumps({value: asdict(value_counts) for value, value_counts in counts.items()}).encode())
    return counts


@lru_cache(maxsize=4)
def _read(content: bytes) -> dict[str, Counts] | None:
    """The counts of a file, which callers do not change; None if it cannot be read: then they are made again."""
    counts = {}
    try:
        for value, record in json.loads(content).items():
            groups = {
                name: {group: People(**people) for group, people in of.items()} for name, of in record["groups"].items()
            }
            people = People(**record["people"])
            counts[value] = Counts(people, groups, record["values"], record["rows_sha256"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return counts


def _counted(spec: AuditSpec, lake: Lake) -> dict[str, Counts]:
    if spec.by is None:
        raise ValueError("a spec without `by` has no partitions")
    by, kept_columns = spec.by.column, spec.kept()
    with spilling(lake) as spill:
        missing = kept_columns[by].missing if by in kept_columns else ()
        columns = {**kept_columns, by: ColumnSpec(type=Kind.NOMINAL, missing=missing)}
        question = Question(spec.source, None, spec.decision, spec.outcome, spec.protected, columns)
        decided = [column_rule.column for column_rule in (question.decision, question.outcome) if column_rule]
        grouped = [column for p in question.protected for column in p.columns]
        derived = question.source.derive
        used = [*decided, *grouped, *question.source.keep, *question.columns]
        bases = [name for derivation in derived.values() for name in derivation.columns]
        named = list(dict.fromkeys([*(name for name in used if name not in derived), *bases]))
        with database(spill) as connection, registry.lay(question, named, connection, (by,)) as source_view:
            question = respelled(question, source_view.columns, (by,))
            _combine(connection, statement(question, source_view, connection), question, by)
            totals_columns = list(question.columns)
            known_sums = "".join(f", sum(v{at})" for at in range(len(totals_columns)))
            totals = connection.sql(
                f"SELECT value, {_PEOPLE}{known_sums} FROM combinations GROUP BY value ORDER BY value"
            ).fetchall()
            counts = {
                value: Counts(
                    People(*map(int, rest[:3])), values=dict(zip(totals_columns, map(int, rest[3:]), strict=True))
                )
                for value, *rest in totals
            }
            for at, p in enumerate(spec.protected):
                query = f"SELECT value, g{at}, {_PEOPLE} FROM combinations GROUP BY value, g{at} ORDER BY value, g{at}"
                for value, group, *people in connection.sql(query).fetchall():
                    counts[value].groups.setdefault(p.name, {})[group] = People(*map(int, people))
            if source_view.unread:
                counts.setdefault("", Counts()).people.rows += len(source_view.unread)
    digests = digests_of(spec, lake)
    for value, value_counts in counts.items():
        value_counts.rows_sha256 = digests.get(value, "")
    return counts


def _combine(connection: "duckdb.DuckDBPyConnection", query: Statement, question: Question, by: str) -> None:
    """Make the table of combinations: a row for each partition, decision and groups that occur together."""
    at, cell = list(question.columns).index(by), f"c{query.cells.at[by]}"
    as_they_are = [
        text for (text,) in connection.sql(f"SELECT DISTINCT {cell} FROM raw LIMIT {MOST_VALUES + 2}").fetchall()
    ]
    if len(as_they_are) > MOST_VALUES:
        too_many = SpecError(
            f"column {by!r} has more than {MOST_VALUES:,} values, and at most so many partitions are audited: is it a "
            "number or the identifier of a row? Name a column of lenders or places",
            ("by", "column"),
        )
        raise too_many
    value, rows = f"coalesce(v{at}, '')", f"({query.sql})"
    if any(text != canonical(text) for text in as_they_are):  # a partition is of cells as they are
        value, rows = f"CASE WHEN v{at} IS NULL THEN '' ELSE {cell} END", f"({query.sql}) JOIN raw USING (place)"
    groups = "".join(f", g{i}" for i in range(len(question.protected)))
    known_counts = "".join(
        f", count(*) FILTER (refused IS NULL AND v{i} IS NOT NULL) AS v{i}" for i in range(len(question.columns))
    )
    connection.execute(
        f"CREATE TEMP TABLE combinations AS SELECT {value} AS value, favourable, refused IS NULL AS usable{groups}, "
        f"count(*) AS n{known_counts} FROM {rows} GROUP BY value, favourable, refused IS NULL{groups}"
    )


# --------------------------------------------------------------------------------------------------------------------
# Why a partition is not audited: too few rows, one decision only, or no groups to compare.
#
# It is an answer and no failure: a lender of 40 applications can be neither cleared nor accused.


def too_few(counts: Counts, spec: AuditSpec, by: By) -> str:
    """The reason in words, with the counts that decide; empty of a partition that is audited."""
    usable, favourable = counts.people.usable, counts.people.favourable
    if usable < by.minimum:
        return f"{usable:,} usable rows, fewer than by.minimum ({by.minimum:,})"
    if favourable in (0, usable):
        return f"all {usable:,} usable decisions are {'favourable' if favourable else 'unfavourable'}"
    if any(compared(p, counts, spec.bootstrap.minimum_n) for p in spec.protected):
        return ""
    with_reference = [p for p in spec.protected if _people(counts, p, p.reference).usable]
    if not with_reference:
        named = ", ".join(f"{p.name}: {p.reference}" for p in spec.protected)
        return f"no usable row belongs to the reference group ({named})"
    most, name = max(_largest(p, counts) for p in with_reference)
    largest = f"the largest, {name}, has {most:,}" if most else "there is none"
    return f"no group beside the reference has bootstrap.minimum_n ({spec.bootstrap.minimum_n}) people; {largest}"


def compared(p: Protected, counts: Counts, minimum_n: int) -> bool:
    """Whether a partition has the reference group of an attribute, and one other group with so many people."""
    return _people(counts, p, p.reference).usable > 0 and _largest(p, counts)[0] >= minimum_n


def _largest(p: Protected, counts: Counts) -> tuple[int, str]:
    """Usable rows and name of the largest group that a verdict may be about."""
    other_groups = [
        (people.usable, group) for group, people in counts.groups.get(p.name, {}).items() if p.judges(group)
    ]
    return max(other_groups, default=(0, ""))


def _people(counts: Counts, p: Protected, group: str) -> People:
    return counts.groups.get(p.name, {}).get(group, People())


# --------------------------------------------------------------------------------------------------------------------
# The partitions of a year by a column of its rows, and the partition ``all``, which is every row.
#
# Rows without a value of the column belong to no partition: they are in ``all``, and ``without_value`` counts them, so
# that the rows of all partitions and those add up to the rows of the year.


@dataclass(frozen=True)
class Listed:
    """A partition of a year."""

    value: str
    """Of the column; ``ALL`` is every row."""
    rows: int
    usable: int
    """Rows that are kept and have a decision."""
    rows_sha256: str
    """Of the partition's own rows; of ``ALL`` that of the source."""
    too_few: str = ""
    """Why it is not audited, in words."""


def listing(spec: AuditSpec, year: int, lake: Lake) -> tuple[Listed, ...]:
    """The partitions of a year: ``ALL`` first, then by usable rows, the largest first.

    Args:
        spec: with ``by``, whose ``values`` and ``largest`` restrict what is listed.
        year: that is listed.
        lake: of the audit.

    Raises:
        SpecError: there is no such column, it has too many values, or a value of ``by.values`` is not there.
        EvenhandError: as ``flows.partitions.years.placed`` and readers of sources say.
    """
    by, of_year = by_of(spec), year_spec(spec, year, lake)
    counts = counts_of(of_year, lake)
    partitions = []
    for value, value_counts in counts.items():
        if value and (not by.values or value in by.values):
            people, reason = value_counts.people, too_few(value_counts, of_year, by)
            partitions.append(Listed(value, people.rows, people.usable, value_counts.rows_sha256, reason))
    values = [value for value in counts if value]
    for value in by.values:
        if value not in values:
            message = f"no row of {year} has {value!r} in {by.column!r}; {nearest(value, values)}"
            raise SpecError(message, ("by", "values"))
    if ALL in values:
        message = f"a row has {ALL!r} in {by.column!r}, which is the name of every row; rename it in the source"
        raise SpecError(message, ("by", "column"))
    partitions.sort(key=lambda partition: (-partition.usable, -partition.rows, partition.value))
    rows, usable = (
        sum(getattr(value_counts.people, name) for value_counts in counts.values()) for name in ("rows", "usable")
    )
    every = Listed(ALL, rows, usable, registry.digest(of_year.source))
    if by.largest is not None:  # of those that can be audited
        partitions = [partition for partition in partitions if not partition.too_few][: by.largest]
    return (every, *partitions)


def without_value(spec: AuditSpec, year: int, lake: Lake) -> Listed:
    """The rows that have no value of the column, with the lines that could not be read; they are in ``ALL`` alone."""
    counts = counts_of(year_spec(spec, year, lake), lake).get("", Counts())
    reason = f"no value of {by_of(spec).column}: these rows are in `{ALL}` alone"
    return Listed("", counts.people.rows, counts.people.usable, counts.rows_sha256, reason)


def year_spec(spec: AuditSpec, year: int, lake: Lake) -> AuditSpec:
    """The spec with the source of a year, without the columns missing in it: its partitions are counted by this spec.

    Raises:
        SpecError: the source has no such column.
        EvenhandError: as ``flows.partitions.years.placed`` says.
    """
    of_year = placed(spec, year, lake)
    by = by_of(spec)
    header = registry.reader_of(of_year.source).header(of_year.source)
    if by.column not in header:
        raise SpecError(f"the source has no column {by.column!r}; {nearest(by.column, header)}", ("by", "column"))
    if not goes_by_years(spec.source) or spec.source.lacking:
        return of_year
    every = {p.name: {*p.groups, p.reference} for p in spec.protected}
    return without(of_year, lacking_columns(spec, of_year.source), every)


def listed_value(spec: AuditSpec, year: int, lake: Lake, value: str) -> Listed:
    """One partition of a year, without the limits of ``by.values`` and ``by.largest``.

    Raises:
        SpecError: the year has no such value; or as ``listing`` says.
    """
    unlimited = by_of(spec).model_copy(update={"values": (), "largest": None})
    partitions = listing(spec.model_copy(update={"by": unlimited}), year, lake)
    for partition in partitions:
        if partition.value == value:
            return partition
    hint = nearest(value, [partition.value for partition in partitions])
    raise SpecError(f"--by-value {value}: no row of {year} has it in {unlimited.column!r}; {hint}")


def by_of(spec: AuditSpec) -> By:
    """The part ``by`` of a spec.

    Raises:
        SpecError: it has none.
    """
    if spec.by is None:
        raise SpecError("the spec has no `by`: add the column of partitions, such as by: {column: lender_id}")
    return spec.by


# --------------------------------------------------------------------------------------------------------------------
# All partitions of a year at once: which there are, as the last back-fill listed them, and the newest record of each.
#
# One listing of the folder and one small file a partition are read, so that thousands take a second.


def keep_listing(lake: Lake, audit: str, year: int, column: str, listed: Iterable[Listed]) -> None:
    """Record the partitions of a year for ``status``, which thereby knows those that have no attempt."""
    path = f"{folder_of(audit, year)}/{LISTING}"
    content = json.dumps({"column": column, "partitions": [asdict(partition) for partition in listed]}).encode()
    if lake.storage.read(path) != content:
        lake.write_file(path, content, f"tmp/{path.replace('/', '-')}")


def kept_listing(lake: Lake, audit: str, year: int) -> tuple[str, tuple[Listed, ...]] | None:
    """Column and partitions of a year, as the last back-fill listed them; None of a year without partitions."""
    content = lake.storage.read(f"{folder_of(audit, year)}/{LISTING}")
    if content is None:
        return None
    listing_content = json.loads(content)
    return listing_content["column"], tuple(Listed(**partition) for partition in listing_content["partitions"])


def kept_value(lake: Lake, audit: str, year: int, value: str) -> Listed:
    """One partition of a year, as the last back-fill listed it.

    Raises:
        InfrastructureError: that listed none of this value.
    """
    _, partitions = kept_listing(lake, audit, year) or ("", ())
    for partition in partitions:
        if partition.value == value:
            return partition
    raise InfrastructureError(f"another back-fill of {audit} {year} lists no {value!r}; let it end, and run this again")


def years_by_partition(lake: Lake) -> list[tuple[str, int]]:
    """Audits and years that were back-filled by partitions, in order."""
    path_parts = (path.split("/") for path in lake.storage.glob(f"backfills/*/*/{LISTING}"))
    return sorted((audit, int(year)) for _, audit, year, _ in path_parts)


def newest(lake: Lake, audit: str, year: int) -> dict[str, Attempt]:
    """Value -> the last attempt of the partition, interrupted if its process is gone.

    Raises:
        IntegrityError: a record is not as a back-fill of this version writes them.
    """
    last: dict[str, str] = {}
    for path in lake.storage.glob(f"{folder_of(audit, year)}/*/*.json"):  # sorted, so that the last one stays
        last[str(PurePosixPath(path).parent)] = path
    records = (read_record(lake, path) for path in last.values())
    return {record.value: as_it_stands(lake, record) for record in records if record is not None}


def before(lake: Lake, attempt: Attempt) -> Attempt | None:
    """The attempt of the same partition before one."""
    folder = folder_of(attempt.audit, attempt.year, attempt.value)
    return read_record(lake, f"{folder}/{attempt.attempt - 1:04d}.json")


def seconds_left(done: Sequence[Attempt], rows: Sequence[int], workers: int) -> float | None:
    """Seconds that partitions of so many rows take, each as the audited one nearest in rows; None where none is.

    Args:
        done: last attempts; those that computed something tell.
        rows: of each partition that is left.
        workers: partitions at a time.
    """
    durations = sorted((a.rows, a.seconds) for a in done if a.run and a.computed and a.rows is not None and a.seconds)
    if not durations or not rows:
        return None if rows else 0.0
    estimates = [min(durations, key=lambda pair: abs(pair[0] - n))[1] for n in rows]
    return max(sum(estimates) / max(workers, 1), max(estimates))
