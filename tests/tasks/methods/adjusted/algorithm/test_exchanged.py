"""The effect of the exchange against a loop over people."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.methods.adjusted.algorithm.detection import effects
from tasks.numerics.statistics.intervals import lower, upper

PERSON = st.tuples(st.booleans(), st.booleans(), st.integers(0, 2))


@settings(deadline=None, max_examples=examples(100))
@given(people=st.lists(PERSON, min_size=1, max_size=60), reference=st.integers(0, 2))
def test_it_is_the_mean_over_members_of_what_the_exchange_changes(people, reference):
    denied, exchanged, group = (np.array(each) for each in zip(*people, strict=True))
    found = {each.group: each for each in effects(denied, exchanged, group, 3, reference, 0.95)}
    assert set(found) == {number for *_, number in people} - {reference}
    for number, each in found.items():
        own = [int(as_is) - int(other) for as_is, other, of in people if of == number]
        assert each.value == sum(own) / len(own)
        assert each.changes == (own.count(1), own.count(-1), len(own))
        assert each.denied == sum(as_is for as_is, _, of in people if of == number)
        assert each.low == pytest.approx(lower(each.changes, 0.025))
        assert each.high == pytest.approx(upper(each.changes, 0.025))
