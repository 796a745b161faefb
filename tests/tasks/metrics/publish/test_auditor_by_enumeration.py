"""The auditor against every table of 2 x 3 x 2 cells of up to 12 people."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain, combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from tasks.metrics.publish.algorithm.audit import Auditor, cells_of
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
from tasks.metrics.publish.algorithm.profiles import POLICIES
from tasks.metrics.publish.algorithm.suppression import suppress

A, B, DENIED = (codes.ravel() for codes in np.indices((2, 3, 2)))
"""Group by attribute ``a``, group by attribute ``b`` and decision of each of the 12 cells."""
PLACE = Place(Base.USED, "lender")
MOST = 12


@cache
def tables(most: int) -> NDArray[np.int8]:
    """Every table of 12 cells with up to ``most`` people: by the places of 12 bars among people and bars."""
    bars = np.fromiter(chain.from_iterable(combinations(range(most + 12), 12)), dtype=np.int8).reshape(-1, 12)
    return np.diff(bars, axis=1, prepend=np.int8(-1)) - np.int8(1)


def people_of(table: NDArray[np.int8], linked: bool = False) -> People:
    """A row for each cell, with the people in it as its weight; linked: with the two attributes crossed."""
    attributes = [
        Attribute("a", ("a",), ("a0", "a1"), A.astype(np.int64)),
        Attribute("b", ("b",), ("b0", "b1", "b2"), B.astype(np.int64)),
    ]
    if linked:
        names = tuple(f"a{i}b{j}" for i in range(2) for j in range(3))
        attributes.append(Attribute("ab", ("a", "b"), names, (3 * A + B).astype(np.int64)))
    return People(
        {"a": A.astype(np.int64), "b": B.astype(np.int64)},
        tuple(attributes),
        {PLACE: np.ones(12, dtype=bool)},
        {Event("denied", "lender"): DENIED == 1},
        weights=table.astype(np.int64),
    )


def population(name: str) -> Population:
    """``All``, ``a0``, ``b2``, ``a1b0``: the attribute is the letters."""
    attribute = "".join(letter for letter in name if letter in "ab") or "a"
    return Population(attribute, name, 0, "lender", Base.USED)


def count(name: str) -> Count:
    """``a0`` are its people, ``a0-`` those denied."""
    return Count(population(name.rstrip("-")), "denied" if name.endswith("-") else "")


def weights(each: Count) -> NDArray[np.bool_]:
    """Which cells a count counts, told from its name alone."""
    group = each.population.group
    inside = np.ones(12, dtype=bool)
    if group != ALL:
        for letter, digit in zip(group[::2], group[1::2], strict=True):
            inside &= ({"a": A, "b": B}[letter]) == int(digit)
    return inside & (DENIED == 1) if each.event else inside


PATTERNS = {
    "two margins, a withheld": (["All", "All-", "b0", "b0-", "b1", "b1-", "b2", "b2-"], ["a0", "a0-"], False),
    "each withholds one": (["All", "a1", "a1-", "b1", "b1-", "b2"], ["a0", "b0", "b0-"], False),
    "crossed": (["All", "a0", "b0", "b1", "a0b0", "a0b0-", "a1b1"], ["a0b1", "a1b2", "a1b0-"], True),
    "margins of a crossed one": (["a0", "a1", "b0-", "b1-", "a0b0", "a1b2", "a1b2-"], ["a0b1", "b2-", "a0b2"], True),
}


def audited(table: NDArray[np.int8], shown: Sequence[str], asked: Sequence[str], linked: bool) -> list[tuple[int, int]]:
    people = people_of(table, linked)
    counts = [count(name) for name in (*shown, *asked)]
    auditor = Auditor(cells_of(people, counts), counts)
    low, high = np.full(auditor.truth.size, -np.inf), np.full(auditor.truth.size, np.inf)
    for name in shown:
        low[auditor.rows[count(name)]] = high[auditor.rows[count(name)]] = people.size(count(name))
    intervals = [auditor.interval(count(name), low, high) for name in asked]
    assert all(each.proven for each in intervals)
    for each in intervals:
        row = auditor.rows[each.count]
        assert auditor.open(row, each.width, low, high)
        assert not auditor.open(row, each.width + 1, low, high)
    return [(each.least, each.largest) for each in intervals]


def against_enumeration(pattern: str, most: int, classes: int | None) -> int:
    """Tables that print the same are one class; of each (or of some) the auditor must say what their tables say."""
    shown, asked, linked = PATTERNS[pattern]
    every = tables(most)
    printed = np.column_stack([every[:, weights(count(name))].sum(axis=1, dtype=np.int8) for name in shown])
    _, first, kind = np.unique(printed, axis=0, return_index=True, return_inverse=True)
    chosen = np.random.default_rng(7).permutation(first.size)[:classes]
    ends = []
    for name in asked:
        values = every[:, weights(count(name))].sum(axis=1, dtype=np.int64)
        least, largest = np.full(first.size, 99), np.full(first.size, -1)
        np.minimum.at(least, kind.ravel(), values)
        np.maximum.at(largest, kind.ravel(), values)
        ends.append(np.column_stack([least, largest]))
    for each in chosen:
        found = audited(every[first[each]], shown, asked, linked)
        assert found == [tuple(end[each]) for end in ends], (pattern, every[first[each]])
    return len(chosen)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_auditor_says_what_all_tables_say(pattern: str) -> None:
    assert against_enumeration(pattern, most=8, classes=25) == 25


@pytest.mark.long
@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_auditor_says_what_all_tables_of_twelve_people_say(pattern: str) -> None:
    assert against_enumeration(pattern, most=MOST, classes=600) == 600


def printed_alike(table: NDArray[np.int8], every: NDArray[np.int8], outcome: Outcome) -> NDArray[np.bool_]:
    """Which of all tables print the same numbers and the same ranges."""
    alike = np.ones(len(every), dtype=bool)
    for entry in outcome.entries:
        values = every[:, weights(entry.count)].sum(axis=1, dtype=np.int64)
        if entry.number is not None:
            base = outcome.bases[entry.count]
            alike &= np.round(values / base) * base == entry.number
        elif entry.text:
            limit = float(entry.text.removeprefix("more than ").removesuffix(" %")) / 100
            alike &= values > limit * every[:, weights(Count(entry.count.population))].sum(axis=1)
    return alike


def drawn_tables(seed: int, draws: int, most: int) -> Iterator[NDArray[np.int8]]:
    """Tables of 8 people and more with few in some groups."""
    rng = np.random.default_rng(seed)
    for _ in range(draws):
        shares = rng.dirichlet(np.full(12, 0.4))
        yield rng.multinomial(rng.integers(8, most + 1), shares).astype(np.int8)


@pytest.mark.parametrize("linked", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_what_is_shown_leaves_small_counts_open_among_all_tables(linked: bool) -> None:
    """Whatever the total is: it is printed, or rounded to 5 and the tables reach beyond what it is rounded from."""
    every, policy, protected = tables(MOST - 2), POLICIES["public"], 0
    for table in drawn_tables(3, 15, MOST - 4):
        people = people_of(table, linked)
        populations = list(populations_of(people))
        counts = [Count(each, event) for each in populations for event in ("", "denied")]
        outcome = suppress(Request(people, policy, counts, Losses(people)))
        alike = every[printed_alike(table, every, outcome)]
        assert len(alike) > 0
        for each in {entry.count.population for entry in outcome.entries if entry.fate is Fate.WITHHELD_SMALL}:
            for having in (Count(each), Count(each, "denied"), Count(each, "denied", True)):
                if not 0 < people.size(having) < policy.smallest or numerator(people, having, outcome):
                    continue
                values = alike[:, complemented(having)].sum(axis=1, dtype=np.int64)
                reached = values.max() - values.min()
                assert reached >= policy.wanted or alike.sum(axis=1).max() == MOST - 2, (table, having)
                protected += reached >= policy.wanted
    assert protected > 12


def complemented(having: Count) -> NDArray[np.bool_]:
    inside = weights(having._replace(rest=False))
    return weights(Count(having.population)) & ~inside if having.rest else inside


def numerator(people: People, having: Count, outcome: Outcome) -> bool:
    """Whether a large population has these very cells as a numerator: under ``public`` those are shown."""
    large = [entry.count for entry in outcome.entries if entry.count.event and entry.fate is not Fate.WITHHELD_SMALL]
    both = [each._replace(rest=rest) for each in large for rest in (False, True)]
    return any((complemented(each) == complemented(having)).all() for each in both)
