"""Entry point of ``evenhand`` and ``python -m flows.cli``: signals first, as loading the command takes a second."""

import gc
import threading
from typing import NoReturn

from flows.supervision.shutdown import watch_signals


def main() -> None:
    """Run the command."""
    watch_signals()
    gc.set_threshold(100_000, 50, 50)  # libraries that load leave little to collect
    from flows.cli import main as command

    command.main()


def run() -> NoReturn:
    """Run the command, and end this process with it."""
    code = 0
    try:
        main()
    except SystemExit as ended:
        if isinstance(ended.code, str):  # a message, which the interpreter prints
            raise
        code = ended.code or 0
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as the interpreter does
    from flows.cli.main import end

    end(code)


if __name__ == "__main__":
    run()
