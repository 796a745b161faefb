"""A rate that is withheld, or rounded, does not follow from the other numbers of the same file; else it is printed."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pytest
from reader_of_counts import Asked, Cell, Reader
from test_exported import PROTECTED, Person, Tables, crowd_of, exported, published

from schemas.tables.verdicts import PUBLISHED_MEASURES
from tasks.metrics.publish.algorithm.populations import Base, Count
from tasks.metrics.publish.algorithm.profiles import POLICIES, learned
from tasks.metrics.publish.measures import Fates

LENDER = "lender"


def drawn(number: int) -> list[Person]:
    """Two to four races, of which the last are few, some in a further group each, some refused."""
    rng = np.random.default_rng(number)
    sizes = [int(rng.integers(*ends)) for ends in ((80, 300), (40, 150), (15, 45), (1, 12))]
    out = []
    for race, size in list(zip(("white", "Black", "Hispanic", "Asian"), sizes, strict=True))[: rng.integers(2, 5)]:
        share = rng.uniform(0.3, 0.9)
        out += [
            Person(race, "yes" if rng.random() < 0.06 else "no", bool(rng.random() < share), bool(rng.random() < 0.015))
            for _ in range(size)
        ]
    return out


def asked(count: Count) -> Asked | None:
    """A count of the tables as the reader asks for it; None of those who lack a feature, who are the refused."""
    whose = count.population
    if "lacks" in whose.reason:
        return None
    line = {Base.SOURCE: "source", Base.USED: "used"}.get(whose.base, "refused")
    return Asked(whose.attribute, whose.group, line, LENDER if count.event else "")


def reader_of(people: Sequence[Person], profile: str, tables: Tables, fates: Fates) -> Reader:
    groups = {(("race", p.race), ("both", f"{p.race} and {p.ethnicity}")) for p in people}
    cells = [Cell(*parts) for parts in product(sorted(groups), ("used", "refused"), ((), (LENDER,)))]
    policy, known = POLICIES[profile], dict[Asked, tuple[float, float]]()
    for count, number in exported(tables, fates):
        one = asked(count)
        if one is None or (count.event and one.line == "refused"):
            continue
        span = learned(policy, number, fates.outcome.bases[count], not count.event or policy.events_too)
        before = known.get(one, (0.0, np.inf))
        known[one] = max(before[0], span.low), min(before[1], span.high)
    return Reader(cells, known)


def withheld_for_nothing(people: Sequence[Person], profile: str) -> Iterator[str]:
    """Groups whose share approved is withheld or rounded, and whose counts a reader knows to the last person."""
    tables, fates = published(people, profile)
    reader = reader_of(people, profile, tables, fates)
    base = POLICIES[profile].round_to
    for row in tables[PUBLISHED_MEASURES.name].to_pylist():
        if row["measure"] != "approval_rate":
            continue
        n, denied = (Asked(row["protected_attribute"], row["group"], "source", whose) for whose in ("", LENDER))
        ends = [reader.ends(count) for count in (n, denied)]
        is_known = all(low == high for low, high in ends)
        if is_known and ends[0][0] and (row["value"] is None or (base == 1 and row["n"] != ends[0][0])):
            yield f"{row['group']}: {ends[0][0] - ends[1][0]} of {ends[0][0]}, printed {row['value']} of {row['n']}"


def test_a_rate_that_follows_from_all_others_is_printed() -> None:
    """Three refused applicants round all of a place; beside them nothing hides how many Hispanic ones there are."""
    people = crowd_of(white=(300, 90, 2), Black=(120, 50, 1), Hispanic=(28, 9, 0))
    tables, _ = published(people, "public")
    rows = {(row["group"], row["measure"]): row for row in tables[PUBLISHED_MEASURES.name].to_pylist()}
    rate = rows["Hispanic", "approval_rate"]
    assert (rate["value"], rate["events"], rate["n"]) == (0.68, 19, 28)
    assert list(withheld_for_nothing(people, "public")) == []


def test_a_rate_that_is_withheld_does_not_follow() -> None:
    people = crowd_of(white=(300, 90, 2), Black=(120, 50, 0), Hispanic=(28, 9, 0))
    tables, fates = published(people, "public")
    reader = reader_of(people, "public", tables, fates)
    low, high = reader.ends(Asked(PROTECTED[0].name, "Hispanic", "source"))
    assert high - low >= POLICIES["public"].wanted
    assert list(withheld_for_nothing(people, "public")) == []


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["public", "strict", "official"])
def test_no_rate_of_drawn_tables_is_withheld_for_nothing(profile: str) -> None:
    found = {number: list(withheld_for_nothing(drawn(number), profile)) for number in (9, 10, 18)}
    assert {number: groups for number, groups in found.items() if groups} == {}
