"""Index of the runs in a lake, by audit and year, with their protection.

A protected run is one that somebody has published or relies on. A back-fill skips its year unless it is forced. The
mark is stored beside the manifest, which is sealed. No run overwrites the files of another: a change of source, spec,
code or libraries changes the keys.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flows.runs.manifest import read_manifest
from schemas.artifact import Artifact, Partition
from schemas.audit.partition import ALL, slug
from schemas.errors import SpecError, nearest
from schemas.tables.publication import PREFIX
from schemas.vintages import words_of
from tasks.lake import log
from tasks.lake.store import Lake


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
    read: Mapping[str, Any] | None = None
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
        return tuple(each["run"] for each in self.disclosure.get("beside", ()))

    def published(self, name: str) -> Artifact | None:
        """What may be told of a table; None where the run has no such table.

        A run of a version without the stage publish has its measures and verdicts as they were told, and no counts.
        """
        tables = {artifact.table: artifact for each in self.partitions for artifact in each.tables}
        told = {table for table in tables if table.startswith(PREFIX)}
        return tables.get(f"{PREFIX}{name}") if told else tables.get(name)


def runs_of(lake: Lake, audit: str | None = None, year: int | None = None, value: str | None = None) -> list[Run]:
    """The finished runs of an audit, year and partition, or of all, the oldest first.

    Runs of an audit without ``by`` are of the partition ``ALL``.

    Raises:
        IntegrityError: a manifest is not the one that was written.
    """
    names = [path.split("/")[1] for path in lake.storage.glob("runs/*/manifest.json")]
    if audit is not None:
        names = [name for name in names if name.startswith(_beginning(audit, year, value))]
    mine = [
        run
        for run in numbered(lake, [run_of(lake, name) for name in names])
        if audit in (None, run.audit) and year in (None, run.year) and value in (None, run.value)
    ]
    return sorted(mine, key=lambda run: (run.audit, run.year, *in_order(run)))


def numbered(lake: Lake, runs: Sequence[Run]) -> list[Run]:
    """Runs with their numbers in the log."""
    numbers = log.published(lake) if runs else {}
    return [replace(run, number=numbers.get(run.run, 0)) for run in runs]


def in_order(run: Run) -> tuple[int, str, str]:
    """Sorts runs by when they were published: by the log, as clocks are set back; without one by the clock."""
    return run.number, run.finished, run.run


def _beginning(audit: str, year: int | None, value: str | None) -> str:
    """Of the ids of runs that may be meant, so that one partition's are found without reading all manifests."""
    words = [audit, *([str(year)] if year is not None else [])]
    known = year is not None and value not in (None, ALL)  # a run without `by` is of ALL, and has no slug
    return "-".join([*words, *([slug(str(value))] if known else []), ""])


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
    others = [each for each in published_runs(lake) if each.run != run]
    own = run_of(lake, run) if others else None
    return [
        each.run
        for each in others
        if own
        and each.run not in own.beside
        and run not in each.beside
        and (each.source_sha256 == own.source_sha256 or (each.audit, each.year) == (own.audit, own.year))
        and shares_rows(each.partition, own.partition)
    ]


def shares_rows(one: Mapping[str, str] | None, other: Mapping[str, str] | None) -> bool:
    """Whether some row may be of both partitions: not where they are of two values of one column."""
    if one is None or other is None or ALL in (one["value"], other["value"]):
        return True
    return one["column"] != other["column"] or one["value"] == other["value"]


def published_runs(lake: Lake) -> list[Run]:
    """The runs that are marked as published, by id. Of the profile `internal` none may be, so that it is left out."""
    marked = [path.split("/")[1] for path in lake.storage.glob("runs/*/protected/mark.json")]
    runs = [run_of(lake, name) for name in sorted(marked)]
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
    known = sorted({run.audit for run in runs_of(lake)})
    if audit in known:
        return str(audit)
    if audit is None and len(known) == 1:
        return known[0]
    hint = nearest(audit, known) if audit else f"name one of {', '.join(map(repr, known))} with --audit"
    raise SpecError(
        f"the lake {lake.location} holds no run of {audit or 'a single audit'}; {hint if known else 'it is empty'}"
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
    return {**spec, "source": source}


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
        state=manifest["state"],
        finished=manifest["finished"],
        source_sha256=manifest["source_sha256"],
        code=manifest["code"],
        versions=manifest["versions"],
        spec=spec_of(manifest),
        partitions=tuple(Partition.model_validate(p) for p in manifest["partitions"]),
        lineage=tuple(manifest["lineage"]),
        protected=is_protected(lake, name),
        partition=manifest.get("partition"),  # an earlier version had none
        read=manifest.get("read"),
    )
