"""The chapter of NEARBY."""

from tasks.methods.nearby.settings import NearbySettings

from tasks.reporting.material import Material, Shown, View
from tasks.reporting.numbers import n_cell, value_cell
from tasks.reporting.section import Cell, Section, TableView

QUESTION = "Who was denied beside people like them who were approved?"
MEASURES = {"nearby_share": Shown("denied beside an approved neighbour", "rate")}
GLOSSARY = {"neighbour": "an applicant who differs in no feature by more than the reach"}


def limits(material: Material) -> tuple[str, ...]:
    """What it cannot show."""
    return ("A neighbour is no advice.",)


def chapter(material: Material) -> Section:
    """One table for each decision maker and protected attribute."""
    settings = material.settings.methods.of(NearbySettings)
    views = [view for maker in material.makers("nearby") for view in material.views("nearby", maker)]
    words = (f"{QUESTION} Within {settings.reach if settings else 0:g} in every feature.",)
    return Section("Who was denied beside people like them (NEARBY)", "nearby", words, tables=tuple(map(_table, views)))


def _table(view: View) -> TableView:
    found = {group: view.get(group, "nearby_share", {}) for group in view.groups}
    rows = tuple((Cell(group), n_cell(m), value_cell(m, "rate")) for group, m in found.items())
    return TableView(f"Somebody like them was approved, by {view.attribute}", ("Group", "Factuals", "Share"), rows)
