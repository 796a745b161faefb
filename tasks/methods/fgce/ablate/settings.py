"""Settings of the stage ``ablate``."""

from typing import ClassVar

from schemas.audit.partition import Growth
from schemas.audit.spec import AuditSpec, Explain, Protected, StageSettings
from schemas.errors import SpecError
from tasks.feasibility_graph import stage as connect
from tasks.feasibility_graph.settings import GraphSettings
from tasks.methods.fgce.settings import NAMES, FgceSettings


class AblateSettings(StageSettings):
    """Settings of the searches: graph, explained applicants, protected attributes and their subsamples."""

    memory: ClassVar[Growth] = Growth(210, 10.6, "graph")

    graph: GraphSettings
    ablations: bool
    """Whether the search is repeated with rules lifted."""
    draws: int
    """Subsamples of the reference group for each smaller group."""
    relabelled_draws: int
    """Draws of labels for each group."""
    explain: Explain
    protected: tuple[Protected, ...]
    seed: int


def ablate_settings(spec: AuditSpec) -> AblateSettings | None:
    """Returns the stage's settings; None where the audit spec has neither ablations nor relabelled draws.

    Raises:
        SpecError: a feature is named like one of the searches, whose results could then not be told from its own.
    """
    method_settings = spec.methods.of(FgceSettings)
    if method_settings is None or not (method_settings.ablations or method_settings.relabelled_draws):
        return None
    for name in NAMES:
        if method_settings.ablations and name in spec.features():
            message = f"{name!r} is the name of a search of its own; rename the column, or set fgce.ablations: false"
            raise SpecError(message, ("columns", name))
    return AblateSettings.of(
        spec,
        graph=connect.connect_settings(spec).graph,
        ablations=method_settings.ablations,
        draws=method_settings.ablation_draws if method_settings.ablations else 0,
        relabelled_draws=method_settings.relabelled_draws,
    )
