"""Commands ``bench`` (times against references) and ``reproduce`` (figures against the papers)."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from flows.cli.options import load_spec, pair
from flows.cli.summary import print_rows
from flows.cli.terminal import console, show_progress
from schemas.errors import SpecError
from schemas.terms import ExitCode

app = typer.Typer()

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
_FORM = "--group-as-input"


@app.command(epilog="Example: evenhand bench fgce --data DIR, or: evenhand bench overhead --spec SPEC.yaml")
def bench(
    name: Annotated[
        str,
        typer.Argument(
            help="overhead, audit, scale, ingest, twin, verdicts, published, cost, or a method, such as fgce."
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
    reps: Annotated[
        int | None,
        typer.Option(min=1, help="verdicts, published: repetitions of each scenario; 200 or 1,000 if left out."),
    ] = None,
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
    as_json: JsonOption = False,
) -> None:
    """Time the same work two ways and print the ratio; all but overhead print times beside targets, too."""
    from flows.bench.listing import OVERHEAD, bench_of, options_of
    from flows.bench.overhead import overhead

    given: dict[str, Any] = {
        "--spec": spec,
        "--set": set_,
        "--data": data,
        "--rows": rows,
        "--reps": reps,
        _FORM: group_as_input,
    }
    given |= {"--gcfn": gcfn, "--kill": kill, "--runner": runner, "--workers": workers}
    _refuse_options_of_others(name, given)
    if "--data" in options_of(name) and data is None:
        raise SpecError(f"bench {name} needs --data DIR, the directory that holds data/")
    if name == OVERHEAD:
        said = overhead(load_spec(spec, dict(pair(s) for s in set_ or [])).spec)
    else:
        with _shown(f"bench {name}"):
            said = bench_of(name).run(data, rows, reps, _FORM if group_as_input else None, given)
    if as_json:
        console.print_json(json.dumps(said))
    else:
        print_rows(console, f"bench {name}", said)


@app.command(epilog="Example: evenhand reproduce fgce --data shared --only german")
def reproduce(
    paper: Annotated[str, typer.Argument(help="The method, by its paper's acronym, such as fgce.")],
    data: Annotated[Path, typer.Option(help="Directory with data/ and golden/ in it.")],
    only: Annotated[
        list[str] | None,
        typer.Option(help="This data set only, such as german of fgce; may be given again."),
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
    from flows.reproduce.run import reproduce as run
    from flows.reproduce.show import as_json as plain
    from flows.reproduce.show import summary, tables
    from tasks.proof.lines import Verdict

    size = {"folds": folds, "baselines": baselines, "networks": networks, "epochs": epochs, "seeds": seeds}
    with _shown(f"reproduce {paper}"):
        lines = run(paper, data, only or (), **size, records=records)
    if as_json:
        console.print_json(json.dumps(plain(lines)))
    else:
        for dataset, rows in tables(lines, every_cell=every_cell):
            print_rows(console, dataset, rows)
            console.print()
        console.print(summary(lines), markup=False)
    if any(line.verdict is Verdict.DIFFERS for line in lines):
        raise typer.Exit(ExitCode.BREACH)


@contextmanager
def _shown(work: str) -> Iterator[None]:
    """Show how far it has come."""
    from tasks.pipeline.progress import course_of, stage_began

    show_progress()
    with course_of([work], [None]):
        stage_began(1)
        yield


def _refuse_options_of_others(name: str, given: dict[str, Any]) -> None:
    """An option that only another benchmark takes would be ignored in silence."""
    from flows.bench.listing import BENCHES, options_of

    if name not in BENCHES:
        raise SpecError(f"no benchmark {name!r}; known: {', '.join(map(repr, BENCHES))}")
    for option, value in given.items():
        if value and option not in options_of(name):
            other = next(bench for bench in BENCHES if option in options_of(bench))
            taken = " and ".join(options_of(other))
            raise SpecError(f"bench {name} takes no {option}; bench {other} does, and takes {taken}")
