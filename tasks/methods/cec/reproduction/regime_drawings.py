"""Draws the regimes of the CEC paper's models: flips against CEC (Figure 4), and shares (Figures 5 and 7)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tasks.methods.cec.algorithm.score import REGIMES
from tasks.proof.drawings import Curve, Drawing
from tasks.proof.lines import Cell, Value

Found = Mapping[Cell, Value]

REGIME_AXIS: Final = "regime: " + ", ".join(f"{at} {name}" for at, name in enumerate(REGIMES, 1))


def plane(found: Found, models: Sequence[str]) -> Iterator[Drawing]:
    """Yields Figure 4: a point for each model that has a CEC."""
    points = [
        Curve(model, (flips,), (cec,))
        for model in models
        if isinstance(flips := found.get(Cell("flip_percent", model)), float)
        and isinstance(cec := found.get(Cell("cec", model)), float)
    ]
    if points:
        title = "Prediction flips and CEC by model"
        yield Drawing("flips-and-cec", "Figure 4", title, "pairs with other predictions, percent", "CEC", tuple(points))


def shares(found: Found, models: Sequence[str], name: str, figure: str) -> Iterator[Drawing]:
    """Yields Figure 5 or 7: the shares of the four regimes of each model that has a CEC."""
    places = tuple(float(at) for at in range(1, len(REGIMES) + 1))
    rows = []
    for model in models:
        told = [found.get(Cell(f"regime_{regime.lower()}_percent", model)) for regime in REGIMES]
        if all(isinstance(each, float) for each in told):
            rows.append(Curve(model, places, tuple(float(each) for each in told if each is not None)))
    if rows:
        yield Drawing(name, figure, "Pairs in each regime by model", REGIME_AXIS, "percent of the pairs", tuple(rows))
