"""Storage of a lake on an object store or another remote file system."""

import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, urlsplit

import platformdirs
import pyarrow as pa
from filelock import FileLock
from fsspec.core import url_to_fs
from pyarrow import fs

from schemas.artifact import Partition
from schemas.errors import InfrastructureError, SpecError
from tasks.lake.local_directory import sha256_of

# --------------------------------------------------------------------------------------------------------------------
# Opens the file system behind a URI: pyarrow's own (``s3://``, ``gs://``, ``abfs://``, ...), or else one of fsspec.
#
# Credentials come from the environment, as the libraries document: for S3 AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
# AWS_REGION, and AWS_ENDPOINT_URL for a server other than Amazon's.


def filesystem_at(uri: str) -> tuple[fs.FileSystem, str]:
    """A file system, and the place on it.

    Raises:
        SpecError: the URI names no folder, holds a password, or is of a kind that no library here opens.
        InfrastructureError: it cannot be reached.
    """
    parts = urlsplit(uri)
    if parts.password is not None:
        raise SpecError("the URI of a lake is kept in records: give credentials in the environment, not in it")
    if not parts.path.strip("/"):
        folder = f"{uri.rstrip('/')}/lake"
        raise SpecError(f"{uri!r} names no folder: a lake needs a separate folder, such as {folder!r}")
    system, root = _connection(uri)
    return system, root.rstrip("/")


@lru_cache(maxsize=16)
def _connection(uri: str) -> tuple[fs.FileSystem, str]:
    """One connection serves all lakes of a process at that URI."""
    try:
        connection: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(uri)
    except pa.ArrowInvalid as error:
        if "Unrecognized filesystem type" not in str(error):
            raise SpecError(f"{uri!r} cannot be read as the URI of a lake: {error}") from error
    except OSError as error:
        raise InfrastructureError(f"{uri} could not be reached: {error}") from error
    else:
        return connection
    try:
        system, root = url_to_fs(uri)
    except (ValueError, ImportError) as error:
        raise SpecError(
            f"{uri!r}: no library here opens such a lake ({error}); use a path, file:// or s3://"
        ) from error
    except OSError as error:
        raise InfrastructureError(f"{uri} could not be reached: {error}") from error
    return fs.PyFileSystem(fs.FSSpecHandler(system)), root


# --------------------------------------------------------------------------------------------------------------------
# Storage of a lake on any file system that pyarrow opens (``s3://``, ``gs://``, ``abfs://``, ...), or else fsspec.
#
# There is no rename here, and no lock that dies with its holder. So a partition's files are written under a folder that
# no other writer has. Its record, which names them, is written last and atomically. Two machines that compute the same
# key at once both publish whole partitions; the last record counts, and has the same content.


_WHOLE_OR_NOT = frozenset({"s3", "gcs", "abfs"})
"""Object stores: a file appears when it has been written to its end, and folders need not be made."""

_CHUNK = 2**22

_KEPT_SECONDS = 7 * 24 * 3600
"""How long a copy of a file stays on this machine after it was used last."""

_WRITTEN: set[str] = set()
"""Locations that this process has written to: a stage opens its lake again and again."""


class ObjectStore:
    """Storage below one path of a file system, an implementation of ``tasks.lake.storage.Storage``."""

    def __init__(self, location: str, system: fs.FileSystem, root: str) -> None:
        """``root`` is the place as the file system names it."""
        self.location, self._system, self._root = location, system, root
        digest = hashlib.sha256(location.encode()).hexdigest()[:12]
        self.local = platformdirs.user_state_path("evenhand") / "lakes" / f"{PurePosixPath(root).name}-{digest}"
        self.copies = self.local / "copies"
        self._checked: set[tuple[str, str]] = set()

    def make_local(self) -> None:
        """Make the local directory, for its owner only."""
        try:
            self.local.mkdir(mode=0o700, parents=True, exist_ok=True)
            for part in ("tmp", "locks", "copies"):
                (self.local / part).mkdir(exist_ok=True)
        except OSError as error:
            raise InfrastructureError(
                f"{self.local}, which keeps locks for the lake {self.location}, cannot be made ({error.strerror}); "
                "set XDG_STATE_HOME to a directory that this user may write"
            ) from error

    def make(self) -> None:
        """Make the local directory, and see that a file can be written to the place."""
        self.make_local()
        if self.location not in _WRITTEN:
            probe = f"tmp/probe-{uuid.uuid4().hex}"
            self.write(probe, b"")
            with self._reached():
                self._system.delete_file(self._at(probe))
            _WRITTEN.add(self.location)
            for copy in self.copies.rglob("*"):
                with suppress(FileNotFoundError):  # another process has removed it
                    if copy.is_file() and time.time() - copy.stat().st_mtime > _KEPT_SECONDS:
                        copy.unlink()

    def beside(self, name: str) -> "ObjectStore":
        """A folder in the same one."""
        head, sign, options = self.location.partition("?")
        location = f"{head.rstrip('/').rpartition('/')[0]}/{name}{sign}{options}"
        return ObjectStore(location, self._system, f"{self._root.rpartition('/')[0]}/{name}")

    def where(self, path: str) -> str:
        """The URI without its connection parameters."""
        return f"{self.location.partition('?')[0].rstrip('/')}/{path}"

    def exists(self, path: str) -> bool:
        """Whether the file system knows the path."""
        return bool(self._info(path).type != fs.FileType.NotFound)

    def modified(self, path: str) -> int:
        """When the file was written."""
        return self._info(path).mtime_ns or 0

    def glob(self, pattern: str) -> list[str]:
        """Files that fit, of all that lie below the part of the pattern that is no pattern."""
        pattern_parts = pattern.split("/")
        fixed = next((i for i, part in enumerate(pattern_parts) if "*" in part), len(pattern_parts) - 1)
        return [
            path
            for path in self.below("/".join(pattern_parts[:fixed]))
            if len(parts := path.split("/")) == len(pattern_parts) and all(map(fnmatchcase, parts, pattern_parts))
        ]

    def below(self, folder: str) -> list[str]:
        """Paths of the files that start with the path of the folder."""
        selector = fs.FileSelector(self._at(folder).rstrip("/"), allow_not_found=True, recursive=True)
        with self._reached():
            paths = [i.path for i in self._system.get_file_info(selector) if i.type == fs.FileType.File]
        return sorted(path[path.index(self._root) + len(self._root) + 1 :] for path in paths)

    def read(self, path: str) -> bytes | None:
        """The content of a file."""
        with self._reached():
            try:
                with self._system.open_input_stream(self._at(path)) as stream:
                    return bytes(stream.read())
            except FileNotFoundError:
                return None

    def intact(self, path: str, digest: str) -> bool:
        """Reads the file from end to end, every time."""
        content_hash = hashlib.sha256()
        with self._reached():
            for chunk in self._chunks(path):
                content_hash.update(chunk)
        return content_hash.hexdigest() == digest

    def checked(self, path: str, digest: str) -> Path | None:
        """Copy a file to a fixed local path and check its hash. An existing copy is hashed again."""
        copy = self.copies / path
        if (path, digest) in self._checked:
            return copy
        if copy.is_file() and sha256_of(copy) == digest:
            copy.touch()
        elif not self._copied(path, digest, copy):
            return None
        self._checked.add((path, digest))
        return copy

    def _copied(self, path: str, digest: str, copy: Path) -> bool:
        copy.parent.mkdir(parents=True, exist_ok=True)
        content_hash, draft = hashlib.sha256(), copy.with_name(f"{copy.name}.{uuid.uuid4().hex}")
        try:
            with self._reached(), draft.open("wb") as file:
                for chunk in self._chunks(path):
                    content_hash.update(chunk)
                    file.write(chunk)
            if content_hash.hexdigest() == digest:
                draft.replace(copy)
        finally:
            draft.unlink(missing_ok=True)
        return content_hash.hexdigest() == digest

    def write(self, path: str, content: bytes, draft: str | None = None) -> None:  # noqa: ARG002 nothing to rename
        """Write a file so that readers see the old one or the new one."""
        with self._writing(path) as stream:
            stream.write(content)

    def add(self, path: str, content: bytes) -> bool:
        """By a conditional write; on other file systems writers of this machine take turns."""
        if self._system.type_name in _WHOLE_OR_NOT:
            return _put_new(self.location, path, content)
        with FileLock(self.local / "locks" / "names.lock"):
            if self.exists(path):
                return False
            self.write(path, content)
        return True

    def remove(self, folder: str) -> None:
        """Remove all files below a folder."""
        with self._reached():
            try:
                self._system.delete_dir(self._at(folder))
            except FileNotFoundError:
                return

    def home_of(self, partition: str) -> str:
        """A folder of this writer alone."""
        return f"{partition}/{uuid.uuid4().hex[:12]}"

    def publish(self, draft: Path, partition: Partition, home: str) -> None:
        """Copy the files that the record names, and then the record."""
        for path in (*(artifact.path for artifact in partition.tables), *partition.files):
            with (draft / partition.within(path)).open("rb") as file, self._writing(path) as stream:
                shutil.copyfileobj(file, stream, _CHUNK)
        self.write(f"{home}/partition.json", (draft / "partition.json").read_bytes())
        shutil.rmtree(draft)

    def home_beside(self, partition: str) -> str:
        """A folder of this writer alone, as always."""
        return self.home_of(partition)

    def supersede(self, draft: Path, partition: Partition, home: str) -> None:
        """Same as ``publish``, because its files have a separate folder."""
        self.publish(draft, partition, home)

    def discard(self, path: str) -> None:
        """Remove a file."""
        with self._reached():
            try:
                self._system.delete_file(self._at(path))
            except FileNotFoundError:
                return

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}"

    def _info(self, path: str) -> fs.FileInfo:
        with self._reached():
            return self._system.get_file_info(self._at(path))

    def _chunks(self, path: str) -> Iterator[bytes]:
        """The content of a file; nothing, which no digest fits, where there is none."""
        try:
            with self._system.open_input_stream(self._at(path)) as stream:
                while chunk := stream.read(_CHUNK):
                    yield chunk
        except FileNotFoundError:
            return

    @contextmanager
    def _writing(self, path: str) -> Iterator[Any]:
        """A stream that writes its content to a path when it is closed."""
        target = self._at(path)
        written = target if self._system.type_name in _WHOLE_OR_NOT else f"{target}.{uuid.uuid4().hex}"
        with self._reached():
            if written != target:
                self._system.create_dir(str(PurePosixPath(target).parent), recursive=True)
            with self._system.open_output_stream(written) as stream:
                yield stream
            if written != target:
                self._system.move(written, target)

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Add the name of the lake to errors of the file system."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise InfrastructureError(
                f"{self.location} could not be read or written: {error}; check that its bucket exists, that its server "
                "answers, and that the credentials are set (for s3 AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)"
            ) from error


def _put_new(location: str, path: str, content: bytes) -> bool:
    """Write ``path`` below the URI of a lake if no object exists (``If-None-Match: *``). pyarrow cannot do this.

    Credentials and server are those of the environment and of the URI, as pyarrow has them. False if it is taken.

    Raises:
        InfrastructureError: the place cannot be reached, or knows no conditional writes.
    """
    from obstore import put  # a library for the log alone
    from obstore.exceptions import AlreadyExistsError, BaseError
    from obstore.store import from_url

    parts = urlsplit(location)
    try:
        store = from_url(f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", **_options(parts.scheme, location))
        put(store, path, content, mode="create", use_multipart=False)
    except AlreadyExistsError:
        return False
    except (BaseError, ValueError, OSError) as error:
        raise InfrastructureError(
            f"{location.partition('?')[0]}/{path} could not be written as a new file: {str(error).splitlines()[0]}; "
            "the log of a lake needs a store that knows conditional writes (If-None-Match)"
        ) from error
    return True


def _options(scheme: str, location: str) -> dict[str, Any]:
    if scheme != "s3":
        return {}
    parameters = {name: values[-1] for name, values in parse_qs(urlsplit(location).query).items()}
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
    if "endpoint_override" in parameters:
        host = parameters["endpoint_override"]
        endpoint = host if "://" in host else f"{parameters.get('scheme', 'https')}://{host}"
    config = {"region": parameters["region"]} if "region" in parameters else {}
    if endpoint:
        config["endpoint"] = endpoint
    return {"config": config, "client_options": {"allow_http": endpoint.startswith("http://")}}
