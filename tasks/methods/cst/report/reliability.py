"""What the tests are worth: values that were clipped before distances were taken, and intervals without width.

Clipping decides who is like whom at the ends of an attribute. Wald's interval has no width where both shares are 0 or
1, and so claims a certainty that a handful of comparable applicants cannot give.
"""

from collections.abc import Iterator

from tasks.methods.cst.report.lookups import Situations
from tasks.reporting.material import Shown, listed
from tasks.reporting.numbers import n_cell, percent, value_cell
from tasks.reporting.section import Cell, Row, TableView

MEASURES = {
    "clipped_share": Shown("share of complainants whose value was clipped for the distance", "rate"),
    "no_width_share": Shown("share of complainants whose interval has no width", "rate"),
}
CLIPPED, NO_WIDTH = MEASURES


def tables(s: Situations) -> tuple[TableView, ...]:
    """Both, for every group of complainants."""
    return _clipped(s), _no_width(s)


def _clipped(s: Situations) -> TableView:
    attributes = list(dict.fromkeys(str(m.said["attribute"]) for m in s.view.all(CLIPPED)))
    rows: list[Row] = []
    for group in s.others if attributes else ():
        found = [s.view.get(group, CLIPPED, {"attribute": name}) for name in attributes]
        rows.append((Cell(group), n_cell(found[0]), *(value_cell(m, "rate", interval=False) for m in found)))
    note = (
        "Before distances are taken numbers are clipped at their 1st and 99th percentile among all applicants: one "
        "absurd value else makes everybody alike. Complainants beyond these ends count as alike in that attribute."
    )
    header = ("Group", "Complainants", *(s.view.label(name) for name in attributes))
    return TableView(f"Share of complainants clipped, by {s.view.attribute} and attribute", header, tuple(rows), note)


def _no_width(s: Situations) -> TableView:
    rows: list[Row] = []
    for group in s.others if s.view.all(NO_WIDTH) else ():
        m = s.view.get(group, NO_WIDTH)
        rows.append((Cell(group), n_cell(m), value_cell(m, "rate", interval=False)))
    note = (
        "Wald's interval of the difference has no width where the shares in the control and in the test group are 0 or "
        "1. p is then 0 or 1 as well, however few the neighbours. Newcombe's interval, the default, has a width there."
    )
    header = ("Group", "Complainants", "Interval without width")
    return TableView(f"Intervals without width, by {s.view.attribute}", header, tuple(rows), note)


def limits(found: tuple[Situations, ...]) -> Iterator[str]:
    """The tests that claim too much, with their numbers."""
    flagged = [(s, m) for s in found for m in s.view.all(NO_WIDTH) if m.value]
    if flagged:
        named = listed(f"{percent(m.value or 0.0)} in {m.group} ({s.view.attribute})" for s, m in flagged)
        yield (
            f"Tests of complainants whose Wald interval has no width, and whose p is 0 or 1 for that: {named}. They "
            "claim more certainty than so few neighbours give."
        )
