"""First results of FGCE: the infeasible share and the burden of each group beside the size-matched reference.

A reading claims no more than the range of the subsamples gives. Too few units, a withheld value and an undefined one
each get a sentence of their own: none of them reads as a pass.
"""

from dataclasses import replace

from tasks.methods.fgce.settings import FgceSettings
from tasks.reporting.comparison import BRACKETS, RANK, beside_words, dots, dots_legend, headline
from tasks.reporting.material import Measure, Shown, View, undrawn
from tasks.reporting.numbers import missing_words, written
from tasks.reporting.section import Figure, TableView

MEASURES = {
    "infeasible_share": Shown("infeasible share", "rate"),
    "burden": Shown("burden", "number"),
}


def cost_unit(view: View) -> str:
    """In what the cost of recourse is counted."""
    settings = view.method if isinstance(view.method, FgceSettings) else FgceSettings()
    return settings.cost_unit


def readings(view: View) -> tuple[str, ...]:
    """Both measures of every group against its size-matched reference."""
    groups = [group for group in view.groups if group != view.reference]
    return tuple(_sentence(view, group, measure, shown) for measure, shown in MEASURES.items() for group in groups)


def _sentence(view: View, group: str, measure: str, shown: Shown) -> str:
    own = view.get(group, measure)
    subject = f"{group}: the {shown.words}"
    if own is None:
        return f"{subject} is not computed: the group has no factuals. Nothing can be said, and that is no pass."
    if own.value is None:
        return f"{subject} is {missing_words(own)}. Nothing can be said, and that is no pass."
    text = written(own.value, shown.unit)
    if own.n is not None and own.n < view.minimum:
        return f"{subject} ({text}) rests on fewer than {view.minimum} factuals: too few to say, and that is no pass."
    matched = view.get(group, f"{measure}_size_matched")
    if matched is None or matched.value is None or matched.low is None or matched.high is None:
        return f"{subject} ({text}) has no size-matched reference, so an effect of size cannot be told from any other."
    difference = view.get(group, f"{measure}_size_matched_difference")
    return f"{subject} ({text}) {_against(own.value, matched, difference, shown, view.reference)}"


def _against(value: float, matched: Measure, difference: Measure | None, shown: Shown, reference: str) -> str:
    low, high = (written(x or 0.0, shown.unit) for x in (matched.low, matched.high))
    named = f"the range of the size-matched {reference} subsamples ({low} to {high}"
    named += f"; {matched.n} draws)" if matched.n else ")"
    side = (value > (matched.high or 0.0)) - (value < (matched.low or 0.0))
    if side:
        where, than = ("above", "higher") if side > 0 else ("below", "lower")
        if difference is None or difference.low is None or difference.high is None:
            return f"lies {where} {named}, but how far sampling error reaches is not known: nothing can be said."
        if difference.low <= 0 <= difference.high:
            return f"lies {where} {named}, but its own sampling error reaches into it: no difference can be told."
        return (
            f"lies {where} {named}: {than} than group size alone would lead one to expect. Why, this figure cannot say."
        )
    return f"lies inside {named}: not distinguishable from an effect of size."


def figures(view: View) -> tuple[Figure, ...]:
    """Infeasible share and burden of every group, each above the size-matched reference."""
    panels = []
    for measure, shown in MEASURES.items():
        title = shown.words.capitalize() + (f" ({cost_unit(view)})" if shown.unit == "number" else "")
        panels += dots(view, title, measure, shown, {})
    caption = f"Each group's own value with its interval above. {beside_words(view)}"
    title = f"Who has no recourse, and what it costs the others, by {view.attribute}"
    drawn = {m.group for m in view.all("infeasible_share") if m.value is not None}
    return (Figure(title, tuple(panels), caption + undrawn(view.groups, drawn), dots_legend(view)),)


def tables(view: View) -> tuple[TableView, ...]:
    """The same as tables, with differences."""
    share, burden = (headline(view, measure, shown) for measure, shown in MEASURES.items())
    return replace(share, note=f"{BRACKETS} {RANK}"), burden
