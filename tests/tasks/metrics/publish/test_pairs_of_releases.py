"""An attacker by differences over random pairs of released runs: no count of few people follows from both.

The second run is made as the door makes it: beside the first, under the more careful profile of both. The attacker has
the published tables of both, the rules, and knows which way rows went: that they were only added, say.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from test_exported import Person, Tables, exported, published

from flows.runs.disclosure import PROFILES
from tasks.metrics.publish.algorithm.populations import ALL, Base, Count, Population
from tasks.metrics.publish.algorithm.profiles import POLICIES, learned
from tasks.metrics.publish.measures import Fates

KINDS = ("added", "removed", "group", "decision", "lacking", "part", "mixed")
RACES, PROFILE_PAIRS = ("white", "Black", "Asian"), tuple(product(PROFILES[2:], repeat=2))


class Cell(NamedTuple):
    """Whoever is alike in both runs; None of a run that does not have them."""

    first: Person | None
    second: Person | None


class Run(NamedTuple):
    """A released run, as a reader has it."""

    profile: str
    tables: Tables
    fates: Fates


def drawn(number: int) -> tuple[str, list[Person], list[Person], tuple[str, str]]:
    """Two tables of nearly the same people, and the profiles of their runs, by the number of the pair."""
    rng = np.random.default_rng(number)
    kind = KINDS[number % len(KINDS)]
    size = int(rng.integers(50, 150))
    people = [
        Person(
            str(rng.choice(RACES, p=[0.6, 0.32, 0.08])),
            "yes" if rng.random() < 0.1 else "no",
            bool(rng.random() < 0.6),
            bool(rng.random() < 0.06),
            f"r{i}",
        )
        for i in range(size)
    ]
    few = set(rng.choice(size, int(rng.integers(1, 5)), replace=False).tolist())
    rest = [person for i, person in enumerate(people) if i not in few]
    first, second = people, people
    if kind == "added":
        first = rest
    elif kind == "removed":
        second = rest
    elif kind == "part":  # a lender, and everybody
        first = [person for i, person in enumerate(people) if i % 3]
    else:
        second = [_changed(kind, person, rng) if i in few else person for i, person in enumerate(people)]
        second = second[1:] if kind == "mixed" else second
    return kind, first, second, PROFILE_PAIRS[int(rng.integers(len(PROFILE_PAIRS)))]


def _changed(kind: str, person: Person, rng: np.random.Generator) -> Person:
    which = str(rng.choice(["group", "decision", "lacking"])) if kind == "mixed" else kind
    if which == "group":
        return person._replace(race="Black" if person.race == "white" else "white")
    if which == "decision":
        return person._replace(approved=not person.approved)
    return person._replace(lacks=not person.lacks)


def cells_of(first: Sequence[Person], second: Sequence[Person]) -> dict[Cell, int]:
    """Sizes of the cells that an attacker reckons with: those that occur, and all decisions of people like them."""
    one, two = ({person.row: person._replace(row="") for person in people} for people in (first, second))
    sizes = Counter(Cell(one.get(row), two.get(row)) for row in one.keys() | two.keys())
    for cell in list(sizes):
        for decisions in ((True, True), (False, False)):
            ends = (end and end._replace(approved=said) for end, said in zip(cell, decisions, strict=True))
            sizes[Cell(*ends)] += 0
    return dict(sizes)


def inside(person: Person | None, count: Count) -> bool:
    """Whether a run counts a person."""
    population = count.population
    if person is None or (person.lacks if population.base is Base.USED else False):
        return False
    if (population.base is Base.REFUSED or "lacks" in population.reason) and not person.lacks:
        return False
    group = person.race if population.attribute == "race" else f"{person.race} and {person.ethnicity}"
    if population.group not in (ALL, group):
        return False
    return not count.event or count.rest == person.approved


def known(runs: Mapping[int, Run], cells: Sequence[Cell]) -> tuple[list[list[float]], list[float], list[float]]:
    """Every printed number as a sum of cells, with its lowest and highest value."""
    rows, low, high = [], list[float](), list[float]()
    for which, run in runs.items():
        policy = POLICIES[run.profile]
        for count, number in exported(run.tables, run.fates):
            if count.event and count.population.base is Base.REFUSED:
                continue  # read off a share, to the digits of its n
            base = run.fates.outcome.bases.get(count)
            if base is None:
                continue
            span = learned(policy, number, base, not count.event or policy.events_too)
            rows.append([float(inside(cell[which], count)) for cell in cells])
            low.append(span.low)
            high.append(span.high)
    return rows, low, high


def targets(cells: Sequence[Cell]) -> Iterator[tuple[str, list[float]]]:
    """Sets of people whom subtraction may tell: in one run alone, by group, place and decision."""
    groups = [("race", group) for group in (ALL, *RACES)]
    groups += [("both", f"{race} and {ethnicity}") for race in RACES for ethnicity in ("yes", "no")]
    for (attribute, group), base, event, which in product(groups, (Base.SOURCE, Base.USED), ("n", "d", "a"), (0, 1)):
        count = Count(_whole(attribute, group, base))
        outcome = count._replace(event="" if event == "n" else "denied", rest=event == "a")
        member = [float(inside(c[which], outcome) and not inside(c[1 - which], count)) for c in cells]
        yield f"{attribute} {group}, {base.value}, {event}, only in {which}", member


def _whole(attribute: str, group: str, base: Base) -> Population:
    return Population(attribute, group, 0, "lender", base)


def width(target: Sequence[float], fits: LinearConstraint | None, cells: int) -> float:
    """How far apart the tables of whole people are that print all this."""
    ends = []
    for sign in (1, -1):
        answer = milp(sign * np.array(target), constraints=fits, integrality=np.ones(cells), bounds=Bounds(0, 2_000))
        assert answer.status == 0, "what is published holds of no people"
        ends.append(sign * round(answer.fun))
    return ends[1] - ends[0]


def won(first: Run, second: Run, sizes: Mapping[Cell, int]) -> list[str]:
    """Counts of few people that follow from both runs, and do not from the first alone."""
    cells, numbers = list(sizes), np.array(list(sizes.values()))
    both, alone = ((known(runs, cells)) for runs in ({0: first, 1: second}, {0: first}))
    wanted, smallest = POLICIES[second.profile].wanted, POLICIES[second.profile].smallest
    out, every = [], dict(targets(cells))
    for name, target in every.items():
        size = int(numbers @ np.array(target))
        people = int(numbers @ np.array(every[name.replace(", d,", ", n,").replace(", a,", ", n,")]))
        if not (0 < size < smallest and 0 < people < smallest):
            continue
        if width(target, LinearConstraint(*map(np.array, both)), len(cells)) < wanted and (
            width(target, LinearConstraint(*map(np.array, alone)), len(cells)) >= wanted
        ):
            out.append(f"{name}: {size}")
    return out


def attacked(number: int) -> tuple[list[str], list[str], bool]:
    """What a pair tells without the door, and through it; and whether the door refuses the second run."""
    _, first, second, profiles = drawn(number)
    before = Run(profiles[0], *published(first, profiles[0]))
    careful = max(profiles, key=PROFILES.index)
    sizes = cells_of(first, second)
    open_door = won(before, Run(profiles[1], *published(second, profiles[1])), sizes)
    through = Run(careful, *published(second, careful, before={"first": before.tables}))
    if through.fates.outcome.closed:
        return open_door, [], True
    return open_door, won(before, through, sizes), False


@pytest.mark.slow
def test_a_pair_that_tells_few_people_tells_nothing_through_the_door() -> None:
    told, through, refused = attacked(15)
    assert told
    assert (through, refused) == ([], False)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("decade", range(20))
def test_two_hundred_pairs_tell_nothing_through_the_door(decade: int) -> None:
    outcomes = [attacked(number) for number in range(10 * decade, 10 * decade + 10)]
    assert [through for _, through, _ in outcomes if through] == []
    assert sum(refused for *_, refused in outcomes) < 10, "a door that lets nothing out is no door"
