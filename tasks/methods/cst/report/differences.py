"""How far the two groups around a complainant are apart: the distribution of delta, its mean, and who is better off.

Delta is spread over both sides of 0 whatever is going on, so that its whole distribution is drawn, and those refused
less often than their test group (positive discrimination) are told beside the others.
"""

from tasks.methods.cst.report.lookups import Situations, name
from tasks.reporting.charts.histogram import Bin, Histogram
from tasks.reporting.charts.panels import Rows, by_group, told
from tasks.reporting.charts.rows import bins
from tasks.reporting.charts.vega import QUIET, WARM
from tasks.reporting.material import Shown
from tasks.reporting.numbers import MINUS, value_cell
from tasks.reporting.section import Cell, Figure, Panel, Row, Swatch, TableView

MEASURES = {
    "delta": Shown("mean delta", "number"),
    "share_positive": Shown("share with positive discrimination", "rate"),
    "delta_share": Shown("share by size of delta", "rate"),
}
_MORE, _LESS = "control group refused more often", "as often, or less often"
_KINDS = {_MORE: Swatch(_MORE, WARM, shape="square"), _LESS: Swatch(_LESS, QUIET, shape="square")}


def figures(s: Situations) -> tuple[Figure, ...]:
    """The distribution of delta in every group, on one scale."""
    found = _histogram(s)
    order = [_words(ends) for ends in found.bins[::-1]]
    caption = (
        "Share of the complainants by delta, the share of refusals in the control group less that in the test group "
        f"({name(s.main)}, {s.settings.k} nearest each). A bin holds its upper end, so that a delta of 0 is in the bin "
        "that ends there. Chance alone puts about as many above 0 as below."
    )

    def panel(group: str, rows: Rows, every: Rows) -> Panel:
        label = f"Distribution of delta in {group}. {told(rows, 'bin')}"
        return bins(group, label, rows, order, _KINDS, max(row["high"] for row in every), "delta")

    title = f"Distribution of delta, by {s.view.attribute}"
    return (by_group(title, s.others, found.marks, panel, caption + s.counted, _KINDS.values()),)


def _histogram(s: Situations) -> Histogram:
    return Histogram(s.view, "delta_share", _words, lambda ends: _MORE if ends[1] > 0 else _LESS)


def _words(ends: Bin) -> str:
    return " to ".join(f"{end:g}".replace("-", MINUS) for end in ends)


def tables(s: Situations) -> tuple[TableView, ...]:
    """Positive discrimination and mean delta by number of neighbours, and the numbers of the figure."""
    tau = f", by more than tau = {s.settings.tau:g}" if s.settings.tau else ""
    positive = (
        f"Share of the complainants whose control group was refused less often than their test group{tau}. It is told "
        "apart because a share detected says nothing of the other side."
    )
    return (
        _by_k(s, "share_positive", "Positive discrimination: complainants better off than their test group", positive),
        _by_k(s, "delta", "Mean delta of all complainants", "Between −1 and 1; 0 if both groups are refused alike."),
        _distribution(s),
    )


def _by_k(s: Situations, measure: str, title: str, note: str) -> TableView:
    variants = [v for v in s.variants if any(m.said["variant"] == v for m in s.view.all(measure))]
    folded, unit = measure == "delta", MEASURES[measure].unit
    rows: list[Row] = [
        (Cell(group), Cell(name(v)), *(value_cell(s.get(group, measure, v, k), unit) for k in s.ks))
        for group in s.others
        for v in s.having(group, measure, variants)
    ]
    return TableView(title, ("Group", "Variant", *(f"k = {k}" for k in s.ks)), tuple(rows), note, folded)


def _distribution(s: Situations) -> TableView:
    title = f"Distribution of delta, {name(s.main)}, k = {s.settings.k}: the numbers of the figure"
    found = _histogram(s)
    return found.table(title, "Delta", s.others, found.bins[::-1])
