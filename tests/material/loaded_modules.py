"""The modules that a command loads in a process of its own."""

import json
import subprocess
import sys

from conftest import REPOSITORY

HEAVY = ("torch", "prefect", "great_expectations", "numba")
COMPUTING = (
    *HEAVY,
    "pandas",
    "scipy.stats",
    "scipy.optimize",
    "scipy.spatial",
    "sklearn",
    "skops",
    "networkx",
    "jinja2",
)
"""What only computes, judges or draws: to plan an audit, and to find that it is done, takes none of it."""
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
