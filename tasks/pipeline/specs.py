"""Audit specs, validated with the settings of the methods that the registry knows: nothing else reads or checks one."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from schemas.audit import file
from schemas.audit.faults import Check
from schemas.audit.methods import context
from schemas.audit.spec import AuditSpec
from tasks.pipeline.registry import known_settings

_Model = TypeVar("_Model", bound=BaseModel)


def read_spec(
    text: str, name: str, overrides: Mapping[str, str] | None = None, also: Sequence[Check] = ()
) -> file.SpecFile:
    """Parse and check a spec, as ``schemas.audit.file`` says.

    Raises:
        SpecError: all faults at once, each with file and line.
    """
    return file.read_spec(text, name, known_settings(), overrides, also)


def checked(values: Any, name: str, also: Sequence[Check] = ()) -> AuditSpec:
    """Check a spec that is no text any more, as ``schemas.audit.file`` says.

    Raises:
        SpecError: all faults at once.
    """
    return file.checked(values, name, known_settings(), also)


def validated(kind: type[_Model], values: Any) -> _Model:
    """A spec, or the settings of a stage, from values that were checked before, such as those of a manifest.

    Raises:
        ValidationError: they are not what this version knows.
        SpecError: they do not fit each other.
    """
    return kind.model_validate(values, context=context(known_settings()))
