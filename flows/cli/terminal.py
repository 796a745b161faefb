"""Consoles of the commands: one for results, one for messages and progress."""

import json
import logging
import sys

from rich.console import Console

_WIDE = None if sys.stdout.isatty() else 160
console = Console(highlight=False, width=_WIDE)
errors = Console(stderr=True, highlight=False, soft_wrap=True, width=_WIDE)


def print_json(said: object) -> None:
    """Print a result as JSON."""
    sys.stdout.write(json.dumps(said, indent=1, default=str) + "\n")


def show_progress() -> None:
    """Tell on the error stream how far long work has come."""
    from rich.logging import RichHandler

    handler = RichHandler(console=errors, show_time=False, show_level=False, show_path=False, markup=False)
    logger = logging.getLogger("evenhand")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
