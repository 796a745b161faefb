"""Many rows: fits by blocks, begun at a sample, with terms chosen on some rows, are those of all rows at once."""

import tracemalloc
from collections.abc import Iterator
from dataclasses import astuple, replace

import numpy as np
import pytest
from conftest import fingerprint
from threadpoolctl import threadpool_limits

from research.adjusted.timed_work import judged_files
from research.bench.timed_ladder import LIMITS, applications_of, drawn
from tasks.methods.adjusted.algorithm import design, estimators, examined, ladder, parts, propensity
from tasks.methods.adjusted.algorithm.design import Block, Control, build_design, complete_rows
from tasks.methods.adjusted.algorithm.examined import Examined, Rules, examine
from tasks.methods.adjusted.algorithm.ladder import Ladder, climb, some_rows
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.numerics import arrays
from tasks.numerics.statistics import regression

ROWS = 3000


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """As every stage has it; a second thread of linear algebra waits at full speed."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts as many rows, and what is summed at a time, is less than these."""
    for module in (regression, examined, ladder):
        monkeypatch.setattr(module, "MANY", 700)
    for module in (regression, design, ladder, estimators):
        monkeypatch.setattr(module, "BLOCK", 300)
    for module in (regression, propensity):
        monkeypatch.setattr(module, "CACHED", 128)
    monkeypatch.setattr(regression, "SAMPLE", 350)
    monkeypatch.setattr(arrays, "AT_ONCE", 500)
    monkeypatch.setattr(arrays, "CACHED", 128)


def climbed() -> Ladder:
    """With fixed effects of states and of two lenders, one of which a control tells, and a rung above them."""
    settings = AdjustedSettings(splits=1, terms="none", estimators=("logit", "lpm", "overlap"))
    of = applications_of(drawn(ROWS))
    state = np.arange(len(of.denied)) % 45 % 23.0
    product = of.blocks[0].controls[3].values
    places = Control("state", "category", np.where(state > 20, 20, state)), Control("lender", "category", product % 2)
    sex = Control("sex", "category", (np.arange(len(of.denied)) // 7 % 3).astype(np.float64))
    blocks = (*of.blocks, Block("place", places), Block("cross", (sex,)))
    cluster = np.where(state > 18, -1, state).astype(np.int32)
    return climb(replace(of, blocks=blocks, cluster=cluster), settings, 0.95, np.random.default_rng(3))


def judged() -> list[Examined]:
    return examine(drawn(ROWS), Rules(LIMITS), np.random.default_rng(4))


def test_the_ladder_is_the_same(many_rows_ladder: tuple[Ladder, Ladder]) -> None:
    once, by_blocks = many_rows_ladder
    assert len(once.effects) == len(by_blocks.effects)
    for one, other in zip(once.effects, by_blocks.effects, strict=True):
        assert (one.fit, one.reason, one.strongest) == (other.fit, other.reason, other.strongest)
        numbers = [(each.value, each.low, each.se, each.odds_ratio, each.rv, each.support) for each in (one, other)]
        np.testing.assert_allclose(numbers[1], numbers[0], rtol=1e-6, atol=1e-8)
        assert (one.unseen is None) is (other.unseen is None)
        if one.unseen and other.unseen:
            of_column = [[astuple(column) for column in each.columns.values()] for each in (one.unseen, other.unseen)]
            np.testing.assert_allclose(of_column[1], of_column[0], atol=1e-8)
    for first, second in zip(once.interactions, by_blocks.interactions, strict=True):
        assert first.column == second.column
        np.testing.assert_allclose([second.p, second.value], [first.p, first.value], rtol=1e-5, atol=1e-7)


@pytest.fixture
def many_rows_ladder(request: pytest.FixtureRequest) -> tuple[Ladder, Ladder]:
    once = climbed()
    request.getfixturevalue("many")
    return once, climbed()


def test_the_judged_effect_is_the_same(request: pytest.FixtureRequest) -> None:
    once = judged()
    request.getfixturevalue("many")
    for one, other in zip(once, judged(), strict=True):
        assert one.terms == other.terms
        assert one.effect is not None
        assert other.effect is not None
        np.testing.assert_allclose(other.effect.value, one.effect.value, atol=1e-8)
        np.testing.assert_allclose(other.effect.influence, one.effect.influence, atol=1e-8)
        for name, reading in one.readings.items():
            same = other.readings[name]
            np.testing.assert_allclose([same.value, same.error.se], [reading.value, reading.error.se], atol=1e-7)
        of_parts = [[(part.value, part.se, part.low) for part in each.parts] for each in (one, other)]
        np.testing.assert_allclose(of_parts[1], of_parts[0], atol=1e-7)


@pytest.mark.usefixtures("many")
def test_few_of_many_rows_are_of_every_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "LOOKED_AT_ROWS", 400)
    monkeypatch.setattr(ladder, "LOOKED_AT_MEMBERS", 50)
    applications = applications_of(drawn(ROWS))
    rows = complete_rows(applications)
    whole = build_design(applications, rows, "squared")
    few, of_few, used = some_rows(whole, applications, rows.used)
    counts = np.bincount(few.group)
    assert 200 < counts[0] <= 400
    assert all(25 < count <= 50 for count in counts[1:])
    assert len(of_few.denied) == len(few.y) == used.sum()
    assert (of_few.denied == few.y).all()
    assert np.isfinite(of_few.blocks[1].controls[0].values).all()


def test_packed_rows_are_those_of_the_matrix_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "AT_ONCE", 700)
    applications = applications_of(drawn(ROWS))
    rows = complete_rows(applications)
    x = build_design(applications, rows, "squared").x
    of_packed = build_design(applications, rows, "squared", packed=True)
    packed = of_packed.packed
    assert packed is not None
    assert len(of_packed.x) == 0
    assert packed.shape == x.shape
    np.testing.assert_array_equal(packed.dense(), x)
    odd, last = np.arange(1, len(x), 2), np.r_[1, x.shape[1] - 1]
    some = packed.taken(x[:, 1] == 0).taken(slice(3, None, 7)).having(last)
    np.testing.assert_array_equal(some[:], x[x[:, 1] == 0][3::7][:, last])
    np.testing.assert_array_equal(packed[odd], x[odd])
    np.testing.assert_array_equal(packed[:, 5], x[:, 5])
    wider = np.vstack([x.T, x[:, 2] * x[:, 3]]).T
    np.testing.assert_array_equal(packed.beside(wider[:, -1:].T)[:], wider)
    np.testing.assert_allclose(packed @ x[4], x @ x[4], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(packed.sums(x[:, :2]), x.T @ x[:, :2], rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(packed @ x[3:5].T, x @ x[3:5].T, rtol=1e-12, atol=1e-12)


def test_sums_of_packed_rows_are_those_of_the_matrix() -> None:
    applications = applications_of(drawn(ROWS))
    rows = complete_rows(applications)
    packed = build_design(applications, rows, "squared", packed=True).packed
    assert packed is not None
    x, y = packed.dense(), (np.arange(len(packed)) % 3 == 0).astype(np.float64)
    weight, label = np.linspace(0.5, 2, len(x)), (np.arange(len(x)) % 7).astype(np.int32)
    np.testing.assert_allclose(packed.squares(), x.T @ x, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(packed.squares(weight), x.T @ (x * weight[:, None]), rtol=1e-12, atol=1e-9)
    by_label = [(x * weight[:, None])[label == number].sum(axis=0) for number in range(7)]
    np.testing.assert_allclose(packed.sums_by(weight, label, 7), by_label, rtol=1e-12, atol=1e-9)
    b = np.linspace(-0.5, 0.5, x.shape[1])
    residual = y - 1 / (1 + np.exp(-(x @ b)))
    np.testing.assert_allclose(packed.score(b, y), x.T @ residual, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(packed.score(b, y, weight), x.T @ (residual * weight), rtol=1e-12, atol=1e-9)
    fewer = packed.having(np.r_[0, 2, 4 : x.shape[1] - 1])
    np.testing.assert_allclose(
        fewer.squares(weight),
        (x.T @ (x * weight[:, None]))[np.ix_(np.r_[0, 2, 4 : x.shape[1] - 1], np.r_[0, 2, 4 : x.shape[1] - 1])],
        rtol=1e-12,
        atol=1e-9,
    )


def test_packed_rows_without_a_fold_are_fitted_as_a_matrix_is() -> None:
    applications = applications_of(drawn(ROWS))
    rows = complete_rows(applications)
    of = build_design(applications, rows, "squared", packed=True)
    assert of.packed is not None
    x = of.packed.dense()
    fold = np.random.default_rng(5).integers(0, 3, (2, len(x))).astype(np.int32)
    fits = propensity.fit_without_folds(of.packed, of.y, fold, 3)
    for split, of_split in enumerate(fold):
        for number in range(3):
            inside = of_split != number
            alone = regression.fit_logit(x[inside], of.y[inside], ridge=propensity.RIDGE)
            np.testing.assert_allclose(fits[split][:, number], alone.coefficients, atol=1e-5)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_many_rows_rest_where_no_row_is_left_out(ridge: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begun at some rows, or at another fit, with the information of these: the same maximum in one pass of Newton."""
    applications = applications_of(drawn(ROWS))
    rows = complete_rows(applications)
    of = build_design(applications, rows, "squared", packed=True)
    assert of.packed is not None
    x = of.packed.dense()
    with monkeypatch.context() as few:
        few.setattr(regression, "SAMPLE", 10**6)
        once = regression.fit_logit(x, of.y, ridge=ridge)
    for matrix in (x, of.packed):
        for like in (None, once):
            fit = regression.fit_logit(matrix, of.y, ridge=ridge, like=like)
            assert fit.passes == 1
            np.testing.assert_allclose(fit.coefficients, once.coefficients, atol=1e-9)
            np.testing.assert_allclose(fit.inverse, once.inverse, atol=1e-9)


def test_packed_rows_are_fitted_as_a_matrix_is(monkeypatch: pytest.MonkeyPatch) -> None:
    applications = applications_of(drawn(ROWS))
    rows = complete_rows(applications)
    of = [build_design(applications, rows, "squared", packed=packed) for packed in (False, True)]
    weight = np.linspace(0.5, 2, len(of[0].y))
    for start in (None, np.full(of[0].x.shape[1], 0.1)):
        one = regression.fit_logit(of[0].matrix, of[0].y, start, 1e-3, weight)
        with monkeypatch.context() as many:
            many.setattr(regression, "MANY", 10)
            other = regression.fit_logit(of[1].matrix, of[1].y, start, 1e-3, weight)
        assert one.passes == other.passes
        np.testing.assert_allclose(other.coefficients, one.coefficients, atol=1e-11)
        np.testing.assert_allclose(other.inverse, one.inverse, atol=1e-11)
        np.testing.assert_allclose(other.fitted, one.fitted, atol=1e-11)


def test_the_judged_effect_of_many_rows_takes_the_memory_of_its_columns_and_those_of_the_reference_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (regression, examined, ladder):
        monkeypatch.setattr(module, "MANY", 8_000)
    monkeypatch.setattr(parts, "CHUNK", 2_048)
    monkeypatch.setattr(arrays, "AT_ONCE", 2_048)
    files = judged_files(100_000)
    tracemalloc.start()
    (examined_group,) = examine(files, Rules(LIMITS, selected=False, beside=False), np.random.default_rng(4))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(examined_group.parts) > 50
    columns = 1 + 26 * 2 + 4 * 3
    assert peak < 2.2 * 8 * len(files.denied) * columns


def of_places() -> list[dict[str, object]]:
    """With branches, a postcode, a price of homes with gaps, and clusters."""
    files, at = drawn(1_500), np.arange(1_500)
    price = np.where(at % 9 == 0, np.nan, 100 + at % 7 + at % 1.5)
    places = (*files.places, Control("code", "number", 1_000.0 + at % 11), Control("price", "number", price))
    given = replace(files, places=places, through=frozenset({"product"}), cluster=(at % 40).astype(np.int32))
    return [vars(each) for each in examine(given, Rules(LIMITS, fewest=5), np.random.default_rng(4))]


RESULTS = {
    "ladder": lambda: vars(climbed()),
    "judged": lambda: [vars(each) for each in judged()],
    "places": of_places,
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_stay_what_they_are(name):
    """Kept from an earlier run: every field of a design. A number that moves is seen."""
    assert fingerprint(RESULTS[name]()) == pytest.approx(HELD[name], rel=1e-9, abs=1e-5)


HELD = {
    "ladder": {
        "effects": 66390.120283,
        "support": 1363.429178,
        "interactions": 15078.251375,
        "left_out": 668.275066,
        "used": 13.35751,
    },
    "judged": {"0": 104999.163084, "1": 103408.186843, "2": 100240.357713, "3": 91650.596549},
    "places": {"0": 53548.860988, "1": 51921.074753, "2": 48907.909428, "3": 46473.824752},
}
