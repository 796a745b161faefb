"""Reads a stranger's binary table in a separate process, with limits: a file that crashes it ends nothing else.

The process is ``binary_reader``. It gets a path, hands back a few facts and columns of text, and writes no file.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import tasks
from schemas.errors import DataQualityError, InfrastructureError

HEAD: Final = 8
"""Bytes of the length before the facts."""
_SECONDS: Final = 120
_SECONDS_A_MB: Final = 20
"""Of the clock, for a file of that size."""
_KEPT: Final = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "VIRTUAL_ENV")
"""Variables that the process gets; secrets are in others."""
_ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True)
class Facts:
    """Names, rows and labels of a file's table."""

    names: tuple[str, ...] = ()
    rows: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    """Column -> its description in the file."""
    nested: tuple[str, ...] = ()
    """Columns without plain values, which are not among the names."""
    sheets: tuple[str, ...] = ()
    """Of a workbook: the names of the sheets that are not hidden and hold cells."""


@dataclass(frozen=True)
class Reading:
    """A table as text, with its facts."""

    facts: Facts
    table: pa.Table


def read_apart(kind: str, path: Path, columns: Sequence[str] | None = None, sheet: str | None = None) -> Reading:
    """A table as text; of a workbook the cells of a sheet, with columns called by numbers.

    Args:
        kind: As the spec calls it.
        path: A file that is not packed.
        columns: Which are read; all of them where None, and facts alone where there are none.
        sheet: Of a workbook; the first that is not hidden where None.

    Raises:
        DataQualityError: it is damaged, larger than the limits allow, or ended the process that read it.
        InfrastructureError: the library that reads it is not installed.
    """
    listed = None if columns is None else list(columns)
    order = {"kind": kind, "path": str(path.resolve()), "sheet": sheet, "columns": listed}
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | _ONE_THREAD
    environment["PYTHONPATH"] = str(Path(tasks.__file__).parents[1])
    command = [sys.executable, "-P", "-m", "tasks.ingest.sources.binary_reader"]  # no module of the working directory
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment, **pipes) as process:  # noqa: S603 our own words
        patience = threading.Timer(_SECONDS + _SECONDS_A_MB * path.stat().st_size / 1e6, process.kill)
        patience.start()
        try:
            process.stdin.write(json.dumps(order).encode())  # type: ignore[union-attr]
            process.stdin.close()  # type: ignore[union-attr]
            answer = process.stdout.read()  # type: ignore[union-attr]
            code = process.wait()
        except BrokenPipeError:
            answer, code = b"", process.wait()
        finally:
            patience.cancel()
            process.kill()
    if code:
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise DataQualityError(
            f"{path.name} ended the process that reads it ({how}): it is damaged, made to do harm, or too large; "
            "save the table as CSV or Parquet"
        )
    length = int.from_bytes(answer[:HEAD], "little")
    header = json.loads(answer[HEAD : HEAD + length])
    if "error" in header:
        kind_of_error = InfrastructureError if header["error"] == "library" else DataQualityError
        raise kind_of_error(header["message"])
    facts: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in header.items()}
    with pa.ipc.open_stream(pa.py_buffer(memoryview(answer)[HEAD + length :])) as stream:
        return Reading(Facts(**facts), stream.read_all())
