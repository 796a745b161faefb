"""What one run tells as metrics, by its manifest and its published verdicts; both never change, so it is read once."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flows.outcome.words.plain import roughly
from flows.runs.manifest import read_manifest
from schemas.artifact import Partition
from schemas.audit.partition import ALL
from schemas.tables.published import PUBLISHED_VERDICTS
from tasks.lake.stage_runs import LAKE, stage_runs
from tasks.lake.store import Lake

_DETECT = "detect "


@dataclass(frozen=True)
class StageFigures:
    """A stage that a run computed."""

    stage: str
    method: str
    """Of a detection; empty of other stages."""
    seconds: float
    peak_bytes: float
    rows: Mapping[str, int]
    """Fate -> rows, to two digits: in, out, refused."""


@dataclass(frozen=True)
class RunFigures:
    """A finished run."""

    audit: str
    year: int
    state: str
    finished: float
    """Seconds since 1970."""
    rows: int
    """Of the source, to two digits."""
    whole: bool
    """Whether it is about every row, and not about one partition."""
    stages: tuple[StageFigures, ...]
    """Those that it computed, and did not find in the lake."""
    checks: Mapping[str, int]
    """State -> judged rows with a limit, of a run about every row."""

    @property
    def seconds(self) -> float:
        """That its stages took."""
        return sum(stage.seconds for stage in self.stages)


def run_figures(lake: Lake, run: str, *, checks: bool = True) -> RunFigures:
    """The figures of a run.

    Args:
        lake: that holds it.
        run: its id.
        checks: whether its published verdicts are read.

    Raises:
        SpecError: the lake holds no such run.
        IntegrityError: a file is not the one that was written.
    """
    manifest = read_manifest(lake, run)
    stages = tuple(_computed(manifest))
    part = manifest.get("partition")  # an earlier version had none
    whole = part is None or part["value"] == ALL
    lineage = manifest["lineage"]
    return RunFigures(
        audit=manifest["dataset"],
        year=manifest["year"],
        state=manifest["state"],
        finished=datetime.fromisoformat(manifest["finished"]).timestamp(),
        rows=roughly(lineage[0]["rows"]["in"]) if lineage else 0,
        whole=whole,
        stages=stages,
        checks=_checks(lake, manifest) if whole and checks else {},
    )


def _computed(manifest: Mapping[str, Any]) -> Iterator[StageFigures]:
    for row in stage_runs(manifest):
        if row["source"] != LAKE:
            name, fates = row["stage"], {"in": row["rows_in"], "out": row["rows_out"], "refused": row["refused"]}
            yield StageFigures(
                stage="detect" if name.startswith(_DETECT) else name,
                method=name.removeprefix(_DETECT) if name.startswith(_DETECT) else "",
                seconds=float(row["seconds"] or 0.0),
                peak_bytes=float(row["peak_memory_mb"] or 0.0) * 2**20,
                rows={fate: roughly(count) for fate, count in fates.items() if count is not None},
            )


def _checks(lake: Lake, manifest: Mapping[str, Any]) -> dict[str, int]:
    """Judged rows with a limit, by their published state."""
    partitions = (Partition.model_validate(each) for each in manifest["partitions"])
    tables = {artifact.table: artifact for each in partitions for artifact in each.tables}
    if PUBLISHED_VERDICTS.name not in tables:
        return {}
    columns = lake.read(tables[PUBLISHED_VERDICTS.name], ["role", "limit", "state"]).to_pydict()
    judged = zip(columns["role"], columns["limit"], columns["state"], strict=True)
    return Counter(state for role, limit, state in judged if role != "theory" and limit is not None)
