"""A process that had no memory: a child of ours ends at once, a flow run of a worker has a while, a command goes on."""

import multiprocessing
import os
import signal
import subprocess
import sys

import pytest

from flows.partitions.attempts import latest, recorded
from flows.supervision.shutdown import ends_without_memory, is_replaceable, lacks_memory
from schemas.errors import InfrastructureError
from schemas.terms import ExitCode
from tasks.lake.store import Lake

FLOW_RUN = """\
import sys, threading
from flows.supervision import shutdown as shortage
shortage.LAST_SECONDS = 1
shortage.limit_life(MemoryError() if sys.argv[1] == "memory" else OSError())
if sys.argv[2] == "goes on":
    shortage.lift_limit()
threading.Event().wait(2)  # as Prefect waits for a thread that never started
"""


def want() -> InfrastructureError:
    error = InfrastructureError("2019 ran out of memory")
    error.__cause__ = MemoryError("4 GB")
    return error


def year(lake: str, error: Exception) -> None:
    with ends_without_memory(), recorded(Lake(lake), "loans", 2019):
        raise error


def ended(lake: str, error: Exception) -> int | None:
    child = multiprocessing.get_context("spawn").Process(target=year, args=(lake, error))
    child.start()
    child.join(60)
    return child.exitcode


def test_a_year_without_memory_is_recorded_and_its_process_ends(tmp_path) -> None:
    assert ended(str(tmp_path), MemoryError("4 GB")) == ExitCode.INFRASTRUCTURE
    record = latest(Lake(tmp_path), "loans", 2019)
    assert record is not None
    assert (record.state.value, record.exit_code, record.replaced) == ("failed", 5, True)


def test_another_error_is_no_reason_to_end(tmp_path) -> None:
    assert ended(str(tmp_path), InfrastructureError("no file")) == 1
    record = latest(Lake(tmp_path), "loans", 2019)
    assert record is not None
    assert not record.replaced


def test_a_command_is_not_replaceable_and_goes_on(tmp_path) -> None:
    assert not is_replaceable()
    assert lacks_memory(want())
    with pytest.raises(InfrastructureError):
        year(str(tmp_path), want())


@pytest.mark.parametrize(
    ("error", "then", "of_worker", "code"),
    [
        ("memory", "hangs", True, -signal.SIGALRM),
        ("memory", "goes on", True, 0),
        ("memory", "hangs", False, 0),
        ("disk", "hangs", True, 0),
    ],
)
def test_a_flow_run_of_a_worker_that_hangs_for_want_of_memory_is_ended(
    error: str, then: str, of_worker: bool, code: int
) -> None:
    own = {"PREFECT__FLOW_RUN_ID": "one"} if of_worker else {}
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT__FLOW_RUN_ID"} | own
    done = subprocess.run([sys.executable, "-c", FLOW_RUN, error, then], env=environment, check=False)
    assert done.returncode == code
