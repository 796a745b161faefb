"""Events of OpenLineage: held against the classes of its client, sent to a real receiver, and never a run's fault."""

import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from computed_lake import computed
from conftest import evenhand
from few_loans import few_loans
from openlineage.client import event_v2, facet_v2
from receivers import hostile_receiver, web_receiver

from flows.concurrency import openlineage
from flows.concurrency.openlineage import (
    ABORT,
    COMPLETE,
    FAIL,
    START,
    Event,
    RunEvents,
    events_again,
    followed,
    target_of,
)
from flows.runs.index import read_manifest
from schemas.errors import DataQualityError, SpecError, TooLittleEvidenceError
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec
from tasks.plan import Plan, held, plan

CLIENT = {
    "parent": facet_v2.parent_run.ParentRunFacet,
    "nominalTime": facet_v2.nominal_time_run.NominalTimeRunFacet,
    "processing_engine": facet_v2.processing_engine_run.ProcessingEngineRunFacet,
    "errorMessage": facet_v2.error_message_run.ErrorMessageRunFacet,
    "jobType": facet_v2.job_type_job.JobTypeJobFacet,
    "documentation": facet_v2.documentation_job.DocumentationJobFacet,
    "sourceCodeLocation": facet_v2.source_code_location_job.SourceCodeLocationJobFacet,
    "schema": facet_v2.schema_dataset.SchemaDatasetFacet,
    "version": facet_v2.dataset_version_dataset.DatasetVersionDatasetFacet,
    "dataSource": facet_v2.datasource_dataset.DatasourceDatasetFacet,
    "columnLineage": facet_v2.column_lineage_dataset.ColumnLineageDatasetFacet,
    "dataQualityAssertions": facet_v2.data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet,
    "inputStatistics": facet_v2.input_statistics_input_dataset.InputStatisticsInputDatasetFacet,
    "outputStatistics": facet_v2.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet,
}
NESTED = {
    "fields": facet_v2.schema_dataset.SchemaDatasetFacetFields,
    "assertions": facet_v2.data_quality_assertions_dataset.Assertion,
}


class Silent:
    """A watcher that looks away."""

    def began(self, at: int, at_work: Any) -> None:
        """Look away."""

    def ended(self, at: int, partition: Any, message: str) -> None:
        """Look away."""


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with a lake and the run in it."""
    place = tmp_path_factory.mktemp("lineage")
    few_loans(place)
    run = computed(Lake(place / "lake"), _spec(place))
    return place, run


def _spec(place: Path) -> Any:
    return read_spec((place / "few.yaml").read_text(), "few.yaml", {"source.path": str(place / "loans.csv")}).spec


@pytest.fixture
def events(audited: tuple[Path, str]) -> list[Event]:
    return list(events_again(Lake(audited[0] / "lake"), audited[1]))


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISABLED", "URL", "CONFIG", "KEY", "ENDPOINT"):
        monkeypatch.delenv(getattr(openlineage, name), raising=False)


def test_every_stage_begins_and_completes_and_names_the_run_as_its_parent(
    audited: tuple[Path, str], events: list[Event]
) -> None:
    manifest = read_manifest(Lake(audited[0] / "lake"), audited[1])
    names = ["few", *(f"few.{step['name']}" for step in manifest["steps"])]
    for kind in (START, COMPLETE):
        assert sorted(e["job"]["name"] for e in events if e["eventType"] == kind) == sorted(names)
    whole, *_ = events
    for event in events[1:-1]:
        assert event["run"]["facets"]["parent"]["run"] == {"runId": whole["run"]["runId"]}
    assert len({event["run"]["runId"] for event in events}) == len(names)


def test_the_same_run_gives_the_same_bytes_again(audited: tuple[Path, str], events: list[Event]) -> None:
    again = list(events_again(Lake(audited[0] / "lake"), audited[1]))
    assert json.dumps(again, sort_keys=True) == json.dumps(events, sort_keys=True)


def test_jobs_name_the_commit_of_a_checkout_else_the_digest_of_the_installed_code(
    audited: tuple[Path, str], events: list[Event]
) -> None:
    lake = Lake(audited[0] / "lake")
    manifest = read_manifest(lake, audited[1])
    assert {e["job"]["facets"]["sourceCodeLocation"]["version"] for e in events} == {
        manifest.get("commit") or manifest["code"]
    }
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True)
    assert manifest.get("commit", "").removesuffix("-dirty") == head.stdout.strip()
    installed = RunEvents(lake, "few", 1990, audited[1], manifest["started"], "csv", manifest["code"], "")
    location = installed.event(START, "", 0.0)["job"]["facets"]["sourceCodeLocation"]
    assert (location["type"], location["version"]) == ("package", manifest["code"])
    _hold("sourceCodeLocation", location)


def test_datasets_lead_from_the_source_to_the_report(audited: tuple[Path, str], events: list[Event]) -> None:
    reached = {"loans.csv"}
    for event in (event for event in events if event["eventType"] == COMPLETE):
        if reached & {dataset["name"] for dataset in event["inputs"]}:
            reached |= {dataset["name"] for dataset in event["outputs"]}
    assert f"reports/{audited[1]}" in reached
    assert {d["name"] for e in events for d in (*e["inputs"], *e["outputs"])} == reached


def test_events_are_what_the_classes_of_the_client_make(events: list[Event]) -> None:
    """OpenLineage generates these classes from its JSON Schemas: a wrong or missing field is a TypeError."""
    for event in events:
        given = {name: value for name, value in event.items() if name not in ("schemaURL", "inputs", "outputs")}
        made = event_v2.RunEvent(
            **{
                **given,
                "eventType": event_v2.RunState(event["eventType"]),
                "run": event_v2.Run(**event["run"]),
                "job": event_v2.Job(**event["job"]),
                "inputs": [event_v2.InputDataset(**dataset) for dataset in event["inputs"]],
                "outputs": [event_v2.OutputDataset(**dataset) for dataset in event["outputs"]],
            }
        )
        assert made.schemaURL == event["schemaURL"]
        assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
        for name, facet in _facets(event):
            _hold(name, facet)


def _assertions(dataset: dict[str, Any]) -> list[dict[str, Any]]:
    return list(dataset.get("inputFacets", {}).get("dataQualityAssertions", {}).get("assertions", []))


def _facets(event: Event) -> Iterator[tuple[str, dict[str, Any]]]:
    holders = [event["run"], event["job"], *event["inputs"], *event["outputs"]]
    for holder in holders:
        for place in ("facets", "inputFacets", "outputFacets"):
            yield from holder.get(place, {}).items()


def _hold(name: str, facet: dict[str, Any]) -> None:
    content = {key: value for key, value in facet.items() if not key.startswith("_")}
    assert set(facet) - set(content) == {"_producer", "_schemaURL"}
    if name.startswith("evenhand_"):
        assert facet["_schemaURL"] == f"urn:evenhand:facets:1:{name}"
        return
    assert CLIENT[name](**content)._schemaURL == facet["_schemaURL"]
    for key, values in content.items():
        if key in NESTED and isinstance(values, list):
            for value in values:
                NESTED[key](**value)


@pytest.mark.parametrize("wrong", [{"run": {"runId": "few"}}, {"eventTime": "yesterday"}, {"job": {"namespace": "e"}}])
def test_the_classes_refuse_a_wrong_event(events: list[Event], wrong: dict[str, Any]) -> None:
    event = {**events[0], **wrong}
    with pytest.raises((TypeError, ValueError)):
        event_v2.RunEvent(
            eventTime=event["eventTime"], run=event_v2.Run(**event["run"]), job=event_v2.Job(**event["job"])
        )


def test_no_event_has_a_row_or_a_small_number(audited: tuple[Path, str], events: list[Event]) -> None:
    text = json.dumps(events)
    assert '"L0' not in text
    checked = [a for e in events for d in e["inputs"] for a in _assertions(d)]
    assert checked
    assert {key for assertion in checked for key in assertion} <= {"assertion", "success", "column"}
    restricted = [d for e in events for d in e["outputs"] if d["name"].endswith(("/applications", "/memberships"))]
    assert restricted
    assert all(d["facets"]["evenhand_restricted"]["restricted"] for d in restricted)
    lake = Lake(audited[0] / "lake")
    digests = {
        table["sha256"]
        for entry in read_manifest(lake, audited[1])["partitions"]
        for table in entry["tables"]
        if table["table"] in ("applications", "memberships", "refusals")
    }
    assert not any(digest in text for digest in digests)


def _run(lake: Lake, planned: Plan, error: BaseException | None = None) -> Any:
    """Run a plan whose stages the lake holds, and fail in the second stage."""
    with followed(lake, planned, Silent()) as watcher:
        for at, partition in enumerate(held(lake, planned.steps)):
            watcher.began(at, [])
            if error is not None and at == 1:
                raise error
            watcher.ended(at, partition, "")
    return watcher


def test_a_receiver_gets_every_event_of_a_run_at_work(
    audited: tuple[Path, str], events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, planned = Lake(audited[0] / "lake"), plan(_spec(audited[0]))
    started = read_manifest(lake, audited[1])["started"]
    with web_receiver() as received:
        monkeypatch.setenv(openlineage.URL, f"http://127.0.0.1:{received.port}")
        watcher = _run(lake, planned.begun(started))
    got = [json.loads(body) for body in received.bodies]
    assert watcher.summary == f"{len(events)} made, {len(events)} sent"
    assert [(e["eventType"], e["job"], e["run"]["runId"]) for e in got] == [
        (e["eventType"], e["job"], e["run"]["runId"]) for e in events
    ]
    reused = [e for e in got if "evenhand_reused" in e["run"]["facets"]]
    assert len(reused) == len(planned.steps)
    for name, facet in (pair for event in got for pair in _facets(event)):
        _hold(name, facet)


@pytest.mark.parametrize(
    ("error", "kind", "why"),
    [(DataQualityError("L0001 is wrong"), FAIL, "Data quality"), (KeyboardInterrupt(), ABORT, "")],
)
def test_a_run_that_fails_or_is_stopped_says_so_without_its_words(
    audited: tuple[Path, str], tmp_path: Path, error: BaseException, kind: str, why: str, monkeypatch: Any
) -> None:
    lake = Lake(audited[0] / "lake")
    config = tmp_path / "openlineage.yml"
    config.write_text(f"transport: {{type: file, log_file_path: {tmp_path / 'events.ndjson'}}}\n")
    monkeypatch.setenv(openlineage.CONFIG, str(config))
    with pytest.raises(type(error)):
        _run(lake, plan(_spec(audited[0])), error)
    lines = [json.loads(line) for line in (tmp_path / "events.ndjson").read_text().splitlines()]
    last = lines[-2:]
    assert [(event["eventType"], event["job"]["name"]) for event in last] == [(kind, "few.preprocess"), (kind, "few")]
    assert [e["run"]["facets"].get("errorMessage", {}).get("message", "") for e in last] == [why, why]
    assert "L0001" not in (tmp_path / "events.ndjson").read_text()


def test_too_little_evidence_is_no_failure(audited: tuple[Path, str], tmp_path: Path, monkeypatch: Any) -> None:
    lake = Lake(audited[0] / "lake")
    monkeypatch.setattr(openlineage, "target_of", lambda _: openlineage.Target("file", str(tmp_path / "events.ndjson")))
    with pytest.raises(TooLittleEvidenceError):
        _run(lake, plan(_spec(audited[0])), TooLittleEvidenceError("few"))
    last = json.loads((tmp_path / "events.ndjson").read_text().splitlines()[-1])
    assert (last["eventType"], last["job"]["name"]) == (COMPLETE, "few")


def test_a_receiver_that_refuses_or_hangs_costs_seconds_and_one_warning(
    audited: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lake, planned = Lake(audited[0] / "lake"), plan(_spec(audited[0]))
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        monkeypatch.setattr(
            openlineage, "target_of", lambda _: openlineage.http_target(f"http://127.0.0.1:{port}", 0.3)
        )
        refused = _run(lake, planned)
        server.listen()
        began = time.monotonic()
        hung = _run(lake, planned)
        assert time.monotonic() - began < 3
    made = 2 * len(planned.steps) + 2
    assert refused.summary == hung.summary == f"{made} made, 0 sent"
    assert len([r for r in caplog.records if r.getMessage().startswith("lineage:")]) == 2
    assert not any(thread.name == "lineage" and not thread.daemon for thread in threading.enumerate())


def test_settings_that_cannot_be_read_send_nothing_and_fail_nothing(
    tmp_path: Path, audited: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(openlineage.CONFIG, str(tmp_path / "none.yml"))
    with pytest.raises(SpecError):
        target_of(Lake(audited[0] / "lake"))
    assert _run(Lake(audited[0] / "lake"), plan(_spec(audited[0]))).summary == openlineage.NOTHING_SENT
    assert "nothing is sent" in caplog.text


def test_who_is_sent_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(tmp_path / "lake")
    assert target_of(lake) is None
    (lake.root / "settings.yaml").write_text("lineage: {transport: file, path: events.ndjson}\n")
    assert target_of(lake) == openlineage.Target("file", "events.ndjson", below=str(lake.root))
    monkeypatch.setenv(openlineage.URL, "http://127.0.0.1:5000")
    monkeypatch.setenv(openlineage.KEY, "secret")
    target = target_of(lake)
    assert target is not None
    assert (target.place, target.key) == ("http://127.0.0.1:5000/api/v1/lineage", "secret")
    assert "secret" not in repr(target)
    assert openlineage.http_target("http://127.0.0.1:5000/events").place == "http://127.0.0.1:5000/events"
    monkeypatch.setenv(openlineage.DISABLED, "true")
    assert target_of(lake) is None


def test_an_answer_without_an_end_is_not_read_and_a_head_without_one_costs_the_timeout() -> None:
    with hostile_receiver() as hostile:
        address = f"http://127.0.0.1:{hostile.port}"
        openlineage.http_target(f"{address}/endless").deliver({})
        assert hostile.sent < 2**24, "what lies in buffers, and no more"
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            openlineage.http_target(f"{address}/drip", 0.4).deliver({})
        assert time.monotonic() - began < 0.8
        with pytest.raises(Exception, match="307"):
            openlineage.http_target(f"{address}/elsewhere/1").deliver({})


@pytest.mark.parametrize(
    "transport",
    [
        "{type: http, url: 'http://127.0.0.1:1', timeout: .inf}",
        "{type: http, url: 'http://127.0.0.1:1', timeout: .nan}",
        "{type: http, url: 'http://127.0.0.1:1', timeout: 3600}",
        "{type: http, url: 'http://127.0.0.1:1', auth: mytoken}",
        "{type: http, url: 'http://127.0.0.1:1', auth: [mytoken]}",
        "{type: http, url: [mytoken]}",
        "{type: http, url: 'http://example.org', auth: {apiKey: mytoken}}",
        "{type: [mytoken]}",
        "mytoken",
        "[" * 400,
    ],
)
def test_no_file_of_the_client_ends_an_audit(
    tmp_path: Path, audited: tuple[Path, str], transport: str, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "openlineage.yml").write_text(f"transport: {transport}\n")
    monkeypatch.setenv(openlineage.CONFIG, str(tmp_path / "openlineage.yml"))
    assert _run(Lake(audited[0] / "lake"), plan(_spec(audited[0]))).summary == openlineage.NOTHING_SENT
    warnings = [record.getMessage() for record in caplog.records if record.getMessage().startswith("lineage:")]
    assert len(warnings) == 1
    assert "mytoken" not in warnings[0]


@pytest.mark.parametrize("broken", ["target_of", "close"])
def test_no_fault_of_target_or_close_ends_an_audit(
    audited: tuple[Path, str], tmp_path: Path, broken: str, monkeypatch: Any
) -> None:
    def fail(*_: object) -> None:
        raise OverflowError("timestamp too large")

    holder = openlineage if broken == "target_of" else openlineage.Sender
    monkeypatch.setattr(openlineage, "target_of", lambda _: openlineage.Target("file", str(tmp_path / "events")))
    monkeypatch.setattr(holder, broken, fail)
    assert _run(Lake(audited[0] / "lake"), plan(_spec(audited[0]))).summary == openlineage.NOTHING_SENT


def test_a_key_goes_to_no_receiver_of_a_lake_and_nowhere_without_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path / "lake")
    monkeypatch.setenv(openlineage.KEY, "secret")
    for url in ("http://example.org/", "https://example.org/", "http://127.0.0.1:5000"):
        (lake.root / "settings.yaml").write_text(f"lineage: {{transport: http, url: '{url}'}}\n")
        target = target_of(lake)
        assert target is not None
        assert target.key == ""
    for url in (
        "http://example.org/",
        "http://127.0.0.1@example.org/",
        "http://localhost.example.org",
        "ftp://x",
        "http://[",
    ):
        monkeypatch.setenv(openlineage.URL, url)
        with pytest.raises(SpecError, match="TLS"):
            target_of(lake)
    for url in ("https://example.org/", "http://localhost:5000", "http://[::1]:5000"):
        monkeypatch.setenv(openlineage.URL, url)
        target = target_of(lake)
        assert target is not None
        assert target.key == "secret"


def test_a_password_in_the_address_of_a_receiver_is_in_no_message_and_is_not_sent_without_tls(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SpecError, match="TLS") as refused:
        openlineage.http_target("http://ann:secret@example.org/")
    lake = Lake(tmp_path / "lake")
    for wrong in ("{transport: file, url: 'https://ann:secret@h/x'}", "'https://ann:secret@h/x'"):
        (lake.root / "settings.yaml").write_text(f"lineage: {wrong}\n")
        with pytest.raises(SpecError) as fault:
            target_of(lake)
        assert "secret" not in str(fault.value)
    caplog.set_level("INFO")
    with web_receiver() as received:
        target = openlineage.http_target(f"http://ann:secret@127.0.0.1:{received.port}/x?token=secret")
        target.deliver({})
    assert len(received.bodies) == 1
    assert "secret" not in f"{refused.value} {caplog.text} {target!r} {openlineage.host_of(target.place)}"


def test_a_key_for_a_loopback_is_handed_to_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with web_receiver() as proxy, web_receiver() as received:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        openlineage._client.cache_clear()
        openlineage.http_target(f"http://127.0.0.1:{received.port}", key="secret").deliver({})
        openlineage._client.cache_clear()
        assert (proxy.bodies, received.bodies) == ([], [b"{}"])


def test_a_file_of_a_lake_lies_in_the_lake(tmp_path: Path) -> None:
    lake, victim = Lake(tmp_path / "lake"), tmp_path / ".profile"
    victim.write_text("mine")
    (lake.root / "link").symlink_to(victim)
    (lake.root / "folder").symlink_to(tmp_path)
    os.link(victim, lake.root / "hard")
    os.mkfifo(lake.root / "pipe")

    def deliver(path: object) -> None:
        (lake.root / "settings.yaml").write_text(f"lineage: {{transport: file, path: '{path}'}}\n")
        target = target_of(lake)
        assert target is not None
        target.deliver({})

    for path in (victim, "../.profile", "logs/../../.profile", "."):
        with pytest.raises(SpecError):
            deliver(path)
    for path in ("link", "folder/.profile", "hard", "pipe"):
        with pytest.raises(OSError):  # noqa: PT011 each has its own words by the system
            deliver(path)
    assert victim.read_text() == "mine"
    deliver("logs/of/events.ndjson")
    deliver("logs/of/events.ndjson")
    assert (lake.root / "logs/of/events.ndjson").read_text() == "{}\n{}\n"


def test_only_published_tables_have_a_size(events: list[Event]) -> None:
    sizes = {
        d["name"].split("/")[-1]: d["outputFacets"].get("outputStatistics", {}).get("size")
        for e in events
        for d in e["outputs"]
        if "outputFacets" in d
    }
    assert {name for name, size in sizes.items() if size} == {name for name in sizes if name.startswith("published_")}
    assert sizes["published_verdicts"]


def test_the_command_prints_sends_and_names_a_dead_receiver(audited: tuple[Path, str], events: list[Event]) -> None:
    place, run = audited
    printed = evenhand("lineage", run, "--lake", str(place / "lake"))
    assert [json.loads(line) for line in printed.stdout.splitlines()] == events
    assert UUID(events[0]["run"]["runId"]).version == 5
    with web_receiver() as received:
        sent = evenhand("lineage", run, "--lake", str(place / "lake"), "--url", f"http://127.0.0.1:{received.port}")
    assert sent.returncode == 0
    assert [json.loads(body) for body in received.bodies] == events
    dead = evenhand("lineage", run, "--lake", str(place / "lake"), "--url", f"http://127.0.0.1:{received.port}")
    assert dead.returncode == 5
