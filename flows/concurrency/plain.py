"""Steps side by side without Prefect, for whoever keeps their record in the lake: a year of a back-fill."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from flows.concurrency.call import StageCall
from flows.concurrency.schedule import Schedule, Told
from flows.concurrency.workers import workers
from schemas.artifact import Partition
from tasks.lake.store import Lake
from tasks.plan import Inputs, Step


def side_by_side(
    schedule: Schedule, lake: Lake, began: Callable[[Step], object] = lambda _: None, told: Told = lambda *_: None
) -> list[Partition]:
    """The partitions of all steps, in the order of the plan.

    Args:
        schedule: the steps, and how many at a time.
        lake: of the audit.
        began: told of a step before it starts.
        told: told of a step that ended.

    Raises:
        EvenhandError: as the first stage in the plan says that failed.
    """
    with workers(schedule.jobs) as processes, ThreadPoolExecutor(schedule.jobs) as threads:

        def start(at: int, given: Inputs) -> Future[Partition]:
            step = schedule.steps[at]
            began(step)
            return threads.submit(processes.compute, at, StageCall.of(step, given, lake.location))

        return schedule.run(start, told)
