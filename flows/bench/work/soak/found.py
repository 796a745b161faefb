"""What came of the dates of a soak: runs on the server and in the lake, alerts, and how soon things happened."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING, Any

from flows.bench.work.soak.acts import RUN, WORKER, Act
from flows.bench.work.soak.dates import Dates
from flows.outcome.alerts.record import Outcome, alerts
from flows.outcome.ending import Name
from tasks.lake.store import Lake

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun

_PAGE = 200
_BEFORE = timedelta(seconds=60)
"""An act so long before a date may delay its run: server and worker come back."""
_WARM_SHARE = 0.2
"""Of the time that memory is watched, in which it still settles."""


@dataclass(frozen=True)
class Dated:
    """A run of a date."""

    number: int
    id: str
    state: str
    name: str
    due: datetime
    states: tuple[tuple[str, datetime], ...]
    """Type and time of each, the earliest first."""

    @property
    def begun(self) -> datetime | None:
        """When it first ran."""
        return next((time for kind, time in self.states if kind == "RUNNING"), None)

    @property
    def ended(self) -> datetime | None:
        """When it came to its end."""
        return self.states[-1][1] if self.over else None

    @property
    def over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.state in ("COMPLETED", "FAILED", "CANCELLED")


def dated(client: "SyncPrefectClient", dates: Dates) -> list[Dated]:
    """The runs of the schedule, by date."""
    found = [(dates.number_of(run), run) for run in _runs(client)]
    return sorted((_of(client, number, run) for number, run in found if number is not None), key=lambda r: r.number)


def all_over(client: "SyncPrefectClient", dates: Dates) -> bool:
    """Whether the run of each date has ended; runs that no schedule made do not count."""
    over = {dates.number_of(run) for run in _runs(client) if _over(run)}
    return len(over - {None}) >= dates.count


def _over(run: "FlowRun") -> bool:
    """Whether nothing more comes of it: one that crashed is taken up again."""
    return run.state is not None and run.state.is_final() and not run.state.is_crashed()


def _runs(client: "SyncPrefectClient") -> Iterator["FlowRun"]:
    seen = 0
    while page := client.read_flow_runs(limit=_PAGE, offset=seen):
        yield from page
        seen += len(page)


def _of(client: "SyncPrefectClient", number: int, run: "FlowRun") -> Dated:
    states = sorted(client.read_flow_run_states(run.id), key=lambda state: state.timestamp)
    assert run.state is not None  # noqa: S101 each run of a schedule has one
    assert run.expected_start_time is not None  # noqa: S101 as a date has
    told = tuple((state.type.value, state.timestamp) for state in states)
    kind, name = run.state.type.value, run.state.name or ""
    return Dated(number, str(run.id), kind, name, run.expected_start_time, told)


def begun_after(runs: Sequence[Dated], acts: Sequence[Act]) -> list[float]:
    """Seconds from each date to its run, where the worker was idle and nothing had been done to it."""
    found = []
    for run in runs:
        begun = run.begun
        if begun is None or any(_at_work(other, run.due) for other in runs if other is not run):
            continue
        if not any(run.due - _BEFORE < act.time < begun for act in acts):
            found.append((begun - run.due).total_seconds())
    return found


def _at_work(run: Dated, when: datetime) -> bool:
    return run.begun is not None and run.begun < when and (run.ended is None or run.ended > when)


def resumed_after(runs: Sequence[Dated], acts: Sequence[Act]) -> list[float]:
    """Seconds from each death of a run at work until it ran again."""
    by_id = {run.id: run for run in runs}
    found = []
    for act in (act for act in acts if act.what in (RUN, WORKER) and act.run in by_id):
        again = next((time for kind, time in by_id[act.run].states if kind == "RUNNING" and time > act.time), None)
        if again is not None:
            found.append((again - act.time).total_seconds())
    return found


def told_after(lake: Lake, runs: Sequence[Dated]) -> list[float]:
    """Seconds from the end of each run until its alert was delivered; records say whole seconds."""
    ends = {run.id: run.ended for run in runs}
    found = []
    for alert in alerts(lake):
        end = ends.get(alert.ending.flow_run)
        if end is not None and alert.sent and alert.ending.name is not Name.CRASHED:
            found.append(max(0.0, (datetime.fromisoformat(alert.sent) - end).total_seconds()))
    return found


def alerts_of_ends(lake: Lake) -> tuple[int, int]:
    """Alerts about ends, and about deaths, that were delivered."""
    sent = [each for each in alerts(lake) if each.outcome is Outcome.SENT]
    deaths = sum(each.ending.name is Name.CRASHED for each in sent)
    return len(sent) - deaths, deaths


def growth(memory: Sequence[tuple[float, Mapping[str, float]]]) -> dict[str, tuple[float, float]]:
    """Of server and worker: MB at the beginning and at the end of the time that was watched, after it has settled."""
    found: dict[str, list[float]] = defaultdict(list)
    for _, each in memory[int(len(memory) * _WARM_SHARE) :]:
        for name, mb in each.items():
            found[name].append(mb)
    quarter = {name: max(1, len(values) // 4) for name, values in found.items()}
    return {name: (median(v[: quarter[name]]), median(v[-quarter[name] :])) for name, v in found.items() if v}


def seconds_words(values: Sequence[float]) -> Mapping[str, Any]:
    """The largest of some seconds for a row, and how many there are."""
    if not values:
        return {"found": "none was measured"}
    return {"seconds": max(values), "found": f"median {median(values):.1f} s of {len(values)}"}
