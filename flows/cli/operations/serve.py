"""Command ``serve``: pages over the lake, for whoever reads, notes and signs."""

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import LakeOption

app = typer.Typer()


@app.command(epilog='Example: evenhand serve --lake /srv/evenhand/lake --as "Ann Lee" --sign')
def serve(
    lake: LakeOption = "data/lake",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8321,
    host: Annotated[
        str, typer.Option(help="Address to listen on; one beyond this machine only with --behind-tls.")
    ] = "127.0.0.1",
    behind_tls: Annotated[
        str, typer.Option("--behind-tls", metavar="NAME", help="Name under which a proxy with TLS serves the pages.")
    ] = "",
    open_: Annotated[bool, typer.Option("--open", help="Open them in a browser.")] = False,
    by: Annotated[str, typer.Option("--as", metavar="NAME", help="Who reads, notes and signs.")] = "",
    restricted: Annotated[
        bool,
        typer.Option("--restricted", help="Show rows of persons; every such page is an entry of the log. Needs --as."),
    ] = False,
    sign: Annotated[bool, typer.Option("--sign", help="Show the forms of notes and signatures. Needs --as.")] = False,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="Take the token from this file of mode 0600, for a service.")
    ] = None,
) -> None:
    """Serve the lake as pages: runs, how sure they are, who signed them. Prints an address with a token, once.

    Read-only but for entries of the log. One token is one person: whoever has the address sees the pages.
    """
    from flows.runs.trust import persons
    from flows.serving.server import serve as begin
    from flows.serving.settings import Settings
    from tasks.lake.signatures import trusted

    name = persons.name(by) if by else ""
    trusted()  # a variable that names no key is an error before any page is shown
    begin(Settings(lake, host, port, behind_tls, name, sign, restricted), token_file, browse=open_)
