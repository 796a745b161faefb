"""What the part on trained models looks measures up by: models, their weights, and means over folds.

These models are nobody's: the audit trains them on the lender's decisions, to see what consistency would cost. Their
measures stand beside those of the audited model and are told apart by their name. Here belong names and lookups.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from schemas.terms import DecisionMaker
from tasks.methods.cec.algorithm.score import REGIMES
from tasks.methods.cec.settings import CecSettings
from tasks.reporting.lookups import Lookup
from tasks.reporting.material import Material, Measure, Unit
from tasks.reporting.numbers import SPACE, missing_words, value_cell, written
from tasks.reporting.section import Cell

PREFIX = "trained_"
UNCONSTRAINED, FULL = "unconstrained", "full"
NAMES = {
    UNCONSTRAINED: "unconstrained",
    "pred+EO": "equal odds",
    "pred+CEC": "consistency",
    FULL: "full: both terms",
    "threshold_optimizer": "thresholds by group",
    "exponentiated_gradient": "exponentiated gradient",
    "grid_search": "grid search",
    "adversarial": "adversarial",
    "disparate_impact_remover": "impact remover",
}
"""The models that are compared, in the order of the report; all others are of the grid of lambdas."""

Weights = tuple[float, float]
"""Lambda of equal odds and lambda of consistency."""


@dataclass(frozen=True)
class Trained:
    """A model that was trained for the comparison, and what was measured of it on held-out rows."""

    number: int
    """By which figures name it; 0 for a model of the grid."""
    name: str
    words: str
    weights: Weights | None
    """None where the model was not trained with the loss of the method."""
    found: Mapping[tuple[str, str, str], Measure]
    """(measure without its prefix, regime if it has one, mean or sd) -> measure."""

    @property
    def warned(self) -> str:
        """The model in words, which say so if it collapsed: a chart has no column for that."""
        return f"{self.words} (collapsed)" if self.collapsed else self.words

    @property
    def numbered(self) -> str:
        """The same with its number before it."""
        return f"{self.number}  {self.warned}"

    def mean(self, measure: str, regime: str = "") -> Measure | None:
        """Its mean over folds."""
        return self.found.get((measure, regime, "mean"))

    def known(self, measure: str) -> float | None:
        """The mean over folds as a number, where one is printed."""
        m = self.mean(measure)
        return None if m is None else m.value

    def spread(self, measure: str, regime: str = "") -> float | None:
        """Its standard deviation over folds, where one is printed."""
        m = self.found.get((measure, regime, "sd"))
        return None if m is None else m.value

    @property
    def collapsed(self) -> bool:
        """Whether it decided alike for nearly everybody in any fold."""
        return bool(self.known("collapsed"))

    def cell(self, measure: str, unit: Unit, regime: str = "") -> Cell:
        """The mean over folds with the standard deviation beside it."""
        return replace(
            value_cell(self.mean(measure, regime), unit, interval=False), detail=self._beside(measure, unit, regime)
        )

    def said(self, measure: str, unit: Unit, regime: str = "") -> str:
        """The same in a sentence."""
        m = self.mean(measure, regime)
        return missing_words(m) if m is None or m.value is None else written(m.value, unit)

    def _beside(self, measure: str, unit: Unit, regime: str) -> str:
        sd, m = self.spread(measure, regime), self.mean(measure, regime)
        bare = sd is None or m is None or m.value is None
        return "" if bare or sd is None else f"±{SPACE}{written(sd, unit)}".removesuffix(f"{SPACE}%")


@dataclass(frozen=True)
class Comparison(Lookup[CecSettings]):
    """The models trained on one group beside the reference group."""

    METHOD, SETTINGS = "cec", CecSettings

    group: str
    models: tuple[Trained, ...]

    @property
    def pair(self) -> str:
        """The two groups in words."""
        return f"{self.group} beside {self.view.reference}"

    @cached_property
    def compared(self) -> tuple[Trained, ...]:
        """The models that are no part of the grid."""
        return tuple(model for model in self.models if model.number)

    @cached_property
    def nets(self) -> tuple[Trained, ...]:
        """The models that differ in their lambdas alone."""
        return tuple(model for model in self.models if model.weights is not None)

    @property
    def rows(self) -> int | None:
        """Held-out rows of all folds, of which pairs are a part; None where that is withheld."""
        return max((m.n for model in self.models for m in model.found.values() if m.n is not None), default=None)

    def get(self, name: str) -> Trained | None:
        """A model by its name."""
        return next((model for model in self.models if model.name == name), None)


def of_the_audited(material: Material) -> Material:
    """The material without the measures of trained models, which are nobody's decisions."""
    return replace(material, measures=tuple(m for m in material.measures if not m.measure.startswith(PREFIX)))


def comparisons(material: Material) -> Iterator[Comparison]:
    """One for each protected attribute and each of its groups for which models were trained."""
    for view in material.views("cec", DecisionMaker.LENDER):
        for group in view.groups:
            rows = [m for m in view.rows if m.group == group and m.subgroup == 0 and m.measure.startswith(PREFIX)]
            if rows:
                yield Comparison(material, view, group, tuple(_models(rows)))


def _models(rows: list[Measure]) -> Iterator[Trained]:
    of: dict[str, list[Measure]] = {}
    for m in rows:
        of.setdefault(str(m.said["model"]), []).append(m)
    weights = {name: _weights(name, found) for name, found in of.items()}
    named = [name for name in NAMES if name in of] + [n for n in of if n not in NAMES and weights[n] is None]
    grid = sorted((name for name in of if name not in named), key=lambda name: weights[name] or (0.0, 0.0))
    for number, name in [*enumerate(named, 1), *((0, name) for name in grid)]:
        found = {
            (m.measure.removeprefix(PREFIX), str(m.said.get("regime", "")), str(m.said["over_folds"])): m
            for m in of[name]
        }
        yield Trained(number, name, NAMES.get(name, name), weights[name], found)


def _weights(name: str, found: list[Measure]) -> Weights | None:
    """The lambdas of a net; without any terms they are 0, said or not."""
    for m in found:
        if "lambda_eo" in m.said and "lambda_cec" in m.said:
            return float(m.said["lambda_eo"]), float(m.said["lambda_cec"])
    return (0.0, 0.0) if name == UNCONSTRAINED else None


def regimes_of(model: Trained) -> list[Measure | None]:
    """The mean shares of the four regimes."""
    return [model.mean("regime_share", regime) for regime in REGIMES]
