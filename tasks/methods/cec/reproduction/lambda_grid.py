"""Trains the grid of both lambdas on German credit (Figure 6), and what the paper's text says of it.

The paper draws six heat maps without numbers; their reading in its text is asked of ours. Scope: the figures and the
drawings of the grid. Its variants: ``algorithm.training.frontier``.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tasks.methods.cec.algorithm.training.folds import Outcome
from tasks.methods.cec.algorithm.training.frontier import Variant
from tasks.methods.cec.reproduction.obtained import Told, means
from tasks.proof.drawings import Drawing, curves
from tasks.proof.lines import Cell, Value

Grid = Mapping[tuple[float, float], Mapping[str, float]]
"""By lambda_EO and lambda_CEC: means over folds, and the number of collapsed folds."""

DRAWN: Final = {
    "f1": ("lambda-grid-f1", "F1"),
    "eo_gap": ("lambda-grid-eo-gap", "EO gap"),
    "cec": ("lambda-grid-cec", "CEC"),
    "flip_percent": ("lambda-grid-flips", "pairs with other predictions, percent"),
    "regime_a_percent": ("lambda-grid-regime-a", "pairs in regime A, percent"),
    "regime_b_percent": ("lambda-grid-regime-b", "pairs in regime B, percent"),
    "collapsed_folds": ("lambda-grid-collapsed-folds", "collapsed folds"),
}
"""Of a quantity: the name of its drawing, and the title of what is drawn."""

LEAST, HALF, ONE = 0.1, 0.5, 1.0
"""The values of lambda_CEC that the paper's text is about."""


def grid_of(outcomes: Sequence[Outcome]) -> Grid:
    """Returns means over folds of every pair of lambdas."""
    of: dict[Variant, list[Told]] = {}
    for each in outcomes:
        of.setdefault(each.variant, []).append(Told(each.performance, each.consistency))
    return {(variant.lambda_eo, variant.lambda_cec): means(several) for variant, several in of.items()}


def cells(grid: Grid) -> Mapping[Cell, Value]:
    """Returns what is asked of the grid, each by its worst lambda_EO, and the collapsed folds of every pair."""
    found: dict[Cell, Value] = {
        Cell("cec_fall", f"lambda_EO {eo:g}"): grid[eo, LEAST]["cec"] - grid[eo, HALF]["cec"]
        for eo in dict.fromkeys(eo for eo, _ in grid)
    }
    little = [each["regime_b_percent"] for (_, cec), each in grid.items() if cec == LEAST]
    much = [each["regime_b_percent"] for (_, cec), each in grid.items() if cec >= ONE]
    moderate = [each["f1"] for (_, cec), each in grid.items() if cec <= ONE]
    found[Cell("least_regime_b_percent", "lambda_CEC 0.1")] = min(little)
    found[Cell("most_regime_b_percent", "lambda_CEC from 1")] = max(much)
    found[Cell("least_f1", "lambda_CEC to 1")] = min(moderate)
    return found | dict(_collapsed(grid))


def _collapsed(grid: Grid) -> Iterator[tuple[Cell, Value]]:
    for (eo, cec), each in grid.items():
        yield Cell("collapsed_folds", f"lambda_EO {eo:g}, lambda_CEC {cec:g}"), each["collapsed_folds"]


def drawings(grid: Grid) -> Iterator[Drawing]:
    """Yields a drawing for each quantity: a curve over lambda_CEC for each lambda_EO."""
    places = list(dict.fromkeys(cec for _, cec in grid))
    for quantity, (name, title) in DRAWN.items():
        series = {
            f"lambda_EO {eo:g}": [grid[eo, cec][quantity] for cec in places]
            for eo in dict.fromkeys(eo for eo, _ in grid)
        }
        heading = f"{title} by the weights of both terms, German credit"
        yield Drawing(name, "Figure 6", heading, "lambda_CEC", title, curves(places, series))
