"""Settings of stages that use generators of mediators."""

from typing import ClassVar

from schemas.audit.partition import Growth
from schemas.audit.spec import AuditSpec, Protected, StageSettings
from schemas.errors import SpecError
from schemas.terms import Kind, Role
from tasks.counterfactuals.gan.settings import MediatorSettings


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


def generator_settings(spec: AuditSpec, asked: MediatorSettings) -> dict[str, object]:
    """The fields of ``GeneratorSettings`` that the spec does not hold as such.

    Raises:
        SpecError: No column is a mediator, or one is not continuous and quantiles are asked for.
    """
    mediators = tuple(name for name, column in spec.features().items() if Role.MEDIATOR in column.role)
    said = tuple(name for name, column in spec.features().items() if Role.COVARIATE in column.role)
    others = tuple(name for name in spec.features() if name not in mediators)
    own = {"mediators": mediators, "covariates": said or others, "gan": MediatorSettings.part_of(asked)}
    _check(GeneratorSettings.of(spec, **own), spec)
    return own


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
