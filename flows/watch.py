"""Prefect flow of the watch: looks for a newer edition of the newest year, and audits what is not audited yet.

It compares the catalogue with the lake, and fetches what is missing if it may. Arguments and results are plain values,
so that ``flows.watch.watch`` can be deployed.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from prefect import flow

from flows.audit import audit
from flows.outcome.alerts import ALERTED
from flows.outcome.artifacts import announce_changes
from flows.outcome.conclusion import ending_of_run
from flows.outcome.ending import Ending, Subject, run_name
from flows.outcome.run_state import INSUFFICIENT, BreachError, announced, concluded
from flows.partitions.part_spec import spec_to_audit
from flows.runs.given import given_spec
from flows.runs.record import is_published
from schemas.audit.source import VintageChoice
from schemas.errors import DataQualityError, InfrastructureError, IntegrityError, SpecError, TooLittleEvidenceError
from schemas.vintages import Vintage, dataset_of
from tasks.lake.store import Lake
from tasks.plan import plan

log = logging.getLogger("evenhand")


@dataclass(frozen=True)
class Found:
    """Result of a watch."""

    published_year: int
    """The newest year of the data set that is known to be published."""
    fetched: str = ""
    """The vintage that came; empty if none did."""
    not_fetched: str = ""
    """Why none did, where one was missing."""
    held: str = ""
    """The newest vintage that the lake holds; empty if it holds none."""
    run: str = ""
    """Its audit."""
    audited: bool = False
    """Whether that was computed by this watch; else it was there before."""


def _ending(arguments: Mapping[str, Any], result: dict[str, Any], _: Subject, __: Collection[str]) -> Ending | None:
    """The ending of the run that the watch made or found; None if there is nothing to audit."""
    return ending_of_run(Lake(arguments["lake"]), result["run"]) if result["run"] else None


@flow(
    name="watch",
    flow_run_name=run_name,
    result_serializer="json",
    validate_parameters=False,
    log_prints=False,
    **ALERTED,
)
@announced
@concluded(_ending)
def watch(
    spec: dict[str, Any] | str, lake: str, fetch: bool = False, year: int | None = None, base_url: str | None = None
) -> dict[str, Any]:
    """Look for a newer edition, fetch it where that is allowed, and audit the newest one of the lake.

    Args:
        spec: an audit spec with ``source.vintage``, as ``AuditSpec`` dumps it, or the path of its file.
        lake: absolute path of the lake, or its URI.
        fetch: whether an edition that the lake does not hold is downloaded; else it is only reported.
        year: the year to look for; the newest that is published if left out.
        base_url: a mirror to fetch from.

    Returns:
        The fields of ``Found``.

    Raises:
        EvenhandError: as the audit. A failed download is reported, and the newest edition of the lake is audited.
    """
    from flows.partitions.trends import changes_of
    from tasks.ingest.vintages.offers import official
    from tasks.ingest.vintages.store import newest, vintages

    audit_spec, opened = given_spec(spec), Lake(lake)
    if audit_spec.source.vintage is None:
        raise SpecError(
            "a watch needs `source: {kind: hmda, vintage: {...}}`, which names the data set; a file that "
            "is named by its path has none",
            ("source",),
        )
    choice = audit_spec.source.vintage
    published = year
    if not published:
        dataset = dataset_of(choice.dataset or "snapshot")
        offer = official().dataset.get(dataset)
        if offer is None:
            message = f"{dataset} is not published, so that there is nothing to watch for"
            raise SpecError(message, ("source", "vintage"))
        published = offer.years[1]
    fetched, why = _fetch_missing(opened, choice, published, base_url, fetch=fetch)
    criteria = choice.model_dump(exclude_none=True)
    years = sorted({vintage.year for vintage in vintages(opened)}, reverse=True)
    held = next((vintage for year in years if (vintage := newest(opened, year, **criteria))), None)
    result = Found(published, str(fetched or ""), why, str(held or ""))
    if held is not None:
        of_year = spec_to_audit(audit_spec.model_copy(update={"year": held.year}), opened)  # with `by`, of every row
        run = plan(of_year).run
        if is_published(opened, run):
            result = replace(result, run=run)
        else:
            try:
                summary = audit(spec=of_year.model_dump(mode="json"), lake=opened.location)
            except BreachError as error:  # the audit's flow run fails where that is demanded; the watch ends as it does
                summary = error.summary
            if INSUFFICIENT in summary:
                raise TooLittleEvidenceError(summary[INSUFFICIENT])
            result = replace(result, run=summary["run"], audited=True)
            announce_changes(of_year.name, partial(changes_of, of_year.name, opened))
    if result.fetched:
        log.info("fetched %s", result.fetched)
    elif result.not_fetched:
        log.warning("not fetched: %s", result.not_fetched)
    if not result.held:
        log.warning("the lake holds no vintage to audit; `evenhand data fetch` or `evenhand data add` brings one")
    else:
        log.info("%s: %s %s", result.held, "audited as" if result.audited else "was audited before as", result.run)
    return asdict(result)


def _fetch_missing(
    lake: Lake, choice: VintageChoice, year: int, base_url: str | None, *, fetch: bool
) -> tuple[Vintage | None, str]:
    """The edition that was missing and came, or why it did not."""
    from flows.partitions import editions

    dataset, geography = dataset_of(choice.dataset or "snapshot"), choice.geography or "nationwide"
    edition = editions.Edition(year, dataset, geography, choice.frozen, base_url)
    planned = editions.planned(lake, edition)
    if planned.vintage is not None:
        return None, ""
    if not fetch:
        return None, f"{dataset} {year} of {geography} is published at {planned.url}; this watch does not fetch"
    try:
        return editions.fetch(lake, edition), ""
    except (InfrastructureError, DataQualityError, IntegrityError) as error:  # what is held is sound all the same
        return None, str(error)
