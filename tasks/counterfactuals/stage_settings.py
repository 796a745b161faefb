"""Settings of the stages that generate counterfactuals, and assumptions of the generators."""

from typing import ClassVar, Literal, Protocol

from schemas.audit.causal import CausalGraph
from schemas.audit.model import Model
from schemas.audit.partition import Growth
from schemas.audit.spec import AuditSpec, Decision, Protected, StageSettings
from schemas.errors import SpecError
from schemas.terms import Kind, Role
from tasks.counterfactuals.settings import MatchingSettings, MediatorSettings

# --------------------------------------------------------------------------------------------------------------------
# Assumptions of an audit's generators of counterfactuals, from its settings.


Generator = Literal["scm", "nearest", "gan", "quantile"]
"""What makes the counterfactuals that a method is given."""


class CausalAssumptions(Protocol):
    """Settings of a structural causal model."""

    @property
    def protected(self) -> tuple[Protected, ...]:
        """Protected attributes and their groups."""

    @property
    def decision(self) -> Decision | None:
        """The decision column."""

    @property
    def causal_graph(self) -> CausalGraph:
        """The causal graph."""

    @property
    def seed(self) -> int:
        """Seed of all draws."""


class GeneratorAssumptions(CausalAssumptions, Protocol):
    """Settings of the generators of counterfactuals, and of the decisions on these."""

    @property
    def model(self) -> Model | None:
        """The model; None without one."""

    @property
    def generator(self) -> Generator | None:
        """Settings of the generators of mediators."""

    @property
    def matching(self) -> MatchingSettings:
        """Settings of the search for nearest neighbours."""


# --------------------------------------------------------------------------------------------------------------------
# Settings of the stage ``generate``.


class GenerateSettings(StageSettings):
    """What decides the counterfactuals."""

    memory: ClassVar[Growth] = Growth(180, 1.2)

    protected: tuple[Protected, ...]
    generator: Literal["scm", "nearest"]
    causal_graph: CausalGraph
    """Of the generator ``scm``; else empty."""
    matching: MatchingSettings
    """Of the generator ``nearest``; else as by default."""
    decision: Decision
    model: Model
    seed: int
    queries: int | None
    """Of the generator ``scm``, applicants of an attribute who are imagined, where all that read them ask a sample."""


# --------------------------------------------------------------------------------------------------------------------
# Settings of stages that use generators of mediators.


class GeneratorSettings(StageSettings):
    """Settings of the generators in a stage."""

    memory: ClassVar[Growth] = Growth(400, 6.6)

    protected: tuple[Protected, ...]
    mediators: tuple[str, ...]
    covariates: tuple[str, ...]
    """Of both, an attribute's own columns are left out where that attribute is looked at."""
    gan: MediatorSettings
    seed: int

    def mediators_of(self, attribute: Protected) -> tuple[str, ...]:
        """The mediators of an attribute."""
        return tuple(name for name in self.mediators if name not in attribute.columns)

    def covariates_of(self, attribute: Protected) -> tuple[str, ...]:
        """The covariates of an attribute, which it does not influence."""
        return tuple(name for name in self.covariates if name not in attribute.columns)


def generator_settings(spec: AuditSpec, mediator_settings: MediatorSettings) -> dict[str, object]:
    """The fields of ``GeneratorSettings`` that the spec does not hold as such.

    Raises:
        SpecError: No column is a mediator, or one is not continuous and quantiles are asked for.
    """
    mediators = tuple(name for name, column in spec.features().items() if Role.MEDIATOR in column.role)
    declared_covariates = tuple(name for name, column in spec.features().items() if Role.COVARIATE in column.role)
    other_features = tuple(name for name in spec.features() if name not in mediators)
    overrides = {
        "mediators": mediators,
        "covariates": declared_covariates or other_features,
        "gan": MediatorSettings.part_of(mediator_settings),
    }
    _check(GeneratorSettings.of(spec, **overrides), spec)
    return overrides


def _check(settings: GeneratorSettings, spec: AuditSpec) -> None:
    for attribute in settings.protected:
        if not settings.mediators_of(attribute):
            message = (
                f"no column is a mediator of {attribute.name}; GCFN needs at least one: add `role: mediator` to those "
                f"that {attribute.name} may influence, such as income or debt"
            )
            raise SpecError(message, ("columns",))
    for name in settings.mediators:
        if settings.gan.generator == "quantile" and spec.columns[name].type is not Kind.CONTINUOUS:
            message = (
                f"generator `quantile` maps continuous mediators, and {name!r} is {spec.columns[name].type}; "
                "use `generator: gan`, or take the role of a mediator away from it"
            )
            raise SpecError(message, ("methods", "gcfn", "generator"))
