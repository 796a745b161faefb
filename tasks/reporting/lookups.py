"""Base of a method's look-ups: its settings and its measures for one decision maker and one protected attribute.

Scope: what all methods share. The parameters that tell measures of one method apart: ``report/lookups`` of the method.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Generic, Self, TypeVar, cast

from schemas.audit.methods import MethodSettings
from tasks.reporting.material import Material, View

_UNIT = re.compile(r"\s*\([^()]*\)$")
"""What a label says last, in brackets: too long for a box."""


S = TypeVar("S", bound=MethodSettings)


@dataclass(frozen=True)
class Lookup(Generic[S]):
    """The measures of one method for one decision maker and one protected attribute."""

    METHOD: ClassVar[str]
    SETTINGS: ClassVar[type[MethodSettings]]

    material: Material
    view: View

    @classmethod
    def of(cls, material: Material, maker: str) -> tuple[Self, ...]:
        """One for each protected attribute, in the order of the audit spec."""
        return tuple(cls(material, view) for view in material.views(cls.METHOD, maker))

    @classmethod
    def every(cls, material: Material) -> tuple[Self, ...]:
        """Those of all decision makers."""
        return tuple(each for maker in material.makers(cls.METHOD) for each in cls.of(material, maker))

    @cached_property
    def settings(self) -> S:
        """Settings of the method in this audit."""
        return cast(S, self.material.asked(self.SETTINGS))

    @property
    def minimum(self) -> int:
        """Fewest people, or pairs of them, for a reading."""
        return self.view.minimum

    @property
    def coarse(self) -> bool:
        """Whether disclosure control rounds means."""
        return self.material.policy.round_to > 1

    @cached_property
    def others(self) -> tuple[str, ...]:
        """The groups that findings are about: all but the reference group."""
        return tuple(group for group in self.view.groups if group != self.view.reference)


def words_for(material: Material, node: str) -> str:
    """A node as it is printed: a column by its label, a protected attribute by its name, whatever its column."""
    s = material.settings
    attributes = {p.columns[0]: p.name for p in reversed(s.protected) if len(p.columns) == 1}
    known = s.columns.get(node)
    return attributes.get(node) or (known.label if known and known.label else node)


def plain_words(material: Material, node: str) -> str:
    """A node without its unit, where the space or the sentence is short."""
    return _UNIT.sub("", words_for(material, node))
