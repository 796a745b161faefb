"""Command ``evenhand sql``."""

import sys
from typing import Annotated

import typer

from flows.cli.options import LakeOption
from flows.cli.results.answers import FormatOption, JsonOption, RawOption, show

app = typer.Typer()


@app.command(epilog='Example: evenhand sql "SELECT run, count(*) FROM applications GROUP BY run"')
def sql(
    query: Annotated[str, typer.Argument(help="A query; every table of the lake is a view with the column run.")],
    lake: LakeOption = "data/lake",
    timeout: Annotated[
        int, typer.Option(min=1, max=1_000_000, metavar="SECONDS", help="Stop the query after so long.")
    ] = 600,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="What the query may use, such as 2GB; more is kept on disk meanwhile. A quarter of the machine's "
            "memory, at most 8GB, if left out.",
        ),
    ] = None,
    format_: FormatOption = "table",
    as_json: JsonOption = False,
    raw: RawOption = False,
) -> None:
    """Query the lake with DuckDB. It has no files but the lake's tables, and writes none; `SHOW TABLES` lists them.

    Tables other than published_... hold rows of persons, and numbers that reports withhold.
    """
    from tasks.lake.query import answer, size_of, untold
    from tasks.lake.store import open_lake
    from tasks.lake.views import default_memory, open_views

    size = default_memory() if memory is None else size_of(memory)
    with open_views(open_lake(lake), memory=size) as connection:
        table, withheld = answer(connection, query, timeout, size), untold(connection, query)
    if withheld:
        sys.stderr.write(f"restricted: not for publication, since reports withhold some of it: {', '.join(withheld)}\n")
    show(table, "json" if as_json else format_, raw=raw)
