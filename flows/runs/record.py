"""Record of a run: its manifest, the exported report, the headline table and the exit code."""

import hashlib
import io
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from flows.runs.disclosure import counted, of_earlier, remarks, taken, withheld_groups
from flows.runs.given import keep_places
from flows.runs.index import (
    began_at,
    commit,
    digest,
    published_beside,
    read_manifest,
    record_of,
    report_named,
    report_of,
)
from flows.runs.signatures import certify, is_certified
from flows.runs.summary import NAMED, summary_path, write_summary
from schemas.artifact import Partition
from schemas.audit.partition import unsampled
from schemas.audit.spec import AuditSpec
from schemas.errors import IntegrityError, SpecError
from schemas.questions import rephrase_of, rephrase_rows
from schemas.table import Table
from schemas.tables.applications import MODELS, SOURCE_READ, VALIDATIONS, told
from schemas.tables.verdicts import (
    PUBLICATION,
    PUBLISHED_DECISION_DIRECTION,
    PUBLISHED_INTAKE_RULES,
    PUBLISHED_MEASURES,
    PUBLISHED_SOURCE_READ,
    PUBLISHED_VERDICTS,
    VERDICTS,
)
from schemas.terms import ExitCode, State
from tasks.lake.store import Lake
from tasks.metrics.verdicts import state_of, theories_of
from tasks.pipeline.digests import versions
from tasks.pipeline.registry import METHODS, not_asked
from tasks.pipeline.stage import EXPECTATIONS
from tasks.plan import Plan, plan
from tasks.preprocessing import checks as decision_direction

HEADLINES: dict[str, Mapping[str, str]] = {"Decisions": {"approval_rate": "approved"}} | {
    m.title: m.headline for m in METHODS.values()
}
"""The tables that an audit prints at its end: title -> measure -> title of its column."""


def planned_in(lake: Lake, spec: AuditSpec) -> Plan:
    """The plan of an audit; a run that the lake holds keeps the time at which it began.

    So a repeated audit computes nothing, and its report is the one that people have signed. A manifest that cannot be
    read is no record of a time: the run is planned from now, and its manifest is written again.

    Raises:
        InfrastructureError: the source is not there.
    """
    planned = plan(spec)
    if not lake.storage.exists(f"runs/{planned.run}/manifest.json"):
        return planned
    try:
        return planned.begun(began_at(read_manifest(lake, planned.run)))
    except (SpecError, IntegrityError):
        return planned


@dataclass(frozen=True)
class Summary:
    """Summary that an audit prints at its end."""

    run: str
    state: State
    headline: list[dict[str, Any]]
    titles: dict[str, dict[str, str]]
    """Title of each table -> measure -> title of its column."""
    verdicts: list[dict[str, Any]]
    """Rows of the table of verdicts, each theory as a whole before its groups."""
    report: str
    """Path or URI of the page."""
    source_summary: dict[str, Any]
    """What was read, as the manifest keeps it."""
    computed: int
    """Stages that were not in the lake before."""
    warnings: list[str]
    withheld: str
    """How many populations are withheld, in words."""
    withheld_groups: list[str]
    """Which groups are withheld as a whole, and a way on; empty where none is."""
    not_run: list[str]
    """The methods that did not run, and why."""
    unchecked: str
    """Why it was not checked that favourable and unfavourable are the right way round; empty where it was."""

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the design: a breach outweighs all; without a verdict nothing reads as a pass."""
        return exit_code_of(self.state)


def exit_code_of(state: State) -> ExitCode:
    """The exit code of an audit with this state."""
    codes = {State.WITHIN: ExitCode.WITHIN, State.OUTSIDE: ExitCode.OUTSIDE}
    return codes.get(state, ExitCode.INCONCLUSIVE)


def publish(lake: Lake, planned: Plan, done: Sequence[Partition], events: str = "") -> None:
    """Export the report into the lake, write the manifest with the digest of every file, and enter it in the log.

    Args:
        lake: of the run.
        planned: the run.
        done: its partitions, in order.
        events: how many events of OpenLineage were made and sent; empty where none are asked for.
    """
    measures = _measures(lake, done)
    with lake.lock(f"run-{planned.run}"):
        exported = _export(lake, planned.run, done, measures, planned.spec.disclosure.profile)
        verdict_rows = _table(lake, done, "measure", VERDICTS).to_pylist()
        state = _state(verdict_rows, planned.spec)
        _manifest(lake, planned, done, state, exported, {"lineage_events": events} if events else {})
        keep_places(lake, planned.run, planned.spec)
        certify(lake, planned.run)


def publish_once(lake: Lake, planned: Plan, done: Sequence[Partition], events: str = "") -> None:
    """Publish a run, or leave it as it was published and write down where its files lie now; as ``publish``."""
    if is_published(lake, planned.run):
        keep_places(lake, planned.run, planned.spec)
    else:
        publish(lake, planned, done, events)


def summarise(lake: Lake, spec: AuditSpec, run: str, done: Sequence[Partition]) -> Summary:
    """Summary of a finished audit."""
    verdicts = _table(lake, done, "publish", PUBLISHED_VERDICTS).to_pylist()
    exact = _table(lake, done, "measure", VERDICTS).to_pylist()
    computed = sum(not partition.reused for partition in done)
    rows = headline(lake, done)
    storage, folder = report_of(lake, run)
    report = storage.where(f"{folder}/report.html")
    measure_names = {row["measure"] for row in rows}
    titles = {name: {m: title for m, title in of.items() if m in measure_names} for name, of in HEADLINES.items()}
    rephrase = rephrase_of(spec.model_dump())
    shown_titles = {name: {m: rephrase(title) for m, title in of.items()} for name, of in titles.items() if of}
    [direction] = _table(lake, done, "publish", PUBLISHED_DECISION_DIRECTION).to_pylist()
    warnings = [*decision_direction.warnings(direction, spec.decision), *spec.remarks()]
    if spec.audited_model.kind not in ("none", "rule") and not _partition(done, "score").table(MODELS.name).rows:
        warnings.append("no model is audited: complete rows of one decision are too few to fit it; lower model.folds")
    unchecked = decision_direction.said(direction) if direction["decided_by"] == "none" else ""
    source_summary = published_read(lake, done)
    beside = taken(lake, done)
    warnings += [*_to_publish(lake, spec, run, [row["run"] for row in beside]), *of_earlier(beside)]
    publication = _table(lake, done, "publish", PUBLICATION).to_pylist()
    warnings += expectations_not_held(lake, done)
    warnings += remarks(publication, verdicts, spec.disclosure.profile)
    return Summary(
        run=run,
        state=_state(exact, spec),
        headline=rows,
        titles=shown_titles,
        verdicts=rephrase_rows(verdicts, rephrase),
        report=report,
        source_summary=source_summary,
        computed=computed,
        warnings=warnings,
        withheld=counted(publication),
        withheld_groups=withheld_groups(publication, spec.disclosure.profile),
        not_run=not_asked(spec),
        unchecked=unchecked,
    )


def expectations_not_held(lake: Lake, done: Sequence[Partition]) -> Iterator[str]:
    """Expectations of the spec that did not hold and do not refuse the run."""
    for row in _table(lake, done, "ingest", VALIDATIONS).to_pylist():
        if not row["success"] and row["severity"] != "critical":
            of = f" of {row['column']}" if row["column"] else ""
            yield f"expectations ({row['severity']}): {row['expectation']}{of} {row['expected']} does not hold"


def _to_publish(lake: Lake, spec: AuditSpec, run: str, audited: Sequence[str]) -> Iterator[str]:
    """Reasons against publishing a run, alone or together with another run that was not audited with it."""
    if spec.disclosure.profile == "internal":
        yield "profile internal: nothing is withheld or rounded; no file of this run is to be published"
        return
    named = [earlier_run.run for earlier_run in spec.disclosure.beside if earlier_run.run not in audited]
    if runs := sorted({*published_beside(lake, run), *named}):
        yield (
            f"{', '.join(runs)} is marked as published and has rows of this run: they are not audited together, and "
            "a withheld count may follow from the difference of both; audit again where both are of this version, "
            "name rows alike and keep all refused rows (refusals.keep: all), else publish one of them"
        )


def is_published(lake: Lake, run: str) -> bool:
    """Whether the log has the manifest of a run, with the report, records and files that it names as they were written.

    A stage that runs share may have been computed again for another of them: its ``lineage.json`` is another one then.
    """
    try:
        manifest = read_manifest(lake, run)
    except (SpecError, IntegrityError):
        return False
    if not is_certified(lake, run):
        return False
    named = dict(manifest.get("records", {}))
    if NAMED in manifest:
        named[summary_path(run)] = manifest[NAMED]
    for partition in manifest["partitions"]:
        named |= partition["files"]
    storage, folder = report_named(lake, run, manifest)
    return all(lake.storage.intact(path, digest) for path, digest in named.items()) and all(
        storage.intact(f"{folder}/{name}", digest) for name, digest in manifest["exported"].items()
    )


def _state(verdicts: Sequence[Mapping[str, Any]], spec: AuditSpec) -> State:
    """The state that decides the exit code, by the theories that count."""
    return state_of(theories_of(verdicts), spec.verdicts)


def headline(lake: Lake, done: Sequence[Partition]) -> list[dict[str, Any]]:
    """The headline measures of whole groups."""
    rows, titled = _measures(lake, done).to_pylist(), {measure for of in HEADLINES.values() for measure in of}
    return [r for r in rows if r["measure"] in titled and r["subgroup"] == 0 and unsampled(r["parameters"]) == "{}"]


def source_read(lake: Lake, done: Sequence[Partition]) -> dict[str, Any]:
    """What was read, with the first 12 digits of its sha256: source, sha256, rows, year.

    Raises:
        IntegrityError: the table is not the one that was written.
    """
    return told(_table(lake, done, "ingest", SOURCE_READ).to_pylist()[0])


def published_read(lake: Lake, done: Sequence[Partition]) -> dict[str, Any]:
    """What was read, in its published form: if the run rounds its counts, the numbers of rows are rounded, too.

    Raises:
        IntegrityError: the table is not the one that was written.
    """
    return told(_table(lake, done, "publish", PUBLISHED_SOURCE_READ).to_pylist()[0])


def _measures(lake: Lake, done: Sequence[Partition]) -> pa.Table:
    return _table(lake, done, "publish", PUBLISHED_MEASURES)


def _table(lake: Lake, done: Sequence[Partition], stage: str, declared: Table) -> pa.Table:
    return lake.read(_partition(done, stage).table(declared.name))


def _partition(done: Sequence[Partition], stage: str) -> Partition:
    return next(p for p in done if p.stage == stage)


def _export(lake: Lake, run: str, done: Sequence[Partition], measures: pa.Table, profile: str) -> dict[str, str]:
    """Write the report's files and the measures into ``reports/RUN`` of the lake; returns the sha256 of each."""
    partition = _partition(done, "report")
    contents = {partition.within(p): lake.check(p, digest).read_bytes() for p, digest in partition.files.items()}
    for name in ("lineage.json", EXPECTATIONS):  # of the stage, and restricted
        contents.pop(name, None)  # an earlier version did not keep expectations
    contents["measures.parquet"] = measures_file(run, measures, profile)
    for name, content in contents.items():
        lake.write_file(f"reports/{run}/{name}", content, draft=f"tmp/{run}-{name.replace('/', '-')}")
    return {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}


def measures_file(run: str, measures: pa.Table, profile: str) -> bytes:
    """The measures of a run as Parquet, each row with the run's id; its metadata name the profile of disclosure."""
    sink = io.BytesIO()
    table = measures.add_column(0, "run", pa.array([run] * measures.num_rows))
    table = table.replace_schema_metadata({"disclosure": profile, "restricted": str(profile == "internal").lower()})
    pq.write_table(table, sink, store_schema=False)
    return sink.getvalue()


def _manifest(
    lake: Lake,
    planned: Plan,
    done: Sequence[Partition],
    state: State,
    exported: dict[str, str],
    remarks_of_run: Mapping[str, str],
) -> None:
    """Write the manifest: all that identifies the run."""
    spec = planned.spec.model_dump(mode="json")
    content = {
        "run": planned.run,
        "dataset": planned.spec.name,
        "year": planned.spec.year,
        "partition": planned.spec.partition,
        "state": state,
        "spec": spec,
        "spec_sha256": digest(spec),
        "source_sha256": planned.source_sha256,
        "read": published_read(lake, done),
        **({"intake": rules} if (rules := _table(lake, done, "publish", PUBLISHED_INTAKE_RULES).to_pylist()) else {}),
        "code": planned.code,
        **({"commit": code_commit} if (code_commit := commit()) else {}),
        "versions": versions(),
        "started": planned.started,
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "exported": exported,
        "records": {p: hashlib.sha256(lake.storage.read(p) or b"").hexdigest() for p in map(record_of, done)},
        "partitions": [p.model_dump(mode="json", exclude={"reused"}) for p in done],
        "lineage": [lake.lineage(p) for p in done],
        "steps": [{"name": s.name, "reused": p.reused} for s, p in zip(planned.steps, done, strict=True)],
        **remarks_of_run,
    }
    content[NAMED] = write_summary(lake, content)
    sealed = {**content, "sha256": digest(content)}
    lake.write_file(
        f"runs/{planned.run}/manifest.json",
        json.dumps(sealed, indent=1).encode(),
        draft=f"tmp/{planned.run}-manifest.json",  # threads of one process may publish several runs at once
    )
