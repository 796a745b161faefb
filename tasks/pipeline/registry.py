"""The registry of methods: for each, the module that detects and the module that writes its section of the report.

Names only, so that importing this module imports no method.
"""

from importlib import import_module

from schemas.audit.spec import AuditSpec
from schemas.table import Table
from tasks.pipeline.method import Method

NAMES = ("fgce", "cst", "cec", "gcfn", "raguel")

METHODS: dict[str, Method] = {name: import_module(f"tasks.methods.{name}.method").METHOD for name in NAMES}


OUTCOMES_METHOD = "outcomes"
"""What stands for a method in the rows of the measures made without any."""

OUTCOMES = ("approval_rate", "denial_rate")
"""The measures of the decisions themselves, made without any method."""


def measures_known() -> tuple[str, ...]:
    """Every measure that an audit can make, without those that compare them."""
    return (*OUTCOMES, *(name for method in METHODS.values() for name in method.measures))


def partitions() -> dict[str, tuple[str, ...]]:
    """Measures whose shares add up to one, and over which parameters."""
    return {name: over for method in METHODS.values() for name, over in method.partitions.items()}


def of_other_groups() -> frozenset[str]:
    """The measures that say nothing of a reference group."""
    return frozenset(name for method in METHODS.values() if not method.of_reference for name in method.measures)


def generator_of(spec: AuditSpec, method: Method) -> str | None:
    """What makes the counterfactuals of a method that is given some, as the audit spec asks for it."""
    return str(getattr(spec.methods, method.name).generator) if method.generators else None


def tables_of(spec: AuditSpec, method: Method) -> tuple[Table, ...]:
    """All tables that a method needs in this audit."""
    return (*method.reads, *method.generators.get(generator_of(spec, method) or "", ()))


def asked_for(spec: AuditSpec) -> list[Method]:
    """The methods of an audit, in the order of the registry."""
    return [method for name, method in METHODS.items() if getattr(spec.methods, name) is not None]
