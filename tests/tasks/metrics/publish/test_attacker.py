"""An attacker with integer programmes of its own, and nothing but the published tables and the rules.

Unknowns are the people of each race, ethnicity, decision and completeness. The auditor of the pass is not asked.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp
from test_exported import Person, Tables, person, published
from test_suppression import MODEL, SOURCE, boston, counts_of, of

from schemas.audit.limits import Verdicts
from schemas.tables.verdicts import (
    PUBLISHED_MEASURES,
    PUBLISHED_MERGED,
    PUBLISHED_MISSINGNESS,
    PUBLISHED_VERDICTS,
    PUBLISHED_WATERFALL,
)
from tasks.metrics.publish.algorithm.primary import Losses, Request
from tasks.metrics.publish.algorithm.profiles import POLICIES, Policy, learned, rounded
from tasks.metrics.publish.algorithm.suppression import suppress
from tasks.metrics.publish.measures import Fates

RACES, ETHNICITIES = ("white", "Black", "Asian"), ("no", "yes")
CELLS = [Person(*cell) for cell in itertools.product(RACES, ETHNICITIES, (False, True), (False, True))]


class Seen(NamedTuple):
    """A number as it is printed, and the cells that it counts."""

    attribute: str
    group: str
    kind: str
    event: str
    number: int | None
    """None: withheld."""

    def counts(self, cell: Person) -> bool:
        mine = {"race": cell.race, "both": f"{cell.race} and {cell.ethnicity}"}[self.attribute]
        there = {"source": True, "refused": cell.lacks, "used": not cell.lacks}[self.kind]
        named = (self.group, *re.split(", | or ", self.group))
        return ("All" in named or mine in named) and there and not (self.event == "denied" and cell.approved)


def seen(tables: Tables) -> Iterator[Seen]:
    """Every number of people in the published tables."""
    for row in tables[PUBLISHED_WATERFALL.name].to_pylist():
        if row["kind"] != "left":
            yield Seen(row["protected_attribute"], row["group"], row["kind"], "", row["n"])
    for row in tables[PUBLISHED_MISSINGNESS.name].to_pylist():
        yield Seen("race", "All", "refused", "", row["missing"])
    for row in tables[PUBLISHED_MERGED.name].to_pylist():
        yield Seen(row["protected_attribute"], row["groups"], row["base"], "", row["n"])
        if row["denied"] is not None:
            yield Seen(row["protected_attribute"], row["groups"], row["base"], "denied", row["denied"])
    for row in tables[PUBLISHED_MEASURES.name].to_pylist():
        if row["measure"] == "denial_rate" and row["n"] is not None:
            yield Seen(row["protected_attribute"], row["group"], "source", "", row["n"])
            yield Seen(row["protected_attribute"], row["group"], "source", "denied", row["events"])
    for row in tables[PUBLISHED_VERDICTS.name].to_pylist():
        if row["n"] is not None:
            yield Seen(row["protected_attribute"], row["group"], "source", "", row["n"])
            yield Seen(row["protected_attribute"], row["group"], "source", "denied", row["events"])


def told(each: Seen, policy: Policy, base: int) -> tuple[float, float]:
    """What the attacker makes of a number: withheld is nobody, where that protects others, or anybody."""
    if each.number is None:
        return 0.0, np.inf
    return learned(policy, each.number, base, never_small=not each.event or policy.events_too)


def open_by(numbers: Sequence[Seen], target: Seen, policy: Policy, bases: dict[Seen, int]) -> float:
    """Least and largest value of a target that fit all numbers: how far they are apart."""
    matrix = np.array([[float(each.counts(cell)) for cell in CELLS] for each in numbers])
    ends = np.array([told(each, policy, bases.get(each, policy.round_to)) for each in numbers])
    aim = np.array([float(target.counts(cell)) for cell in CELLS])
    found = []
    for sign in (1, -1):
        answer = milp(
            sign * aim,
            constraints=LinearConstraint(matrix, ends[:, 0], ends[:, 1]),
            integrality=np.ones(len(CELLS)),
            bounds=Bounds(0, 10_000),
        )
        assert answer.status == 0, "what is published does not hold of any people"
        found.append(aim @ np.rint(answer.x))
    return float(found[1] - found[0])


def bases_of(numbers: Sequence[Seen], people: Sequence[Person], policy: Policy, fates: Fates) -> dict[Seen, int]:
    """The finest base by which each number is what it is: the attacker tries them all, and knows which is right."""
    out = {}
    for each in numbers:
        true = sum(each.counts(p) for p in people)
        known = {base for base in fates.outcome.bases.values() if rounded(policy, true, base) == each.number}
        out[each] = max(known, default=policy.round_to)
    return out


def attacked(people: Sequence[Person], profile: str) -> list[tuple[Seen, float]]:
    """Withheld populations that are small and of which too much can be told."""
    tables, fates = published(people, profile)
    policy, numbers = POLICIES[profile], list(dict.fromkeys(seen(tables)))
    bases = bases_of(numbers, people, policy, fates)
    small = [
        each
        for each in numbers
        if each.number is None and not each.event and 0 < sum(map(each.counts, people)) < policy.smallest
    ]
    shut = {(c.count.population.attribute, c.count.population.group) for c in fates.outcome.closed}
    widths = [(each, open_by(numbers, each, policy, bases)) for each in small]
    return [(e, width) for e, width in widths if width < policy.wanted and (e.attribute, e.group) not in shut]


@settings(deadline=None, max_examples=examples(6))
@given(st.lists(person(), min_size=60, max_size=120), st.sampled_from(["public", "strict", "official"]))
def test_no_small_group_is_told_to_an_attacker(people: list[Person], profile: str) -> None:
    assert attacked(people, profile) == []


@pytest.mark.parametrize("profile", ["public", "strict", "official"])
def test_groups_that_were_all_denied_or_all_approved(profile: str) -> None:
    """Three Asian applicants, all denied; one Black and Hispanic applicant, approved; two white files incomplete."""
    people = [Person("white", "no", i % 4 > 0, i < 2) for i in range(140)]
    people += [Person("Black", "no", i % 2 > 0, False) for i in range(60)]
    people += [Person("Asian", "no", False, False)] * 3 + [Person("Black", "yes", True, False)]
    assert attacked(people, profile) == []


@pytest.mark.parametrize("profile", ["public", "strict", "official"])
def test_a_group_that_was_all_denied_is_told_by_no_table(profile: str) -> None:
    """A ratio of approvals of 0, or as many denied as there are people, tells the decision of each of 37."""
    people = [Person("white", "no", i % 4 > 0, False) for i in range(400)]
    people += [Person("Black", "no", i % 2 > 0, False) for i in range(160)]
    people += [Person("Asian", "no", False, False)] * 37
    tables, _ = published(people, profile, Verdicts())
    for name, table in tables.items():
        for row in table.to_pylist() if name != "publication" else ():
            if str(row.get("group", "")).startswith("Asian"):
                said = {key: row.get(key) for key in ("events", "value", "approval", "low", "high", "p")}
                assert set(said.values()) == {None}, (name, said)


@pytest.mark.parametrize("profile", ["public", "strict", "official"])
def test_a_count_is_rounded_once(profile: str) -> None:
    """No Black applicant was refused: two roundings of 197, to 200 and to 195, would tell that they are 195 to 197."""
    people = boston()
    judged = frozenset(of(group, place) for group in ("white", "Black", "Hispanic") for place in (SOURCE, MODEL))
    outcome = suppress(Request(people, POLICIES[profile], counts_of(people), Losses(people, judged)))
    found: dict[tuple[str, str, int], set[int | None]] = {}
    for entry in outcome.entries:
        key = entry.count.population.group, entry.count.event, people.size(entry.count)
        if key[2]:
            found.setdefault(key, set()).add(entry.number)
    assert {key: numbers for key, numbers in found.items() if len(numbers) > 1} == {}
