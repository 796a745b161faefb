"""Runs of a lake by audit and year, their manifests, and the list of runs."""

import hashlib
import json
import logging
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from schemas.artifact import Artifact, Partition
from schemas.audit.partition import ALL, slug
from schemas.errors import IntegrityError, SpecError, nearest
from schemas.questions import QUESTIONS, row_now, spec_now, state_now
from schemas.tables.verdicts import PREFIX
from schemas.terms import State
from schemas.vintages import words_of
from tasks.lake import log
from tasks.lake.storage import Storage, mapping_of
from tasks.lake.store import Lake

# --------------------------------------------------------------------------------------------------------------------
# Manifest of a run: reads it, verifies its seal, and finds the run's records and report.


PUBLIC = "published"
"""Profile of disclosure of rows that anyone may download: nothing is withheld."""
LIST = "files.json"
"""Name of the list of files that were made after a run."""


def read_manifest(lake: Lake, run: str) -> dict[str, Any]:
    """The manifest of a run.

    Raises:
        SpecError: the lake holds no such run.
        IntegrityError: it is not the manifest that was written.
    """
    path = f"runs/{run}/manifest.json"
    sealed = None if "/" in run else lake.storage.read(path)
    if sealed is None:
        run_names = [p.split("/")[1] for p in lake.storage.glob("runs/*/manifest.json")]
        raise SpecError(f"the lake {lake.location} holds no run {run!r}; {nearest(run, run_names)}")
    where = lake.storage.where(path)
    try:
        content = mapping_of(sealed)
        written = content.pop("sha256")
    except (ValueError, KeyError) as error:
        raise IntegrityError(f"{where} cannot be read as a manifest; run that audit again to rewrite it") from error
    if written != digest(content) or content.get("run") != run:
        raise IntegrityError(f"{where} is not the manifest that was written; run that audit again to rewrite it")
    return content


def began_at(manifest: Mapping[str, Any]) -> str:
    """When a run began; earlier versions recorded its end alone."""
    return str(manifest.get("started") or manifest["finished"])


@cache
def commit() -> str:
    """Commit of the Git checkout that this code lies in, with ``-dirty`` where files differ; empty outside of one."""
    checkout = Path(__file__).parents[2]
    if not (checkout / ".git").exists():  # a checkout around it is of something else
        return ""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        described = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=10)  # noqa: S603 our own words
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return described.stdout.strip()


def digest(content: Mapping[str, Any]) -> str:
    """The seal of a manifest's content, or of a spec: its sha256, independent of the order of the keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def report_of(lake: Lake, run: str) -> tuple[Storage, str]:
    """Storage and folder of a run's report: in the lake, or in the folder next to it if an earlier version wrote it."""
    inside, former = f"reports/{run}", former_reports(lake)
    is_inside = lake.storage.exists(inside) or not former.exists(run)
    return (lake.storage, inside) if is_inside else (former, run)


def report_named(lake: Lake, run: str, manifest: Mapping[str, Any]) -> tuple[Storage, str]:
    """Storage and folder of the report that a manifest names.

    Only a manifest of an earlier version accepts the former place: a copy of the lake must be whole by itself.
    """
    return (lake.storage, f"reports/{run}") if "records" in manifest else report_of(lake, run)


def former_reports(lake: Lake) -> Storage:
    """The folder next to the lake where earlier versions exported reports, each into the folder of its run."""
    return lake.storage.beside("reports")


def made_later(run: str) -> str:
    """Path of the list of a run's files that were made after it: no manifest names it, nor the files."""
    return f"reports/{run}/{LIST}"


def places_path(run: str) -> str:
    """Path of the record of where the files of a run's spec lie.

    It is no part of the run, whose folder may be handed on: paths of this machine stay in the house.
    """
    return f"places/{run}.json"


def record_of(partition: Partition) -> str:
    """Path of the record that names a partition's tables and files."""
    return f"stages/{partition.stage}/{partition.key}/partition.json"


# --------------------------------------------------------------------------------------------------------------------
# Index of the runs in a lake, by audit and year, with their protection.
#
# A protected run is one that somebody has published or relies on. A back-fill skips its year unless it is forced. The
# mark is stored next to the manifest, which is sealed. No run overwrites the files of another: a change of source,
# spec, code or libraries changes the keys.


@dataclass(frozen=True)
class Run:
    """A finished run, by its manifest."""

    run: str
    audit: str
    year: int
    state: str
    finished: str
    source_sha256: str
    code: str
    versions: Mapping[str, str]
    spec: Mapping[str, Any]
    """As it was then: a later version may take other keys."""
    partitions: tuple[Partition, ...]
    lineage: tuple[Mapping[str, Any], ...]
    """What each partition cost, in the same order."""
    protected: bool
    partition: Mapping[str, str] | None = None
    """Column and value of the rows that it is about, of an audit with ``by``; None of one without."""
    source_summary: Mapping[str, Any] | None = None
    """What was read, as published; an earlier version did not keep it."""
    number: int = 0
    """Of its entry in the lake's log: the order of runs. 0 of an earlier version that kept no log, and of a run that
    was read by itself."""

    @property
    def vintage(self) -> str:
        """The edition of the year's data: as the lake holds it, else the digest of its file."""
        return vintage_words(self.spec["source"]) or f"sha256 {self.source_sha256[:12]}"

    @property
    def value(self) -> str:
        """The partition that it is about; ``ALL`` of every row, with ``by`` or without."""
        return self.partition["value"] if self.partition else ALL

    @property
    def rows(self) -> int:
        """Rows of the source."""
        return int(self.lineage[0]["rows"]["in"])

    @property
    def disclosure(self) -> Mapping[str, Any]:
        """The part ``disclosure`` of its spec."""
        return self.spec.get("disclosure") or {}

    @property
    def beside(self) -> tuple[str, ...]:
        """Earlier published runs that its numbers were audited with."""
        return tuple(earlier_run["run"] for earlier_run in self.disclosure.get("beside", ()))

    def published(self, name: str) -> Artifact | None:
        """The publishable version of a table; None if the run has no such table.

        A run of a version without the stage publish has its measures and verdicts as they were told, and no counts.
        """
        tables = {artifact.table: artifact for partition in self.partitions for artifact in partition.tables}
        published_tables = {table for table in tables if table.startswith(PREFIX)}
        return tables.get(f"{PREFIX}{name}") if published_tables else tables.get(name)


def runs_of(lake: Lake, audit: str | None = None, year: int | None = None, value: str | None = None) -> list[Run]:
    """The finished runs of an audit, year and partition, or of all, the oldest first.

    Runs of an audit without ``by`` are of the partition ``ALL``.

    Raises:
        IntegrityError: a manifest is not the one that was written.
    """
    names = [path.split("/")[1] for path in lake.storage.glob("runs/*/manifest.json")]
    if audit is not None:
        # the ids of one partition begin alike, so that not all manifests are read; without `by` an id has no slug
        words = [audit, *([str(year)] if year is not None else [])]
        words += [slug(str(value))] if year is not None and value not in (None, ALL) else []
        beginning = "-".join([*words, ""])
        names = [name for name in names if name.startswith(beginning)]
    runs = [
        run
        for run in numbered(lake, [run_of(lake, name) for name in names])
        if audit in (None, run.audit) and year in (None, run.year) and value in (None, run.value)
    ]
    return sorted(runs, key=lambda run: (run.audit, run.year, *in_order(run)))


def numbered(lake: Lake, runs: Sequence[Run]) -> list[Run]:
    """Runs with their numbers in the log."""
    numbers = log.published(lake) if runs else {}
    return [replace(run, number=numbers.get(run.run, 0)) for run in runs]


def in_order(run: Run) -> tuple[int, str, str]:
    """Sorts runs by when they were published: by the log, as clocks are set back; without one by the clock."""
    return run.number, run.finished, run.run


def last_run(lake: Lake, audit: str, year: int, value: str = ALL) -> Run | None:
    """The valid run of a year, or of one of its partitions: the last protected run, else the last run."""
    return standing(runs_of(lake, audit, year, value))


def standing(runs: Sequence[Run]) -> Run | None:
    """The valid one of several runs of a year; None of none."""
    return max(runs, key=lambda run: (run.protected, *in_order(run)), default=None)


def published_beside(lake: Lake, run: str) -> list[str]:
    """Other runs that are marked as published, share rows with a run, and were not audited together with it.

    They share rows if they are of its data, or of its audit and year, and not of two partitions by one column.
    """
    other_runs = [other_run for other_run in published_runs(lake) if other_run.run != run]
    own_run = run_of(lake, run) if other_runs else None
    return [
        other_run.run
        for other_run in other_runs
        if own_run
        and other_run.run not in own_run.beside
        and run not in other_run.beside
        and (
            other_run.source_sha256 == own_run.source_sha256
            or (other_run.audit, other_run.year) == (own_run.audit, own_run.year)
        )
        and shares_rows(other_run.partition, own_run.partition)
    ]


def shares_rows(first: Mapping[str, str] | None, other: Mapping[str, str] | None) -> bool:
    """Whether some row may be of both partitions: not where they are of two values of one column."""
    if first is None or other is None or ALL in (first["value"], other["value"]):
        return True
    return first["column"] != other["column"] or first["value"] == other["value"]


def published_runs(lake: Lake) -> list[Run]:
    """The runs that were released or are marked as published, by id, without those of the profile `internal`.

    A release stays one when its mark is gone. A released run that is not in the lake is left out: ``released_gone``.
    """
    names = {path.split("/")[1] for path in lake.storage.glob("runs/*/protected/mark.json")}
    names |= {run for run in log.released(lake) if lake.storage.exists(f"runs/{run}/manifest.json")}
    runs = [run_of(lake, name) for name in sorted(names)]
    return [run for run in runs if run.disclosure.get("profile") != "internal"]


def is_protected(lake: Lake, run: str) -> bool:
    """Whether a run is protected."""
    return lake.storage.exists(marked(run))


def mark_of(run: str) -> str:
    """Path of the mark of a protected run."""
    return f"{marked(run)}/mark.json"


def audits_of(lake: Lake, audit: str | None) -> str:
    """The named audit, or the only one of the lake.

    Raises:
        SpecError: the lake holds no run of it, or runs of several and none is named.
    """
    audits = sorted({run.audit for run in runs_of(lake)})
    if audit in audits:
        return str(audit)
    if audit is None and len(audits) == 1:
        return audits[0]
    hint = nearest(audit, audits) if audit else f"name one of {', '.join(map(repr, audits))} with --audit"
    raise SpecError(
        f"the lake {lake.location} holds no run of {audit or 'a single audit'}; {hint if audits else 'it is empty'}"
    )


def vintage_words(source: Mapping[str, Any]) -> str:
    """The vintage of a resolved source in words: dataset, geography and freeze date; empty where it is a plain file."""
    file = source.get("vintage_file")
    return words_of(file) if file else ""


def spec_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of a manifest in the keys of today: an earlier version kept the file of a vintage as ``path``."""
    spec: dict[str, Any] = manifest["spec"]
    source = spec["source"]
    if source.get("vintage") is not None and source.get("path"):
        source = {**source, "path": None, "vintage_file": source["path"]}
    return spec_now({**spec, "source": source})


def marked(run: str) -> str:
    """Path of the folder of the mark of a protected run."""
    return f"runs/{run}/protected"


def run_of(lake: Lake, name: str) -> Run:
    """One run by its id.

    Raises:
        SpecError: the lake holds no such run.
        IntegrityError: its manifest is not the one that was written.
    """
    manifest = read_manifest(lake, name)
    return Run(
        run=name,
        audit=manifest["dataset"],
        year=manifest["year"],
        state=state_now(manifest["state"]),
        finished=manifest["finished"],
        source_sha256=manifest["source_sha256"],
        code=manifest["code"],
        versions=manifest["versions"],
        spec=spec_of(manifest),
        partitions=tuple(Partition.model_validate(p) for p in manifest["partitions"]),
        lineage=tuple(manifest["lineage"]),
        protected=is_protected(lake, name),
        partition=manifest.get("partition"),  # an earlier version had none
        source_summary=manifest.get("read"),
    )


# --------------------------------------------------------------------------------------------------------------------
# The runs of a lake, newest first, each with its state by question: what ``evenhand runs`` lists.
#
# Scope: manifests and report.json as they are, unverified: a list is no proof. ``evenhand verify`` checks digests.


warnings = logging.getLogger("evenhand")


@dataclass(frozen=True)
class Listed:
    """A run as the list has it."""

    run: str
    audit: str
    year: int
    state: str
    """The state that decides the exit code."""
    theories: Mapping[str, str]
    """Theory -> its state, in the order of the questions; empty where no report.json has them."""
    finished: str
    protected: bool
    partition: Mapping[str, str] | None = None
    """Column and value of the rows that it is about; None of an audit without ``by``."""


def listed(
    lake: Lake, audit: str | None = None, year: int | None = None, state: State | None = None, limit: int | None = None
) -> list[Listed]:
    """The runs that fit, at most ``limit``, the last published first: by the lake's log, as clocks are set back.

    A manifest that cannot be read is left out, and named by a warning.
    """
    manifests = [
        (manifest, written)
        for manifest, written in _manifests(lake)
        if audit in (None, manifest["dataset"])
        and year in (None, manifest["year"])
        and state in (None, state_now(manifest["state"]))
    ]
    numbers = log.published(lake)
    manifests.sort(key=lambda pair: (numbers.get(pair[0]["run"], 0), pair[0]["finished"], pair[1]), reverse=True)
    rows = []
    for manifest, _ in manifests[:limit]:
        run = manifest["run"]
        protected = lake.storage.exists(f"runs/{run}/protected")
        theories = _theories(lake.storage.read(f"reports/{run}/report.json") or b"{}")
        names = (manifest["dataset"], manifest["year"], state_now(manifest["state"]))
        rows.append(Listed(run, *names, theories, manifest["finished"], protected, manifest["partition"]))
    return rows


def _manifests(lake: Lake) -> Iterator[tuple[dict[str, Any], int]]:
    """Each manifest with the time of its file, which orders runs of one second that no log has."""
    for path in lake.storage.glob("runs/*/manifest.json"):
        try:
            manifest = mapping_of(lake.storage.read(path))
            summary = {name: manifest[name] for name in ("run", "dataset", "year", "state", "finished")}
            summary["partition"] = manifest.get("partition")  # an earlier version had none
        except (OSError, ValueError, KeyError) as error:
            where, why = lake.storage.where(path), type(error).__name__
            warnings.warning("%s cannot be read (%s), and its run is left out: evenhand status", where, why)
            continue
        yield summary, lake.storage.modified(path)


def _theories(report: bytes) -> dict[str, str]:
    """The states of the questions by report.json, of this version or an earlier one."""
    try:
        table = json.loads(report)["theories"]
        rows = [row_now(dict(zip(table["columns"], row, strict=True))) for row in table["rows"]]
        wholes = {row["theory"]: row["state"] for row in rows if row["role"] == "theory"}
    except (ValueError, KeyError, TypeError):
        return {}
    return {theory.value: wholes[theory] for theory in QUESTIONS if theory in wholes}
