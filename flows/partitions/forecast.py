"""Status of the stages of a year, and the forecast of a back-fill."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow.parquet as pq

from flows.concurrency.schedule import Need, need_of
from flows.partitions.attempts import Attempt, YearState, latest
from flows.partitions.year_plan import Measured, expected_cost, expected_steps
from flows.partitions.years import spec_of_year
from flows.runs.given import places
from flows.runs.index import Run, runs_of, vintage_words
from flows.runs.record import planned_in
from schemas.artifact import Partition
from schemas.audit.spec import AuditSpec
from schemas.errors import EvenhandError, TooFewError
from schemas.terms import ExitCode
from tasks.lake.store import Lake
from tasks.pipeline.digests import versions
from tasks.plan import Inputs, Plan, Step, walk

# --------------------------------------------------------------------------------------------------------------------
# Status of each stage of a year: cached, missing or stale, with the reason.
#
# A stage is cached if its partition is in the lake under today's key. The keys of the stages after the first missing
# one are unknown until that one has run. Files are looked up and not read; ``evenhand verify`` reads them.


class StageState(StrEnum):
    """State of one stage of a year."""

    OK = "ok"
    MISSING = "missing"
    STALE_INPUT = "stale input"
    STALE_CODE = "stale code"
    STALE_SPEC = "stale spec"
    FAILED = "failed"
    RUNNING = "running"
    INCONCLUSIVE = "inconclusive"


_UNDONE = {
    YearState.RUNNING: StageState.RUNNING,
    YearState.FAILED: StageState.FAILED,
    YearState.INTERRUPTED: StageState.FAILED,
    YearState.INCONCLUSIVE: StageState.INCONCLUSIVE,
}
"""State of the stage at which an attempt without a run is, or ended."""


@dataclass(frozen=True)
class Stand:
    """One stage of a year: its state and the reason."""

    stage: str
    state: StageState
    reason: str = ""


def stands(planned: Plan, lake: Lake, before: Run | None, last: Attempt | None) -> tuple[Stand, ...]:
    """States of the stages of a plan.

    Args:
        planned: the year's plan as it is today.
        lake: where partitions are looked for.
        before: the run of the year that was finished last.
        last: the last attempt of the year by a back-fill.
    """
    cached_count = len(walk(planned.steps, lambda step, artifacts: _recorded(lake, step, artifacts)))
    names = [step.name for step in planned.steps]
    ok = [Stand(name, StageState.OK) for name in names[:cached_count]]
    if cached_count == len(names):
        return tuple(ok)
    stage = names[cached_count]
    same_data = last is not None and last.source_sha256 in (None, planned.source_sha256)
    if last is not None and same_data and last.run is None and last.stage in (stage, ""):
        first = Stand(stage, _UNDONE[last.state], last.message)
    elif before is None:
        first = Stand(stage, StageState.MISSING, "never run")
    elif changes := list(_changes(planned, before)):
        first = Stand(stage, changes[0][0], "; ".join(reason for _, reason in changes))
    else:
        first = Stand(stage, StageState.MISSING, f"the files of {before.run} were removed from the lake")
    later = StageState.MISSING if first.state in _UNDONE.values() else first.state
    return (*ok, first, *(Stand(name, later, f"after {first.stage}") for name in names[cached_count + 1 :]))


def told(attempt: Attempt) -> tuple[Stand, ...]:
    """States of the stages of a year, from the record of an attempt."""
    if attempt.run is not None:
        return tuple(Stand(name, StageState.OK) for name in attempt.stages)
    at = attempt.stages.index(attempt.stage) if attempt.stage in attempt.stages else -1
    current_stage = Stand(attempt.stage, _UNDONE.get(attempt.state, StageState.OK), attempt.message)
    return tuple(
        current_stage if place == at else Stand(name, StageState.OK if place < at else StageState.MISSING)
        for place, name in enumerate(attempt.stages)
    )


def _recorded(lake: Lake, step: Step, artifacts: Inputs) -> Partition | None:
    key = step.stage.key(artifacts, step.settings, step.modules)
    record = lake.storage.read(f"stages/{step.stage.name}/{key}/partition.json")
    return Partition.model_validate_json(record) if record is not None else None


def _changes(planned: Plan, before: Run) -> Iterator[tuple[StageState, str]]:
    """Differences of today's data, code, libraries and spec from an earlier run."""
    if planned.source_sha256 != before.source_sha256:
        now = vintage_words(planned.spec.source.model_dump(mode="json")) or f"sha256 {planned.source_sha256[:12]}"
        yield StageState.STALE_INPUT, f"the data are now {now}, and were {before.vintage}"
    if planned.code != before.code:
        yield StageState.STALE_CODE, f"the code has changed since {before.run}"
    libraries = versions()
    changed_libraries = [
        f"{name} {before.versions.get(name)} -> {now}"
        for name, now in libraries.items()
        if before.versions.get(name) != now
    ]
    if changed_libraries:
        yield StageState.STALE_CODE, f"other libraries: {', '.join(changed_libraries)}"
    keys = _differing(planned.spec.model_dump(mode="json"), before.spec)
    if keys:
        yield StageState.STALE_SPEC, f"the spec has changed: {', '.join(keys)}"


def _differing(now: Mapping[str, Any], then: Mapping[str, Any]) -> Sequence[str]:
    """The keys of two specs that differ; the place of a file does not count."""
    keys = []
    for name in sorted(
        {*now, *then} - {"path", "vintage_file", "lender_name", "expected"}
    ):  # the last one decides no result
        current, other = now.get(name), then.get(name)
        if name in ("source", "model", "file") and isinstance(current, Mapping) and isinstance(other, Mapping):
            keys += [f"{name}.{key}" for key in _differing(current, other)]
        elif current != other:
            keys.append(name)
    return keys


# --------------------------------------------------------------------------------------------------------------------
# Forecast of a back-fill (`evenhand plan`): what would run, why, and at what cost. Computes and writes nothing.
#
# Costs are those of earlier runs of the same audit, in proportion to rows. They are a guide: the searches for
# neighbours and feasible paths grow faster than the number of rows. Without an earlier run the shipped table tells,
# with all rows of the source taken as usable, but of HMDA the share that has a decision.


@dataclass(frozen=True)
class Cost:
    """Cost of the stages left to run; None where it is unknown."""

    rows: int | None
    about: bool
    """Whether the rows are estimated from the size of the file."""
    seconds: float | None
    bytes: int | None
    by_table: bool = False
    """Whether the seconds are those of the shipped table, since no earlier run tells."""


@dataclass(frozen=True)
class Forecast:
    """Forecast of one year: its stages, and the cost of those left to run."""

    year: int
    stages: tuple[Stand, ...]
    cost: Cost
    lacking: tuple[str, ...] = ()
    protected: str = ""
    """The protected run, which a back-fill leaves alone."""
    blocked: str = ""
    """Why the year cannot be audited as things are."""
    exit_code: ExitCode = ExitCode.WITHIN
    """Of what blocks it."""
    need: Need | None = None
    """Memory; None where nothing is known of any stage."""

    def is_left(self, force: bool) -> bool:
        """Whether a back-fill would compute anything of the year."""
        stands = bool(self.stages) and all(stage.state is StageState.OK for stage in self.stages)
        return not stands or (bool(self.protected) and force)


_TEXTS = (".csv", ".tsv", ".txt")
_BEGINNING_BYTES, _FEWEST_LINES = 2**20, 20
NOTHING = Cost(None, False, None, None)


def forecast(spec: AuditSpec, years: Sequence[int], lake: Lake, jobs: int = 1) -> list[Forecast]:
    """Forecast of a back-fill, year by year; memory of so many stages of a year at a time."""
    runs = runs_of(lake, spec.name)
    return [_of_year(spec, year, lake, runs, jobs) for year in years]


def _of_year(spec: AuditSpec, year: int, lake: Lake, runs: Sequence[Run], jobs: int) -> Forecast:
    runs_of_year = [run for run in runs if run.year == year]
    protected_runs = [run for run in runs_of_year if run.protected]
    if protected_runs:
        stages = tuple(Stand(p.stage, StageState.OK, "protected") for p in protected_runs[-1].partitions)
        return Forecast(year, stages, Cost(protected_runs[-1].rows, False, 0.0, 0), protected=protected_runs[-1].run)
    try:
        of_year = spec_of_year(spec, year, lake)
        planned = planned_in(lake, of_year)
        stage_states = stands(planned, lake, runs_of_year[-1] if runs_of_year else None, latest(lake, spec.name, year))
    except TooFewError as error:
        return Forecast(year, (), NOTHING, blocked=str(error), exit_code=ExitCode.INCONCLUSIVE)
    except EvenhandError as error:
        return Forecast(year, (), NOTHING, blocked=str(error), exit_code=error.exit_code)
    remaining_steps = [
        step for step, stand in zip(planned.steps, stage_states, strict=True) if stand.state is not StageState.OK
    ]
    cost = _cost(planned, stage_states, lake, runs)
    return Forecast(
        year, stage_states, cost, of_year.source.lacking, need=need_of(planned, remaining_steps, runs, cost.rows, jobs)
    )


def _cost(planned: Plan, stage_states: Sequence[Stand], lake: Lake, runs: Sequence[Run]) -> Cost:
    rows, about = _rows(planned, lake, runs)
    remaining_stages = [
        step.stage.name
        for step, stand in zip(planned.steps, stage_states, strict=True)
        if stand.state is not StageState.OK
    ]
    if not remaining_stages:
        return Cost(rows, about, 0.0, 0)
    if rows is None:
        rows, about = _rows_by_beginnings(planned), True
    donors = sorted((run for run in runs if run.rows), key=lambda run: abs(run.rows - (rows or 0)))
    if rows is None:
        return Cost(rows, about, None, None)
    if not donors:
        steps = [step.name for step in planned.steps if step.stage.name in remaining_stages]
        expected = expected_cost(planned.spec, steps, _usable(planned, rows), [])
        return Cost(rows, about, expected.cpu_seconds, None, by_table=True)
    seconds, size = 0.0, 0.0
    for stage in remaining_stages:  # each by the run nearest in rows that has it
        donor = next((run for run in donors if any(p.stage == stage for p in run.partitions)), None)
        if donor is None:
            return Cost(rows, about, None, None)
        positions = [i for i, p in enumerate(donor.partitions) if p.stage == stage]
        sizes = []
        for partition in (donor.partitions[i] for i in positions):
            # 0 where the lake lies on no disk of this machine.
            files = [Path(lake.location, path) for path in (*(a.path for a in partition.tables), *partition.files)]
            sizes.append(sum(file.stat().st_size for file in files if file.is_file()))
        seconds += rows / donor.rows * fmean(float(donor.lineage[i]["seconds"]) for i in positions)
        size += rows / donor.rows * fmean(sizes)
    return Cost(rows, about, round(seconds, 1), round(size) or None)


def shipped_seconds(planned: Plan, rows: int | None, usable: int | None = None) -> list[float] | None:
    """CPU seconds of each step by the shipped costs; None where its rows are known by nothing yet.

    Args:
        planned: the audit.
        rows: of its source; None: as many as the beginning of a text file tells.
        usable: rows that ingest kept, once that is known.
    """
    if usable is None:
        rows = _rows_by_beginnings(planned) if rows is None else rows
        usable = None if rows is None else _usable(planned, rows)
    return None if usable is None else expected_steps(planned.spec, [step.name for step in planned.steps], usable)


def _usable(planned: Plan, rows: int) -> int:
    return round(rows * (Measured.shipped().usable_share if planned.spec.source.kind == "hmda" else 1.0))


def _rows_by_beginnings(planned: Plan) -> int | None:
    """Rows of text files by the length of their first lines; None if one is no plain text."""
    rows = 0.0
    for path in map(Path, planned.spec.source.paths):
        if path.suffix not in _TEXTS:
            return None
        with path.open("rb") as file:
            beginning = file.read(_BEGINNING_BYTES)
        lines = beginning.count(b"\n")
        if lines < _FEWEST_LINES:
            return None
        rows += path.stat().st_size * lines / (beginning.rindex(b"\n") + 1)
    return round(rows)


def expected_rows(planned: Plan, lake: Lake) -> int | None:
    """Rows of an audit's source before it is read, by its file or earlier runs; None where they are unknown."""
    try:
        return _rows(planned, lake, runs_of(lake, planned.spec.name))[0]
    except (EvenhandError, OSError):  # a fault of a file or a manifest is reported where it is read
        return None


def _rows(planned: Plan, lake: Lake, runs: Sequence[Run]) -> tuple[int | None, bool]:
    """Rows of the year's source, and whether they are estimated from its size."""
    from tasks.ingest.hmda.rows import files_of  # loads what reads HMDA

    known_rows = [run.rows for run in runs if run.source_sha256 == planned.source_sha256]
    if known_rows:
        return known_rows[-1], False
    paths = [file for path in planned.spec.source.paths for file in files_of(Path(path))]
    if all(path.suffix == ".parquet" for path in paths):
        return sum(pq.ParquetFile(path).metadata.num_rows for path in paths), False
    sizes = []
    for run in runs:
        source_path = places(lake, run.run)[0] or run.spec["source"].get("path") or []
        files = [Path(path) for path in ([source_path] if isinstance(source_path, str) else source_path)]
        # Not of files that are gone or packed in another way.
        same = bool(files) and all(file.is_file() and file.suffix == paths[0].suffix for file in files)
        if same and (size := sum(file.stat().st_size for file in files)):
            sizes.append((run.rows, size))
    if not sizes:
        return None, False
    ours = sum(path.stat().st_size for path in paths)
    return round(ours * sum(rows for rows, _ in sizes) / sum(size for _, size in sizes)), True
