"""Audit spec of a deployed flow: its values, or the path of a file read when the run begins; where its files lie.

With a path, an operator can change the spec without a new deployment. The run's manifest records the spec that ran,
with paths as the spec has them. Their absolute paths are kept in the lake, so that a run is compared with its own files
from every folder. No report shows them, and they identify nothing.
"""

import json
import logging
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from glob import escape
from pathlib import Path, PurePath
from typing import Any, Final

from flows.runs.index import places_path
from schemas.audit.expectations import read_suite
from schemas.audit.file import SpecFile, spec_text
from schemas.audit.spec import AuditSpec
from schemas.errors import IntegrityError, SpecError
from tasks.ingest.sources.raw import check_regular
from tasks.lake.storage import mapping_of
from tasks.lake.store import Lake
from tasks.metrics.limits import faults
from tasks.pipeline.registry import checked, read_spec

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
        values = SpecFile(checked(spec, "the parameter `spec`", (faults,)), "the parameter `spec`")
        return _with_suite(values, Path()).spec
    check_regular(Path(spec))
    try:
        text = spec_text(Path(spec))
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(
            f"no audit spec can be read at {spec!r} ({error}); put one there, or run the deployment with another `spec`"
        ) from error
    return placed(read_spec(text, spec, also=(faults,)), Path(spec).parent).spec


def placed(spec_file: SpecFile, folder: Path, overrides: Collection[str] = ()) -> SpecFile:
    """The spec with the paths of its source as they are found from here, and with the expectations of its suite.

    Args:
        spec_file: the spec.
        folder: in which it lies.
        overrides: keys that ``--set`` gave.

    Raises:
        SpecError: the file of the suite is not usable.
    """
    spec_file = _with_suite(spec_file, Path() if "expectations" in overrides else folder)
    source = spec_file.spec.source
    placed_source = source.joining([_placed(file.path, folder) for file in source.second_files])
    if source.path is not None and set(overrides).isdisjoint(_GIVEN):
        placed_source = placed_source.lying_at(tuple(_placed(path, folder) for path in source.paths))
    if placed_source == source:
        return spec_file
    return replace(spec_file, spec=spec_file.spec.model_copy(update={"source": placed_source}))


def _with_suite(spec_file: SpecFile, folder: Path) -> SpecFile:
    """The spec with the expectations of the suite's file that it names, instead of its path."""
    suite = spec_file.spec.expectations
    if not isinstance(suite, str):
        return spec_file
    try:
        listed = read_suite(folder / suite)
    except SpecError as error:
        raise SpecError(spec_file.describe(error), error.location) from error
    spec = spec_file.spec.model_copy(update={"expectations": listed})
    return replace(spec_file, spec=spec, suite=str(folder / suite))


def _placed(path: str, folder: Path) -> str:
    """The path in the folder of the spec; unchanged if absolute, or if only the working directory has such a file."""
    in_folder = folder / path
    if str(in_folder) == path or _is_there(in_folder) or not _is_there(Path(path)):
        return str(in_folder)
    log.warning("source.path %s is that of the working directory: the folder of the spec, %s, has none", path, folder)
    return path


def _is_there(path: Path) -> bool:
    """Whether there is such a file; of a path with the year in its name, that of any year."""
    try:
        if _YEAR not in str(path):
            return path.exists()
        pattern = escape(str(path.relative_to(path.anchor))).replace(_YEAR, "[0-9][0-9][0-9][0-9]")
        return any(Path(path.anchor or ".").glob(pattern))
    except (OSError, ValueError):  # a name that no file can have: reading the file reports it
        return False


def keep_places(lake: Lake, run: str, spec: AuditSpec) -> None:
    """Write down where the files of a run's spec lie; a later audit of the same files elsewhere writes it again.

    Raises:
        InfrastructureError: the disk is full or fails.
    """
    paths = () if spec.source.vintage_file is not None else spec.source.paths
    source = [os.path.abspath(path) for path in paths]  # noqa: PTH100 a link may be turned to a newer file
    joined = [os.path.abspath(file.path) for file in spec.source.second_files]  # noqa: PTH100 the same
    model = os.path.abspath(spec.model.file.path) if spec.model.file else ""  # noqa: PTH100 the same
    record: dict[str, Any] = {"source": source, "model": model, **({"joined": joined} if joined else {})}
    content, path = json.dumps(record, indent=1).encode(), places_path(run)
    if (source or model) and lake.storage.read(path) != content:
        lake.write_file(path, content, draft=f"tmp/{run}-places.json")


def places(lake: Lake, run: str) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """Absolute paths of the source's files, of the model's file and of the files that are joined.

    They are empty of a run of a version that kept none.

    Raises:
        IntegrityError: the record is not as this version writes it.
    """
    content = lake.storage.read(places_path(run))
    if content is None:
        return (), "", ()
    try:
        record = mapping_of(content)
        return tuple(map(str, record["source"])), str(record["model"]), tuple(map(str, record.get("joined", ())))
    except (ValueError, KeyError, TypeError) as error:
        where = lake.storage.where(places_path(run))
        raise IntegrityError(f"{where} is not as it was written; run that audit again to write it again") from error


def where_it_lies(lake: Lake, run: str, spec: AuditSpec) -> AuditSpec:
    """The spec of a finished run with the recorded places of its files, independent of the working directory.

    A vintage is the lake's own, also where the lake was moved.

    Raises:
        IntegrityError: as ``places`` says.
    """
    source, model, (files, model_file, joined) = spec.source, spec.model, places(lake, run)
    if source.vintage_file is not None:
        parts = PurePath(source.vintage_file).parts
        vintage_path = lake.storage.local.joinpath(*parts[parts.index("vintages") :]) if "vintages" in parts else None
        if vintage_path is not None and vintage_path.exists():
            source = source.model_copy(update={"vintage_file": str(vintage_path)})
    elif len(files) == len(source.paths) > 0:
        source = source.lying_at(files)
    if len(joined) == len(source.second_files):
        source = source.joining(joined)
    if model.file is not None and model_file:
        model = model.model_copy(update={"file": model.file.model_copy(update={"path": model_file})})
    return spec.model_copy(update={"source": source, "model": model})
