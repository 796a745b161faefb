"""Completion in the shell: run ids, audits, methods, measures, groups, years and specs, from files of the lake.

Whatever goes wrong completes nothing: a shell that asks must get no message. No lake is made.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from pkgutil import iter_modules

import typer

Complete = Callable[[typer.Context, str], list[str]]
_LAKE = "data/lake"


def _completing(known: Callable[[str, str], Iterator[str]]) -> Complete:
    """A completion of words that a lake holds, by a function of the lake's place and of what is typed."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            lake = str(ctx.params.get("lake") or os.environ.get("EVENHAND_LAKE") or _LAKE)
            return [word for word in dict.fromkeys(known(lake, incomplete)) if word.startswith(incomplete)]
        except Exception:  # whatever it is, the line that is being typed must not be written over
            return []

    complete.__name__, complete.__doc__ = known.__name__.lstrip("_"), known.__doc__
    return complete


def _run_ids(lake: str) -> list[str]:
    """The runs of a lake, the one written last first."""
    manifests = Path(lake).glob("runs/*/manifest.json")
    return [path.parent.name for path in sorted(manifests, key=lambda path: path.stat().st_mtime_ns, reverse=True)]


def _runs(lake: str, typed: str) -> Iterator[str]:
    """Ids of runs; with an @ the names ``AUDIT@YEAR``."""
    from flows.runs.naming import audit_and_year

    for run in _run_ids(lake):
        yield "@".join(audit_and_year(run)) if "@" in typed else run


def _audits(lake: str, _: str) -> Iterator[str]:
    """Names of audits that have runs."""
    from flows.runs.naming import audit_of

    yield from sorted({audit_of(run) for run in _run_ids(lake)})


def _years(lake: str, _: str) -> Iterator[str]:
    """Years that have a run, an attempt or an edition of the data."""
    from flows.runs.naming import audit_and_year

    attempts = [path.name for path in Path(lake).glob("backfills/*/*")]
    editions = [path.name for path in Path(lake).glob("vintages/*")]
    years = {*(audit_and_year(run)[1] for run in _run_ids(lake)), *attempts, *editions}
    yield from sorted(year for year in years if year.isdecimal())


def _spans(lake: str, typed: str) -> Iterator[str]:
    """The same, and from the first of them to the last."""
    years = list(_years(lake, typed))
    if len(years) > 1:
        yield f"{years[0]}-{years[-1]}"
    yield from years


def _methods(_lake: str, _: str) -> Iterator[str]:
    """Names of methods, by their folders: importing one loads its libraries."""
    from tasks import methods

    yield from sorted({"outcomes", *(each.name for each in iter_modules(methods.__path__) if each.ispkg)})


def _column(lake: str, name: str) -> Iterator[str]:
    import pyarrow.parquet as pq

    for run in _run_ids(lake)[:1]:
        table = pq.read_table(Path(lake) / "reports" / run / "measures.parquet", columns=[name])
        yield from sorted(table[name].unique().to_pylist())


def _measures(lake: str, _: str) -> Iterator[str]:
    """Measures of the last run."""
    yield from _column(lake, "measure")


def _groups(lake: str, _: str) -> Iterator[str]:
    """Groups of the last run."""
    yield from _column(lake, "group")


def _specs(_lake: str, typed: str) -> Iterator[str]:
    """Audit specs below what is typed: directories and files of YAML."""
    folder = typed[: typed.rfind("/") + 1]
    for path in sorted(Path(folder or ".").iterdir()):
        if path.is_dir() and not path.name.startswith("."):
            yield f"{folder}{path.name}/"
        elif path.suffix in (".yaml", ".yml"):
            yield f"{folder}{path.name}"


complete_runs, complete_audits, complete_years = _completing(_runs), _completing(_audits), _completing(_years)
complete_spans, complete_methods, complete_specs = _completing(_spans), _completing(_methods), _completing(_specs)
complete_measures, complete_groups = _completing(_measures), _completing(_groups)
