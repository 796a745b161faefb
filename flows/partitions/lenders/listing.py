"""The partitions of a year by a column of its rows, and the partition ``all``, which is every row.

Rows without a value of the column belong to no partition: they are in ``all``, and ``without_value`` counts them, so
that the rows of all partitions and those add up to the rows of the year.
"""

from dataclasses import dataclass

from flows.partitions.lenders.counts import Counts, counts_of
from flows.partitions.lenders.too_few import too_few
from flows.partitions.years import goes_by_years, lacking_columns, placed, without
from schemas.audit.partition import ALL, By, slug
from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError, nearest
from tasks.ingest import registry
from tasks.lake.store import Lake

__all__ = ["Listed", "by_of", "listed_value", "listing", "slug", "without_value", "year_spec"]


@dataclass(frozen=True)
class Listed:
    """A partition of a year."""

    value: str
    """Of the column; ``ALL`` is every row."""
    rows: int
    usable: int
    """Rows that are kept and have a decision."""
    rows_sha256: str
    """Of the partition's own rows; of ``ALL`` that of the source."""
    too_few: str = ""
    """Why it is not audited, in words."""


def listing(spec: AuditSpec, year: int, lake: Lake) -> tuple[Listed, ...]:
    """The partitions of a year: ``ALL`` first, then by usable rows, the largest first.

    Args:
        spec: with ``by``, whose ``values`` and ``largest`` restrict what is listed.
        year: that is listed.
        lake: of the audit.

    Raises:
        SpecError: there is no such column, it has too many values, or a value of ``by.values`` is not there.
        EvenhandError: as ``flows.partitions.years.placed`` and readers of sources say.
    """
    by, of_year = by_of(spec), year_spec(spec, year, lake)
    counts = counts_of(of_year, lake)
    found = [_listed(value, each, of_year, by) for value, each in counts.items() if value]
    found = [each for each in found if not by.values or each.value in by.values]
    _check_values(by, year, [value for value in counts if value])
    found.sort(key=lambda each: (-each.usable, -each.rows, each.value))
    rows, usable = (sum(getattr(each.people, name) for each in counts.values()) for name in ("rows", "usable"))
    every = Listed(ALL, rows, usable, registry.digest(of_year.source))
    return (every, *_largest(found, by.largest))


def without_value(spec: AuditSpec, year: int, lake: Lake) -> Listed:
    """The rows that have no value of the column, with the lines that could not be read; they are in ``ALL`` alone."""
    counts = counts_of(year_spec(spec, year, lake), lake).get("", Counts())
    said = f"no value of {by_of(spec).column}: these rows are in `{ALL}` alone"
    return Listed("", counts.people.rows, counts.people.usable, counts.rows_sha256, said)


def year_spec(spec: AuditSpec, year: int, lake: Lake) -> AuditSpec:
    """The spec with the source of a year, without the columns that the year lacks: what its partitions are counted by.

    Raises:
        SpecError: the source has no such column.
        EvenhandError: as ``flows.partitions.years.placed`` says.
    """
    of_year = placed(spec, year, lake)
    _check(of_year, by_of(spec))
    if not goes_by_years(spec.source) or spec.source.lacking:
        return of_year
    every = {p.name: {*p.groups, p.reference} for p in spec.protected}
    return without(of_year, lacking_columns(spec, of_year.source), every)


def listed_value(spec: AuditSpec, year: int, lake: Lake, value: str) -> Listed:
    """One partition of a year, whatever ``by.values`` and ``by.largest`` say.

    Raises:
        SpecError: the year has no such value; or as ``listing`` says.
    """
    whole = by_of(spec).model_copy(update={"values": (), "largest": None})
    found = listing(spec.model_copy(update={"by": whole}), year, lake)
    for each in found:
        if each.value == value:
            return each
    hint = nearest(value, [each.value for each in found])
    raise SpecError(f"--by-value {value}: no row of {year} has it in {whole.column!r}; {hint}")


def by_of(spec: AuditSpec) -> By:
    """The part ``by`` of a spec.

    Raises:
        SpecError: it has none.
    """
    if spec.by is None:
        raise SpecError("the spec has no `by`: add the column of partitions, such as by: {column: lender_id}")
    return spec.by


def _largest(found: list[Listed], largest: int | None) -> list[Listed]:
    """The largest partitions that can be audited; without a number all."""
    if largest is None:
        return found
    return [each for each in found if not each.too_few][:largest]


def _listed(value: str, counts: Counts, spec: AuditSpec, by: By) -> Listed:
    return Listed(value, counts.people.rows, counts.people.usable, counts.rows_sha256, too_few(counts, spec, by))


def _check(spec: AuditSpec, by: By) -> None:
    known = registry.reader(spec.source).header(spec.source)
    if by.column not in known:
        raise SpecError(f"the source has no column {by.column!r}; {nearest(by.column, known)}", ("by", "column"))


def _check_values(by: By, year: int, values: list[str]) -> None:
    for value in by.values:
        if value not in values:
            message = f"no row of {year} has {value!r} in {by.column!r}; {nearest(value, values)}"
            raise SpecError(message, ("by", "values"))
    if ALL in values:
        message = f"a row has {ALL!r} in {by.column!r}, which is the name of every row; rename it in the source"
        raise SpecError(message, ("by", "column"))
