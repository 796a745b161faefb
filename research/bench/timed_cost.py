"""The timed work of the benchmark of what verdicts cost: an audit as plain function calls, its parts under a clock.

A part is some functions of the product, found by name where they are called from. They are timed in a run of the whole
audit, and left out in a run of their step alone, whose peak memory is then that of the methods.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from importlib import import_module
from inspect import isgeneratorfunction
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import feather
from threadpoolctl import threadpool_limits

from research.benchmark import answer, peak_mb
from research.figures import texas_spec
from tasks.plan import plan

UNASKED: Mapping[str, str] = {"methods.gcfn": "null"}
"""Its refits are off, and without them it has no verdict: minutes of fits that nothing is learnt from here."""

Function = Callable[..., Any]
WITH, WITHOUT = "with", "without"


@dataclass(frozen=True)
class Part:
    """What is computed for a verdict or its interval, and for nothing else."""

    name: str
    step: str
    places: tuple[str, ...]
    """``module:name`` of the functions, where they are called from."""
    nothing: Any = None
    """What stands for their results where the part is left out."""
    within: bool = False
    """Whether its time is counted by another part as well."""
    can_be_left_out: bool = True


PARTS = (
    Part("model: fitted anew on 200 resamples", "score", ("tasks.scoring.fitting:refits",)),
    Part("CST: effects, their errors, p", "detect cst", ("tasks.methods.cst.algorithm.detection:aggregates",), ()),
    Part(
        "CST: of these, the causal model on 50 resamples",
        "detect cst",
        ("tasks.methods.cst.algorithm.effects:structural_variances",),
        within=True,
    ),
    Part("FGCE: 199 relabelled draws", "ablate", ("tasks.methods.fgce.ablate.searches:_relabelled",), ()),
    Part(
        "CEC: 99 relabelled draws",
        "detect cec",
        ("tasks.methods.cec.algorithm.detection:_above_own_group",),
        ([], []),
    ),
    Part(
        "RAGUEL: model and costs on 200 resamples",
        "rerank",
        ("tasks.methods.raguel.rerank.lists:refits", "tasks.methods.raguel.rerank.lists:means"),
    ),
    Part(
        "adjusted: judged effect, parts, files left out, places",
        "adjust",
        (
            "tasks.methods.adjusted.adjust.examination:Examination.of",
            "tasks.methods.adjusted.algorithm.examined:examine",
            "tasks.methods.adjusted.algorithm.choices:grid",
            "tasks.methods.adjusted.adjust.examination:tables_of",
        ),
        [],
    ),
    Part(
        "table of verdicts",
        "measure",
        (
            *(
                "tasks.metrics.verdicts:Gathered.of",
                "tasks.metrics.stage:_own_cases",
                "tasks.metrics.stage:of_families",
            ),
            *("tasks.metrics.verdicts:judged", "tasks.metrics.verdicts:tables"),
        ),
        can_be_left_out=False,
    ),
)


def step_names(data: str) -> dict[str, Any]:
    """Steps of an audit of Texas, in their order.

    Args:
        data: The directory that ``--data`` gives.
    """
    return {"names": [planned.name for planned in plan(texas_spec(Path(data), UNASKED)).steps]}


def step(data: str, folder: str, name: str, how: str) -> Mapping[str, Any]:
    """CPU seconds of one step and of its parts, and its peak memory, in a separate process.

    With its parts it writes the tables that later steps read.

    Args:
        data: The directory that ``--data`` gives.
        folder: The folder of the tables.
        name: The step.
        how: ``with`` its parts, or ``without`` them.
    """
    steps = plan(texas_spec(Path(data), UNASKED)).steps
    at = next(number for number, planned in enumerate(steps) if planned.name == name)
    planned = steps[at]
    unread = {table.name for table in planned.unread}
    tables = []
    for table in planned.stage.reads:
        files = [_file(folder, earlier.name, table.name) for earlier in steps[:at] if table.name not in unread]
        held = [feather.read_table(file) for file in files if file.is_file()]
        tables.append(pa.concat_tables(held) if held else table.empty())
    parts = [part for part in PARTS if part.step == name]
    used = dict.fromkeys((part.name for part in parts), 0.0)
    _alone()
    with ExitStack() as patched:
        for part in parts:
            for place in part.places:
                if how == WITH:
                    patched.enter_context(_replaced(place, partial(_clocked, used=used, name=part.name)))
                elif not part.within and part.can_be_left_out:
                    patched.enter_context(_replaced(place, partial(_without, nothing=part.nothing)))
        clock = time.process_time()
        produced = planned.stage.function(*tables, settings=planned.settings)
        took = {"parts": used, "cpu_s": time.process_time() - clock, "peak_mb": peak_mb()}
    if how == WITH:
        for written, made in produced.unheld().items():
            feather.write_feather(made, _file(folder, name, written))
    return took | {"rows": tables[0].num_rows if tables else 0}


def _file(folder: str, step_name: str, table: str) -> Path:
    return Path(folder) / f"{step_name} {table}.feather"


def _alone() -> None:
    """One thread of linear algebra, as every stage of an audit has it."""
    threadpool_limits(1, user_api="blas")


@contextmanager
def _replaced(place: str, by: Callable[[Function], Function]) -> Iterator[None]:
    """Replaces a function of a module, or of a class in it, for the duration of the block."""
    module, path = place.split(":")
    holder = import_module(module)
    *classes, name = path.split(".")
    for class_name in classes:
        holder = getattr(holder, class_name)
    original = vars(holder)[name]
    replacement = by(getattr(holder, name))
    setattr(holder, name, staticmethod(replacement) if classes else replacement)
    try:
        yield
    finally:
        setattr(holder, name, original)


def _without(function: Function, nothing: Any) -> Function:  # noqa: ARG001 it stands for it
    return lambda *args, **named: nothing  # noqa: ARG005


def _clocked(function: Function, used: dict[str, float], name: str) -> Function:
    """The same function with its CPU seconds added up; a generator is run to its end at once."""

    @wraps(function)
    def clocked(*args: Any, **named: Any) -> Any:
        clock = time.process_time()
        result = function(*args, **named)
        result = list(result) if isgeneratorfunction(function) else result
        used[name] += time.process_time() - clock
        return result

    return clocked


if __name__ == "__main__":
    answer(step_names, step)
