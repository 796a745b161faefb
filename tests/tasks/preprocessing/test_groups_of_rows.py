"""The groups of rows, whatever the order of their memberships."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from tasks.preprocessing.columns import groups_of

SEX, RACE = SimpleNamespace(name="sex", reference="male"), SimpleNamespace(name="race", reference="White")


def memberships(order):
    """Five rows; the second attribute lists them in another order."""
    sexes, races = ["male", "female", "male", "joint", "female"], ["White", "Black", "White", "Asian", "Black"]
    rows = [(f"r{row}", "sex", sexes[row]) for row in range(5)] + [(f"r{row}", "race", races[row]) for row in order]
    columns = zip(*rows, strict=True)
    return pa.table(dict(zip(("row_id", "protected_attribute", "group"), map(list, columns), strict=True)))


@pytest.mark.parametrize("order", [range(5), [3, 1, 4, 0, 2]])
def test_rows_get_their_groups_in_the_order_they_are_asked_in(order):
    of = groups_of(memberships(order), np.array(["r4", "r0", "r1"], object), [SEX, RACE])
    assert of["sex"].groups == ("female", "male")  # nobody asked is joint
    assert of["sex"].group.tolist() == [0, 1, 0]
    assert of["sex"].reference == 1
    assert [of["race"].groups[code] for code in of["race"].group] == ["Black", "White", "Black"]
    assert groups_of(memberships(order), np.array(["r1"], object), [RACE])["race"].reference == -1


def test_a_row_without_a_group_is_an_error():
    with pytest.raises(KeyError, match="1 rows have no group of sex"):
        groups_of(memberships(range(5)), np.array(["r0", "r9"], object), [SEX])
