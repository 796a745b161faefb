"""What a method declares of itself."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType

from schemas.audit.spec import AuditSpec, StageSettings
from schemas.table import Table
from tasks.pipeline.planned import Form
from tasks.pipeline.stage import Stage


@dataclass(frozen=True)
class Method:
    """One method: where it is implemented, and what it is called where people read."""

    name: str
    title: str
    algorithm: str
    section: str
    reads: tuple[Table, ...]
    """The tables that it needs beside features, decisions and groups: the stages that write them are then run."""
    planned: str
    """The module that tells from the spec which measures will be made: it has ``measures(spec)``."""
    measures: tuple[str, ...]
    """The measures that it makes, without those that compare them."""
    headline: Mapping[str, str]
    """Measures that the command prints at its end, with a short title for each."""
    partitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Measures whose shares add up to one over some parameters, and these parameters."""
    generators: Mapping[str, tuple[Table, ...]] = field(default_factory=dict)
    """What can make its counterfactuals, by the setting ``generator``, and the tables that these then are in."""
    stages: tuple[str, ...] = ()
    """Modules of stages of its own: each has a stage of its name, and ``settings_of(spec)``, None if not asked for."""
    of_reference: bool = True
    """Whether it has something to say of a reference group alone; else its measures are of the other groups."""

    def load(self) -> ModuleType:
        """The module with ``detect(problem, settings, rng)`` and ``units(problem)``."""
        return import_module(self.algorithm)

    def plan(self, spec: AuditSpec) -> Iterator[Form]:
        """The measures that it will make in an audit, with their parameters and ranges."""
        forms: Iterator[Form] = import_module(self.planned).measures(spec)
        return forms

    def own_stages(self) -> list[tuple[Stage, Callable[[AuditSpec], StageSettings | None]]]:
        """The stages that it alone needs, each with what makes its settings."""
        modules = [import_module(name) for name in self.stages]
        return [(getattr(module, module.__name__.split(".")[-2]), module.settings_of) for module in modules]
