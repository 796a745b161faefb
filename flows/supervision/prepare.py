"""Set-up step: migrates an empty Prefect database once, which every new lake copies, and compiles kernels.

Prefect takes about seven seconds to migrate a new database. Without the prepared copy an audit only starts later.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

TEMPLATE = Path(sys.prefix) / "share" / "evenhand" / f"prefect-{version('prefect')}.db"
"""Inside the virtual environment, so that it goes when that goes."""


def prepare() -> None:
    """Make the template database, unless it exists."""
    if TEMPLATE.is_file():
        return
    TEMPLATE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        settings = {"PREFECT_HOME": home, "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")} | settings
        upgrade = [sys.executable, "-P", "-m", "prefect", "server", "database", "upgrade", "--yes"]
        subprocess.run(upgrade, env=environment, cwd=home, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 our own words
        draft = TEMPLATE.with_suffix(f".{os.getpid()}")
        with sqlite3.connect(Path(home) / "prefect.db") as connection:
            connection.execute("VACUUM INTO ?", (str(draft),))
        draft.replace(TEMPLATE)


def seed_database(home: Path) -> None:
    """Give a new Prefect home the database that the set-up has migrated already."""
    database = home / "prefect.db"
    if TEMPLATE.is_file() and not database.exists():
        home.mkdir(parents=True, exist_ok=True)
        draft = database.with_suffix(f".{os.getpid()}")
        shutil.copyfile(TEMPLATE, draft)
        draft.replace(database)


def is_migrated(home: Path) -> bool:
    """Whether the database of a Prefect home is at the version of the prepared one: nothing is left to migrate."""
    if not TEMPLATE.is_file():
        return False
    versions = []
    for database in (TEMPLATE, home / "prefect.db"):
        try:
            with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as connection:
                versions.append(connection.execute("SELECT version_num FROM alembic_version").fetchall())
        except sqlite3.Error:
            return False
    return versions[0] == versions[1]


if __name__ == "__main__":
    import logging

    from flows.supervision.kernels import compile_kernels  # loads the stages, and who wants the template needs none

    logging.basicConfig(format="%(message)s")
    logging.getLogger("evenhand").setLevel(logging.INFO)
    prepare()
    compile_kernels()
