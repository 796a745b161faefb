"""The lake: a directory in which every file was validated before it got its name.

A stage's output is one directory ``stages/<stage>/<key>``. It is written under ``tmp``, flushed to disk, and renamed;
``partition.json`` inside lists the sha256 of every file, and a directory without it does not exist for readers. A
killed run leaves only a directory under ``tmp``, which the next holder of the key's lock removes. What a long stage
has worked out so far lies under ``unfinished`` (``_scratch``).

Here belong files, digests, locks. What a stage is, and when it runs, is in ``_stage``.
"""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from schemas.artifact import Artifact, Partition
from schemas.errors import InfrastructureError, IntegrityError, SpecError

_SPARE_BYTES = 64 * 2**20
"""Left free on the disk whatever is written, so that records and locks can still be."""


def sha256_of(path: Path) -> str:
    """Hex digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Lake:
    """A lake at an absolute path."""

    def __init__(self, root: Path) -> None:
        """Open or make the lake.

        Raises:
            InfrastructureError: it cannot be made or written.
        """
        self.root = root.resolve()
        self._checked: set[tuple[str, str]] = set()
        try:
            for part in ("stages", "runs", "tmp", "locks"):
                (self.root / part).mkdir(parents=True, exist_ok=True)
            probe = self.root / "tmp" / f"probe-{os.getpid()}"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise InfrastructureError(
                f"the lake {self.root} cannot be written ({error.strerror}); "
                "give a directory that this user may write with --lake"
            ) from error

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold the lock of a name; another process waits for it. The system frees it when its holder dies."""
        with FileLock(self.root / "locks" / f"{name}.lock"):
            yield

    def find(self, stage: str, key: str) -> Partition | None:
        """The partition of a key, or None. Its files are checked against their digests.

        Raises:
            IntegrityError: a file is missing or has been altered.
        """
        home = self._home(stage, key)
        record = home / "partition.json"
        if not record.is_file():
            return None
        try:
            partition = Partition.model_validate_json(record.read_bytes())
        except ValueError as error:
            raise self._altered(record) from error
        for artifact in partition.tables:
            self.check(artifact.path, artifact.sha256)
        for path, digest in partition.files.items():
            self.check(path, digest)
        return partition.model_copy(update={"reused": True})

    def check(self, path: str, digest: str) -> Path:
        """The file at a path of the lake, once its digest agrees.

        Raises:
            IntegrityError: it is missing or has been altered.
        """
        file = self.root / path
        if (path, digest) not in self._checked:
            if not file.is_file() or sha256_of(file) != digest:
                raise self._altered(file)
            self._checked.add((path, digest))
        return file

    def read(self, artifact: Artifact, columns: Sequence[str] | None = None) -> pa.Table:
        """The table behind an artifact.

        Raises:
            IntegrityError: the file is missing, altered or not Parquet.
        InfrastructureError: the disk fails.
        """
        file = self.check(artifact.path, artifact.sha256)
        try:
            return pq.read_table(file, columns=columns, partitioning=None)
        except pa.ArrowException as error:
            raise self._altered(file) from error
        except OSError as error:
            raise InfrastructureError(f"{file} could not be read: {error.strerror or error}") from error

    def publish(
        self,
        stage: str,
        key: str,
        tables: Mapping[str, pa.Table],
        files: Mapping[str, bytes],
        record: Mapping[str, Any],
    ) -> Partition:
        """Write a partition beside its place, flush it, and give it its name in one step.

        ``record`` is stored as ``lineage.json``; its bytes are not part of any key.

        Raises:
            InfrastructureError: the disk is full or fails.
        """
        self.require_space(sum(t.nbytes for t in tables.values()) + sum(len(b) for b in files.values()), stage)
        home = self._home(stage, key)
        draft = self.root / "tmp" / f"{stage}-{key}"
        try:
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(parents=True)
            partition = _write(draft, home.relative_to(self.root), stage, key, tables, files, record)
            home.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(home, ignore_errors=True)  # only a directory without its record can be there
            draft.rename(home)
            _flush(home.parent)
        except OSError as error:
            shutil.rmtree(draft, ignore_errors=True)
            raise _storage_error(error, self.root) from error
        self._checked.update((a.path, a.sha256) for a in partition.tables)
        self._checked.update(partition.files.items())
        return partition

    def require_space(self, size: int, what: str) -> None:
        """Refuse a write that would not fit, before it is begun.

        Raises:
            InfrastructureError: too little space is free.
        """
        free = shutil.disk_usage(self.root).free
        if free < size + _SPARE_BYTES:
            raise InfrastructureError(
                f"the disk of {self.root} has {free // 2**20} MB free and {what} needs up to "
                f"{(size + _SPARE_BYTES) // 2**20} MB; free some, or give another directory with --lake"
            )

    def write_file(self, path: str, content: bytes, draft: str | None = None) -> Path:
        """Write a file of the lake in one step, over the one that was there.

        ``draft`` is the path under which it is written first; beside other drafts if there is none.

        Raises:
            InfrastructureError: the disk is full or fails.
        """
        target = self.root / path
        written = self.root / (draft or f"tmp/{target.name}-{os.getpid()}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _write_flushed(written, content)
            written.replace(target)
        except OSError as error:
            written.unlink(missing_ok=True)
            raise _storage_error(error, self.root) from error
        return target

    def lineage(self, partition: Partition) -> dict[str, Any]:
        """The lineage record of a partition: seconds, memory, rows and versions of the run that made it."""
        path = next(p for p in partition.files if p.endswith("/lineage.json"))
        record: dict[str, Any] = json.loads(self.check(path, partition.files[path]).read_text())
        return record

    def _home(self, stage: str, key: str) -> Path:
        return self.root / "stages" / stage / key

    def _altered(self, file: Path) -> IntegrityError:
        parts = file.relative_to(self.root).parts
        home = self.root.joinpath(*parts[:3]) if parts[0] == "stages" else file
        return IntegrityError(
            f"{file} is missing or is not the file that was written; restore it from a copy, "
            f"or remove {home} and run the audit again to recompute it"
        )


def open_lake(root: Path) -> Lake:
    """A lake that is there already: reading makes none.

    Raises:
        SpecError: there is none at that path.
    """
    if not (root / "stages").is_dir():
        raise SpecError(f"no lake at {str(root)!r}; name the one that `evenhand audit` wrote with --lake")
    return Lake(root)


def _write(
    draft: Path,
    home: Path,
    stage: str,
    key: str,
    tables: Mapping[str, pa.Table],
    files: Mapping[str, bytes],
    record: Mapping[str, Any],
) -> Partition:
    artifacts = []
    for name, table in tables.items():
        path = draft / f"{name}.parquet"
        pq.write_table(table, path, compression="zstd", store_schema=False)
        _flush(path)
        artifacts.append(
            Artifact(table=name, path=(home / path.name).as_posix(), sha256=sha256_of(path), rows=table.num_rows)
        )
    digests = {}
    for name, content in {**files, "lineage.json": json.dumps(record, indent=1).encode()}.items():
        _write_flushed(draft / name, content)
        digests[(home / name).as_posix()] = hashlib.sha256(content).hexdigest()
    partition = Partition(stage=stage, key=key, tables=tuple(artifacts), files=digests)
    _write_flushed(draft / "partition.json", partition.model_dump_json(indent=1).encode())
    _flush(draft)
    return partition


def _write_flushed(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _storage_error(error: OSError, root: Path) -> InfrastructureError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return InfrastructureError(
            f"the disk of {root} is full; free some space and run again: finished stages are kept"
        )
    return InfrastructureError(f"the lake {root} could not be written: {error}")
