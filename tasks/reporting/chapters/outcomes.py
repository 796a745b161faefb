"""Decisions by group: approval and denial rates, their differences and ratios, and how well the model follows.

Rates are measures of the stage ``measure``; this module orders and words them.
"""

from collections.abc import Callable

from schemas.terms import DecisionMaker
from tasks.metrics.algorithm.disclosure import rounded
from tasks.reporting.charts import vega
from tasks.reporting.comparison import capital
from tasks.reporting.material import Material, Shown, View, anchor, undrawn
from tasks.reporting.numbers import count, n_cell, number_cell, p_cell, percent, significant, value, value_cell
from tasks.reporting.section import Cell, Figure, Row, Section, Swatch, TableView

QUESTION = "Do decisions differ between groups?"
MEASURES = {
    "approval_rate": Shown("approval rate", "rate"),
    "denial_rate": Shown("denial rate", "rate"),
}
GLOSSARY = {
    "approval rate, denial rate": "share of a group's decisions that are favourable, or unfavourable, to the applicant",
    "difference, ratio": "the group's rate minus, or divided by, the reference group's rate; pp are percentage points",
}
_METRICS = {
    "accuracy": "agreement with the lender",
    "auc": "area under the ROC curve",
    "predicted_denial_rate": "predicted denial rate",
    "true_positive_rate": "true positive rate",
    "false_positive_rate": "false positive rate",
}
_FOLLOWS = {"model": "How well the model follows the lender", "rule": "How often the rule agrees with the lender"}
_CARE = {
    "model": "A model that follows the lender less well in one group describes that group's decisions less well: read "
    "its results there with more care.",
    "rule": "The rule was given and not made to follow the lender: where the two disagree, neither is wrong by that.",
}
_FOLLOWING = (
    "What is said of equal treatment and of outcomes is about the lender's decisions: this model is fitted to approve "
    "as often as the lender and does not see the protected attribute, so that it cannot show how the lender treats "
    "applicants who are alike in all but that."
)


def limits(_: Material) -> tuple[str, ...]:
    """Nothing beyond the limits of the data and of any audit."""
    return ()


def chapter(material: Material) -> Section:
    """Rates by group, first for the model, then for the lender's own decisions."""
    words = (
        "Rates are compared as they are: nothing is held constant between the groups. A difference may have causes "
        "that the data do not show. The lender's rates count every application with a decision, those of the "
        f"{material.model} only the rows that it could score.",
    )
    parts = tuple(_maker(material, maker) for maker in material.makers("outcomes"))
    return Section("Decisions by group", "outcomes", words, parts=parts)


def _maker(material: Material, maker: str) -> Section:
    parts = tuple(_attribute(material, view) for view in material.views("outcomes", maker))
    words = (_FOLLOWING,) if maker == DecisionMaker.MODEL and _follows(material) else ()
    return Section(capital(material.whose(maker)), f"outcomes-{maker}", words, parts=parts)


def _follows(material: Material) -> bool:
    """Whether the model was fitted to the lender's decisions, made to approve as often, and is told of no group."""
    model, columns = material.settings.model, material.settings.columns
    told = {name for each in material.settings.protected for name in each.columns if name in columns}
    if any(columns[name].used for name in told):
        return False
    return model.kind not in ("none", "rule", "file") and model.threshold == "rate_matched"


def _attribute(material: Material, view: View) -> Section:
    tables = (_rates(view), _comparisons(view), *(_metrics(material, view) if view.maker == "model" else ()))
    name = anchor("outcomes", view.maker, view.attribute)
    return Section(f"By {view.attribute}", name, figures=_figures(material, view), tables=tables)


def _figures(material: Material, view: View) -> tuple[Figure, ...]:
    rows = []
    for group in view.groups:
        m = view.get(group, "approval_rate")
        if m and m.value is not None:
            shown = f"{value(m, 'rate')}, n = {'withheld' if m.n is None else count(m.n)}"
            rows.append({"group": group, "what": "own", "value": m.value, "low": m.low, "high": m.high, "shown": shown})
    if not rows:
        return ()
    level = f"{100 * material.settings.bootstrap.level:g} %"
    title = f"Approval rate by {view.attribute}: {view.whose}"
    said = "; ".join(f"{r['group']} {r['shown']}" for r in rows)
    panel = vega.intervals(title, f"{title}. {said}", rows, [str(r["group"]) for r in rows], share=True)
    caption = f"Dots are approval rates, bars their {level} intervals; the reference group is {view.reference}."
    caption += undrawn(view.groups, {str(r["group"]) for r in rows})
    return (Figure(title, (panel,), caption, (Swatch("approval rate with interval", vega.ACCENT),)),)


def _rates(view: View) -> TableView:
    columns: dict[str, Callable[[str], Cell]] = {
        "Group": lambda group: Cell(view.named(group)),
        "Applications": lambda group: n_cell(view.get(group, "approval_rate")),
        "Approval rate": lambda group: value_cell(view.get(group, "approval_rate"), "rate"),
        "Denial rate": lambda group: value_cell(view.get(group, "denial_rate"), "rate"),
    }
    return TableView.of(f"Applications and rates by {view.attribute}: {view.whose}", view.groups, columns)


def _comparisons(view: View) -> TableView:
    rows: list[Row] = []
    for group in view.groups:
        if group == view.reference:
            continue
        for measure, words in (("approval_rate", "approval"), ("denial_rate", "denial")):
            difference, ratio = (view.get(group, f"{measure}_{form}") for form in ("difference", "ratio"))
            if difference is None and ratio is None:
                continue
            p, q = (getattr(difference or ratio, name) for name in ("p", "q"))
            cells = value_cell(difference, "rate"), value_cell(ratio, "rate"), p_cell(p), p_cell(q)
            rows.append((Cell(group), Cell(words), *cells))
    header = ("Group", "Rate", "Difference", "Ratio", "p", "q")
    note = (
        f"Against {view.reference}. p: Fisher's exact test; q: p after Benjamini-Hochberg over the run's comparisons."
    )
    return TableView(f"Against {view.reference}: {view.whose}", header, tuple(rows), note)


def _metrics(material: Material, view: View) -> list[TableView]:
    """How well the model follows the lender. Small groups are withheld here: this table comes before disclosure."""
    found = {(m["group"], m["metric"]): m for m in material.metrics if m["protected_attribute"] == view.attribute}
    groups = [g for g in view.groups if any(key[0] == g for key in found)]
    groups += sorted({g for g, _ in found} - set(groups))
    metrics = [name for name in _METRICS if any(name == key[1] for key in found)]
    if not metrics:
        return []
    rows: list[Row] = []
    for group in groups:
        mine = [found.get((group, name)) for name in metrics]
        rows.append(
            (Cell(group), *(_metric(material, view, group, name, m) for name, m in zip(metrics, mine, strict=True)))
        )
    header = ("Group", *(_METRICS[name].capitalize().replace("roc", "ROC") for name in metrics))
    few = f"Fewer than {material.settings.bootstrap.minimum_n} rows: too few to say."
    title = f"{_FOLLOWS[material.model]}, by {view.attribute}"
    return [TableView(title, header, tuple(rows), f"{_CARE[material.model]} {few}")]


def _metric(material: Material, view: View, group: str, name: str, found: object) -> Cell:
    if not isinstance(found, dict):
        return Cell("not computed", "none")
    rate = view.get(group, "approval_rate")
    if (rate is not None and rate.withheld) or 0 < found["n"] < material.policy.smallest:
        return Cell("withheld", "none")
    if found["n"] < material.settings.bootstrap.minimum_n:
        return Cell("too few to say", "none")
    if found["value"] is None:
        return Cell("undefined", "none")
    if material.policy.round_to > 1:
        return _coarse(name, found["value"], found["n"], material)
    return number_cell(significant(found["value"]) if name == "auc" else percent(found["value"]))


def _coarse(name: str, value: float, n: int, material: Material) -> Cell:
    """A metric that gives no exact count away: shares of all rows by rounded counts, the area to two digits."""
    if name == "auc":
        return number_cell(f"{value:.2f}")
    if name not in ("accuracy", "predicted_denial_rate"):
        return Cell("withheld", "none")  # their denominators are printed nowhere, and could be had from them
    whole = rounded(material.policy, n)
    return (
        number_cell(percent(rounded(material.policy, round(value * n)) / whole)) if whole else Cell("withheld", "none")
    )
