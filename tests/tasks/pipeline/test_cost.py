"""What a stage run is said to have cost: its own peak of memory, CPU time of threads and children, its threads."""

import subprocess
import sys
import time

import numpy as np
import pytest

from tasks.pipeline.lineage import cost
from tasks.pipeline.lineage.cost import cpu_seconds, measured

linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak is the process's")


def held(megabytes: int) -> float:
    """Peak of a block that holds so much memory for a moment."""
    with measured() as found:
        np.ones(megabytes * 2**17)
    peak: float = found["peak_memory_mb"]
    return peak


@linux
def test_the_peak_is_the_stages_own_and_not_that_of_the_process() -> None:
    small, large, after = held(1), held(300), held(1)
    assert large - small == pytest.approx(300, abs=30)
    assert after - small < 60, "what an earlier stage held does not count"


@linux
def test_where_the_peak_cannot_be_reset_it_is_the_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pytest.TempPathFactory
) -> None:
    held(300)
    monkeypatch.setattr(cost, "_CLEAR", tmp_path)  # a directory cannot be written
    assert held(1) > 300


def test_cpu_time_has_that_of_ended_children_and_none_of_waiting() -> None:
    before = cpu_seconds()
    time.sleep(0.3)
    waited = cpu_seconds() - before
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.4: pass"], check=True)
    assert waited < 0.2
    assert cpu_seconds() - before > 0.35
