"""Steps side by side: each reads what it reads one after another, the longest go first, and an error ends what is new.

The stages are those of the bundled audit; nothing is computed: a step's tables have the digest of what it read.
"""

import hashlib
import random
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from flows.cli.options import BUNDLED
from flows.concurrency.schedule import Schedule
from schemas.artifact import Artifact, Partition
from schemas.audit.file import spec_text
from schemas.errors import SpecError, SuiteError
from tasks.pipeline.registry import read_spec
from tasks.plan import Inputs, Step, plan, walk


@pytest.fixture(scope="module")
def steps() -> tuple[Step, ...]:
    return plan(read_spec(spec_text(BUNDLED), str(BUNDLED), {}).spec).steps


def partition_of(step: Step, given: Inputs) -> Partition:
    """Its tables, with a digest of the step and of all that it read, in order."""
    read = [artifact.sha256 for table in sorted(given) for artifact in given[table]]
    digest = hashlib.sha256(repr((step.name, read)).encode()).hexdigest()
    names = [*(table.name for table in step.stage.writes), "refusals", "validations"]
    tables = tuple(
        Artifact(table=name, path=f"{step.name}/{name}", sha256=f"{digest} {name}", rows=1) for name in names
    )
    return Partition(stage=step.stage.name, key=digest, tables=tables, files={})


class Later:
    """Starts steps, and ends a random one of those at work as soon as the schedule waits."""

    def __init__(self, steps: tuple[Step, ...], seed: int, fail: Callable[[str], Exception | None] = lambda _: None):
        self.steps, self.random, self.fail = steps, random.Random(seed), fail
        self.running: dict[int, tuple[Future[Partition], Inputs]] = {}
        self.started: list[str] = []
        self.most = 0
        self.lock = threading.Lock()

    def start(self, at: int, given: Inputs) -> Any:
        with self.lock:
            future: Future[Partition] = Future()
            self.running[at] = (future, given)
            self.started.append(self.steps[at].name)
            self.most = max(self.most, len(self.running))
        threading.Timer(0.004, self._end).start()
        return future

    def _end(self) -> None:
        with self.lock:
            at = self.random.choice(sorted(self.running))
            future, given = self.running.pop(at)
        error = self.fail(self.steps[at].name)
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(partition_of(self.steps[at], given))


def scheduled(steps: tuple[Step, ...], jobs: int, seconds: dict[str, float] | None = None) -> Schedule:
    took = seconds or {}
    return Schedule(steps, [took.get(step.name) for step in steps], jobs)


@pytest.mark.parametrize("jobs", [1, 2, 4, 20])
@pytest.mark.parametrize("seed", range(4))
def test_every_step_reads_what_it_reads_one_after_another(steps: tuple[Step, ...], jobs: int, seed: int) -> None:
    later = Later(steps, seed)
    assert scheduled(steps, jobs).run(later.start, lambda *_: None) == walk(steps, partition_of)
    assert later.most <= jobs
    assert jobs == 1 or later.most > 1


def test_one_job_keeps_the_order_of_the_plan(steps: tuple[Step, ...]) -> None:
    later = Later(steps, 0)
    scheduled(steps, 1).run(later.start, lambda *_: None)
    assert later.started == [step.name for step in steps]


def test_what_takes_longest_starts_first(steps: tuple[Step, ...]) -> None:
    took = {step.name: 1.0 for step in steps} | {"mediate": 30.0, "rerank": 20.0}
    later = Later(steps, 0)
    scheduled(steps, 2, took).run(later.start, lambda *_: None)
    assert later.started.index("mediate") < later.started.index("rerank") < later.started.index("generate")


def test_after_an_error_nothing_new_starts_and_the_first_in_the_plan_is_raised(
    steps: tuple[Step, ...], caplog: pytest.LogCaptureFixture
) -> None:
    errors = {"connect": SuiteError("of connect"), "score": SpecError("of score")}
    later = Later(steps, 0, errors.get)
    schedule = scheduled(steps, 2)
    with caplog.at_level("INFO", "evenhand"), pytest.raises(SpecError, match="of score"):
        schedule.run(later.start, lambda *_: None)
    assert later.started[:2] == ["ingest", "preprocess"]
    assert set(later.started[2:]) == {"abandoned", "score", "connect"}
    assert len(schedule.done) == 3
    assert "stage connect failed, too: of connect" in caplog.text
    assert "stage score failed; 3 of" in caplog.text


def test_what_runs_beside_an_error_goes_on_and_is_kept(steps: tuple[Step, ...]) -> None:
    error = SuiteError("of connect")
    later = Later(steps, 3, lambda name: error if name == "connect" else None)
    schedule = scheduled(steps, 2)
    with pytest.raises(SuiteError):
        schedule.run(later.start, lambda *_: None)
    kept = {steps[at].name for at in schedule.done}
    assert set(later.started) == kept | {"connect"}


def test_an_error_of_whoever_is_told_ends_the_audit(steps: tuple[Step, ...]) -> None:
    def told(at: int, _: Partition) -> None:
        if at == 0:
            raise SpecError("too few people")

    later = Later(steps, 0)
    with pytest.raises(SpecError, match="too few people"):
        scheduled(steps, 4).run(later.start, told)
    assert later.started == ["ingest"]
