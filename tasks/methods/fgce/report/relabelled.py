"""The infeasible share of each group beside sets of its size whose labels were drawn within propensity strata.

Unlike the size-matched reference these sets have the group's finances, as far as columns tell them.
"""

from tasks.reporting.material import Shown, View
from tasks.reporting.numbers import n_cell, value_cell
from tasks.reporting.section import Cell, Row, TableView

OWN, MEAN, DIFFERENCE = "infeasible_share", "infeasible_share_under_relabelling", "infeasible_share_relabelled"
MEASURES = {
    DIFFERENCE: Shown("infeasible share above relabelled sets", "points"),
    MEAN: Shown("infeasible share of relabelled sets", "rate"),
}
GLOSSARY = {
    "relabelled set": "as many applicants of the group and the reference group as the group has, drawn within strata "
    "of the estimated probability of being in the group: what the share would be if labels did not matter",
}


def tables(view: View) -> tuple[TableView, ...]:
    """The share, the mean of the draws, and how far they lie apart; nothing without draws."""
    rows = tuple(_row(view, group) for group in view.groups if view.get(group, DIFFERENCE) is not None)
    if not rows:
        return ()
    note = (
        "Labels are permuted within 30 strata of similar applicants, and the search is repeated in the graph that each "
        "set of rows has. The share depends on the number of rows, so that the difference has a test and no interval; "
        "a small one is no pass."
    )
    header = ("Group", "Factuals", "Infeasible share", "Mean of relabelled sets", "Difference")
    return (TableView(f"Infeasible share against relabelled sets, by {view.attribute}", header, rows, note),)


def _row(view: View, group: str) -> Row:
    own, mean, difference = (view.get(group, measure) for measure in (OWN, MEAN, DIFFERENCE))
    shown = value_cell(own, "rate"), value_cell(mean, "rate"), value_cell(difference, "points")
    return (Cell(view.named(group)), n_cell(own), *shown)
