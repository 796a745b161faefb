"""Storage of a lake in a directory of this machine, or of a drive that machines share.

Files are written under ``tmp``, flushed to disk, and then renamed, which is atomic on a POSIX file system.
"""

import errno
import hashlib
import logging
import os
import shutil
import stat
import uuid
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from filelock import FileLock

from schemas.artifact import Partition
from schemas.errors import InfrastructureError, SpecError

log = logging.getLogger("evenhand")

_RECORD = "partition.json"
_FOLDERS = ("stages", "runs", "reports", "tmp", "locks")
"""Folders that every lake has."""
BESIDE = "sorted"
"""Folder of files that took the place of others."""


def sha256_of(path: Path) -> str:
    """Hex digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flush(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_flushed(path: Path, content: bytes) -> None:
    """Write a file and wait until it is on disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def strange(root: Path, path: Path) -> str:
    """Why nothing may be removed at a path; empty of files and folders that lie in the lake themselves, or are absent.

    Evenhand makes no links in a lake. A link below ``root`` leads elsewhere, and belongs to somebody else.
    """
    if root not in path.parents:
        return f"{path} lies outside the lake {root}"
    inside = [place for place in path.parents if root in place.parents]
    for place in (*reversed(inside), path):
        if os.path.islink(place):  # noqa: PTH114 Path.is_symlink raises where a name is too long
            target = os.path.realpath(place)
            lost = "" if os.path.exists(target) else ", which is not there"  # noqa: PTH110 the same
            return f"{place} is a link to {target}{lost}"
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return f"{path} cannot be read ({error.strerror})"
    return "" if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else f"{path} is neither a file nor a folder"


def odd(folder: Path) -> Iterator[str]:
    """Places below a folder, or its own, where something is that is no file and no folder; no link is followed."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from odd(Path(entry.path))
                elif not entry.is_file(follow_symlinks=False):
                    yield entry.path
    except FileNotFoundError:
        return
    except NotADirectoryError:
        yield str(folder)


def clear(root: Path, folder: Path) -> None:
    """Remove a folder of a lake before something is written at its place, or after it was used; none is no error.

    Raises:
        SpecError: it is a link, or lies behind one.
    """
    if not os.path.lexists(folder):
        return
    if why := strange(root, folder):
        links = [place for place in (*reversed(folder.parents), folder) if root in place.parents and place.is_symlink()]
        own_link = f"the link {links[0]}" if links else str(folder)
        raise SpecError(f"{why}; evenhand removes nothing there: remove {own_link}, and run again")
    shutil.rmtree(folder, ignore_errors=True)


class Directory:
    """Storage in one local directory (``tasks.lake.storage.Storage``). Disk errors are not converted."""

    def __init__(self, root: Path) -> None:
        """Create nothing on disk yet."""
        self.root = Path(os.path.realpath(root))  # Path.resolve raises at links that lead to themselves
        self._checked: set[tuple[str, str]] = set()

    @property
    def location(self) -> str:
        """The absolute path."""
        return str(self.root)

    @property
    def local(self) -> Path:
        """The directory itself."""
        return self.root

    def make(self) -> None:
        """Make the directory, and see that it can be written."""
        try:
            for part in _FOLDERS:
                (self.root / part).mkdir(parents=True, exist_ok=True)
            probe = self.root / "tmp" / f"probe-{os.getpid()}"
            probe.write_bytes(b"")
            probe.unlink(missing_ok=True)  # another thread of this process may have opened the same lake
        except OSError as error:
            raise InfrastructureError(
                f"the lake {self.root} cannot be written ({error.strerror}); "
                "give a directory that this user may write with --lake"
            ) from error

    def make_local(self) -> None:
        """Make nothing: a lake that is only read gets no file and no folder."""

    def lost(self) -> str:
        """Which folder of the lake is a link to one that is not there, in words; empty where none is."""
        links = [self.root / name for name in _FOLDERS if (self.root / name).is_symlink()]
        return next((strange(self.root, link) for link in links if not os.path.exists(link)), "")  # noqa: PTH110 loops

    def beside(self, name: str) -> "Directory":
        """A directory in the same one."""
        return Directory(self.root.parent / name)

    def where(self, path: str) -> str:
        """The absolute path."""
        return str(self.root / path)

    def exists(self, path: str) -> bool:
        """Whether there is such a file or directory."""
        return os.path.exists(self.root / path)  # noqa: PTH110 Path.exists raises where a name is too long

    def modified(self, path: str) -> int:
        """The file's time of modification."""
        return (self.root / path).stat().st_mtime_ns

    def glob(self, pattern: str) -> list[str]:
        """Files that fit; of one folder without a walk, since a log may have many."""
        folder, _, name = pattern.rpartition("/")
        if not set("*?[") & set(folder):
            try:
                with os.scandir(self.root / folder) as entries:
                    file_names = [entry.name for entry in entries if fnmatchcase(entry.name, name) and entry.is_file()]
            except OSError:  # none there, or none that this user may list
                return []
            return sorted(f"{folder}/{file}" if folder else file for file in file_names)
        return sorted(p.relative_to(self.root).as_posix() for p in self.root.glob(pattern) if p.is_file())

    def below(self, folder: str) -> list[str]:
        """Files of a directory tree."""
        return sorted(p.relative_to(self.root).as_posix() for p in (self.root / folder).rglob("*") if p.is_file())

    def read(self, path: str) -> bytes | None:
        """The content of a file, without the detour of path objects: a log may have very many."""
        try:
            handle = os.open(f"{self.root}/{path}", os.O_RDONLY | os.O_NONBLOCK)  # a pipe would block
        except PermissionError:
            raise
        except (OSError, ValueError):  # none there, or a name that no file can have
            return None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            return None
        with open(handle, "rb", buffering=0) as file:  # noqa: PTH123 a handle and no path; it is read in one go
            return file.read()

    def intact(self, path: str, digest: str) -> bool:
        """Hashes a file once; what was found intact is not read again."""
        if (path, digest) not in self._checked:
            file = self.root / path
            if not file.is_file() or sha256_of(file) != digest:
                return False
            self._checked.add((path, digest))
        return True

    def checked(self, path: str, digest: str) -> Path | None:
        """The file itself."""
        return self.root / path if self.intact(path, digest) else None

    def write(self, path: str, content: bytes, draft: str | None = None) -> None:
        """Flushes the draft to disk before it gets the name."""
        target = self.root / path
        written = self.root / draft if draft else target.with_name(f".{target.name}-{os.getpid()}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            written.parent.mkdir(parents=True, exist_ok=True)
            write_flushed(written, content)
            written.replace(target)
        except OSError:
            written.unlink(missing_ok=True)
            raise

    def add(self, path: str, content: bytes) -> bool:
        """Links the flushed draft to the name, which fails if it is taken; without hard links under a lock."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f"{target.name}.{uuid.uuid4().hex}.draft")
        try:
            write_flushed(draft, content)
            added = _linked(draft, target)
            if added is None:
                (self.root / "locks").mkdir(exist_ok=True)
                with FileLock(self.root / "locks" / "names.lock"):
                    added = not target.exists()
                    if added:
                        draft.rename(target)
            flush(target.parent)
        finally:
            draft.unlink(missing_ok=True)
        return added

    def remove(self, folder: str) -> None:
        """Remove a directory tree. A tree that is a link or lies behind a link stays, with a warning in the log."""
        if why := strange(self.root, self.root / folder):
            log.warning("%s: nothing was removed there", why)
        else:
            shutil.rmtree(self.root / folder, ignore_errors=True)

    def home_of(self, partition: str) -> str:
        """The partition's own directory: a rename fills it in one step."""
        return partition

    def publish(self, draft: Path, partition: Partition, home: str) -> None:
        """Rename the draft; a directory at its place is one without its record."""
        target = self.root / home
        target.parent.mkdir(parents=True, exist_ok=True)
        clear(self.root, target)
        draft.rename(target)
        flush(target.parent)
        self._checked.update((a.path, a.sha256) for a in partition.tables)
        self._checked.update(partition.files.items())

    def home_beside(self, partition: str) -> str:
        """A folder in the partition's own."""
        return f"{partition}/{BESIDE}"

    def supersede(self, draft: Path, partition: Partition, home: str) -> None:  # noqa: ARG002 the draft has its record
        """Rename the draft into the folder, then replace the existing record with the new one."""
        target = self.root / self.home_beside(home)
        clear(self.root, target)  # of one who was killed before the record was written
        draft.rename(target)
        flush(target.parent)
        self.write(f"{home}/{_RECORD}", (target / _RECORD).read_bytes())
        flush(target.parent)
        (target / _RECORD).unlink()

    def discard(self, path: str) -> None:
        """Remove a file."""
        (self.root / path).unlink(missing_ok=True)


_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""How file systems without hard links refuse one."""


def _linked(draft: Path, target: Path) -> bool | None:
    """Whether a file got a second name; False if that is taken, None where there are no hard links."""
    try:
        os.link(draft, target)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno in _NO_LINKS:
            return None
        raise
    return True
