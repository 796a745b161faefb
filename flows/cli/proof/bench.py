"""Command ``bench``: times against references."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from flows.cli.options import load_spec, pair
from flows.cli.proof.work import JsonOption, shown
from flows.cli.summary import print_rows
from flows.cli.terminal import console
from schemas.errors import SpecError

app = typer.Typer()

_FORM = "--group-as-input"


@app.command(epilog="Example: evenhand bench fgce --data DIR, or: evenhand bench overhead --spec SPEC.yaml")
def bench(
    name: Annotated[
        str,
        typer.Argument(
            help="overhead, audit, scale, ingest, twin, verdicts, published, cost, operations, serve, or a method, "
            "such as fgce."
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
        typer.Option(
            min=1,
            help="verdicts, published: repetitions of each scenario; 200 or 1,000 if left out. operations: dates.",
        ),
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
    hours: Annotated[
        float | None, typer.Option(min=0.1, help="operations: how long, with a date every two minutes.")
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
    given |= {"--gcfn": gcfn, "--kill": kill, "--runner": runner, "--workers": workers, "--hours": hours}
    _refuse_options_of_others(name, given)
    if "--data" in options_of(name) and data is None:
        raise SpecError(f"bench {name} needs --data DIR, the directory that holds data/")
    if name == OVERHEAD:
        said = overhead(load_spec(spec, dict(pair(s) for s in set_ or [])).spec)
    else:
        with shown(f"bench {name}"):
            said = bench_of(name).run(data, rows, reps, _FORM if group_as_input else None, given)
    if as_json:
        console.print_json(json.dumps(said))
    else:
        print_rows(console, f"bench {name}", said)


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
