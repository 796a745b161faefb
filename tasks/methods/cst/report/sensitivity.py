"""What the results of CST owe to choices: the number of neighbours, tau, and each arrow out of a protected attribute.

Nobody can say which k is right, or that the causal graph is. A result that a choice makes or breaks is a result about
the choice.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from tasks.methods.cst.report.charts.panels import settings
from tasks.methods.cst.report.lookups import CF, CST, SHARES, VARIANTS, Situations, name
from tasks.reporting.charts.panels import Rows, by_group, marks, most, told
from tasks.reporting.charts.rows import against
from tasks.reporting.charts.vega import ACCENT, QUIET
from tasks.reporting.comparison import capital
from tasks.reporting.lookups import plain_words
from tasks.reporting.material import Measure, Shown
from tasks.reporting.numbers import value_cell
from tasks.reporting.section import Cell, Figure, Panel, Row, Swatch, TableView

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
    return (
        _along(s, "share_significant", "k", "number of neighbours k", "Share significant against k", by_k),
        _along(s, AT_TAU, "tau", "tau", "Share detected against tau", by_tau),
    )


def _along(s: Situations, measure: str, x: str, words: str, title: str, caption: str) -> Figure:
    kinds = {name(v): VARIANTS[v] for v in s.shown}

    def rows(group: str) -> Iterator[dict[str, Any]]:
        for v in s.shown:
            for m in s.along(group, measure, v, x):
                yield from marks(m, "rate", closed=True, kind=name(v), x=m.said[x])

    def panel(group: str, rows: Rows, every: Rows) -> Panel:
        return settings(group, f"{title}: {group}; the numbers are in the tables.", rows, kinds, words, most(every))

    made = by_group(f"{title}, by {s.view.attribute}", s.others, rows, panel, caption + s.counted, kinds.values())
    several = len(
        {m.said[x] for v in s.shown for g in s.others for m in s.along(g, measure, v, x) if m.value is not None}
    )
    return made if several > 1 else replace(made, panels=())


def tables(s: Situations) -> tuple[TableView, ...]:
    """The share detected by tau; those by k stand with the headline."""
    variants = [v for v in s.variants if v != CF]
    taus = sorted({float(m.said["tau"]) for m in s.view.all(AT_TAU)})
    rows: list[Row] = []
    for group in s.others:
        for v in variants:
            found = {float(m.said["tau"]): m for m in s.along(group, AT_TAU, v, "tau")}
            rows.append((Cell(group), Cell(name(v)), *(value_cell(found.get(tau), "rate") for tau in taus)))
    header = ("Group", "Variant", *(f"tau = {tau:g}" for tau in taus))
    title = f"Share detected by tau, k = {s.settings.k}"
    return (TableView(title, header, tuple(rows) if taus else (), folded=True),)


def _arrow_figures(s: Situations) -> tuple[Figure, ...]:
    """Every result without one arrow out of the protected attribute, beside the graph as it was assumed."""
    caption = (
        f"Share significant by CST, k = {s.settings.k}, once the causal graph lacks the arrow that a row names, so "
        "that nothing is moved along it. Dashed: the graph as assumed. A large change means that the result rests on "
        "that arrow, and not that the arrow is right."
    )

    def panel(group: str, rows: Rows, every: Rows) -> Panel:
        label = f"Share significant in {group}. {told(rows, 'row')}"
        return against(group, label, rows, [row["row"] for row in rows], most(every))

    legend = (Swatch("without the arrow, with interval", ACCENT), Swatch(_WHOLE.lower(), QUIET, "4 3"))
    title = f"Share significant without an arrow, by {s.view.attribute}"
    groups = s.others if _named(s) else ()
    return (by_group(title, groups, lambda group: _of_edges(s, group), panel, caption + s.counted, legend),)


def _named(s: Situations) -> dict[str, str]:
    """The arrows that were left out, in words."""
    edges = sorted({str(m.said["without"]) for measure in WITHOUT for m in s.view.all(measure)})
    return {edge: " → ".join(plain_words(s.material, node) for node in edge.split(" -> ")) for edge in edges}


def _edge(s: Situations, group: str, measure: str, edge: str) -> Measure | None:
    return s.view.get(group, measure, {"k": s.settings.k, "variant": CST, "without": edge})


def _of_edges(s: Situations, group: str) -> Iterator[dict[str, Any]]:
    whole = marks(s.get(group, "share_significant", CST), "rate", closed=True, row=_WHOLE)
    yield from whole
    for edge, words in _named(s).items() if whole else ():
        yield from marks(_edge(s, group, "share_significant_without", edge), "rate", closed=True, row=words)


def _arrow_tables(s: Situations) -> tuple[TableView, ...]:
    named, rows = _named(s), list[Row]()
    for group in s.others if named else ():
        whole = [s.get(group, measure, CST) for measure in SHARES]
        rows.append((Cell(group), Cell(_WHOLE), *_cells(whole)))
        rows += [
            (Cell(group), Cell(words), *_cells(_edge(s, group, m, edge) for m in WITHOUT))
            for edge, words in named.items()
        ]
    header = ("Group", "Without", *(capital(shown.words) for shown in SHARES.values()))
    note = "Control groups stay as they are; mechanisms are fitted again without the cause."
    return (TableView(f"Without each arrow out of {s.view.attribute}, k = {s.settings.k}", header, tuple(rows), note),)


def _cells(found: Iterable[Measure | None]) -> list[Cell]:
    return [value_cell(m, "rate") for m in found]


ARROWS = SimpleNamespace(figures=_arrow_figures, tables=_arrow_tables)
"""The part on arrows of the causal graph."""
