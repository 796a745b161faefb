"""Whatever people there are: small counts stay open beside linked attributes, given exactly what is shown.

The attacker here has a model of its own: every combination of columns and of statuses, whole people, the printed texts.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from conftest import examples
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from tasks.metrics.publish.algorithm import suppression
from tasks.metrics.publish.algorithm.populations import (
    ALL,
    Attribute,
    Base,
    Count,
    Event,
    People,
    Place,
    Population,
    populations_of,
)
from tasks.metrics.publish.algorithm.primary import Fate, Losses, Outcome, Request
from tasks.metrics.publish.algorithm.profiles import POLICIES, Policy
from tasks.metrics.publish.algorithm.suppression import suppress

pytestmark = pytest.mark.slow

CELLS = np.array(list(product(range(4), range(2), range(2), range(2))), dtype=np.int64)
"""Column ``origin``, column ``sex``, lacks a value, denied."""
GROUPS = {
    "race": {"white": {0, 1}, "Black": {2}, "Asian": {3}},
    "ethnicity": {"Hispanic": {1}, "not Hispanic": {0, 2, 3}},
}
PLACES = (Place(Base.SOURCE, "lender"), Place(Base.USED, "lender"), Place(Base.REFUSED, "lender", "income"))


def inside(place: Place) -> NDArray[np.bool_]:
    lacking = CELLS[:, 2] == 1
    return {Base.SOURCE: np.ones(len(CELLS), dtype=bool), Base.USED: ~lacking, Base.REFUSED: lacking}[place.base]


def people_of(table: Sequence[int]) -> People:
    """A row for each cell, with the number of people in it as its weight."""
    rows = CELLS
    attributes = []
    for name, groups in GROUPS.items():
        codes = np.array([next(k for k, levels in enumerate(groups.values()) if x in levels) for x in rows[:, 0]])
        attributes.append(Attribute(name, ("origin",), tuple(groups), codes.astype(np.int64)))
    race = attributes[0].codes
    crossed = tuple(f"{group} {sex}" for group in GROUPS["race"] for sex in ("men", "women"))
    attributes.append(Attribute("race and sex", ("origin", "sex"), crossed, 2 * race + rows[:, 1]))
    lacking = rows[:, 2] == 1
    bases = dict(zip(PLACES, (np.ones(len(rows), dtype=bool), ~lacking, lacking), strict=True))
    columns = {"origin": rows[:, 0], "sex": rows[:, 1]}
    denied = {Event("denied", "lender"): rows[:, 3] == 1}
    return People(columns, tuple(attributes), bases, denied, weights=np.array(table, dtype=np.int64))


def cells_of_group(population: Population) -> NDArray[np.bool_]:
    """Cells of a population, told from its names alone."""
    where, group = inside(population.place), population.group
    if group == ALL:
        return where
    if population.attribute != "race and sex":
        return where & np.isin(CELLS[:, 0], list(GROUPS[population.attribute][group]))
    race, sex = group.rsplit(" ", 1)
    return where & np.isin(CELLS[:, 0], list(GROUPS["race"][race])) & (CELLS[:, 1] == (sex == "women"))


def having(count: Count) -> NDArray[np.float64]:
    cells = cells_of_group(count.population)
    if count.event:
        cells = cells & ((CELLS[:, 3] == 1) != count.rest)
    return cells.astype(np.float64)


def printed(outcome: Outcome) -> Iterator[tuple[NDArray[np.float64], float, float]]:
    """What is printed, as sums of cells with their bounds."""
    for entry in outcome.entries:
        if entry.number is not None:
            yield having(entry.count), *rounded_from(entry.number, outcome.bases[entry.count])
        elif entry.text:
            word, limit = re.fullmatch(r"(below|above|more than) ([\d.]+)(?: %)?", entry.text).groups()
            share = float(limit) / (100 if word == "more than" else 1)
            excess = having(entry.count) - share * having(Count(entry.count.population))
            yield excess, *((-np.inf, -1e-4) if word == "below" else (1e-4, np.inf))
    for each in outcome.merged:
        for event, number in each.numbers.items():
            together = sum(having(Count(population, event)) for population in each.populations)
            yield together, *rounded_from(number, each.base)


def rounded_from(number: int, base: int) -> tuple[int, int]:
    near = [x for x in range(max(number - base, 0), number + base + 1) if round(x / base) * base == number]
    return near[0], near[-1]


def width(count: Count, outcome: Outcome) -> float:
    """What an attacker tells of a count: how far apart the whole tables are that print all this."""
    rows, low, high = zip(*printed(outcome), strict=True)
    fits = LinearConstraint(np.array(rows), low, high)
    ends = []
    for sign in (1, -1):
        found = milp(sign * having(count), integrality=1, bounds=Bounds(0, 400), constraints=fits)
        assert found.status == 0
        ends.append(sign * found.fun)
    return round(ends[1] - ends[0])


def numerators(people: People, outcome: Outcome) -> set[bytes]:
    """Sums that ``public`` prints as numerators of large populations."""
    shown = {e.count.population for e in outcome.entries if e.fate is not Fate.WITHHELD_SMALL}
    return {having(Count(each, "denied", rest)).tobytes() for each in shown for rest in (False, True)}


def sensitive(people: People, policy: Policy, outcome: Outcome) -> Iterator[tuple[Count, int]]:
    exempt = set() if policy.events_too else numerators(people, outcome)
    for entry in (entry for entry in outcome.entries if not entry.count.event):
        population = entry.count.population
        counts = [Count(population), *(Count(population, "denied", rest) for rest in (False, True))]
        if 0 < people.size(counts[0]) < policy.smallest:
            assert entry.fate is Fate.WITHHELD_SMALL
            assert entry.number is None
            for each in counts:
                if 0 < people.size(each) < policy.smallest and having(each).tobytes() not in exempt:
                    yield each, policy.wanted
        elif policy.events_too and entry.number is not None:
            for each in counts[1:]:
                if 0 < people.size(each) < policy.smallest:
                    assert outcome.fates[each._replace(rest=False)] is Fate.RANGE
                    yield each, policy.wanted - 1


TABLES = st.lists(
    st.one_of(st.integers(0, 4), st.integers(0, 40), st.just(0)), min_size=len(CELLS), max_size=len(CELLS)
).filter(lambda table: sum(table) > 0)


@pytest.mark.parametrize("profile", ["public", "strict", "official"])
@settings(max_examples=examples(20), phases=[Phase.generate])
@given(table=TABLES, crossed=st.booleans(), verdicts=st.booleans())
def test_no_small_count_is_told_by_what_is_shown(profile: str, table: list[int], crossed: bool, verdicts: bool) -> None:
    people, policy = people_of(table), POLICIES[profile]
    if not crossed:
        people = replace(people, attributes=people.attributes[:2])
    populations = list(populations_of(people))
    counts = [Count(each, event) for each in populations for event in ("", "denied")]
    judged = frozenset(p for p in populations if verdicts and p.base is Base.SOURCE and p.attribute == "race")
    outcome = suppress(Request(people, policy, counts, Losses(people, judged)))
    assert outcome.closed == ()
    for count, wanted in sensitive(people, policy, outcome):
        if any(entry.number is not None or entry.text for entry in outcome.entries):
            assert width(count, outcome) >= wanted, count


@pytest.mark.parametrize("ceiling", [30, 0])
@settings(max_examples=examples(10), phases=[Phase.generate])
@given(table=TABLES, profile=st.sampled_from(["public", "strict"]))
def test_attributes_that_were_not_audited_are_withheld_whole(ceiling: int, table: list[int], profile: str) -> None:
    """Where the work that is allowed is spent: fewer attributes, and what is told of them stays open all the same."""
    people, policy = people_of(table), POLICIES[profile]
    counts = [Count(each, event) for each in populations_of(people) for event in ("", "denied")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suppression, "CEILINGS", (ceiling, 0))
        outcome = suppress(Request(people, policy, counts, Losses(people)))
    assert {entry.count for entry in outcome.entries} == set(counts)
    gone = [entry for entry in outcome.entries if entry.fate is Fate.WITHHELD_UNAUDITED]
    assert gone
    assert all(entry.number is None and not entry.text for entry in gone)
    for entry in gone:
        for each in (
            Count(entry.count.population),
            *(Count(entry.count.population, "denied", r) for r in (False, True)),
        ):
            said = any(e.number is not None or e.text for e in outcome.entries)
            if said and 0 < people.size(each) <= people.size(Count(entry.count.population)) < policy.smallest:
                assert width(each, outcome) >= policy.wanted, each


def test_a_pass_without_work_left_ends_with_everybody_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    people = people_of([40, 30, 20, 10, 4, 2, 3, 1] * 4)
    counts = [Count(each, event) for each in populations_of(people) for event in ("", "denied")]
    monkeypatch.setattr(suppression, "PROTECT", 0)
    outcome = suppress(Request(people, POLICIES["public"], counts, Losses(people)))
    assert {e.fate for e in outcome.entries if e.count.population.group != ALL} == {Fate.WITHHELD_UNAUDITED}
    assert Fate.SHOWN in {e.fate for e in outcome.entries if e.count.population.group == ALL}
