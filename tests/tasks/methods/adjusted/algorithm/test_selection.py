"""Choice of terms: a planted product or cut-off is found, noise is not, and nothing else moves where none is chosen."""

from dataclasses import replace

import numpy as np
import pytest
from interacting_lenders import LENDERS

from tasks.methods.adjusted.algorithm import ladder
from tasks.methods.adjusted.algorithm.design import Applications, Block, Control, Design, build_design, complete_rows
from tasks.methods.adjusted.algorithm.estimators import Effect
from tasks.methods.adjusted.algorithm.expected import with_reference_terms
from tasks.methods.adjusted.algorithm.ladder import added, climb, terms_of, with_terms
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.numerics.arrays import Floats
from tasks.numerics.statistics.regression import fit_logit

N = 3000


def lender(index, seed: int = 0, n: int = N, tells=lambda a, b, kind: 0.0) -> Applications:  # type: ignore[no-untyped-def]
    """Two numbers and a category of three levels; ``index`` gives log odds of denial, ``tells`` of the group."""
    rng = np.random.default_rng(seed)
    a, b, kind = rng.normal(size=n), rng.normal(size=n), rng.choice(3, n, p=(0.5, 0.3, 0.2))
    group = (rng.random(n) < 1 / (1 + np.exp(1 - tells(a, b, kind)))).astype(np.int32)
    denied = rng.random(n) < 1 / (1 + np.exp(-index(a, b, kind)))
    controls = (
        Control("a", "number", 40 + 10 * a),
        Control("b", "number", 80 + 12 * b),
        Control("kind", "category", kind.astype(float), ("x", "y", "z")),
    )
    return Applications(denied, group, ("most", "few"), 0, (Block("all", controls),))


def chosen(given: Applications) -> tuple[Design, Design]:
    rows = complete_rows(given)
    design = build_design(given, rows, "squared")
    return design, with_terms(design, given, rows.used, 1)[0]


def additive(a: Floats, b: Floats, kind: Floats) -> Floats:
    return -1 + 0.7 * a - 0.5 * b + 0.4 * (kind == 1)


def test_a_planted_product_is_the_first_term() -> None:
    _, found = chosen(lender(lambda a, b, kind: -1 + 0.8 * a * b))
    assert found.terms[0] == "a x b"


def test_a_planted_product_with_a_level_is_found() -> None:
    _, found = chosen(lender(lambda a, b, kind: -1.5 + 1.2 * a * (kind == 2)))
    assert found.terms[0] == "a x kind: z"
    base = chosen(lender(lambda a, b, kind: -1.5 + 1.2 * a * (kind == 0)))[1]
    assert base.terms[0] == "a x kind: x"


@pytest.mark.parametrize("last", [True, False])
def test_a_cut_off_at_one_level_is_found_whichever_control_comes_first(last: bool) -> None:
    given = lender(lambda a, b, kind: np.where((kind == 2) & (a > 0.5), 3.0, -2.0))
    controls = given.blocks[0].controls
    given = replace(given, blocks=(Block("all", controls if last else controls[::-1]),))
    rows = complete_rows(given)
    found = with_reference_terms(build_design(given, rows, "squared"), given, rows.used)
    assert any("a cut at" in term and " x " in term and "kind: z" in term for term in found.terms), found.terms


@pytest.mark.parametrize("shift", [5.0, -5.0], ids=["few approvals", "few denials"])
def test_few_of_either_decision_leave_no_room_for_terms(shift: float) -> None:
    given = lender(lambda a, b, kind: shift + 1.5 * a * b)
    rows = complete_rows(given)
    design = build_design(given, rows, "squared")
    assert with_reference_terms(design, given, rows.used) is design


def test_a_cut_off_is_a_hinge_near_it() -> None:
    _, found = chosen(lender(lambda a, b, kind: np.where(a > 1.2, 2.5, -2.0)))
    assert found.terms[0].startswith("a above 5") or found.terms[0].startswith("a above 4")
    assert " x " not in found.terms[0]


def test_what_tells_the_group_alone_is_found_too() -> None:
    found = chosen(lender(additive, tells=lambda a, b, kind: 0.8 * a * b))[1]
    assert "a x b" in found.terms


def test_noise_is_seldom_chosen() -> None:
    """Two equations at 5 %, the first asked twice: 40 lenders give some 4 with a term, and 11 or more once in 900."""
    assert sum(bool(chosen(lender(additive, seed, n=1500))[1].terms) for seed in range(40)) <= 10


def test_no_term_where_events_are_few() -> None:
    rare = lender(lambda a, b, kind: -5 + 1.5 * a * b, n=1500)
    assert rare.denied.sum() < 8 * ladder.EVENTS + 100
    few = replace(rare, denied=rare.denied & (np.cumsum(rare.denied) <= 70))
    design, found = chosen(few)
    assert found is design


def test_terms_change_no_effect_by_being_orthogonal() -> None:
    """The same logit on the terms themselves has the same coefficient of the group."""
    given = lender(lambda a, b, kind: -1 + 0.8 * a * b, tells=lambda a, b, kind: 0.5 * a * b)
    rows = complete_rows(given)
    design = build_design(given, rows, "squared")
    terms = terms_of(design, given, rows.used, 1)
    wide = added(design, terms, [3, 12, 20], 1)
    plain = np.column_stack([design.x, terms.values(slice(None), np.array([3, 12, 20]))])
    own, other = (fit_logit(x, design.y).coefficients[1] for x in (wide.x, plain))
    assert own == pytest.approx(other, abs=1e-8)
    left = wide.x[:, -3:].T @ np.delete(design.x, 1, axis=1)
    assert np.abs(left).max() < 1e-7 * len(design.y)


def test_which_products_there_are() -> None:
    """Of a hinge with a level alone the one above the median; of two hinges those of one rank; of a number no hinge."""
    given = lender(additive)
    rows = complete_rows(given)
    design = build_design(given, rows, "squared")
    terms = terms_of(design, given, rows.used, 1)
    hinges = {
        name: [f"{name} {side} {np.quantile(values, share):.3g}" for side, share in SIDES]
        for name, values in (("a", given.blocks[0].controls[0].values), ("b", given.blocks[0].controls[1].values))
    }
    levels = ("kind: y", "kind: z", "kind: x")
    found = {terms.name(k) for k in range(len(terms.first))}
    products = {"a x b", *(f"{name} x {level}" for name in "ab" for level in levels)}
    products |= {f"{hinges[name][0]} x {level}" for name in "ab" for level in levels}
    products |= {
        f"{first} x {other}" for rank in (0, 2) for first in hinges["a"][rank:][:2] for other in hinges["b"][rank:][:2]
    }
    assert {name for name in found if " x " in name} == products
    assert len([name for name in found if " x " not in name]) == 2 * len(ladder.KNOTS)


def test_of_many_terms_those_stay_whose_values_vary_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moments give the same choice as the values themselves, ties and terms that do not vary among them."""
    given = lender(additive)
    first = given.blocks[0].controls[0]
    twice = replace(first, name="c")
    rare = Control("d", "number", (np.arange(N) < ladder.RARE).astype(np.float64))
    given = replace(given, blocks=(Block("all", (*given.blocks[0].controls, twice, rare)),))
    rows = complete_rows(given)
    design = build_design(given, rows, "squared")
    every = terms_of(design, given, rows.used, 1)
    spread = every.values(slice(None)).std(axis=0)
    order = np.argsort(-np.where(every.first == 0, np.inf, spread), kind="stable")
    for most in (20, 30, 31):
        monkeypatch.setattr(ladder, "MOST", most)
        kept = terms_of(design, given, rows.used, 1)
        expected = every.kept(np.isin(np.arange(len(spread)), order[:most]))
        assert [kept.name(k) for k in range(most)] == [expected.name(k) for k in range(most)]


SIDES = (("above", 0.5), ("below", 0.5), ("above", 0.75), ("below", 0.25))


def test_the_level_of_a_hinge_is_a_level_of_its_number() -> None:
    """A term is 0 up to the quantile in its name, in the user's units, and rises from there."""
    given = lender(additive)
    rows = complete_rows(given)
    terms = terms_of(build_design(given, rows, "squared"), given, rows.used, 1)
    values = given.blocks[0].controls[0].values
    alone = {
        terms.name(k): k
        for k in range(len(terms.first))
        if terms.name(k).startswith("a above") and "x" not in terms.name(k)
    }
    assert len(alone) == len(ladder.KNOTS)
    for share in ladder.KNOTS:
        limit = np.quantile(values, share)
        column = terms.values(slice(None), np.array([alone[f"a above {limit:.3g}"]]))[:, 0]
        assert (column > 0).mean() == pytest.approx(1 - share, abs=0.01)
        assert values[column > 0].min() > limit - 0.2
        assert values[column == 0].max() < limit + 0.2


def test_a_product_of_hinges_is_above_zero_beyond_both_and_zero_elsewhere() -> None:
    given = lender(additive)
    rows = complete_rows(given)
    terms = terms_of(build_design(given, rows, "squared"), given, rows.used, 1)
    a, b, kind = (control.values for control in given.blocks[0].controls)
    of_name = {terms.name(k): terms.values(slice(None), np.array([k]))[:, 0] for k in range(len(terms.first))}
    for first, other in ((0.5, 0.5), (0.75, 0.75)):
        product = of_name[f"a above {np.quantile(a, first):.3g} x b above {np.quantile(b, other):.3g}"]
        np.testing.assert_array_equal(product > 0, (a > np.quantile(a, first)) & (b > np.quantile(b, other)))
        assert product.min() == 0
    for first, other in ((0.5, 0.5), (0.25, 0.25)):
        product = of_name[f"a below {np.quantile(a, first):.3g} x b below {np.quantile(b, other):.3g}"]
        np.testing.assert_array_equal(product > 0, (a < np.quantile(a, first)) & (b < np.quantile(b, other)))
        assert product.min() == 0
    level = of_name[f"a above {np.quantile(a, 0.5):.3g} x kind: z"]
    np.testing.assert_array_equal(level > 0, (a > np.quantile(a, 0.5)) & (kind == 2))


def test_a_product_is_a_column_of_both_its_controls() -> None:
    _, found = chosen(lender(lambda a, b, kind: -1 + 0.8 * a * b))
    place = found.names.index("a x b")
    assert {found.control[place], found.partners[place]} == {0, 1}


def test_steps_are_those_of_clear_least_squares() -> None:
    """The first step's best score is that of every term by itself, each beside the columns."""
    given = lender(lambda a, b, kind: -1 + 0.8 * a * b)
    rows = complete_rows(given)
    design = build_design(given, rows, "squared")
    terms = terms_of(design, given, rows.used, 1)
    equation = ladder._membership(design, 1, 1)
    gram, score = ladder._products(equation, terms), ladder._scores(equation, terms)
    p = equation.x.shape[1]
    assert equation.variance == pytest.approx(np.mean(equation.residual**2))
    for k in (0, 7, 25):
        column = terms.values(slice(None), np.array([k]))[:, 0]
        left = column - equation.x @ np.linalg.lstsq(equation.x, column, rcond=None)[0]
        assert score[k] == pytest.approx(left @ equation.residual, abs=1e-7)
        beside = gram[p + k, p + k] - gram[:p, p + k] @ np.linalg.solve(gram[:p, :p], gram[:p, p + k])
        assert beside == pytest.approx(left @ left, rel=1e-8)


def effects(given: Applications, **settings: object) -> tuple[Effect, ...]:
    asked = AdjustedSettings.model_validate({"splits": 2, **settings})
    return climb(given, asked, 0.95, np.random.default_rng(1)).effects


def test_without_a_term_every_estimate_is_the_same() -> None:
    given = next(lender(additive, seed) for seed in range(20) if not chosen(lender(additive, seed))[1].terms)
    assert repr(effects(given)) == repr(effects(given, terms="none"))


def test_terms_are_of_the_judged_rung_alone_and_are_named() -> None:
    given = lender(lambda a, b, kind: -1 + 0.8 * a * b)
    split = replace(
        given, blocks=(Block("terms", given.blocks[0].controls[:2]), Block("more", given.blocks[0].controls[2:]))
    )
    with_, without = effects(split, primary="terms"), effects(split, primary="terms", terms="none")
    for one, other in zip(with_, without, strict=True):
        assert ("terms added: a x b" in one.reason) == (one.rung == 1)
        if one.rung != 1:
            assert one.value == pytest.approx(other.value, abs=1e-9)
    assert repr(effects(given, form="linear")) == repr(effects(given, form="linear", terms="none"))


def test_a_lender_of_layered_risk_is_not_called_a_breach() -> None:
    """Denied if both ratios are high, which go together in one group: no effect, and 8 points without the terms."""
    draw, found = LENDERS["layered, correlation 0.8 and -0.2"], []
    for run in range(6):
        given = draw(3000, np.random.default_rng([7, run])).applications
        both = [effects(given, terms=terms, estimators=("logit",)) for terms in ("none", "selected")]
        found.append([next(e for e in each if e.rung == 1 and e.average_over == "own") for each in both])
    values = np.array([[each.value for each in pair] for pair in found])
    assert values[:, 0].mean() > 0.06
    assert abs(values[:, 1].mean()) < 0.02
    assert sum(pair[1].value - 1.645 * pair[1].se > 0.02 for pair in found) <= 1


def test_of_hinges_without_a_product_each_has_its_own_rows_and_spread() -> None:
    factors = np.stack([np.ones(5), np.array([0.0, 0, 1, 2, 3])])
    first, second = np.zeros(1, np.int32), np.ones(1, np.int32)
    terms = ladder.Terms(factors, first, second, ("", "income above 2"), np.array([-1, 0]))
    count, spread, _ = ladder._spreads(terms)
    assert (count.tolist(), spread.tolist()) == ([3], pytest.approx([factors[1].std()]))


def test_cross_products_by_levels_are_those_of_all_rows() -> None:
    given = lender(additive)
    rows = complete_rows(given)
    design = build_design(given, rows, "squared")
    terms = terms_of(design, given, rows.used, 1)
    equation = replace(
        ladder._denial(design, 1), rows=(keep := np.arange(N) % 3 > 0), x=design.x[keep], weight=design.y[keep] + 0.5
    )
    every = np.hstack([equation.x, terms.values(keep)])
    plain = every.T @ (every * equation.weight[:, None])
    np.testing.assert_allclose(ladder._products(equation, terms), plain, rtol=1e-9, atol=1e-8)
    category, level = terms.levels
    assert [terms.names[place] for place in category] == ["kind: y", "kind: z", "kind: x"]
    assert sorted(np.unique(level)) == [0, 1, 2]
