"""What a method is expected to find of what is planted in a twin of HMDA; each method says it in its ``bench.twin``."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Expected:
    """How a method is run on a twin, and what it can find there."""

    smaller: str
    """Settings, as YAML, that make its part of an audit a matter of seconds: no limit, and no measure that a limit is
    about, is touched."""
    finds: tuple[str, ...]
    """What it can find by what it asks. Of the rest the rate is told, and nothing is aimed at."""
    why_not: Mapping[str, str] = field(default_factory=dict)
    """Of the rest, why."""
