"""Distances between applicants: by hand, by a clear loop, and the laws that a distance keeps."""

import math
import statistics
from dataclasses import replace

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from schemas.errors import DataQualityError, SpecError
from schemas.terms import Kind
from tasks.methods.cst.algorithm import neighbours
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.encoding import Columns

QUICK = settings(deadline=None, max_examples=examples(50))

RAW = CstSettings(clip=False)

NAMES = ("income", "band", "purpose", "married")


def loans(values) -> Columns:
    """A number, an order of four, a category of three and a binary one."""
    kinds = (Kind.CONTINUOUS, Kind.ORDINAL, Kind.NOMINAL, Kind.BINARY)
    categories = ((), ("low", "mid", "high", "top"), ("home", "car", "boat"), ("no", "yes"))
    return Columns(NAMES, kinds, categories, np.array(values, float).reshape(-1, 4))


def drawn(seed: int, n: int) -> Columns:
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, size, n) for size in (4, 3, 2)]
    return loans(np.column_stack([np.round(rng.lognormal(4, 1, n), 1), *codes]))


def half(columns: Columns, seed: int = 0):
    labels = np.arange(len(columns.values)) % 2 == 0
    return np.random.default_rng(seed).permutation(labels)


def fitted(columns: Columns, options=RAW) -> neighbours.Scale:
    return neighbours.fit(columns, options, half(columns), half(columns, 1))


def away(space: neighbours.Space, i: int, j: int) -> float:
    """The distance of two rows, in the documented order."""
    apart = space.nominal[i] != space.nominal[j] if space.overlap else abs(space.nominal[i] - space.nominal[j])
    return (float(apart.sum()) + sum(abs(space.numeric[i] - space.numeric[j]))) / space.divisor


def test_by_hand():
    columns = loans([[10, 0, 0, 1], [30, 3, 0, 0], [50, 1, 2, 1]])  # ranges 40 and 3
    space = neighbours.place(columns, fitted(columns))
    assert away(space, 0, 1) == pytest.approx((20 / 40 + 3 / 3 + 0 + 1) / 4)
    assert away(space, 0, 2) == pytest.approx((40 / 40 + 1 / 3 + 1 + 0) / 4)
    assert away(replace(space, divisor=5.0), 0, 2) == pytest.approx((40 / 40 + 1 / 3 + 1 + 0) / 5)


@given(st.integers(0, 2**32 - 1), st.integers(3, 30), st.sampled_from(["overlap", "hvdm"]), st.booleans())
@QUICK
def test_agrees_with_a_loop_over_attributes(seed, n, kind, z_scores):
    columns = drawn(seed, n)
    favourable = half(columns)
    scaling = "z_scores" if z_scores else "range"
    options = CstSettings(clip=False, distance=kind, scaling=scaling)
    space = neighbours.place(columns, neighbours.fit(columns, options, favourable, half(columns, 1)))
    i, j = 0, n - 1
    parts = []
    for column, values in zip(range(4), columns.values.T, strict=True):
        sd = statistics.pstdev(values.tolist())
        unit = 4 * sd if kind == "hvdm" else sd if z_scores else max(values) - min(values)
        if column < 2:
            parts.append(abs(values[i] - values[j]) / unit if max(values) > min(values) else 0.0)
        elif kind == "overlap":
            parts.append(float(values[i] != values[j]))
        else:  # N2 of Wilson and Martinez, over both decisions
            here, there = favourable[values == values[i]], favourable[values == values[j]]
            shares = [(here.mean(), there.mean()), (1 - here.mean(), 1 - there.mean())]
            parts.append(math.sqrt(sum((a - b) ** 2 for a, b in shares)))
    assert away(space, i, j) == pytest.approx(sum(parts) / 4)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["overlap", "hvdm", "propensity"]), st.booleans())
@QUICK
def test_keeps_the_laws_of_a_distance(seed, kind, clip):
    columns = drawn(seed, 40)
    space = neighbours.place(columns, fitted(columns, CstSettings(distance=kind, clip=clip)))
    for i, j, other in np.random.default_rng(seed).integers(0, 40, (5, 3)):
        assert away(space, i, i) == 0
        assert away(space, i, j) == away(space, j, i) >= 0
        assert away(space, i, j) <= away(space, i, other) + away(space, other, j) + 1e-12
        if kind == "overlap":
            assert away(space, i, j) <= 1 + 1e-12


@given(st.integers(0, 2**32 - 1), st.sampled_from(["range", "z_scores"]))
@QUICK
def test_neither_units_nor_order_of_rows_matter(seed, scaling):
    columns = drawn(seed, 30)
    options = CstSettings(clip=False, scaling=scaling)
    one = neighbours.place(columns, fitted(columns, options))
    shifted = replace(columns, values=columns.values * [1000, 1, 1, 1] + [5, 0, 0, 0])
    other = neighbours.place(shifted, fitted(shifted, options))
    assert away(other, 0, 1) == pytest.approx(away(one, 0, 1))
    order = np.random.default_rng(seed).permutation(30)
    other = columns.rows(order)
    assert np.array_equal(neighbours.place(other, fitted(other, options)).numeric, one.numeric[order])  # to the bit


def test_clips_outliers_and_counts_them():
    income = np.append(np.arange(1.0, 200.0), 1e6)
    columns = loans(np.column_stack([income, np.arange(200) % 4, np.zeros(200), np.zeros(200)]))
    raw, clipped = fitted(columns), fitted(columns, CstSettings())
    assert not neighbours.beyond(columns, CstSettings(clip=False))[1].any()
    names, beyond = neighbours.beyond(columns, CstSettings())
    assert (names, beyond.sum(axis=0).tolist()) == (columns.names[:1], [3])  # 1, and from 199 on; never of orders
    assert (clipped.low[0], clipped.high[0]) == (2, 198)
    one, other = neighbours.place(columns, raw).numeric[:, 0], neighbours.place(columns, clipped).numeric[:, 0]
    assert abs(one[100] - one[0]) < 0.001
    assert other[100] - other[0] == pytest.approx(99 / 196)
    assert other[-1] == other[-2] == 1


def test_z_scores_are_those_of_scikit_learn():
    columns = drawn(5, 300)
    space = neighbours.place(columns, fitted(columns, CstSettings(clip=False, scaling="z_scores")))
    expected = StandardScaler().fit_transform(columns.values[:, :2])
    np.testing.assert_allclose(space.numeric, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "anew"),
    [
        ({"scaling": "z_scores"}, True),
        ({"scaling": "range"}, False),
        ({"scaling": "z_scores", "distance": "hvdm"}, False),
        ({"scaling": "z_scores", "distance": "propensity"}, False),
    ],
)
def test_only_z_scores_are_fitted_to_the_imagined_data(options, anew):
    columns = drawn(1, 50)
    imagined = replace(columns, values=columns.values + np.array([100, 0, 0, 0]))
    options, labels = CstSettings(clip=False, **options), (half(columns), half(columns, 1))
    factual = neighbours.fit(columns, options, *labels)
    scale = neighbours.fit_imagined(factual, imagined, options, *labels)
    assert (scale is not factual) == anew
    moved = neighbours.place(imagined, scale).numeric - neighbours.place(columns, factual).numeric
    assert np.allclose(moved, 0) == anew  # a shift of everybody disappears where each set has a scale of its own


def test_counterfactuals_may_lie_outside_the_range_of_the_data():
    columns = loans([[10, 0, 0, 0], [20, 0, 0, 0]])
    space = neighbours.place(loans([[40, 0, 0, 0]]), fitted(columns))
    assert space.numeric[0, 0] == 3


@pytest.mark.parametrize("kind", ["overlap", "hvdm", "propensity"])
@pytest.mark.parametrize("scaling", ["range", "z_scores"])
@pytest.mark.parametrize("value", [0.1, 1e9, 3])
def test_constant_columns_tell_nobody_apart(kind, scaling, value):
    columns = loans([[value, 2, 1, 0]] * 7)
    scale = fitted(columns, CstSettings(distance=kind, scaling=scaling))
    space = neighbours.place(loans([[value, 2, 1, 0], [value + 1, 0, 1, 0]]), scale)
    assert away(space, 0, 1) == 0


def test_categories_decided_on_alike_are_alike():
    columns = loans([[1, 0, c, 0] for c in (0, 0, 1, 1, 2, 2)])
    favourable = np.array([1, 0, 0, 1, 1, 1], bool)
    scale = neighbours.fit(columns, CstSettings(distance="hvdm"), favourable, favourable)
    space = neighbours.place(columns, scale)
    assert away(space, 0, 2) == 0  # half of either
    assert away(space, 0, 4) == pytest.approx(math.sqrt(0.5**2 + 0.5**2) / 4)


def test_a_category_that_nobody_has_lies_at_the_average():
    columns = loans([[1, 0, c, 0] for c in (0, 0, 0, 1)])
    favourable = np.array([1, 1, 1, 0], bool)
    scale = neighbours.fit(columns, CstSettings(distance="hvdm"), favourable, favourable)
    assert scale.positions is not None
    np.testing.assert_allclose(scale.positions[0] / np.sqrt(2), [1, 0, 0.75])


def test_propensity_is_the_score_of_scikit_learn():
    columns = drawn(2, 200)
    protected = half(columns, 3)
    options = CstSettings(distance="propensity", clip=False)
    space = neighbours.place(columns, neighbours.fit(columns, options, half(columns), protected))
    numbers = StandardScaler().fit_transform(columns.values[:, :2])
    one_hot = np.hstack([columns.values[:, [2]] == np.arange(3), columns.values[:, [3]] == np.arange(2)])
    predictors = np.hstack([numbers, one_hot])
    model = LogisticRegression(max_iter=1000).fit(predictors, protected)
    assert space.shape == (1, 0)
    np.testing.assert_allclose(space.numeric[:, 0], model.predict_proba(predictors)[:, 1], atol=1e-6)


def test_propensity_needs_two_groups():
    columns = drawn(2, 20)
    with pytest.raises(DataQualityError, match="inside and outside the protected group"):
        neighbours.fit(columns, CstSettings(distance="propensity"), half(columns), np.ones(20, bool))


def test_looks_at_all_features_but_the_protected():
    columns = drawn(0, 5)
    assert neighbours.looked_at(columns, CstSettings(), ("married",)).names == ("income", "band", "purpose")
    asked = neighbours.looked_at(columns, CstSettings(attributes=("purpose", "income", "married")), ("married",))
    assert asked.names == ("purpose", "income")
    assert asked.kinds == (Kind.NOMINAL, Kind.CONTINUOUS)
    assert asked.categories == (columns.categories[2], ())
    assert np.array_equal(asked.values, columns.values[:, [2, 0]])


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (("incom",), "'incom', which is no feature; did you mean 'income'"),
        (("income", "income"), "'income' twice"),
        (("married",), "no attribute is left for the distance besides married"),
    ],
)
def test_refuses_attributes_that_cannot_be_looked_at(attributes, message):
    with pytest.raises(SpecError, match=message):
        neighbours.looked_at(drawn(0, 5), CstSettings(attributes=attributes), ("married",))


@pytest.mark.parametrize(
    ("column", "missing", "message"),
    [(0, 2, "'income' is missing or infinite in 2 of 6"), (2, 1, "'purpose' is"), (1, 6, "'band' has no value in any")],
)
def test_refuses_missing_values(column, missing, message):
    columns = drawn(0, 6)
    scale = fitted(columns)
    values = columns.values.copy()
    values[:missing, column] = np.nan
    with pytest.raises(DataQualityError, match=message):
        fitted(replace(columns, values=values))
    with pytest.raises(DataQualityError, match=message):
        neighbours.place(replace(columns, values=values), scale)
