"""Encoding: known values by hand, and the law that decoding gives the bin that holds the value."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.preprocessing import MinMaxScaler

from tasks.numerics import encoding
from tasks.numerics.encoding import Scale

FINITE = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60).map(np.array)


def test_bins_by_hand() -> None:
    values = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0])  # 8 distinct values: log2(8) + 1 = 4 bins of width 2
    scale = encoding.fit_scale(values, clip=False, bins=True)
    assert scale == Scale(0.0, 8.0, 4)
    assert_allclose(encoding.encode_continuous(values, scale), np.array([0, 0, 1, 1, 2, 2, 3, 3]) / 3)


def test_a_number_of_bins_is_kept() -> None:
    values = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 6.0])  # three bins of width 2, the last closed above
    scale = encoding.fit_scale(values, clip=False, bins=3)
    assert scale == Scale(0.0, 6.0, 3)
    assert encoding.encode_continuous(values, scale).tolist() == [0, 0, 0.5, 0.5, 1, 1]


@given(FINITE)
def test_scaling_rounds_as_scikit_learn_does(values) -> None:  # type: ignore[no-untyped-def]
    assume(np.ptp(values) > 1e-9)  # narrower columns are constant to scikit-learn
    expected = MinMaxScaler(clip=True).fit_transform(values[:, None])[:, 0]
    scale = encoding.fit_scale(values, clip=False, bins=False)
    assert np.array_equal(encoding.encode_continuous(values, scale), expected)


@given(st.lists(st.integers(-40, 40), min_size=2, max_size=60, unique=True), st.integers(2, 9))
def test_bins_are_those_of_equal_width(values, bins) -> None:  # type: ignore[no-untyped-def]
    whole = np.array(values, dtype=float)
    encoded = encoding.encode_continuous(whole, encoding.fit_scale(whole, clip=False, bins=bins))
    low, width = min(values), max(values) - min(values)
    by_hand = [min((value - low) * bins // width, bins - 1) for value in values]  # in whole numbers, so exact
    exact = np.array([(value - low) * bins % width != 0 for value in values])  # not on an edge between two bins
    assert_allclose(encoded[exact], (np.array(by_hand) / (bins - 1))[exact], atol=1e-12)


def test_clipping_keeps_absurd_values_from_taking_all_bins() -> None:
    values = np.append(np.arange(1000.0), 9_999_999.0)
    scale = encoding.fit_scale(values, clip=True, bins=True)
    assert scale.high <= 999
    assert len(np.unique(encoding.encode_continuous(values, scale))) == scale.bins


@given(FINITE, st.booleans(), st.booleans())
def test_encoded_lies_in_the_unit_interval_and_keeps_order(values, clip, bins) -> None:  # type: ignore[no-untyped-def]
    scale = encoding.fit_scale(values, clip=clip, bins=bins)
    encoded = encoding.encode_continuous(np.sort(values), scale)
    assert ((encoded >= 0) & (encoded <= 1)).all()
    assert (np.diff(encoded) >= 0).all()


def test_a_constant_column_is_zero_throughout() -> None:
    scale = encoding.fit_scale(np.full(5, 3.0), clip=True, bins=True)
    assert scale.constant
    assert (encoding.encode_continuous(np.full(5, 3.0), scale) == 0).all()


@given(st.integers(1, 9), st.data())
def test_categories_come_back(categories, data) -> None:  # type: ignore[no-untyped-def]
    codes = np.array(data.draw(st.lists(st.integers(0, categories - 1), min_size=1)), dtype=np.int32)
    assert (encoding.decode_ordered(encoding.encode_ordered(codes, categories), categories) == codes).all()
    assert (encoding.decode_one_hot(encoding.encode_one_hot(codes, categories)) == codes).all()


def test_unknown_category_is_minus_one() -> None:
    assert encoding.category_codes(["b", "x"], ["a", "b"]).tolist() == [1, -1]


@pytest.mark.parametrize("categories", [1, 2, 5])
def test_order_is_spread_evenly(categories: int) -> None:
    encoded = encoding.encode_ordered(np.arange(categories, dtype=np.int32), categories)
    assert_allclose(encoded, np.linspace(0, 1, categories) if categories > 1 else [0])
