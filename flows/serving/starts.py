"""Audits that a browser begins: the table in the lake, its draft, a queue, and the process of each run.

Each is a folder ``uploads/ID`` of the lake, readable by its owner alone. What the server knows of it is in files there,
so that a server that starts again, and a second one on the same lake, know it too. A run is a process of its own
(``evenhand audit``), which goes on where the server ends; a lock shows whether it lives. No table is read here.
"""

import fcntl
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, Final

import flows
from schemas.errors import InfrastructureError, SpecError
from tasks.lake.local_directory import clear, strange
from tasks.lake.store import Lake

# --------------------------------------------------------------------------------------------------------------------
# What is known of an audit that a browser begins.


class State(StrEnum):
    """How far it is."""

    READING = "reading"
    ASKING = "asking"
    READY = "ready"
    REFUSED = "refused"
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


WORDS: Final[Mapping[State, str]] = {
    State.READING: "being read",
    State.ASKING: "has questions",
    State.READY: "ready to run",
    State.REFUSED: "cannot be audited",
    State.QUEUED: "waits for its turn",
    State.RUNNING: "runs",
    State.DONE: "finished",
    State.FAILED: "failed",
    State.STOPPED: "cancelled",
}
AT_WORK: Final = (State.READING, State.QUEUED, State.RUNNING)
MAY_RUN: Final = (State.READY, State.FAILED, State.STOPPED)
"""States from which a run can be queued: there is a spec without a question."""

FOLDER, TABLE, SPEC = "uploads", "table", "table/.spec.yaml"
"""Of the lake; of an upload: the folder of its table, and the spec next to it, under a name that no upload gets."""
WORK: Final = "work"
"""Of an upload: the empty folder in which its run works. Prefect reads settings from that folder, so that no name of an
upload may be in it."""
MOST_KEPT: Final = 100
"""Uploads of a lake; more are refused until some are removed."""
MOST_FORM: Final = 4 * 2**20
"""Bytes of the answer of the process that drafts."""
READERS: Final = 2
"""Tables that are read at once."""
_DRAFT_SECONDS, _DRAFT_SECONDS_A_MB = 300, 10
"""By the clock; the process has a limit of processor time of its own."""
_KILL_SECONDS: Final = 20
"""From a cancellation to the end by force."""
_TRIES: Final = 2
_ID = re.compile(r"[0-9a-f]{12}")
_MOST_NAME, _MOST_WORDS = 120, 2000
_KEPT: Final = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "VIRTUAL_ENV")
"""Variables that the process that drafts gets; secrets are in others."""
_ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
_KILLED: Final = (
    "the process of the audit ended without a word: it was ended from outside, or the machine had no memory left. "
    "Finished stages are kept"
)
_FULL: Final = (
    "the process of the audit ended, as the disk of {} is full; free some space, and run it again. Finished stages are "
    "kept"
)
_GONE: Final = "the process that reads the table ended ({how}): it is damaged, made to do harm, or too large"


@dataclass(frozen=True)
class Start:
    """An audit that a browser begins."""

    id: str
    file: str
    """Name of the table, without folders."""
    path: str
    """Of the table: from its own folder, or absolute where the operator named the folder of it."""
    size: int
    begun: str
    state: State = State.READING
    words: str = ""
    """Why it is refused, failed or stopped."""
    choices: Mapping[str, Any] = field(default_factory=lambda: {"settings": {}, "confirmed": []})
    sent: Mapping[str, Any] = field(default_factory=lambda: {"shown": {}, "answers": {}, "run": False})
    """The last form: the questions as they were shown, their answers, and whether to run after them."""
    changed: float = 0.0
    """Time of the last change of state; the queue goes by it."""
    pid: int = 0
    tries: int = 0
    cancelled: float = 0.0
    """When somebody cancelled the run; 0 before."""
    run: str = ""
    second: str = ""
    """Path of a second file of the same applications, as that of the table; empty: none."""
    part: str = ""
    """Sheet of a workbook, or file of a zip, that holds the table; empty: the only one, or the first."""


def safe_name(name: str) -> str:
    """A file name of a stranger without folders, control characters, and what a shell or a system reads otherwise."""
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2]
    letters = "".join(ch if ch.isalnum() or ch in " ._-()+" else "-" for ch in last if ch.isprintable())
    letters = letters.strip(" .-") or "table"
    stem, dot, ending = letters.rpartition(".")
    while len(letters.encode()) > _MOST_NAME:
        stem, ending = (stem[:-1], ending[:10]) if stem else ("", ending[:-1])
        letters = f"{stem}{dot}{ending}"
    return letters


# --------------------------------------------------------------------------------------------------------------------
# The folders, and what is begun, answered, run, cancelled and removed.


class Starts:
    """The audits that browsers begin on one lake."""

    def __init__(self, lake: Lake, at_once: int = 1, files: Path | None = None) -> None:
        """Nothing is read yet.

        Args:
            lake: in a directory of this machine.
            at_once: runs at the same time.
            files: folder of tables that the operator offers.

        Raises:
            SpecError: the lake is in an object store.
        """
        self.lake, self.root = lake, lake.root / FOLDER
        self._at_once, self._files = at_once, files
        self._readers = threading.Semaphore(READERS)
        self._reading: dict[str, subprocess.Popen[bytes] | None] = {}
        self._runs: dict[str, subprocess.Popen[bytes]] = {}
        self._ticking = threading.Lock()
        self._troubles: dict[str, str] = {}

    def listed(self) -> list[Start]:
        """All of them, the newest first."""
        names = [path.name for path in self.root.glob("*") if _ID.fullmatch(path.name)] if self.root.is_dir() else []
        starts = [start for name in names if (start := self.of(name)) is not None]
        return sorted(starts, key=lambda start: (start.begun, start.id), reverse=True)

    def of(self, name: str) -> Start | None:
        """The one of an id; None where there is none, or something else in its place."""
        folder = self.root / name
        if not _ID.fullmatch(name) or strange(self.lake.root, folder):
            return None
        document = _json(folder / "start.json")
        if not isinstance(document, dict) or document.get("id") != name:
            return None
        names = {entry.name for entry in fields(Start)}
        values = {key: value for key, value in document.items() if key in names}
        try:
            return Start(**{**values, "state": State(values["state"])})
        except (TypeError, KeyError, ValueError):
            return None

    def form(self, start: Start) -> dict[str, Any]:
        """The form of a draft; empty where there is none."""
        document = _json(self.root / start.id / "form.json")
        return document if isinstance(document, dict) else {}

    def spec(self, start: Start) -> bytes | None:
        """The spec without a question; None while there is none."""
        with suppress(OSError):
            return (self.root / start.id / SPEC).read_bytes()
        return None

    def progress(self, start: Start) -> dict[str, Any]:
        """What the run wrote of its progress; empty before its first stage."""
        document = _json(self.root / start.id / "progress.json")
        return document if isinstance(document, dict) else {}

    def trouble(self, start: Start) -> str:
        """What the disk refuses to an audit at work just now; empty where it takes all."""
        return self._troubles.get(start.id, "")

    def of_disk(self, error: OSError | InfrastructureError) -> str:
        """The message of a page where the disk of the lake refuses a file."""
        if isinstance(error, InfrastructureError):
            return str(error)
        why = error.strerror or type(error).__name__
        return f"the disk of {self.lake.location} takes nothing more ({why}); free some space, and try again"

    def ahead(self, start: Start) -> int:
        """How many runs come before it."""
        return sum(
            other.state is State.RUNNING or (other.state is State.QUEUED and other.changed < start.changed)
            for other in self.listed()
            if other.id != start.id
        )

    def offered(self) -> dict[str, int]:
        """Name -> bytes of the tables in the operator's folder, without links, folders and hidden files."""
        if self._files is None:
            return {}
        with suppress(OSError), os.scandir(self._files) as entries:
            files = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
            names = sorted((entry.name, entry.stat().st_size) for entry in files if not entry.name.startswith("."))
            return dict(names[:1000])
        return {}

    def require_room(self, size: int) -> None:
        """Refuse a table before it is written.

        Raises:
            SpecError: the lake has too many uploads.
            InfrastructureError: too little space is free.
        """
        if len(self.listed()) >= MOST_KEPT:
            raise SpecError(f"{MOST_KEPT} uploads lie in the lake already; remove some, and send the table again")
        self.lake.require_space(size, "an upload")

    @contextmanager
    def incoming(self) -> Iterator[Path]:
        """A new folder for a table that arrives; it goes where nothing is made of it."""
        folder = self.lake.storage.local / "tmp" / f"upload-{secrets.token_hex(6)}"
        try:
            folder.mkdir(mode=0o700, parents=True)
            (folder / TABLE).mkdir(mode=0o700)
            yield folder
        finally:
            clear(self.lake.root, folder)

    def begin(self, folder: Path, name: str, size: int, part: str = "", second: str = "") -> Start:
        """Begin an audit of the table that arrived in a folder of ``incoming``; the rest is as a start has it."""
        identifier = folder.name.removeprefix("upload-")
        start = Start(identifier, name, name, size, _now(), changed=time.time(), part=part, second=second)
        return self._begun(folder, start)

    def begin_offered(self, name: str, part: str = "", second: str = "") -> Start:
        """Begin an audit of a table of the operator's folder, where it lies.

        Raises:
            SpecError: the folder has no such table, or the second file is the table itself.
        """
        sizes, files = self.offered(), [name, second] if second else [name]
        if self._files is None or not set(files) <= sizes.keys():
            raise SpecError("the folder has no such table; choose one that is listed")
        if second == name:
            raise SpecError("the second file is the table itself; choose another one, or none")
        self.require_room(0)
        with self.incoming() as folder:
            identifier, size = folder.name.removeprefix("upload-"), sum(sizes[file] for file in files)
            place, *second_place = (str((self._files / file).resolve()) for file in files)
            start = Start(
                identifier, name, place, size, _now(), changed=time.time(), part=part, second="".join(second_place)
            )
            return self._begun(folder, start)

    def _begun(self, folder: Path, start: Start) -> Start:
        _write(folder / "start.json", asdict(start))
        self.root.mkdir(mode=0o700, exist_ok=True)
        folder.rename(self.root / start.id)
        self._draft(start.id)
        return start

    def answer(self, name: str, fingerprints: Mapping[str, str], answers: Mapping[str, str], *, run: bool) -> bool:
        """Draft again with the answers of a form, and run where no question is left and that is wanted.

        False where it has no questions by now; then nothing is taken.
        """
        sent = {"shown": dict(fingerprints), "answers": dict(answers), "run": run}
        if self._turn(name, (State.ASKING,), state=State.READING, sent=sent, tries=0) is None:
            return False
        self._draft(name)
        return True

    def queue(self, name: str) -> None:
        """Put a run into the queue."""
        if self._turn(name, MAY_RUN, state=State.QUEUED, words="", cancelled=0.0):
            self.look()

    def cancel(self, name: str) -> None:
        """Take a run out of the queue, or end it within seconds; what is finished of it is kept."""
        if self._turn(name, (State.QUEUED,), state=State.STOPPED, words="cancelled before it began"):
            return
        start = self._turn(name, (State.RUNNING,), cancelled=time.time())
        if start and start.pid and not self._is_free(name):  # else its number may be that of another process by now
            with suppress(ProcessLookupError, PermissionError):
                os.kill(start.pid, signal.SIGTERM)

    def remove(self, name: str) -> None:
        """Remove a table with its draft; its runs stay in the lake. One at work is left alone."""
        if (process := self._reading.get(name)) is not None:
            process.kill()
        with self.lake.lock("uploads"):
            start = self.of(name)
            if start is None or start.state in (State.QUEUED, State.RUNNING):
                return
            gone = self.lake.storage.local / "tmp" / f"removed-{name}-{secrets.token_hex(4)}"
            (self.root / name).rename(gone)
        clear(self.lake.root, gone)

    def _turn(
        self, name: str, states: tuple[State, ...], most_running: int | None = None, **changes: Any
    ) -> Start | None:
        """Change what is known of one that is in one of these states.

        None where it is in another one by now, or where ``most_running`` of the lake run, of whichever server.
        """
        with self.lake.lock("uploads"):
            start = self.of(name)
            if start is None or start.state not in states:
                return None
            if most_running is not None:
                running = sum(other.state is State.RUNNING for other in self.listed())
                if running >= most_running:
                    return None
            if changes.get("state", start.state) is not start.state:
                changes["changed"] = time.time()
            start = replace(start, **changes)
            _write(self.root / name / "start.json", asdict(start))
            self._troubles.pop(name, None)
            return start

    @contextmanager
    def _noting(self, name: str) -> Iterator[None]:
        """Note for the page of an audit what the disk refuses, and go on; it is tried again."""
        try:
            yield
        except (OSError, InfrastructureError) as error:
            self._troubles[name] = self.of_disk(error)

    def _is_free(self, name: str) -> bool:
        """Whether no process works on one."""
        with _flocked(self.root / name / "work.lock") as lock:
            return lock is not None

    # ----------------------------------------------------------------------------------------------------------------
    # Drafts, each in a process that has no network and no secret of this one.

    def _draft(self, name: str) -> None:
        if name not in self._reading:
            self._reading[name] = None
            threading.Thread(target=self._drafted, args=(name,), daemon=True).start()

    def _drafted(self, name: str) -> None:
        try:
            with self._noting(name), self._readers, _flocked(self.root / name / "work.lock") as lock:
                before = None if lock is None else self.of(name)
                start = before and self._turn(name, (State.READING,), tries=before.tries + 1)
                if start is None or lock is None:
                    return
                if start.tries > _TRIES:
                    self._take(start, {"error": "the server ended twice while it was read; send it again"})
                    return
                try:
                    self._take(start, self._asked(start, lock))
                except OSError as error:  # the words are less than a form
                    self._turn(name, (State.READING,), state=State.REFUSED, words=self.of_disk(error))
        finally:
            self._reading.pop(name, None)
        if name not in self._troubles:
            with suppress(OSError, InfrastructureError):
                self.look()

    def _asked(self, start: Start, lock: int) -> dict[str, Any]:
        """What the process that drafts answers; an error in words where it does not."""
        folder = self.root / start.id
        scratch = folder / "tmp"
        scratch.mkdir(mode=0o700, exist_ok=True)
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | _ONE_THREAD
        environment |= {"PYTHONPATH": str(Path(flows.__file__).parents[1]), "TMPDIR": str(scratch)}
        order = {"path": start.path, "second": start.second, "part": start.part, "choices": start.choices, **start.sent}
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "flows.cli.draft.apart"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
            cwd=folder / TABLE, pass_fds=(lock,), start_new_session=True,
        )  # fmt: skip
        self._reading[start.id] = process
        patience = threading.Timer(_DRAFT_SECONDS + _DRAFT_SECONDS_A_MB * start.size / 1e6, process.kill)
        patience.start()
        try:
            answer = _exchanged(process, json.dumps(order).encode())
        finally:
            patience.cancel()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with the readers that it started
            process.wait()
            shutil.rmtree(scratch, ignore_errors=True)
        try:
            document = json.loads(answer)
        except ValueError:
            code = process.returncode
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            return {"error": _GONE.format(how=how)}
        return document if isinstance(document, dict) else {"error": _GONE.format(how="no answer")}

    def _take(self, start: Start, answer: dict[str, Any]) -> None:
        """Keep what the process answered, and go on."""
        folder = self.root / start.id
        if "error" in answer:
            words = str(answer["error"])[:_MOST_WORDS]
            self._turn(start.id, (State.READING,), state=State.REFUSED, words=words)
            return
        spec = answer.pop("spec", None)
        _write(folder / "form.json", answer)
        changes: dict[str, Any] = {"choices": answer.get("choices", start.choices), "state": State.ASKING}
        if spec is not None:
            _write(folder / SPEC, str(spec))
            changes["state"] = State.QUEUED if start.sent.get("run") else State.READY
        self._turn(start.id, (State.READING,), **changes)

    # ----------------------------------------------------------------------------------------------------------------
    # Runs, a few at once, in the order in which they were queued.

    def watch(self) -> None:
        """Look every second, until the process ends."""

        def tick() -> None:
            while True:
                with suppress(OSError, InfrastructureError):
                    self.look()
                time.sleep(1.0)

        threading.Thread(target=tick, name="starts", daemon=True).start()

    def look(self) -> None:
        """See which runs ended, take up drafts that a server left, and begin the next runs of the queue."""
        if not self._ticking.acquire(blocking=False):
            return
        try:
            starts = [start for start in self.listed() if start.state in AT_WORK]
            for start in starts:
                with self._noting(start.id):
                    if start.state is State.READING and start.id not in self._reading and self._is_free(start.id):
                        self._draft(start.id)
                    if start.state is State.RUNNING:
                        self._settle(start)
            now = [start for start in map(self.of, (start.id for start in starts)) if start is not None]
            running = sum(start.state is State.RUNNING for start in now)
            queued = sorted((s for s in now if s.state is State.QUEUED), key=lambda start: (start.changed, start.id))
            for start in queued[: max(0, self._at_once - running)]:  # another server may take a place first
                with self._noting(start.id):
                    self._run(start.id)
        finally:
            self._ticking.release()

    def _settle(self, start: Start) -> None:
        """Note how a run ended, or end one by force that was cancelled and goes on."""
        process = self._runs.get(start.id)
        if process is not None and process.poll() is not None:
            self._runs.pop(start.id, None)
        if not self._is_free(start.id):
            if start.cancelled and time.time() - start.cancelled > _KILL_SECONDS and start.pid:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(start.pid, signal.SIGKILL)
            return
        folder = self.root / start.id
        lines = _text(folder / "out.txt").splitlines()
        run = next((line.split()[1] for line in lines if line.startswith("run ") and len(line.split()) > 1), "")
        if run:
            self._turn(start.id, (State.RUNNING,), state=State.DONE, run=run, words="")
        elif start.cancelled:
            self._turn(start.id, (State.RUNNING,), state=State.STOPPED, words="cancelled; finished stages are kept")
        else:
            # the message of the command, without examples of cells, which are for a terminal alone
            _, mark, message = _text(folder / "log.txt").rpartition("evenhand: ")
            message_lines = [line for line in message.splitlines() if mark and not line.startswith("  ")]
            words = "\n".join(message_lines)[:_MOST_WORDS].strip() or (
                _FULL.format(self.lake.location) if self._is_full() else _KILLED
            )
            self._turn(start.id, (State.RUNNING,), state=State.FAILED, words=words)

    def _is_full(self) -> bool:
        """Whether the disk has no room for the words of a run."""
        return shutil.disk_usage(self.root).free < _MOST_WORDS

    def _run(self, name: str) -> None:
        """Begin the process of a run, which outlives the server, unless as many run as may."""
        folder = self.root / name
        begun: dict[str, Any] = {"state": State.RUNNING, "pid": 0, "cancelled": 0.0}
        with _flocked(folder / "work.lock") as lock:
            if lock is None or self._turn(name, (State.QUEUED,), self._at_once, **begun) is None:
                return
            (folder / "progress.json").unlink(missing_ok=True)
            words = ["audit", str(folder / SPEC), "--lake", self.lake.location, "--quiet"]
            environment = {**os.environ, "PYTHONPATH": str(Path(flows.__file__).parents[1]), "EVENHAND_GRACE": "0"}
            try:
                (folder / WORK).mkdir(mode=0o700, exist_ok=True)
                with _private(folder / "out.txt") as out, _private(folder / "log.txt") as log:
                    process = subprocess.Popen(  # noqa: S603 our own words
                        [sys.executable, "-P", "-m", "flows.cli", *words, "--progress", str(folder / "progress.json")],
                        stdin=subprocess.DEVNULL, stdout=out, stderr=log, env=environment, cwd=folder / WORK,
                        pass_fds=(lock,), start_new_session=True,
                    )  # fmt: skip
            except OSError as error:
                self._turn(name, (State.RUNNING,), state=State.FAILED, words=self.of_disk(error))
                return
            self._runs[name] = process
            start = self._turn(name, (State.RUNNING,), pid=process.pid)
            if start is not None and start.cancelled:  # before its number was known
                process.terminate()


@contextmanager
def _flocked(path: Path) -> Iterator[int | None]:
    """Hold the lock of a file; gives its descriptor, which a child process keeps, or None where another holds it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError:  # the folder was removed
        yield None
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield descriptor
    finally:
        os.close(descriptor)


def _exchanged(process: "subprocess.Popen[bytes]", order: bytes) -> bytes:
    """What a process answers to an order; what is beyond the bound is not read."""
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 it was started with pipes
    with process.stdout:
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(order)
        answer = process.stdout.read(MOST_FORM + 1)
        if len(answer) > MOST_FORM:
            return b'{"error": "the table has too many columns for a page; draft it with evenhand init on a terminal"}'
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)  # its own exit code, before it is ended
        return answer


def _private(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb")


def _write(path: Path, document: Mapping[str, Any] | str) -> None:
    """Replace a file by another one, whole: a text, or a document as JSON."""
    text = document if isinstance(document, str) else json.dumps(document, ensure_ascii=False)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        with _private(draft) as file:
            file.write(text.encode("utf-8", "surrogatepass"))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _json(path: Path) -> Any:
    with suppress(OSError, ValueError):
        return json.loads(path.read_bytes())
    return None


def _text(path: Path) -> str:
    """The end of a file."""
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 2**16))
        return file.read().decode("utf-8", "replace")
    return ""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
