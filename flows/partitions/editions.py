"""Editions of HMDA years: lists those that a lake holds, and fetches official files."""

import json
import logging
import re
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

from flows.partitions.years import YEAR
from flows.runs.run_names import run_ids
from flows.supervision.presence import at_work, command_id
from schemas.audit.spec import AuditSpec
from schemas.errors import DataQualityError, InfrastructureError, SpecError
from schemas.vintages import DatasetName, Vintage
from tasks.ingest.download import Downloaded, bytes_progress, download
from tasks.ingest.vintages.offers import Estimate, estimate, official
from tasks.ingest.vintages.store import add, vintages
from tasks.lake.local_directory import clear, strange
from tasks.lake.store import Lake

# --------------------------------------------------------------------------------------------------------------------
# The years of an audit that are at hand: editions in the lake, files that the spec's path names, and earlier runs.


_DIGITS = "[0-9]" * 4


def held_years(spec: AuditSpec, lake: Lake) -> tuple[int, ...]:
    """Those years in order.

    Raises:
        InfrastructureError: there is none.
    """
    years = set()
    if spec.source.vintage is not None:
        from tasks.ingest.vintages.store import vintages

        filters = spec.source.vintage.model_dump(exclude_none=True).items()
        years = {v.year for v in vintages(lake) if all(getattr(v, name) == value for name, value in filters)}
    for path in (path for path in spec.source.paths if YEAR in path):
        pattern = Path(path.replace(YEAR, _DIGITS))
        fits = re.compile(re.escape(path).replace(re.escape(YEAR), r"(\d{4})", 1).replace(re.escape(YEAR), r"\d{4}"))
        for file in Path(pattern.anchor or ".").glob(str(pattern.relative_to(pattern.anchor))):
            if match := fits.fullmatch(str(file)) or fits.fullmatch(f"./{file}"):
                years.add(int(match[1]))
    prefix = f"{spec.name}-"
    for run in run_ids(lake):
        rest = run.removeprefix(prefix)
        if run.startswith(prefix) and (match := re.fullmatch(r"(\d{4})(?:-\w+)?-[^-]+", rest)):
            years.add(int(match[1]))
    if not years:
        raise InfrastructureError(
            f"no year of {spec.name!r} is available: neither data in the lake {lake.location}, nor a file of the "
            "spec's path, nor a run; `evenhand data fetch` or `data add` brings data, or name years with --years"
        )
    return tuple(sorted(years))


# --------------------------------------------------------------------------------------------------------------------
# Fetches an edition of a year from its official address and stores it as a vintage.
#
# What came lies in the lake under ``unfinished`` until it is a vintage, so that a call that was stopped, while it
# fetched or while it converted, is gone on with by the next.


log = logging.getLogger("evenhand")

_CAME = "came.json"


@dataclass(frozen=True)
class Edition:
    """What is to be fetched."""

    year: int
    dataset: DatasetName
    geography: str
    frozen: date | None = None
    """The freeze date, where another one is meant than is known here."""
    base_url: str | None = None
    """Where to fetch from instead of the publisher's host, such as a mirror."""
    sha256: str | None = None


@dataclass(frozen=True)
class Planned:
    """What a fetch would do."""

    url: str
    frozen: date | None
    """None: the server tells."""
    estimate: Estimate
    vintage: Vintage | None


def planned(lake: Lake, edition: Edition) -> Planned:
    """Where an edition comes from, how large it is, and whether the lake holds it.

    Raises:
        SpecError: it is not offered, or nobody knows when it was frozen.
    """
    offer = official().offer(edition.dataset, edition.year)
    url = official().address(edition.dataset, edition.year, edition.geography, edition.base_url)
    frozen = edition.frozen or offer.frozen.get(edition.year)
    if frozen is None and offer.frozen_by == "publisher":
        raise SpecError(
            f"the freeze date of {edition.dataset} {edition.year} is not known here; give the date of the "
            "publisher's page: --frozen YYYY-MM-DD"
        )
    editions = [
        v for v in vintages(lake, edition.year) if (v.dataset, v.geography) == (edition.dataset, edition.geography)
    ]
    same = next((v for v in reversed(editions) if v.frozen == frozen and edition.sha256 in (None, v.sha256)), None)
    return Planned(url, frozen, estimate(edition.dataset, edition.year, edition.geography), same)


def fetch(lake: Lake, edition: Edition, *, again: bool = False, keep_raw: bool = False) -> Vintage:
    """Download an edition and add it to the lake; one of that freeze date that is held is not fetched unless ``again``.

    Raises:
        SpecError, InfrastructureError, IntegrityError: as ``planned`` and ``download`` say.
        DataQualityError: what came is not of that year, or no HMDA.
    """
    name = f"{edition.year}-{edition.dataset}-{edition.geography}"
    with at_work(lake, command_id()), lake.lock(f"fetch-{name}"):
        plan = planned(lake, edition)  # behind the lock: another process may have fetched it meanwhile
        if plan.vintage and not again:
            log.warning("held already: %s; give --again to fetch it all the same", plan.vintage)
            return plan.vintage
        lake.require_space(plan.estimate.disk_bytes or 0, name)
        folder = lake.storage.local / "unfinished" / f"fetch-{name}"
        if why := strange(lake.storage.local, folder):
            raise SpecError(f"{why}; what is fetched is kept in the lake itself: remove that, and fetch again")
        came = None if again else _come(folder, plan.url, edition.sha256)
        try:
            vintage = add(
                lake,
                (came := came or _fetched(folder, name, plan.url, edition.sha256)).path,
                year=edition.year,
                dataset=edition.dataset,
                geography=edition.geography,
                frozen=plan.frozen or _day_of(came),
                source=plan.url,
                replace=again,
                keep_raw=keep_raw,
            )
        except DataQualityError:
            clear(lake.storage.local, folder)  # the next call would meet the same file
            raise
        clear(lake.storage.local, folder)
    return vintage


def _fetched(folder: Path, name: str, url: str, sha256: str | None) -> Downloaded:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _CAME).unlink(missing_ok=True)
    with bytes_progress(name) as tell:
        came = download(url, folder / (f"{name}.zip" if ".zip" in url else f"{name}.csv"), sha256, tell=tell)
    (folder / _CAME).write_text(json.dumps({**asdict(came), "path": came.path.name, "url": url}))
    return came


def _come(folder: Path, url: str, sha256: str | None) -> Downloaded | None:
    """The file that an earlier call fetched whole from the same address and did not convert to the end."""
    try:
        saved_download = json.loads((folder / _CAME).read_bytes())
        same = saved_download.pop("url") == url and sha256 in (None, saved_download["sha256"])
        came = Downloaded(**{**saved_download, "path": folder / saved_download["path"]})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return came if same and came.path.is_file() else None


def _day_of(came: Downloaded) -> date:
    """The day that the server gives a file without a published freeze date; today where it gives none."""
    try:
        return parsedate_to_datetime(came.modified or "").date()
    except ValueError:
        return datetime.now(UTC).date()
