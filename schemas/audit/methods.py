"""The part ``methods`` of the spec: the settings of every method by name, and what all of them share.

This module knows no method. The caller passes their settings classes in pydantic's validation context
(``tasks.pipeline.registry``).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Final, Self, TypeVar

from pydantic import GetCoreSchemaHandler, SerializationInfo, ValidationInfo, create_model
from pydantic_core import CoreSchema, core_schema

from schemas.audit.partition import Growth, Size
from schemas.bounds import Strict
from schemas.errors import SpecError

_CONTEXT: Final = "methods"
_Settings = TypeVar("_Settings", bound="MethodSettings")


class MethodSettings(Strict):
    """Settings of a method, or of a part of it: frozen; unknown keys are errors, and numbers that are not finite."""

    by_default: ClassVar[bool] = False
    """Whether an audit runs the method when its spec does not name it."""
    paper: ClassVar[dict[str, Any]] = {}
    """What the paper does and the defaults do not."""
    trained: ClassVar[dict[str, type["MethodSettings"]]] = {}
    """Parts about models that are trained beside the method, by key: what is detected does not depend on them."""
    memory: ClassVar[Growth] = Growth()
    """Of the method's detection."""

    @classmethod
    def under_paper(cls, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """The keys of a spec under the profile `paper`: what the user left out takes the paper's value."""
        out = {**cls.paper, **overrides}
        for name, part in cls.trained.items():
            if isinstance(out.get(name), Mapping):
                out[name] = part.under_paper(out[name])
        return out

    @classmethod
    def part_of(cls, settings: "MethodSettings") -> Self:
        """These of a method's settings: a step that several methods use depends on no other."""
        return cls.model_validate({name: getattr(settings, name) for name in cls.model_fields})

    def detecting(self) -> Self:
        """The same without what is trained."""
        return self.model_copy(update=dict.fromkeys(self.trained))

    def of_draws(self) -> Self:
        """The same for the first draw of the rows of a large audit: ranges are over draws, not resamples."""
        return self

    def repeated(self) -> Self:
        """The same for another draw of the rows of a large audit; only values are computed for it."""
        return self

    def short(self) -> Self:
        """The same without what a short report, as each of many partitions has it, does not print."""
        return self

    def faults(self, methods: "Methods") -> Iterable[SpecError]:  # noqa: ARG002 some methods have none
        """Faults of the settings that do not depend on other methods; locations begin at their own keys."""
        return ()

    @property
    def imagines_everybody(self) -> bool:
        """Whether the method uses counterfactuals of all rows, and not only of its sampled rows."""
        return False

    def forecast_mb(self, size: Size) -> float:
        """Memory of the method's detection beyond what a process holds anyway, in MB; 0 where it is not known."""
        return self.memory.at(size)

    def takes_long(self) -> str:
        """What to say before the method detects, where it may then say nothing for minutes; else empty."""
        return ""


Known = Mapping[str, type[MethodSettings]]
"""The methods that there are, in the order of reports, each with the class of its settings."""


@dataclass(frozen=True)
class Methods:
    """The settings of every known method: None where the audit leaves the method out."""

    by_name: Mapping[str, MethodSettings | None]

    def of(self, kind: type[_Settings]) -> _Settings | None:
        """The settings of a class, or of one derived from it."""
        return next((settings for settings in self.by_name.values() if isinstance(settings, kind)), None)

    def named(self, name: str) -> MethodSettings:
        """The settings of a method that the audit runs."""
        settings = self.by_name[name]
        if settings is None:
            raise ValueError(f"the audit runs no method {name!r}")
        return settings

    def running(self) -> tuple[str, ...]:
        """The names of the methods that the audit runs."""
        return tuple(name for name, settings in self.by_name.items() if settings is not None)

    def train(self) -> bool:
        """Whether a method of the audit trains its models itself."""
        every = (settings for settings in self.by_name.values() if settings is not None)
        return any(getattr(settings, name, None) is not None for settings in every for name in settings.trained)

    def only(self, name: str, settings: MethodSettings) -> "Methods":
        """One method alone, with these settings."""
        return Methods(dict.fromkeys(self.by_name) | {name: settings})

    def faults(self) -> Iterator[SpecError]:
        """Faults of the settings of one method that depend on those of the others."""
        for name in self.running():
            for fault in self.named(name).faults(self):
                yield SpecError(str(fault), ("methods", name, *fault.location))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validated by the classes in the context, dumped as a mapping."""
        dump = core_schema.plain_serializer_function_ser_schema(_dumped, info_arg=True)
        return core_schema.with_info_plain_validator_function(_validated, serialization=dump)


def context(known_methods: Known) -> dict[str, Any]:
    """The validation context for a spec, or another model that holds ``Methods``."""
    return {_CONTEXT: known_methods}


def known_in(info: ValidationInfo) -> Known:
    """The methods that there are, as the context of a validation names them.

    Raises:
        TypeError: it names none. Pydantic makes no validation error of this one: it is no fault of the spec.
    """
    if not info.context or _CONTEXT not in info.context:
        raise TypeError("the settings of methods are validated with their classes: see tasks.pipeline.registry")
    known_methods: Known = info.context[_CONTEXT]
    return known_methods


def _validated(value: Any, info: ValidationInfo) -> Methods:
    if isinstance(value, Methods):
        return value
    known_methods = known_in(info)
    shaped = _shape(tuple(known_methods.items())).model_validate(value)
    return Methods({name: getattr(shaped, name) for name in known_methods})


@cache
def _shape(known_methods: tuple[tuple[str, type[MethodSettings]], ...]) -> type[MethodSettings]:
    """A model with a field for each method: pydantic then finds all faults of a mapping, and their places."""
    fields: dict[str, Any] = {name: (kind | None, kind() if kind.by_default else None) for name, kind in known_methods}
    return create_model("Methods", __base__=MethodSettings, **fields)


def _dumped(methods: Methods, info: SerializationInfo) -> dict[str, Any]:
    return {
        name: None if settings is None else settings.model_dump(mode=info.mode)
        for name, settings in methods.by_name.items()
    }
