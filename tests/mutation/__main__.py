"""Counts the mutants of the numerical code that the mirrored tests kill.

``PYTHONPATH=.:tests python -m mutation --work FOLDER`` draws 200 mutants, runs the tests that reach the line of each
one, the quickest first, and prints those that survive. Every mutant is a fork of this process, in which one module is
compiled from the changed tree: no file is written but those in the folder, where a later call goes on.

A mutant is ``killed`` by a test that fails or by the limit on its processor time, ``equal`` where ``equal.csv`` says
why no result changes, and else ``survived``.
"""

import argparse
import ast
import csv
import hashlib
import json
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import pytest
from mutation.mutants import AREAS, Mutant, drawn, mutated_tree

REPOSITORY: Final = Path(__file__).parents[2]
EQUAL: Final = Path(__file__).with_name("equal.csv")
MUTANTS, SEED, TARGET = 200, 47, 0.9
SECONDS: Final = (30, 10)
"""Processor time of a mutant: so much, and so many times that of its tests without it."""
PLAIN: Final = (
    "-q",
    "-x",
    "-n",
    "0",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:randomly",
    "--no-header",
    "--tb",
    "line",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
)
MARKS: Final = ("-m", "not slow and not long")

LOADED: Final = (
    "duckdb", "great_expectations", "networkx", "numba", "pandas", "prefect", "pulp", "pyarrow.parquet",
    "scipy.sparse.csgraph", "scipy.stats", "sklearn.ensemble", "sklearn.linear_model", "sklearn.neighbors", "torch",
)  # fmt: skip

Reached = dict[str, dict[str, Any]]
"""Test -> its seconds, and file -> the lines of it that the test runs."""


class Tracer:
    """A plugin that notes the lines that each test runs, those of the fixtures of its file included."""

    def __init__(self, area: str) -> None:
        self.folder = str(REPOSITORY / area)
        self.lines: dict[str, set[int]] = {}
        self.of_fixtures: dict[str, dict[str, set[int]]] = {}
        self.reached: Reached = {}

    def trace(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        """Note a line."""
        name = frame.f_code.co_filename
        if not name.startswith(self.folder):
            return None
        lines = self.lines.setdefault(name, set())
        lines.add(frame.f_lineno)

        def inside(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
            lines.add(frame.f_lineno)
            return inside

        return inside

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Trace a test with its fixtures."""
        self.lines = {}
        start = time.process_time()
        sys.settrace(self.trace)
        yield
        sys.settrace(None)
        files = {str(Path(name).relative_to(REPOSITORY)): sorted(lines) for name, lines in self.lines.items()}
        self.reached[item.nodeid] = {"seconds": time.process_time() - start, "files": files}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        """Note what the fixtures run: those of a module run with any of its tests."""
        yield
        noted = self.of_fixtures.setdefault(item.nodeid.split("::")[0], {})
        for name, lines in self.lines.items():
            noted.setdefault(str(Path(name).relative_to(REPOSITORY)), set()).update(lines)

    def found(self) -> Reached:
        """Every test with all lines that it may run."""
        for test, of_test in self.reached.items():
            for name, lines in self.of_fixtures.get(test.split("::")[0], {}).items():
                of_test["files"][name] = sorted({*of_test["files"].get(name, []), *lines})
        return self.reached


class Loader(SourceFileLoader):
    """Compiles a changed tree in place of the file."""

    code: CodeType

    def get_code(self, fullname: str) -> CodeType:
        """The code of the mutant."""
        return self.code


class Finder(MetaPathFinder):
    """Finds the one module that is changed."""

    def __init__(self, mutant: Mutant) -> None:
        self.path = REPOSITORY / mutant.file
        self.name = mutant.file.removesuffix(".py").replace("/", ".")
        self.tree = mutated_tree(self.path.read_text(encoding="utf-8"), mutant.number)

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The module of the mutant, and no other."""
        if fullname != self.name:
            return None
        loader = Loader(fullname, str(self.path))
        loader.code = compile(self.tree, str(self.path), "exec")
        return spec_from_file_location(fullname, self.path, loader=loader)


def _load() -> None:
    """Load what is not ours once, so that a fork begins at once."""
    for name in LOADED:
        import_module(name)


def _compile_anew(folder: Path) -> None:
    """Keep compiled code of a folder out of numba's cache, which knows no changed numbers."""
    from numba.core.dispatcher import Dispatcher

    enable = Dispatcher.enable_caching

    def other(dispatcher: Any) -> None:
        if not dispatcher.py_func.__code__.co_filename.startswith(str(folder)):
            enable(dispatcher)

    Dispatcher.enable_caching = other


def _forked(action: Callable[[], int], seconds: float, out: Path) -> int:
    """Exit status of a fork that runs an action within its processor time."""
    child = os.fork()
    if not child:
        code = 70
        try:
            whole = int(seconds) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 5))
            with out.open("w") as text, redirect_stdout(text), redirect_stderr(text):
                try:
                    code = action()
                except Exception:
                    traceback.print_exc(file=text)
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def reached_by_tests(area: str, work: Path) -> Reached:
    """Which lines of an area its tests run; kept in the folder until the code or a file of tests changes."""
    kept = work / f"{area.replace('/', '-')}.json"
    code = _digest(*sorted((REPOSITORY / area).rglob("*.py")))
    files = {str(path.relative_to(REPOSITORY)): _digest(path) for path in (REPOSITORY / AREAS[area]).rglob("test_*.py")}
    known = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    known = {name: of_file for name, of_file in known.items() if of_file["digest"] == [code, files.get(name)]}
    new = sorted(set(files) - set(known))
    if new:
        own = Path(tempfile.mkdtemp(dir=work))
        traced, out = own / "traced.json", own / "out.txt"

        def action() -> int:
            tracer = Tracer(area)
            arguments = [*PLAIN, *MARKS, f"--basetemp={own / 'tests'}", *new]
            code = int(pytest.main(arguments, plugins=[tracer]))
            traced.write_text(json.dumps(tracer.found()), encoding="utf-8")
            return code

        if _forked(action, 3600, out) not in (0, 5):  # 5: no test of those that are selected
            sys.exit(f"the tests of {area} fail without a mutant:\n{out.read_text()[-2000:]}")
        reached = json.loads(traced.read_text(encoding="utf-8"))
        for name in new:
            tests = {test: of_test for test, of_test in reached.items() if test.split("::")[0] == name}
            known[name] = {"digest": [code, files[name]], "tests": tests}
        kept.write_text(json.dumps(known), encoding="utf-8")
        shutil.rmtree(own, ignore_errors=True)
    return {test: of_test for of_file in known.values() for test, of_test in of_file["tests"].items()}


def _digest(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def tests_of(mutant: Mutant, reached: Reached) -> list[tuple[str, float]]:
    """The tests that run the function of a mutant's line, with their seconds, the quickest first.

    Compiled functions leave no trace, and lines of a module run before a test does: there all tests of its files count.
    """
    exact = {test: of["seconds"] for test, of in reached.items() if mutant.line in of["files"].get(mutant.file, ())}
    if not exact and _untraced(mutant):
        exact = {test: of["seconds"] for test, of in reached.items() if mutant.file in of["files"]} or {
            test: of["seconds"] for test, of in reached.items() if of["files"]
        }
    return sorted(exact.items(), key=lambda pair: pair[1])


def _untraced(mutant: Mutant) -> bool:
    """Whether a line is at the top of a module, in a class, or in a function that numba compiles."""
    inner = None
    for node in ast.walk(ast.parse((REPOSITORY / mutant.file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.lineno <= mutant.line <= (node.end_lineno or 0):
            inner = node
    return inner is None or any("njit" in ast.unparse(decorator) for decorator in inner.decorator_list)


def decided(mutant: Mutant, reached: Reached, work: Path) -> dict[str, Any]:
    """What the tests say of a mutant."""
    tests = tests_of(mutant, reached)
    row = {**asdict(mutant), "tests": len(tests)}
    if not tests:
        return {**row, "verdict": "survived", "by": "no test runs the line"}
    seconds = SECONDS[0] + SECONDS[1] * sum(seconds for _, seconds in tests)
    own = Path(tempfile.mkdtemp(dir=work))
    out = own / "out.txt"

    def action() -> int:
        sys.meta_path.insert(0, Finder(mutant))
        _compile_anew(REPOSITORY / mutant.file.split("/algorithm")[0])
        return int(pytest.main([*PLAIN, f"--basetemp={own / 'tests'}", *(test for test, _ in tests)]))

    code = _forked(action, seconds, out)
    text = out.read_text(errors="replace")
    shutil.rmtree(own, ignore_errors=True)
    if code == 0:
        return {**row, "verdict": "survived", "by": ""}
    if code < 0:
        return {**row, "verdict": "killed", "by": f"signal {-code}"}
    failed = [line.split(" - ")[0] for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if code not in (1, 2):
        return {**row, "verdict": "undecided", "by": f"exit {code}: {text[-300:]}"}
    return {**row, "verdict": "killed", "by": (failed or [text[-200:]])[0]}


def equal(mutant: Mapping[str, Any]) -> str:
    """Why a mutant changes no result; empty where nothing says so."""
    with EQUAL.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if all(row[name] == mutant[name] for name in ("file", "before", "after")):
                return row["reason"]
    return ""


def main() -> None:
    """Decide the mutants and print those that survive, then the counts."""
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__)
    parser.add_argument("--work", type=Path, help="folder that keeps what was decided; else all is decided anew")
    parser.add_argument("--mutants", type=int, default=MUTANTS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so many, to go on later")
    parser.add_argument("--areas", nargs="+", default=[""], help="only folders with one of these in their name")
    parser.add_argument("--survivors", action="store_true", help="decide again those that survived")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.chdir(REPOSITORY)
    with tempfile.TemporaryDirectory() as temporary:
        work = (options.work or Path(temporary)).absolute()
        work.mkdir(parents=True, exist_ok=True)
        _load()
        rows = _decide(options, work)
    _print(rows)
    left = options.mutants - len(rows) if options.areas == [""] else 0
    if left:
        print(f"{left} mutants are left: run the command again")  # noqa: T201
    undecided = any(row["verdict"] == "undecided" for row in rows)
    sys.exit(0 if not left and not undecided and _share(rows) >= TARGET else 1)


def _decide(options: argparse.Namespace, work: Path) -> list[dict[str, Any]]:
    mutants = [
        m for m in drawn(REPOSITORY, options.mutants, options.seed) if any(name in m.area for name in options.areas)
    ]
    log = work / "decided.jsonl"
    known = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.is_file() else []
    by_key = {_key(row): row for row in known if row["verdict"] == "killed" or not options.survivors}
    end = time.monotonic() + options.seconds
    for mutant in sorted(mutants, key=lambda mutant: (mutant.area, mutant.file, mutant.line)):
        key = _key(asdict(mutant))
        if key in by_key or time.monotonic() > end:
            continue
        row = decided(mutant, reached_by_tests(mutant.area, work), work)
        by_key[key] = row
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(_line(row), flush=True)  # noqa: T201
    return [by_key[key] for key in map(_key, map(asdict, mutants)) if key in by_key]


def _key(row: Mapping[str, Any]) -> str:
    return "{file} {line} {number} {before} {after}".format(**row)


def _line(row: Mapping[str, Any]) -> str:
    return "{verdict:9} {file}:{line}  {before}  ->  {after}  ({tests} tests) {by}".format(**row)


def _share(rows: list[dict[str, Any]]) -> float:
    """Killed among those that are not equal."""
    killed = sum(row["verdict"] == "killed" for row in rows)
    survived = sum(row["verdict"] == "survived" and not equal(row) for row in rows)
    return killed / max(killed + survived, 1)


def _print(rows: list[dict[str, Any]]) -> None:
    out = sys.stdout
    survived = [row for row in rows if row["verdict"] == "survived"]
    for row in survived:
        reason = equal(row)
        out.write(f"equal     {row['file']}:{row['line']}  {reason}\n" if reason else f"{_line(row)}\n")
    counts = Counter(row["verdict"] for row in rows)
    same = sum(bool(equal(row)) for row in survived)
    out.write(
        f"{len(rows)} mutants: {counts['killed']} killed, {counts['survived'] - same} survived, {same} equal, "
        f"{counts['undecided']} undecided; {_share(rows):.1%} of those that differ are killed\n"
    )


if __name__ == "__main__":
    main()
