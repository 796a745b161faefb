"""The years of an audit that are at hand: editions in the lake, files that the spec's path names, and earlier runs."""

import re
from pathlib import Path

from flows.partitions.years import YEAR
from flows.runs.naming import run_ids
from schemas.audit.spec import AuditSpec
from schemas.errors import InfrastructureError
from tasks.lake.store import Lake

_DIGITS = "[0-9]" * 4


def held_years(spec: AuditSpec, lake: Lake) -> tuple[int, ...]:
    """Those years in order.

    Raises:
        InfrastructureError: there is none.
    """
    found = {*_of_editions(spec, lake), *_of_files(spec), *_of_runs(spec, lake)}
    if not found:
        raise InfrastructureError(
            f"no year of {spec.name!r} is at hand: neither data in the lake {lake.location}, nor a file of the spec's "
            "path, nor a run; `evenhand data fetch` or `data add` brings data, or name years with --years"
        )
    return tuple(sorted(found))


def _of_editions(spec: AuditSpec, lake: Lake) -> set[int]:
    if spec.source.vintage is None:
        return set()
    from tasks.ingest.vintages.store import vintages

    wanted = spec.source.vintage.model_dump(exclude_none=True)
    return {v.year for v in vintages(lake) if all(getattr(v, name) == value for name, value in wanted.items())}


def _of_files(spec: AuditSpec) -> set[int]:
    years: set[int] = set()
    for path in (path for path in spec.source.paths if YEAR in path):
        pattern = Path(path.replace(YEAR, _DIGITS))
        fits = re.compile(re.escape(path).replace(re.escape(YEAR), r"(\d{4})", 1).replace(re.escape(YEAR), r"\d{4}"))
        for file in Path(pattern.anchor or ".").glob(str(pattern.relative_to(pattern.anchor))):
            match = fits.fullmatch(str(file)) or fits.fullmatch(f"./{file}")
            years |= {int(match[1])} if match else set()
    return years


def _of_runs(spec: AuditSpec, lake: Lake) -> set[int]:
    known = [run.removeprefix(f"{spec.name}-") for run in run_ids(lake) if run.startswith(f"{spec.name}-")]
    return {int(match[1]) for rest in known if (match := re.fullmatch(r"(\d{4})(?:-\w+)?-[^-]+", rest))}
