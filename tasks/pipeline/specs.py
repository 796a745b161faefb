"""Reads and validates audit specs with the settings of all registered methods."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from schemas.audit import file
from schemas.audit.faults import Check
from schemas.audit.methods import context
from schemas.audit.spec import AuditSpec
from schemas.errors import Location, SpecError, nearest
from tasks.pipeline.registry import asked_for, known_settings, mitigations

_Model = TypeVar("_Model", bound=BaseModel)

_READ: Final = frozenset(("profile", "source", "protected", "columns", "decision"))
"""Parts of a spec that methods hold their settings against."""


def read_spec(
    text: str, name: str, overrides: Mapping[str, str] | None = None, also: Sequence[Check] = ()
) -> file.SpecFile:
    """Parse and check a spec, as ``schemas.audit.file`` says.

    Raises:
        SpecError: all faults at once, each with file and line.
    """
    return file.read_spec(text, name, known_settings(), overrides, (_of_methods, _of_mitigations, *also))


def checked(values: Any, name: str, also: Sequence[Check] = ()) -> AuditSpec:
    """Check a spec that is no text any more, as ``schemas.audit.file`` says.

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
    """What methods find wrong with their settings beside the rest of the spec, where neither holds a substitute."""
    for method in asked_for(spec):
        if not any(place[0] in _READ or place[:2] in (("methods",), ("methods", method.name)) for place in doubtful):
            yield from method.faults(spec)


def _of_mitigations(spec: AuditSpec, doubtful: Collection[Location]) -> Iterator[SpecError]:
    """Names of mitigations that no method offers, or that are there twice."""
    known = list(mitigations())
    for position, name in enumerate(spec.compare if ("compare",) not in doubtful else ()):
        if name not in known:
            message = f"no mitigation {name!r}; {nearest(name, known)} (there are {', '.join(known)})"
            yield SpecError(message, ("compare", position))
        elif name in spec.compare[:position]:
            yield SpecError(f"{name!r} is named twice; once will do", ("compare", position))
