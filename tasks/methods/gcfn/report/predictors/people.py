"""On whom the fairest of the trained predictors decides otherwise than the audited model: by score and by mediator.

The paper's own question of who is treated differently. Of all predictors it is asked of the one with the largest
lambda alone, as the others lie between it and the unconstrained one.
"""

from tasks.methods.gcfn.report import bands
from tasks.methods.gcfn.report.bands import LEAST, Sorted, Told
from tasks.methods.gcfn.report.predictors.lookups import Fair
from tasks.reporting.charts.vega import ACCENT
from tasks.reporting.material import Shown
from tasks.reporting.section import Figure, Swatch, TableView

DIFFERENTLY = "treated_differently_by_band"
MEASURES = {DIFFERENTLY: Shown("share decided otherwise than by the audited model, by band", "rate")}
_TITLE = "Who is treated differently"
_TOLD = (Told(DIFFERENTLY, Swatch("decided otherwise", ACCENT, shape="circle")),)


def found(f: Fair) -> list[Sorted]:
    """Every group that was sorted."""
    return bands.sorted_by(f.material, f.view, _TOLD)


def figures(f: Fair) -> tuple[Figure, ...]:
    """By score, then by each mediator: a panel for every group."""
    caption = (
        "Share of the held-out applicants of each band on whom the predictor with the largest lambda"
        f"{_named(f)} decides otherwise than the audited model, with intervals. The predictor decides from a "
        "score of 0.5 on, the audited model at a limit of its own. Where a group has fewer than "
        f"{LEAST} applicants in a band, it is joined with the next."
    )
    return bands.figures(found(f), _TOLD, f.view, _TITLE, caption)


def tables(f: Fair) -> tuple[TableView, ...]:
    """The numbers of the figures."""
    note = (
        f"Predictor: the one with the largest lambda{_named(f)}. Applicants: held-out ones of the band. Of these: how "
        "many are decided on otherwise. In brackets: intervals."
    )
    title = f"{_TITLE}, by {f.view.attribute}: the numbers of the figures"
    return (bands.table(found(f), _TOLD, title, note),)


def _named(f: Fair) -> str:
    return next((f" ({m.said['lambda']:g})" for m in f.view.all(DIFFERENTLY)), "")
