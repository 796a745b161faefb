"""Shares, and ends of columns: as many digits as tell no more than the printed counts; none of coarse counts."""

import math
from types import SimpleNamespace

import pyarrow as pa
import pytest

from schemas.tables.applications import ENCODINGS
from tasks.metrics.publish import facts, measures
from tasks.metrics.publish.algorithm import profiles
from tasks.metrics.publish.algorithm.populations import Base, Count, Place
from tasks.metrics.publish.algorithm.primary import Entry, Fate
from tasks.metrics.publish.algorithm.profiles import POLICIES, is_coarse, rounded
from tasks.metrics.publish.measures import Fates
from tasks.metrics.publish.people import DENIED, whole_of


def told(profile, base=1):
    return SimpleNamespace(policy=POLICIES[profile], base_of=lambda *_: base, of_lender=lambda *_: 64)


def row(**more):
    return {"protected_attribute": "race", "group": "Black", "n": 197, **more}


@pytest.mark.parametrize(("n", "having"), [(197, 141), (110, 83), (64, 28), (1677, 1478)])
def test_a_share_is_one_of_every_number_near_its_own(n, having):
    """Else the share would tell the number that is rounded."""
    shown = measures.share(having / n, n, row(n=n), told("strict", 5))
    step = 10.0 ** -profiles.blunt(n)
    for near in range(n - 4, n + 5):
        assert any(abs(k / near - shown) <= step / 2 + 1e-9 for k in range(near + 1))


def test_digits_are_those_of_n_where_n_is_shown_to_the_last_person():
    assert measures.share(141 / 197, 197, row(), told("public")) == 0.716


@pytest.mark.parametrize(("profile", "shown"), [("public", 0.01), ("strict", None), ("official", None)])
def test_few_with_or_without_are_withheld_where_the_profile_looks_at_them(profile, shown):
    few = measures.share(2 / 197, 197, row(), told(profile, 5))
    without = measures.share(195 / 197, 197, row(), told(profile, 5))
    assert (few, without) == (shown, None if shown is None else 0.99)


def test_a_false_positive_rate_is_a_share_of_the_denied():
    metric = row(metric="false_positive_rate", value=28 / 64)
    assert measures.denominator("value", metric, told("strict")) == 64
    assert measures.denominator("value", row(metric="auc", value=0.7), told("strict")) is None


@pytest.mark.parametrize(("n", "few"), [(59, True), (60, False)])
def test_a_quantile_over_few_is_the_value_of_one_person(n, few):
    decile = row(quantile=0.1, category=None, factual=17.0, n=n)
    assert measures.is_of_few("factual", decile, told("public")) is few
    assert (facts._double("factual", decile, told("public")) is None) is few


@pytest.mark.parametrize(
    ("profile", "ends"), [("internal", (1.0, 9.0)), ("public", (1.0, None)), ("strict", (None, None))]
)
def test_an_end_of_a_column_that_few_reach_is_withheld(profile, ends):
    """Five have the least value, one the largest."""
    made = {column.name: [None] for column in ENCODINGS.columns}
    made |= {"encoded": ["x"], "feature": ["x"], "feature_index": [0], "kind": ["continuous"], "low": [1.0]}
    made |= {"high": [9.0], "clipped": [0], "implausible": [0], "roles": ["feature"], "constraint": ["free"]}
    values = pa.table({"x": [1.0] * 5 + [5.0] * 40 + [9.0]})
    (found,) = facts.encodings(ENCODINGS.build(**made), values, POLICIES[profile]).to_pylist()
    assert (found["low"], found["high"]) == ends


USED = Place(Base.USED, "model")
GROUPS = {"white": (400, 100), "Black": (67, 18), "Inuit": (13, 4)}
"""People, and the denied among them."""


def fates(base_of_n: int, base_of_denied: int, profile: str = "public") -> Fates:
    """Three groups whose counts are rounded to the bases."""
    policy, entries, bases, sizes = POLICIES[profile], [], {}, {}
    for group, counts in GROUPS.items():
        for event, size, base in zip(("", DENIED), counts, (base_of_n, base_of_denied), strict=True):
            count = Count(whole_of("race", group, USED), event)
            entries.append(Entry(count, Fate.ROUNDED, rounded(policy, size, base), ""))
            bases[count], sizes[count] = base, size
    people = SimpleNamespace(attribute=lambda _: SimpleNamespace(groups=tuple(GROUPS)), size=sizes.__getitem__)
    return Fates(None, people, policy, SimpleNamespace(entries=tuple(entries), bases=bases))


@pytest.mark.parametrize(("base_of_n", "base_of_denied"), [(20, 20), (20, 1), (1, 20)])
def test_a_share_that_rounding_could_turn_into_any_other_is_not_told(base_of_n: int, base_of_denied: int) -> None:
    told = fates(base_of_n, base_of_denied)
    assert [told.decided("race", group, "model")[1] is None for group in GROUPS] == [False, True, True]
    assert told.share_denied("race", "white", USED) is not None
    assert told.share_denied("race", "Inuit", USED) is None


def test_finer_rounding_leaves_the_share() -> None:
    told = fates(5, 1)
    assert told.decided("race", "Black", "model") == (65, 18, "")
    assert told.decided("race", "Inuit", "model") == (15, None, "")


def test_what_the_profile_itself_rounds_to_withholds_nothing() -> None:
    assert fates(10, 10, "official").decided("race", "Inuit", "model")[1] == 0
    assert not is_coarse(POLICIES["internal"], 1, 3)


def test_n_as_printed_decides_so_that_the_answer_tells_no_more_of_it() -> None:
    policy = POLICIES["public"]
    answers = {(rounded(policy, n, 20), is_coarse(policy, 20, rounded(policy, n, 20))) for n in range(30, 200)}
    assert len(answers) == len({printed for printed, _ in answers})


def test_a_plain_difference_of_such_shares_is_untold_and_not_printed_exactly() -> None:
    difference = 4 / 13 - 100 / 400
    assert math.isnan(fates(20, 20).plainly("race", "Inuit", "model", difference))
    assert fates(20, 20).plainly("race", "Inuit", "model", 0.123) is None, "any other number"
