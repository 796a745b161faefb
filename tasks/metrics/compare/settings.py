"""Settings of the stage ``compare``. Names of mitigations are checked where specs are read (``pipeline.specs``)."""

from schemas.audit.spec import AuditSpec, Comparable, Protected, StageSettings

UNCONSTRAINED = "unconstrained"
"""Always trained, first: the net without any mitigation."""


class CompareSettings(StageSettings):
    """Settings of the comparison."""

    protected: tuple[Protected, ...]
    compare: tuple[str, ...]
    comparable: Comparable = Comparable()
    seed: int

    @property
    def names(self) -> tuple[str, ...]:
        """The mitigations that are trained, in order."""
        return tuple(dict.fromkeys((UNCONSTRAINED, *self.compare)))


def compare_settings(spec: AuditSpec) -> CompareSettings | None:
    """Returns the stage's settings; None where the spec compares nothing."""
    return CompareSettings.of(spec) if spec.compare else None
