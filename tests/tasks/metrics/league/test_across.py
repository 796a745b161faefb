"""Disclosure across partitions: examples worked by hand, and an attacker with linear programmes of its own."""

from dataclasses import dataclass

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from publication_rows import publication_rows
from scipy.optimize import linprog

from schemas.tables.verdicts import GONE
from tasks.metrics.league.algorithm import DENIED, Block, Known, Published, hidden_across
from tasks.metrics.league.rows import block, hidden
from tasks.metrics.publish.algorithm.populations import ALL
from tasks.metrics.publish.algorithm.profiles import POLICIES

GROUPS = ("white", "Black", "Asian")


def lender(*numbers):
    """Denied and approved of white, Black and Asian applicants."""
    return dict(zip(GROUPS, numbers, strict=True))


def added(lenders):
    return {group: tuple(sum(each[group][d] for each in lenders) for d in (0, 1)) for group in GROUPS}


@dataclass
class Year:
    """A year: its lenders with a run, those without, and what the pass made of it."""

    lenders: dict
    others: tuple = ()
    profile: str = "public"

    def __post_init__(self):
        self.rows = {name: publication_rows(people, self.profile) for name, people in self.lenders.items()}
        self.all = publication_rows(added([*self.lenders.values(), *self.others]), self.profile)
        policy = POLICIES[self.profile]
        self.found = hidden("race", self.rows, self.all, has_rest=bool(self.others), policy=policy)

    def printed(self, name, rows, whole):
        """What the league prints of a run: the size alone where groups are withheld, and then nothing of all rows."""
        known = () if whole and name == ALL else block(name, rows, GROUPS).counts
        return [each for each in known if not whole or each.groups == (ALL,)]

    def width(self, target):
        """Of a withheld count, by linear programmes over all tables: an attacker who knows all that is printed."""
        names = [*self.lenders, *(["rest"] if self.others else [])]
        cells = 2 * (len(GROUPS) + 1)
        rows, low, high = [], [], []
        for number, name in enumerate(names):
            for each in self.printed(name, self.rows.get(name, []), name in self.found.partitions):
                rows.append(self.row(names, [number], each.groups, each.event))
                low.append(each.low)
                high.append(each.high)
        for each in self.printed(ALL, self.all, self.found.everybody):
            rows.append(self.row(names, range(len(names)), each.groups, each.event))
            low.append(each.low)
            high.append(each.high)
        aim = self.row(names, [names.index(target[0])], (target[1],), "")
        matrix, upper = np.array(rows), np.array(high)
        finite = np.isfinite(upper)
        ends = [
            linprog(
                sign * aim,
                A_ub=np.vstack([matrix[finite], -matrix]),
                b_ub=np.r_[upper[finite], -np.array(low)],
                bounds=(0, 1e5),
                method="highs",
            )
            for sign in (1, -1)
        ]
        assert all(end.status == 0 for end in ends)
        assert len(aim) == cells * len(names)
        return -ends[1].fun - ends[0].fun

    def row(self, names, numbers, groups, event):
        table = np.zeros((len(names), len(GROUPS) + 1, 2))
        places = range(len(GROUPS) + 1) if groups == (ALL,) else [GROUPS.index(group) for group in groups]
        for d in {DENIED: [0], "approved": [1]}.get(event, [0, 1]):
            for number in numbers:
                table[number, list(places), d] = 1
        return table.ravel()

    def small(self):
        """Withheld counts of few people, true by construction."""
        policy = POLICIES[self.profile]
        for name, people in self.lenders.items():
            gone = {row["group"] for row in self.rows[name] if row["fate"] in GONE and row["event"] == ""}
            yield from ((name, g) for g in gone if g != ALL and 0 < sum(people[g]) < policy.smallest)
        for group in GROUPS:
            if self.others and 0 < sum(sum(each[group]) for each in self.others) < policy.smallest:
                yield "rest", group

    def told(self):
        wanted = POLICIES[self.profile].wanted
        return [(target, width) for target in self.small() if (width := self.width(target)) < wanted - 1e-6]


LARGE = lender((40, 260), (30, 70), (9, 41))


def test_everybody_less_the_others_would_tell_a_withheld_group():
    year = Year({"A": lender((40, 260), (30, 70), (1, 2)), "B": LARGE, "C": lender((50, 150), (12, 20), (7, 30))})
    assert list(year.small()) == [("A", "Asian")]
    assert year.found.partitions == {"C"}, "the smallest one"
    assert not year.found.everybody
    assert year.told() == []
    year.found = year.found._replace(partitions=frozenset())
    assert year.told() != [], "without that it would be told"


def test_a_lender_that_publishes_nothing_is_not_told_by_subtraction():
    year = Year({"A": LARGE, "B": lender((20, 80), (10, 20), (6, 9))}, others=(lender((20, 100), (5, 25), (1, 2)),))
    assert list(year.small()) == [("rest", "Asian")]
    assert year.found.partitions == {"B"}
    assert year.told() == []


def test_many_others_hide_what_a_lender_withholds():
    year = Year({"A": lender((40, 260), (30, 70), (1, 2)), "B": LARGE}, others=(LARGE, LARGE))
    assert not year.found.partitions
    assert year.told() == []


def test_with_two_lenders_everybody_is_withheld_or_the_other_one():
    year = Year({"A": lender((40, 260), (30, 70), (1, 2)), "B": LARGE})
    assert year.found.everybody or year.found.partitions
    assert year.told() == []


def test_nothing_is_withheld_where_nobody_is_few_and_under_a_profile_that_withholds_nothing():
    assert not any(Year({"A": LARGE, "B": LARGE}).found)
    few = {"A": lender((40, 260), (30, 70), (1, 2)), "B": LARGE, "C": LARGE}
    assert not any(Year(few, profile="internal").found)


def test_counts_that_do_not_add_up_withhold_everybody():
    exact = [Known((ALL,), "", 100, 100), Known(("white",), "", 90, 90), Known(("Black",), "", 10, 10)]
    blocks = (Block("A", tuple(exact)), Block("B", tuple(exact)))
    found = hidden_across(Published(("white", "Black"), blocks, Block(ALL, tuple(exact)), False, POLICIES["public"]))
    assert found.everybody
    assert found.unequal


def test_the_outcome_does_not_depend_on_who_ended_first():
    lenders = {
        "A": lender((40, 260), (30, 70), (1, 2)),
        "B": LARGE,
        "C": LARGE,
        "D": lender((50, 150), (12, 20), (7, 30)),
    }
    turned = dict(reversed(lenders.items()))
    assert Year(lenders).found == Year(turned).found


count = st.one_of(st.integers(0, 6), st.integers(7, 40))
people = st.builds(
    lender, st.tuples(st.integers(20, 60), st.integers(60, 200)), st.tuples(count, count), st.tuples(count, count)
)


@settings(deadline=None, max_examples=examples(8))
@given(
    st.lists(people, min_size=2, max_size=5),
    st.lists(people, max_size=1),
    st.sampled_from(["public", "strict", "official"]),
)
def test_no_withheld_count_of_few_people_is_told_by_all_that_the_league_prints(lenders, others, profile):
    year = Year({f"L{n}": each for n, each in enumerate(lenders)}, tuple(others), profile)
    assert year.told() == []


@pytest.mark.parametrize("profile", ["public", "strict"])
def test_a_group_that_everybody_withholds(profile):
    few = lender((40, 260), (30, 70), (1, 1))
    assert Year({"A": few, "B": few}, profile=profile).told() == []
