"""A stage without memory says so, whatever the library in it says, and comes from a MemoryError, which may pass."""

import resource
import subprocess
import sys

import duckdb
import pytest

from schemas.errors import DataQualityError, InfrastructureError
from tasks.pipeline.resources import telling_short_memory

THREAD = """\
import resource, threading
from tasks.pipeline.resources import telling_short_memory
def used():
    return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used(), used()))
with telling_short_memory("stage ingest"):
    threading.Thread(target=print).start()
"""


@pytest.mark.parametrize(
    "error",
    [MemoryError("4 GB"), duckdb.OutOfMemoryException("could not allocate"), RuntimeError("can't start new thread")],
    ids=["python", "duckdb", "thread"],
)
def test_want_of_memory_is_told_as_such(error: Exception) -> None:
    with pytest.raises(InfrastructureError, match=r"^stage ingest ran out of memory; narrow") as told:
        _raise(error)
    assert isinstance(told.value.__cause__, MemoryError)


@pytest.mark.parametrize("error", [RuntimeError("memory"), DataQualityError("a cell"), KeyError("x")])
def test_other_errors_stay_as_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as told:
        _raise(error)
    assert told.value is error


def test_a_stage_that_says_so_itself_keeps_its_words() -> None:
    said = InfrastructureError("the source could not be read within 800MB of memory")
    said.__cause__ = duckdb.OutOfMemoryException("Allocation failure")
    with pytest.raises(InfrastructureError, match=r"^the source could not be read within 800MB") as told:
        _raise(said)
    assert isinstance(told.value.__cause__, MemoryError)
    assert "Allocation failure" in str(told.value.__cause__)


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_AS") or sys.platform != "linux", reason="the limit is of Linux")
def test_a_thread_that_gets_no_stack_is_want_of_memory() -> None:
    """The words of the interpreter itself, under a real limit."""
    done = subprocess.run([sys.executable, "-c", THREAD], capture_output=True, text=True, check=False)
    assert "stage ingest ran out of memory" in done.stderr, done.stderr[-500:]


def _raise(error: Exception) -> None:
    with telling_short_memory("stage ingest"):
        raise error
