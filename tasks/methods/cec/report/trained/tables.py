"""What training for consistency came to: tables of the models, the plane of flips and scores, regimes, the frontier.

Every number is a mean over folds of held-out rows, with its standard deviation. Accuracy always stands beside
consistency: a model that decides alike for nearly everybody is consistent, and of no use.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tasks.methods.cec.algorithm.training.frontier import non_dominated
from tasks.methods.cec.algorithm.training.performance import LEAST_BALANCED_ACCURACY, POSITIVE_RATES
from tasks.methods.cec.report.charts import FRONT, POINT, frontier, plane, regimes, shades, shapes
from tasks.methods.cec.report.lookups import REGIME_LINES
from tasks.methods.cec.report.regimes import segments
from tasks.methods.cec.report.scores import frame
from tasks.methods.cec.report.trained.lookups import FULL, PREFIX, UNCONSTRAINED, Comparison, Trained, regimes_of
from tasks.reporting.charts.panels import told
from tasks.reporting.charts.vega import ACCENT, QUIET, REFERENCE
from tasks.reporting.comparison import capital, notes
from tasks.reporting.material import Measure, Shown, listed
from tasks.reporting.numbers import n_cell, number_cell, percent, value_cell
from tasks.reporting.section import Cell, Figure, Row, Swatch, TableView

_NAMED = {
    "auc": Shown("AUC", "number"),
    "f1": Shown("F1", "number"),
    "balanced_accuracy": Shown("balanced accuracy", "number"),
    "positive_rate": Shown("positive rate", "rate"),
    "eo_gap": Shown("EO gap", "number"),
    "sp_gap": Shown("SP gap", "number"),
    "cec": Shown("CEC", "number"),
    "cec_floor": Shown("matching floor", "number"),
    "cec_above_floor": Shown("CEC above floor", "number"),
    "flip_share": Shown("flips (PFR)", "rate"),
    "regime_share": Shown("share of pairs in a regime", "rate"),
    "collapsed": Shown("share of folds in which the model collapsed", "rate"),
    "non_dominated": Shown("on the front", "rate"),
}
MEASURES = {f"{PREFIX}{name}": Shown(f"trained model: {s.words}", s.unit) for name, s in _NAMED.items()}
_DECIDES = ("auc", "f1", "balanced_accuracy", "positive_rate", "eo_gap", "sp_gap", "non_dominated")
_REASONS = ("cec_above_floor", "cec", "cec_floor", "flip_share")
RULE = (
    f"balanced accuracy below {LEAST_BALANCED_ACCURACY:g}, or a positive rate outside of "
    f"{percent(POSITIVE_RATES[0])} to {percent(POSITIVE_RATES[1])}"
)
"""When a model counts as collapsed."""


def figures(c: Comparison) -> tuple[Figure, ...]:
    """Flips against scores, the regimes, and the frontier of the lambdas."""
    return _plane(c), _bars(c), _frontier(c)


def tables(c: Comparison) -> tuple[TableView, ...]:
    """What the models decide, what their reasons are, and the same for the grid of lambdas."""
    grid = tuple(model for model in c.nets if not model.number)
    return _decisions(c, c.compared), _reasons(c, c.compared), _decisions(c, grid), _reasons(c, grid)


def _plane(c: Comparison) -> Figure:
    points = [row for model in c.compared for row in _in_plane(model)]
    title = f"CEC against flips: {c.pair}"
    label = f"{title}. {told(points, 'of')}"
    caption = (
        "Each model by the share of pairs that it decides on differently (across) and by how far its reasons for two "
        "comparable applicants lie apart (upwards): means over folds, with one standard deviation to either side. "
        f"Grey triangle: its matching floor, on the same pairs. The horizontal line is theta = {c.settings.theta:g}, "
        "up to which the reasons of a pair count as the same; left of the vertical line most pairs are decided on "
        "alike. Upper left, B, is the same decision for other reasons. A point is an average: how many pairs are in "
        "each regime, the next figure says. Numbers are those of the tables."
    )
    legend = (Swatch("model", ACCENT, shape="circle"), Swatch("its matching floor", QUIET, shape="triangle"))
    panels = (plane(title, label, [*points, *frame(c.settings.theta)]),) if points else ()
    return Figure(title, panels, caption + _undrawn(c.compared, {row["of"] for row in points}), legend)


def _in_plane(model: Trained) -> Iterator[dict[str, Any]]:
    score, flips = model.known("cec"), model.known("flip_share")
    if score is not None and flips is not None:
        (low, high), (left, right) = _ends(score, model.spread("cec")), _ends(flips, model.spread("flip_share"))
        yield {
            **{"part": POINT, "of": model.warned, "number": str(model.number), "right": bool(model.number % 2)},
            **{"flip": flips, "flip_low": left, "flip_high": right, "cec": score, "low": low, "high": high},
            **{"floor": model.known("cec_floor")},
            "shown": f"{model.said('cec', 'number')}; {model.said('flip_share', 'rate')}",
        }


def _ends(mean: float, spread: float | None) -> tuple[float, float]:
    """A standard deviation to either side, within 0 and 1."""
    return max(0.0, mean - (spread or 0.0)), min(1.0, mean + (spread or 0.0))


def _bars(c: Comparison) -> Figure:
    bars = [(model, segments(regimes_of(model))) for model in c.compared]
    drawn = [{**row, "of": model.numbered} for model, parts in bars for row in parts]
    order = [model.numbered for model, parts in bars if parts]
    title = f"Regimes by model: {c.pair}"
    caption = (
        "Pairs of comparable held-out applicants by whether a model decides on both alike, and whether its reasons "
        f"count as the same (CEC up to theta = {c.settings.theta:g}): mean shares over folds. A model that decides "
        "alike for everybody is in A and B alone."
    )
    legend = tuple(Swatch(swatch.text, swatch.colour, shape="square") for swatch in REGIME_LINES.values())
    label = f"{title}; the numbers are in the table below."
    panels = (regimes(title, label, drawn, order, REGIME_LINES),) if drawn else ()
    return Figure(title, panels, caption + _undrawn(c.compared, {m.warned for m, parts in bars if parts}), legend)


def _frontier(c: Comparison) -> Figure:
    drawn = [model for model in c.nets if None not in (model.known("cec"), model.known("balanced_accuracy"))]
    used = [f"{value:g}" for value in sorted({w for model in drawn for w in model.weights or ()})]
    eo = shapes(v for v in used if any(v == f"{m.weights[0]:g}" for m in drawn if m.weights))
    cec = shades(v for v in used if any(v == f"{m.weights[1]:g}" for m in drawn if m.weights))
    best = front(drawn)
    rows = [_on_frontier(model, model.name in best) for model in drawn]
    title = f"Lambda frontier: {c.pair}"
    label = f"{title}; the numbers are in the tables below."
    caption = (
        "Every net by the two lambdas that it was trained with: CEC across, lower is more consistent, and balanced "
        "accuracy upwards; means over folds. A shade is a lambda of consistency (CEC) and a shape one of equal odds "
        "(EO). Dashed: the frontier, through the nets than which no other is both more accurate and more consistent. "
        f"Hollow: collapsed in at least one fold ({RULE}), and so not on the frontier, however consistent."
    )
    legend = (*cec.values(), *eo.values(), Swatch("frontier", REFERENCE, FRONT))
    panels = (frontier(title, label, rows, cec, eo),) if len(rows) > 1 else ()
    return Figure(title, panels, caption + _undrawn(c.nets, {model.warned for model in drawn}), legend)


def front(models: list[Trained]) -> set[str]:
    """Names of the nets that did not collapse and that no other such net beats in balanced accuracy and CEC."""
    able = [model for model in models if not model.collapsed]
    accuracy, score = (np.array([model.known(name) for model in able], float) for name in ("balanced_accuracy", "cec"))
    kept = non_dominated(accuracy, np.zeros(len(able)), score)
    return {model.name for model, stays in zip(able, kept, strict=True) if stays}


def _on_frontier(model: Trained, front: bool) -> dict[str, Any]:
    eo, cec = model.weights or (0.0, 0.0)
    return {
        **{"model": model.warned, "lambda_eo": f"{eo:g}", "lambda_cec": f"{cec:g}"},
        **{"cec": model.known("cec"), "accuracy": model.known("balanced_accuracy")},
        **{"collapsed": model.collapsed, "front": front},
        "name": model.name + " (collapsed)" * model.collapsed if model.name in (UNCONSTRAINED, FULL) else "",
        "shown": f"{model.said('balanced_accuracy', 'number')}; {model.said('cec', 'number')}",
    }


def _undrawn(models: tuple[Trained, ...], drawn: set[str]) -> str:
    out = [model.words for model in models if model.warned not in drawn]
    return f" Not drawn, because withheld or undefined: {listed(out)}." if out else ""


def _decisions(c: Comparison, models: tuple[Trained, ...]) -> TableView:
    told = _DECIDES if _named(models) else _DECIDES[:-1]  # models of the grid are on no front
    rows: list[Row] = []
    for model in models:
        cells = (model.cell(name, _NAMED[name].unit) for name in told)
        rows.append((*_first(model), _collapse(model), n_cell(model.mean("f1")), *cells))
    header = (*_header(models), "Collapsed", "Held-out rows", *(capital(_NAMED[name].words) for name in told))
    note = (
        f"Means over folds, ± their standard deviation. Collapsed: {RULE}; such a model is consistent because it "
        "decides alike for nearly everybody. EO gap: the larger of the gaps between the two groups in true and in "
        "false positive rates; SP gap: the gap in favourable decisions."
    )
    if _named(models):
        note += (
            " On the front: share of folds in which no other model of this table has an F1 as high, an EO gap as "
            "small and a CEC as small, and is better in one of them."
        )
    found = (model.mean(name) for model in models for name in told)
    title = f"What the models decide{_of(c, models)}"
    return TableView(title, header, tuple(rows), _noted(note, found), folded=not _named(models))


def _reasons(c: Comparison, models: tuple[Trained, ...]) -> TableView:
    rows: list[Row] = []
    for model in models:
        score = model.mean("cec")
        pairs = n_cell(score) if score and score.value is not None else value_cell(score, "number")
        scores = (model.cell(name, _NAMED[name].unit) for name in _REASONS)
        shares = (model.cell("regime_share", "rate", regime) for regime in REGIME_LINES)
        rows.append((*_first(model), _collapse(model), pairs, *scores, *shares))
    header = (
        *_header(models),
        "Collapsed",
        "Pairs",
        *(capital(_NAMED[name].words) for name in _REASONS),
        *REGIME_LINES,
    )
    note = (
        "Means over folds, ± their standard deviation. Read CEC above floor, and only of a model that did not "
        f"collapse. A to D: share of pairs in each regime at theta = {c.settings.theta:g}. Undefined: the reason is "
        "said above."
    )
    found = (model.mean(name) for model in models for name in _REASONS)
    title = f"What their reasons are{_of(c, models)}"
    return TableView(title, header, tuple(rows), _noted(note, found), folded=not _named(models))


def _noted(note: str, found: Iterator[Measure | None]) -> str:
    return f"{note} {notes(found)}".strip()


def _named(models: tuple[Trained, ...]) -> bool:
    return any(model.number for model in models)


def _of(c: Comparison, models: tuple[Trained, ...]) -> str:
    return f": {c.pair}" if _named(models) else f", for the grid of lambdas: {c.pair}"


def _header(models: tuple[Trained, ...]) -> tuple[str, ...]:
    return (*("Number", "Model") * _named(models), "Lambda EO", "Lambda CEC")


def _first(model: Trained) -> Row:
    lambdas = [Cell("–", "none")] * 2 if model.weights is None else [number_cell(f"{w:g}") for w in model.weights]
    return (*(Cell(str(model.number)), Cell(model.words)) * bool(model.number), *lambdas)


def _collapse(model: Trained) -> Cell:
    """Whether it collapsed, in words: no number beside it is to be read without."""
    m = model.mean("collapsed")
    if m is None or m.value is None:
        return value_cell(m, "rate")
    return Cell(f"collapsed: in {percent(m.value)} of the folds" if m.value else "no")
