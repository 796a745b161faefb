"""Commands that write for other tools: suites of Great Expectations, events of OpenLineage, RO-Crates, packages."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from flows.cli.options import JobsOption, JsonOption, LakeOption, LatestArgument, RunArgument

app = typer.Typer()


@app.command(epilog="Example: evenhand suites suites")
def suites(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Directory of the files, made if it is not there.")],
) -> None:
    """Write one JSON file a table: its expectations, in the format of Great Expectations."""
    from flows.cli.terminal import console
    from flows.operations.dictionary import TABLES
    from schemas.errors import InfrastructureError

    try:
        folder.mkdir(parents=True, exist_ok=True)
        from tasks.pipeline.validation.suites import standard  # loads Great Expectations, which takes seconds

        for table in TABLES:
            (folder / f"{table.name}.json").write_text(json.dumps(standard(table), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InfrastructureError(f"the suites cannot be written to {folder}: {error.strerror}") from error
    console.print(f"{len(TABLES)} suites in {folder}", markup=False, soft_wrap=True)


@app.command(epilog="Example: evenhand lineage boston1990@1990 --url http://127.0.0.1:5000")
def lineage(
    run: LatestArgument = None,
    lake: LakeOption = "data/lake",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append the events to this file, a line each.")
    ] = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="Send them to this receiver.")] = None,
) -> None:
    """Print the events of OpenLineage of a finished run, or send them again: two for each stage and two for the run.

    Ids are derived from the run, so that a catalogue that has the events gets no second run. A receiver that does not
    answer is an error here (exit 5); for a run at work it is one warning.
    """
    from flows.cli.terminal import console
    from flows.concurrency.openlineage import KEY, Target, events_again, host_of, http_target
    from flows.runs.run_names import opened
    from schemas.errors import InfrastructureError, SpecError

    if out is not None and url is not None:
        raise SpecError("give --out or --url, and not both")
    opened_lake, name = opened(lake, run)
    target = http_target(url, key=os.environ.get(KEY, "")) if url is not None else Target("file", str(out))
    place = str(out) if url is None else host_of(url)
    count = 0
    for event in events_again(opened_lake, name):
        if out is None and url is None:
            sys.stdout.write(f"{json.dumps(event, sort_keys=True)}\n")
            continue
        try:
            target.deliver(event)
        except Exception as error:
            why = type(error).__name__
            raise InfrastructureError(f"{count} events were sent to {place}, then it failed: {why}") from error
        count += 1
    if count:
        console.print(f"{count} events of {name} sent to {place}", markup=False, soft_wrap=True)


@app.command(epilog="Example: evenhand export boston1990@1990 --format rocrate --out boston-1990.zip")
def export(
    run: RunArgument,
    out: Annotated[Path, typer.Option(metavar="PLACE", help="Folder, or archive (.zip), that is not there yet.")],
    form: Annotated[Literal["rocrate", "datapackage"], typer.Option("--format", help="RO-Crate, or Data Package.")],
    licence: Annotated[str, typer.Option("--licence", metavar="URL", help="Licence of the results.")] = "",
    publisher: Annotated[
        str, typer.Option(metavar="NAME", help="Organisation that audits and publishes; NAME or 'NAME <URL>'.")
    ] = "",
    lake: LakeOption = "data/lake",
    jobs: JobsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Release a run for a data repository: what `evenhand release` gives, published tables as CSV, one description.

    It is a release: it is entered in the log, and every earlier release of the same rows is taken into account.
    """
    from flows.cli.runs import print_released
    from flows.operations.export import Terms
    from flows.operations.export import export as let_out
    from flows.runs.run_names import opened

    print_released(let_out(lake, opened(lake, run)[1], out, form, jobs, Terms(licence, publisher)), as_json=as_json)
