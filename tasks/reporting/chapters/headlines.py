"""The results at a glance: for every group the approval rate and the headline measures of each method that ran.

Here belongs one table. What its numbers mean, and how sure they are, is in the chapters; states are in `verdicts`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from schemas.terms import DecisionMaker
from tasks.pipeline.registry import METHODS
from tasks.reporting.chapters.measure_names import names
from tasks.reporting.comparison import capital
from tasks.reporting.material import Material, Measure, Unit, View
from tasks.reporting.methods import MethodSection
from tasks.reporting.numbers import n_cell, value_cell
from tasks.reporting.section import Cell, Row, TableView

_FEW = "(few)"


def table(material: Material, modules: Mapping[str, MethodSection]) -> TableView:
    """A row for every group and decision maker, the lender's first, since these are observed."""
    ran = [name for name in modules if name in METHODS]
    titles = (capital(title) for name in ran for title in METHODS[name].headline.values())
    rows = tuple(
        _row(material, modules, ran, view, group)
        for maker in (DecisionMaker.LENDER, DecisionMaker.MODEL)
        for view in material.views("outcomes", maker)
        for group in view.groups
    )
    note = (
        "In brackets: intervals; for a reference, such as permuted labels, the range of its draws. Read each measure "
        f"beside its reference. {_FEW}: on fewer than {material.settings.bootstrap.minimum_n} people, too few to say, "
        "which is no pass. –: not looked at, or no reference. Terms stand in the glossary."
    )
    header = ("Group", "Decisions of", "Applications", "Approved", *titles)
    return TableView("Approval, and the headline measures of each method that ran", header, rows, note)


def _row(material: Material, modules: Mapping[str, MethodSection], ran: list[str], view: View, group: str) -> Row:
    said = f"{view.attribute}, reference" if group == view.reference else view.attribute
    own = view.get(group, "approval_rate")
    first = (Cell(f"{group} ({said})"), Cell(material.maker(view.maker)), n_cell(own), _marked(material, own, "rate"))
    return (*first, *(cell for name in ran for cell in _cells(material, name, modules[name], view, group)))


def _cells(material: Material, name: str, module: MethodSection, view: View, group: str) -> Iterator[Cell]:
    """The headline measures of a method for a group; a dash where the method says nothing of it."""
    found = [v for v in material.views(name, view.maker) if v.attribute == view.attribute]
    for measure in METHODS[name].headline:
        m = found[0].get(group, measure) if found else None
        yield _marked(material, m, names(measure, module.MEASURES)[1].unit) if m else Cell("–", "none")


def _marked(material: Material, m: Measure | None, unit: Unit) -> Cell:
    """A value, marked where it rests on few people; a reference rests on draws."""
    cell, enough = value_cell(m, unit), material.settings.bootstrap.minimum_n
    few = m is not None and m.value is not None and m.reference_group is None and (m.n or 0) < enough
    return replace(cell, text=f"{cell.text} {_FEW}") if few else cell
