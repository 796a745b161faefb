"""The command ``suites``: the declared tables as suites that Great Expectations reads without this package."""

import json
from pathlib import Path
from typing import Annotated

import typer

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
