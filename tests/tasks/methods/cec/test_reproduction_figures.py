"""Table 3, Figure 6 and the drawings of the CEC paper, worked by hand on made-up models."""

import numpy as np
import pytest

from research.cec import data, models
from research.cec.models import FoldOutcome
from research.figures import Cell
from tasks.methods.cec.algorithm.mitigations import Outcome, Variant
from tasks.metrics.compare.algorithm import Performance

REGIMES = {f"regime_{name}_percent": 25.0 for name in "abcd"}


def told(f1, eo_gap, cec=None, rate=0.5):
    """Figures of a model on one fold; without a CEC it has no logit, and with a rate of 1 it is collapsed."""
    return FoldOutcome(Performance(0.7, f1, 0.7, rate, eo_gap, 0.0), {} if cec is None else {"cec": cec})


class TestNonDomination:
    def test_counts_are_those_of_hand(self):
        """Fold 1: `best` beats `worse`; `drawn` decides best. Fold 2: `worse` has the lowest CEC, collapsed."""
        found = models.non_domination_cells(
            {
                "best": [told(0.8, 0.1, 0.3), told(0.8, 0.1, 0.3)],
                "worse": [told(0.7, 0.2, 0.4), told(0.7, 0.2, 0.1, rate=1.0)],
                "drawn": [told(0.9, 0.0), told(0.7, 0.1)],
            }
        )
        names = ("best", "worse", "drawn")
        assert [found[Cell("non_dominated_percent", name)] for name in names] == [100, 50, "no logit"]
        assert [found[Cell("non_dominated_f1_eo_percent", name)] for name in names] == [50, 0, 50]
        assert [found[Cell("non_dominated_uncollapsed_percent", name)] for name in ("best", "worse")] == [100, 0]

    def test_a_model_that_a_fold_lacks_neither_counts_nor_competes(self):
        found = models.non_domination_cells({"one": [told(0.5, 0.5, 0.5)], "gone": [None]})
        assert found[Cell("non_dominated_percent", "one")] == 100
        assert {cell.group for cell in found} == {"one"}


def outcomes(cec, regime_b, f1=0.8):
    """One fold of a grid of two lambda_EO and three lambda_CEC."""
    for eo in (0.1, 1.0):
        for at, weight in enumerate((0.1, 0.5, 1.0)):
            figures = {**REGIMES, "cec": cec[at] + eo / 100, "flip_percent": 1.0, "regime_b_percent": regime_b[at]}
            performance = Performance(0.7, f1, 0.7, 0.99 if at == 2 else 0.5, 0.1, 0.1)
            yield Outcome(0, Variant(f"EO {eo:g}, CEC {weight:g}", eo, weight), None, performance, figures)


class TestLambdaGrid:
    def test_what_is_asked_is_said_of_the_worst_pair(self):
        found = models.lambda_grid_cells(models.grid_of(list(outcomes((0.5, 0.3, 0.2), (60, 40, 20)))))
        assert found[Cell("cec_fall", "lambda_EO 0.1")] == pytest.approx(0.2)
        assert found[Cell("least_regime_b_percent", "lambda_CEC 0.1")] == 60
        assert found[Cell("most_regime_b_percent", "lambda_CEC from 1")] == 20
        assert found[Cell("least_f1", "lambda_CEC to 1")] == 0.8
        collapsed = [value for cell, value in found.items() if cell.quantity == "collapsed_folds"]
        assert collapsed == [0, 0, 1, 0, 0, 1]

    def test_a_rise_is_a_negative_fall(self):
        found = models.lambda_grid_cells(models.grid_of(list(outcomes((0.3, 0.5, 0.2), (60, 40, 20)))))
        assert found[Cell("cec_fall", "lambda_EO 1")] == pytest.approx(-0.2)

    def test_a_drawing_has_a_curve_for_each_lambda_eo(self):
        drawings = list(models.drawings(models.grid_of(list(outcomes((0.5, 0.3, 0.2), (60, 40, 20))))))
        assert [each.name for each in drawings] == [name for name, _ in models.DRAWN.values()]
        cec = next(each for each in drawings if each.name == "lambda-grid-cec")
        assert [curve.name for curve in cec.curves] == ["lambda_EO 0.1", "lambda_EO 1"]
        assert cec.curves[0].x == (0.1, 0.5, 1.0)
        assert np.allclose(cec.curves[0].y, [0.501, 0.301, 0.201])


def test_models_without_a_cec_are_in_no_drawing_of_regimes():
    found = {Cell(f"regime_{name}_percent", "net"): 25.0 for name in "abcd"}
    found |= {Cell("flip_percent", "net"): 5.0, Cell("cec", "net"): 0.3, Cell("cec", "drawn"): "no logit"}
    [plane] = data.plane(found, ("net", "drawn"))
    assert [(c.name, c.x, c.y) for c in plane.curves] == [("net", (5.0,), (0.3,))]
    [shares] = data.shares(found, ("net", "drawn"), "regimes-by-model", "Figure 5")
    assert [(c.name, c.y) for c in shares.curves] == [("net", (25.0, 25.0, 25.0, 25.0))]
    assert list(data.plane({}, ("net",))) == []
