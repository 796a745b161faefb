"""What a league reads: the valid run of each partition with its published rows; how partitions without one stand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from flows.operations.league.names import names_of
from flows.partitions.attempts.reading import latest
from flows.partitions.attempts.record import YearState
from flows.partitions.lenders.listing import Listed, by_of, listing, without_value
from flows.runs.index import Run, runs_of, standing
from schemas.audit.partition import ALL
from schemas.audit.spec import AuditSpec
from schemas.errors import EvenhandError, IntegrityError
from schemas.tables.measures import MEASURES
from schemas.tables.publication import PUBLICATION
from schemas.tables.verdicts import VERDICTS
from schemas.terms import EVERYBODY
from tasks.lake.store import Lake
from tasks.metrics.league.asked import SIZE
from tasks.metrics.league.census import Census
from tasks.metrics.league.rows import Entrant

SAMPLED: Final = "sampled"
"""Parameter of a measure that rests on a sample of the applicants: how many were asked, of how many."""


@dataclass(frozen=True)
class Entry:
    """The valid run of a partition, with those of its published rows that a league may show."""

    run: Run
    measures: Sequence[Mapping[str, Any]]
    verdicts: Sequence[Mapping[str, Any]]
    publication: Sequence[Mapping[str, Any]]
    sampled: tuple[str, ...] = ()
    """Methods that asked a sample of the applicants."""


def entries_of(lake: Lake, spec: AuditSpec, year: int) -> dict[str, Entry]:
    """Value -> its valid run, in the order of values, those of another column left out."""
    by, of = by_of(spec), dict[str, list[Run]]()
    for run in runs_of(lake, spec.name, year):
        if run.partition is not None and run.partition["column"] == by.column:
            of.setdefault(run.value, []).append(run)
    wanted = {value: runs for value, runs in of.items() if not by.values or value in (*by.values, ALL)}
    chosen = {value: standing(runs) for value, runs in sorted(wanted.items())}
    return {value: _entry(lake, run) for value, run in chosen.items() if run is not None}


def _entry(lake: Lake, run: Run) -> Entry:
    found = {artifact.table: artifact for each in run.partitions for artifact in each.tables}
    if PUBLICATION.name not in found:
        raise IntegrityError(f"{run.run} was made by a version that does not say what it publishes; audit it again")
    measures, verdicts = (run.published(name) for name in (MEASURES.name, VERDICTS.name))
    numbers = lake.read(found[PUBLICATION.name])
    whole = pc.and_(pc.equal(numbers["part"], 0), pc.equal(numbers["reason"], ""))
    shown, sampled = ([], ()) if measures is None else _shown(lake.read(measures))
    told = [] if verdicts is None else lake.read(verdicts).to_pylist()
    return Entry(run, shown, told, numbers.filter(whole).to_pylist(), sampled)


def _shown(measures: pa.Table) -> tuple[list[Mapping[str, Any]], tuple[str, ...]]:
    """Rows of whole groups without parameters, or taken at one size; and the methods that asked a sample.

    The rest is left in Arrow: a year of lenders has millions of rows.
    """
    parameters = measures["parameters"]
    at_one_size = pc.match_substring(parameters, f'"{SIZE}"')
    kept = pc.and_(pc.equal(measures["subgroup"], 0), pc.or_(pc.equal(parameters, "{}"), at_one_size))
    by_sample = measures.filter(pc.match_substring(parameters, f'"{SAMPLED}"'))
    return measures.filter(kept).to_pylist(), tuple(sorted(set(by_sample["method"].to_pylist())))


def census_of(spec: AuditSpec, year: int, lake: Lake, entries: Mapping[str, Entry]) -> Census:
    """How the partitions of a year stand; the runs alone where the year's data are not at hand."""
    done = len(set(entries) - {ALL})
    try:
        found = [each for each in listing(spec, year, lake) if each.value != ALL]
        outside = without_value(spec, year, lake).rows
    except EvenhandError:
        return Census(done)
    left = [each for each in found if not each.too_few and each.value not in entries]
    failed = [each for each in left if _has_failed(lake, spec.name, year, each)]
    few = sum(bool(each.too_few) and each.value not in entries for each in found)
    stale = sum(_is_stale(entries[each.value].run, each) for each in found if each.value in entries)
    restricted = bool(by_of(spec).values) or by_of(spec).largest is not None
    return Census(done, few, len(failed), len(left) - len(failed), outside, stale, restricted)


def _has_failed(lake: Lake, audit: str, year: int, listed: Listed) -> bool:
    last = latest(lake, audit, year, listed.value)
    return last is not None and last.state in (YearState.FAILED, YearState.INTERRUPTED)


def entrants_of(lenders: Mapping[str, Entry], column: str) -> dict[str, Entrant]:
    """Every partition with its name, its rows as published, and who was asked by sample."""
    names = names_of([each.run for each in lenders.values()], column)
    return {
        value: Entrant(
            value,
            names.get(value, ""),
            each.run.run,
            next((row["number"] for row in each.publication if _is_used(row)), None),
            ", ".join(each.sampled),
        )
        for value, each in lenders.items()
    }


def _is_used(row: Mapping[str, Any]) -> bool:
    """Whether a row counts everybody who was used."""
    whole = (row["part"], row["event"], row["reason"], row["groups"]) == (0, "", "", "")
    return whole and row["group"] == EVERYBODY and row["base"] == "used" and row["decision_maker"] == "lender"


def _is_stale(run: Run, listed: Listed) -> bool:
    """Whether a partition has other rows now than its run has audited."""
    part = run.spec["source"].get("part")
    return part is not None and part["rows_sha256"] != listed.rows_sha256
