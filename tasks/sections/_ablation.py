"""What each rule has to do with who has no recourse, and how the graph hangs together as a step grows longer.

Every group is drawn beside its own baseline: the same search with all rules kept. Captions say what was lifted and no
more. That a group has recourse without a rule does not show that the rule is wrong, nor that it is the cause.

Here belong the figures and tables of the ablations. The order of FGCE's chapter is in ``fgce``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from tasks.sections import charts
from tasks.sections._material import Measure, Shown, View, listed, undrawn
from tasks.sections._numbers import n_cell, number_cell, significant, value, value_cell
from tasks.sections._section import Cell, Figure, Panel, Row, Swatch, TableView

MEASURES = {
    "infeasible_share_without": Shown("infeasible share with a rule lifted", "rate"),
    "burden_without": Shown("burden with a rule lifted", "number"),
    "components": Shown("weakly connected components", "count"),
    "strong_components": Shown("strongly connected components", "count"),
    "singletons": Shown("applications without any feasible step", "count"),
    "density": Shown("density (share of ordered pairs joined)", "number"),
}

GLOSSARY = {
    "lifted rule": "a constraint, or the limit on one step, that a search leaves out to see what depends on it: a "
    "thought experiment about the graph, no advice and no proof of cause",
    "density": "share of the ordered pairs of a group's applications that one feasible step joins",
}

_CONNECTIVITY = ("components", "strong_components", "singletons", "density")
_BASELINE = "nothing"
_CAPTIONS = {
    "infeasible_share_without": "Share of the group's factuals without any feasible candidate.",
    "burden_without": "Mean cost of the cheapest feasible candidate, of the factuals that have one. Lifting a rule may "
    "raise this mean although nobody pays more, because factuals without recourse before are now counted.",
}


def figures(view: View) -> tuple[Figure, ...]:
    """Infeasible share and burden with each rule lifted; connectivity against epsilon where the view holds it."""
    lifted = [_lifted(view, measure) for measure in _CAPTIONS]
    return tuple(f for f in (*lifted, _connectivity(view)) if f.panels)


def tables(view: View) -> tuple[TableView, ...]:
    """The numbers of the figures, with a row for every group."""
    return tuple(t for t in (_shares(view), _numbers(view), _connectivity_table(view)) if t.rows)


def rules(view: View) -> list[str]:
    """What was lifted, in the order of the searches: features first, then what is not a feature."""
    found = {str(m.said["without"]) for m in view.all("infeasible_share_without")}
    last = [name for name in ("epsilon", "every constraint", "every constraint and epsilon") if name in found]
    return [*sorted(found - {_BASELINE, *last}), *last]


def _words(rule: str) -> str:
    """What was lifted, in words."""
    named = {
        _BASELINE: "all rules kept",
        "epsilon": "without the limit on one step",
        "every constraint": "without any constraint",
        "every constraint and epsilon": "without any constraint or limit",
    }
    return named.get(rule, f"without the constraint on {rule}")


def _found(view: View, measure: str) -> dict[tuple[str, str], Measure]:
    """(group, what is lifted) -> measure."""
    return {(m.group, str(m.said["without"])): m for m in view.all(measure)}


def _lifted(view: View, measure: str) -> Figure:
    """One panel for each lifted rule that changes anything, every group beside its baseline."""
    found, shown = _found(view, measure), MEASURES[measure]
    panels, unchanged, drawn = [], [], set[str]()
    for rule in rules(view):
        pairs = {g: (found.get((g, rule)), found.get((g, _BASELINE))) for g in view.groups}
        known = {g: (own, base) for g, (own, base) in pairs.items() if _has(own) and _has(base)}
        drawn |= set(known)
        if known and all(own.value == base.value for own, base in known.values() if own and base):
            unchanged.append(_words(rule))
        elif known:
            panels.append(_panel(_words(rule), view, known, shown))
    same = f" As with all rules kept in every group drawn: {listed(unchanged)}." if unchanged else ""
    caption = (
        f"{_CAPTIONS[measure]} Above: with the rule lifted. Below: with all rules kept. Groups are never crossed. "
        "Compare each group with its own baseline: a small group has a thinner graph, whatever the rules. This is a "
        "thought experiment about the graph; it is no advice, and no proof of what causes what."
    )
    legend = (Swatch("rule lifted, with interval", charts.ACCENT), Swatch("all rules kept", charts.QUIET))
    title = f"{shown.words.capitalize()}, by {view.attribute}"
    return Figure(title, tuple(panels), caption + same + undrawn(view.groups, drawn), legend)


def _has(m: Measure | None) -> bool:
    return m is not None and m.value is not None


def _panel(title: str, view: View, known: Mapping[str, tuple[Measure | None, Measure | None]], shown: Shown) -> Panel:
    rows = [
        {"group": group, "what": what, "value": m.value, "low": m.low, "high": m.high, "shown": value(m, shown.unit)}
        for group, pair in known.items()
        for what, m in zip(("own", "matched"), pair, strict=True)
        if m
    ]
    said = "; ".join(f"{r['group']}: {r['shown']}" + " with all rules" * (r["what"] == "matched") for r in rows)
    label = f"{shown.words} by {view.attribute}, {title}. {said}"
    return charts.intervals(_capital(title), label, rows, list(known), shown.unit == "rate")


def _connectivity(view: View) -> Figure:
    """One panel for each measure of connectivity, one line a group."""
    swatches = charts.palette(view.groups, view.reference)
    panels, drawn = [], set[str]()
    for measure in _CONNECTIVITY:
        shown = MEASURES[measure]
        rows = [
            {"group": m.group, "epsilon": m.said["epsilon"], "value": m.value, "shown": value(m, shown.unit)}
            for m in view.all(measure)
            if m.value is not None
        ]
        if rows:
            drawn |= {str(row["group"]) for row in rows}
            label = f"{shown.words} against epsilon, one line for each group of {view.attribute}; numbers in the table."
            title = _capital(shown.words)
            panels.append(_lines(title, label, rows, swatches, logarithmic=shown.unit == "count"))
    caption = (
        "Counts are over applications: equal ones are joined both ways. A longer step joins more. Counts are drawn on "
        "a logarithmic scale and grow with the size of the group; measured at the marked lengths, joined by straight "
        "lines."
    )
    legend = tuple(swatch for group, swatch in swatches.items() if group in drawn)
    title = f"How applications are joined, against the length of one step, by {view.attribute}"
    return Figure(title, tuple(panels), caption + undrawn(view.groups, drawn), legend)


def _lines(
    title: str, label: str, rows: Sequence[Mapping[str, Any]], swatches: Mapping[str, Swatch], logarithmic: bool
) -> Panel:
    """Values against epsilon, one line a group, on a scale that is theirs; ``symlog`` because counts may be 0."""
    domain, dashes = list(swatches), [[float(d) for d in s.dash.split()] or [1, 0] for s in swatches.values()]
    ticks = (
        alt.Axis(values=[0, *(10**power for power in range(8))], format=",d") if logarithmic else alt.Axis(tickCount=5)
    )
    scale = alt.Scale(type="symlog" if logarithmic else "linear", zero=True, nice=False)
    base = alt.Chart(alt.Data(values=[dict(row) for row in rows])).encode(
        x=alt.X("epsilon:Q", title="epsilon (encoded units)", axis=alt.Axis(tickCount=5), scale=alt.Scale(zero=False)),
        y=alt.Y("value:Q", title=None, scale=scale, axis=ticks),
        color=alt.Color(
            "group:N", legend=None, scale=alt.Scale(domain=domain, range=[s.colour for s in swatches.values()])
        ),
        tooltip=[alt.Tooltip("group:N"), alt.Tooltip("epsilon:Q"), alt.Tooltip("shown:N", title=title.lower())],
    )
    dash = alt.StrokeDash("group:N", legend=None, scale=alt.Scale(domain=domain, range=dashes))
    line = base.mark_line(strokeWidth=2).encode(strokeDash=dash)
    return charts._panel(title, label, line + base.mark_point(filled=True, size=14, opacity=1), charts.HEIGHT)


def _shares(view: View) -> TableView:
    """Infeasible shares, a row for every group and a column for every rule."""
    found = _found(view, "infeasible_share_without")
    lifted = [_BASELINE, *rules(view)]
    rows = [
        (Cell(group), *(value_cell(found.get((group, rule)), "rate", interval=False) for rule in lifted))
        for group in view.groups
    ]
    header = ("Group", *(_capital(_words(rule)) for rule in lifted))
    note = (
        "A feature without order has a column for each of its categories, and to change between two of them is a step "
        "of 1.41 in encoded units: while the limit on one step is shorter, no step does so, constraint or not."
    )
    title = f"Infeasible share with each rule lifted, by {view.attribute}"
    return TableView(title, header, tuple(rows) if found else (), note)


def _numbers(view: View) -> TableView:
    """Both measures with their intervals, a row for every group and rule."""
    share, burden = _found(view, "infeasible_share_without"), _found(view, "burden_without")
    rows: list[Row] = []
    for group in view.groups:
        for rule in (_BASELINE, *rules(view)):
            own, paid = share.get((group, rule)), burden.get((group, rule))
            cells = n_cell(own), value_cell(own, "rate"), value_cell(paid, "number")
            rows.append((Cell(group), Cell(_words(rule)), *cells))
    title = f"Infeasible share and burden with each rule lifted, by {view.attribute}: the numbers of the figures"
    header = ("Group", "Search", "Factuals", "Infeasible share", "Burden")
    return TableView(title, header, tuple(rows) if share else (), _cut([*share.values()]), folded=True)


def _cut(found: Iterable[Measure]) -> str:
    """Which searches saw only a part of their graph."""
    cut = {str(m.said["without"]): m.said["nearest"] for m in found if "nearest" in m.said}
    kept = "; ".join(f"{_words(rule)}: the {nearest:g} nearest" for rule, nearest in sorted(cut.items()))
    return f"To save memory, only the nearest feasible steps of each application were kept. {kept}." if cut else ""


def _connectivity_table(view: View) -> TableView:
    found = {(m.group, float(m.said["epsilon"]), m.measure): m for name in _CONNECTIVITY for m in view.all(name)}
    epsilons = sorted({epsilon for _, epsilon, _ in found})
    rows: list[Row] = []
    for group in view.groups:
        for epsilon in epsilons:
            each = [found.get((group, epsilon, name)) for name in _CONNECTIVITY]
            cells = (value_cell(m, MEASURES[name].unit) for name, m in zip(_CONNECTIVITY, each, strict=True))
            rows.append((Cell(group), number_cell(significant(epsilon)), n_cell(each[0]), *cells))
    title = f"Connectivity against epsilon, by {view.attribute}: the numbers of the figure"
    header = ("Group", "Epsilon", "Applications", *(_capital(MEASURES[name].words) for name in _CONNECTIVITY))
    return TableView(title, header, tuple(rows) if found else (), folded=True)


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]
