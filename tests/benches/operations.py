"""A soak: server, worker and a schedule of an audit every two minutes, shaken at random, and what came of each date.

The server is killed and comes back, the worker is killed or asked to end, runs at work are killed. At the end there is
a run for each date, with the tables of an audit that nothing disturbed; no process and no lock is left. In the second
half server and worker live on, and their memory is watched.

Scope: runs and targets. What is started, done and looked at: ``work.soak``.
"""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from benches import soak
from benches.soak import (
    EVERY,
    SLOTS,
    WITH,
    WITHOUT,
    Act,
    Dates,
    Received,
    Services,
    Shaking,
    added_seconds,
    digests,
    receiver,
)

from flows.runs.index import runs_of
from flows.supervision.presence import holders, leftovers, recorded
from research.benchmark import Bench, Room, Row, against, at_most, row
from tasks.lake.store import Lake

DATES = 8
"""Without --hours or --reps: a quarter of an hour and what comes after."""
FREE_MB = 2_000
MOST_BEGUN_S, MOST_TOLD_S, MOST_RESUMED_S, MOST_GROWN = 30.0, 60.0, 120.0, 0.10
MOST_TOLD_CPU_S = 1.0
_FIRST = timedelta(seconds=60)
"""From the worker's start to the first date."""
_END_SECONDS = 900.0
_SEEN_TO_SECONDS = 120.0
"""In which a worker sees to the records of runs that are over."""
_COMPARED = 5
_SEED = 25
_LEFT = 143
SOAK = "soak"


def _lines(room: Room) -> Iterator[Row]:
    hours = room.options.get("--hours")
    count = round(hours * 3600 / EVERY.total_seconds()) if hours else (room.reps or DATES)
    with receiver(room.place / "alerts.yaml") as received:
        services = Services(room.place / "soak", room.place / "alerts.yaml")
        try:
            services.start_server()
            yield _of_telling(services)
            received.bodies.clear()  # those of its runs
            yield from _soaked(services, count, received)
        finally:
            services.close()


def _soaked(services: Services, count: int, received: Received) -> Iterator[Row]:
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

    dates = Dates(services.home, count, (datetime.now(UTC) + _FIRST).replace(microsecond=0))
    settings = {PREFECT_API_URL: services.api, PREFECT_CLIENT_MAX_RETRIES: 5}
    with temporary_settings(settings), get_client(sync_client=True) as client:
        dates.register(client, services.lake)
        services.start_worker()
        shaking = Shaking(services, _SEED)
        redraw = _Redrawn(dates)
        shaking.until(dates.at(count // 2), dates.at(count) - EVERY / 2, redraw)
        _wait(_END_SECONDS, lambda: soak.all_over(client, dates))
        runs = soak.dated(client, dates)
    lake = Lake(services.lake)
    _wait(_SEEN_TO_SECONDS, lambda: not list(recorded(lake)))
    code = services.leave()
    services.close()
    yield from _of_dates(dates, runs, shaking.done, lake)
    yield from _of_times(runs, shaking.done, lake)
    yield from _of_alerts(lake, received)
    yield from _of_the_end(services, lake, code, shaking)


def _of_telling(services: Services) -> Row:
    any_date = Dates(services.home, 1, datetime.now(UTC))
    any_date.draw(0)
    took = added_seconds(services, any_date.spec(0))
    added = took[WITH] - took[WITHOUT]
    seconds = f"{took[WITH]:.2f} with, {took[WITHOUT]:.2f} without"
    what, target = "alerts, log and artifacts of a run", at_most(added, MOST_TOLD_CPU_S, " s")
    return row(SOAK, None, what, cpu_s=added, found=seconds, **target)


class _Redrawn:
    """Draws the rows of a date as soon as the date of its slot before is past by half a turn."""

    def __init__(self, dates: Dates) -> None:
        """The first turn is drawn."""
        self._dates, self._next = dates, SLOTS

    def __call__(self) -> None:
        """Draw what is due."""
        dates = self._dates
        while self._next < dates.count and datetime.now(UTC) > dates.at(self._next) - EVERY * (SLOTS // 2):
            dates.draw(self._next)
            self._next += 1


def _wait(seconds: float, over: Callable[[], bool]) -> None:
    until = time.monotonic() + seconds
    while not over() and time.monotonic() < until:
        time.sleep(2)


def _of_dates(dates: Dates, runs: list[soak.Dated], acts: list[Act], lake: Lake) -> Iterator[Row]:
    kinds = sorted({act.what for act in acts})
    act_counts = "; ".join(f"{sum(act.what == kind for act in acts)} {kind}" for kind in kinds)
    yield row(SOAK, None, "what was done to it", found=act_counts or "nothing")
    once = sorted(run.number for run in runs) == list(range(dates.count))
    completed = sum(run.state == "COMPLETED" for run in runs)
    words = f"{dates.count} dates, {len(runs)} runs, {completed} completed"
    yield row(SOAK, None, "runs", found=words, **against("a run for each date", once and completed == dates.count))
    lake_runs = runs_of(lake)
    yield row(
        SOAK,
        None,
        "audits in the lake",
        found=f"{len(lake_runs)}",
        **against("each once", len(lake_runs) == dates.count),
    )
    yield _compared(dates, runs, acts, lake)


def _compared(dates: Dates, runs: list[soak.Dated], acts: list[Act], lake: Lake) -> Row:
    """Audits some dates again on another lake and compares the tables; dates with a disturbed run come first."""
    shaken = {act.run for act in acts if act.run}
    chosen = [run.number for run in sorted(runs, key=lambda run: run.id not in shaken)][:_COMPARED]
    run_digests = {run.run: digests(run) for run in runs_of(lake)}
    quiet = Lake(dates.place / "quiet")
    equal = 0
    for number in chosen:
        alone = dates.left_alone(number, quiet)
        equal += run_digests.get(alone.run) == digests(alone)
    summary = f"{equal} of {len(chosen)} audited once more; {sum(run.id in shaken for run in runs)} were disturbed"
    return row(SOAK, None, "tables of an undisturbed audit", found=summary, **against("equal", equal == len(chosen)))


def _of_times(runs: list[soak.Dated], acts: list[Act], lake: Lake) -> Iterator[Row]:
    for what, values, most in (
        ("a run begins after its date, worker idle", soak.begun_after(runs, acts), MOST_BEGUN_S),
        ("an alert leaves after the end", soak.told_after(lake, runs), MOST_TOLD_S),
        ("a killed run runs again", soak.resumed_after(runs, acts), MOST_RESUMED_S),
    ):
        target = at_most(max(values), most, " s") if values else {}
        yield row(SOAK, len(values), what, **{**soak.seconds_words(values), **target})


def _of_alerts(lake: Lake, received: Received) -> Iterator[Row]:
    ends, deaths = soak.alerts_of_ends(lake)
    said = f"{ends} of ends, {deaths} of deaths, {len(received.bodies)} received"
    runs = len(runs_of(lake))
    once = ends == runs and len(received.bodies) == ends + deaths
    yield row(SOAK, None, "alerts", found=said, **against("each once", once))


def _of_the_end(services: Services, lake: Lake, code: int, shaking: Shaking) -> Iterator[Row]:
    processes = services.left()
    yield row(SOAK, None, "processes left", found=", ".join(processes) or "none", **against("none", not processes))
    locks = [holder.lock for holder in holders(lake)] + [str(path.name) for path in leftovers(lake)]
    locks += [presence.name for presence in recorded(lake)]
    leftover_names = ", ".join(locks) or "none"
    yield row(SOAK, None, "locks, drafts and records left", found=leftover_names, **against("none", not locks))
    codes = [code, *(act.code for act in shaking.done if act.code is not None)]
    in_order = all(exit_code == _LEFT for exit_code in codes)
    words = f"{len(codes)} times, exit {', '.join(map(str, sorted(set(codes))))}"
    yield row(SOAK, None, "the worker left on SIGTERM", found=words, **against(f"exit {_LEFT}", in_order))
    for name, (first, last) in sorted(soak.growth(shaking.memory).items()):
        grown = last / first - 1
        span = f"{first:.0f} to {last:.0f} MB"
        yield row(SOAK, None, f"memory of the {name}", ratio=grown, found=span, **at_most(grown, MOST_GROWN))


BENCH = Bench("operations", _lines, memory_mb=FREE_MB, repeats=True, takes=("--hours",), of_any_size=True)
