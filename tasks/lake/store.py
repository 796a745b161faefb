"""The lake: partitions of validated files, published atomically, with digests and locks."""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from schemas.artifact import Artifact, Partition
from schemas.errors import InfrastructureError, IntegrityError, SpecError
from schemas.questions import BEFORE, TABLES_BEFORE
from tasks.lake.local_directory import Directory, clear, odd, sha256_of, write_flushed
from tasks.lake.local_directory import flush as _flush
from tasks.lake.storage import Storage, storage_at

if TYPE_CHECKING:
    import pyarrow.dataset as pads

__all__ = ["Lake", "open_lake", "sha256_of"]


# --------------------------------------------------------------------------------------------------------------------
# Tables that grow on the disk while a stage works, because they are too long to be held.
#
# A table of few rows never touches the disk before it is published. Its file is the same either way: row groups are
# those of a table that is written at once.


GROUP = 2**20
"""Rows of a row group, as ``pyarrow.parquet.write_table`` has them."""


@dataclass(frozen=True)
class Written:
    """A table in a Parquet file that is not published yet."""

    path: Path
    num_rows: int

    nbytes = 0
    """Bytes that are still to be written."""

    def dataset(self) -> "pads.Dataset":
        """Its rows, to be read as a stream."""
        import pyarrow.dataset as pads  # loads pandas, and every command imports this module

        return pads.dataset(self.path, format="parquet")

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Its rows in order, all columns or some, a row group after the other."""
        yield from pq.ParquetFile(self.path, pre_buffer=False).iter_batches(columns=columns)

    def filtered(self, stays: Callable[[pa.RecordBatch], pa.Array]) -> "Written":
        """Write the retained rows to a second file next to this one, in the same order."""
        draft = Draft(self.path.with_suffix(".kept.parquet"), pq.read_schema(self.path))
        for batch in self.batches():
            draft.append(pa.Table.from_batches([batch.filter(stays(batch))]))
        return draft.written()


class Draft:
    """One table, row group by row group."""

    def __init__(self, path: Path | None, schema: pa.Schema) -> None:
        """Nothing is written before there are rows for a row group; never without a path."""
        self._path, self._schema, self._rows = path, schema, 0
        self._held: list[pa.Table] = []
        self._writer: pq.ParquetWriter | None = None

    def append(self, rows: pa.Table) -> None:
        """Append rows after the existing ones."""
        self._held.append(rows)
        while self._path is not None and sum(table.num_rows for table in self._held) > GROUP:
            rows_held = pa.concat_tables(self._held)
            self._write(self._path, rows_held.slice(0, GROUP))
            self._held = [rows_held.slice(GROUP)]

    def written(self) -> Written:
        """The table in its file, however few its rows are.

        Raises:
            ValueError: it has no place on the disk.
        """
        if self._path is None:
            raise ValueError("a table without a path is held")
        self._write(self._path, pa.concat_tables([self._schema.empty_table(), *self._held]))
        self._held = []
        if self._writer is not None:
            self._writer.close()
        return Written(self._path, self._rows)

    def ended(self) -> pa.Table | Written:
        """The table: as it is held, or where it lies."""
        if self._writer is None or self._path is None:
            return pa.concat_tables([self._schema.empty_table(), *self._held])
        return self.written()

    def _write(self, path: Path, rows: pa.Table) -> None:
        if self._writer is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(path, self._schema, compression="zstd", store_schema=False)
        self._writer.write_table(rows, row_group_size=GROUP)
        self._rows += rows.num_rows


class Drafts:
    """The growing tables of one stage run."""

    def __init__(self, folder: Path | None) -> None:
        """Keep the tables in ``folder``, created on first use; without a folder they stay in memory."""
        self._folder = folder

    def new(self, name: str, schema: pa.Schema) -> Draft:
        """A table that has no rows yet."""
        return Draft(self._folder and self._folder / f"{name}.parquet", schema)

    def aside(self, name: str) -> Path | None:
        """A folder, not made yet, for what does not fit into memory meanwhile; None without a lake."""
        if self._folder is None:
            return None
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder / name


IN_MEMORY = Drafts(None)
"""For who calls a stage's function without a lake."""


@contextmanager
def drafts(root: Path, folder: Path) -> Iterator[Drafts]:
    """Growing tables in a folder below ``root``, which is empty before and gone after.

    Raises:
        SpecError: the folder is a link, or lies behind one.
    """
    clear(root, folder)
    try:
        yield Drafts(folder)
    finally:
        clear(root, folder)


# --------------------------------------------------------------------------------------------------------------------
# The lake: partitions of validated files, published atomically, with digests and locks.
#
# A stage's output is one partition, ``stages/<stage>/<key>``. It is drafted on the local disk and published in one
# step: ``partition.json`` lists the sha256 of every file, and a folder without it does not exist for readers. A killed
# run leaves only a draft under ``tmp``, which the next holder of the key's lock removes. Intermediate results of a long
# stage are under ``unfinished`` (``tasks.pipeline.stage``).
#
# Scope: partitions, digests, locks. Places and names of files: ``storage``. Stages: ``tasks.pipeline.stage``.


_SPARE_BYTES = 64 * 2**20
"""Left free on the disk whatever is written, so that records and locks can still be."""


class Lake:
    """A lake at an absolute path, or at a URI."""

    def __init__(self, root: Path | str, *, write: bool = True) -> None:
        """Open or make the lake.

        Args:
            root: directory or URI.
            write: whether it is made, and seen to be writable; else it is taken as it is, and nothing is written.

        Raises:
            SpecError: that is no place for a lake.
            InfrastructureError: it cannot be made or written.
        """
        self.storage: Storage = storage_at(root)
        if write:
            self.storage.make()
        else:
            self.storage.make_local()

    @property
    def location(self) -> str:
        """An absolute path or a URI, with which another process opens this lake."""
        return self.storage.location

    @property
    def root(self) -> Path:
        """The directory of a lake that lies in one.

        Raises:
            SpecError: it does not.
        """
        if not isinstance(self.storage, Directory):
            raise SpecError(
                f"the lake {self.location} is no directory of this machine, and this command needs one; "
                "copy the lake into a directory and name that with --lake"
            )
        return self.storage.root

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold the lock of a name; another process waits for it. The system frees it when its holder dies.

        It holds wherever ``storage.local`` is seen: on all machines that share a directory, on one otherwise. Its file
        goes with its holder; who waits with the file open sees that it is gone, and makes another.
        """
        path = self.storage.local / "locks" / f"{name}.lock"
        lock = FileLock(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except OSError as error:
            raise _storage_error(error, self.location) from error
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            lock.release()

    def odd(self, folder: str) -> Iterator[str]:
        """Places of links, pipes, devices and sockets below a folder, of a lake in a directory: Evenhand makes none."""
        if isinstance(self.storage, Directory):
            yield from odd(self.storage.root / folder)

    def find(self, stage: str, key: str) -> Partition | None:
        """The partition of a key, or None. Its files are checked against their digests.

        Raises:
            IntegrityError: a file is missing or has been altered.
        """
        record = f"{_home(stage, key)}/partition.json"
        content = self.storage.read(record)
        if content is None:
            return None
        try:
            partition = Partition.model_validate_json(content)
        except ValueError as error:
            raise self.altered(record) from error
        digests = {artifact.path: artifact.sha256 for artifact in partition.tables} | partition.files
        for path, digest in digests.items():
            self.require(path, digest)
        return partition.model_copy(update={"reused": True})

    def require(self, path: str, digest: str) -> None:
        """See that the file at a path of the lake is the one that was written.

        Raises:
            IntegrityError: it is missing or has been altered.
        """
        if not self.storage.intact(path, digest):
            raise self.altered(path)

    def check(self, path: str, digest: str) -> Path:
        """A file of this machine with the content of the one at a path of the lake, once its digest agrees.

        Raises:
            IntegrityError: it is missing or has been altered.
        """
        file = self.storage.checked(path, digest)
        if file is None:
            raise self.altered(path)
        return file

    def read(self, artifact: Artifact, columns: Sequence[str] | None = None) -> pa.Table:
        """The table behind an artifact.

        Raises:
            IntegrityError: the file is missing, altered or not Parquet.
            InfrastructureError: the disk fails.
        """
        file = self.check(artifact.path, artifact.sha256)
        try:
            with pq.ParquetFile(file) as content:  # read_table loads pandas
                table = content.read(columns=columns)
        except pa.ArrowException as error:
            raise self.altered(artifact.path) from error
        except OSError as error:
            raise InfrastructureError(f"{file} could not be read: {error.strerror or error}") from error
        table = table if columns is None else table.select(columns)
        return _with_keys_now(table) if artifact.table in TABLES_BEFORE else table

    def publish(
        self,
        stage: str,
        key: str,
        tables: Mapping[str, pa.Table | Written],
        files: Mapping[str, bytes],
        record: Mapping[str, Any],
    ) -> Partition:
        """Write a partition to a draft, flush it, and rename it to its final path in one step.

        ``record`` is stored as ``lineage.json``; its bytes are not part of any key.

        Raises:
            InfrastructureError: the disk is full or fails.
        """
        self.require_space(sum(t.nbytes for t in tables.values()) + sum(len(b) for b in files.values()), stage)
        home, draft = _home(stage, key), self.storage.local / "tmp" / f"{stage}-{key}"
        try:
            clear(self.storage.local, draft)
            draft.mkdir(parents=True)
            files_with_lineage = {**files, "lineage.json": json.dumps(record, indent=1).encode()}
            artifacts, digests = _write(draft, self.storage.home_of(home), tables, files_with_lineage)
            partition = Partition(stage=stage, key=key, tables=artifacts, files=digests)
            write_flushed(draft / "partition.json", partition.model_dump_json(indent=1).encode())
            for folder in (*(path for path in draft.rglob("*") if path.is_dir()), draft):
                _flush(folder)
            self.storage.publish(draft, partition, home)
        except OSError as error:
            raise _storage_error(error, self.location) from error
        finally:
            clear(self.storage.local, draft)
        return partition

    def require_space(self, size: int, what: str) -> None:
        """Refuse a write that would not fit on the disk of this machine, before it is begun.

        Raises:
            InfrastructureError: too little space is free.
        """
        place = self.storage.local
        free = shutil.disk_usage(place).free
        if free < size + _SPARE_BYTES:
            raise InfrastructureError(
                f"the disk of {place} has {free // 2**20} MB free and {what} needs up to "
                f"{(size + _SPARE_BYTES) // 2**20} MB; free some, or give another directory with --lake"
            )

    def write_file(self, path: str, content: bytes, draft: str | None = None) -> str:
        """Replace a file of the lake atomically; returns its place for messages.

        ``draft`` is the path under which it is written first; beside other drafts if there is none.

        Raises:
            InfrastructureError: the disk is full or fails.
        """
        name = PurePosixPath(path).name
        try:
            self.storage.write(path, content, draft or f"tmp/{name}-{os.getpid()}")
        except OSError as error:
            raise _storage_error(error, self.location) from error
        return self.storage.where(path)

    def add_file(self, path: str, content: bytes) -> bool:
        """Write a new file of the lake atomically; False if the file exists, even when another writer was first.

        Raises:
            InfrastructureError: the disk is full or fails, or a store knows no conditional writes.
        """
        try:
            return self.storage.add(path, content)
        except OSError as error:
            raise _storage_error(error, self.location) from error

    def lineage(self, partition: Partition) -> dict[str, Any]:
        """The lineage record of a partition: seconds, memory, rows and versions of the run that made it."""
        path = next(p for p in partition.files if p.endswith("/lineage.json"))
        record: dict[str, Any] = json.loads(self.check(path, partition.files[path]).read_text())
        return record

    def altered(self, path: str) -> IntegrityError:
        """The error of a file that is missing or is not the one that was written, with the next step."""
        parts = path.split("/")
        home = "/".join(parts[:3]) if parts[0] == "stages" else path
        return IntegrityError(
            f"{self.storage.where(path)} is missing or is not the file that was written; restore it from a copy, "
            f"or remove {self.storage.where(home)} and run the audit again to recompute it"
        )


def open_lake(root: Path | str) -> Lake:
    """Open an existing lake, and write nothing: a snapshot or a read-only mount can be read. Reading creates none.

    Raises:
        SpecError: there is none at that place, or one of its folders is a link to one that is not there.
        InfrastructureError: another user keeps it for himself.
    """
    place = storage_at(root)
    try:
        lost = place.lost() if isinstance(place, Directory) else ""
    except PermissionError as error:
        raise InfrastructureError(
            f"the lake {place.location} cannot be read ({error.strerror}): it belongs to another user; ask for the "
            "right to read it, or name another with --lake"
        ) from error
    if lost:
        raise SpecError(f"{lost}; bring back what it leads to, or remove the link")
    if not (place.exists("stages") or place.exists("backfills")):  # at a URI no folder is there before its first file
        raise SpecError(f"no lake at {str(root)!r}; name the one that `evenhand audit` wrote with --lake")
    return Lake(root, write=False)


def _with_keys_now(table: pa.Table) -> pa.Table:
    """A table of an earlier version with the keys of this one."""
    for name, keys in BEFORE.items():
        if name in table.column_names and not keys.keys().isdisjoint(table[name].unique().to_pylist()):
            values = [keys.get(value, value) for value in table[name].to_pylist()]
            place = table.column_names.index(name)
            table = table.set_column(place, table.schema.field(name), pa.array(values, table.schema.field(name).type))
    return table


def _home(stage: str, key: str) -> str:
    return f"stages/{stage}/{key}"


def _write(
    draft: Path, home: str, tables: Mapping[str, pa.Table | Written], files: Mapping[str, bytes]
) -> tuple[tuple[Artifact, ...], dict[str, str]]:
    """Write tables and files into a draft for ``home``. Returns their entries for the record."""
    artifacts = []
    for name, table in tables.items():
        path = draft / f"{name}.parquet"
        if isinstance(table, Written):
            shutil.move(table.path, path)
        else:
            pq.write_table(table, path, compression="zstd", store_schema=False)
        _flush(path)
        artifacts.append(Artifact(table=name, path=f"{home}/{path.name}", sha256=sha256_of(path), rows=table.num_rows))
    digests = {}
    for name, content in files.items():
        # The place of a file in a draft; a name with slashes lies in folders, which are made.
        place = draft / name
        place.parent.mkdir(parents=True, exist_ok=True)
        write_flushed(place, content)
        digests[f"{home}/{name}"] = hashlib.sha256(content).hexdigest()
    return tuple(artifacts), digests


def _storage_error(error: OSError, location: str) -> InfrastructureError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return InfrastructureError(
            f"the disk of {location} is full; free some space and run again: finished stages are kept"
        )
    return InfrastructureError(f"the lake {location} could not be written: {error}")


# --------------------------------------------------------------------------------------------------------------------
# Stage runs of a finished audit, by its manifest: rows, time and memory of each, and whether it was computed then.
#
# Scope: the rows of `evenhand stages` and of the view ``stage_runs``. What is measured: ``tasks.pipeline.resources``.


VIEW: Final = "stage_runs"
SCHEMA: Final = pa.schema(
    [
        ("stage", pa.string()),
        ("partition", pa.string()),
        ("rows_in", pa.int64()),
        ("rows_out", pa.int64()),
        ("refused", pa.int64()),
        ("seconds", pa.float64()),
        ("cpu_seconds", pa.float64()),
        ("peak_memory_mb", pa.float64()),
        ("threads", pa.int64()),
        ("source", pa.string()),
        ("partition_column", pa.string()),
        ("partition_value", pa.string()),
    ]
)
LAKE, COMPUTED = "lake", "computed"
OF_PARTITION: Final = ("partition_column", "partition_value")
"""Columns that name the partition of an audit with ``by``: a lender, or ``all``."""


def stage_runs(manifest: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One row for each step of a run, in the order of its plan; what an earlier version did not keep is None.

    ``stage`` is the step's name, such as "detect cst", and ``partition`` the key of its folder below ``stages``;
    ``OF_PARTITION`` name the lender, or other value, that the run is about.
    """
    partitions = manifest["partitions"]
    lineage, steps = (manifest.get(name) or [{}] * len(partitions) for name in ("lineage", "steps"))
    of = dict(zip(OF_PARTITION, partition_of(manifest), strict=True))
    for partition, record, step in zip(partitions, lineage, steps, strict=True):
        yield of_record(step.get("name", partition["stage"]), partition["key"], record, step.get("reused")) | of


def partition_of(manifest: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Column and value of the partition that a run is about; None of an audit without ``by``."""
    part = manifest.get("partition") or {}  # an earlier version had none
    return part.get("column"), part.get("value")


def of_record(stage: str, key: str, record: Mapping[str, Any], reused: bool | None) -> dict[str, Any]:
    """The row of a step: its name, key and lineage record, and whether the lake held it before."""
    rows = record.get("rows", {})
    costs = {name: record.get(name) for name in ("seconds", "cpu_seconds", "peak_memory_mb", "threads")}
    source = None if reused is None else LAKE if reused else COMPUTED
    row_counts = {"rows_in": rows.get("in"), "rows_out": rows.get("out"), "refused": rows.get("refused")}
    return {"stage": stage, "partition": key, **row_counts, **costs, "source": source}


def as_table(manifests: Mapping[str, Mapping[str, Any]]) -> pa.Table:
    """The stage runs of several runs, each row with its run."""
    rows = [{"run": run, **row} for run, manifest in manifests.items() for row in stage_runs(manifest)]
    return pa.Table.from_pylist(rows, schema=pa.schema([("run", pa.string()), *SCHEMA]))
