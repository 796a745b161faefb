"""How a chapter of the report is built: its parts in order, for every decision maker and protected attribute.

A part is one module or several, or what stands for one. It is handed what was looked up for an attribute, by each of
the functions ``words``, ``readings``, ``notices``, ``figures`` and ``tables`` that it has. Figures without panels and
tables without rows are left out, and so is, below the first results, every part that shows neither. Here belongs the
shape of a chapter; which parts it has, and in what order, the file `section.py` of each method declares.
"""

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from tasks.reporting.comparison import capital
from tasks.reporting.material import Material, Shown, View, anchor
from tasks.reporting.section import Section

Modules = tuple[object, ...]
_ASKED = {"words": "words", "points": "readings", "notices": "notices", "figures": "figures", "tables": "tables"}
"""Field of a section -> the function of a part that fills it."""


def part(title: str, name: str, modules: Modules, found: object, parts: tuple[Section, ...] = ()) -> Section:
    """What modules say of what was looked up, one after the other."""
    said: dict[str, tuple[Any, ...]] = {
        field: tuple(each for module in modules if hasattr(module, asked) for each in getattr(module, asked)(found))
        for field, asked in _ASKED.items()
    }
    said["figures"] = tuple(figure for figure in said["figures"] if figure.panels)
    said["tables"] = tuple(table for table in said["tables"] if table.rows)
    return Section(title, name, **said, parts=parts)


def by_attribute(name: str, attribute: str, first: Modules, below: Mapping[str, Modules], found: object) -> Section:
    """The first results of an attribute, and below them the parts that show anything, numbered as declared."""
    made = [part(title, f"{name}-{i}", modules, found) for i, (title, modules) in enumerate(below.items(), 1)]
    return part(f"By {attribute}", name, first, found, tuple(s for s in made if s.figures or s.tables))


def by_maker(
    material: Material,
    method: str,
    look: Callable[[Material, View], object],
    first: Modules,
    below: Mapping[str, Modules],
    words: Callable[[Material, str], Iterable[str]] = lambda *_: (),
) -> tuple[Section, ...]:
    """A section for each decision maker, the model first, and in it one for each attribute, in the audit spec's order.

    Args:
        material: of the report.
        method: whose measures are shown.
        look: makes of a view what the parts are given.
        first: the modules of the first results.
        below: title of a part -> its modules.
        words: what is said of a decision maker before any attribute.
    """
    return tuple(
        Section(
            capital(material.whose(maker)),
            f"{method}-{maker}",
            tuple(words(material, maker)),
            parts=tuple(
                by_attribute(anchor(method, maker, v.attribute), v.attribute, first, below, look(material, v))
                for v in material.views(method, maker)
            ),
        )
        for maker in material.makers(method)
    )


def measures(*modules: ModuleType) -> dict[str, Shown]:
    """The measures of all parts, as printed."""
    return {measure: shown for module in modules for measure, shown in module.MEASURES.items()}


def glossary(*modules: ModuleType) -> dict[str, str]:
    """The terms of all parts that have any."""
    return {term: said for module in modules for term, said in getattr(module, "GLOSSARY", {}).items()}
