"""Audit spec of a deployed flow: its values, or the path of a file read when the run begins; where its files lie.

With a path, an operator can change the spec without a new deployment. The run's manifest records the spec that ran.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from glob import escape
from pathlib import Path
from typing import Any, Final

from schemas.audit.file import SpecFile
from schemas.audit.spec import AuditSpec
from schemas.audit.text import spec_text
from schemas.errors import SpecError
from tasks.ingest.regular_file import check_regular
from tasks.metrics.limits import faults
from tasks.pipeline.specs import checked, read_spec

_YEAR: Final = "{year}"
_GIVEN: Final = ("source", "source.path")
"""Keys of ``--set`` that give a path: it is taken from the working directory alone."""
log = logging.getLogger("evenhand")


def given_spec(spec: Mapping[str, Any] | str) -> AuditSpec:
    """The spec.

    Raises:
        SpecError: there is no such file, it is a pipe or a device, or it is not usable.
    """
    if not isinstance(spec, str):
        return checked(spec, "the parameter `spec`", (faults,))
    check_regular(Path(spec))
    try:
        text = spec_text(Path(spec))
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(
            f"no audit spec can be read at {spec!r} ({error}); put one there, or run the deployment with another `spec`"
        ) from error
    return placed(read_spec(text, spec, also=(faults,)), Path(spec).parent).spec


def placed(read: SpecFile, folder: Path, overrides: Collection[str] = ()) -> SpecFile:
    """The spec with the paths of its source as they are found from here.

    Args:
        read: the spec.
        folder: in which it lies.
        overrides: keys that ``--set`` gave.
    """
    source = read.spec.source
    if source.path is None or not set(overrides).isdisjoint(_GIVEN):
        return read
    paths = tuple(_placed(path, folder) for path in source.paths)
    given = paths[0] if isinstance(source.path, str) else paths
    moved = source.model_copy(update={"path": given})
    return replace(read, spec=read.spec.model_copy(update={"source": moved}))


def _placed(path: str, folder: Path) -> str:
    """The path beside the spec; as it is where it is absolute, or where only the working directory has such a file."""
    beside = folder / path
    if str(beside) == path or _is_there(beside) or not _is_there(Path(path)):
        return str(beside)
    log.warning("source.path %s is that of the working directory: none lies beside the spec, in %s", path, folder)
    return path


def _is_there(path: Path) -> bool:
    """Whether there is such a file; of a path with the year in its name, that of any year."""
    try:
        if _YEAR not in str(path):
            return path.exists()
        pattern = escape(str(path.relative_to(path.anchor))).replace(_YEAR, "[0-9][0-9][0-9][0-9]")
        return any(Path(path.anchor or ".").glob(pattern))
    except (OSError, ValueError):  # a name that no file can have: whoever reads the file says so
        return False
