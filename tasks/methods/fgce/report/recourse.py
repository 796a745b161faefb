"""Who has no recourse and what it costs the others: what a reader of FGCE's chapter meets first.

Every group has its row, with the size-matched reference and the difference from it.
"""

from dataclasses import replace

from tasks.methods.fgce.report.size import reading
from tasks.methods.fgce.settings import FgceSettings
from tasks.reporting.comparison import BRACKETS, RANK, beside_words, dots, dots_legend, headline
from tasks.reporting.material import Shown, View, undrawn
from tasks.reporting.section import Figure, TableView

MEASURES = {
    "infeasible_share": Shown("infeasible share", "rate"),
    "burden": Shown("burden", "number"),
}


def cost_unit(view: View) -> str:
    """In what the cost of recourse is counted."""
    settings = view.method if isinstance(view.method, FgceSettings) else FgceSettings()
    return settings.cost_unit


def readings(view: View) -> tuple[str, ...]:
    """Both measures of every group against its size-matched reference."""
    return tuple(said for measure, shown in MEASURES.items() for said in reading(view, measure, shown))


def figures(view: View) -> tuple[Figure, ...]:
    """Infeasible share and burden of every group, each above the size-matched reference."""
    panels = []
    for measure, shown in MEASURES.items():
        title = shown.words.capitalize() + (f" ({cost_unit(view)})" if shown.unit == "number" else "")
        panels += dots(view, title, measure, shown, {})
    caption = f"Each group's own value with its interval above. {beside_words(view)}"
    title = f"Who has no recourse, and what it costs the others, by {view.attribute}"
    drawn = {m.group for m in view.all("infeasible_share") if m.value is not None}
    return (Figure(title, tuple(panels), caption + undrawn(view.groups, drawn), dots_legend(view)),)


def tables(view: View) -> tuple[TableView, ...]:
    """The same as tables, with differences."""
    share, burden = (headline(view, measure, shown) for measure, shown in MEASURES.items())
    return replace(share, note=f"{BRACKETS} {RANK}"), burden
