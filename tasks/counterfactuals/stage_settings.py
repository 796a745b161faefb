"""Settings of the stage ``generate``."""

from typing import ClassVar, Literal

from schemas.audit.causal import CausalGraph
from schemas.audit.model import Model
from schemas.audit.partition import Growth
from schemas.audit.spec import Decision, Protected, StageSettings
from tasks.counterfactuals.settings import MatchingSettings


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
