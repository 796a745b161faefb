"""Shares and means as the distributions that they are printed from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.numerics.statistics.intervals import alone, as_said, counted, mean, share


def printed(tally):
    """The mean over the rows that have a value, and over how many."""
    known = ~np.isnan(tally.values)
    n = tally.counts[known].sum()
    return (tally.counts[known] @ tally.values[known] / n if n else None), n, tally.counts.sum()


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_a_share_is_of_the_rows_on_which_it_says_something(rows):
    yes, of = (np.array(column, bool) for column in zip(*rows, strict=True))
    inside = [a for a, b in rows if b]
    tally = share("m", {"k": 1}, yes, of, headline=True)
    assert printed(tally) == (pytest.approx(sum(inside) / len(inside)) if inside else None, len(inside), len(rows))
    assert (tally.headline, tally.compared, tally.share, tally.parameters) == (True, True, True, {"k": 1})
    assert printed(share("m", {}, yes)) == (pytest.approx(yes.mean()), len(rows), len(rows))
    whole = counted("m", {}, len(inside) - sum(inside), sum(inside), len(rows) - len(inside))
    assert np.array_equal(whole.values, tally.values, equal_nan=True)
    assert np.array_equal(whole.counts, tally.counts)
    assert (whole.headline, whole.compared, whole.share) == (False, True, True)


@given(st.lists(st.sampled_from([0.5, 1.5, 2.0, np.nan]), min_size=1, max_size=30))
def test_a_mean_is_of_the_values_that_are_there(values):
    known = [v for v in values if not np.isnan(v)]
    tally = mean("m", {}, np.array(values))
    assert printed(tally) == (pytest.approx(sum(known) / len(known)) if known else None, len(known), len(values))
    assert len(tally.values) == len(set(known)) + (len(known) < len(values))


def test_what_says_something_of_nobody_is_left_out_and_nothing_is_compared():
    assert list(alone(mean("m", {}, np.array([np.nan, np.nan])))) == []
    assert list(alone(share("m", {}, np.ones(3, bool), np.zeros(3, bool)))) == []
    (kept,) = alone(share("m", {}, np.zeros(3, bool)))
    assert not kept.compared


def test_fields_by_hand():
    """Printed for the whole of the first group; compared and no headline, and no share, unless it is asked."""
    for tally in (mean("m", {"k": 1}, np.array([2.0, 1.0, 2.0])), share("m", {"k": 1}, np.array([True, False, False]))):
        assert (tally.group, tally.subgroup, tally.measure, tally.parameters) == (0, 0, "m", {"k": 1})
        assert (tally.headline, tally.compared) == (False, True)
    assert share("m", {}, np.ones(2, bool), compared=False).compared is False
    assert counted("m", {}, 2, 3, 0, headline=True, compared=False).values.tolist() == [0.0, 1.0]
    tallied = counted("m", {}, 2, 3, 4, headline=True, compared=False)
    assert (tallied.group, tallied.subgroup, tallied.headline, tallied.compared) == (0, 0, True, False)
    assert tallied.counts.tolist() == [2, 3, 4]
    tallied = mean("m", {}, np.array([2.0, 1.0, np.nan, 2.0]), headline=True, share=True)
    assert (tallied.counts.tolist(), tallied.headline, tallied.share) == ([1, 2, 1], True, True)
    assert mean("m", {}, np.ones(1)).share is False
    assert as_said(1 / 3) == 0.3333333333
