"""Mediate: what the mediators of applicants would have been in another group, and what would have been decided (GCFN).

Training generators takes long, so that it goes on where it was stopped. Here belong the stage's settings and its
declaration; what it does is in ``_mediating``, which loads torch and is itself loaded only when something is imagined.
"""

import pyarrow as pa

from schemas.applications import APPLICANTS, DECISIONS, ENCODINGS, MEMBERSHIPS, MODELS
from schemas.counterfactuals import (
    GENERATOR_CHECKS,
    GENERATOR_HISTORY,
    GENERATORS,
    MEDIATED,
    MEDIATED_DECISIONS,
    MEDIATOR_EFFECTS,
)
from schemas.errors import SpecError
from schemas.findings import TALLIES
from schemas.gcfn import GcfnSettings
from schemas.models import Model
from schemas.settings import AuditSpec, Protected, StageSettings
from schemas.terms import Kind, Role
from tasks._scratch import NOWHERE, Scratch
from tasks._stage import Produced, stage

_TOLD_LATER = ("wide", "quantile", "prediction")
"""Settings that decide what is said, and no generator."""


class GeneratorSettings(StageSettings):
    """What decides the generators, in every stage that uses them."""

    protected: tuple[Protected, ...]
    mediators: tuple[str, ...]
    covariates: tuple[str, ...]
    """Of both, an attribute's own columns are left out where that attribute is looked at."""
    gcfn: GcfnSettings
    """All that decides generators; the rest as by default."""
    seed: int

    def mediators_of(self, attribute: Protected) -> tuple[str, ...]:
        """The mediators of an attribute."""
        return tuple(name for name in self.mediators if name not in attribute.columns)

    def covariates_of(self, attribute: Protected) -> tuple[str, ...]:
        """What an attribute does not influence."""
        return tuple(name for name in self.covariates if name not in attribute.columns)


class MediateSettings(GeneratorSettings):
    """What decides the mediators, and what is decided on them."""

    model: Model


def generator_settings(spec: AuditSpec, asked: GcfnSettings) -> dict[str, object]:
    """The fields of ``GeneratorSettings`` that the spec does not hold as such.

    Raises:
        SpecError: No column is a mediator, or one is not continuous and quantiles are asked for.
    """
    mediators = tuple(name for name, column in spec.features().items() if Role.MEDIATOR in column.role)
    said = tuple(name for name, column in spec.features().items() if Role.COVARIATE in column.role)
    others = tuple(name for name in spec.features() if name not in mediators)
    decides = {name for name in GcfnSettings.model_fields if name not in _TOLD_LATER}
    own = {
        "mediators": mediators,
        "covariates": said or others,
        "gcfn": GcfnSettings.model_validate({name: getattr(asked, name) for name in decides}),
    }
    _check(GeneratorSettings.of(spec, **own), spec)
    return own


def settings_of(spec: AuditSpec) -> MediateSettings | None:
    """The stage's settings; None without the method.

    Raises:
        SpecError: As ``generator_settings`` says.
    """
    if spec.methods.gcfn is None:
        return None
    return MediateSettings.of(spec, **generator_settings(spec, spec.methods.gcfn))


def _check(settings: GeneratorSettings, spec: AuditSpec) -> None:
    for attribute in settings.protected:
        if not settings.mediators_of(attribute):
            message = (
                f"no column is a mediator of {attribute.name}; GCFN needs at least one: add `role: mediator` to those "
                f"that {attribute.name} may influence, such as income or debt"
            )
            raise SpecError(message, ("columns",))
    for name in settings.mediators:
        if settings.gcfn.generator == "quantile" and spec.columns[name].type is not Kind.CONTINUOUS:
            message = (
                f"generator `quantile` maps continuous mediators, and {name!r} is {spec.columns[name].type}; "
                "use `generator: gan`, or take the role of a mediator away from it"
            )
            raise SpecError(message, ("methods", "gcfn", "generator"))


@stage(
    reads=(APPLICANTS, ENCODINGS, MEMBERSHIPS, DECISIONS, MODELS),
    writes=(MEDIATED, MEDIATED_DECISIONS, MEDIATOR_EFFECTS, GENERATOR_CHECKS, GENERATOR_HISTORY, GENERATORS, TALLIES),
    resumable=True,
)
def mediate(
    applicants: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    decisions: pa.Table,
    models: pa.Table,
    *,
    settings: MediateSettings,
    scratch: Scratch = NOWHERE,
) -> Produced:
    """The mediators of applicants outside the reference group as in it, and of its members as in the other groups.

    Raises:
        DataQualityError: The training of generators diverged; the last good state is kept in ``scratch``.
        IntegrityError: What ``scratch`` holds is of another training run.
    """
    from tasks._mediating import mediated  # torch takes seconds to load

    return mediated(applicants, encodings, memberships, decisions, models, settings=settings, scratch=scratch)
