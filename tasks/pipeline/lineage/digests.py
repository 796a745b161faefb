"""Lineage of a result: the code and the libraries that made it.

The digest of the code covers every first-party module that a stage reaches through its imports: a fix in an algorithm
changes the key of every stage that uses it; a comment, a moved or a renamed module changes none.
"""

import hashlib
import platform
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path

from tasks.pipeline.lineage.sources import Sources

DECIDES_RESULTS = (
    "numpy", "scipy", "scikit-learn", "numba", "pandas", "pyarrow", "duckdb", "networkx",
    "jinja2", "pulp", "torch", "fairlearn", "skops", "onnx", "xlsxwriter",
)  # fmt: skip


@cache
def versions() -> dict[str, str]:
    """Versions of the interpreter and of the libraries that decide numbers and pages."""
    return {"python": platform.python_version(), **{name: version(name) for name in DECIDES_RESULTS}}


@cache
def sources() -> Sources:
    """The code of this process, read once."""
    return Sources(Path(__file__).parents[3])


def code_digest(modules: Iterable[str], resources: Iterable[Path] = ()) -> str:
    """Hex digest of the first-party code reached from modules, and of the bytes of resource files."""
    digest = hashlib.sha256()
    for each in sorted(set(sources().digests(modules))):
        digest.update(f"{each}\n".encode())
    for path in sorted(resources):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
