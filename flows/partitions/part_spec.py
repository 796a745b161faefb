"""Audit spec of one partition: its rows alone, without their missing groups and columns.

The spec names no other partition, so that its run is the same whichever others are asked for. What is left out is told
in ``source.lacking``, as what a year lacks is.
"""

from typing import Final

from flows.partitions.partition_list import Counts, Listed, by_of, counts_of, digests_of, listed_value, year_spec
from flows.partitions.years import goes_by_years, placed, spec_as_held, spec_of_year, with_lender, without
from flows.runs.disclosure import with_earlier
from schemas.audit.methods import Methods
from schemas.audit.partition import ALL, By, Part
from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from tasks.lake.store import Lake
from tasks.metrics.limits import makers_of
from tasks.pipeline.registry import OUTCOMES_METHOD, WHOLE_YEAR, validated

_NOBODY: Final = Counts()


def spec_of_part(spec: AuditSpec, year: int, listed: Listed, lake: Lake) -> AuditSpec:
    """The spec of one partition of a year; of ``ALL`` without the methods that run on partitions alone.

    Args:
        spec: with ``by``.
        year: of the partition.
        listed: as ``listing`` gives it.
        lake: of the audit.

    Raises:
        TooFewError: the partition has no protected attribute with its reference group and another one.
        EvenhandError: as ``flows.partitions.years.spec_of_year`` says.
    """
    spec_by_column = spec.model_copy(update={"by": By(column=by_of(spec).column, full=by_of(spec).full)})
    if listed.value == ALL:
        year_spec_of_all = of_whole_year(spec_by_column)
        if goes_by_years(spec.source) and not spec.source.lacking:
            return spec_of_year(year_spec_of_all, year, lake)
        return with_earlier(year_spec_of_all.model_copy(update={"year": year}), lake)
    part_spec = _of_part(year_spec(spec_by_column, year, lake), listed, lake)
    return with_lender(with_earlier(part_spec if by_of(spec).full else shortened(part_spec), lake), lake)


def spec_to_audit(spec: AuditSpec, lake: Lake, value: str | None = None) -> AuditSpec:
    """The spec of one audit: of a partition, of ``ALL`` where the spec has ``by`` and none is named, else as it is.

    Raises:
        SpecError: a partition of a spec without ``by``, or one that the year does not have.
        EvenhandError: as ``spec_of_part`` says.
    """
    if spec.source.part is not None and value is None:
        return with_earlier(spec, lake)  # it was made here before
    if value is None and spec.by is None:
        return spec_as_held(spec, lake)
    by_of(spec)
    every = Listed(ALL, 0, 0, "")
    listed = every if value in (None, ALL) else listed_value(spec, spec.year, lake, str(value))
    return spec_of_part(spec, spec.year, listed, lake)


def spec_today(spec: AuditSpec, year: int, lake: Lake) -> AuditSpec:
    """The spec of a finished run, its source as it is today: the newest vintage, a partition's rows by their digest.

    Raises:
        SpecError: the partition has no row any more.
        EvenhandError: as ``flows.partitions.years.spec_of_year`` says.
    """
    part = spec.source.part
    if part is None:
        return spec_of_year(spec, year, lake) if spec.source.vintage is not None else spec
    full_spec = placed(spec.model_copy(update={"source": spec.source.model_copy(update={"part": None})}), year, lake)
    digest = digests_of(full_spec, lake).get(part.value)
    if digest is None:
        raise SpecError(f"no row of {year} has {part.value!r} in {part.column!r} any more")
    part_today = part.model_copy(update={"rows_sha256": digest})
    return with_earlier(
        full_spec.model_copy(update={"source": full_spec.source.model_copy(update={"part": part_today})}), lake
    )


def of_whole_year(spec: AuditSpec) -> AuditSpec:
    """The spec with the methods alone that run on every row of a year, and the limits on their measures."""
    methods = {name: settings if name in WHOLE_YEAR else None for name, settings in spec.methods.by_name.items()}
    if all(spec.methods.by_name[name] is None for name, settings in methods.items() if settings is None):
        return spec
    content = spec.model_dump(mode="json")
    content["methods"] = {
        name: None if settings is None else content["methods"][name] for name, settings in methods.items()
    }
    run_methods = {OUTCOMES_METHOD, *WHOLE_YEAR}
    kept_limits = [limit for limit in spec.thresholds if not makers_of(limit).isdisjoint(run_methods)]
    content["thresholds"] = [limit.model_dump(mode="json") for limit in kept_limits]
    return validated(AuditSpec, content)


def shortened(spec: AuditSpec) -> AuditSpec:
    """The spec without what a short report does not print; a method with a limit on its measures stays as it is."""
    limited = {method for limit in spec.thresholds for method in makers_of(limit)}
    by_name = {
        name: settings if settings is None or name in limited else settings.short()
        for name, settings in spec.methods.by_name.items()
    }
    return spec.model_copy(update={"methods": Methods(by_name)})


def _of_part(spec: AuditSpec, listed: Listed, lake: Lake) -> AuditSpec:
    counts = counts_of(spec, lake).get(listed.value, _NOBODY)
    column = by_of(spec).column
    gone = frozenset(name for name in spec.kept() if name == column or not counts.values.get(name))
    groups_by_attribute = {}
    for p in spec.protected:
        groups = counts.groups.get(p.name, {})
        usable = {group for group, people in groups.items() if people.usable}
        # The groups that some row belongs to; none where no usable rows could be compared.
        groups_by_attribute[p.name] = set(groups) if p.reference in usable and len(usable) > 1 else set()
    part = Part(column=column, value=listed.value, rows_sha256=listed.rows_sha256)
    part_spec = without(
        spec.model_copy(update={"source": spec.source.model_copy(update={"part": part})}), gone, groups_by_attribute
    )
    # The column of the partition is there, and the same in every row.
    lacking = tuple(name for name in part_spec.source.lacking if name != column)
    return part_spec.model_copy(update={"source": part_spec.source.model_copy(update={"lacking": lacking})})
