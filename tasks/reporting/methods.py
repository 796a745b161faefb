"""Sections of the report, one module each; what a method brings is the module of its name.

A method's module holds its ``QUESTION``, ``MEASURES`` (its measures, as printed), ``GLOSSARY``, ``limits(material)``
and ``chapter(material) -> Section``. The report finds it through the registry of methods, and its first page follows
the methods that ran, so that a further method touches nothing else.
"""

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Protocol, cast

from tasks.pipeline.method import SECTION
from tasks.pipeline.registry import METHODS
from tasks.reporting.material import Material, Shown
from tasks.reporting.section import Section

ALWAYS = ("outcomes",)
"""What every report compares, whichever methods ran."""


class MethodSection(Protocol):
    """The module of a method."""

    QUESTION: str
    """What it asks, in one sentence."""
    MEASURES: Mapping[str, Shown]
    GLOSSARY: Mapping[str, str]

    def limits(self, material: Material) -> Iterable[str]:
        """What it cannot show, those limits first that these data set."""
        ...

    def chapter(self, material: Material) -> Section:
        """The method's chapter of the report."""
        ...


def section_modules(methods: Iterable[str]) -> dict[str, MethodSection]:
    """The section module of each method that was asked for, the ever-present ones first."""
    names = {name: f"tasks.reporting.chapters.{name}" for name in ALWAYS} | {
        name: METHODS[name].path_of(SECTION) for name in methods
    }
    return {name: cast(MethodSection, import_module(module)) for name, module in names.items()}
