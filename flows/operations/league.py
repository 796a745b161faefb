"""League of a year: the valid runs of its partitions compared, and the files of that comparison."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc

from flows.partitions.attempts import YearState, latest
from flows.partitions.partition_list import by_of, listing, without_value
from flows.runs.index import Run, report_of, runs_of, standing
from schemas.audit.partition import ALL
from schemas.audit.spec import AuditSpec
from schemas.errors import EvenhandError, InfrastructureError, IntegrityError, SpecError
from schemas.tables.findings import MEASURES
from schemas.tables.verdicts import PUBLICATION, VERDICTS
from schemas.terms import EVERYBODY
from tasks.ingest.vintages.panels import Lender, lenders_of
from tasks.lake.store import Lake
from tasks.metrics.algorithm.measures import covers
from tasks.metrics.league.rows import (
    ACROSS,
    SIZE,
    Asked,
    Census,
    Entrant,
    Figure,
    Hidden,
    Standings,
    Subject,
    hidden,
    of_measure,
    of_verdict,
    standings,
    subjects_of,
)
from tasks.metrics.publish.algorithm.profiles import POLICIES
from tasks.pipeline.registry import covering
from tasks.reporting.league import Content, first_statement, league_page, noun_of

# --------------------------------------------------------------------------------------------------------------------
# Names of lenders, from the panel of the year in the lake, or the table of lenders beside a vintage.


FILE: Final = "lenders.parquet"
"""Beside the rows of a vintage: a row for each lender, with its name if the publisher gives one."""
COLUMN: Final = "lender_id"
"""Column of partitions whose values that table names."""


def names_of(runs: Iterable[Run], column: str, panel: Mapping[str, Lender]) -> Mapping[str, str]:
    """Value -> name, from the panel of the year and from vintages that have names; nothing for another column."""
    if column != COLUMN:
        return {}
    names = {key: lender.name for key, lender in panel.items()}
    for vintage_file in sorted({run.spec["source"].get("vintage_file") for run in runs} - {None}):
        file = Path(vintage_file).parent / FILE
        if file.is_file():
            import pyarrow.parquet as pq  # not loaded without a vintage

            if {COLUMN, "name"} <= set(pq.read_schema(file).names):
                rows = pq.read_table(file, columns=[COLUMN, "name"]).to_pylist()
                names.update({row[COLUMN]: row["name"] for row in rows if row[COLUMN] and row["name"]})
    return names


# --------------------------------------------------------------------------------------------------------------------
# What a league reads: the valid run of each partition with its published rows; how partitions without one stand.


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
    runs_by_value = {value: runs for value, runs in of.items() if not by.values or value in (*by.values, ALL)}
    chosen = {value: standing(runs) for value, runs in sorted(runs_by_value.items())}
    return {value: _entry(lake, run) for value, run in chosen.items() if run is not None}


def _entry(lake: Lake, run: Run) -> Entry:
    artifacts = {artifact.table: artifact for partition in run.partitions for artifact in partition.tables}
    if PUBLICATION.name not in artifacts:
        raise IntegrityError(f"{run.run} was made by a version that does not say what it publishes; audit it again")
    measures, verdicts = (run.published(name) for name in (MEASURES.name, VERDICTS.name))
    numbers = lake.read(artifacts[PUBLICATION.name])
    of_whole_groups = pc.and_(pc.equal(numbers["part"], 0), pc.equal(numbers["reason"], ""))
    verdict_rows = [] if verdicts is None else lake.read(verdicts).to_pylist()
    publication_rows = numbers.filter(of_whole_groups).to_pylist()
    if measures is None:
        return Entry(run, [], verdict_rows, publication_rows)
    # Rows of whole groups without parameters, or at one sample size, and the methods that used a sample. The other
    # rows are left in Arrow: a year of lenders has millions of rows.
    table = lake.read(measures)
    parameters = table["parameters"]
    at_one_size = pc.match_substring(parameters, f'"{SIZE}"')
    shown_mask = pc.and_(pc.equal(table["subgroup"], 0), pc.or_(pc.equal(parameters, "{}"), at_one_size))
    by_sample = table.filter(pc.match_substring(parameters, f'"{SAMPLED}"'))
    sampled = tuple(sorted(set(by_sample["method"].to_pylist())))
    return Entry(run, table.filter(shown_mask).to_pylist(), verdict_rows, publication_rows, sampled)


def census_of(spec: AuditSpec, year: int, lake: Lake, entries: Mapping[str, Entry]) -> Census:
    """Counts of the partitions of a year by state; the number of runs alone if the year's data are not available."""
    done = len(set(entries) - {ALL})
    try:
        partitions = [partition for partition in listing(spec, year, lake) if partition.value != ALL]
        outside = without_value(spec, year, lake).rows
    except EvenhandError:
        return Census(done)
    without_run = [partition for partition in partitions if not partition.too_few and partition.value not in entries]
    attempts = [latest(lake, spec.name, year, partition.value) for partition in without_run]
    failed = sum(last is not None and last.state in (YearState.FAILED, YearState.INTERRUPTED) for last in attempts)
    few = sum(bool(partition.too_few) and partition.value not in entries for partition in partitions)
    # A partition is stale if it has other rows now than its run has audited.
    audited = [partition for partition in partitions if partition.value in entries]
    parts = [(partition, entries[partition.value].run.spec["source"].get("part")) for partition in audited]
    stale = sum(part is not None and part["rows_sha256"] != partition.rows_sha256 for partition, part in parts)
    restricted = bool(by_of(spec).values) or by_of(spec).largest is not None
    return Census(done, few, failed, len(without_run) - failed, outside, stale, restricted)


def entrants_of(lenders: Mapping[str, Entry], column: str, panel: Mapping[str, Lender]) -> dict[str, Entrant]:
    """Every partition with its name, its published number of rows, and the methods that used a sample."""
    names = names_of([entry.run for entry in lenders.values()], column, panel)
    blank = {"part": 0, "event": "", "reason": "", "groups": ""}
    everybody_used = {**blank, "group": EVERYBODY, "base": "used", "decision_maker": "lender"}
    return {
        value: Entrant(
            value,
            names.get(value, ""),
            entry.run.run,
            next((row["number"] for row in entry.publication if everybody_used.items() <= row.items()), None),
            ", ".join(entry.sampled),
        )
        for value, entry in lenders.items()
    }


# --------------------------------------------------------------------------------------------------------------------
# The league of a year: the valid runs of all its partitions beside each other, from their published tables.
#
# Which runs stand for a year, how many partitions have none, and what disclosure across them withholds. What is
# computed is in ``tasks.metrics.league``, the page in ``tasks.reporting.league``.


FEWEST: Final = 2
"""Partitions that make a league."""


@dataclass(frozen=True)
class League:
    """All partitions of a year by every requested measure and group."""

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


def make_league(spec: AuditSpec, year: int, lake: Lake, selection: Asked) -> League:
    """Read the valid runs of all partitions of a year, and compare them.

    Raises:
        SpecError: no ``by``, fewer than two partitions with a run, or a measure or group that they do not have.
        IntegrityError: a run was made by a version that does not say what it publishes.
    """
    by = by_of(spec)
    entries = entries_of(lake, spec, year)
    census = census_of(spec, year, lake, entries)
    lenders = {value: entry for value, entry in entries.items() if value != ALL}
    if len(lenders) < FEWEST:
        unfinished = (census.failed or 0) + (census.not_begun or 0)
        if census.is_known and not unfinished and census.done:
            why = f"column {by.column!r} has one value with people enough: a league of one compares nothing"
            raise SpecError(f"{why}; `evenhand show` prints its run, and a smaller by.minimum admits more")
        of = f" of {census.done + unfinished}" if census.is_known else ""
        state = f"{census.done}{of} of {year} {'has' if census.done == 1 else 'have'} a run"
        step = f"`evenhand backfill SPEC --years {year}` goes on"
        raise SpecError(f"a league holds at least {FEWEST} partitions, and {state}; {step}")
    subjects = subjects_of(
        [entry.verdicts for entry in lenders.values()], [entry.measures for entry in lenders.values()]
    )
    chosen = selection.chosen(subjects)
    # The disclosure profile of the runs: `internal` if one withholds nothing, else that which withholds most.
    named = {str(entry.run.disclosure.get("profile") or "internal") for entry in lenders.values()}
    profile = "internal" if "internal" in named else max(named, key=lambda name: POLICIES[name].smallest)
    census = replace(census, withholds=POLICIES[profile].protects or profile == "internal")
    across = _across(entries, census, profile, {subject.protected_attribute for subject in chosen})
    entrants = entrants_of(lenders, by.column, lenders_of(lake, year))
    tables = {subject: _standings(subject, entries, entrants, across) for subject in chosen}
    title = f"{spec.title or spec.name}, {year}"
    runs = {value: entry.run for value, entry in entries.items()}
    return League(spec.name, title, year, by.column, profile, census, entrants, runs, tables, across)


def _across(entries: Mapping[str, Entry], census: Census, profile: str, attributes: set[str]) -> dict[str, Hidden]:
    """What is withheld of each attribute, beyond what the runs withhold."""
    if ALL not in entries:
        return {name: Hidden() for name in sorted(attributes)}
    runs = {value: entry.publication for value, entry in entries.items() if value != ALL}
    every, has_hidden_partitions = entries[ALL], not census.is_complete
    linked = linked_attributes(every.run.spec["protected"]) if POLICIES[profile].protects else set()
    return {
        name: Hidden(everybody=True)
        if name in linked
        else hidden(name, runs, every.publication, has_rest=has_hidden_partitions, policy=POLICIES[profile])
        for name in sorted(attributes)
    }


def linked_attributes(protected: Iterable[Mapping[str, Any]]) -> set[str]:
    """Attributes that share a column with an earlier one: counts by one reveal counts by the other.

    Everybody's counts are shown by the first of them alone, since each attribute is looked at by itself.
    """
    used_columns, out = set[str](), set[str]()
    for attribute in protected:
        columns = set(attribute["columns"])
        if columns & used_columns:
            out.add(attribute["name"])
        used_columns |= columns
    return out


def _standings(
    subject: Subject, entries: Mapping[str, Entry], entrants: Mapping[str, Entrant], across: Mapping[str, Hidden]
) -> Standings:
    gone = across[subject.protected_attribute]
    figures_by_value: dict[str, Figure | None] = {}
    for value, entry in entries.items():
        verdict = next((row for row in entry.verdicts if subject.is_of(row) and row["role"] == subject.role), None)
        if verdict is not None:
            figures_by_value[value] = of_verdict(verdict)
            continue
        row = next((row for row in entry.measures if subject.is_of(row) and row["subgroup"] == 0), None)
        figures_by_value[value] = None if row is None else of_measure(row, covers=covers(row["measure"], covering()))
    figures = [
        (entrants[value], ACROSS if value in gone.partitions else figure)
        for value, figure in figures_by_value.items()
        if figure is not None and value != ALL
    ]
    every = figures_by_value.get(ALL)
    return standings(figures, ACROSS if gone.everybody and every is not None else every)


# --------------------------------------------------------------------------------------------------------------------
# Files of a league: the page, and all of its rows as JSON beside it.


FOLDER: Final = "reports/league-{audit}-{year}"
_FIRST_PAGE = "report.html"


def write_league(league: League, lake: Lake, file: Path | None = None) -> str:
    """Write page and rows to the reports of the lake, or the page to a file; the path of the page.

    Raises:
        InfrastructureError: the file cannot be written.
    """
    home = FOLDER.format(audit=league.audit, year=league.year)
    if file is None:
        lake.write_file(f"{home}/league.json", json.dumps(document(league), allow_nan=False).encode())
        return lake.write_file(f"{home}/league.html", league_page(content(league, _links(league, lake, near=True))))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(league_page(content(league, _links(league, lake, near=False))))
    except OSError as error:
        raise InfrastructureError(f"{file} cannot be written: {error.strerror}; name another file by --html") from error
    return str(file)


def content(league: League, links: Mapping[str, str]) -> Content:
    """What the page shows."""
    entrants = {value: (entrant, league.runs[value].state) for value, entrant in league.entrants.items()}
    return Content(
        title=league.title,
        column=league.column,
        restricted=league.profile == "internal",
        census=league.census,
        entrants=entrants,
        standings=league.tables,
        hidden=league.hidden,
        links=links,
    )


def _links(league: League, lake: Lake, *, near: bool) -> dict[str, str]:
    """Run -> address of its first page; none of a run with a report that shows what is withheld here."""
    gone = {value for hidden in league.hidden.values() for value in hidden.partitions}
    linked_runs = [run for value, run in league.runs.items() if value not in gone and value != ALL]
    if near:
        return {run.run: f"../{run.run}/{_FIRST_PAGE}" for run in linked_runs}
    addresses = {}
    for run in linked_runs:
        storage, folder = report_of(lake, run.run)
        place = storage.where(f"{folder}/{_FIRST_PAGE}")
        addresses[run.run] = place if "://" in place else Path(place).resolve().as_uri()
    return addresses


def document(league: League) -> dict[str, Any]:
    """Everything as JSON: the first statement of the page, counts, and every row of every table."""
    tables = [
        {
            **subject._asdict(),
            "tested": table.tested,
            "expected_by_chance": table.by_chance,
            "expected_false": table.false,
            "between": {**table.spread._asdict(), "scale": "log" if table.logarithmic else "linear"},
            "all": None if table.everybody is None else asdict(table.everybody),
            "rows": [
                # Who, the own figure of the partition, and what the league adds to it.
                {"partition": line.entrant.value}
                | asdict(line.entrant)
                | asdict(line.figure)
                | {key: value for key, value in asdict(line).items() if key not in ("entrant", "figure")}
                for line in table.lines
            ],
        }
        for subject, table in league.tables.items()
    ]
    heading = {"about": first_statement(noun_of(league.column)), "audit": league.audit, "year": league.year}
    census = {name: n for name, n in asdict(league.census).items() if name != "withholds"}
    census["without_value"] = league.census.outside
    counts = {"column": league.column, "profile": league.profile, "partitions": census}
    league_content: dict[str, Any] = _finite({**heading, **counts, "tables": tables})
    return league_content


def _finite(value: Any) -> Any:
    """The same with null for what is no number."""
    if isinstance(value, dict):
        return {key: _finite(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_finite(member) for member in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value
