"""What the results of CST owe to choices: the number of neighbours, tau, and each arrow out of a protected attribute.

Nobody can say which k is right, or that the causal graph is. A result that a choice makes or breaks is a result about
the choice.
"""

from collections.abc import Iterable
from typing import Any

from tasks.methods.cst.report.charts import settings
from tasks.methods.cst.report.lookups import CF, CST, SHARES, VARIANTS, Situations, name
from tasks.reporting.charts.rows import against
from tasks.reporting.charts.vega import ACCENT, QUIET
from tasks.reporting.comparison import capital
from tasks.reporting.material import Material, Measure, Shown, undrawn
from tasks.reporting.numbers import value, value_cell
from tasks.reporting.section import Cell, Figure, Panel, Row, Swatch, TableView
from tasks.reporting.words import plain_words

AT_TAU = "share_detected_at"
WITHOUT = {
    "share_significant_without": Shown("share significant without an arrow", "rate"),
    "share_detected_without": Shown("share detected without an arrow", "rate"),
}
MEASURES = {AT_TAU: Shown("share detected at a tau", "rate"), **WITHOUT}

_WHOLE = "Graph as assumed"


def figures(s: Situations) -> tuple[Figure, ...]:
    """Share significant against k, and share detected against tau; a panel for each group."""
    by_k = (
        f"Share of the complainants whose test is significant at {s.level} after Benjamini-Hochberg, by the number of "
        "neighbours in each group. More neighbours make the test surer and the neighbours less alike."
    )
    by_tau = (
        f"Share of the complainants whose delta is above tau, among {s.settings.k} nearest each, significant or not. "
        "At tau = 0 chance alone detects many."
    )
    made = (
        _along(s, "share_significant", "k", "number of neighbours k", "Share significant against k", by_k),
        _along(s, AT_TAU, "tau", "tau", "Share detected against tau", by_tau),
    )
    return tuple(figure for figure in made if figure.panels)


def _along(s: Situations, measure: str, x: str, words: str, title: str, caption: str) -> Figure:
    found = {group: [row for v in s.shown for row in _points(s, group, v, measure, x)] for group in s.groups}
    drawn = {group: rows for group, rows in found.items() if rows}
    several = len({row["x"] for rows in drawn.values() for row in rows}) > 1
    most = max((row["high"] for rows in drawn.values() for row in rows), default=0.0) * 1.05 or 0.01
    kinds = {name(v): VARIANTS[v] for v in s.shown}
    panels = tuple(
        settings(group, f"{title}: {group}; the numbers are in the tables.", rows, kinds, words, most)
        for group, rows in drawn.items()
        if several
    )
    caption += s.counted + undrawn(s.groups, set(drawn))
    return Figure(f"{title}, by {s.view.attribute}", panels, caption, tuple(kinds.values()))


def _points(s: Situations, group: str, variant: str, measure: str, x: str) -> list[dict[str, Any]]:
    return [
        {
            "kind": name(variant),
            "x": m.said[x],
            "value": m.value,
            "low": m.value if m.low is None else m.low,
            "high": m.value if m.high is None else m.high,
            "shown": value(m, "rate"),
        }
        for m in s.along(group, measure, variant, x)
        if m.value is not None
    ]


def tables(s: Situations) -> tuple[TableView, ...]:
    """The share detected by tau; those by k stand with the headline."""
    variants = [v for v in s.variants if v != CF]
    taus = sorted({float(m.said["tau"]) for m in s.view.all(AT_TAU)})
    rows: list[Row] = []
    for group in s.groups:
        for v in variants:
            found = {float(m.said["tau"]): m for m in s.along(group, AT_TAU, v, "tau")}
            rows.append((Cell(group), Cell(name(v)), *(value_cell(found.get(tau), "rate") for tau in taus)))
    header = ("Group", "Variant", *(f"tau = {tau:g}" for tau in taus))
    title = f"Share detected by tau, k = {s.settings.k}"
    return (TableView(title, header, tuple(rows), folded=True),) if taus else ()


def arrows(material: Material, s: Situations) -> tuple[tuple[Figure, ...], tuple[TableView, ...]]:
    """Every result without one arrow out of the protected attribute, beside the graph as it was assumed."""
    edges = sorted({str(m.said["without"]) for measure in WITHOUT for m in s.view.all(measure)})
    if not edges:
        return (), ()
    named = {edge: _arrow(material, edge) for edge in edges}
    table = _edges(s, named)
    drawn = {group: _of_edges(s, group, named) for group in s.groups}
    drawn = {group: rows for group, rows in drawn.items() if rows}
    most = max((row["high"] for rows in drawn.values() for row in rows), default=0.0) * 1.05 or 0.01
    panels = tuple(_panel(group, rows, most) for group, rows in drawn.items())
    caption = (
        f"Share significant by CST, k = {s.settings.k}, once the causal graph lacks the arrow that a row names, so "
        "that nothing is moved along it. Dashed: the graph as assumed. A large change means that the result rests on "
        "that arrow, and not that the arrow is right."
    )
    legend = (Swatch("without the arrow, with interval", ACCENT), Swatch(_WHOLE.lower(), QUIET, "4 3"))
    title = f"Share significant without an arrow, by {s.view.attribute}"
    figure = Figure(title, panels, caption + s.counted + undrawn(s.groups, set(drawn)), legend)
    return ((figure,) if panels else ()), (table,)


def _arrow(material: Material, edge: str) -> str:
    return " → ".join(plain_words(material, node) for node in edge.split(" -> "))


def _edge(s: Situations, group: str, measure: str, edge: str) -> Measure | None:
    return s.view.get(group, measure, {"k": s.settings.k, "variant": CST, "without": edge})


def _of_edges(s: Situations, group: str, named: dict[str, str]) -> list[dict[str, Any]]:
    whole = s.get(group, "share_significant", CST)
    found = [(_WHOLE, whole), *((words, _edge(s, group, "share_significant_without", e)) for e, words in named.items())]
    if whole is None or whole.value is None:
        return []
    return [
        {
            "row": row,
            "value": m.value,
            "low": m.value if m.low is None else m.low,
            "high": m.value if m.high is None else m.high,
            "shown": value(m, "rate"),
        }
        for row, m in found
        if m is not None and m.value is not None
    ]


def _panel(group: str, rows: list[dict[str, Any]], most: float) -> Panel:
    label = f"Share significant in {group}. " + "; ".join(f"{row['row']}: {row['shown']}" for row in rows)
    return against(group, label, rows, [row["row"] for row in rows], most)


def _edges(s: Situations, named: dict[str, str]) -> TableView:
    rows: list[Row] = []
    for group in s.groups:
        whole = [s.get(group, measure, CST) for measure in SHARES]
        rows.append((Cell(group), Cell(_WHOLE), *_cells(whole)))
        rows += [
            (Cell(group), Cell(words), *_cells(_edge(s, group, m, edge) for m in WITHOUT))
            for edge, words in named.items()
        ]
    header = ("Group", "Without", *(capital(shown.words) for shown in SHARES.values()))
    note = "Control groups stay as they are; mechanisms are fitted again without the cause."
    return TableView(f"Without each arrow out of {s.view.attribute}, k = {s.settings.k}", header, tuple(rows), note)


def _cells(found: Iterable[Measure | None]) -> list[Cell]:
    return [value_cell(m, "rate") for m in found]
