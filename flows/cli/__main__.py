"""Entry point of ``evenhand`` and ``python -m flows.cli``: signals first, as loading the command takes a second."""

import gc

from flows.supervision.shutdown import watch_signals


def main() -> None:
    """Run the command."""
    watch_signals()
    gc.set_threshold(100_000, 50, 50)  # libraries that load leave little to collect
    from flows.cli import main as command

    command.main()


if __name__ == "__main__":
    main()
