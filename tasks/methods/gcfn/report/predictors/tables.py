"""What fairness by imagined mediators came to: the trade-off, utility, rates by group, and where scores went.

Accuracy always stands beside unfairness: a predictor that gives everybody the same score is fair in this sense, and of
no use. Every number is of held-out rows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tasks.methods.gcfn.report.charts import scores, trade_off, utilities
from tasks.methods.gcfn.report.lookups import ROUNDED
from tasks.methods.gcfn.report.predictors.lookups import (
    ABDUCTED,
    ACCURACY,
    CFAN,
    CFUA,
    GCFN,
    GIVEN,
    MOVED,
    OTHERWISE,
    UNCONSTRAINED,
    UNFAIRNESS,
    Fair,
    Predictor,
)
from tasks.reporting.charts.panels import Rows, by_group
from tasks.reporting.charts.vega import ACCENT, QUIET, REFERENCE, WARM, palette
from tasks.reporting.comparison import capital
from tasks.reporting.material import Measure, Shown, listed
from tasks.reporting.numbers import missing_words, n_cell, number_cell, value, value_cell
from tasks.reporting.section import Cell, Figure, Panel, Row, Swatch, TableView

UTILITY, SCORES = "fair_utility", "fair_score_share"
MEASURES = {
    ACCURACY: Shown("trained predictor: accuracy", "rate"),
    "fair_ppv": Shown("trained predictor: positive predictive value (PPV)", "rate"),
    "fair_fpr": Shown("trained predictor: false positive rate (FPR)", "rate"),
    "fair_fnr": Shown("trained predictor: false negative rate (FNR)", "rate"),
    UNFAIRNESS: Shown("trained predictor: unfairness (CF)", "number"),
    MOVED: Shown("trained predictor: change of the score (root of CF)", "number"),
    UTILITY: Shown("trained predictor: utility", "number"),
    SCORES: Shown("trained predictor: share by score", "rate"),
    OTHERWISE: Shown("share decided otherwise than by the audited model", "rate"),
    ABDUCTED: Shown("CFAN: share whose noise a causal model abducted", "rate"),
}
_RATES = {ACCURACY: "Accuracy", "fair_ppv": "PPV", "fair_fpr": "FPR", "fair_fnr": "FNR"}
_KINDS = {
    GCFN: Swatch("GCFN, with its lambda", ACCENT, shape="circle"),
    UNCONSTRAINED: Swatch("unconstrained (lambda 0)", REFERENCE, shape="diamond"),
    CFUA: Swatch("CFUA", WARM, shape="square"),
    CFAN: Swatch("CFAN", QUIET, shape="triangle"),
}
Draw = Callable[[str, str, Rows, Mapping[str, Swatch], Rows], Panel]


def figures(f: Fair) -> tuple[Figure, ...]:
    """The trade-off, utility by gamma, and scores with and without the regularisation."""
    return _trade_off(f), _utility(f), _scores(f)


def _trade_off(f: Fair) -> Figure:
    title = f"Accuracy against how far scores move, by {f.view.attribute}"
    caption = (
        "Each predictor by how far its score moves between the applicant and what generators imagine (across, the root "
        "of CF: further left is fairer), and by its accuracy (upwards). Along the line only lambda differs. To the "
        "left at the same height is better; how far left the line may be followed is a choice that no figure makes. "
        "CFUA sees no mediator, so that its scores do not move by construction."
    )
    caption += f" {ROUNDED}" * f.coarse
    return _by_group(f, title, caption, _KINDS, lambda group: _marks(f, group), trade_off)


def _marks(f: Fair, group: str) -> Iterator[dict[str, Any]]:
    for place, p in enumerate(f.trained):
        found, moved = f.get(group, p, ACCURACY), f.get(group, p, MOVED)
        if found is None or moved is None or found.value is None or moved.value is None:
            continue
        said = {"model": p.words, "kind": p.name, "curve": p.on_curve, "place": place}
        shown = f"{value(found, 'rate')}; {value(moved, 'number')}"
        name = f"{p.weight:g}" if p.name == GCFN else ""
        yield {**said, "moved": moved.value, "accuracy": found.value, "name": name, "shown": shown}


def _utility(f: Fair) -> Figure:
    kinds = _lines(f.trained)
    title = f"Utility by its weight on unfairness, by {f.view.attribute}"
    caption = (
        "Utility is accuracy less gamma times CF: what a predictor is worth to somebody to whom unfairness matters "
        "gamma times as much as accuracy. Nobody can say from data which gamma is right."
    )
    return _by_group(f, title, caption, kinds, lambda group: _utilities(f, group), utilities)


def _utilities(f: Fair, group: str) -> Iterator[dict[str, Any]]:
    for p in f.trained:
        for gamma in _gammas(f):
            m = f.get(group, p, UTILITY, gamma=gamma)
            if m is not None and m.value is not None:
                yield {"what": p.words, "x": gamma, "value": m.value, "shown": value(m, "number")}


def _lines(predictors: Iterable[Predictor]) -> dict[str, Swatch]:
    """Colour and dash of each predictor; the unconstrained one is the dark line, as a reference group is."""
    names = {p.words: p.name for p in predictors}
    reference = next((words for words, name in names.items() if name == UNCONSTRAINED), "")
    drawn = palette(list(names), reference)
    return {words: Swatch(words, swatch.colour, swatch.dash) for words, swatch in drawn.items()}


def _scores(f: Fair) -> Figure:
    ends = f.ends()
    kinds = _lines(ends or ())
    caption = (
        "Share of applicants by score, in equal intervals: without the regularisation, and with the largest lambda. A "
        "gap in a line is withheld. Where lambda is large scores draw together, and predictors tell applicants apart "
        "less."
    )
    title = f"Scores with and without the regularisation, by {f.view.attribute}"
    return _by_group(f, title, caption, kinds, lambda group: _steps(f, group, ends or ()), scores)


def _steps(f: Fair, group: str, ends: Iterable[Predictor]) -> Iterator[dict[str, Any]]:
    for p in ends:
        found = _bins(f, group, p)
        if all(m.value is None for m in found.values()):
            continue
        ends_of = [(end, m) for (low, high), m in found.items() for end in (low, high)]
        for place, (end, m) in enumerate(ends_of):
            shown = value(m, "rate", interval=False)
            yield {"what": p.words, "place": place, "x": end, "value": m.value, "shown": shown}


def _bins(f: Fair, group: str, p: Predictor) -> dict[tuple[float, float], Measure]:
    mine = (m for m in f.view.all(SCORES) if m.group == group and dict(p.said).items() <= m.said.items())
    found = {(float(m.said["from"]), float(m.said["to"])): m for m in mine}
    return dict(sorted(found.items()))


def _by_group(
    f: Fair,
    title: str,
    caption: str,
    kinds: Mapping[str, Swatch],
    rows_of: Callable[[str], Iterable[Mapping[str, Any]]],
    draw: Draw,
) -> Figure:
    """A panel for every group with rows, all on one scale; groups without are named."""
    label = f"{title}; the numbers are in the tables below."

    def panel(group: str, rows: Rows, every: Rows) -> Panel:
        return draw(f.view.named(group), label, rows, kinds, every)

    return by_group(title, f.groups, rows_of, panel, caption, kinds.values())


def tables(f: Fair) -> tuple[TableView, ...]:
    """Rates of every group and predictor, and the numbers of the figures."""
    return _rates(f), _by_gamma(f), _densities(f)


def _rates(f: Fair) -> TableView:
    rows: list[Row] = []
    for group in f.measured:
        for p in f.predictors:
            found = [f.get(group, p, measure) for measure in _RATES]
            own = (
                *(_none(p, f.get(group, p, measure), "number") for measure in (MOVED, UNFAIRNESS)),
                _none(p, f.get(group, p, OTHERWISE), "rate"),
            )
            cells = (value_cell(m, "rate") for m in found)
            rows.append((Cell(f.view.named(group)), Cell(capital(p.words)), n_cell(found[0]), *cells, *own))
    header = ("Group", "Predictor", "Held-out rows", *_RATES.values(), "Score change", "CF", "Decided otherwise")
    note = (
        "Against the lender's own decisions, or the outcome that the audit spec names. Positive is favourable; a "
        "predictor decides favourably from a score of 0.5 on, the audited model as it does. PPV: positives that were "
        "right; FPR and FNR: errors among those with an unfavourable and with a favourable label. Decided otherwise: "
        "than by the audited model, which decides at a limit of its own: a part may be that. Score change: the root of "
        "CF, on the scale of the score. In brackets: intervals of the rows, for these trained predictors and "
        "the worst network as it is; another seed would make others."
    )
    note += _seen_by_cfan(f) + f" {ROUNDED}" * f.coarse
    return TableView(f"Predictors on held-out rows, by {f.view.attribute}", header, tuple(rows), note)


def _seen_by_cfan(f: Fair) -> str:
    """Which noise it is, mediator by mediator: a residual is no abducted noise, and is not to pass for it."""
    abducted = [name for name, shares in f.noise.items() if any(shares)]
    residual = [name for name, shares in f.noise.items() if shares and not any(shares)]
    said = [
        f"of {listed(abducted)} the noise that the causal model of the audit spec abducts" * bool(abducted),
        f"of {listed(residual)} the residual about the mean of people alike, since no causal graph of the audit spec "
        "leads there" * bool(residual),
    ]
    known = [part for part in said if part]
    if not known:
        return ""
    some = any(share < 1 for name in abducted for share in f.noise[name])
    left = " Whose noise could not be abducted counts with the mean one." * some
    return f" CFAN sees {listed(known)}.{left}"


def _none(p: Predictor, m: Measure | None, unit: Any) -> Cell:
    """What the audited model has none of by its nature is a dash."""
    return Cell("–", "none") if p.name == GIVEN and m is None else value_cell(m, unit)


def _gammas(f: Fair) -> list[float]:
    return sorted({float(m.said["gamma"]) for m in f.view.all(UTILITY)})


def _by_gamma(f: Fair) -> TableView:
    gammas = _gammas(f)
    rows = tuple(
        (
            Cell(f.view.named(group)),
            Cell(capital(p.words)),
            *(value_cell(f.get(group, p, UTILITY, gamma=gamma), "number") for gamma in gammas),
        )
        for group in (f.measured if gammas else ())
        for p in f.trained
    )
    header = ("Group", "Predictor", *(f"gamma = {gamma:g}" for gamma in gammas))
    title = f"Utility, by {f.view.attribute}: the numbers of the figure"
    return TableView(title, header, rows, folded=True)


def _densities(f: Fair) -> TableView:
    columns = [(group, p, _bins(f, group, p)) for group in f.measured for p in f.ends() or ()]
    bins = sorted({ends for _, _, found in columns for ends in found})
    rows = tuple(
        (number_cell(f"{low:g} to {high:g}"), *(_share(found.get((low, high))) for _, _, found in columns))
        for low, high in bins
    )
    header = ("Score", *(f"{group}: {p.words}" for group, p, _ in columns))
    title = f"Scores, by {f.view.attribute}: the numbers of the figure"
    return TableView(title, header, rows, folded=True)


def _share(m: Measure | None) -> Cell:
    return Cell(missing_words(m), "none") if m is None else value_cell(m, "rate", interval=False)
