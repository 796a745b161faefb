"""What the command loads before it knows that it will compute something."""

import json
import subprocess
import sys
from pathlib import Path

from conftest import REPOSITORY

from tasks.lake.store import Lake

HEAVY = ("torch", "prefect", "great_expectations", "numba")
COMMAND = """
import json, sys
from flows.cli.main import app
try:
    app(sys.argv[1:])
except SystemExit:
    pass
sys.stderr.write("\\n" + json.dumps(sorted(sys.modules)))
"""


def loaded(*words: str) -> set[str]:
    """The modules that a process has loaded once a command ended."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words], capture_output=True, text=True, cwd=REPOSITORY, check=True
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_help_loads_no_library_of_data() -> None:
    assert loaded("--help").isdisjoint({*HEAVY, "duckdb", "networkx", "numpy", "pandas", "pyarrow", "scipy", "sklearn"})


def test_status_loads_nothing_that_computes(tmp_path: Path) -> None:
    Lake(tmp_path / "lake")
    assert loaded("status", "--lake", str(tmp_path / "lake")).isdisjoint(HEAVY)


def test_a_plan_loads_nothing_that_computes() -> None:
    program = "import sys, tasks.plan; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=REPOSITORY, check=True)
    assert set(done.stdout.split()).isdisjoint(HEAVY)
