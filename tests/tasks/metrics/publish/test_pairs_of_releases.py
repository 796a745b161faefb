"""Attackers by differences over random pairs of released runs: no count of few people follows from both.

The last run is made as the door makes it: beside those of the same rows, under the most careful profile of them.
Attackers have the published tables of all, and the rules. The insider knows all of everybody but the decisions: groups,
which features are missing for whom, who is in which run, and for whom runs have another decision. He wins where both
runs tell of the denied among few people an interval that is narrower than the profile promises a withheld count, and
than there are people: one to three of three, as well as two. The stranger knows which way rows went alone: that they
were only added, say. He wins counts of people, too.
A league is two lenders and everybody; a trend is two years, which share no applicant. Pages of both are made of these
tables alone (``test_comparing_pages``).
"""

import sys
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

KINDS = ("added", "removed", "group", "decision", "lacking", "part", "mixed", "league", "trend")
RACES, PROFILE_PAIRS = ("white", "Black", "Asian"), tuple(product(PROFILES[2:], repeat=2))
WITHOUT, CHEAP = 18, (5, 8, 9, 17, 18, 26, 28, 29, 149, 156)
"""A pair that tells without the door; pairs whose runs are made fast."""
Cell = tuple[Person | None, ...]
"""Whoever is alike in all runs; None of a run that does not have them."""


class Run(NamedTuple):
    """A released run, as a reader has it."""

    profile: str
    tables: Tables
    fates: Fates


class Drawn(NamedTuple):
    """Tables of nearly the same people, each with the profile of its run."""

    kind: str
    tables: tuple[list[Person], ...]
    profiles: tuple[str, ...]

    def beside(self, which: int) -> range:
        """Earlier runs that share rows with a run: not of another lender, and not of another year."""
        return range(0 if self.kind == "trend" or (self.kind == "league" and which < 2) else which)


def drawn(number: int) -> Drawn:
    """By the number of the pair."""
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
    profiles = PROFILE_PAIRS[int(rng.integers(len(PROFILE_PAIRS)))]
    if kind == "league":  # the few are a third lender, without a run
        lenders = [[person for i, person in enumerate(rest) if (i % 3 > 0) == later] for later in (False, True)]
        return Drawn(kind, (*lenders, people), (*profiles, profiles[0]))
    if kind == "added":
        first = rest
    elif kind == "removed":
        second = rest
    elif kind == "part":  # a lender, and everybody
        first = [person for i, person in enumerate(people) if i % 3]
    elif kind == "trend":
        first, second = people[: size // 2], people[size // 2 :]
    else:
        second = [_changed(kind, person, rng) if i in few else person for i, person in enumerate(people)]
        second = second[1:] if kind == "mixed" else second
    return Drawn(kind, (first, second), profiles)


def _changed(kind: str, person: Person, rng: np.random.Generator) -> Person:
    which = str(rng.choice(["group", "decision", "lacking"])) if kind == "mixed" else kind
    if which == "group":
        return person._replace(race="Black" if person.race == "white" else "white")
    if which == "decision":
        return person._replace(approved=not person.approved)
    return person._replace(lacks=not person.lacks)


def cells_of(tables: Sequence[Sequence[Person]]) -> dict[Cell, int]:
    """Sizes of the cells that an attacker reckons with, who does not know who was added, left out or changed.

    Groups (before and after) and ways of rows are those that occur, crossed in full; with all decisions, used and
    refused.
    """
    by_row = [{person.row: person._replace(row="") for person in people} for people in tables]
    rows = set[str]().union(*by_row)
    sizes = Counter(tuple(people.get(row) for people in by_row) for row in rows)
    groups, ways = set[Cell](), set[tuple[tuple[bool, bool] | None, ...]]()
    for cell in sizes:
        someone = next(end for end in cell if end is not None)
        groups.add(tuple((end or someone)._replace(approved=True, lacks=False) for end in cell))
        ways.add(tuple(end and (end.approved, end.lacks) for end in cell))
        ways |= {tuple(end and way for end in cell) for way in product((True, False), repeat=2)}
    for group, way in product(groups, ways):
        ends = (end and person._replace(approved=end[0], lacks=end[1]) for person, end in zip(group, way, strict=True))
        sizes[tuple(ends)] += 0
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
    """Sets of people whom subtraction may tell: in one run, or in it alone, by group, place and decision."""
    groups = [("race", group) for group in (ALL, *RACES)]
    groups += [("both", f"{race} and {ethnicity}") for race in RACES for ethnicity in ("yes", "no")]
    runs = range(len(cells[0]))
    for (attribute, group), base, event, which in product(groups, (Base.SOURCE, Base.USED), ("n", "d", "a"), runs):
        count = Count(_whole(attribute, group, base))
        outcome = count._replace(event="" if event == "n" else "denied", rest=event == "a")
        members = [float(inside(cell[which], outcome)) for cell in cells]
        yield f"{attribute} {group}, {base.value}, {event}, in {which}", members
        elsewhere = [any(inside(cell[other], count) for other in runs if other != which) for cell in cells]
        alone = [member * (not out) for member, out in zip(members, elsewhere, strict=True)]
        yield f"{attribute} {group}, {base.value}, {event}, only in {which}", alone


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


def won(runs: Sequence[Run], sizes: Mapping[Cell, int]) -> list[str]:
    """Counts of few people that follow from all runs, and do not from those before the last alone."""
    cells, numbers = list(sizes), np.array(list(sizes.values()))
    every_run, before = (known(dict(enumerate(some)), cells) for some in (runs, runs[:-1]))
    wanted, smallest = POLICIES[runs[-1].profile].wanted, POLICIES[runs[-1].profile].smallest
    out, every = [], dict(targets(cells))
    for name, target in every.items():
        size = int(numbers @ np.array(target))
        people = int(numbers @ np.array(every[name.replace(", d,", ", n,").replace(", a,", ", n,")]))
        if not (0 < size < smallest and 0 < people < smallest):
            continue
        if width(target, LinearConstraint(*map(np.array, every_run)), len(cells)) < wanted and (
            width(target, LinearConstraint(*map(np.array, before)), len(cells)) >= wanted
        ):
            out.append(f"{name}: {size}")
    return out


def door(pair: Drawn) -> list[Run]:
    """The runs of a pair as the door makes them."""
    runs = list[Run]()
    for which, (people, profile) in enumerate(zip(pair.tables, pair.profiles, strict=True)):
        beside = pair.beside(which)
        careful = max((profile, *(runs[i].profile for i in beside)), key=PROFILES.index)
        before = {f"run {i}": runs[i].tables for i in beside}
        runs.append(Run(careful, *published(people, careful, before=before)))
    return runs


def open_door(pair: Drawn, runs: Sequence[Run]) -> list[Run]:
    """The same, the last one as if there were no other."""
    return [*runs[:-1], Run(pair.profiles[-1], *published(pair.tables[-1], pair.profiles[-1]))]


def undecided(cell: Cell) -> Cell:
    """What an insider knows of somebody: all but the decision, and whether it differs between runs."""
    decisions = [end.approved for end in cell if end is not None]
    first = decisions[0]
    return tuple(end and end._replace(approved=end.approved == first) for end in cell)


def decided_otherwise(cell: Cell) -> Cell:
    """The same person with the other decision in every run."""
    return tuple(end and end._replace(approved=not end.approved) for end in cell)


def won_by_insider(pair: Drawn, runs: Sequence[Run]) -> list[str]:
    """Denied among few people of whom all runs tell less than the profile promises, and those before the last more."""
    by_row = [{person.row: person._replace(row="") for person in people} for people in pair.tables]
    sizes = Counter(tuple(people.get(row) for people in by_row) for row in set[str]().union(*by_row))
    for cell in list(sizes):
        sizes[decided_otherwise(cell)] += 0
    cells, numbers = list(sizes), np.array(list(sizes.values()))
    alike: dict[Cell, list[int]] = {}
    for at, cell in enumerate(cells):
        alike.setdefault(undecided(cell), []).append(at)
    whole = np.zeros((len(alike), len(cells)))
    for row, places in enumerate(alike.values()):
        whole[row, places] = 1.0
    fits = []
    for some in (runs, runs[:-1]):
        rows, low, high = known(dict(enumerate(some)), cells)
        fits.append(LinearConstraint(np.vstack([rows, whole]), [*low, *(whole @ numbers)], [*high, *(whole @ numbers)]))
    sought = {name: np.array(target) for name, target in targets(cells) if ", d, " in name}
    for (kind, places), which in product(alike.items(), range(len(runs))):
        denied = np.zeros(len(cells))
        denied[[at for at in places if (end := cells[at][which]) is not None and not end.approved]] = 1.0
        sought[f"denied in {which} of {kind}"] = denied
    policy, out = POLICIES[runs[-1].profile], []
    for name, target in sought.items():
        people = int(numbers @ ((whole @ target > 0) @ whole))
        if 0 < people < policy.smallest:
            now, before = (width(target, known_then, len(cells)) for known_then in fits)
            if now < min(before, policy.wanted, people):
                out.append(f"{name}: {int(numbers @ target)} of {people}, within {now:g}")
    return out


class Attacked(NamedTuple):
    """What a pair tells through the door."""

    insider: list[str]
    stranger: list[str]
    refused: bool
    """Whether the door refuses the last run."""


def attacked(number: int) -> Attacked:
    pair = drawn(number)
    runs = door(pair)
    if runs[-1].fates.outcome.closed:
        return Attacked([], [], refused=True)
    return Attacked(won_by_insider(pair, runs), won(runs, cells_of(pair.tables)), refused=False)


@pytest.mark.slow
def test_a_pair_that_tells_few_people_without_the_door_tells_neither_attacker_through_it() -> None:
    pair = drawn(WITHOUT)
    runs = door(pair)
    sizes = cells_of(pair.tables)
    without = open_door(pair, runs)
    assert won(without, sizes)
    assert won_by_insider(pair, without)
    assert runs[-1].fates.outcome.closed == ()
    assert won(runs, sizes) == []
    assert won_by_insider(pair, runs) == []


@pytest.mark.slow
def test_ten_pairs_tell_neither_attacker_anything_through_the_door() -> None:
    outcomes = [attacked(number) for number in CHEAP]
    assert [(one.insider, one.stranger) for one in outcomes if one.insider or one.stranger] == []
    assert sum(one.refused for one in outcomes) < len(CHEAP), "a door that lets nothing out is no door"


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("decade", range(20))
def test_two_hundred_pairs_tell_neither_attacker_anything_through_the_door(decade: int) -> None:
    """What becomes of each kind is printed, with ``-s``."""
    outcomes = {number: attacked(number) for number in range(10 * decade, 10 * decade + 10)}
    for kind in KINDS:
        of_kind = [outcome for number, outcome in outcomes.items() if drawn(number).kind == kind]
        won_pairs, refused = sum(bool(one.insider) for one in of_kind), sum(one.refused for one in of_kind)
        by_stranger = sum(bool(one.stranger) for one in of_kind)
        sys.stdout.write(
            f"{kind}: {len(of_kind)} pairs, won {won_pairs}, by a stranger {by_stranger}, refused {refused}\n"
        )
    assert [(one.insider, one.stranger) for one in outcomes.values() if one.insider or one.stranger] == []
    assert sum(one.refused for one in outcomes.values()) < 10, "a door that lets nothing out is no door"
