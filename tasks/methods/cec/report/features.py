"""Where reasons part: the divergence of two explanations by feature, and its share in the whole.

A feature in which reasons part is one in which the model looked at two comparable applicants differently. It may be so
because the two differ in it: those by which applicants are matched differ little, the others as they like.
"""

from typing import Any

from tasks.methods.cec.report.charts import features
from tasks.methods.cec.report.lookups import Reasons
from tasks.reporting.charts.vega import ACCENT, WARM
from tasks.reporting.comparison import capital
from tasks.reporting.material import Shown, listed, undrawn
from tasks.reporting.numbers import n_cell, value, value_cell, written
from tasks.reporting.section import Cell, Figure, Row, Swatch, TableView

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
    return tuple(said for group in s.groups if (said := _reading(s, group)))


def _reading(s: Reasons, group: str) -> str:
    found = [m for m in s.view.all(SHARE) if m.group == group and m.value is not None]
    if not found or min(m.n or 0 for m in found) < s.minimum:
        return ""
    most = sorted(found, key=lambda m: -(m.value or 0.0))[:_NAMED]
    said = listed(f"{_said(s, str(m.said['feature']))} ({written(m.value or 0.0, 'rate')})" for m in most)
    return f"{group}: reasons part most in {said}."


def _said(s: Reasons, feature: str) -> str:
    return s.view.label(feature) + ", financial" * (feature in s.financial)


def _features(s: Reasons) -> list[str]:
    """All features, those with the largest share in any group first."""
    most: dict[str, float] = {}
    for m in (*s.view.all(SHARE), *s.view.all(MEAN)):
        own = (m.value or 0.0) if m.measure == SHARE else 0.0
        most[str(m.said["feature"])] = max(most.get(str(m.said["feature"]), 0.0), own)
    return sorted(most, key=lambda feature: (-most[feature], feature))


def figures(s: Reasons) -> tuple[Figure, ...]:
    """A panel for every group, with the features in the same order."""
    order = _features(s)
    found = {group: _bars(s, group, order[:_DRAWN]) for group in s.groups}
    drawn = {group: rows for group, rows in found.items() if rows}
    most = max((row["high"] for rows in drawn.values() for row in rows), default=0.0) * 1.05 or 0.01
    names = [_marked(s, feature) for feature in order[:_DRAWN]]
    panels = tuple(
        features(group, f"Share in the divergence: {group}; the numbers are in the table below.", rows, names, most)
        for group, rows in drawn.items()
    )
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
    title = f"Where reasons part, by {s.view.attribute}"
    return (Figure(title, panels, caption + s.counted + undrawn(s.groups, set(drawn)), legend),) if panels else ()


def _marked(s: Reasons, feature: str) -> str:
    """A feature as it stands on the axis, told by a letter if applicants are matched by it."""
    return "F · " * (feature in s.financial) + capital(s.view.label(feature))


def _bars(s: Reasons, group: str, order: list[str]) -> list[dict[str, Any]]:
    rows = []
    for feature in order:
        m = s.view.get(group, SHARE, {"feature": feature})
        if m is not None and m.value is not None:
            low, high = (m.value if end is None else end for end in (m.low, m.high))
            named = {"row": _marked(s, feature), "group": group, "financial": int(feature in s.financial)}
            rows.append({**named, "value": m.value, "low": low, "high": high, "shown": value(m, "rate")})
    return rows


def tables(s: Reasons) -> tuple[TableView, ...]:
    """Share and mean divergence of every feature, by group."""
    order = _features(s)
    rows: list[Row] = []
    for feature in order:
        at = {"feature": feature}
        kind = Cell("financial" if feature in s.financial else "other")
        pairs = [(s.view.get(group, SHARE, at), s.view.get(group, MEAN, at)) for group in s.groups]
        cells = (cell for share, mean in pairs for cell in (value_cell(share, "rate"), value_cell(mean, "number")))
        rows.append((Cell(capital(s.view.label(feature))), kind, *cells))
    if rows:
        counts = [s.view.get(group, MEAN, {"feature": order[0]}) for group in s.groups]
        blank = Cell("–", "none")
        rows.append((Cell("Pairs compared"), Cell(""), *(cell for m in counts for cell in (n_cell(m), blank))))
    header = ("Feature", "Kind", *(h for group in s.groups for h in (f"{group}: share", f"{group}: divergence")))
    note = "In brackets: intervals. The columns of a category count as one feature."
    title = f"Attribution divergence by feature, by {s.view.attribute}"
    return (TableView(title, header, tuple(rows), note, folded=True),) if rows else ()
