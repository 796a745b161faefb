"""Where reasons part: the divergence of two explanations by feature, and its share in the whole.

A feature in which reasons part is one in which the model looked at two comparable applicants differently. It may be so
because the two differ in it: those by which applicants are matched differ little, the others as they like.
"""

from collections.abc import Iterator
from typing import Any

from tasks.methods.cec.report.charts import features
from tasks.methods.cec.report.lookups import Reasons
from tasks.reporting.charts.panels import Rows, by_group, marks, most
from tasks.reporting.charts.vega import ACCENT, WARM
from tasks.reporting.comparison import capital
from tasks.reporting.material import Shown, listed
from tasks.reporting.numbers import n_cell, value_cell, written
from tasks.reporting.section import Cell, Figure, Panel, Row, Swatch, TableView

SHARE, MEAN = "attribution_share", "attribution_divergence"
MEASURES = {
    SHARE: Shown("share of a feature in the attribution divergence", "rate"),
    MEAN: Shown("attribution divergence", "number"),
}
GLOSSARY = {
    "attribution divergence": "how far the directions of two explanations part in one feature: the absolute "
    "differences, summed over its inputs to the model",
    "financial feature": "a column that the author of the audit spec gave the role `financial`: applicants are "
    "comparable by these alone",
}
_DRAWN = 15
"""Features that are drawn, the largest first."""
_NAMED = 3


def readings(s: Reasons) -> tuple[str, ...]:
    """For every group the features in which reasons part most."""
    return tuple(said for group in s.others if (said := _reading(s, group)))


def _reading(s: Reasons, group: str) -> str:
    found = [m for m in s.view.all(SHARE) if m.group == group and m.value is not None]
    if not found or min(m.n or 0 for m in found) < s.minimum:
        return ""
    largest = sorted(found, key=lambda m: -(m.value or 0.0))[:_NAMED]
    said = listed(f"{_said(s, str(m.said['feature']))} ({written(m.value or 0.0, 'rate')})" for m in largest)
    return f"{group}: reasons part most in {said}."


def _said(s: Reasons, feature: str) -> str:
    return s.view.label(feature) + ", financial" * (feature in s.financial)


def _features(s: Reasons) -> list[str]:
    """All features, those with the largest share in any group first."""
    largest: dict[str, float] = {}
    for m in (*s.view.all(SHARE), *s.view.all(MEAN)):
        own = (m.value or 0.0) if m.measure == SHARE else 0.0
        largest[str(m.said["feature"])] = max(largest.get(str(m.said["feature"]), 0.0), own)
    return sorted(largest, key=lambda feature: (-largest[feature], feature))


def figures(s: Reasons) -> tuple[Figure, ...]:
    """A panel for every group, with the features in the same order."""
    order = _features(s)
    left = f" The {_DRAWN} largest of {len(order)} features; the others are in the table." * (len(order) > _DRAWN)
    caption = (
        "Share of each feature in what sets two explanations apart, on average over pairs. Applicants are matched by "
        "the financial features (F), so that they differ little in these; in the others they may differ, and part of "
        f"what is seen here is that difference.{left}"
    )
    legend = (
        Swatch("F: financial feature, by which applicants are matched", ACCENT, shape="square"),
        Swatch("other feature", WARM, shape="square"),
    )
    names = [_marked(s, feature) for feature in order[:_DRAWN]]

    def panel(group: str, rows: Rows, every: Rows) -> Panel:
        label = f"Share in the divergence: {group}; the numbers are in the table below."
        return features(group, label, rows, names, most(every))

    def bars(group: str) -> Iterator[dict[str, Any]]:
        for feature in order[:_DRAWN]:
            named = {"row": _marked(s, feature), "group": group, "financial": int(feature in s.financial)}
            yield from marks(s.view.get(group, SHARE, {"feature": feature}), "rate", closed=True, **named)

    return (by_group(f"Where reasons part, by {s.view.attribute}", s.others, bars, panel, caption + s.counted, legend),)


def _marked(s: Reasons, feature: str) -> str:
    """A feature as it stands on the axis, told by a letter if applicants are matched by it."""
    return "F · " * (feature in s.financial) + capital(s.view.label(feature))


def tables(s: Reasons) -> tuple[TableView, ...]:
    """Share and mean divergence of every feature, by group."""
    order = _features(s)
    rows: list[Row] = []
    for feature in order:
        at = {"feature": feature}
        kind = Cell("financial" if feature in s.financial else "other")
        pairs = [(s.view.get(group, SHARE, at), s.view.get(group, MEAN, at)) for group in s.others]
        cells = (cell for share, mean in pairs for cell in (value_cell(share, "rate"), value_cell(mean, "number")))
        rows.append((Cell(capital(s.view.label(feature))), kind, *cells))
    if rows:
        counts = [s.view.get(group, MEAN, {"feature": order[0]}) for group in s.others]
        blank = Cell("–", "none")
        rows.append((Cell("Pairs compared"), Cell(""), *(cell for m in counts for cell in (n_cell(m), blank))))
    header = ("Feature", "Kind", *(h for group in s.others for h in (f"{group}: share", f"{group}: divergence")))
    note = "In brackets: intervals. The columns of a category count as one feature."
    title = f"Attribution divergence by feature, by {s.view.attribute}"
    return (TableView(title, header, tuple(rows), note, folded=True),)
