"""Counts the mutants of the numerical code that the mirrored tests kill.

``PYTHONPATH=.:tests python -m mutation --work FOLDER`` draws 200 mutants, runs the tests that reach the line of each
one, the quickest file first, and prints those that survive. No file is written but those in the folder, from which a
later call goes on.

The tests of an area are loaded once. Each mutant is a fork of that process in which the code of one function is
exchanged; what is no function's code is compiled from the changed tree when its module is loaded, in a fork that has
loaded none of ours. A mutant is ``killed`` by a test that fails or by the limit on its processor time, ``equal`` where
``equal.csv`` says why no result changes, and else ``survived``.
"""

import argparse
import csv
import gc
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, Final

import pytest
from mutation.mutants import AREAS, Mutant, at_lines, drawn, mutated_tree

REPOSITORY: Final = Path(__file__).parents[2]
EQUAL: Final = Path(__file__).with_name("equal.csv")
MUTANTS, SEED, TARGET = 200, 47, 0.9
WORDS: Final = ("killed", "survived", "equal", "undecided")
SECONDS: Final = (30, 10)
"""Processor time of a mutant: so much, and so many times that of its tests without it."""
PLAIN: Final = (
    *("-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", "--tb", "line"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning", "-m", "not slow and not long"),
)
LOADED: Final = (
    "duckdb", "great_expectations", "networkx", "numba", "pandas", "prefect", "pulp", "pyarrow.parquet",
    "scipy.sparse.csgraph", "scipy.stats", "sklearn.ensemble", "sklearn.linear_model", "sklearn.neighbors", "torch",
)  # fmt: skip
"""What is not ours and takes long to load."""

Tests = dict[str, dict[str, Any]]
"""Test -> its seconds, and file -> the lines of it that the test runs."""


# --------------------------------------------------------------------------------------------------------------------
# Which tests run a line.


class Tracer:
    """Notes the lines of an area that each test runs, those of the fixtures of its file included."""

    def __init__(self, area: str) -> None:
        self.folder = str(REPOSITORY / area)
        self.lines: dict[str, set[int]] = {}
        self.of_fixtures: dict[str, dict[str, set[int]]] = {}
        self.tests: Tests = {}

    def trace(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        """Note a line."""
        name = frame.f_code.co_filename
        if not name.startswith(self.folder):
            return None
        lines = self.lines.setdefault(str(Path(name).relative_to(REPOSITORY)), set())
        lines.add(frame.f_lineno)

        def inside(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
            lines.add(frame.f_lineno)
            return inside

        return inside

    def run(self, item: pytest.Item, following: pytest.Item | None) -> None:
        """Trace a test with its fixtures."""
        self.lines = {}
        start = time.process_time()
        sys.settrace(self.trace)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        sys.settrace(None)
        files = {name: sorted(lines) for name, lines in self.lines.items()}
        self.tests[item.nodeid] = {"seconds": time.process_time() - start, "files": files}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        """Note what the fixtures run: those of a module run with any of its tests."""
        yield
        noted = self.of_fixtures.setdefault(item.nodeid.split("::")[0], {})
        for name, lines in self.lines.items():
            noted.setdefault(name, set()).update(lines)

    def found(self) -> Tests:
        """Every test with all lines that it may run."""
        for test, of_test in self.tests.items():
            for name, lines in self.of_fixtures.get(test.split("::")[0], {}).items():
                of_test["files"][name] = sorted({*of_test["files"].get(name, []), *lines})
        return self.tests


def tests_of(mutant: Mutant, tests: Tests) -> dict[str, float]:
    """The tests that run a mutant's line, with their seconds, in the order in which they are run.

    What is no function's code leaves no trace while tests run: there all tests count that run something of the file.
    """
    reached = {test: of["seconds"] for test, of in tests.items() if mutant.line in of["files"].get(mutant.file, ())}
    if not reached and not mutant.within:
        reached = {test: of["seconds"] for test, of in tests.items() if mutant.file in of["files"]}
    of_files: Counter[str] = Counter()
    for test, seconds in reached.items():
        of_files[test.split("::")[0]] += seconds  # type: ignore[assignment]
    return dict(sorted(reached.items(), key=lambda pair: (of_files[pair[0].split("::")[0]], pair[0].split("::")[0])))


# --------------------------------------------------------------------------------------------------------------------
# The tests of an area, loaded once.


class Area:
    """A plugin that decides mutants in place of running the tests."""

    def __init__(
        self, area: str, mutants: list[Mutant], work: Path, shown: Callable[[dict[str, Any]], None], end: float
    ) -> None:
        self.area, self.mutants, self.work, self.shown, self.end = area, mutants, work, shown, end
        self.tests: Tests = {}
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Trace the tests, then decide each mutant in a fork."""
        gc.unfreeze()
        items = {item.nodeid: item for item in session.items}
        self.tests = self._traced(items)
        for mutant in self.mutants:
            if time.monotonic() > self.end:
                break
            chosen = tests_of(mutant, self.tests)
            self.shown(self._decided(mutant, [items[test] for test in chosen], sum(chosen.values())))
        return True

    def _traced(self, items: Mapping[str, pytest.Item]) -> Tests:
        """What is kept of files that did not change, and the others traced in a fork."""
        kept = self.work / f"{self.area.replace('/', '-')}.json"
        code = _digest(*sorted((REPOSITORY / self.area).rglob("*.py")))
        files = {name: _digest(REPOSITORY / name) for name in {test.split("::")[0] for test in items}}
        known = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
        known = {name: of_file for name, of_file in known.items() if of_file["digest"] == [code, files.get(name)]}
        new = [item for test, item in items.items() if test.split("::")[0] not in known]
        if new:
            out = self.work / f"{os.getpid()}.json"

            def action() -> int:
                tracer = Tracer(self.area)
                new[0].config.pluginmanager.register(tracer)
                for item, following in zip(new, [*new[1:], None], strict=True):
                    tracer.run(item, following)
                out.write_text(json.dumps(tracer.found()), encoding="utf-8")
                return 1 if self.failed else 0

            if _forked(action, 3600, out):
                raise RuntimeError(f"the tests of {self.area} fail without a mutant: {self.failed}")
            tests = json.loads(out.read_text(encoding="utf-8"))
            out.unlink()
            for name in {item.nodeid.split("::")[0] for item in new}:
                of_file = {test: of_test for test, of_test in tests.items() if test.split("::")[0] == name}
                known[name] = {"digest": [code, files[name]], "tests": of_file}
            kept.write_text(json.dumps(known), encoding="utf-8")
        return {test: of_test for of_file in known.values() for test, of_test in of_file["tests"].items()}

    def _decided(self, mutant: Mutant, items: list[pytest.Item], seconds: float) -> dict[str, Any]:
        row = {**asdict(mutant), "tests": len(items)}
        if not items:
            return {**row, "verdict": "survived", "by": "no test runs the line"}
        by = self.work / f"{os.getpid()}.txt"
        by.write_text("")

        def action() -> int:
            exchange(mutant)
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.failed:
                    by.write_text(self.failed[0])
                    return 1
            return 0

        return verdict(row, _forked(action, _limit(seconds), by), by.read_text())


def exchange(mutant: Mutant) -> None:
    """Give a function the code of the mutant, wherever it is bound."""
    path = REPOSITORY / mutant.file
    tree = mutated_tree(path.read_text(encoding="utf-8"), mutant.number)
    changed = {code.co_qualname: code for code in _codes(compile(tree, str(path), "exec"))}[mutant.within]
    functions = [
        found
        for found in gc.get_objects()
        if type(found) is FunctionType  # isinstance asks objects that warn
        and found.__code__.co_filename == str(path)
        and found.__code__.co_qualname == mutant.within
    ]
    if not functions:
        raise LookupError(f"{mutant.within} of {mutant.file} is not loaded")
    for function in functions:
        function.__code__ = changed


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a module's functions and of its classes' methods."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            if inner.co_name != inner.co_qualname or not inner.co_flags & 1:  # a class, or what is in one
                yield from _codes(inner)


# --------------------------------------------------------------------------------------------------------------------
# What is no function's code: the module of the mutant is loaded in place of ours.


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


class Noted:
    """A plugin that writes the first failure to a file."""

    def __init__(self, by: Path) -> None:
        self.by = by

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        if report.failed:
            self.by.write_text(report.nodeid)


def decided_anew(mutant: Mutant, tests: Tests, work: Path) -> dict[str, Any]:
    """What the tests say of a mutant whose module is loaded anew."""
    chosen = tests_of(mutant, tests)
    row = {**asdict(mutant), "tests": len(chosen)}
    if not chosen:
        return {**row, "verdict": "survived", "by": "no test runs the file"}
    own = Path(tempfile.mkdtemp(dir=work))
    by = own / "by.txt"
    by.write_text("it does not load")

    def action() -> int:
        _silence(own / "out.txt")
        sys.meta_path.insert(0, Finder(mutant))
        _compile_anew(REPOSITORY / mutant.file.split("/algorithm")[0])
        return int(pytest.main([*PLAIN, "-x", f"--basetemp={own / 'tests'}", *chosen], plugins=[Noted(by)]))

    row = verdict(row, _forked(action, _limit(sum(chosen.values())), by), by.read_text())
    shutil.rmtree(own, ignore_errors=True)
    return row


def _compile_anew(folder: Path) -> None:
    """Keep compiled code of a folder out of numba's cache, which knows no changed numbers."""
    from numba.core.dispatcher import Dispatcher

    enable = Dispatcher.enable_caching

    def other(dispatcher: Any) -> None:
        if not dispatcher.py_func.__code__.co_filename.startswith(str(folder)):
            enable(dispatcher)

    Dispatcher.enable_caching = other


# --------------------------------------------------------------------------------------------------------------------
# Forks, and what they say.


def _forked(action: Callable[[], int], seconds: float, errors: Path) -> int:
    """Exit status of a fork that runs an action within its processor time; 70 with an error in the file."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        code = 70
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 6))
            code = action()
        except BaseException:
            errors.write_text(traceback.format_exc())
        finally:
            sys.stdout.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _silence(out: Path) -> None:
    """Send what this process prints to a file."""
    file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number in (1, 2):
        os.dup2(file, number)


def _limit(seconds: float) -> float:
    return SECONDS[0] + SECONDS[1] * seconds


def _digest(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def verdict(row: Mapping[str, Any], code: int, by: str) -> dict[str, Any]:
    """What the exit status of a mutant's tests says: 1 and 2 are a failure and a module that does not load."""
    if code < 0:
        return {**row, "verdict": "killed", "by": f"signal {-code}, which ends what takes too long"}
    name = {0: "survived", 1: "killed", 2: "killed"}.get(code, "undecided")
    return {**row, "verdict": name, "by": by if code else ""}


# --------------------------------------------------------------------------------------------------------------------
# The command.


def main() -> None:
    """Decide the mutants and print those that survive, then the counts."""
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__)
    parser.add_argument("--work", type=Path, help="folder that keeps what was decided; else all is decided anew")
    parser.add_argument("--mutants", type=int, default=MUTANTS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--areas", nargs="+", default=[""], help="only files with one of these in their path")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so many, to go on later")
    parser.add_argument("--at", nargs="+", metavar="FILE:LINE", help="every change of these lines in place of a sample")
    parser.add_argument("--tests", nargs="+", help="files of tests in place of the folder that mirrors the code")
    parser.add_argument("--survivors", action="store_true", help="decide those again that survived")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.chdir(REPOSITORY)
    for name in LOADED:
        import_module(name)
    mutants = at_lines(REPOSITORY, options.at) if options.at else drawn(REPOSITORY, options.mutants, options.seed)
    mutants = [mutant for mutant in mutants if any(name in mutant.file for name in options.areas)]
    with tempfile.TemporaryDirectory() as temporary:
        work = (options.work or Path(temporary)).absolute()
        work.mkdir(parents=True, exist_ok=True)
        given = Given(work, options.tests or (), time.monotonic() + options.seconds)
        rows = decide(mutants, given, again=options.survivors)
    survivors = [row for row in rows if row["verdict"] == "survived"]
    for row in survivors:
        reason = equal(row)
        print(f"equal     {row['file']}:{row['line']}  {reason}" if reason else _line(row))  # noqa: T201
    counts = table(rows)
    for name in AREAS:
        if any(counts[name].values()):
            print(f"{name:34}", *(f"{counts[name][word]:4} {word}" for word in WORDS))  # noqa: T201
    whole: Counter[str] = sum(counts.values(), Counter())
    share = whole["killed"] / max(whole["killed"] + whole["survived"], 1)
    words = ", ".join(f"{whole[word]} {word}" for word in WORDS)
    print(f"{len(rows)} mutants: {words}; of those that differ {share:.1%} are killed")  # noqa: T201
    if len(rows) < len(mutants):
        print(f"{len(mutants) - len(rows)} mutants are left: the same command goes on")  # noqa: T201
        sys.exit(1)
    sys.exit(0 if not whole["undecided"] and share >= TARGET else 1)


def table(rows: Sequence[Mapping[str, Any]]) -> dict[str, Counter[str]]:
    """By area how many mutants have which verdict; a survivor that ``equal.csv`` names is equal."""
    counts: dict[str, Counter[str]] = {area: Counter() for area in AREAS}
    for row in rows:
        area = next(area for area in AREAS if row["file"].startswith(f"{area}/"))
        counts[area]["equal" if row["verdict"] == "survived" and equal(row) else row["verdict"]] += 1
    return counts


@dataclass(frozen=True)
class Given:
    """Where rows are kept, and what limits a call."""

    work: Path
    tests: Sequence[str]
    """Files of tests; none for those that mirror the code."""
    end: float
    """When no further mutant begins."""


def decide(mutants: Sequence[Mutant], given: Given, *, again: bool) -> list[dict[str, Any]]:
    """The rows of the mutants: those that are kept, and the others decided now, area by area, until the end comes."""
    log = given.work / "decided.jsonl"
    terminal = os.dup(1)

    def kept() -> dict[str, dict[str, Any]]:
        lines = log.read_text(encoding="utf-8").splitlines() if log.is_file() else []
        return {row["key"]: row for row in map(json.loads, lines)}

    def shown(row: dict[str, Any]) -> None:
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**row, "key": _key(row)}) + "\n")
        with os.fdopen(os.dup(terminal), "w") as out:
            out.write(f"{_line(row)}\n")

    anew = {"undecided", "survived"} if again else {"undecided"}
    known = {key for key, row in kept().items() if row["verdict"] not in anew}
    for area in AREAS:
        left = [mutant for mutant in mutants if mutant.area == area and _key(asdict(mutant)) not in known]
        if left and time.monotonic() < given.end:
            _decide_area(area, sorted(left, key=lambda m: (m.file, m.line, m.number)), given, shown)
    rows = kept()
    return [rows[key] for key in (_key(asdict(mutant)) for mutant in mutants) if key in rows]


def _decide_area(area: str, mutants: list[Mutant], given: Given, shown: Callable[[dict[str, Any]], None]) -> None:
    work = given.work
    out, traced = work / f"{os.getpid()}.out.txt", work / f"{area.replace('/', '-')}.tests.json"

    def action() -> int:
        _silence(out)
        plugin = Area(area, [mutant for mutant in mutants if mutant.within], work, shown, given.end)
        tests = given.tests or [AREAS[area]]
        code = int(pytest.main([*PLAIN, f"--basetemp={work / str(os.getpid())}", *tests], plugins=[plugin]))
        traced.write_text(json.dumps(plugin.tests), encoding="utf-8")
        return code

    if _forked(action, 36_000, out):
        sys.exit(f"the tests of {area} cannot be run:\n{out.read_text(errors='replace')[-3000:]}")
    tests = json.loads(traced.read_text(encoding="utf-8"))
    for mutant in mutants:
        if not mutant.within and time.monotonic() < given.end:
            shown(decided_anew(mutant, tests, work))


def equal(mutant: Mapping[str, Any]) -> str:
    """Why a mutant changes no result; empty where nothing says so."""
    code = (REPOSITORY / mutant["file"]).read_text(encoding="utf-8").splitlines()[mutant["line"] - 1].strip()
    with EQUAL.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["code"] == code and all(row[name] == mutant[name] for name in ("file", "before", "after")):
                return row["reason"]
    return ""


def _key(row: Mapping[str, Any]) -> str:
    return "{file} {line} {number} {before} {after}".format(**row)


def _line(row: Mapping[str, Any]) -> str:
    return "{verdict:9} {file}:{line}  {before}  ->  {after}  ({tests} tests) {by}".format(**row)


if __name__ == "__main__":
    main()
