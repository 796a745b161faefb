"""What GCFN's chapter looks things up by: the model's measures, what generators left behind, and who was imagined.

One protected attribute has generators of its own. The measures are of the audited model; what the generators imagine
and what speaks against them is told whether or not there was a model to ask. Here belong names and lookups.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from schemas.audit.column import ColumnSpec
from schemas.audit.spec import Protected
from schemas.terms import DecisionMaker, Kind, Role
from tasks.methods.gcfn.settings import GcfnSettings
from tasks.reporting.charts.vega import ACCENT, REFERENCE, WARM
from tasks.reporting.lookups import Lookup, words_for
from tasks.reporting.material import Material, Measure
from tasks.reporting.section import Swatch

METHOD = "gcfn"
HEADLINE = "decision_flip_share"
WORST: Mapping[str, float | str] = {}
MEAN: Mapping[str, float | str] = {"over": "networks"}
"""Parameters of the headline: under the network under which it is largest, and on average over networks."""
TO_FAVOURABLE, TO_UNFAVOURABLE = ({"direction": f"to_{side}"} for side in ("favourable", "unfavourable"))


ROUNDED = (
    "Disclosure control rounds means to two decimals in this run, CF and other changes of scores too: 0 stands for "
    "anything below 0.005, and is no pass."
)


@dataclass(frozen=True)
class Generators:
    """The generators of one protected attribute: what they are made of, and what they left behind."""

    material: Material
    attribute: Protected
    mediators: tuple[str, ...]
    """In words."""
    covariates: tuple[str, ...]
    """In words."""
    others: tuple[str, ...]
    """In words, what else the model uses: neither moved nor looked at by the generators."""
    simple: bool
    """Whether there is one mediator and it is continuous."""
    effects: tuple[Mapping[str, Any], ...]
    checks: tuple[Mapping[str, Any], ...]
    history: tuple[Mapping[str, Any], ...]

    @cached_property
    def settings(self) -> GcfnSettings:
        """What the audit asked of the method."""
        return self.material.asked(GcfnSettings)

    def found(self, check: str) -> list[Mapping[str, Any]]:
        """The rows of one check."""
        return [row for row in self.checks if row["check"] == check]


class Mediated(Lookup[GcfnSettings]):
    """The measures of the audited model for one protected attribute."""

    METHOD, SETTINGS = METHOD, GcfnSettings

    @property
    def generators(self) -> Generators | None:
        """The generators of the attribute, if they left anything behind."""
        return next((g for g in generators(self.material) if g.attribute.name == self.view.attribute), None)

    def imagined_as(self, group: str) -> str:
        """As whose members a group was imagined."""
        return "each other group" if group == self.view.reference else self.view.reference

    def get(self, group: str, measure: str, parameters: Mapping[str, float | str] = WORST) -> Measure | None:
        """A measure of a group."""
        return self.view.get(group, measure, parameters)

    def quantile(self, group: str) -> Measure | None:
        """The quantile of the size of the score's change."""
        return self.get(group, "score_change_quantile", {"quantile": self.settings.quantile})


def generators(material: Material) -> Iterator[Generators]:
    """One for each protected attribute of which anything was imagined, in the order of the audit spec."""
    for p in material.settings.protected:
        effects, checks = _own(material.mediator_effects, p), _own(material.generator_checks, p)
        if effects or checks:
            history = _own(material.generator_history, p)
            mediators, covariates = mediators_of(material, p), _covariates_of(material, p)
            others = tuple(n for n in _used(material, p) if n not in (*mediators, *covariates))
            kinds = [material.settings.columns[name].type for name in mediators]
            simple = kinds == [Kind.CONTINUOUS]
            moved, held, rest = (tuple(words_for(material, n) for n in ns) for ns in (mediators, covariates, others))
            yield Generators(material, p, moved, held, rest, simple, effects, checks, history)


def mediated(material: Material) -> tuple[Mediated, ...]:
    """One for each protected attribute that the model was asked about."""
    return Mediated.of(material, DecisionMaker.MODEL)


def kinds_of(g: Generators, form: str) -> dict[str, Swatch]:
    """How mediators as they are, as imagined and as in the reference group are drawn: as lines, or as shapes."""
    words = ("as they are", "as imagined", f"{g.attribute.reference} as they are")
    drawn = zip(words, (REFERENCE, WARM, ACCENT), ("", "6 3", "2 2"), ("circle", "triangle", "square"), strict=True)
    return {w: Swatch(w, colour, dash, shape if form else "") for w, colour, dash, shape in drawn}


def mediators_of(material: Material, attribute: Protected) -> tuple[str, ...]:
    """The columns that the audit spec declares to be moved by an attribute."""
    return tuple(name for name, column in _used(material, attribute).items() if Role.MEDIATOR in column.role)


def _covariates_of(material: Material, attribute: Protected) -> tuple[str, ...]:
    """The columns that it does not move: those declared so, else all others."""
    everywhere = any(Role.COVARIATE in c.role for c in material.settings.columns.values() if c.used)
    own = _used(material, attribute).items()
    return tuple(name for name, c in own if (Role.COVARIATE in c.role if everywhere else Role.MEDIATOR not in c.role))


def _used(material: Material, attribute: Protected) -> dict[str, ColumnSpec]:
    """The columns that the model uses, without the attribute's own."""
    columns = material.settings.columns.items()
    return {name: c for name, c in columns if c.used and name not in attribute.columns}


def _own(rows: Iterable[Mapping[str, Any]], attribute: Protected) -> tuple[Mapping[str, Any], ...]:
    return tuple(row for row in rows if row["protected_attribute"] == attribute.name)
