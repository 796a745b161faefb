"""Entry point of ``evenhand`` and ``python -m evenhand``: the command, from any folder."""

import os
from pathlib import Path

import evenhand


def main() -> None:
    """Run the command; processes that it starts find the packages of this one first, too."""
    root = str(Path(evenhand.__file__).parents[1])
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if "PYTHONPATH" in os.environ and paths[0] != root:
        os.environ["PYTHONPATH"] = os.pathsep.join([root, *(path for path in paths if path)])
    from flows.cli.__main__ import run

    run()


if __name__ == "__main__":
    main()
