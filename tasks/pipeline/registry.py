"""The registry of methods, and audit specs validated with their settings."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.resources import files
from itertools import chain
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from schemas.audit import file
from schemas.audit.file import Check
from schemas.audit.methods import Known, context
from schemas.audit.spec import AuditSpec
from schemas.errors import Location, SpecError, nearest
from schemas.table import Table
from tasks.pipeline.method import Method

# --------------------------------------------------------------------------------------------------------------------
# The registry of methods: their names, in the order of reports. Everything else of a method is in its folder.
#
# It loads the declarations of methods, and none of their arithmetic.


NAMES = ("adjusted", "fgce", "cst", "cec", "gcfn", "raguel")

METHODS: dict[str, Method] = {name: import_module(f"tasks.methods.{name}.method").METHOD for name in NAMES}


def citation(name: str) -> str:
    """BibTeX of the paper of a method."""
    return files(f"tasks.methods.{name}").joinpath("citation.bib").read_text(encoding="utf-8")


OUTCOMES_METHOD = "outcomes"
"""What stands for a method in the rows of the measures made without any."""

WHOLE_YEAR = ("adjusted", "fgce", "cst", "cec")
"""The methods of the partition ``all`` of a spec with ``by``: the others are asked of its other partitions alone."""

OUTCOMES = ("approval_rate", "denial_rate")
"""The measures of the decisions themselves, made without any method."""


@cache
def known_settings() -> Known:
    """The classes of their settings, by which audit specs are validated."""
    return {name: method.settings for name, method in METHODS.items()}


def measures_known() -> tuple[str, ...]:
    """Every measure that an audit can make, without those that compare them."""
    return (*OUTCOMES, *(name for method in METHODS.values() for name in method.measures))


def partitions() -> dict[str, tuple[str, ...]]:
    """Measures with shares that add up to one, and the parameters over which they do."""
    return {name: over for method in METHODS.values() for name, over in method.partitions.items()}


def of_other_groups() -> frozenset[str]:
    """The measures that say nothing of a reference group."""
    return frozenset(name for method in METHODS.values() if not method.of_reference for name in method.measures)


def covering() -> frozenset[str]:
    """The measures with intervals that have their nominal coverage."""
    return frozenset(OUTCOMES).union(*(method.covering for method in METHODS.values()))


def comparable() -> frozenset[str]:
    """The measures with a meaning that does not depend on the number of rows."""
    return frozenset(OUTCOMES).union(*(method.comparable for method in METHODS.values()))


def generator_of(spec: AuditSpec, method: Method) -> str | None:
    """The generator of the counterfactuals of a method that is given some, as the audit spec requests it."""
    return str(vars(spec.methods.named(method.name))["generator"]) if method.generators else None


def has_causal_model(spec: AuditSpec) -> bool:
    """Whether a spec gives a causal model: a graph, or generators that learn what depends on the group."""
    generators = [generator_of(spec, method) for method in asked_for(spec)]
    return bool(spec.causal_graph.edges) or not {"gan", "quantile"}.isdisjoint(generators)


def tables_of(spec: AuditSpec, method: Method) -> tuple[Table, ...]:
    """All tables that a method needs in this audit."""
    return (*method.reads, *method.generators.get(generator_of(spec, method) or "", ()))


def tables_declared() -> tuple[Table, ...]:
    """All tables that some method needs in some audit."""
    return tuple(chain(*((*method.reads, *chain(*method.generators.values())) for method in METHODS.values())))


def tables_shown() -> tuple[Table, ...]:
    """All tables that the chapters of methods read in addition to the measures."""
    return tuple(table for method in METHODS.values() for table in method.shows)


def asked_for(spec: AuditSpec) -> list[Method]:
    """The methods that an audit runs, in the order of the registry: those in its spec that can run on it."""
    return [METHODS[name] for name in spec.methods.running() if not METHODS[name].lacks(spec)]


def inapplicable(spec: AuditSpec) -> dict[str, str]:
    """The methods in a spec that cannot run on it, each with the reason."""
    reasons = {name: METHODS[name].lacks(spec) for name in spec.methods.running()}
    return {name: reason for name, reason in reasons.items() if reason}


def mitigations() -> dict[str, str]:
    """The mitigations that an audit can compare, and the method that offers each."""
    return {name: method.name for method in METHODS.values() for name in method.mitigations}


def not_asked(spec: AuditSpec) -> list[str]:
    """A sentence that names the methods that an audit does not run, each with its reason; none where all run."""
    off = [method for name, method in METHODS.items() if name not in spec.methods.running()]
    cannot: dict[str, list[str]] = {}
    for name, reason in inapplicable(spec).items():
        cannot.setdefault(reason, []).append(name)
    is_whole_year = spec.by is not None and spec.source.part is None
    parts = [method.name for method in off if is_whole_year and method.name not in WHOLE_YEAR]
    remaining = [method for method in off if method.name not in parts]
    without = [method.name for method in remaining if method.generators and not spec.causal_graph.edges]
    not_requested = [method.name for method in remaining if method.name not in without]
    why = (
        *((names, reason) for reason, names in cannot.items()),
        (parts, "not run in `all`, which is every row of the year; asked of each partition where the spec has it"),
        (without, "without a `causal_graph`"),
        (not_requested, "not in `methods` of the spec"),
    )
    reasons = "; ".join(f"{', '.join(names)} ({reason})" for names, reason in why if names)
    return [f"Not run: {reasons}."] if reasons else []


# --------------------------------------------------------------------------------------------------------------------
# Reads and validates audit specs with the settings of all registered methods.


_Model = TypeVar("_Model", bound=BaseModel)

_READ: Final = frozenset(("profile", "source", "protected", "columns", "decision"))
"""Parts of a spec that methods hold their settings against."""


def read_spec(
    text: str, name: str, overrides: Mapping[str, str] | None = None, also: Sequence[Check] = ()
) -> file.SpecFile:
    """Parse and check a spec, as described in ``schemas.audit.file``.

    Raises:
        SpecError: all faults at once, each with file and line.
    """
    return file.read_spec(text, name, known_settings(), overrides, (_of_methods, _of_mitigations, *also))


def checked(values: Any, name: str, also: Sequence[Check] = ()) -> AuditSpec:
    """Check a spec that is already parsed, as described in ``schemas.audit.file``.

    Raises:
        SpecError: all faults at once.
    """
    return file.checked(values, name, known_settings(), (_of_methods, _of_mitigations, *also))


def validated(kind: type[_Model], values: Any) -> _Model:
    """A spec, or the settings of a stage, from values that were checked before, such as those of a manifest.

    Raises:
        ValidationError: they are not what this version knows.
        SpecError: they do not fit each other.
    """
    return kind.model_validate(values, context=context(known_settings()))


def _of_methods(spec: AuditSpec, doubtful: Collection[Location]) -> Iterator[SpecError]:
    """Faults that methods find in their settings and the rest of the spec, where neither holds a substitute."""
    for method in asked_for(spec):
        if not any(place[0] in _READ or place[:2] in (("methods",), ("methods", method.name)) for place in doubtful):
            yield from method.faults(spec)


def _of_mitigations(spec: AuditSpec, doubtful: Collection[Location]) -> Iterator[SpecError]:
    """Names of mitigations that no method offers, or that occur twice."""
    names = list(mitigations())
    for position, name in enumerate(spec.compare if ("compare",) not in doubtful else ()):
        if name not in names:
            message = f"no mitigation {name!r}; {nearest(name, names)} (there are {', '.join(names)})"
            yield SpecError(message, ("compare", position))
        elif name in spec.compare[:position]:
            yield SpecError(f"{name!r} is named twice; once will do", ("compare", position))
