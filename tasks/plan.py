"""The order of an audit's stages, wired by the tables that they declare, and the identity of a run.

A step reads, of every table that its stage declares, all artifacts that earlier steps wrote. Keys follow from content,
so a walk over the steps without computing anything tells what the lake already holds.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

import yaml

from schemas.artifact import Artifact, Partition
from schemas.audit.partition import slug
from schemas.audit.spec import AuditSpec, StageSettings, without_places
from schemas.table import Table
from tasks.counterfactuals import stage as generate
from tasks.counterfactuals.settings import matching_of
from tasks.detection import stage as detect
from tasks.feasibility_graph import stage as connect
from tasks.ingest import stage as ingest
from tasks.lake.store import Lake
from tasks.metrics import stage as measure
from tasks.metrics.compare import stage as compare
from tasks.metrics.publish import stage as publish
from tasks.pipeline import registry
from tasks.pipeline.digests import code_digest, versions
from tasks.pipeline.method import DECLARATION, MITIGATIONS, Method
from tasks.pipeline.registry import METHODS
from tasks.pipeline.stage import Stage
from tasks.preprocessing import stage as preprocess
from tasks.reporting import stage as report
from tasks.scoring import stage as score

Inputs = dict[str, list[Artifact]]

STAGES: dict[str, Stage] = {
    s.name: s
    for s in (
        ingest.ingest,
        preprocess.preprocess,
        score.score,
        connect.connect,
        generate.generate,
        *(own_stage.stage for method in METHODS.values() for own_stage in method.own_stages()),
        detect.detect,
        compare.compare,
        measure.measure,
        publish.publish,
        report.report,
    )
}


@dataclass(frozen=True)
class Step:
    """One stage of one audit, with its settings."""

    name: str
    stage: Stage
    settings: StageSettings
    modules: tuple[str, ...] = ()
    """Modules that the stage reaches by name and not by import: they are part of its key."""
    unread: tuple[Table, ...] = ()
    """Tables that the stage declares and this step has no use for: what is in them does not touch it."""
    artifacts: tuple[Artifact, ...] = ()
    """Tables of the lake that the step reads and that no step of this audit writes."""


@dataclass(frozen=True)
class Plan:
    """The steps of an audit in order, and its run id: the same for the same spec, data, code and libraries."""

    spec: AuditSpec
    run: str
    source_sha256: str
    code: str
    steps: tuple[Step, ...]
    started: str = field(compare=False)
    """When the run began, in UTC as ISO 8601. Its day is part of the report's key, and no part of the run id."""

    def begun(self, started: str) -> "Plan":
        """The same run, by another time at which it began."""
        settings = self.steps[-1].settings.model_copy(update={"run_day": started[:10]})
        return replace(self, started=started, steps=(*self.steps[:-1], replace(self.steps[-1], settings=settings)))


def plan(spec: AuditSpec, started: str = "") -> Plan:
    """The steps of an audit.

    Args:
        spec: of the audit.
        started: when the run began, as its manifest records it; now if empty.

    Raises:
        InfrastructureError: the source is not there.
    """
    started = started or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    reading, scoring = ingest.ingest_settings(spec), score.score_settings(spec)
    methods = registry.asked_for(spec)
    reached = [module for m in methods for module in m.detecting]
    resources = {path for stage in STAGES.values() for path in stage.files()}
    code = code_digest([*(s.function.__module__ for s in STAGES.values()), *reached], resources)
    settings: dict[str, Any] = spec.model_dump(mode="json", exclude={"expected"})
    identifying = settings | without_places(spec.source, spec.model, spec.protected)
    parts = [identifying, reading.source_sha256, scoring.model_sha256, code, versions()]
    identity = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    part = spec.partition
    run = "-".join([spec.name, str(spec.year), *([slug(part["value"])] if part else []), identity[:10]])
    declarations = tuple(m.path_of(DECLARATION) for m in METHODS.values())
    steps = (
        Step("ingest", ingest.ingest, reading),
        Step("preprocess", preprocess.preprocess, preprocess.preprocess_settings(spec)),
        Step("score", score.score, scoring),
        *_wanted(spec, methods),
        *(step for method in methods for step in _own(spec, method)),
        *(_detection(spec, method) for method in methods),
        *_comparison(spec),
        Step("measure", measure.measure, measure.measure_settings(spec), declarations),
        Step("publish", publish.publish, publish.publish_settings(spec), declarations, artifacts=publish.given(spec)),
        Step("report", report.report, report_settings(spec, run, reading.source_sha256, code, started), declarations),
    )
    return Plan(spec, run, reading.source_sha256, code, steps, started)


def report_settings(spec: AuditSpec, run: str, source_sha256: str, code: str, started: str) -> report.ReportSettings:
    """The settings of the stage report; the digests are those of the source and the code that made the numbers.

    Of the time of the run they hold the day alone: runs of one day with equal inputs have equal reports.
    """
    identity = {"run": run, "source_sha256": source_sha256, "code": code, "run_day": started[:10]}
    return report.ReportSettings.of(spec, **identity, effective_spec=_effective(spec), version=version("evenhand"))


def _wanted(spec: AuditSpec, methods: Sequence[Method]) -> Iterator[Step]:
    """The stages with output that a method of the audit reads."""
    table_names = {table.name for method in methods for table in method.reads}
    if table_names & {table.name for table in connect.connect.writes}:
        yield Step("connect", connect.connect, connect.connect_settings(spec))
    of_sample = all(
        method.sampling in ("sampled", "pool") and not spec.methods.named(method.name).imagines_everybody
        for method in methods
        if registry.generator_of(spec, method) == "scm"
    )
    for method in methods:
        made_by = registry.generator_of(spec, method)
        if made_by == "nearest" or (made_by == "scm" and spec.causal_graph.edges):
            matching = matching_of(spec.methods.named(method.name))
            yield Step(
                "generate", generate.generate, generate.generate_settings(spec, made_by, matching, of_sample=of_sample)
            )


def _own(spec: AuditSpec, method: Method) -> Iterator[Step]:
    """The stages that only one method needs, where the spec requests them."""
    for own_stage in method.own_stages():
        settings = own_stage.settings(spec)
        if settings is not None:
            yield Step(own_stage.stage.name, own_stage.stage, settings)


def _comparison(spec: AuditSpec) -> Iterator[Step]:
    """The stage that compares mitigations, where the spec names some; methods that offer them are part of its key."""
    settings = compare.compare_settings(spec)
    if settings is not None:
        offering = dict.fromkeys(registry.mitigations()[name] for name in settings.names)
        modules = tuple(METHODS[name].path_of(module) for name in offering for module in (DECLARATION, MITIGATIONS))
        yield Step("compare", compare.compare, settings, modules)


def _detection(spec: AuditSpec, method: Method) -> Step:
    unread_tables = set(registry.tables_declared()) - set(registry.tables_of(spec, method))
    unread = tuple(sorted(unread_tables, key=lambda table: table.name))
    settings = detect.detect_settings(spec, method.name)
    return Step(f"detect {method.name}", detect.detect, settings, method.detecting, unread)


def _effective(spec: AuditSpec) -> str:
    """The spec with all overrides and defaults, as YAML, but not when a run is due; of paths only the name."""
    settings = spec.model_dump(mode="json", exclude={"expected"})
    names = [PurePath(path).name for path in spec.source.paths]
    for name in ("vintage_file", "lacking", "part", "attribute_files", "lender_name"):
        del settings["source"][name]  # evenhand looks it up again
    if not spec.source.rename:
        del settings["source"]["rename"]
    if spec.by is not None and spec.source.part is not None:
        settings["by"]["values"] = [spec.source.part.value]
    settings["disclosure"]["beside"] = [earlier.run for earlier in spec.disclosure.beside]
    if spec.source.path is not None:
        settings["source"]["path"] = names[0] if len(names) == 1 else names
    for p in settings["protected"]:
        if p["file"] is None:
            del p["file"], p["key"]
        else:
            p["file"] = PurePath(p["file"]).name
    if spec.model.file is not None:
        settings["model"]["file"]["path"] = PurePath(spec.model.file.path).name
    return yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)


def walk(steps: Sequence[Step], execute: Callable[[Step, Inputs], Partition | None]) -> list[Partition]:
    """Execute steps in order, each on what the earlier ones wrote; stops at the first that gives None."""
    done: list[Partition] = []
    for step in steps:
        partition = execute(step, inputs(step, done))
        if partition is None:
            break
        done.append(partition)
    return done


def inputs(step: Step, done: Sequence[Partition]) -> Inputs:
    """The artifacts that a step reads."""
    artifacts: Inputs = {table.name: [] for table in step.stage.reads}
    unread = {table.name for table in step.unread}
    for artifact in (*(produced for partition in done for produced in partition.tables), *step.artifacts):
        if artifact.table in artifacts and artifact.table not in unread:
            artifacts[artifact.table].append(artifact)
    return artifacts


def held(lake: Lake, steps: Sequence[Step]) -> list[Partition]:
    """The partitions that the lake already holds, from the first step up to the first missing one.

    Raises:
        IntegrityError: one of them has been altered.
    """
    return walk(
        steps,
        lambda step, artifacts: lake.find(step.stage.name, step.stage.key(artifacts, step.settings, step.modules)),
    )
