"""Entry point of ``evenhand`` and ``python -m flows``: signals first, as loading the command takes a second."""

from flows.interruption import watch_signals


def main() -> None:
    """Run the command."""
    watch_signals()
    from flows import cli

    cli.main()


if __name__ == "__main__":
    main()
