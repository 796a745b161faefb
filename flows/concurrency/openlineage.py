"""Events of OpenLineage for a run and its stages: made of the lake's records, sent by a thread.

Each stage gives START when it begins, and COMPLETE once its partition is published; FAIL where it failed, ABORT where
the run was stopped. Ids are derived from run, stage and the time at which the run began, so that ``events_again`` makes
the same events of a finished run; a stage that was taken from the lake has the facet ``evenhand_reused``. The events
are plain JSON by the specification 2-0-2 and its facets: the client library would take a second to load, send from a
thread of its own and raise where no receiver answers.

Never in an event: rows and values, filters of a spec, what an expectation expected, words of errors. Numbers of rows
are rounded as in logs, and sizes of files left out, but for published tables.
"""

import hashlib
import json
import logging
import os
import stat
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any, Final, Protocol
from uuid import UUID

import yaml

from flows.outcome.conclusion import NAMES
from flows.outcome.ending import roughly
from flows.runs.index import began_at, commit, read_manifest
from flows.runs.lake_settings import Lineage, lake_settings
from schemas.artifact import Artifact, Partition
from schemas.errors import EvenhandError, SpecError, TooLittleEvidenceError
from schemas.table import Table
from schemas.tables.applications import APPLICATIONS, REFUSAL_COUNTS, REFUSALS, SOURCE_READ, VALIDATIONS
from schemas.terms import ExitCode
from tasks.lake.store import Lake
from tasks.plan import STAGES, Plan

log = logging.getLogger("evenhand")

Event = dict[str, Any]

# --------------------------------------------------------------------------------------------------------------------
# Events of one run, from what a stage declares and what its partition records.


NAMESPACE: Final = "evenhand"
"""Of all jobs."""
_SPECIFICATION: Final = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS: Final = {
    "parent": "1-2-0/ParentRunFacet",
    "nominalTime": "1-0-1/NominalTimeRunFacet",
    "processing_engine": "1-1-1/ProcessingEngineRunFacet",
    "errorMessage": "1-0-1/ErrorMessageRunFacet",
    "jobType": "2-0-4/JobTypeJobFacet",
    "documentation": "1-1-0/DocumentationJobFacet",
    "sourceCodeLocation": "1-1-0/SourceCodeLocationJobFacet",
    "schema": "1-2-0/SchemaDatasetFacet",
    "version": "1-0-1/DatasetVersionDatasetFacet",
    "dataSource": "1-0-1/DatasourceDatasetFacet",
    "columnLineage": "1-2-0/ColumnLineageDatasetFacet",
    "dataQualityAssertions": "1-1-0/DataQualityAssertionsDatasetFacet",
    "inputStatistics": "1-0-0/InputStatisticsInputDatasetFacet",
    "outputStatistics": "1-0-2/OutputStatisticsOutputDatasetFacet",
}
"""Facet -> its version and name in the specification; all others are our own."""
_STEP_OF_COLUMNS: Final = "preprocess"
"""The stage whose tables have columns that are those of the applications."""
ABORT, COMPLETE, FAIL, START = "ABORT", "COMPLETE", "FAIL", "START"


@cache
def _version() -> str:
    return version("evenhand")


def _facets(**contents: Mapping[str, Any] | None) -> dict[str, Any]:
    """Facets by their names, each with its producer and the URL of its schema; None: none."""
    facets = {}
    for name, content in contents.items():
        if content is not None:
            standard = _FACETS.get(name, "")
            place = f"https://openlineage.io/spec/facets/{standard}.json#/$defs/{standard.split('/')[-1]}"
            facets[name] = {
                "_producer": f"urn:evenhand:{_version()}",
                "_schemaURL": place if standard else f"urn:evenhand:facets:1:{name}",
                **content,
            }
    return facets


def _instant(seconds: float) -> str:
    """Seconds since 1970 as a time in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass
class RunEvents:
    """Makes the events of one run, in the order in which its stages begin and end."""

    lake: Lake
    audit: str
    year: int
    run: str
    started: str
    """When the run began, as its manifest has it."""
    source_kind: str
    code: str
    """Digest of the code of its stages."""
    commit: str
    """Of the checkout that ran it; empty where the code was installed."""
    assertions: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    """Path of a table -> what it was checked for."""

    @classmethod
    def of(cls, lake: Lake, planned: Plan) -> "RunEvents":
        """For a run that begins."""
        spec = planned.spec
        kind = str(spec.source.kind)
        return cls(lake, spec.name, spec.year, planned.run, planned.started, kind, planned.code, commit())

    @property
    def began(self) -> float:
        """When the run began, in seconds since 1970."""
        return datetime.fromisoformat(self.started).timestamp()

    def event(self, kind: str, step: str, when: float, **parts: Any) -> Event:
        """An event of a step; of the run as a whole where the step is empty.

        Args:
            kind: START, COMPLETE, FAIL or ABORT.
            step: name of the step.
            when: seconds since 1970.
            parts: ``run`` and ``job`` with facets, ``inputs`` and ``outputs``.
        """
        parent = {"run": {"runId": self._id("")}, "job": {"namespace": NAMESPACE, "name": self.audit}}
        years = {
            f"nominal{end}Time": f"{self.year + later}-01-01T00:00:00Z" for end, later in (("Start", 0), ("End", 1))
        }
        run_facets = {
            "nominalTime": years,
            "processing_engine": {"version": _version(), "name": "Evenhand"},
            "parent": {**parent, "root": parent} if step else None,
        }
        job_type = {"processingType": "BATCH", "integration": "EVENHAND", "jobType": "STAGE" if step else "AUDIT"}
        declared = (STAGES[step.split(" ")[0]].function.__doc__ or "").split("\n")[0] if step else "Audit of one year."
        kind_of_code, code = ("git", self.commit) if self.commit else ("package", self.code)
        # no address of either is known: the facet's URL is a name
        location = {"type": kind_of_code, "url": f"urn:evenhand:{kind_of_code}:{code}", "version": code}
        job_facets = {
            "jobType": job_type,
            "documentation": {"description": declared},
            "sourceCodeLocation": location,
        }
        return {
            "eventType": kind,
            "eventTime": _instant(when),
            "producer": f"urn:evenhand:{_version()}",
            "schemaURL": _SPECIFICATION,
            "run": {"runId": self._id(step), "facets": _facets(**run_facets, **parts.get("run", {}))},
            "job": {
                "namespace": NAMESPACE,
                "name": f"{self.audit}.{step.replace(' ', '.')}" if step else self.audit,
                "facets": _facets(**job_facets),
            },
            "inputs": parts.get("inputs", []),
            "outputs": parts.get("outputs", []),
        }

    def ended(self, step: str, partition: Partition, when: float | None = None) -> Event:
        """The COMPLETE of a step, from the records of its partition.

        Args:
            step: its name.
            partition: what it wrote.
            when: of a step that was taken from the lake: the time, in seconds since 1970.
        """
        record = self.lake.lineage(partition)
        ended_at = (record["started"] + record["seconds"]) if when is None else when
        stage = STAGES[partition.stage]
        artifacts = [Artifact.model_validate(entry) for entry in record["inputs"]]
        declared = {table.name: table for table in (*stage.reads, *stage.writes, REFUSALS, REFUSAL_COUNTS, VALIDATIONS)}
        inputs = [self._input(artifact, declared.get(artifact.table)) for artifact in artifacts]
        if not stage.reads:
            # what was read: the names of its files, or its edition in words
            name = self.lake.read(partition.table(SOURCE_READ.name), ["source"])["source"][0].as_py()
            inputs.append({"namespace": f"{NAMESPACE}.{self.source_kind}", "name": name, "facets": {}})
        outputs = [self._output(artifact, declared.get(artifact.table)) for artifact in partition.tables]
        if step == _STEP_OF_COLUMNS:
            self._trace_columns(artifacts, [*zip(partition.tables, outputs, strict=True)], declared)
        if partition.stage == "report":
            outputs.append({"namespace": self._namespace, "name": f"reports/{self.run}", "facets": self._home()})
        self._keep_assertions(partition, declared)
        rows = {name: roughly(record["rows"][name]) for name in ("in", "out")}
        facets = {
            "evenhand_rows": {**rows, "refused": self._refused(partition, record["rows"]["refused"])},
            "evenhand_reused": {"key": partition.key} if partition.reused else None,
        }
        return self.event(COMPLETE, step, ended_at, run=facets, inputs=inputs, outputs=outputs)

    @property
    def _namespace(self) -> str:
        """Of the tables of the lake: its URI."""
        location = self.lake.location
        return location if "://" in location else Path(location).as_uri()

    def _id(self, step: str) -> str:
        digest = hashlib.sha256("\n".join((self.run, step, self.started)).encode()).digest()
        return str(UUID(bytes=digest[:16], version=5))

    def _home(self) -> dict[str, Any]:
        return _facets(dataSource={"name": "lake", "uri": self._namespace})

    def _dataset(self, artifact: Artifact, table: Table | None) -> dict[str, Any]:
        """A table of the lake. Of a restricted one the version is the key of its stage.

        Whoever knows all rows but one could try them all against the digest of such a table.
        """
        parts = artifact.path.split("/")
        is_restricted = table is None or table.restricted or table.per_application
        facets = _facets(
            version={"datasetVersion": parts[2] if is_restricted else artifact.sha256},
            evenhand_restricted={"restricted": True} if is_restricted else None,
        )
        name = artifact.path.removesuffix(".parquet")
        return {"namespace": self._namespace, "name": name, "facets": {**facets, **self._home()}}

    def _input(self, artifact: Artifact, table: Table | None) -> dict[str, Any]:
        checked = self.assertions.get(artifact.path)
        facets = _facets(
            inputStatistics={"rowCount": _rows(artifact, table)},
            dataQualityAssertions={"assertions": checked} if checked else None,
        )
        return {**self._dataset(artifact, table), "inputFacets": facets}

    def _output(self, artifact: Artifact, table: Table | None) -> dict[str, Any]:
        file = self.lake.storage.local / artifact.path  # none where the lake is elsewhere
        size = {"size": file.stat().st_size} if _is_published(table) and file.is_file() else {}
        fields = [
            {"name": column.name, "type": column.type, "description": column.description}
            for column in (table.columns if table is not None else ())
        ]
        dataset = self._dataset(artifact, table)
        dataset["facets"] |= _facets(schema={"fields": fields} if fields else None)
        return {**dataset, "outputFacets": _facets(outputStatistics={"rowCount": _rows(artifact, table), **size})}

    def _trace_columns(
        self,
        inputs: Sequence[Artifact],
        outputs: Sequence[tuple[Artifact, dict[str, Any]]],
        declared: Mapping[str, Table],
    ) -> None:
        """Add to each output which of its columns are columns of the applications, by the one declaration of both."""
        source = next((artifact for artifact in inputs if artifact.table == APPLICATIONS.name), None)
        for artifact, dataset in outputs if source is not None else ():
            table = declared.get(artifact.table)
            same = [column for column in (table.columns if table else ()) if column in APPLICATIONS.columns]
            if source is not None and same and table is not None and table.per_application:
                name = {"namespace": self._namespace, "name": source.path.removesuffix(".parquet")}
                step = [{"type": "DIRECT", "subtype": "IDENTITY"}]
                fields = {
                    column.name: {"inputFields": [{**name, "field": column.name, "transformations": step}]}
                    for column in same
                }
                dataset["facets"] |= _facets(columnLineage={"fields": fields})

    def _keep_assertions(self, partition: Partition, declared: Mapping[str, Table]) -> None:
        """Keep what the tables of a partition were checked for: stages that read them print it as of their inputs."""
        results = self.lake.read(partition.table(VALIDATIONS.name)).to_pylist()
        for artifact in partition.tables:
            table = declared.get(artifact.table)
            columns = {column.name for column in table.columns} if table else set()
            self.assertions[artifact.path] = [
                {
                    "assertion": row["expectation"],
                    "success": row["success"],
                    **({"column": row["column"]} if row["column"] in columns else {}),
                }
                for row in results
                if row["table"] == artifact.table
            ]

    def _refused(self, partition: Partition, total: int) -> dict[str, int]:
        """Refused rows in all and by reason."""
        by_reason: dict[str, int] = {}
        if any(artifact.table == REFUSAL_COUNTS.name for artifact in partition.tables):
            rows = self.lake.read(partition.table(REFUSAL_COUNTS.name)).to_pylist()
            first = rows[0]["protected_attribute"] if rows else ""
            for row in rows:  # each row is counted once for every attribute
                if row["protected_attribute"] == first:
                    by_reason[row["reason"]] = by_reason.get(row["reason"], 0) + row["n"]
        return {"all": roughly(total), **{reason: roughly(n) for reason, n in sorted(by_reason.items())}}


def _rows(artifact: Artifact, table: Table | None) -> int:
    return artifact.rows if _is_published(table) else roughly(artifact.rows)


def _is_published(table: Table | None) -> bool:
    return table is not None and table.name.startswith("published_")


def events_again(lake: Lake, run: str) -> Iterator[Event]:
    """All events of a finished run, in the order of its plan: the same at every call.

    The times are those that the lake recorded: START of a stage is at most seconds later than the one that was sent.

    Raises:
        SpecError: the lake holds no such run, or an earlier version made it.
        IntegrityError: a record is not the one that was written.
    """
    manifest = read_manifest(lake, run)
    steps = manifest.get("steps")
    if steps is None:
        raise SpecError(f"run {run} was made by a version that kept no names of its steps; run that audit again")
    kind = str(manifest["spec"]["source"]["kind"])
    made_by = (manifest["code"], str(manifest.get("commit", "")))
    events = RunEvents(lake, manifest["dataset"], int(manifest["year"]), run, began_at(manifest), kind, *made_by)
    yield events.event(START, "", events.began)
    last = events.began
    for step, entry in zip(steps, manifest["partitions"], strict=True):
        partition = Partition.model_validate({**entry, "reused": step["reused"]})
        began = events.began if partition.reused else float(lake.lineage(partition)["started"])
        ended = events.ended(step["name"], partition, events.began if partition.reused else None)
        yield events.event(START, step["name"], began)
        yield ended
        last = max(last, datetime.fromisoformat(ended["eventTime"]).timestamp())
    yield events.event(COMPLETE, "", last)


# --------------------------------------------------------------------------------------------------------------------
# Where events go, and a thread that sends them: no failure of a receiver reaches the run.


DISABLED, URL, CONFIG, KEY, ENDPOINT = (
    "OPENLINEAGE_DISABLED",
    "OPENLINEAGE_URL",
    "OPENLINEAGE_CONFIG",
    "OPENLINEAGE_API_KEY",
    "OPENLINEAGE_ENDPOINT",
)
_DEFAULT_ENDPOINT: Final = "api/v1/lineage"
_MOST_FAILURES: Final = 3
"""Failures in a row after which a sender stops trying."""
NOTHING_SENT: Final = "0 made, 0 sent"
"""Line of the manifest where events were asked for and could not be made or sent."""
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
"""Hosts that are this machine, as the client names them."""


@dataclass(frozen=True)
class Target:
    """Where events are sent."""

    transport: str
    place: str = field(default="", repr=False)
    """Path of a file, or the whole URL of a receiver, which may hold a password."""
    timeout: float = 2
    """Seconds that one event may take as a whole."""
    key: str = field(default="", repr=False)
    below: str = ""
    """Folder that the file has to lie in, and no link on the way to it; empty: anywhere."""

    def deliver(self, event: Event) -> None:
        """Send one event.

        Raises:
            OSError: the file cannot be written, or the receiver did not answer in time.
            httpx.HTTPError: the receiver cannot be reached, or answers with an error.
        """
        line = json.dumps(event, sort_keys=True)
        if self.transport == "console":
            sys.stderr.write(f"{line}\n")
        elif self.transport == "file":
            with os.fdopen(self._opened(), "ab", buffering=0) as file:
                kind = os.fstat(file.fileno())
                if self.below and not (stat.S_ISREG(kind.st_mode) and kind.st_nlink == 1):
                    raise OSError(f"{self.place} is a link, a pipe or a device")
                file.write(f"{line}\n".encode())  # one write: lines of several processes do not mix
        else:
            self._post(line.encode())

    def _opened(self) -> int:
        """The file, opened to append; of one that has to lie below a folder each step is opened without its links."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        if not self.below:
            Path(self.place).parent.mkdir(parents=True, exist_ok=True)
            return os.open(self.place, flags, 0o600)
        *names, last = Path(self.place).parts
        folder = os.open(self.below, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for name in names:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=folder)
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                os.close(folder)
                folder = inner
            return os.open(last, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600, dir_fd=folder)
        finally:
            os.close(folder)

    def _post(self, content: bytes) -> None:
        """Post within the time as a whole, and look at the status alone: an answer may be without an end."""
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        client, faults = _client(), list[Exception]()

        def work() -> None:
            try:
                with client.stream(
                    "POST", self.place, timeout=self.timeout, content=content, headers=headers
                ) as answer:
                    answer.raise_for_status()
            except Exception as error:
                faults.append(error)

        # The client bounds each read, but not their number: a head may come byte by byte.
        thread = Thread(target=work, name="lineage-post", daemon=True)
        thread.start()
        thread.join(self.timeout)
        if thread.is_alive():
            _client.cache_clear()
            client.close()  # the next byte ends the thread
            raise TimeoutError(f"no answer within {self.timeout:g} s")
        if faults:
            raise faults[0]


@cache
def _client() -> Any:
    """One client of a process: each new one reads the certificates of the system. A loopback needs no proxy."""
    import httpx

    logging.getLogger("httpx").setLevel(logging.WARNING)  # it writes whole addresses, passwords in them too
    return httpx.Client(mounts=dict.fromkeys(("all://localhost", "all://127.0.0.1", "all://[::1]")))


def http_target(url: str, timeout: float = 2, endpoint: str = "", key: str = "") -> Target:
    """A receiver at a URL; without a path it is the one of Marquez and of OpenLineage's own client.

    Raises:
        SpecError: there is a key or a password, and the URL leads elsewhere without TLS.
    """
    endpoint = endpoint or os.environ.get(ENDPOINT, "") or _DEFAULT_ENDPOINT
    has_path = "/" in url.split("://", 1)[-1].rstrip("/")
    if key and not _is_sealed(url):
        raise SpecError(f"a key is not sent without TLS: give the receiver an https URL, or unset {KEY}")
    if "@" in _authority(url) and not _is_sealed(url):
        raise SpecError("a password is not sent without TLS: give the receiver of lineage an https URL")
    return Target("http", url if has_path else f"{url.rstrip('/')}/{endpoint}", timeout, key)


def _authority(url: str) -> str:
    return url.split("://", 1)[-1].split("/", 1)[0]


def host_of(url: str) -> str:
    """The host and port of a URL, for messages: all else of it may be secret."""
    return _authority(url).rpartition("@")[2].partition("?")[0].partition("#")[0]


def _is_sealed(url: str) -> bool:
    """Whether a URL is encrypted on its way or on this machine alone, as the client reads that URL."""
    import httpx

    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return False
    return parsed.scheme == "https" or (parsed.scheme == "http" and parsed.host in _LOOPBACK)


def target_of(lake: Lake) -> Target | None:
    """Where events of a lake are sent: by OpenLineage's own variables, else by the lake's settings; None: nowhere.

    Whoever wrote the settings of a lake may be another than who audits in it: such a receiver is given no key, and such
    a file lies in the lake.

    Raises:
        SpecError: the settings or the file of the variable are not usable.
    """
    if os.environ.get(DISABLED, "").lower() in ("true", "1"):
        return None
    if os.environ.get(URL):
        return http_target(os.environ[URL], key=os.environ.get(KEY, ""))
    if os.environ.get(CONFIG):
        return configured_target(Path(os.environ[CONFIG]))
    settings = lake_settings(lake.storage).lineage
    if settings is None:
        return None
    if settings.transport == "console":
        return Target("console", timeout=settings.timeout)
    if settings.transport == "http":
        return http_target(settings.url, settings.timeout)
    path = Path(settings.path)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise SpecError(f"lineage.path of the lake is {settings.path!r}; name a file below the lake, without '..'")
    return Target("file", str(path), settings.timeout, below=str(lake.storage.local))


def configured_target(path: Path) -> Target:
    """The transport of a file of OpenLineage's own client: console, file or http, within the bounds of ``Lineage``.

    Raises:
        SpecError: it cannot be read, names another transport, or has a key for a URL without TLS.
    """
    try:
        transport = yaml.safe_load(path.read_text())["transport"]
        kind, auth = transport["type"], transport.get("auth") or {}
        if kind in ("console", "file", "http"):
            place = {"file": "log_file_path", "http": "url"}.get(kind, "")
            bounded = Lineage.model_validate(
                {
                    "transport": kind,
                    {"http": "url"}.get(kind, "path"): transport[place] if place else "",
                    "timeout": transport.get("timeout", 2),
                }
            )
            if kind != "http":
                return Target(kind, bounded.path, bounded.timeout)
            key = str(auth.get("apiKey", "")) or os.environ.get(KEY, "")
            return http_target(bounded.url, bounded.timeout, str(transport.get("endpoint", "")), key)
    except SpecError:
        raise
    except Exception as error:  # whatever it is: words of the file may be secret
        raise SpecError(f"{CONFIG}: {path} is no file of OpenLineage ({type(error).__name__})") from error
    raise SpecError(f"{CONFIG}: {path} names another transport; give console, file or http")


class Sender:
    """Sends events from a thread; it counts what it cannot send, and warns once."""

    def __init__(self, target: Target) -> None:
        """Send to a target; the thread ends with ``close`` or with the process."""
        self.made, self.sent, self.fault = 0, 0, ""
        self._target, self._queue = target, Queue[Event | None]()
        self._thread = Thread(target=self._work, name="lineage", daemon=True)
        self._thread.start()

    def send(self, event: Event) -> None:
        """Hand an event over; it returns at once."""
        self.made += 1
        self._queue.put(event)

    def close(self) -> str:
        """Wait for what is left, at most the time of the target; returns how many were made and sent."""
        self._queue.put(None)
        self._thread.join(self._target.timeout)
        words = f"{self.made} made, {self.sent} sent"
        if self.sent < self.made:
            why = self.fault or f"no answer within {self._target.timeout:g} s"
            log.warning("lineage: %s (%s); `evenhand lineage RUN` sends them again", words, why)
        return words

    def _work(self) -> None:
        failures = 0
        for event in iter(self._queue.get, None):
            if failures < _MOST_FAILURES:
                try:
                    self._target.deliver(event)
                except Exception as error:  # whatever it is, the run goes on
                    self.fault, failures = type(error).__name__, failures + 1
                else:
                    self.sent, failures = self.sent + 1, 0


# --------------------------------------------------------------------------------------------------------------------
# A run at work, told stage by stage.


class Watcher(Protocol):
    """What the loop of ``flows.execution`` informs of its stages."""

    def began(self, at: int, at_work: Sequence[str]) -> None:
        """A stage begins."""

    def ended(self, at: int, partition: Partition, message: str) -> None:
        """A stage has ended."""


class Followed:
    """A watcher that hands all on to another one, and sends events of what it sees."""

    def __init__(self, planned: Plan, inner: Watcher, sender: Sender | None, events: RunEvents) -> None:
        """Without a sender nothing is made."""
        self._names = [step.name for step in planned.steps]
        self._inner, self._sender, self._events = inner, sender, events
        self._at_work: list[str] = []
        self.summary = ""
        """How many events were made and sent, once the run has ended; empty where none are asked for."""

    def began(self, at: int, at_work: Sequence[str]) -> None:
        """Send START."""
        self._inner.began(at, at_work)
        self._at_work.append(self._names[at])
        self._send(START, self._names[at])

    def ended(self, at: int, partition: Partition, message: str) -> None:
        """Send COMPLETE."""
        if self._sender is not None:
            try:
                when = time.time() if partition.reused else None
                self._sender.send(self._events.ended(self._names[at], partition, when))
            except Exception as error:  # of a record that cannot be read the run itself says more
                log.warning("lineage: no event of the stage %s: %s", self._names[at], type(error).__name__)
        if self._names[at] in self._at_work:
            self._at_work.remove(self._names[at])
        self._inner.ended(at, partition, message)

    def start(self) -> None:
        """Send START of the run."""
        self._send(START, "")

    def finish(self, kind: str = COMPLETE, why: str = "") -> None:
        """Send how the run ended, and how the stages did that are still at work."""
        error = {"errorMessage": {"message": why, "programmingLanguage": "Python"}} if kind == FAIL else {}
        for name in [*self._at_work, ""]:
            self._send(kind, name, run=error)
        if self._sender is not None:
            try:
                self.summary = self._sender.close()
            except Exception as error:  # whatever it is, the run goes on
                self.summary = NOTHING_SENT
                log.warning("lineage: the end was not waited for: %s", type(error).__name__)

    def _send(self, kind: str, step: str, **parts: Any) -> None:
        if self._sender is not None:
            try:
                self._sender.send(self._events.event(kind, step, time.time(), **parts))
            except Exception as error:
                log.warning("lineage: no %s of %s: %s", kind, step or "the run", type(error).__name__)


@contextmanager
def followed(lake: Lake, planned: Plan, watcher: Watcher) -> Iterator[Followed]:
    """Send events of a run while the block runs its stages; the block hands on what it yields as its watcher."""
    sender, summary = None, ""
    try:
        target = target_of(lake)
        sender = None if target is None else Sender(target)
    except Exception as error:  # whatever it is, the run goes on
        log.warning("lineage: nothing is sent: %s", error if isinstance(error, EvenhandError) else type(error).__name__)
        summary = NOTHING_SENT
    watching = Followed(planned, watcher, sender, RunEvents.of(lake, planned))
    watching.summary = summary
    watching.start()
    try:
        yield watching
    except TooLittleEvidenceError:  # which is no failure
        watching.finish()
        raise
    except Exception as error:
        code = error.exit_code if isinstance(error, EvenhandError) else ExitCode.INFRASTRUCTURE
        watching.finish(FAIL, NAMES[code].value)
        raise
    except BaseException:
        watching.finish(ABORT)
        raise
    watching.finish()
