"""Commands `evenhand bench` and `evenhand reproduce`."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.models import CommandInfo

from flows.cli.options import load_spec, pair
from flows.cli.terminal import console, errors, print_rows, show_progress
from schemas.errors import SpecError
from schemas.terms import ExitCode

# --------------------------------------------------------------------------------------------------------------------
# What the commands of proof share: their option for JSON, and progress shown.


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@contextmanager
def shown(work: str) -> Iterator[None]:
    """Show how far it has come."""
    from flows.supervision.shutdown import say_only_stopped
    from tasks.pipeline.progress import course_of, stage_began

    say_only_stopped()  # nothing of it is kept
    show_progress()
    with course_of([work], [None]):
        stage_began(1)
        yield


# --------------------------------------------------------------------------------------------------------------------
# Command ``bench``: times against references.


app = typer.Typer()

_FORM, _WORTH, _PATTERNS, _SAVINGS = "--group-as-input", "--individuals", "--patterns", "--savings"


@app.command(epilog="Example: evenhand bench fgce --data DIR, or: evenhand bench overhead --spec SPEC.yaml")
def bench(
    name: Annotated[
        str,
        typer.Argument(
            help="overhead, audit, lender, validation, scale, forecast, ingest, twin, cost, ladder, verdicts, power, "
            "planted, clusters, proxies, alternatives, or a method, such as fgce."
        ),
    ],
    spec: Annotated[Path | None, typer.Option(help="overhead: audit spec; the bundled boston1990 if left out.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="overhead: set any key of the spec.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Methods that need it: directory with data/ (cst: and golden/) in it.")
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(min=1, help="all but overhead: at most so many rows, for a quick look; scale: rows of the year."),
    ] = None,
    group_as_input: Annotated[
        bool,
        typer.Option("--group-as-input", help="twin: the race is an input of the model, as it is not in the spec."),
    ] = False,
    individuals: Annotated[
        bool, typer.Option("--individuals", help="twin: what flags of single applicants are worth, against the truth.")
    ] = False,
    patterns: Annotated[
        bool, typer.Option("--patterns", help="twin: how often each measure speaks, and which patterns there are.")
    ] = False,
    savings: Annotated[
        bool, typer.Option("--savings", help="gcfn: settings that save time, against seeds of today's setting.")
    ] = False,
    gcfn: Annotated[bool, typer.Option("--gcfn", help="scale: audit with GCFN, too.")] = False,
    kill: Annotated[
        bool,
        typer.Option("--kill", help="scale: kill a worker in the middle, go on, and compare with audits left alone."),
    ] = False,
    runner: Annotated[
        Literal["dask", "processes"] | None, typer.Option(help="scale: where partitions run; dask if left out.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="scale: partitions at a time; cores, at most four, if left out.")
    ] = None,
    reps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="verdicts, power, planted, clusters, proxies, alternatives, twin with a form: draws of a line.",
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(help="forecast: write the table that `evenhand plan` ships with; scale: the rows in Markdown."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Time the same work two ways and print the ratio; all but overhead also print times next to targets."""
    from research.bench.listing import OVERHEAD, bench_of, options_of
    from research.bench.overhead import overhead

    options: dict[str, Any] = {
        "--spec": spec,
        "--set": set_,
        "--data": data,
        "--rows": rows,
        "--reps": reps,
        _FORM: group_as_input,
        _WORTH: individuals,
        _PATTERNS: patterns,
        _SAVINGS: savings,
    }
    options |= {"--gcfn": gcfn, "--kill": kill, "--runner": runner, "--workers": workers, "--write": write}
    _refuse_options_of_others(name, options)
    if "--data" in options_of(name) and data is None:
        raise SpecError(f"bench {name} needs --data DIR, the directory that holds data/")
    if name == OVERHEAD:
        result = overhead(load_spec(spec, dict(pair(s) for s in set_ or [])).spec)
    else:
        with shown(f"bench {name}"):
            forms = [form for form in (_FORM, _WORTH, _PATTERNS, _SAVINGS) if options[form]]
            if len(forms) > 1:
                raise SpecError(f"{forms[0]} and {forms[1]} are two benchmarks: give one of them")
            form = forms[0] if forms else None
            result = bench_of(name).run(data, rows, reps, form=form, options=options, show=_print_as_measured)
    if as_json:
        console.print_json(json.dumps(result))
    else:
        print_rows(console, f"bench {name}", result)


def _print_as_measured(line: dict[str, Any]) -> None:
    """Prints a row once it is measured, away from the table: some benchmarks take a quarter of an hour."""
    facts = {"CPU s": line.get("cpu_s"), "MB": line.get("peak_mb"), "ratio": line.get("ratio")}
    numbers = [f"{value:.3g} {unit}" for unit, value in facts.items() if isinstance(value, float | int)]
    words = [str(line[column]) for column in ("data", "rows", "what", "found", "met") if line.get(column) is not None]
    errors.print(", ".join([*words, *numbers]), markup=False, soft_wrap=True)


def _refuse_options_of_others(name: str, options: dict[str, Any]) -> None:
    """An option that only another benchmark takes would be ignored in silence."""
    from research.bench.listing import BENCHES, options_of

    if name not in BENCHES:
        raise SpecError(f"no benchmark {name!r}; known: {', '.join(BENCHES)}")
    for option, value in options.items():
        if value and option not in options_of(name):
            other = next(bench for bench in BENCHES if option in options_of(bench))
            accepted = " and ".join(options_of(other))
            raise SpecError(f"bench {name} takes no {option}; bench {other} does, and takes {accepted}")


# --------------------------------------------------------------------------------------------------------------------
# Command ``reproduce``: figures against the papers.


reproduce_app = typer.Typer()

JOBS = 2
"""Data sets at a time, unless said."""


@reproduce_app.command(
    epilog="Examples: evenhand reproduce fgce --data shared --only german, or: evenhand reproduce fgce --student "
    "student.csv --heloc heloc.csv, or: evenhand reproduce all --data shared --quick --keep results "
    "--markdown reproduction.md"
)
def reproduce(
    paper: Annotated[str, typer.Argument(help="The method, by its paper's acronym, such as fgce; or all.")],
    data: Annotated[
        Path | None,
        typer.Option(help="Directory with data/ and golden/ in it; fgce with --student or --heloc goes without."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="This data set only, such as german of fgce; may be given again."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="At a size of about a minute a paper; all: five minutes on two cores.")
    ] = False,
    folds: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=5,
            help="cec: folds to train on, of the paper's five; if left out five for its own models, one for the rest.",
        ),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Of the systems that the paper compares itself with; all if left out; may be given again.",
        ),
    ] = None,
    no_baselines: Annotated[bool, typer.Option("--no-baselines", help="None of these systems.")] = False,
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
    student: Annotated[
        Path | None, typer.Option(help="fgce: the authors' student.csv, if it is not data/student/student.csv.")
    ] = None,
    heloc: Annotated[
        Path | None, typer.Option(help="fgce: FICO's heloc.csv, if it is not data/heloc/heloc.csv.")
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(help="all: folder that keeps each data set's result, from which a second call goes on."),
    ] = None,
    kept: Annotated[
        bool, typer.Option("--kept", help="all: run nothing, and print what --keep holds of this code and these files.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="all: data sets at a time.")] = JOBS,
    markdown: Annotated[
        Path | None, typer.Option(help="all: file for the ledger, a row for every table and figure of the papers.")
    ] = None,
    charts: Annotated[
        Path | None, typer.Option(help="File for a page (HTML) with what is drawn of the papers' figures.")
    ] = None,
    every_cell: Annotated[bool, typer.Option("--every-cell", help="Print the cells that agree, too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a paper's experiment and compare with what it prints. Exit 1 if a figure differs beyond its tolerance."""
    from research.reproduction import ALL_PAPERS, Asked, Whole

    baselines = () if no_baselines else tuple(baseline) if baseline else None
    size: dict[str, Any] = {"folds": folds, "baseline": baselines, "networks": networks, "epochs": epochs}
    size |= {"seeds": seeds, "records": records, "student": student, "heloc": heloc}
    of_one = {"only": only, "every-cell": every_cell, **size}
    of_all = {"keep": keep, "kept": kept, "markdown": markdown, "jobs": jobs if jobs != JOBS else None}
    is_all = paper == ALL_PAPERS
    accepted_by = "a single paper" if is_all else "`reproduce all`"
    for option, value in (of_one if is_all else of_all).items():  # it would be ignored in silence
        if value not in (None, False):
            raise SpecError(f"reproduce {paper} takes no --{option}; {accepted_by} does")
    if data is None:
        only = only or [name for name in ("student", "heloc") if size[name] is not None]
        if is_all or not only or any(size.get(name) is None for name in only):
            raise SpecError(f"reproduce {paper} needs --data DIR, the directory that holds data/ and golden/")
        data = Path()
    if is_all:
        request = Whole(data, quick, keep, jobs, kept)
        differs = _all(request, as_json=as_json, files={"markdown": markdown, "charts": charts})
    else:
        settings = Asked(paper, tuple(only or ()), quick, size)
        differs = _one(settings, data, charts, every_cell=every_cell, as_json=as_json)
    if differs:
        raise typer.Exit(ExitCode.OUTSIDE)


def _one(settings: Any, data: Path, charts: Path | None, *, every_cell: bool, as_json: bool) -> bool:
    """Run a paper, print its figures, and return whether any differs."""
    from research.figures import Verdict
    from research.reproduction import as_json as plain
    from research.reproduction import reproduce as run
    from research.reproduction import summary, tables
    from research.reproduction_page import charts_page

    with shown(f"reproduce {settings.paper}"):
        results = run(settings, data)
    lines = [line for result in results.values() for line in result.lines]
    drawings = {name: [drawing.plain() for drawing in result.drawings] for name, result in results.items()}
    if as_json:
        console.print_json(json.dumps(plain(lines) | {"drawings": drawings}))
    else:
        for dataset, rows in tables(lines, every_cell=every_cell):
            print_rows(console, dataset, rows)
            console.print()
        console.print(summary(lines), markup=False)
    if charts:
        charts.write_text(charts_page({(settings.paper, name): several for name, several in drawings.items()}))
    return any(line.verdict is Verdict.DIFFERS for line in lines)


def _all(request: Any, *, as_json: bool, files: Mapping[str, Path | None]) -> bool:
    """Run all papers, print the ledger, and return whether any figure differs or is missing."""
    from research.figures import Status, Verdict
    from research.reproduction import as_json as plain
    from research.reproduction import ledgers, reproduce_all
    from research.reproduction_page import COLUMNS, cells, charts_page, page, totals

    show_progress()
    results = reproduce_all(request)
    rows = ledgers(results)
    if as_json:
        data_sets = [
            plain(result.lines) | {"paper": result.part.paper, "drawings": result.drawings} for result in results
        ]
        shown_rows = {
            paper: [dict(zip(COLUMNS, cells(row), strict=True)) for row in paper_rows]
            for paper, paper_rows in rows.items()
        }
        console.print_json(json.dumps({"ledger": shown_rows, "data_sets": data_sets}))
    else:
        for paper, paper_rows in rows.items():
            print_rows(console, paper, [dict(zip(COLUMNS, cells(row), strict=True)) for row in paper_rows])
            console.print()
        console.print(totals(rows), markup=False)
    if (markdown := files["markdown"]) is not None:
        markdown.write_text(page(rows, results))
    if (charts := files["charts"]) is not None:
        charts.write_text(
            charts_page({(result.part.paper, result.part.dataset): result.drawings for result in results})
        )
    differs = any(line.verdict is Verdict.DIFFERS for result in results for line in result.lines)
    return differs or any(Status.MISSING in row.status for paper_rows in rows.values() for row in paper_rows)


def commands() -> list[CommandInfo]:
    """The commands that the command line adds."""
    return [*app.registered_commands, *reproduce_app.registered_commands]
