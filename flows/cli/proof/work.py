"""What the commands of proof share: their option for JSON, and progress shown."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from flows.cli.terminal import show_progress

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@contextmanager
def shown(work: str) -> Iterator[None]:
    """Show how far it has come."""
    from tasks.pipeline.progress import course_of, stage_began

    show_progress()
    with course_of([work], [None]):
        stage_began(1)
        yield
