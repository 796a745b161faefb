"""Lineage of a result: the code and the libraries that made it, and the cost of the run.

The digest of the code covers every first-party module that a stage reaches through its imports, read as syntax trees
without docstrings: a fix in an algorithm changes the key of every stage that uses it, a comment changes none.
"""

import ast
import hashlib
import platform
import resource
import sys
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path

_ROOT = Path(__file__).parents[2]
"""Modules are found as files below it: to import one, or its package, could take seconds (torch)."""

FIRST_PARTY = ("flows", "tasks", "schemas")
DECIDES_RESULTS = (
    "numpy", "scipy", "scikit-learn", "numba", "pandas", "pyarrow", "duckdb", "networkx",
    "altair", "vl-convert-python", "jinja2", "pulp", "torch", "fairlearn", "skops", "onnx",
)  # fmt: skip
_NOT_REACHED = frozenset(
    {
        "tasks.lake.store",
        "tasks.lake.storage",
        "tasks.lake.local_directory",
        "tasks.lake.remote_filesystem",
        "tasks.lake.object_store",
        "tasks.pipeline.lineage",
    }
)
"""The lake moves results and does not make them. The quarantine does: ``stage`` and ``validation`` count."""


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Versions of the interpreter and of the libraries that decide numbers and pages."""
    return {"python": platform.python_version(), **{name: version(name) for name in DECIDES_RESULTS}}


def code_digest(modules: Iterable[str], resources: Iterable[Path] = ()) -> str:
    """Hex digest of the first-party code reached from modules, and of the bytes of resource files."""
    reached: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in reached and name not in _NOT_REACHED:
            reached.add(name)
            waiting.extend(_parsed(name)[1])
    digest = hashlib.sha256()
    for name in sorted(reached):
        digest.update(f"{name}\n{_parsed(name)[0]}\n".encode())
    for path in sorted(resources):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


@cache
def _parsed(name: str) -> tuple[str, tuple[str, ...]]:
    """Digest of a module without docstrings or layout, and the first-party modules that it imports.

    All are kept: Python 3.11 cannot parse in two threads at once, and libraries parse while they are loaded.
    """
    tree = ast.parse(_file(name).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            _drop_docstring(node)
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), tuple(dict.fromkeys(_imports(tree)))


def _drop_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    strings = [
        s
        for s in node.body
        if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, str)
    ]
    node.body = [s for s in node.body if s not in strings] or [ast.Pass()]


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _is_ours(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module and _is_ours(node.module):
            yield node.module
            inner = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name for name in inner if _is_module(name))


def _is_ours(name: str) -> bool:
    return name.split(".")[0] in FIRST_PARTY


def _is_module(name: str) -> bool:
    return any(place.is_file() for place in _places(name))


def _file(name: str) -> Path:
    for place in _places(name):
        if place.is_file():
            return place
    raise ModuleNotFoundError(f"no first-party module {name!r}")


def _places(name: str) -> tuple[Path, Path]:
    """Where a module lies, as a package or as a file."""
    place = _ROOT.joinpath(*name.split("."))
    return place / "__init__.py", place.with_name(f"{place.name}.py")


def peak_memory_mb() -> float:
    """Highest resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if sys.platform != "darwin" else peak / 2**20
