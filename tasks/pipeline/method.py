"""Declaration of a method, and the parts that its folder provides by name."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Literal

from schemas.audit.methods import MethodSettings
from schemas.audit.spec import AuditSpec, StageSettings
from schemas.errors import SpecError
from schemas.table import Table
from schemas.terms import NO_FEATURE, DecisionMaker, Theory
from tasks.pipeline.given import ProblemTables
from tasks.pipeline.planned import Form
from tasks.pipeline.stage import Stage

DECLARATION, ALGORITHM = "method", "algorithm.detection"
"""Modules of every method's folder."""

REPORT = "report.yaml"
"""File of every method's folder: its question, its measures in words, and what its evidence page shows."""

PROBLEM = "problem"
"""A module of the folders of methods that need more of a problem than others do."""

MITIGATIONS = "mitigations"
"""A module of the folders of methods that offer mitigations."""


@dataclass(frozen=True)
class Judged:
    """A measure by which a theory of harm is judged; its aggregates carry an ``Inference``, and no parameters."""

    theory: Theory
    measure: str
    role: Literal["primary", "adds", "beside"] = "primary"
    """``primary``: decides the state. ``adds``: by its p alone, a breach and never a pass. ``beside``: shown, and told
    where it contradicts the primary one."""
    refitted: bool = False
    """Whether its error counts that a model was fitted to the same rows; else a fitted model has no verdict by it."""
    maker: DecisionMaker | None = None
    """The one decision maker whom the theory is judged of by it; None for all. Of a model it is made only where the
    model can be asked: an attribute that it is not made of has no row."""


@dataclass(frozen=True)
class Method:
    """Declaration of a method: its title, its inputs and its measures."""

    name: str
    """That of its folder under ``tasks.methods``, in which all else is found."""
    title: str
    reads: tuple[Table, ...]
    """The tables that it needs beside features, decisions and groups: the stages that write them are then run."""
    measures: tuple[str, ...]
    """The measures that it makes, without those that compare them."""
    headline: Mapping[str, str]
    """Measures that the command prints at its end, with a short title for each."""
    partitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Measures whose shares add up to one over some parameters, and these parameters."""
    generators: Mapping[str, tuple[Table, ...]] = field(default_factory=dict)
    """What can make its counterfactuals, by the setting ``generator``, and the tables that these then are in."""
    of_reference: bool = True
    """Whether it has something to say of a reference group alone; else its measures are of the other groups."""
    shows: tuple[Table, ...] = ()
    """Tables of its own that its chapter of the report reads beside the measures."""
    judged: tuple[Judged, ...] = ()
    """The theories that it says something of, and by which measure."""
    asked: Literal["all", "sampled", "graph"] = "all"
    """Beyond the limits of ``sampling``: everybody all the same; a sample of the complainants of each group, compared
    with everybody (``sampling.queries``); or only the rows of the graph (``sampling.graph_rows``)."""
    covering: frozenset[str] = frozenset()
    """Measures whose intervals cover as often as they say, by simulation; all others are descriptive."""
    comparable: frozenset[str] = frozenset()
    """Measures whose meaning does not depend on the number of rows, so that partitions of any size can be held beside
    each other; the others only where they were taken at one size."""
    mitigations: tuple[str, ...] = ()
    """Mitigations that an audit can compare (``compare`` of the spec); its module ``mitigations`` trains them by
    ``mitigate(name, fold, seed)``."""
    grows: str = ""
    """Why the others depend on the number of rows, as a sentence without its full stop."""

    def path_of(self, module: str) -> str:
        """The whole name of a module in its folder."""
        return f"tasks.methods.{self.name}.{module}"

    def module(self, module: str) -> ModuleType:
        """A module of its folder, loaded."""
        return import_module(self.path_of(module))

    @property
    def settings(self) -> type[MethodSettings]:
        """The class of its settings: ``FgceSettings`` in ``settings`` of the folder ``fgce``."""
        words = "".join(word.capitalize() for word in self.name.split("_"))
        settings: type[MethodSettings] = getattr(self.module("settings"), f"{words}Settings")
        return settings

    def load(self) -> ModuleType:
        """The module with ``detect(problem, settings, rng)`` and ``units(problem)``."""
        return self.module(ALGORITHM)

    @property
    def detecting(self) -> tuple[str, ...]:
        """The whole names of the modules that detection reaches by name."""
        return tuple(map(self.path_of, (DECLARATION, ALGORITHM, *self._problem)))

    @property
    def _problem(self) -> tuple[str, ...]:
        return (PROBLEM,) if find_spec(self.path_of(PROBLEM)) else ()

    def own(self, given: ProblemTables, maker: str, attribute: str) -> object | None:
        """What it alone needs of a problem, by ``own(given, maker, attribute)`` of ``problem``; None without."""
        return self.module(PROBLEM).own(given, maker, attribute) if self._problem else None

    def plan(self, spec: AuditSpec) -> Iterator[Form]:
        """The measures that it will make in an audit, with their parameters and ranges, by ``measures(spec)``."""
        forms: Iterator[Form] = self.module("measures").measures(spec)
        return forms

    def lacks(self, spec: AuditSpec) -> str:
        """Why it cannot run on a spec, by ``lacks(spec)`` of ``measures`` if there is one; empty where it can.

        A method without one needs a feature.
        """
        own = getattr(self.module("measures"), "lacks", None)
        if own is not None:
            return str(own(spec))
        return "" if spec.features() else NO_FEATURE

    def faults(self, spec: AuditSpec) -> Iterator[SpecError]:
        """Faults of its settings beside the rest of the spec, by ``faults(spec)`` of ``measures`` if there is one."""
        found = getattr(self.module("measures"), "faults", None)
        return iter(()) if found is None else found(spec)

    def own_stages(self) -> list[tuple[Stage, Callable[[AuditSpec], StageSettings | None]]]:
        """Stages of this method alone, each with the maker of its settings (None if the spec does not ask for it).

        Each is named like its folder, in which ``stage`` holds both.
        """
        here = Path(self.module(DECLARATION).__file__ or "").parent
        names = sorted(file.parent.name for file in here.glob("*/stage.py"))
        modules = [(name, self.module(f"{name}.stage")) for name in names]
        return [(getattr(module, name), module.settings_of) for name, module in modules]
