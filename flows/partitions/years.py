"""Audit spec of one year: the source of that year, without what the year does not have.

A spec that is audited over years names its file with ``{year}`` in the path, a vintage of the lake, or a column of
dates in one table of several years. Years differ: before 2018 HMDA has no debt-to-income ratio, and in a small file a
group may have no members. What a year lacks is removed from columns, protected attributes, causal graph and methods,
and recorded in ``source.lacking``, which the report prints. Published runs of the lake over the same rows are recorded
in ``disclosure.beside``.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ValidationError

from flows.runs.disclosure import with_earlier
from schemas.audit import column
from schemas.audit.causal import CausalGraph
from schemas.audit.source import LONGEST_NAME, Keep, Source
from schemas.audit.spec import AuditSpec, Protected
from schemas.bounds import canonical
from schemas.errors import InfrastructureError, SpecError, TooFewError
from schemas.vintages import FIRST_YEAR, folder_of, latest_year
from tasks.ingest import registry
from tasks.ingest.applications import database
from tasks.ingest.intake.recipe import respelled
from tasks.ingest.statement import Question, statement
from tasks.ingest.vintages import panels
from tasks.ingest.vintages.store import outline_of
from tasks.lake.store import Lake
from tasks.pipeline.registry import validated

YEAR = "{year}"
_ALIKE = 0.6
"""Likeness of two names, from which on one may be the other."""
log = logging.getLogger("evenhand")


def parse_years(text: str) -> tuple[int, ...]:
    """Years in order, each once, from words such as ``2010-2024`` or ``2012,2015-2017``.

    Raises:
        SpecError: a part is no year and no range of years, or a range ends before it begins.
    """
    years: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{4})\s*(?:-\s*(\d{4})\s*)?", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not FIRST_YEAR <= first <= last <= latest_year():
            raise SpecError(f"--years {text}: {part.strip()!r} is no year and no range such as 2010-2024")
        years.update(range(first, last + 1))
    return tuple(sorted(years))


def given_years(years: Sequence[int] | str) -> tuple[int, ...]:
    """The years that a deployed flow is given: in order, each once.

    Raises:
        SpecError: as ``parse_years`` says, or there are none.
    """
    text = years if isinstance(years, str) else ",".join(map(str, years))
    if not text:
        raise SpecError("`years` is empty: give the years to audit, such as [2018, 2019], or '2018-2020'")
    return parse_years(text)


def spec_of_year(spec: AuditSpec, year: int, lake: Lake) -> AuditSpec:
    """The spec with the source of a year, and without the columns and groups that are missing in it.

    Raises:
        SpecError: the source names no year; a column that no year has; or what is left is no audit.
        TooFewError: the year has no protected attribute with its reference group.
        InfrastructureError: the year's file is not there, or the lake holds no vintage of it.
    """
    of_year = spec.model_copy(update={"year": year, "source": _source_of(spec.source, year, lake)})
    lacking = lacking_columns(spec, of_year.source)
    renamed = renamed_columns(of_year, lacking, lake)
    sentences = [_renamed_words(of_year, name, likely) for name, likely in renamed.items()]
    for sentence in sentences:
        log.warning("%s", sentence)
    try:
        return with_earlier(without(of_year, lacking), lake)
    except TooFewError as error:
        words = "; ".join(sentences)
        raise (TooFewError(f"{error}; {words}") if words else error) from error


def placed(spec: AuditSpec, year: int, lake: Lake) -> AuditSpec:
    """The spec with the source of a year: one file serves the spec's own year alone.

    Raises:
        SpecError: the source names no year.
        InfrastructureError: the lake holds no vintage of the year.
    """
    if goes_by_years(spec.source) or year != spec.year:
        return spec.model_copy(update={"year": year, "source": _source_of(spec.source, year, lake)})
    return spec


def goes_by_years(source: Source) -> bool:
    """Whether a source has a file for each year, or a date in each row of one table."""
    return source.vintage is not None or any(YEAR in path for path in source.paths) or _is_dated(source)


def _is_dated(source: Source) -> bool:
    """Whether the recipe of a source reads the column of its years as dates."""
    recipe = source.intake.columns.get(source.year_column or "") if source.intake else None
    return recipe is not None and recipe.read == "date"


def spec_as_held(spec: AuditSpec, lake: Lake) -> AuditSpec:
    """The spec with the source of its year where the source is divided by years, and with earlier published runs.

    Raises:
        EvenhandError: as ``spec_of_year`` says.
    """
    is_fixed = spec.source.lacking or not goes_by_years(spec.source)
    return with_lender(with_earlier(spec, lake) if is_fixed else spec_of_year(spec, spec.year, lake), lake)


def with_lender(spec: AuditSpec, lake: Lake) -> AuditSpec:
    """The spec with the name of its one lender, by the panel of its very year; as it is where none is known."""
    source = spec.source
    if source.kind != "hmda" or source.lender_name or not (named := panels.lenders_of(lake, spec.year)):
        return spec
    lenders = {source.part.value} if source.part is not None and source.part.column in column.LENDER else set()
    if source.vintage_file is not None:
        lenders = lenders or {folder_of(source.vintage_file)[3]}
    elif not lenders and len(source.paths) == 1:
        lenders = set(outline_of(Path(source.paths[0])).lenders)
    name = named[lender].name if len(lenders) == 1 and (lender := next(iter(lenders))) in named else ""
    name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."
    return spec.model_copy(update={"source": source.model_copy(update={"lender_name": name})}) if name else spec


def _source_of(source: Source, year: int, lake: Lake) -> Source:
    year_field = {"year": year} if source.kind == "hmda" else {}
    if source.vintage is not None:
        from tasks.ingest.vintages.store import file_of, newest

        filters = source.vintage.model_dump(exclude_none=True)
        vintage = newest(lake, year, **filters)
        if vintage is None:
            suffix = "".join(f", {name} {value}" for name, value in filters.items())
            raise InfrastructureError(
                f"the lake holds no vintage of {year}{suffix}; `evenhand data fetch --year {year}` or "
                "`evenhand data add`"
            )
        return source.model_copy(update={"vintage_file": str(file_of(lake, vintage)), **year_field})
    if not any(YEAR in path for path in source.paths):
        if _is_dated(source):
            return source.model_copy(update={"keep": {**source.keep, **_days_of(source, year)}})
        raise SpecError(
            f"source.path has no {YEAR} in it, so that every year would read the same file; write it in the place "
            "of the year in the name, or give `vintage: {}` for what `evenhand data add` brought into the lake",
            ("source", "path"),
        )
    paths = tuple(path.replace(YEAR, str(year)) for path in source.paths)
    return source.model_copy(update={"path": paths[0] if len(paths) == 1 else paths, **year_field})


def _days_of(source: Source, year: int) -> dict[str, Keep]:
    """The rule that keeps the rows of a year; one of the spec that keeps days of this year alone stays."""
    first, last, column = date(year, 1, 1), date(year, 12, 31), source.year_column or ""
    rule = source.keep.get(column, Keep(present=True))
    low, high = (end if isinstance(end, date) else None for end in (rule.minimum, rule.maximum))
    if low is not None and high is not None and first <= low <= high <= last:
        return {column: rule}
    return {column: Keep(minimum=first, maximum=last)}


def lacking_columns(spec: AuditSpec, source: Source) -> frozenset[str]:
    """Columns of the audit that other years have, and that are missing or empty in this one."""
    named = {*spec.kept(), *(c for p in spec.protected for c in p.columns), *source.keep}
    named |= {name for derived in source.derive.values() for name in derived.columns}
    header = [str(name) for name in registry.header(source)]
    absent = {name for name in named if name not in header and name not in source.derive}
    elsewhere = _of_other_years(spec.source, absent) if absent else frozenset()
    gone = (absent & elsewhere) | (named & _empty(source))
    return frozenset(gone | {name for name, derived in source.derive.items() if not gone.isdisjoint(derived.columns)})


def renamed_columns(spec: AuditSpec, lacking: Set[str], lake: Lake) -> dict[str, str]:
    """Protected columns that are not in a year -> its column that is likely the same, under another name."""
    protected = [name for p in spec.protected for name in p.columns if name in lacking]
    if not protected:
        return {}
    spec_columns = {*spec.kept(), *(c for p in spec.protected for c in p.columns), spec.decision.column}
    free = [name for name in _own_columns(spec, lake) if name not in spec_columns]
    likely: dict[str, str] = {}
    for name in protected:
        holding = [other for other in free if _words(name) <= _words(other) or _words(other) <= _words(name)]
        close = holding or get_close_matches(name, free, n=1, cutoff=_ALIKE)
        kind = column.kind_of(name) if column.is_personal(name) else ""
        alike = {other: len(_words(name) & _words(other)) for other in free if kind and column.kind_of(other) == kind}
        close = close or sorted(alike, key=lambda other: -alike[other])
        if close:
            likely[name] = close[0]
    return likely


def _own_columns(spec: AuditSpec, lake: Lake) -> list[str]:
    """Columns of a year's file; of HMDA those that no layout knows, which a vintage has in its schema report alone."""
    source = spec.source
    if source.kind != "hmda":
        return [str(name) for name in registry.reader_of(source).header(source)]
    from tasks.ingest.hmda.canonical import CANONICAL  # loads DuckDB, and other sources need none
    from tasks.ingest.vintages.store import newest, report_of

    if source.vintage is None:
        return [name for name in registry.header(source) if name not in CANONICAL]
    vintage = newest(lake, spec.year, **source.vintage.model_dump(exclude_none=True))
    report = report_of(lake, vintage) if vintage else None
    return [f.column for f in report.findings if f.kind == "unknown_column" and f.column] if report else []


def _words(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z]+|[0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()))


def _renamed_words(spec: AuditSpec, name: str, likely: str) -> str:
    by = f"read it with source.rename: {{{likely}: {name}}}"
    if spec.source.vintage is not None:
        by = f"add the file again: evenhand data add FILE --replace --rename {likely}={name}"
    return f"{spec.year} has no column {name!r}, and has {likely!r}: if it is the same, {by}"


def _of_other_years(source: Source, absent: Set[str]) -> frozenset[str]:
    """Columns that some year has, or HMDA may have: one that no year has is misspelt, and not missing in one year."""
    if source.kind == "hmda":
        from tasks.ingest.hmda import source as hmda  # loads DuckDB, and other sources need none

        return frozenset(name for name in absent if hmda.lacking(name) is not None)
    columns: set[str] = set()
    for path in source.paths:
        pattern = Path(path.replace(YEAR, "[0-9][0-9][0-9][0-9]"))
        for file in sorted(Path(pattern.anchor or ".").glob(str(pattern.relative_to(pattern.anchor)))):
            year_source = source.model_copy(update={"path": str(file)})
            columns.update(registry.header(year_source))
    return frozenset(columns)


def _empty(source: Source) -> frozenset[str]:
    """Columns of Parquet files in which no row has a value, by the statistics that the files keep."""
    if source.kind != "parquet":
        return frozenset()
    empty: list[set[str]] = []
    for path in source.paths:
        meta = pq.ParquetFile(path).metadata
        nulls: dict[str, int] = {}
        for group in range(meta.num_row_groups):
            for at in range(meta.num_columns):
                column = meta.row_group(group).column(at)
                has_null_count = column.statistics is not None and column.statistics.has_null_count
                count = column.statistics.null_count if has_null_count else 0
                nulls[column.path_in_schema] = nulls.get(column.path_in_schema, 0) + count
        empty.append({name for name, count in nulls.items() if count == meta.num_rows > 0})
    return frozenset(set.intersection(*empty)) if empty else frozenset()


def without(spec: AuditSpec, columns: frozenset[str], groups_found: Mapping[str, Set[str]] | None = None) -> AuditSpec:
    """The spec without some columns, and without the groups that have no row.

    Args:
        spec: its source that of one year.
        columns: that are left out.
        groups_found: by protected attribute, where they were counted; else the source is read for them.

    Raises:
        SpecError: what is left is no audit.
        TooFewError: no protected attribute is left with its reference group.
    """
    remaining, groups = _protected(spec, columns, groups_found)
    gone = columns | {p.name for p in spec.protected} - {p.name for p in remaining}
    # Of a node of the graph that is gone, edges lead from its causes straight to its effects.
    edges = list(spec.causal_graph.edges)
    for node in sorted(gone):
        causes = [cause for cause, effect in edges if effect == node]
        effects = [effect for cause, effect in edges if cause == node]
        through = [(cause, effect) for cause in causes for effect in effects]
        edges = list(dict.fromkeys([*(edge for edge in edges if node not in edge), *through]))
    caused = {effect for _, effect in edges}
    mechanisms = {name: mechanism for name, mechanism in spec.causal_graph.mechanisms.items() if name in caused}
    content = spec.model_dump(mode="json")
    content["protected"] = [p.model_dump(mode="json") for p in remaining]
    content["columns"] = {name: column for name, column in content["columns"].items() if name not in columns}
    content["methods"] = {name: _unnamed(settings, gone) for name, settings in content["methods"].items()}
    content["causal_graph"] = CausalGraph(edges=tuple(edges), mechanisms=mechanisms).model_dump(mode="json")
    if spec.causal_graph.order:  # the tiers that are left make their edges
        content["causal_graph"]["edges"] = []
    content["source"]["keep"] = {name: keep for name, keep in content["source"]["keep"].items() if name not in columns}
    content["source"]["derive"] = {name: d for name, d in content["source"]["derive"].items() if name not in columns}
    if isinstance(spec.expectations, tuple):
        judged = [own.model_dump(mode="json") for own in spec.expectations if not own.named(columns)]
        content["expectations"] = judged or None
    content["source"]["lacking"] = sorted({*spec.source.lacking, *columns, *groups})
    try:
        return validated(AuditSpec, content)
    except (ValidationError, SpecError) as error:
        lacking = ", ".join(content["source"]["lacking"])
        raise SpecError(f"without the missing parts of {spec.year} ({lacking}) it is no audit: {error}") from error


def not_judged(requested: AuditSpec, audited: AuditSpec) -> Iterator[str]:
    """A line for each expectation of a spec that its year or partition does not have the columns for."""
    lacking = [name for name in audited.source.lacking if name in requested.kept()]
    for own in requested.expectations if isinstance(requested.expectations, tuple) else ():
        if names := own.named(lacking):
            yield f"expectations ({own.severity}): {own.words} was not judged: no row has a value of {', '.join(names)}"


def _protected(
    spec: AuditSpec, columns: frozenset[str], groups_found: Mapping[str, Set[str]] | None
) -> tuple[list[Protected], list[str]]:
    """The attributes with a column and a reference group, and the names of the groups that are left out."""
    complete_attributes = [p for p in spec.protected if columns.isdisjoint(p.columns)]
    if groups_found is not None:
        by_name = groups_found
    elif spec.source.intake or spec.source.second_file or any(derived.rows for derived in spec.source.derive.values()):
        by_name = _groups_read(spec, complete_attributes)
    else:
        by_name = _groups_found(spec.source, complete_attributes)
    remaining, left_out = [], []
    for p in complete_attributes:
        groups = by_name.get(p.name, frozenset())
        left_out += [f"{p.name}: {group}" for group in p.groups if group not in groups]
        if p.reference in groups:
            remaining.append(p.model_copy(update={"groups": {g: v for g, v in p.groups.items() if g in groups}}))
    if not remaining:
        lacking = ", ".join([*sorted(columns), *left_out])
        raise TooFewError(
            f"{spec.year} has no protected attribute left to compare by: these parts of the spec are missing: {lacking}"
        )
    return remaining, left_out


def _groups_read(spec: AuditSpec, protected: Sequence[Protected]) -> dict[str, Set[str]]:
    """The same by the recipe of the source and its second file."""
    question = Question(spec.source, None, spec.decision, None, tuple(protected), {})
    names = registry.columns_read(question, None)
    with database(None) as connection, registry.lay(question, names, connection) as source_view:
        rows = statement(respelled(question, source_view.columns), source_view, connection)
        queries = [f"SELECT DISTINCT {group} FROM {rows.rows}" for group in rows.groups]  # noqa: S608 names are ours
        group_sets = [{group for (group,) in connection.sql(query).fetchall()} for query in queries]
    return {p.name: groups for p, groups in zip(protected, group_sets, strict=True)}


def _groups_found(source: Source, protected: Sequence[Protected]) -> dict[str, Set[str]]:
    """By attribute the groups that some row belongs to; of crossed columns, which list no groups, the reference."""
    names = [p.columns[0] for p in protected if len(p.columns) == 1]
    made_from = {name: source.derive[name].column if name in source.derive else name for name in names}
    occurring: dict[str, Set[str]] = {}  # the values that occur, as groups list them
    if names:
        table = registry.reader_of(source).read(source, list(dict.fromkeys(made_from.values()))).table
        for name, column in made_from.items():
            values = {canonical(value) for value in pc.unique(table[column]).to_pylist()}
            if name in source.derive:
                values = {new for new, codes in source.derive[name].values.items() if not values.isdisjoint(codes)}
            occurring[name] = values
    groups_found: dict[str, Set[str]] = {}
    for p in protected:
        if len(p.columns) > 1:
            groups_found[p.name] = {p.reference}
            continue
        present = occurring[p.columns[0]]
        if p.groups:
            groups_found[p.name] = {group for group, codes in p.groups.items() if not present.isdisjoint(codes)}
        else:  # the values are the groups
            groups_found[p.name] = {p.missing if v in (*source.missing, "") else v for v in present}
    return groups_found


def _unnamed(settings: Any, gone: frozenset[str]) -> Any:
    """A method's settings without the names that are gone; the method itself where a list that it needs runs empty."""
    if not isinstance(settings, dict):
        return settings
    pruned: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict) and all(isinstance(names, list) for names in value.values()):
            remaining = {key: [item for item in items if item not in gone] for key, items in value.items()}
            # An empty dict would mean that none was named, and not that all are gone.
            pruned[name] = {key: items for key, items in remaining.items() if items} or remaining
        elif isinstance(value, dict):
            pruned[name] = _unnamed(value, gone)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            # tiers of a causal order are lists in a list
            of_items = (
                [part for part in item if part not in gone] if isinstance(item, list) else item for item in value
            )
            pruned[name] = [item for item in of_items if item != [] and not (isinstance(item, str) and item in gone)]
        else:
            pruned[name] = None if isinstance(value, str) and value in gone else value
    emptied = any(settings[name] and not value for name, value in pruned.items() if isinstance(value, list))
    return None if emptied else pruned
