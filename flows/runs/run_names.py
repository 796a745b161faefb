"""How a user names a run: by its id, by the beginning of one, or as ``AUDIT@YEAR``; the last run if not at all.

Every command that takes a RUN uses this module. The caller reads the files of the run.
"""

from collections.abc import Sequence

from flows.runs.index import last_run
from schemas.errors import SpecError, nearest
from tasks.lake.store import Lake, open_lake
from tasks.lake.views import latest_run

_SHOWN = 4
"""So many of the runs that a name fits are named in a message."""


def opened(root: str, name: str | None) -> tuple[Lake, str]:
    """Open an existing lake, and resolve the name of a run to its id.

    Raises:
        SpecError: there is no lake at that place, or as ``named`` says.
    """
    lake = open_lake(root)
    return lake, named(lake, name)


def named(lake: Lake, name: str | None) -> str:
    """The id of a run.

    Args:
        lake: where it is.
        name: an id, the beginning of one, ``AUDIT@YEAR`` for the valid run of a year, or None for the last run.

    Raises:
        SpecError: no run has that name, or several have.
        IntegrityError: a manifest of that audit and year is not the one that was written.
    """
    if name is None:
        return latest_run(lake)
    ids = run_ids(lake)
    if name in ids:
        return name
    if name and "/" not in name and name.strip(".") and lake.storage.exists(f"runs/{name}"):
        return name  # a run without a manifest: reading that run raises an error
    if "@" in name:
        # The protected run of an audit and year, else the last one.
        audit, _, year = name.rpartition("@")
        if not _is_year(year):
            raise SpecError(f"{name}: expected AUDIT@YEAR, such as boston1990@1990; `evenhand runs` lists them")
        run = last_run(lake, audit, int(year)) if audit else None
        if run is None:
            years = sorted({"@".join(audit_and_year(run)) for run in ids if run.count("-") > 1})
            raise SpecError(f"the lake {lake.location} holds no run of {audit!r} in {year}; {_nearest(name, years)}")
        return run.run
    fitting = [run for run in ids if name and run.startswith(name)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        examples = ", ".join(fitting[:_SHOWN])
        examples += f" and {len(fitting) - _SHOWN} more" if len(fitting) > _SHOWN else ""
        raise SpecError(
            f"{name}: expected the beginning of one run, and {len(fitting)} begin so: {examples}; give more letters"
        )
    if not ids:
        raise SpecError(f"the lake {lake.location} holds no run yet; `evenhand audit` makes one")
    raise SpecError(f"the lake {lake.location} holds no run {name!r}; {_nearest(name, ids)}")


def run_ids(lake: Lake) -> list[str]:
    """The ids of all finished runs, in the order of the alphabet."""
    return sorted(path.split("/")[1] for path in lake.storage.glob("runs/*/manifest.json"))


def audit_of(run: str) -> str:
    """The name of the audit that an id begins with."""
    return audit_and_year(run)[0]


def audit_and_year(run: str) -> tuple[str, str]:
    """Audit name and year at the beginning of an id, before its digest or its partition.

    Names may end with a year, too: a partition such as ``2021`` is then read as the year.
    """
    *rest, _ = run.split("-")
    at = next((i for i in (len(rest) - 1, len(rest) - 2) if i > 0 and _is_year(rest[i])), len(rest) - 1)
    return "-".join(rest[:at]), rest[at] if rest else ""


def _is_year(word: str) -> bool:
    return word.isdecimal() and len(word) == 4


def _nearest(name: str, ids: Sequence[str]) -> str:
    hint = nearest(name, ids)
    return hint if hint.startswith("did") or len(ids) <= _SHOWN else "`evenhand runs` lists them"
