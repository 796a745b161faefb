"""The league of a year: the valid runs of all its partitions beside each other, from their published tables.

Which runs stand for a year, how many partitions have none, and what disclosure across them withholds. What is computed
is in ``tasks.metrics.league``, the page in ``tasks.reporting.league``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from flows.operations.league.entries import Entry, census_of, entrants_of, entries_of
from flows.partitions.lenders.listing import by_of
from flows.runs.index import Run
from schemas.audit.partition import ALL
from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from tasks.lake.store import Lake
from tasks.metrics.algorithm.verdicts.thresholds import covers
from tasks.metrics.league.asked import Asked, Subject, subjects_of
from tasks.metrics.league.census import Census
from tasks.metrics.league.published import Hidden, hidden
from tasks.metrics.league.rows import ACROSS, Entrant, Figure, Standings, of_measure, of_verdict, standings
from tasks.metrics.publish.algorithm.profiles import POLICIES
from tasks.pipeline.registry import covering

FEWEST: Final = 2
"""Partitions that make a league."""


@dataclass(frozen=True)
class League:
    """All partitions of a year by every measure and group that was asked for."""

    audit: str
    title: str
    year: int
    column: str
    profile: str
    census: Census
    entrants: Mapping[str, Entrant]
    """By value of the column."""
    runs: Mapping[str, Run]
    """By value of the column; that of every row under ``ALL``, if there is one."""
    tables: Mapping[Subject, Standings]
    """In the order of the theories, ``direct`` first."""
    hidden: Mapping[str, Hidden]
    """Protected attribute -> what is withheld beyond what the runs withhold."""


def make_league(spec: AuditSpec, year: int, lake: Lake, asked: Asked) -> League:
    """Read the valid runs of all partitions of a year, and hold them beside each other.

    Raises:
        SpecError: no ``by``, fewer than two partitions with a run, or a measure or group that they do not have.
        IntegrityError: a run was made by a version that does not say what it publishes.
    """
    by = by_of(spec)
    entries = entries_of(lake, spec, year)
    census = census_of(spec, year, lake, entries)
    lenders = {value: each for value, each in entries.items() if value != ALL}
    if len(lenders) < FEWEST:
        raise SpecError(_too_few(spec, year, census))
    subjects = subjects_of([each.verdicts for each in lenders.values()], [each.measures for each in lenders.values()])
    chosen = asked.chosen(subjects)
    profile = _profile(lenders.values())
    across = _across(entries, census, profile, {subject.protected_attribute for subject in chosen})
    entrants = entrants_of(lenders, by.column)
    tables = {subject: _standings(subject, entries, entrants, across) for subject in chosen}
    title = f"{spec.title or spec.name}, {year}"
    runs = {value: each.run for value, each in entries.items()}
    return League(spec.name, title, year, by.column, profile, census, entrants, runs, tables, across)


def _too_few(spec: AuditSpec, year: int, census: Census) -> str:
    """Why there is no league, and the next step."""
    column = by_of(spec).column
    left = (census.failed or 0) + (census.not_begun or 0)
    of = f" of {census.done + left}" if census.is_known else ""
    if census.is_known and not left and census.done:
        why = f"column {column!r} has one value with people enough: a league of one compares nothing"
        return f"{why}; `evenhand show` prints its run, and a smaller by.minimum admits more"
    step = f"`evenhand backfill SPEC --years {year}` goes on"
    said = f"{census.done}{of} of {year} {'has' if census.done == 1 else 'have'} a run"
    return f"a league holds at least {FEWEST} partitions beside each other, and {said}; {step}"


def _profile(entries: Iterable[Entry]) -> str:
    """The disclosure profile of the runs: `internal` if one withholds nothing, else that which withholds most."""
    named = {str(each.run.disclosure.get("profile") or "internal") for each in entries}
    return "internal" if "internal" in named else max(named, key=lambda name: POLICIES[name].smallest)


def _across(entries: Mapping[str, Entry], census: Census, profile: str, attributes: set[str]) -> dict[str, Hidden]:
    """What is withheld of each attribute, beyond what the runs withhold."""
    if ALL not in entries:
        return {name: Hidden() for name in sorted(attributes)}
    runs = {value: each.publication for value, each in entries.items() if value != ALL}
    every, others = entries[ALL], not census.is_complete
    linked = linked_attributes(every.run.spec["protected"]) if POLICIES[profile].protects else set()
    return {
        name: Hidden(everybody=True)
        if name in linked
        else hidden(name, runs, every.publication, others=others, policy=POLICIES[profile])
        for name in sorted(attributes)
    }


def linked_attributes(protected: Iterable[Mapping[str, Any]]) -> set[str]:
    """Attributes that share a column with one before them: counts by one tell of counts by the other.

    Everybody's counts are shown by the first of them alone, since each attribute is looked at by itself.
    """
    taken, out = set[str](), set[str]()
    for each in protected:
        columns = set(each["columns"])
        if columns & taken:
            out.add(each["name"])
        taken |= columns
    return out


def _standings(
    subject: Subject, entries: Mapping[str, Entry], entrants: Mapping[str, Entrant], across: Mapping[str, Hidden]
) -> Standings:
    gone = across[subject.protected_attribute]
    found = {value: _figure(subject, each) for value, each in entries.items()}
    figures = [
        (entrants[value], ACROSS if value in gone.partitions else figure)
        for value, figure in found.items()
        if figure is not None and value != ALL
    ]
    every = found.get(ALL)
    return standings(figures, ACROSS if gone.everybody and every is not None else every)


def _figure(subject: Subject, entry: Entry) -> Figure | None:
    """The figure of a run; None where it says nothing of the measure and group."""
    found = next((row for row in entry.verdicts if subject.is_of(row) and row["role"] == subject.role), None)
    if found is not None:
        return of_verdict(found)
    row = next((row for row in entry.measures if subject.is_of(row) and row["subgroup"] == 0), None)
    return None if row is None else of_measure(row, covers=covers(row["measure"], covering()))
