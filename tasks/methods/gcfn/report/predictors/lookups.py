"""What the part on fair predictors looks measures up by: predictors, their lambda, and who is who in a comparison.

These predictors are nobody's: the audit trains them on the lender's decisions, to see what fairness by the imagined
mediators would cost. Here belong names and lookups.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from schemas.terms import DecisionMaker
from tasks.methods.gcfn.report.lookups import METHOD
from tasks.methods.gcfn.settings import GcfnSettings
from tasks.reporting.lookups import Lookup
from tasks.reporting.material import Material, Measure

GIVEN, UNCONSTRAINED, GCFN, CFUA, CFAN = "given", "unconstrained", "GCFN", "CFUA", "CFAN"
"""Predictors by their names among the parameters, in the order of the report."""
PREFIX = "fair_"
ACCURACY, UNFAIRNESS, MOVED = "fair_accuracy", "fair_unfairness", "fair_score_change"
"""MOVED is the root of UNFAIRNESS (CF), on the scale of the score."""
OTHERWISE = "treated_differently_share"
ABDUCTED = "noise_abducted_share"
_WORDS = {
    GIVEN: "the audited model",
    UNCONSTRAINED: "unconstrained",
    CFUA: "CFUA: covariates alone",
    CFAN: "CFAN: noise behind mediators",
}
_ORDER = (GIVEN, UNCONSTRAINED, GCFN, CFUA, CFAN)


@dataclass(frozen=True)
class Predictor:
    """One predictor of a comparison."""

    said: tuple[tuple[str, Any], ...]
    """Its name, and its lambda if it has one, as measures name it."""

    @property
    def name(self) -> str:
        """By which measures name it."""
        return str(dict(self.said)["model"])

    @property
    def weight(self) -> float | None:
        """Lambda; None where it was not trained here."""
        found = dict(self.said).get("lambda")
        return None if found is None else float(found)

    @property
    def on_curve(self) -> bool:
        """Whether it differs from the others of the curve in its lambda alone."""
        return self.name in (UNCONSTRAINED, GCFN)

    @property
    def words(self) -> str:
        """The predictor as it stands in tables and legends."""
        return f"GCFN, lambda {self.weight:g}" if self.name == GCFN else _WORDS.get(self.name, self.name)


class Fair(Lookup[GcfnSettings]):
    """The predictors that were compared for one protected attribute."""

    METHOD, SETTINGS = METHOD, GcfnSettings

    @cached_property
    def predictors(self) -> tuple[Predictor, ...]:
        """The audited model, then those of the curve by lambda, then the others."""
        each = {
            tuple((key, m.said[key]) for key in ("model", "lambda") if key in m.said)
            for m in self.view.rows
            if m.measure.startswith(PREFIX) or m.measure == OTHERWISE
        }
        return tuple(sorted(map(Predictor, each), key=_place))

    @property
    def trained(self) -> tuple[Predictor, ...]:
        """All but the audited model."""
        return tuple(p for p in self.predictors if p.name != GIVEN)

    @property
    def curve(self) -> tuple[Predictor, ...]:
        """Those that differ in lambda alone, by lambda."""
        return tuple(p for p in self.predictors if p.on_curve)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of whom anything is told, be it why nothing was trained on them."""
        found = {m.group for m in self.view.rows if m.measure.startswith(PREFIX)}
        return tuple(group for group in self.view.groups if group in found)

    @property
    def measured(self) -> tuple[str, ...]:
        """The groups that predictors were trained on: of the others there is no accuracy."""
        found = {m.group for m in self.view.all(ACCURACY)}
        return tuple(group for group in self.groups if group in found)

    def get(self, group: str, predictor: Predictor, measure: str, **more: float) -> Measure | None:
        """A measure of a group under a predictor."""
        return self.view.get(group, measure, dict(predictor.said) | more)

    @property
    def noise(self) -> dict[str, list[float]]:
        """Of each mediator that CFAN sees, the shares of the groups whose noise a causal model abducted."""
        found: dict[str, list[float]] = {}
        for m in self.view.all(ABDUCTED):
            found.setdefault(self.view.label(m.said["mediator"]), []).extend([] if m.value is None else [m.value])
        return found

    def ends(self) -> tuple[Predictor, Predictor] | None:
        """The ends of the curve: without the regularisation, and with the most of it."""
        return (self.curve[0], self.curve[-1]) if len(self.curve) > 1 else None


def fair(material: Material) -> tuple[Fair, ...]:
    """One for each protected attribute for which predictors were trained."""
    if material.asked(GcfnSettings).prediction is None:
        return ()
    return tuple(f for f in Fair.of(material, DecisionMaker.LENDER) if f.trained)


def _place(predictor: Predictor) -> tuple[int, str, float]:
    known = predictor.name in _ORDER
    place = _ORDER.index(predictor.name) if known else len(_ORDER)
    return place, predictor.name, predictor.weight or 0.0
