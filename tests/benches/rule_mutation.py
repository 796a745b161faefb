"""Switches off each rule by which cells are read: which of our tests fails then, and which tables the judge fails.

``EVENHAND_TEST_DATA=FOLDER PYTHONPATH=.:tests python -m benches rule_mutation`` prints the table; ``--reps`` is the
number of failing tables after which a rule is left. With ``--reps 1``, rules that no table missed in a whole run are
held against our own tests alone: for the others, one or two tables are judged.
"""

import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import duckdb  # noqa: F401 loaded once: every command is a fork of this process
import pandas as pd  # noqa: F401 loaded as above
import pyarrow.parquet  # noqa: F401 loaded as above
import pytest

from flows.cli import intake as _intake  # noqa: F401 loaded as above
from flows.cli import main
from flows.cli.draft import commands, decision, hmda_spec, questions, review, spec_text, vocabulary  # noqa: F401 loaded as above
from flows.cli.terminal import errors
from schemas.audit.intake import FOLDINGS
from tasks.ingest import counts as _counts  # noqa: F401 loaded as above
from tasks.ingest.intake import bands, codes, dates, folding, missing, numbers, recipe, units
from tasks.ingest.sources import door  # noqa: F401 loaded as above

CORPUS: Final = Path("corpus") / "intake"
ENOUGH: Final = 2
_WIDE: Final = "27-wide.csv"
_TOGETHER: Final = 6
"""Tables that are drafted by one fork before those are judged that it drafts otherwise."""
_NEVER: Final = re.compile(r"(?!)")
_FOLDING: Final = (folding, recipe)
_TESTS: Final = Path(__file__).parents[1] / "tasks" / "ingest" / "intake"
_TESTS_OF: Final = {
    "fold": ("test_spellings.py",),
    "missing": ("test_read_numbers.py", "test_spellings.py"),
    "codes": ("test_read_dates.py", "test_read_numbers.py"),
    "dates": ("test_read_dates.py",),
    "bands": ("test_read_bands.py",),
}
"""First word of a rule -> our tests of it; of every other rule those of numbers."""


@dataclass(frozen=True)
class Switch:
    """A rule and how it is switched off: name of a module's member -> what stands there instead."""

    rule: str
    off: Callable[[], None]
    first: str | None = ""
    """Beginning of the name of a table that needs the rule and is judged first; None where no table needs it."""


def _set(module: ModuleType, **members: Any) -> Callable[[], None]:
    """Put other members into a module."""

    def off() -> None:
        for name, value in members.items():
            assert hasattr(module, name), f"{module.__name__} has no {name}"
            setattr(module, name, value)

    return off


def _everywhere(function: Callable[..., Any], other: Callable[..., Any]) -> Callable[[], None]:
    """Put another function in the place of one in every module that imported it."""

    def off() -> None:
        places = [
            (module, name)
            for module in list(sys.modules.values())
            if module.__name__.startswith(("tasks.", "flows."))
            for name, member in list(vars(module).items())
            if member is function
        ]
        assert places
        for module, name in places:
            setattr(module, name, other)

    return off


def _without_folding(rule: str) -> Callable[[], None]:
    fold = folding.fold

    def other(text: str, rules: Any = FOLDINGS) -> str:
        return fold(text, [name for name in rules if name != rule])

    def off() -> None:
        for module in _FOLDING:
            module.fold = other  # type: ignore[attr-defined]

    return off


def _without_units(kinds: Callable[[str], bool]) -> Callable[[], None]:
    affix = units.affix

    def other(text: str, months: bool = False) -> units.Affix | None:
        meaning = affix(text, months)
        return None if meaning is not None and any(map(kinds, meaning.units)) else meaning

    return _everywhere(affix, other)


def _without_scales() -> Callable[[], None]:
    affix = units.affix

    def other(text: str, months: bool = False) -> units.Affix | None:
        meaning = affix(text, months)
        return None if meaning is not None and meaning.power else meaning

    return _everywhere(affix, other)


def _marks_of_the_column_alone() -> Callable[[], None]:
    marks = numbers._marks
    return _set(numbers, _marks=lambda name, column, proofs: marks(name, column, set()))


def _always_decimals() -> Callable[[], None]:
    return _set(numbers, names_rate=lambda name: True)


def _no_order_is_proven() -> Callable[[], None]:
    orders = dates._orders

    def other(shape: Any, cells: Mapping[str, int]) -> tuple[tuple[str, ...], int, bool]:
        found, rows, _ = orders(shape, cells)
        return ("ymd",) if found == ("ymd",) else ("mdy", "dmy"), rows, found == ("ymd",)

    def off() -> None:
        dates._orders = other
        dates._usual_order = lambda *_: ("mdy", False)

    return off


def _nothing(*_: Any, **__: Any) -> None:
    return None


RULES: Final = (
    Switch("fold: capitals", _without_folding("case"), "15"),
    Switch("fold: blanks", _without_folding("blanks"), None),
    Switch("fold: full stop and quotes", _without_folding("stop"), "06"),
    Switch("fold: forms of Unicode", _without_folding("unicode"), "04"),
    Switch("fold: 1 and 1.0 are one value", _set(folding, holds_codes=lambda forms: True), None),
    Switch("fold: 01 and 1 are two codes", _set(folding, holds_codes=lambda forms: False), None),
    Switch("fold: y is yes, M is Male", _set(folding, same_words=lambda *_: {}), "15"),
    Switch("fold: near spellings are a question", _everywhere(folding.near_pairs, lambda *_: []), None),
    Switch("missing: sure words", _set(missing, SURE=frozenset()), "22"),
    Switch("missing: words of numbers only", _set(missing, OF_NUMBERS=frozenset()), "20"),
    Switch("missing: runs of signs", _set(missing, _RUNS=_NEVER, _RUNS_OF_NUMBERS=_NEVER), "20"),
    Switch("missing: a question above 5 %", _set(numbers, _QUESTIONABLE=2), None),
    Switch("numbers: any but plain ones", _set(numbers, _CELL=_NEVER), "01"),
    Switch("numbers: parentheses", _set(numbers, _IN_PARENTHESES=_NEVER), "29"),
    Switch("numbers: currency", _without_units(lambda unit: unit in units.CURRENCIES), "01"),
    Switch("numbers: percent", _without_units(lambda unit: unit == "%"), "01"),
    Switch("numbers: other units", _without_units(lambda unit: unit != "%" and unit not in units.CURRENCIES), "03"),
    Switch("numbers: k, M, bn", _without_scales(), "29"),
    Switch("numbers: unit in the name", _everywhere(units.unit_in_name, _nothing), "01"),
    Switch("numbers: a few cells are none", _set(numbers, _LEAST_SHARE=1.0), None),
    Switch("marks: proof by the cell", _set(numbers, _proof=lambda core: (None, frozenset())), "03"),
    Switch("marks: proof by other columns", _marks_of_the_column_alone(), None),
    Switch("marks: money by thousands", _always_decimals(), "08"),
    Switch("numbers or categories", _everywhere(numbers.is_number, lambda *_: True), "08"),
    Switch("numbers or categories: names of amounts", _set(numbers, names_amount=lambda name: False), None),
    Switch("codes: among numbers", _everywhere(codes.sentinels, lambda numbers: {}), "07"),
    Switch("codes: among words and bands", _everywhere(codes.codes_among_words, lambda counts: {}), "07"),
    Switch("codes: among dates", _everywhere(codes.date_sentinels, lambda dates: {}), None),
    Switch("dates", _everywhere(dates.guess, lambda *_, **__: {}), "01"),
    Switch("dates: names of months", _set(dates, _NAMED=()), None),
    Switch("dates: day or month by proof", _no_order_is_proven(), None),
    Switch("bands", _everywhere(bands.guess, _nothing), "08"),
)


def _judge(folder: Path) -> ModuleType:
    """The judge of the corpus, which runs commands in forks of this process."""
    spec = importlib.util.spec_from_file_location("judge_of_intake", folder / "judge.py")
    assert spec is not None
    assert spec.loader is not None
    judge = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(judge)
    return judge


def _forked(switch: Switch | None) -> Callable[..., tuple[int, str, str]]:
    """Runs a command as the judge does, with a rule switched off."""

    def run(args: list[str], cwd: Path, _: int) -> tuple[int, str, str]:
        with tempfile.TemporaryFile("w+b") as out, tempfile.TemporaryFile("w+b") as err:
            if "--check" in args:  # lists the questions once more, which the command intake gives as well
                return 0, "", ""
            child = os.fork()
            if not child:
                os.chdir(cwd)
                null = os.open(os.devnull, os.O_RDONLY)
                for number, stream in enumerate((null, out.fileno(), err.fileno())):
                    os.dup2(stream, number)
                if switch is not None:
                    switch.off()
                sys.argv = ["evenhand", *args[1:]]
                code = main._code()
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
            _, status = os.waitpid(child, 0)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
            return os.waitstatus_to_exitcode(status), texts[0], texts[1]

    return run


class _First:
    """The first test that fails."""

    name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep its name."""
        if report.failed and not self.name:
            self.name = report.nodeid.rpartition("::")[2]


def own_test(switch: Switch) -> str:
    """The first of our tests that fails with a rule switched off, in a fork of this process; empty where none does."""
    files = _TESTS_OF.get(re.split(r"\W", switch.rule)[0], ("test_read_numbers.py",))
    read, write = os.pipe()
    child = os.fork()
    if not child:
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        switch.off()
        first = _First()
        options = ["-x", "-m", "not long and not slow", "-p", "no:cacheprovider"]
        pytest.main([*options, *(str(_TESTS / file) for file in files)], plugins=[first])
        os.write(write, first.name.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        name = answer.read()
    os.waitpid(child, 0)
    return name


def passes(judge: ModuleType, table: Path, switch: Switch | None = None) -> bool:
    """Whether every fact of a table holds, with a rule switched off or none."""
    vars(judge)["run"] = _forked(switch)
    return all(holds for _, holds, _ in judge.judge(_wanted(table), table, "evenhand", False, 120))


def _wanted(table: Path) -> dict[str, Any]:
    """What a right reading of a table finds."""
    answers = table.with_name(f"{table.name.split('.')[0]}.expected.json").read_text(encoding="utf-8")
    wanted: dict[str, Any] = json.loads(answers)
    return wanted


def drafts(tables: list[Path], switch: Switch | None) -> dict[str, str]:
    """Table -> its draft with a rule switched off or none, all of them by one fork of this process."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        if switch is not None:
            switch.off()
        texts = {table.name: _draft(table) for table in tables}
        with os.fdopen(write, "w") as out:
            json.dump(texts, out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return dict.fromkeys((table.name for table in tables), "") if not text else json.loads(text)


def _draft(table: Path) -> str:
    """The draft of a table, with the exit code of the command."""
    with tempfile.TemporaryDirectory() as folder:
        for file in table.parent.glob(f"{table.name.split('.')[0]}*"):
            shutil.copy(file, folder)
        os.chdir(folder)
        sys.argv = ["evenhand", "init", table.name, "-o", "draft.yaml", *_wanted(table)["args"]]
        code = main._code()
        draft = Path("draft.yaml")
        return f"{code} {draft.read_text(encoding='utf-8') if draft.is_file() else ''}"


def _batches(tables: list[Path]) -> Iterator[list[Path]]:
    remaining = iter(tables)
    while part := list(islice(remaining, _TOGETHER)):
        yield part


def failing(
    judge: ModuleType, tables: list[Path], switch: Switch, before: Callable[[], Mapping[str, str]], enough: int
) -> list[str]:
    """Tables that fail with the rule switched off, until there are enough of them.

    That one is judged first which the switch names, then those of which the draft differs from the one ``before``, then
    all others.
    """
    named = [table for table in tables if switch.first and table.name.startswith(switch.first)]
    found = [table.name for table in named if not passes(judge, table, switch)]
    if len(found) >= enough:
        return found
    tables = [table for table in tables if table not in named]
    drafts_before = before()
    others = [table for table in tables if table.name not in drafts_before]
    for part in _batches([table for table in tables if table.name in drafts_before]):
        after = drafts(part, switch)
        others = [*others, *(table for table in part if after[table.name] == drafts_before[table.name])]
        for table in (table for table in part if after[table.name] != drafts_before[table.name]):
            if len(found) < enough and not passes(judge, table, switch):
                found.append(table.name)
        if len(found) >= enough:
            return found
    for table in sorted(others, key=lambda table: table.name == _WIDE):
        if len(found) < enough and not passes(judge, table, switch):
            found.append(table.name)
    return found


def mutated(folder: Path, enough: int = ENOUGH, rules: tuple[Switch, ...] = RULES) -> Iterator[dict[str, Any]]:
    """Each rule with tables that pass with it and fail without it; the table of 809 columns comes last."""
    judge = _judge(folder)
    answers = sorted((folder / "tables").glob("*.expected.json"))
    tables = [folder / "tables" / json.loads(path.read_text(encoding="utf-8"))["file"] for path in answers]
    sound = sorted((table for table in tables if passes(judge, table)), key=lambda table: table.name == _WIDE)
    unsound = [table.name for table in tables if table not in sound]
    yield {"rule": "none is off", "test": "", "tables": len(unsound), "fail": ", ".join(unsound)}
    before = cache(lambda: drafts([table for table in sound if table.name != _WIDE], None))
    for switch in rules:
        needs_none = switch.first is None and enough == 1
        fail = [] if needs_none else failing(judge, sound, switch, before, enough)
        yield {"rule": switch.rule, "test": own_test(switch), "tables": len(fail), "fail": ", ".join(fail)}


def run(rows: int | None, reps: int | None, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The table of the bench; each of its rows is on the error stream as soon as it is known."""
    table = []
    for row in mutated(Path(os.environ["EVENHAND_TEST_DATA"]) / CORPUS, reps or ENOUGH):
        test = row["test"] or "no test fails"
        errors.print(f"{row['rule']}: {test}; {row['fail'] or 'no table fails'}", markup=False)
        table.append(row)
    return table


BENCH: Final = SimpleNamespace(run=run)
