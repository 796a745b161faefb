"""The ``evenhand`` command: what it takes and prints. What the commands do is in the modules beside this one."""

import atexit
import json
import logging
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Annotated

import typer
from pydantic.warnings import UnsupportedFieldAttributeWarning
from rich.console import Console

from flows.backfill_commands import app as backfill_app
from flows.data_commands import app as data_app
from flows.operations_commands import app as operations_app
from flows.results import app as results_app
from flows.summary import print_rows, print_summary
from flows.trend_commands import app as trend_app
from schemas.errors import EvenhandError, SpecError
from schemas.spec_file import SpecFile, read_spec
from schemas.terms import ExitCode

app = typer.Typer(
    name="evenhand",
    help="Audits lending decisions for counterfactual unfairness.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.registered_commands += results_app.registered_commands
app.registered_commands += backfill_app.registered_commands
app.registered_commands += trend_app.registered_commands
app.registered_commands += operations_app.registered_commands
app.add_typer(data_app, name="data")
_WIDE = None if sys.stdout.isatty() else 160
console = Console(highlight=False, width=_WIDE)
errors = Console(stderr=True, highlight=False, soft_wrap=True, width=_WIDE)

_HERE = Path(__file__).parent
_PLACES = (_HERE.parent / "data" / "audits" / "boston1990.yaml", _HERE / "bundled" / "boston1990.yaml")
BUNDLED = next((place for place in _PLACES if place.is_file()), _PLACES[0])
"""In a checkout beside the other audit specs, in an installed wheel inside the package."""

LakeOption = Annotated[
    str,
    typer.Option(
        "--lake",
        envvar="EVENHAND_LAKE",
        help="Directory of the lake, made if it is not there; or its URI, such as s3://bucket/lake.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@app.command(epilog="Example: evenhand audit data/audits/hmda-tx-2022.yaml --set source.path=tx.csv.gz")
def audit(
    spec: Annotated[Path | None, typer.Argument(help="Audit spec; the bundled boston1990 if left out.")] = None,
    lake: LakeOption = "data/lake",
    year: Annotated[int | None, typer.Option(help="Year of the decisions, instead of the spec's.")] = None,
    method: Annotated[list[str] | None, typer.Option(help="Run this method only; may be given again.")] = None,
    profile: Annotated[str | None, typer.Option(help="default, or paper to reproduce published figures.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set any key of the spec.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run one audit; print a summary, the run id and the path of the report. A finished audit is not run again."""
    from flows.launch import run_audit

    if not as_json:
        _show_progress()
    read = load_spec(spec, _overrides(year, method, profile, set_ or []))
    try:
        summary = run_audit(read.spec, lake)
    except SpecError as error:
        raise SpecError(read.describe(error)) from error
    if as_json:
        said = {"run": summary.run, "state": summary.state, "report": summary.report}
        console.print_json(json.dumps({**said, "computed": summary.computed, "measures": summary.headline}))
    else:
        print_summary(console, read.spec.title or read.spec.name, summary)
    for warning in summary.warnings:
        errors.print(f"warning: {warning}", markup=False)
    raise typer.Exit(summary.exit_code)


@app.command(epilog="Example: evenhand init loans.csv > loans.yaml")
def init(file: Annotated[Path, typer.Argument(help="A delimited table with a header.")]) -> None:
    """Print a commented audit spec drafted from a table."""
    from flows.draft import draft

    sys.stdout.write(draft(file))


@app.command(epilog="Example: evenhand verify boston1990-1990-0123456789")
def verify(
    run: Annotated[str, typer.Argument(help="Run id, as `evenhand audit` printed it.")],
    lake: LakeOption = "data/lake",
    as_json: JsonOption = False,
) -> None:
    """Check every file of a run against its sha256. Exit 6 if one is missing or altered."""
    from flows.verify import verify_run

    outcome = verify_run(lake, run)
    if as_json:
        console.print_json(json.dumps(outcome))
    else:
        console.print(f"run {run}: all {outcome['files']} files are as they were written", markup=False)


@app.command(epilog="Example: evenhand doctor --lake data/lake")
def doctor(lake: LakeOption = "data/lake", as_json: JsonOption = False) -> None:
    """Check the environment: Python, libraries, lake, disk, memory, Prefect. Exit 5 if something is amiss."""
    from flows.doctor import examine

    checks = examine(lake)
    if as_json:
        console.print_json(json.dumps(checks))
    else:
        print_rows(console, "environment", checks)
    if not all(check["ok"] for check in checks):
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


@app.command(epilog="Example: evenhand bench fgce --data DIR, or: evenhand bench overhead --spec SPEC.yaml")
def bench(
    name: Annotated[str, typer.Argument(help="Name of the benchmark: overhead, fgce, cst, cec, gcfn, raguel, ingest.")],
    spec: Annotated[Path | None, typer.Option(help="overhead: audit spec; the bundled boston1990 if left out.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="overhead: set any key of the spec.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="fgce, cst, cec, raguel: directory with data/ (cst: and golden/) in it.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=1, help="all but overhead: at most so many rows, for a quick look.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Time the same work two ways and print the ratio; all but overhead print times beside targets, too."""
    _refuse_options_of_others(name, {"--spec": spec, "--set": set_, "--data": data, "--rows": rows})
    if name == "overhead":
        from flows.bench import overhead

        said = overhead(load_spec(spec, dict(_pair(s) for s in set_ or [])).spec)
    elif name == "gcfn":
        from flows.bench_gcfn import gcfn

        said = gcfn(rows)
    elif name == "ingest":
        from flows.bench_ingest import ingest

        said = ingest(rows)
    elif name == "twin":
        from flows.bench_twin import twin

        said = twin(rows)
    elif data is None:
        raise SpecError(f"bench {name} needs --data DIR, the directory that holds data/")
    elif name == "fgce":
        from flows.bench_fgce import fgce

        said = fgce(data, rows)
    elif name == "cst":
        from flows.bench_cst import cst

        said = cst(data, rows)
    elif name == "cec":
        from flows.bench_cec import cec

        said = cec(data, rows)
    else:
        from flows.bench_raguel import raguel

        said = raguel(data, rows)
    if as_json:
        console.print_json(json.dumps(said))
    else:
        print_rows(console, f"bench {name}", said)


@app.command(epilog="Example: evenhand reproduce fgce --data shared --only german")
def reproduce(
    paper: Annotated[str, typer.Argument(help="The method, by its paper's acronym: fgce, cst, cec, gcfn or raguel.")],
    data: Annotated[Path, typer.Option(help="Directory with data/ and golden/ in it.")],
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="This data set only: german, compas or adult of fgce, loan or law of cst, german, adult or synthetic "
            "of cec, synthetic, law-sigmoid, law-sin or compas of gcfn, example, german, default-credit or hmda of "
            "raguel; may be given again."
        ),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=1, max=5, help="cec: folds to train on, of the paper's five; one if left out.")
    ] = None,
    baselines: Annotated[
        bool | None,
        typer.Option(
            "--baselines/--no-baselines",
            help="cec: whether the paper's baselines are trained, too, which are shown without a verdict; they are if "
            "left out.",
        ),
    ] = None,
    networks: Annotated[
        int | None, typer.Option(min=1, help="gcfn: generators trained together; the paper's ten if left out.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="gcfn: passes over 10,000 rows; the paper's 300 if left out.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=5, help="gcfn: runs that means are taken over; five if left out.")
    ] = None,
    records: Annotated[
        int | None,
        typer.Option(
            min=2_500, help="raguel: records of the longest list that is drawn; the paper's 1,000,000 if left out."
        ),
    ] = None,
    every_cell: Annotated[bool, typer.Option("--every-cell", help="Print the cells that agree, too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a paper's experiment and compare with what it prints. Exit 1 if a figure differs beyond its tolerance."""
    from flows.reproduce import reproduce as run
    from flows.reproducing.lines import Verdict
    from flows.reproducing.show import as_json as plain
    from flows.reproducing.show import print_lines

    _show_progress()
    size = {"folds": folds, "baselines": baselines, "networks": networks, "epochs": epochs, "seeds": seeds}
    size |= {"records": records}
    lines = run(paper, data, only or (), **size)
    if as_json:
        console.print_json(json.dumps(plain(lines)))
    else:
        print_lines(console, lines, every_cell=every_cell)
    if any(line.verdict is Verdict.DIFFERS for line in lines):
        raise typer.Exit(ExitCode.BREACH)


def load_spec(path: Path | None, overrides: dict[str, str]) -> SpecFile:
    """Read an audit spec, the bundled one if there is no path.

    Raises:
        SpecError: it is not there, or not usable.
    """
    file = path or BUNDLED
    try:
        return read_spec(file.read_text(encoding="utf-8-sig"), str(file), overrides)
    except OSError as error:
        raise SpecError(f"no audit spec at {str(file)!r}; `evenhand init FILE.csv` drafts one from a table") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{file}: an audit spec is UTF-8 text") from error


def _overrides(year: int | None, method: list[str] | None, profile: str | None, pairs: list[str]) -> dict[str, str]:
    from schemas.errors import nearest
    from schemas.settings import Methods

    out = dict(_pair(pair) for pair in pairs)
    if year is not None:
        out["year"] = str(year)
    if profile is not None:
        out["profile"] = profile
    known = list(Methods.model_fields)
    for name in method or []:
        if name not in known:
            raise SpecError(f"--method {name}: no such method; {nearest(name, known)}")
    if method:
        out |= {f"methods.{name}": "null" for name in known if name not in method}
    return out


def _pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise SpecError(f"--set {text}: expected KEY=VALUE, such as --set source.path=FILE")
    return key, value


_BENCHES = {
    "overhead": ("--spec", "--set"),
    "fgce": ("--data", "--rows"),
    "cst": ("--data", "--rows"),
    "cec": ("--data", "--rows"),
    "gcfn": ("--rows",),
    "ingest": ("--rows",),
    "raguel": ("--data", "--rows"),
    "twin": ("--rows",),
}
"""The benchmarks, and the options that they take."""


def _refuse_options_of_others(name: str, given: dict[str, object]) -> None:
    """An option that only another benchmark takes would be ignored in silence."""
    if name not in _BENCHES:
        raise SpecError(f"no benchmark {name!r}; known: {', '.join(map(repr, _BENCHES))}")
    for option, value in given.items():
        if value and option not in _BENCHES[name]:
            other = next(bench for bench, options in _BENCHES.items() if option in options)
            taken = " and ".join(_BENCHES[other])
            raise SpecError(f"bench {name} takes no {option}; bench {other} does, and takes {taken}")


def _show_progress() -> None:
    from rich.logging import RichHandler

    handler = RichHandler(console=errors, show_time=False, show_level=False, show_path=False, markup=False)
    logger = logging.getLogger("evenhand")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)


def main() -> None:
    """Run the command; an error of ours is a message and an exit code, never a traceback."""
    # pydantic warns of every alias in the models that FastAPI makes of Prefect's API; FastAPI ignores that itself, but
    # only inside catch_warnings, which ends for all threads as soon as it ends in one, and we load libraries in another
    warnings.filterwarnings(
        "ignore", category=UnsupportedFieldAttributeWarning, module=r"pydantic\._internal\._generate_schema"
    )
    code = _code()
    if code not in (ExitCode.WITHIN, ExitCode.BREACH, ExitCode.INSUFFICIENT_EVIDENCE):
        # after an error Prefect still holds frames with DuckDB objects, whose bindings would print forty lines of
        # leaks over the message while the interpreter ends: run the exit handlers, and end without that
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _code() -> int:
    try:
        app(standalone_mode=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except EvenhandError as error:
        errors.print(f"evenhand: {error}", markup=False)
        return error.exit_code
    except Exception:
        # a fault of ours: it needs its traceback, and must not end with 1, which would read as a breach
        traceback.print_exc()
        errors.print("evenhand: this is a fault of evenhand; please report it with the lines above", markup=False)
        return ExitCode.INFRASTRUCTURE
    return ExitCode.WITHIN


if __name__ == "__main__":
    main()
