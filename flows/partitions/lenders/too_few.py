"""Why a partition is not audited: too few rows, one decision only, or no groups to compare.

It is an answer and no failure: a lender of 40 applications can be neither cleared nor accused.
"""

from flows.partitions.lenders.counts import Counts, People
from schemas.audit.partition import By
from schemas.audit.spec import AuditSpec, Protected


def too_few(counts: Counts, spec: AuditSpec, by: By) -> str:
    """The reason in words, with the counts that decide; empty of a partition that is audited."""
    usable, favourable = counts.people.usable, counts.people.favourable
    if usable < by.minimum:
        return f"{usable:,} usable rows, fewer than by.minimum ({by.minimum:,})"
    if favourable in (0, usable):
        return f"all {usable:,} usable decisions are {'favourable' if favourable else 'unfavourable'}"
    if any(compared(p, counts, spec.bootstrap.minimum_n) for p in spec.protected):
        return ""
    with_reference = [p for p in spec.protected if _people(counts, p, p.reference).usable]
    if not with_reference:
        named = ", ".join(f"{p.name}: {p.reference}" for p in spec.protected)
        return f"no usable row belongs to the reference group ({named})"
    most, name = max(_largest(p, counts) for p in with_reference)
    largest = f"the largest, {name}, has {most:,}" if most else "there is none"
    return f"no group beside the reference has bootstrap.minimum_n ({spec.bootstrap.minimum_n}) people; {largest}"


def compared(p: Protected, counts: Counts, minimum_n: int) -> bool:
    """Whether a partition has the reference group of an attribute, and one other group with so many people."""
    return _people(counts, p, p.reference).usable > 0 and _largest(p, counts)[0] >= minimum_n


def _largest(p: Protected, counts: Counts) -> tuple[int, str]:
    """Usable rows and name of the largest group that a verdict may be about."""
    others = [(people.usable, group) for group, people in counts.groups.get(p.name, {}).items() if p.judges(group)]
    return max(others, default=(0, ""))


def _people(counts: Counts, p: Protected, group: str) -> People:
    return counts.groups.get(p.name, {}).get(group, People())
